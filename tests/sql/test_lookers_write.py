"""Who looks at a row that is written: the binary log, history, triggers, generated columns, checks, unique hashes,
periods.

Each statement goes to a QUARRY table and to its InnoDB twin, under each row image; then everything is compared here
and in a server that is restored from the logs, and the logs are searched for heads (tests/harness/lookers.py).
"""

import pytest

from harness.lookers import OWN_TRAILER, insert, value, words
from harness.values import payload

ROWS = 18  # each kind of value twice


def fill(pair, columns="id, n, b, v", more=None):
    """t's rows: (id, n, b, v), and `more(i)` for the columns behind them."""
    insert(pair, "t", columns, [(i, i % 4, value(i), words(i), *(more(i) if more else ())) for i in range(ROWS)])


PLAIN = "id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT CHARACTER SET latin1"


def change(pair, table="t", where=""):
    """Statements of every kind that leave some of the columns alone."""
    also = f" AND {where}" if where else ""
    pair.all(
        f"UPDATE {table} SET n = n + 1 WHERE id < 9{also}",
        f"UPDATE {table} SET n = n + 1, b = 'new' WHERE id IN (3, 12){also}",
        f"UPDATE {table} SET v = CONCAT(LEFT(v, 100), 'grown') WHERE id IN (1, 4, 10, 13){also}",
        f"UPDATE {table} SET b = b, n = n WHERE id < 4{also}",
        f"UPDATE {table} SET b = REVERSE(b) WHERE id BETWEEN 8 AND 11{also} ORDER BY n, id LIMIT 3",
        f"UPDATE IGNORE {table} SET n = 7 WHERE n = 2{also} ORDER BY id LIMIT 2",
        f"DELETE FROM {table} WHERE id IN (2, 5){also}",
        f"DELETE FROM {table} WHERE n = 3{also} ORDER BY id DESC LIMIT 1",
    )


def put(pair, table="t"):
    """Rows that meet those that are there already."""
    names = "(id, n, b, v)"
    for i in (3, 8, 16, 30):
        pair.run(f"REPLACE INTO {table} {names} VALUES (%s, 1, %s, %s)", (i, value(i + 2), words(i + 1)))
    on_duplicate = f"INSERT INTO {table} {names} VALUES (%s, 2, %s, %s) ON DUPLICATE KEY UPDATE"
    for i in (1, 3, 7, 10, 31):
        pair.run(f"{on_duplicate} n = n + 10", (i, value(i + 1), words(i)))
    for i in (3, 8, 12, 32):
        pair.run(f"{on_duplicate} n = VALUES(n), v = VALUES(v)", (i, value(i + 3), words(i + 2)))
    pair.run(f"INSERT IGNORE INTO {table} {names} VALUES (1, 1, 'x', 'y'), (33, 1, REPEAT('z', 9000), 'y')")
    pair.run(f"INSERT INTO {table} {names} SELECT id + 100, n, b, v FROM {table} WHERE id < 12 ORDER BY id")
    pair.run(f"REPLACE INTO {table} {names} SELECT id + 100, n + 1, b, v FROM {table} WHERE id IN (4, 8) ORDER BY id")
    pair.run(
        f"INSERT INTO {table} {names} SELECT id, n, b, v FROM {table} o WHERE o.id > 100 ORDER BY o.id ON DUPLICATE KEY"
        f" UPDATE n = {table}.n + 1"
    )


def join(pair, table="t"):
    """Statements over two tables: rows are found first, and changed when they are read again by their ids."""
    pair.run("CREATE TABLE j (id INT PRIMARY KEY, ref INT, w LONGBLOB, KEY (ref)) ENGINE={e}")
    pair.run("INSERT INTO j SELECT seq, seq % 14, REPEAT('w', seq * 300) FROM seq_1_to_28")
    pair.all(
        f"UPDATE {table} t JOIN j ON j.ref = t.id SET t.n = t.n + 100 WHERE j.id < 10",
        f"UPDATE {table} t JOIN j ON j.ref = t.id SET t.n = t.n + 1, j.ref = j.ref + 1 WHERE j.id IN (3, 4)",
        f"UPDATE {table} t JOIN j ON j.id = t.id SET t.v = LEFT(CONCAT(j.w, 'joined'), 5000) WHERE j.id > 8",
        f"UPDATE j JOIN {table} t ON j.id = t.id SET j.w = t.b WHERE t.id < 12",
        f"DELETE t, j FROM {table} t JOIN j ON j.ref = t.id WHERE j.id IN (12, 13)",
        f"DELETE t FROM {table} t JOIN j ON j.id = t.id WHERE LENGTH(j.w) = 4500",
    )


