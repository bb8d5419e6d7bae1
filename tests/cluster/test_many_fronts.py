"""As many SQL servers as the published cluster had: sixteen Spider fronts over two shards."""

import pytest
from quarry_cluster.ddl import ShardedTables

from harness.scale_out import ScaleOut

pytestmark = [pytest.mark.quarry_only, pytest.mark.nightly]

TABLE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, front INT, b LONGBLOB) ENGINE=QUARRY"
FRONTS, ROWS, SIZE = 16, 3, 70_000


@pytest.fixture
def many():
    made = ScaleOut("many-fronts", fronts=FRONTS)
    try:
        yield made.start().cluster, made.connects("d")
    finally:
        made.remove()


def test_sixteen_fronts_write_to_two_shards_and_each_reads_all(many):
    cluster, connects = many
    ShardedTables(cluster).create("d", TABLE, "id")
    assert len(connects) == FRONTS
    for number, connect in enumerate(connects):
        with connect() as connection, connection.cursor() as cursor:
            for _ in range(ROWS):
                cursor.execute("INSERT INTO t (front, b) VALUES (%s, REPEAT('x', %s))", (number, SIZE))
    for connect in connects:
        with connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(DISTINCT id), COUNT(DISTINCT front), SUM(LENGTH(b)) FROM t")
            assert cursor.fetchone() == (FRONTS * ROWS, FRONTS, FRONTS * ROWS * SIZE)
    counts = [cluster.primary(shard).value("SELECT COUNT(*) FROM d.t") for shard in cluster.plan.routes]
    assert len(counts) == 2 and sum(counts) == FRONTS * ROWS and min(counts) > 0
