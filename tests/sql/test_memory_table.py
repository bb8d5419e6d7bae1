"""INFORMATION_SCHEMA.QUARRY_MEMORY, and the values' bytes in SHOW TABLE STATUS."""

import pytest

from harness.values import payload

pytestmark = pytest.mark.quarry_only

ROWS, SIZE = 50, 40_000


@pytest.fixture
def schema(server):
    server.query("CREATE OR REPLACE DATABASE m")
    server.query("CREATE TABLE m.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for row in range(ROWS):
        server.query("INSERT INTO m.t VALUES (%s, %s)", (row, payload(row, SIZE)))
    yield server
    server.query("DROP DATABASE m")


def areas(server):
    """{(area, table): (used, limit)}"""
    rows = server.query("SELECT area, table_name, used_bytes, limit_bytes FROM information_schema.quarry_memory")
    return {(area, table): (used, limit) for area, table, used, limit in rows}


def test_memory_in_all_and_of_a_table(schema):
    limit = int(schema.query("SELECT @@quarry_cache_size")[0][0])
    for _ in range(3):  # what is read again is cached
        schema.query("SELECT SUM(CRC32(b)) FROM m.t")
    found = areas(schema)
    used, _ = found["value cache", "t"]
    assert ROWS * SIZE * 0.9 < used <= found["value cache", None][0] <= limit == found["value cache", None][1]
    recent, recent_limit = found["recent writes", None]
    assert 0 < recent <= recent_limit == int(schema.query("SELECT @@quarry_recent_cache_bytes")[0][0])
    assert {area for area, table in found if table is None} == {
        "value cache", "recent writes", "buffers", "segment maps", "GC pass (peak)"
    }  # fmt: skip
    status = {name: int(schema.status(name)[name]) for name in ("quarry_cache_bytes", "quarry_segment_map_bytes")}
    assert found["segment maps", None][0] == status["quarry_segment_map_bytes"]
    schema.query("DELETE FROM m.t")
    schema.query("SET GLOBAL quarry_cache_size = 0")
    assert ("value cache", "t") not in areas(schema)
    schema.query(f"SET GLOBAL quarry_cache_size = {limit}")


def test_table_status_tells_values_and_plans_do_not_see_them(schema):
    plan = schema.query("EXPLAIN FORMAT=JSON SELECT * FROM m.t WHERE id > 3")
    ((live, dead),) = schema.query(
        "SELECT live_bytes, dead_bytes FROM information_schema.quarry_tables WHERE table_schema = 'm' AND state = 'BOUND'"
    )
    assert live > ROWS * SIZE and dead == 0
    query = "SELECT data_length, data_free, avg_row_length FROM information_schema.tables WHERE table_schema = 'm'"
    ((length, free, average),) = schema.query(query)
    assert live < length < live + 1_000_000 and average > SIZE * 0.5
    assert schema.query("EXPLAIN FORMAT=JSON SELECT * FROM m.t WHERE id > 3") == plan
    schema.query("UPDATE m.t SET b = CONCAT(b, 'x') WHERE id < 10")
    ((_, free_then, _),) = schema.query(query)
    assert free_then - free >= 10 * SIZE


def test_partitions_are_summed(schema):
    schema.query("CREATE TABLE m.p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 4")
    for row in range(8):
        schema.query("INSERT INTO m.p VALUES (%s, %s)", (row, payload(row, SIZE)))
    ((length,),) = schema.query("SELECT data_length FROM information_schema.tables WHERE table_name = 'p'")
    assert 8 * SIZE < length < 8 * SIZE + 1_000_000