# --- plain tables and row images ------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", ["key", "no key"])
def test_row_images(pair, key):
    pair.run(
        f"CREATE TABLE t ({PLAIN if key == 'key' else PLAIN.replace(' PRIMARY KEY', '')}, KEY (n), KEY (v(10)))"
        " ENGINE={e}"
    )
    fill(pair)
    change(pair)
    if key == "key":
        put(pair)
    join(pair)
    pair.finish()


def test_every_value_out_of_line(pair):
    """INLINE_SIZE=0: the shortest is a head, too."""
    pair.run("SET quarry_inline_size = 0" if pair.engines[pair.under_test] == "QUARRY" else "DO 0")
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}}")
    fill(pair)
    change(pair)
    put(pair)
    pair.finish()


@pytest.mark.quarry_only
def test_reads_of_an_update_of_another_column(logged_server):
    """No payload is read unless the row image itself holds it: once a row, with FULL."""
    server, rows = logged_server, 12
    server.query("CREATE OR REPLACE DATABASE k")
    server.query("CREATE TABLE k.t (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE=QUARRY")
    for i in range(rows):
        server.query("INSERT INTO k.t VALUES (%s, 0, %s)", (i, payload(i, 65536)))
    connection = server.connect("k")
    for settings, allowed in (
        ("sql_log_bin = 0", 0),
        ("sql_log_bin = 1, binlog_row_image = MINIMAL", 0),
        ("sql_log_bin = 1, binlog_row_image = NOBLOB", 0),
        ("sql_log_bin = 1, binlog_row_image = FULL", rows),
    ):
        with connection.cursor() as cursor:
            cursor.execute(f"SET {settings}")
            before = values_read(server)
            cursor.execute("UPDATE t SET n = n + 1")
            assert values_read(server) - before == allowed, settings
    connection.close()
    server.query("DROP DATABASE k")


@pytest.mark.quarry_only
def test_reads_of_a_locking_read_of_partitioned_history(logged_server):
    """Only rows that are changed move to another partition: SELECT ... FOR UPDATE reads what it names, and a function
    that it calls changes whole rows.
    """
    server, rows = logged_server, 6
    server.query("CREATE OR REPLACE DATABASE k")
    server.query(
        "CREATE TABLE k.t (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE=QUARRY WITH SYSTEM VERSIONING PARTITION BY "
        "SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pc CURRENT)"
    )
    for i in range(rows):
        server.query("INSERT INTO k.t VALUES (%s, 0, %s)", (i, payload(i, 65536)))
    server.query(
        "CREATE FUNCTION k.change_all() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE k.t SET n = n + 1; "
        "RETURN ROW_COUNT(); END"
    )
    before = values_read(server)
    assert server.query("SELECT id, n FROM k.t ORDER BY id FOR UPDATE") == tuple((i, 0) for i in range(rows))
    assert values_read(server) == before
    assert server.query("SELECT k.change_all()") == ((rows,),)
    found = server.query("SELECT id, n, b FROM k.t FOR SYSTEM_TIME ALL ORDER BY id, n")
    assert found == tuple((i, n, payload(i, 65536)) for i in range(rows) for n in (0, 1))
    server.query("DROP DATABASE k")


def values_read(server):
    """From segments or from memory."""
    status = server.status("quarry%")
    return int(status["quarry_extents_read"]) + int(status["quarry_cache_hits"])


def test_other_log_formats(make_pair):
    """What MIXED decides row by row, and statements, restore to the same."""
    pair = make_pair()
    pair.run("SET binlog_format = MIXED, binlog_row_image = MINIMAL")
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}} WITH SYSTEM VERSIONING")
    fill(pair)
    pair.run("DELETE FROM t WHERE id < 5 AND UUID() <> 'x'")
    change(pair)
    pair.finish()


