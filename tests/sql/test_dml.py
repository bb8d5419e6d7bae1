"""Rows in and out: every statement that changes or reads values, on values at the edges of the format."""

import pytest

from harness.values import edge_sizes, payload, text

BASIC = "CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, t LONGTEXT, KEY (n)) ENGINE={e}"


def fill(twin, rows=40, table="t"):
    sizes = [0, 1, 100, 4000, 4096, 4097, 5000, 9000, 20000, 70000]
    for row in range(rows):
        size = sizes[row % len(sizes)]
        twin.run(
            f"INSERT INTO {table} VALUES (%s, %s, %s, %s)",
            (row, row % 7, payload(row, size), None if row % 9 == 8 else text(row, sizes[(row * 3) % len(sizes)])),
        )


@pytest.mark.parametrize("column", ["BLOB", "MEDIUMBLOB", "LONGBLOB"])
def test_edge_sizes_of_blobs(twin, column):
    twin.run(f"CREATE TABLE t (id INT PRIMARY KEY, v {column}) ENGINE={{e}}")
    sizes = [size for size in edge_sizes() if column != "BLOB" or size <= 65535]
    for size in sizes:
        twin.run("INSERT INTO t VALUES (%s, %s)", (size, payload(size, size)))
    twin.run("INSERT INTO t VALUES (-1, NULL)")
    for size in sizes:
        ((value,),) = twin.rows("SELECT v FROM t WHERE id = %s", (size,))
        assert value == payload(size, size), f"{size} bytes came back wrong"
    twin.run("SELECT id, v, LENGTH(v), SHA2(v, 256) FROM t ORDER BY id")
    for size in sizes:
        twin.run("UPDATE t SET v = %s WHERE id = %s", (payload(-size - 1, size), size))
    twin.check()


@pytest.mark.parametrize("column", ["TEXT", "MEDIUMTEXT", "LONGTEXT", "JSON"])
def test_edge_sizes_of_texts(twin, column):
    twin.run(f"CREATE TABLE t (id INT PRIMARY KEY, v {column}) ENGINE={{e}}")
    for size in edge_sizes():
        if column == "TEXT" and size > 65535 or column == "JSON" and size < 2:
            continue
        value = text(size, size) if column != "JSON" else '"' + text(size, size - 2) + '"'
        twin.run("INSERT INTO t VALUES (%s, %s)", (size, value))
    twin.run("SELECT id, v, CHAR_LENGTH(v) FROM t ORDER BY id")
    twin.check()


@pytest.mark.parametrize("megabytes", [16, 64])
def test_large_values(twin, megabytes):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB) ENGINE={e}")
    size = megabytes << 20
    for row, step in enumerate((-1, 0, 1)):
        if megabytes > 16 and step != 0:
            continue
        value = payload(megabytes, size + step)
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, value))
        assert twin.value("SELECT v FROM t WHERE id = %s", (row,)) == value
    twin.run("SELECT id, LENGTH(v), MD5(v), SUBSTRING(v, 7000000, 50) FROM t")
    twin.run("UPDATE t SET v = CONCAT(v, 'x')")
    twin.run("SELECT id, LENGTH(v), MD5(v), RIGHT(v, 50) FROM t")
    twin.run("CHECKSUM TABLE t")


def test_insert_forms(twin):
    twin.run(BASIC)
    fill(twin)
    many = ", ".join(["(%s, 1, %s, %s)"] * 20)
    twin.run(
        f"INSERT INTO t VALUES {many}",
        [item for row in range(100, 120) for item in (row, payload(row, row * 60), text(row, row * 70))],
    )
    twin.run("INSERT INTO t SET id = 200, b = REPEAT('x', 5000)")
    twin.run("INSERT INTO t (id) VALUES (201)")
    twin.run(
        "INSERT INTO t VALUES (300, 1, %s, 'ok'), (0, 1, 'dup', 'dup'), (301, 1, 'never', 'never')",
        (payload(1, 9000),),
        error=1062,
    )
    twin.run(
        "INSERT IGNORE INTO t VALUES (400, 1, %s, 'ok'), (0, 1, 'dup', 'dup'), (401, 1, %s, 'ok')",
        (payload(2, 9000), payload(3, 70000)),
    )
    twin.run("INSERT INTO t (id, b) VALUES (500, %s) RETURNING id, LENGTH(b), b", (payload(4, 30000),))
    twin.run("DELETE FROM t WHERE id = 500 RETURNING id, LENGTH(b), b")
    twin.check()


