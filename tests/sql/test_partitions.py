"""Partitioned tables: ha_partition stands on top, each partition is a table with a store of its own."""

import pytest

from harness.values import payload, text


@pytest.fixture
def table(twin):
    twin.run(
        "CREATE TABLE t (id INT, b LONGBLOB, v LONGTEXT, PRIMARY KEY (id), KEY (v(30))) ENGINE={e} PARTITION BY "
        "RANGE (id) "
        "(PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN (30))"
    )
    sizes = [0, 100, 4097, 9000, 66000]
    for row in range(30):
        twin.run(
            "INSERT INTO t VALUES (%s, %s, %s)", (row, payload(row, sizes[row % 5]), text(row, sizes[(row + 2) % 5]))
        )
    return twin


def test_dml_across_partitions(table):
    table.all(
        "UPDATE t SET id = id - 1 WHERE id = 10 AND 1 = 0",
        "DELETE FROM t WHERE id = 5",
        "UPDATE t SET id = 5 WHERE id = 25",
        "UPDATE t SET b = CONCAT(b, v) WHERE id > 8",
        "SELECT id, b FROM t WHERE id BETWEEN 8 AND 12 ORDER BY id",
        "SELECT id FROM t ORDER BY v, id",
        "SELECT COUNT(*), MAX(b) FROM t PARTITION (p1)",
        "DELETE FROM t PARTITION (p2) WHERE id % 2 = 0",
    )
    table.run("INSERT INTO t VALUES (99, 'x', 'y')", error=1526)
    table.check()


def test_partition_ddl(table):
    for statement in (
        "ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (40))",
        "INSERT INTO t VALUES (35, REPEAT('p3', 6000), 'v')",
        "ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION q VALUES LESS THAN (20))",
        "ALTER TABLE t REORGANIZE PARTITION q INTO (PARTITION q0 VALUES LESS THAN (5), PARTITION q1 VALUES LESS "
        "THAN (20))",
        "ALTER TABLE t TRUNCATE PARTITION q0",
        "INSERT INTO t VALUES (1, REPEAT('again', 3000), 'v')",
        "ALTER TABLE t DROP PARTITION p2",
        "ALTER TABLE t ADD COLUMN x LONGBLOB DEFAULT 'x'",
        "UPDATE t SET x = CONCAT(b, b)",
        "ALTER TABLE t REBUILD PARTITION ALL",
        "ALTER TABLE t ADD KEY (x(100))",
        "ALTER TABLE t PARTITION BY KEY (id) PARTITIONS 4",
        "INSERT INTO t VALUES (500, REPEAT('key', 3000), 'v', 'x')",
        "ALTER TABLE t COALESCE PARTITION 2",
        "ALTER TABLE t ADD PARTITION PARTITIONS 3",
        "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 3 ",
        "UPDATE t SET b = CONCAT(b, 'h')",
        "ALTER TABLE t REMOVE PARTITIONING",
        "UPDATE t SET b = CONCAT(b, 'plain')",
        "ALTER TABLE t PARTITION BY LIST (id % 2) (PARTITION even VALUES IN (0), PARTITION odd VALUES IN (1))",
    ):
        if "LIST" in statement:
            table.run("ALTER TABLE t DROP KEY v, DROP KEY x")
        table.run(statement)
        table.check()
    table.run("ALTER TABLE t ANALYZE PARTITION ALL", compare=False)
    table.run("ALTER TABLE t CHECK PARTITION ALL", compare=False)


def test_exchange_partition(table):
    table.run("CREATE TABLE x (id INT, b LONGBLOB, v LONGTEXT, PRIMARY KEY (id), KEY (v(30))) ENGINE={e}")
    for row in (11, 13, 15):
        table.run("INSERT INTO x VALUES (%s, %s, 'exchanged')", (row, payload(("x", row), 9000)))
    table.run("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x")
    table.check()
    table.all(
        "UPDATE x SET b = CONCAT(b, 'was p1')",
        "UPDATE t SET b = CONCAT(b, 'was x') WHERE id BETWEEN 10 AND 19",
        "INSERT INTO x VALUES (25, REPEAT('n', 9000), '')",
    )
    table.check()
    table.run("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x", error=1737)
    table.run("DELETE FROM x WHERE id = 25")
    table.run("ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE x")
    table.check()
    table.run("DROP TABLE x")
    table.check()
    table.run("ALTER TABLE t CONVERT PARTITION p2 TO TABLE y")
    table.all("UPDATE y SET b = CONCAT(b, 'y')", "ALTER TABLE t CONVERT TABLE y TO PARTITION p2 VALUES LESS THAN (30)")
    table.check()


def test_subpartitions_and_engine_changes(twin):
    twin.run(
        "CREATE TABLE t (id INT, d INT, b LONGBLOB, PRIMARY KEY (id, d)) ENGINE={e} PARTITION BY RANGE (d) "
        "SUBPARTITION BY HASH (id) "
        "SUBPARTITIONS 2 (PARTITION a VALUES LESS THAN (5), PARTITION z VALUES LESS THAN MAXVALUE)"
    )
    for row in range(24):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, row % 10, payload(row, row * 500)))
    twin.check()
    for engine in ("InnoDB", "{e}"):
        twin.run(f"ALTER TABLE t ENGINE={engine}")
        twin.run("UPDATE t SET b = CONCAT(b, 'e')")
        twin.check()
    twin.all(
        "RENAME TABLE t TO u",
        "UPDATE u SET b = CONCAT(b, 'r')",
        "TRUNCATE TABLE u",
        "INSERT INTO u VALUES (1, 1, REPEAT('t', 9000))",
    )
    twin.check()
    twin.run("DROP TABLE u")


def test_auto_increment_over_partitions(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE={e} PARTITION BY KEY (id) PARTITIONS 3"
    )
    for row in range(20):
        twin.run(
            "INSERT INTO t (b) VALUES (%s), (%s)", (payload(row, row * 500), payload(-row - 1, 5000)), compare=False
        )
    ids = [number for (number,) in twin.server.query(f"SELECT id FROM {twin.under_test}.t ORDER BY id")]
    assert len(ids) == len(set(ids)) == 40
    twin.run("SELECT MD5(b) FROM t ORDER BY id")