# --- history --------------------------------------------------------------------------------------------------------
def test_system_versioning(pair):
    """F2: a DELETE is logged as an update of the row's end; history is a copy of the whole row."""
    pair.run(f"CREATE TABLE t ({PLAIN}, KEY (n)) ENGINE={{e}} WITH SYSTEM VERSIONING")
    fill(pair)
    change(pair)
    put(pair)
    join(pair)
    pair.run("SELECT id, MD5(b), MD5(v) FROM t FOR SYSTEM_TIME AS OF TIMESTAMP'2020-09-13 12:27:05' ORDER BY id")
    pair.run("DELETE FROM t")
    pair.run(
        "INSERT INTO t (id, n, b, v) SELECT id, n, b, v FROM t FOR SYSTEM_TIME ALL WHERE id < 9 GROUP BY id",
        error="any",
        compare=False,
    )
    pair.finish()


def test_versioned_columns_and_explicit_periods(pair):
    """Columns of which no history is kept; periods that the table names itself."""
    pair.run(
        f"CREATE TABLE t ({PLAIN}, w LONGBLOB WITHOUT SYSTEM VERSIONING, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " e TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (s, e)) ENGINE={e} WITH"
        " SYSTEM VERSIONING"
    )
    fill(pair, "id, n, b, v, w", lambda i: (value(i + 5),))
    change(pair)
    pair.run("UPDATE t SET w = CONCAT(b, 'w') WHERE id > 6")
    pair.run("UPDATE t SET w = v, n = 5 WHERE id > 12")
    put(pair)
    pair.finish()


@pytest.mark.parametrize(
    "rule", ["LIMIT 20", "INTERVAL 60 SECOND STARTS TIMESTAMP'2020-09-13 12:26:40'"], ids=["limit", "interval"]
)
def test_partitions_by_system_time(pair, rule):
    """History goes to another partition than the current rows: to a handler that has read nothing."""
    pair.run("SET time_zone = '+00:00'")
    pair.run(
        f"CREATE TABLE t ({PLAIN}) ENGINE={{e}} WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME {rule} "
        "(PARTITION p0 HISTORY, PARTITION p1 HISTORY, PARTITION p2 HISTORY, PARTITION pc CURRENT)"
    )
    fill(pair)
    change(pair)
    put(pair)
    join(pair)
    pair.run("SELECT id, n, MD5(b), MD5(v) FROM t PARTITION (p0) ORDER BY id, n, row_end")
    pair.run("DELETE FROM t WHERE id > 8")
    pair.finish()


def test_cascades_into_versioned_tables(pair):
    """InnoDB itself writes the history of what a foreign key takes along (row_update_vers_insert)."""
    pair.run("CREATE TABLE p (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")
    for name, action in (("c", "CASCADE"), ("d", "SET NULL")):
        pair.run(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, p INT, b LONGBLOB, v LONGTEXT CHARACTER SET latin1, KEY (p), KEY"
            f" (v(12)), FOREIGN KEY (p) REFERENCES p (id) ON DELETE {action} ON UPDATE CASCADE) ENGINE={{e}} WITH"
            " SYSTEM VERSIONING"
        )
    for i in range(6):
        pair.run("INSERT INTO p VALUES (%s, %s)", (i, value(i)))
    for name in ("c", "d"):
        insert(pair, name, "id, p, b, v", [(i, i % 6, value(i), words(i)) for i in range(ROWS)])
    pair.all(
        "UPDATE p SET id = 10 WHERE id = 1",
        "DELETE FROM p WHERE id = 2",
        "UPDATE c SET b = CONCAT(b, 'own') WHERE p = 10",
        "UPDATE p SET id = 11, b = 'moved' WHERE id = 10",
        "REPLACE INTO p VALUES (3, 'again')",
        "DELETE p FROM p JOIN c ON c.p = p.id WHERE c.id = 4",
    )
    for name in ("c", "d"):
        pair.run(f"SELECT id, p, b, v FROM {name} FOR SYSTEM_TIME ALL ORDER BY id, p, row_end")
        pair.run(
            f"SELECT id, LENGTH(v) FROM {name} FOR SYSTEM_TIME ALL FORCE INDEX (v) WHERE v > 'a' ORDER BY id, v,"
            " row_end"
        )
    pair.finish()


