"""Plans may differ from InnoDB's, for a QUARRY table has fewer pages: what follows from that, and what must not."""

import pytest

from harness.values import payload

PARTITIONS = {
    "plain": "",
    "hash": "PARTITION BY HASH (id) PARTITIONS 3",
    "range": "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
    "history": "PARTITION BY SYSTEM_TIME (PARTITION h HISTORY, PARTITION c CURRENT)",
}
LOOKS = ("id > 5", "id BETWEEN 3 AND 9", "id < 100", "id IN (1, 2, 3)", "id >= 0")


def plans(twin, schema):
    """Table, type, key and rows of each step of each query."""
    found = []
    with twin.connection("main", schema).cursor() as cursor:
        for columns in ("id", "*", "COUNT(*)", "b"):
            for rows in ("", "FOR SYSTEM_TIME ALL"):
                for look in LOOKS:
                    cursor.execute(f"EXPLAIN SELECT {columns} FROM t {rows} WHERE {look}")
                    found.append((columns, rows, look, [(row[3], row[5], row[8]) for row in cursor.fetchall()]))
    return found


@pytest.mark.parametrize("change", ["FORCE", "ROW_FORMAT=COMPACT"])
@pytest.mark.parametrize("partitions", PARTITIONS)
def test_a_rebuild_in_place_leaves_statistics_of_what_is_there(twin, partitions, change):
    """The plans behind it are those of a table that was just opened, and those that ANALYZE TABLE leads to."""
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, n INT) ENGINE={e} WITH SYSTEM VERSIONING "
        + PARTITIONS[partitions]
    )
    for row in range(30):
        twin.run("INSERT INTO t VALUES (%s, %s, 0)", (row, payload(row, 3000)))  # values that stay in the row
    twin.run("UPDATE t SET n = 1 WHERE id < 12")
    twin.run("DELETE FROM t WHERE id % 4 = 1")
    twin.run("SET system_versioning_alter_history = KEEP")
    for schema in twin.engines:
        plans(twin, schema)  # whatever is remembered of the old table
    twin.run(f"ALTER TABLE t {change}, ALGORITHM=INPLACE")
    rebuilt = {schema: plans(twin, schema) for schema in twin.engines}
    twin.server.query("FLUSH TABLES")
    assert {schema: plans(twin, schema) for schema in twin.engines} == rebuilt
    twin.run("ANALYZE TABLE t", compare=False)
    assert {schema: plans(twin, schema) for schema in twin.engines} == rebuilt
    assert rebuilt[twin.under_test] == rebuilt[twin.twin]


@pytest.mark.parametrize("key", ["", ", KEY (v)"])
@pytest.mark.parametrize("order", ["t STRAIGHT_JOIN u", "u STRAIGHT_JOIN t"])
def test_a_joined_update_warns_of_the_rows_that_its_plan_reads(twin, order, key):
    """A virtual column is computed of each row that is met, changed or not. Which are met is the plan's choice: where
    the order of the tables is given, the warnings are InnoDB's."""
    twin.run("SET sql_mode = ''")
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, b MEDIUMTEXT CHARACTER SET utf8mb4, v VARCHAR(80) AS (LEFT(b, 10)) "
        f"VIRTUAL{key}) ENGINE={{e}} DEFAULT CHARSET=latin1"
    )
    twin.run("CREATE TABLE u (id INT PRIMARY KEY, n INT, w MEDIUMTEXT CHARACTER SET utf8mb4) ENGINE={e}")
    for row in range(8):
        twin.run("INSERT INTO t (id, n, b) VALUES (%s, 1, %s)", (row, "漢" * (row * 700)))
    twin.run("INSERT INTO u SELECT id, 1, b FROM t")
    warned = 0
    for condition in ("t.id = u.id", "t.id = u.id AND t.v != 'y'", "t.id = u.id AND u.n > 5", "t.n = u.n AND t.id < 3"):
        for change in ("t.n = t.n", "u.n = u.n", "t.b = t.b", "t.n = 0 * LENGTH(t.v) + 1", "t.b = u.w", "u.w = t.b"):
            outcome = twin.run(f"UPDATE {order} ON {condition} SET {change}")
            warned += sum(code == 1366 for code, _ in outcome.warnings)
    assert warned > 0
    twin.check()