def test_not_null_and_defaults(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB NOT NULL, " "b LONGTEXT DEFAULT REPEAT('d', 6000)) ENGINE={e}"
    )
    twin.run("INSERT INTO t (id, a) VALUES (1, %s)", (payload(1, 5000),))
    twin.run("INSERT INTO t VALUES (2, NULL, 'x')", error=1048)
    twin.run("INSERT INTO t (id) VALUES (3)", error=1364)
    twin.run("UPDATE t SET b = DEFAULT, a = b")
    twin.run("SET sql_mode = ''")
    twin.run("INSERT INTO t (id) VALUES (4)")
    twin.check()


def test_update_forms(twin):
    twin.run(BASIC)
    fill(twin)
    twin.all(
        "UPDATE t SET b = CONCAT(b, b) WHERE id < 10",
        "UPDATE t SET b = t, t = NULL WHERE id BETWEEN 10 AND 15",
        "UPDATE t SET n = n + 1",
        "UPDATE t SET b = b",
        "UPDATE t SET b = NULL WHERE id = 17",
        "UPDATE t SET b = '' WHERE id = 18",
        "UPDATE t SET b = LEFT(b, 4096) WHERE id > 30",
        "UPDATE t SET id = id + 1000 ORDER BY id DESC LIMIT 10",
        "UPDATE t SET b = CONCAT(b, 'tail') ORDER BY n, id LIMIT 5",
        "UPDATE t SET t = CONVERT(HEX(b) USING utf8mb4) WHERE n = 3",
        "UPDATE t SET n = LENGTH(b) % 11 WHERE b IS NOT NULL",
        "UPDATE t SET b = (SELECT REPEAT('s', 7000)) WHERE n = 2",
        "UPDATE IGNORE t SET id = 5 WHERE id IN (5, 6)",
        "SELECT id, n, MD5(b), MD5(t) FROM t ORDER BY id",
    )
    twin.run("UPDATE t SET id = 5 WHERE id = 7", error=1062)
    twin.check()


def test_update_same_value_is_no_change(twin):
    """An UPDATE to the same bytes reports 0 changed rows, as with InnoDB."""
    twin.run(BASIC)
    fill(twin, 10)
    for row in range(10):
        ((value, words),) = twin.rows("SELECT b, t FROM t WHERE id = %s", (row,))
        assert twin.run("UPDATE t SET b = %s, t = %s WHERE id = %s", (value, words, row)).affected == 0
    twin.check()


def test_replace_and_on_duplicate_key(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, u INT, b LONGBLOB, UNIQUE (u)) ENGINE={e}")
    for row in range(20):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, row + 100, payload(row, 3000 + 500 * row)))
    for row in range(0, 20, 3):
        twin.run("REPLACE INTO t VALUES (%s, %s, %s)", (row, row + 101, payload(row + 50, 8000)))
    for row in range(0, 20, 2):
        twin.run(
            "INSERT INTO t VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE b = CONCAT(VALUES(b), b), u = u + 1000",
            (row, row + 500, payload(row + 70, 6000)),
        )
    twin.run("INSERT INTO t VALUES (1, 1, 'x') ON DUPLICATE KEY UPDATE b = b")
    twin.run("REPLACE INTO t SELECT id + 5, u + 5000, REVERSE(b) FROM t WHERE id < 8")
    twin.run(
        "INSERT INTO t SELECT id, u, CONCAT(b, 'odku') FROM (SELECT * FROM t WHERE id > 10) s "
        "ON DUPLICATE KEY UPDATE b = VALUES(b)"
    )
    twin.run("SELECT id, u, LENGTH(b), MD5(b) FROM t ORDER BY id")
    twin.check()


def test_delete_forms(twin):
    twin.run(BASIC)
    fill(twin)
    twin.all(
        "DELETE FROM t WHERE id = 3",
        "DELETE FROM t WHERE b = ''",
        "DELETE FROM t WHERE LENGTH(b) > 60000",
        "DELETE FROM t WHERE n = 2 ORDER BY id LIMIT 2",
        "DELETE FROM t WHERE b IS NULL",
        "SELECT id FROM t ORDER BY id",
    )
    twin.check()
    twin.run("DELETE FROM t")
    twin.check()
    fill(twin)
    twin.run("TRUNCATE TABLE t")
    twin.check()
    fill(twin, 12)
    twin.check()


def test_multi_table_update_and_delete(twin):
    twin.run(BASIC)
    twin.run(BASIC.replace("TABLE t ", "TABLE s "))
    fill(twin)
    fill(twin, 25, "s")
    twin.all(
        "UPDATE t, s SET t.b = s.t, s.t = CONCAT('moved', s.id) WHERE t.id = s.id + 3",
        "UPDATE t JOIN s ON t.n = s.n SET t.b = CONCAT(t.b, 'j') WHERE s.id = 5",
        "UPDATE t LEFT JOIN s ON t.id = s.id + 1000 SET t.t = REPEAT('left', 2000) WHERE s.id IS NULL AND t.id > 35",
        "UPDATE t a, t c SET a.b = c.b WHERE a.id = c.id + 1 AND a.id < 5",
        "DELETE t, s FROM t JOIN s ON t.id = s.id WHERE t.n = 4",
        "DELETE FROM t USING t JOIN s ON t.b = s.b WHERE t.id > 20",
    )
    twin.check()