def test_history_keeps_its_values_when_rows_go(make_pair):
    """Rows of one history share heads: what gives up one of them gives up no value that another still has."""
    pair = make_pair("MINIMAL")
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}} WITH SYSTEM VERSIONING")
    fill(pair)
    for _ in range(3):
        pair.run("UPDATE t SET n = n + 1")
    pair.run("DELETE HISTORY FROM t BEFORE SYSTEM_TIME '2020-09-13 12:27:01'")
    pair.run("DELETE FROM t WHERE id % 2 = 0")
    pair.finish()


# --- periods --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("versioned", ["", "WITH SYSTEM VERSIONING"], ids=["plain", "versioned"])
def test_portions_of_a_period(pair, versioned):
    """FOR PORTION OF: the server inserts what is left of a row before and behind the portion, values and all."""
    pair.run(
        "CREATE TABLE t (id INT, n INT, b LONGBLOB, v LONGTEXT CHARACTER SET latin1, x DATE, y DATE, PERIOD FOR p (x,"
        f" y), UNIQUE (id, p WITHOUT OVERLAPS)) ENGINE={{e}} {versioned}"
    )
    fill(pair, "id, n, b, v, x, y", lambda i: ("2000-01-01", "2010-01-01"))
    pair.run("INSERT INTO t VALUES (1, 1, 'b', 'v', '2005-01-01', '2006-01-01')", error=1062)
    pair.all(
        "UPDATE t FOR PORTION OF p FROM '2002-01-01' TO '2004-01-01' SET n = n + 10 WHERE id < 10",
        "UPDATE t FOR PORTION OF p FROM '2003-01-01' TO '2020-01-01' SET v = CONCAT(LEFT(v, 50), 'later') WHERE id IN"
        " (1, 3, 12)",
        "DELETE FROM t FOR PORTION OF p FROM '2006-01-01' TO '2007-01-01' WHERE id > 5",
        "DELETE FROM t FOR PORTION OF p FROM '1990-01-01' TO '2001-01-01' WHERE id < 4",
        "UPDATE t SET n = 77 WHERE id = 8",
        "UPDATE t SET id = id + 100 WHERE id = 12",
        "DELETE FROM t WHERE id = 3 AND x > '2004-01-01'",
    )
    pair.run("UPDATE t SET id = 1 WHERE id = 7 AND n < 50", error="any")
    pair.finish()


# --- triggers -------------------------------------------------------------------------------------------------------
def test_triggers(pair):
    """OLD and NEW of columns that the statement does not name."""
    pair.run(f"CREATE TABLE t ({PLAIN}, w INT DEFAULT 0) ENGINE={{e}}")
    pair.run(
        "CREATE TABLE log (seq INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(4), id INT, b LONGBLOB, v LONGTEXT"
        " CHARACTER SET latin1, h CHAR(32)) ENGINE={e}"
    )
    for name, when, event, row, other in (
        ("ai", "AFTER", "INSERT", "NEW", "NEW"),
        ("bu", "BEFORE", "UPDATE", "OLD", "NEW"),
        ("au", "AFTER", "UPDATE", "NEW", "OLD"),
        ("bd", "BEFORE", "DELETE", "OLD", "OLD"),
        ("ad", "AFTER", "DELETE", "OLD", "OLD"),
    ):
        pair.run(
            f"CREATE TRIGGER {name} {when} {event} ON t FOR EACH ROW INSERT INTO log (what, id, b, v, h) VALUES"
            f" ('{name}', {row}.id, {row}.b, {other}.v, MD5({other}.b))"
        )
    pair.run(
        "CREATE TRIGGER bu2 BEFORE UPDATE ON t FOR EACH ROW FOLLOWS bu SET NEW.w = LENGTH(OLD.b) % 1000 + LENGTH(NEW.v)"
    )
    fill(pair)
    change(pair)
    put(pair)
    join(pair)
    pair.finish()


