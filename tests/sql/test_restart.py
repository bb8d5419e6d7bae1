"""What a clean restart and a kill leave: rows, views of them, prepared XA transactions, ids, every kind of table."""

import pymysql
import pytest

from harness.twin import Twin
from harness.values import payload, text
from harness.waiting import wait_for


@pytest.fixture
def pair(own_server):
    server = own_server("restart")
    twin = Twin(server, "restart")
    twin.all(
        "CREATE TABLE plain (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB, v LONGTEXT, KEY (b(20))) ENGINE={e}",
        "CREATE TABLE parts (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 3",
        "CREATE TABLE history (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} WITH SYSTEM VERSIONING",
        "CREATE TABLE words (id INT PRIMARY KEY, v LONGTEXT, FULLTEXT (v)) ENGINE={e}",
        "CREATE TABLE nokey (n INT, b LONGBLOB) ENGINE={e}",
        "CREATE TABLE empty (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
        "SET timestamp = 1700000000",
    )
    for row in range(1, 25):
        size = [0, 100, 4097, 9000, 66000, 200000][row % 6]
        twin.run("INSERT INTO plain VALUES (%s, %s, %s)", (row, payload(row, size), text(row, size // 2)))
        twin.run("INSERT INTO parts VALUES (%s, %s)", (row, payload(row, size)))
        twin.run("INSERT INTO history VALUES (%s, %s)", (row, payload(row, size)))
        twin.run("INSERT INTO words VALUES (%s, %s)", (row, f"granite {text(row, 5000)} marble"))
        twin.run("INSERT INTO nokey VALUES (%s, %s)", (row, payload(row, size)))
    twin.run("SET timestamp = 1700000100")
    twin.run("UPDATE history SET b = CONCAT(b, 'later')")
    return twin


def reconnect(twin):
    twin.close(drop=False)


def check_all(twin):
    twin.check()
    twin.run("SELECT *, ROW_START, ROW_END FROM history FOR SYSTEM_TIME ALL")
    twin.run("SELECT id FROM words WHERE MATCH (v) AGAINST ('marble' IN BOOLEAN MODE) ORDER BY id")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_tables_after_a_restart(pair, end):
    server = pair.server
    for turn in range(3):
        check_all(pair)
        reconnect(pair)
        server.stop() if end == "stop" else server.kill()
        server.start()
        check_all(pair)
        pair.run("SET timestamp = %s", (1700001000 + turn,))
        for table in ("plain", "parts", "history"):
            pair.run(f"UPDATE {table} SET b = CONCAT(b, %s) WHERE id %% 3 = %s", (payload(turn, 4000), turn))
        pair.run("INSERT INTO plain (b, v) VALUES (%s, 'after')", (payload(turn, 30000),))
        pair.run("DELETE FROM nokey WHERE n = %s", (turn,))
        pair.run("ALTER TABLE empty FORCE")
        pair.run("RENAME TABLE parts TO parts2, plain TO plain2, plain2 TO plain, parts2 TO parts")
        pair.run("INSERT INTO empty VALUES (%s, %s)", (turn, payload(turn, 9000)))
    check_all(pair)


def test_uncommitted_work_is_gone_after_a_kill(pair):
    pair.run("BEGIN")
    pair.run("UPDATE plain SET b = REPEAT('lost', 5000)")
    pair.run("DELETE FROM parts")
    pair.run("INSERT INTO empty VALUES (1, REPEAT('lost', 5000))")
    before = pair.server.query(f"SELECT id, MD5(b) FROM {pair.twin}.plain")
    reconnect(pair)
    pair.server.kill()
    pair.server.start()
    check_all(pair)
    assert pair.server.query(f"SELECT id, MD5(b) FROM {pair.under_test}.plain") == before
    assert pair.rows("SELECT * FROM empty") == []


def test_prepared_xa_transactions_survive_a_kill(pair):
    server = pair.server
    for schema in (pair.under_test, pair.twin):
        for row, end in ((1, "commit"), (2, "rollback")):
            connection = server.connect(schema)
            with connection.cursor() as cursor:
                cursor.execute(f"XA START '{schema}-{end}'")
                cursor.execute("UPDATE plain SET b = REPEAT('xa', 9000) WHERE id = %s", (row,))
                cursor.execute("INSERT INTO empty VALUES (%s, REPEAT('xa', 30000))", (row,))
                cursor.execute(f"XA END '{schema}-{end}'")
                cursor.execute(f"XA PREPARE '{schema}-{end}'")
    reconnect(pair)
    server.kill()
    server.start()
    assert sorted(bytes(row[3]).decode() for row in server.query("XA RECOVER")) == sorted(
        f"{schema}-{end}" for schema in (pair.under_test, pair.twin) for end in ("commit", "rollback")
    )
    for schema in (pair.under_test, pair.twin):
        for end in ("commit", "rollback"):
            server.query(f"XA {end} '{schema}-{end}'")
    check_all(pair)
    assert pair.rows("SELECT id, LENGTH(b) FROM empty") == [(1, 60000)]


def test_dropped_and_truncated_tables_stay_so(pair):
    pair.all("DROP TABLE nokey", "TRUNCATE TABLE plain", "INSERT INTO plain VALUES (1, REPEAT('new', 9000), '')")
    pair.run("CREATE TABLE nokey (n INT, b LONGBLOB) ENGINE={e}")
    pair.run("INSERT INTO nokey VALUES (1, REPEAT('other', 5000))")
    reconnect(pair)
    pair.server.kill()
    pair.server.start()
    check_all(pair)
    assert pair.rows("SELECT n, LENGTH(b) FROM nokey") == [(1, 25000)]
    assert pair.rows("SELECT id, LENGTH(b) FROM plain") == [(1, 27000)]


@pytest.mark.quarry_only
def test_tables_that_are_emptied_first_say_nothing_of_their_ids(own_server):
    """Whether InnoDB's ids are read right is asked a little later: TRUNCATE has given its table another one by then."""
    server = own_server("emptied")
    server.query("CREATE DATABASE d")
    tables = [f"d.t{number}" for number in range(12)]
    for table in tables:
        server.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.restart()
    replacing = ("TRUNCATE TABLE {}", "ALTER TABLE {} FORCE, ALGORITHM=INPLACE", "OPTIMIZE TABLE {}", "CREATE INDEX k ON {} (b(9))")
    for statement in replacing:
        for table in tables:
            server.query(statement.format(table))
    assert set(server.status("quarry_table_id_check").values()) == {"pending"}
    server.query("INSERT INTO d.t0 VALUES (1, %s)", (payload("first", 9000),))
    wait_for(lambda: "InnoDB's table ids", lambda: "passed" in server.status("quarry_table_id_check").values())


@pytest.mark.quarry_only
def test_without_innodb(own_server):
    """The engine that is missing is named: no table is called damaged, none is lost."""
    server = own_server("no-innodb")
    usual = server.options
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t VALUES (1, %s)", (payload("kept", 9000),))
    server.restart(["--skip-innodb", "--default-storage-engine=Aria"])
    for statement in (
        "SELECT * FROM d.t",
        "INSERT INTO d.t VALUES (2, 'b')",
        "ALTER TABLE d.t ADD COLUMN n INT",
        "CREATE TABLE d.other (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY",
        "RENAME TABLE d.t TO d.other",
        "TRUNCATE TABLE d.t",
    ):
        with pytest.raises(pymysql.err.MySQLError, match="Unknown storage engine 'InnoDB'"):
            server.query(statement)
    server.restart(usual)
    assert server.query("SELECT * FROM d.t") == ((1, payload("kept", 9000)),)


def test_read_only_innodb(pair):
    """InnoDB in read-only mode: values can be read, and nothing is lost by it."""
    server = pair.server
    before = server.query(f"SELECT id, MD5(b), MD5(v) FROM {pair.under_test}.plain")
    reconnect(pair)
    server.query("SET GLOBAL innodb_fast_shutdown = 0")
    server.restart([*server.options, "--read-only=1", "--innodb-read-only=1"])
    assert server.query(f"SELECT id, MD5(b), MD5(v) FROM {pair.under_test}.plain") == before
    server.restart([])
    assert server.query(f"SELECT id, MD5(b), MD5(v) FROM {pair.under_test}.plain") == before
    check_all(pair)