def test_insert_select_self_and_others(twin):
    twin.run(BASIC)
    fill(twin, 20)
    twin.all(
        "INSERT INTO t SELECT id + 100, n, b, t FROM t",
        "INSERT INTO t SELECT id + 1000, n, CONCAT(b, t), t FROM t WHERE t IS NOT NULL",
        "CREATE TABLE c ENGINE={e} SELECT * FROM t",
        "CREATE TABLE d LIKE t",
        "INSERT INTO d SELECT * FROM t ORDER BY id DESC",
        "CREATE TABLE g ENGINE={e} SELECT n, GROUP_CONCAT(LEFT(t, 3000) ORDER BY id SEPARATOR '') AS joined FROM t "
        "GROUP BY n",
        "CREATE OR REPLACE TABLE c ENGINE={e} SELECT id, b FROM d",
        "INSERT INTO d SELECT 5000, 1, (SELECT b FROM t WHERE id = 9), (SELECT t FROM t WHERE id = 7)",
    )
    twin.run("INSERT INTO t SELECT id, n, b, t FROM d", error=1062)
    twin.run("CREATE TABLE bad (PRIMARY KEY (id)) ENGINE={e} SELECT 1 AS id, b FROM t", error=1062)
    assert "bad" not in twin.tables()
    twin.check()


def test_no_primary_key(twin):
    twin.run("CREATE TABLE t (n INT, b LONGBLOB, t LONGTEXT) ENGINE={e}")
    for row in range(30):
        twin.run(
            "INSERT INTO t VALUES (%s, %s, %s)",
            (row % 5, payload(row % 10, 3000 + row % 10 * 900), text(row % 4, 6000)),
        )
    twin.run("SELECT n, MD5(b), MD5(t), COUNT(*) FROM t GROUP BY n, b, t")
    twin.run("UPDATE t SET b = CONCAT(b, 'x') WHERE n = 2")
    twin.run("DELETE FROM t WHERE n = 3 AND t = %s", (text(0, 6000),))
    twin.run("UPDATE t SET n = n + 1, t = REVERSE(t)")
    twin.check()


def test_auto_increment(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE={e}")
    twin.run("INSERT INTO t (b) VALUES (%s)", (payload(1, 9000),))
    twin.run("INSERT INTO t (b) VALUES (%s), (%s), (%s)", tuple(payload(row, 5000) for row in range(3)))
    twin.run("SELECT LAST_INSERT_ID()")
    twin.run("INSERT INTO t VALUES (1000, %s)", (payload(4, 4097),))
    twin.run("INSERT INTO t (b) VALUES ('after')")
    twin.run("SELECT MAX(id) > 1000 FROM t")
    twin.run("INSERT INTO t VALUES (NULL, 'null'), (0, 'zero')")
    twin.run("INSERT INTO t VALUES (-5, 'negative')")
    twin.run("ALTER TABLE t AUTO_INCREMENT = 5000")
    twin.run("INSERT INTO t (b) VALUES (%s)", (payload(5, 100000),))
    twin.run("INSERT INTO t (b) VALUES (%s) ON DUPLICATE KEY UPDATE b = 'x'", (payload(5, 100),))
    twin.run("TRUNCATE TABLE t")
    twin.run("INSERT INTO t (b) VALUES (%s)", (payload(6, 100000),))
    twin.check()


@pytest.mark.parametrize("size", [5000, 65535, 300000])
def test_replace_after_a_null(twin, size):
    """A row found as a duplicate holds NULL: nothing of it may be taken for the rows written after it."""
    twin.all(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
        "CREATE TABLE s (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
        f"INSERT INTO t VALUES (1, NULL), (9, REPEAT('a', {size}))",
        f"INSERT INTO s VALUES (1, 'short'), (2, REPEAT('z', {size})), (3, REPEAT('y', {size}))",
    )
    for verb in ("REPLACE INTO t SELECT * FROM s", "INSERT INTO t SELECT * FROM s ON DUPLICATE KEY UPDATE b = s.b"):
        # The last value read stays in memory that the next statement gets for its own.
        twin.run("SELECT id, MD5(b) FROM t")
        twin.run(verb)
        twin.check()
        twin.all("UPDATE t SET b = NULL WHERE id = 1", "DELETE FROM t WHERE id IN (2, 3)")