def test_triggers_of_versioned_tables(pair):
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}} WITH SYSTEM VERSIONING")
    pair.run(
        "CREATE TABLE log (seq INT PRIMARY KEY AUTO_INCREMENT, id INT, b LONGBLOB) ENGINE={e} WITH SYSTEM VERSIONING"
    )
    for event in ("UPDATE", "DELETE"):
        pair.run(
            f"CREATE TRIGGER a{event} AFTER {event} ON t FOR EACH ROW INSERT INTO log (id, b) VALUES (OLD.id, OLD.b)"
        )
    pair.run("CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW SET NEW.v = CONCAT(LEFT(OLD.v, 200), LENGTH(OLD.b))")
    fill(pair)
    change(pair)
    put(pair)
    pair.finish()


def test_a_trigger_that_changes_the_row_it_came_from(pair):
    """BEFORE triggers that set, keep and copy values between columns."""
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}}")
    pair.run(
        "CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW BEGIN IF NEW.n % 2 = 0 THEN SET NEW.b = OLD.v; ELSE SET NEW.v"
        " = OLD.v, NEW.b = NEW.b; END IF; END"
    )
    fill(pair)
    change(pair)
    put(pair)
    pair.finish()


# --- generated columns, checks, unique hashes -----------------------------------------------------------------------
@pytest.mark.parametrize("versioned", ["", "WITH SYSTEM VERSIONING"], ids=["plain", "versioned"])
def test_generated_columns(pair, versioned):
    """STORED and indexed VIRTUAL ones over values that the statement does not name."""
    pair.run(
        f"CREATE TABLE t ({PLAIN}, len INT AS (LENGTH(b)) STORED, h CHAR(32) AS (MD5(v)) STORED, both_ INT AS"
        " (LENGTH(b) + n) STORED, head VARCHAR(20) CHARACTER SET latin1 AS (LEFT(v, 20)) VIRTUAL, size INT AS"
        f" (LENGTH(v)) VIRTUAL, KEY (head), KEY (size), KEY (len)) ENGINE={{e}} {versioned}"
    )
    fill(pair)
    change(pair)
    put(pair)
    pair.run("SELECT id, size, head FROM t FORCE INDEX (size) WHERE size > 60 ORDER BY id")
    pair.run("SELECT id, LENGTH(v) FROM t FORCE INDEX (head) WHERE head > 'a' ORDER BY id")
    pair.run("SELECT id, LENGTH(b) FROM t FORCE INDEX (len) WHERE len > 60 ORDER BY id")
    pair.finish()


def test_defaults_that_are_computed(pair):
    """SET column = DEFAULT evaluates an expression over columns that the statement does not name."""
    pair.run(
        f"CREATE TABLE t ({PLAIN}, len INT DEFAULT (LENGTH(b)), c LONGBLOB DEFAULT (b), d LONGTEXT CHARACTER SET latin1"
        " DEFAULT (CONCAT(v, '!'))) ENGINE={e}"
    )
    fill(pair, "id, n, b, v, len, c, d", lambda i: (0, b"", ""))
    pair.all(
        "UPDATE t SET len = DEFAULT WHERE id < 6",
        "UPDATE t SET c = DEFAULT, d = DEFAULT WHERE n = 2",
        "UPDATE t SET len = DEFAULT, d = DEFAULT ORDER BY n, id LIMIT 9",
        "UPDATE t SET id = id + 100, c = DEFAULT WHERE id > 12 ORDER BY id",
        "UPDATE t SET b = CONCAT(b, 'grown'), len = DEFAULT WHERE id IN (2, 3)",
    )
    change(pair)
    pair.finish()


def test_a_stored_column_beside_a_unique_value(pair):
    """F3's table, restored from the log: a hash over a whole TEXT makes the server look at rows by itself."""
    pair.run(f"CREATE TABLE t ({PLAIN}, u TEXT, len INT AS (LENGTH(b)) STORED, UNIQUE (u)) ENGINE={{e}}")
    fill(pair, "id, n, b, v, u", lambda i: (f"{i}" + "u" * (i * 700),))
    pair.run("UPDATE t SET n = n + 1")
    change(pair)
    pair.finish()


