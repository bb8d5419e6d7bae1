"""Galera's appliers look at rows as replicas do: write-sets of each row image, stored columns, history, whole-value
UNIQUE.

Random rounds on every node in turn; then every table equals its InnoDB twin on each node, and no node's write-set
cache holds a head.
"""

import pytest

from harness.lookers import IMAGES, LoggedPair, compare_schemas
from harness.rounds import TABLES, Rounds, definitions
from harness.server import has_failed
from harness.values import SEED
from harness.workload import SCALE

# A table without a primary key is no place for changes on several nodes.
KEYED = tuple(name for name in TABLES if name != "nokey")


@pytest.fixture
def pairs(cluster, request):
    """`pairs(image)`: the two schemas, by connections to each node."""
    made = []

    def make(image):
        for node in cluster.nodes:
            pair = LoggedPair(node, None, f"galera_{image}", image, create=not made)
            made.append(pair)
            cluster.settle()
        for schema, engine in made[0].engines.items():
            for sql in definitions(engine, replica=False):
                cluster.nodes[0].query(sql, database=schema)
        cluster.settle()
        return made

    yield make
    for pair in made:
        pair.close(drop=pair is made[-1] and not has_failed(request))


@pytest.mark.parametrize("image", IMAGES)
def test_rounds_on_every_node(cluster, pairs, image):
    made = pairs(image)
    for number in range(SCALE):
        for i, pair in enumerate(made):
            # The server's clocks go on from node to node, or history would end before it began.
            pair.clock = max(other.clock for other in made)
            Rounds(pair, f"{SEED}-{image}-{number}-{i}", KEYED).run(20)
            cluster.settle()
        for node, pair in zip(cluster.nodes, made):
            compare_schemas(node, pair.engines)
            pair.search.check_file(node.datadir / "galera.cache")
    cluster.assert_healthy(len(cluster.nodes))


@pytest.mark.parametrize("image", IMAGES)
def test_the_smallest_forms(cluster, pairs, image):
    """A STORED column over a value beside a UNIQUE over a whole TEXT; a DELETE that keeps history."""
    first, second, third = pairs(image)
    for pair in (first, second):
        first.run("REPLACE INTO uniq (id, n, b, u) VALUES (1, 0, REPEAT('a', 9000), 'x')")
        first.run("REPLACE INTO hist (id, n, b, v) VALUES (1, 0, REPEAT('a', 9000), 'v')")
        cluster.settle()
        pair.clock = first.clock + 1
        pair.run("UPDATE uniq SET n = n + 1")
        pair.run("DELETE FROM hist")
        first.clock = pair.clock
        cluster.settle()
        for node in cluster.nodes:
            for schema in first.engines:
                found = node.query(f"SELECT len, LENGTH(b) FROM {schema}.uniq")
                assert found == ((9000, 9000),), f"{node.name} {schema}: {found}"
                found = node.query(f"SELECT DISTINCT LENGTH(b) FROM {schema}.hist FOR SYSTEM_TIME ALL")
                assert found == ((9000,),), f"{node.name} {schema}: {found}"
    third.check()