def test_unique_over_a_whole_value(pair):
    pair.run(f"CREATE TABLE t ({PLAIN}, u LONGTEXT CHARACTER SET latin1, UNIQUE (u), KEY (n)) ENGINE={{e}}")
    fill(pair, "id, n, b, v, u", lambda i: ((b"%d" % i + (value(i) or b"")) if i % 5 else None,))
    taken = b"3" + value(3)
    pair.run("INSERT INTO t VALUES (50, 1, 'b', 'v', %s)", (taken,), error=1062)
    pair.run("UPDATE t SET u = %s WHERE id = 6", (taken,), error=1062)
    pair.run("UPDATE IGNORE t SET u = %s, n = 9 WHERE id IN (6, 7)", (taken,))
    change(pair)
    pair.run("REPLACE INTO t VALUES (51, 1, 'b', 'v', %s)", (b"11" + value(11),))
    pair.run(
        "INSERT INTO t VALUES (52, 1, 'b', 'v', %s) ON DUPLICATE KEY UPDATE n = n + 50", (b"13" + (value(13) or b""),)
    )
    pair.run(
        "INSERT INTO t VALUES (53, 1, 'b', 'v', %s) ON DUPLICATE KEY UPDATE b = VALUES(b), u = CONCAT(u, 'x')",
        (b"16" + value(16),),
    )
    pair.run("UPDATE t SET u = CONCAT(u, 'y') WHERE n > 1")
    pair.finish()


def test_checks(pair):
    """A CHECK over a value, when another column is changed."""
    pair.run(
        f"CREATE TABLE t ({PLAIN}, m INT DEFAULT 1, CONSTRAINT c1 CHECK (b IS NULL OR LENGTH(b) <> 64 OR n < 1000 AND m"
        " < 100), CONSTRAINT c2 CHECK (MD5(v) <> MD5(CONCAT(b, 'x'))), CONSTRAINT c3 CHECK (LENGTH(v) + n < 200000))"
        " ENGINE={e}"
    )
    fill(pair)
    pair.run("UPDATE t SET n = 2000 WHERE id = 6", error=4025)
    pair.run("UPDATE t SET n = 2000, m = 200 WHERE id IN (2, 3, 11)")
    pair.run("UPDATE t SET n = 190000 ORDER BY id", error=4025)
    change(pair)
    pair.finish()


# --- other statements -----------------------------------------------------------------------------------------------
def test_returning(pair):
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}}")
    for i in range(ROWS):
        pair.run(
            "INSERT INTO t VALUES (%s, %s, %s, %s) RETURNING id, b, LENGTH(v), MD5(v)", (i, i % 4, value(i), words(i))
        )
    for i in (3, 8, 40):
        pair.run("REPLACE INTO t VALUES (%s, 1, %s, %s) RETURNING b, v", (i, value(i + 2), words(i)))
        pair.run(
            "INSERT INTO t VALUES (%s, 1, 'b', 'v') ON DUPLICATE KEY UPDATE n = n + 1 RETURNING id, n, MD5(b), v", (i,)
        )
    pair.run("DELETE FROM t WHERE id < 5 RETURNING id, b, v")
    pair.run("DELETE FROM t WHERE n = 1 RETURNING id, MD5(b)")
    pair.run("INSERT INTO t SELECT id + 200, n, b, v FROM t WHERE n > 1 ORDER BY id RETURNING id, MD5(b), MD5(v)")
    pair.run("DELETE FROM t RETURNING MD5(v)")
    pair.finish()


def test_insert_from_itself(pair):
    pair.run(f"CREATE TABLE t ({PLAIN}, KEY (n)) ENGINE={{e}}")
    fill(pair)
    pair.all(
        "INSERT INTO t SELECT id + 100, n, b, v FROM t",
        "INSERT INTO t SELECT id + 300, n, v, b FROM t WHERE n < 2 AND id < 12 AND id NOT IN (6, 7, 8, 15, 16, 17)",
        "INSERT INTO t SELECT a.id + 500, o.n, a.b, o.v FROM t a JOIN t o ON o.id = a.id + 100",
        "REPLACE INTO t SELECT id + 1, n, b, v FROM t WHERE id BETWEEN 3 AND 9 ORDER BY id",
        "CREATE TABLE made ENGINE={e} SELECT id, b FROM t WHERE n = 1 UNION SELECT id, v FROM t WHERE n = 2",
        "UPDATE t SET id = id + 1000 WHERE id > 10 ORDER BY id DESC",
        "UPDATE t SET n = n + 1 WHERE n >= 1",
    )
    pair.finish()


@pytest.mark.parametrize("versioned", ["", "WITH SYSTEM VERSIONING"], ids=["plain", "versioned"])
@pytest.mark.parametrize(
    "partition",
    [
        "HASH (id) PARTITIONS 3",
        (
            "RANGE (id) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (100), PARTITION p2 VALUES"
            " LESS THAN MAXVALUE)"
        ),
    ],
    ids=["hash", "range"],
)
def test_rows_that_move_between_partitions(pair, partition, versioned):
    pair.run(
        f"CREATE TABLE t ({PLAIN}, len INT AS (LENGTH(b)) STORED) ENGINE={{e}} {versioned} PARTITION BY {partition}"
    )
    fill(pair)
    pair.all(
        "UPDATE t SET id = id + 100 WHERE id IN (1, 3, 6, 8) ORDER BY id",
        "UPDATE t SET id = id + 200, n = 9 WHERE id > 10 AND id < 100 ORDER BY id",
        "UPDATE t SET id = id - 100, v = 'moved' WHERE id IN (101, 108) ORDER BY id",
    )
    change(pair)
    put(pair)
    pair.finish()


def test_load_and_prepared(pair, tmp_path):
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}} WITH SYSTEM VERSIONING")
    fill(pair)
    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{i}\t{i}\t{'loaded ' * (i * 90)}\n" for i in range(5, 25)))
    pair.run(f"LOAD DATA LOCAL INFILE '{rows}' REPLACE INTO TABLE t (id, n, v)")
    pair.run(f"LOAD DATA LOCAL INFILE '{rows}' IGNORE INTO TABLE t (id, n, v) SET b = REPEAT('s', 9000)")
    pair.all(
        "PREPARE u FROM 'UPDATE t SET n = n + ? WHERE id = ?'",
        "SET @n = 5, @a = 3, @b = 17",
        "EXECUTE u USING @n, @a",
        "EXECUTE u USING @n, @b",
        "PREPARE d FROM 'DELETE FROM t WHERE id = ?'",
        "EXECUTE d USING @a",
        "EXECUTE d USING @b",
    )
    pair.finish()


def test_routines_and_transactions(pair):
    """Rows read in one place of a routine and written in another; savepoints that take them back."""
    pair.run(f"CREATE TABLE t ({PLAIN}, KEY (n)) ENGINE={{e}} WITH SYSTEM VERSIONING")
    fill(pair)
    pair.run(
        "CREATE PROCEDURE work() BEGIN DECLARE x LONGBLOB; DECLARE EXIT HANDLER FOR SQLEXCEPTION ROLLBACK; START"
        " TRANSACTION; SELECT b INTO x FROM t WHERE id = 3; UPDATE t SET n = LENGTH(x) % 100 WHERE id = 4; SAVEPOINT s;"
        " DELETE FROM t WHERE id IN (2, 3, 8); ROLLBACK TO s; DELETE FROM t WHERE id IN (3, 11); UPDATE t SET b = x"
        " WHERE id = 5; COMMIT; END"
    )
    pair.run("CALL work()")
    pair.run("CREATE FUNCTION pick(i INT) RETURNS INT READS SQL DATA RETURN (SELECT LENGTH(v) FROM t WHERE id = i)")
    pair.run("UPDATE t SET n = pick(id) WHERE id > 9")
    pair.run("DELETE FROM t WHERE pick(id) > 200")
    pair.finish()


def test_own_bytes_stand_in_the_logs(make_pair):
    """The search sees a user's own bytes that end like a head, and tells them from a head: it can fail."""
    pair = make_pair()
    pair.run(f"CREATE TABLE t ({PLAIN}) ENGINE={{e}}")
    pair.run("INSERT INTO t VALUES (1, 1, %s, 'v')", (OWN_TRAILER,))
    assert pair.value("SELECT b FROM t") == OWN_TRAILER
    pair.finish()
    assert pair.search.own_found >= 2
    pair.search.own = set()
    with pytest.raises(AssertionError, match="raw heads"):
        pair.search.check_logs(pair.server, first=pair.first_log)
