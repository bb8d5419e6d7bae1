"""Commit, rollback, savepoints, XA, isolation levels, readers beside writers, locks, deadlocks."""

import threading

import pymysql
import pytest

from harness.server import ENGINE
from harness.values import payload, text
from harness.waiting import wait_until_detached


@pytest.fixture
def table(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT, KEY (n), KEY (b(20))) ENGINE={e}")
    sizes = [10, 4096, 5000, 20000, 66000]
    for row in range(20):
        twin.run(
            "INSERT INTO t VALUES (%s, %s, %s, %s)",
            (row, row % 4, payload(row, sizes[row % 5]), text(row, sizes[row % 3])),
        )
    return twin


CHANGES = (
    "UPDATE t SET b = CONCAT(b, REPEAT('c', 5000)) WHERE id < 8",
    "DELETE FROM t WHERE n = 3",
    "INSERT INTO t VALUES (100, 1, REPEAT('n', 70000), 'v'), (101, 2, REPEAT('m', 100), NULL)",
    "REPLACE INTO t VALUES (2, 2, REPEAT('r', 9000), REPEAT('s', 9000))",
    "UPDATE t SET id = id + 500, v = NULL WHERE n = 1",
)


def test_rollback_and_commit(table):
    before = table.rows("SELECT * FROM t")
    table.all("BEGIN", *CHANGES)
    table.run("SELECT * FROM t")
    table.run("ROLLBACK")
    assert table.rows("SELECT * FROM t") == before
    table.check()
    table.all("SET autocommit = 0", *CHANGES, "COMMIT", "SET autocommit = 1")
    assert table.rows("SELECT * FROM t") != before
    table.check()


def test_savepoints(table):
    table.all("BEGIN", CHANGES[0], "SAVEPOINT a", CHANGES[1], CHANGES[2], "SAVEPOINT b", CHANGES[3])
    table.run("SELECT * FROM t")
    table.run("ROLLBACK TO SAVEPOINT b")
    table.run("SELECT * FROM t")
    table.run(CHANGES[4])
    table.run("ROLLBACK TO SAVEPOINT a")
    table.run("SELECT * FROM t")
    table.run("ROLLBACK TO SAVEPOINT b", error=1305)
    table.all("INSERT INTO t VALUES (300, 0, REPEAT('after', 3000), '')", "RELEASE SAVEPOINT a", "COMMIT")
    table.check()
    # Everything appended before the savepoint is rolled back; what follows must still be durable by itself.
    table.all(
        "BEGIN", "SAVEPOINT s", CHANGES[1], "ROLLBACK TO s", "UPDATE t SET b = CONCAT(b, REPEAT('z', 9000))", "COMMIT"
    )
    table.check()


def test_failed_statement_in_a_transaction(table):
    table.run("BEGIN")
    table.run("UPDATE t SET b = CONCAT(b, 'kept') WHERE id = 1")
    table.run(
        "INSERT INTO t VALUES (200, 1, REPEAT('x', 9000), ''), (201, 1, REPEAT('y', 9000), ''), (1, 1, 'dup', '')",
        error=1062,
    )
    table.run("UPDATE t SET id = 5, b = REPEAT('w', 9000) WHERE id IN (6, 7)", error=1062)
    table.run("SELECT * FROM t")
    table.run("COMMIT")
    table.check()


@pytest.mark.parametrize("level", ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_isolation_levels(table, level):
    for session in ("reader", "writer"):
        table.run(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}", session=session)
        table.run("SET innodb_lock_wait_timeout = 1", session=session)
    blocked = 1205 if level == "SERIALIZABLE" else None
    table.all("BEGIN", "SELECT * FROM t WHERE id < 10", session="reader")
    table.run("BEGIN", session="writer")
    table.run("UPDATE t SET b = CONCAT(b, REPEAT('w', 6000)) WHERE id = 3", session="writer", error=blocked)
    table.run("DELETE FROM t WHERE id = 4", session="writer", error=blocked)
    table.run("INSERT INTO t VALUES (90, 1, REPEAT('i', 9000), '')", session="writer")
    table.run("SELECT * FROM t WHERE id < 10", session="reader")
    table.run("COMMIT", session="writer")
    table.run("SELECT * FROM t", session="reader")
    table.run("COMMIT", session="reader")
    table.run("SELECT * FROM t", session="reader")
    table.check()


def test_consistent_snapshot_keeps_old_values(table):
    """A reader of an old view gets the old bytes however often the rows were overwritten since."""
    table.run("START TRANSACTION WITH CONSISTENT SNAPSHOT", session="old")
    before = table.rows("SELECT * FROM t", session="old")
    for turn in range(6):
        table.run("UPDATE t SET b = CONCAT(%s, LEFT(b, 1000)), v = %s", (payload(turn, 8000), text(turn, 9000)))
        table.run("DELETE FROM t WHERE id = %s", (turn,))
        table.run("INSERT INTO t VALUES (%s, 1, %s, '')", (turn + 1000, payload(turn, 10000)))
        table.run("SELECT id, MD5(b) FROM t", session="old")
    assert table.rows("SELECT * FROM t", session="old") == before
    table.run("SELECT id, b FROM t FORCE INDEX (n) WHERE n = 2", session="old")
    table.run("SELECT id, b FROM t ORDER BY id DESC", session="old")
    table.run("COMMIT", session="old")
    assert table.rows("SELECT * FROM t", session="old") != before
    table.check()


def test_locking_reads(table):
    table.run("SET innodb_lock_wait_timeout = 1", session="other")
    table.all("BEGIN", "SELECT b FROM t WHERE id = 3 FOR UPDATE", "SELECT b, v FROM t WHERE n = 2 LOCK IN SHARE MODE")
    table.run("UPDATE t SET b = 'x' WHERE id = 3", session="other", error=1205)
    table.run("SELECT b FROM t WHERE id = 3 FOR UPDATE NOWAIT", session="other", error=1205)
    table.run("SELECT id, b FROM t WHERE id IN (3, 5) FOR UPDATE SKIP LOCKED", session="other")
    table.run("SELECT b FROM t WHERE id = 3", session="other")
    table.run("COMMIT")
    table.check()


def test_deadlock_rolls_one_back(table):
    """Two transactions update two rows in opposite order; whoever loses must leave nothing behind."""
    for schema in (table.under_test, table.twin):
        first, second = table.connection("first", schema), table.connection("second", schema)
        first.cursor().execute("BEGIN")
        second.cursor().execute("BEGIN")
        first.cursor().execute("UPDATE t SET b = REPEAT('first', 3000) WHERE id = 1")
        second.cursor().execute("UPDATE t SET b = REPEAT('second', 3000) WHERE id = 2")
        lost = []

        def cross(connection, row, name, lost=lost):
            try:
                connection.cursor().execute("UPDATE t SET v = %s WHERE id = %s", (text(name, 9000), row))
                connection.commit()
            except pymysql.err.OperationalError as failure:
                lost.append((name, failure.args[0]))

        threads = [
            threading.Thread(target=cross, args=(first, 2, "first")),
            threading.Thread(target=cross, args=(second, 1, "second")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [error for _, error in lost] == [1213], f"{schema}: exactly one must lose by a deadlock, got {lost}"
        winner = "second" if lost[0][0] == "first" else "first"
        rows = table.server.query(
            f"SELECT id, LEFT(b, 5), CHAR_LENGTH(v), MD5(v) = MD5(%s) FROM {schema}.t WHERE id IN (1, 2) ORDER BY id",
            (text(winner, 9000),),
        )
        changed, other = (rows[0], rows[1]) if winner == "first" else (rows[1], rows[0])
        assert changed[1] == winner[:5].encode() and not changed[3]
        assert other[1] not in (b"first", b"secon") and other[3]


def test_xa(table):
    for number, (end, prepare) in enumerate(
        (("COMMIT", True), ("ROLLBACK", True), ("COMMIT", False), ("ROLLBACK", False))
    ):
        for schema in (table.under_test, table.twin):
            # The two twins are one server: their branches need names of their own.
            connection = table.connection("xa", schema)
            name = f"'{schema}-{number}'"
            with connection.cursor() as cursor:
                cursor.execute(f"XA START {name}")
                cursor.execute("UPDATE t SET b = CONCAT(b, REPEAT('x', 6000)) WHERE n = %s", (number,))
                cursor.execute("INSERT INTO t VALUES (%s, 1, REPEAT('xa', 9000), 'v')", (700 + number,))
                cursor.execute(f"XA END {name}")
                if prepare:
                    cursor.execute(f"XA PREPARE {name}")
                cursor.execute(f"XA {end} {name}" + (" ONE PHASE" if end == "COMMIT" and not prepare else ""))
        table.check()


def test_xa_detached_and_committed_by_another_session(table):
    for end, row in (("COMMIT", 1), ("ROLLBACK", 2)):
        for schema in (table.under_test, table.twin):
            connection = table.server.connect(schema)
            name = f"'{schema}-detached-{row}'"
            with connection.cursor() as cursor:
                cursor.execute(f"XA START {name}")
                cursor.execute("UPDATE t SET b = REPEAT('detached', 2000) WHERE id = %s", (row,))
                cursor.execute(f"XA END {name}")
                cursor.execute(f"XA PREPARE {name}")
            connection.close()
            wait_until_detached(table.server)
            table.server.query(f"XA {end} {name}")
        table.check()


def test_transaction_over_two_tables_and_engines(table):
    table.all(
        "CREATE TABLE u (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
        "CREATE TABLE w (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB",
    )
    for end in ("ROLLBACK", "COMMIT"):
        table.all(
            "BEGIN",
            "INSERT INTO u SELECT id, b FROM t",
            "INSERT INTO w SELECT id, v FROM t",
            "UPDATE t, u SET t.b = u.b, u.b = 'x' WHERE t.id = u.id",
            "SELECT t.id, MD5(t.b), MD5(u.b) FROM t JOIN u USING (id)",
            end,
        )
        table.check()


def test_readers_beside_writers(table):
    """Readers on READ COMMITTED and REPEATABLE READ beside writers that overwrite whole values: every value read is one
    that was written, whole; a REPEATABLE READ view never changes."""
    schema, stop, failures = table.under_test, threading.Event(), []
    table.server.query(f"CREATE TABLE {schema}.w (id INT PRIMARY KEY, stamp INT, b LONGBLOB)")
    table.server.query(f"ALTER TABLE {schema}.w ENGINE={ENGINE}")

    def body(row, stamp):
        return payload((row, stamp), 3000 + (row * 7919 + stamp * 104729) % 30000)

    for row in range(12):
        table.server.query(f"INSERT INTO {schema}.w VALUES (%s, 0, %s)", (row, body(row, 0)))

    def guarded(action):
        try:
            action()
        except Exception as failure:  # noqa: BLE001 - whatever it is, the test must report it
            failures.append(repr(failure)[:500])
            stop.set()

    def write(first):
        connection = table.server.connect(schema)
        for stamp in range(1, 60):
            for row in range(first, 12, 2):
                connection.begin()
                connection.cursor().execute(
                    "UPDATE w SET stamp = %s, b = %s WHERE id = %s", (stamp, body(row, stamp), row)
                )
                connection.rollback() if stamp % 5 == 0 else connection.commit()
        connection.close()

    def read(level):
        connection = table.server.connect(schema, autocommit=False)
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            while not stop.is_set():
                seen = []
                for _ in range(2):
                    cursor.execute("SELECT id, stamp, b FROM w")
                    seen.append(cursor.fetchall())
                    for row, stamp, value in seen[-1]:
                        assert value == body(row, stamp), f"{level}: row {row} stamp {stamp}: {len(value)} wrong bytes"
                        assert stamp % 5 or stamp == 0, f"row {row}: stamp {stamp} was rolled back"
                if level == "REPEATABLE READ":
                    assert seen[0] == seen[1], "a view changed"
                connection.commit()
        connection.close()

    writers = [threading.Thread(target=guarded, args=(lambda first=first: write(first),)) for first in (0, 1)]
    readers = [
        threading.Thread(target=guarded, args=(lambda level=level: read(level),))
        for level in ("READ COMMITTED", "REPEATABLE READ")
    ]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert not failures, failures
    rows = table.server.query(f"SELECT id, stamp, b FROM {schema}.w")
    assert all(stamp == 59 and value == body(row, stamp) for row, stamp, value in rows)


def test_lock_wait_timeout_leaves_nothing(table):
    table.run("SET innodb_lock_wait_timeout = 1", session="late")
    table.all("BEGIN", "UPDATE t SET b = 'mine' WHERE id = 10")
    table.run("BEGIN", session="late")
    table.run("UPDATE t SET b = REPEAT('late', 9000) WHERE id >= 8", session="late", error=1205)
    table.run("SELECT id, MD5(b) FROM t", session="late")
    table.run("COMMIT", session="late")
    table.run("COMMIT")
    table.check()


def test_killed_connection_rolls_back(table):
    for schema in (table.under_test, table.twin):
        connection = table.server.connect(schema, autocommit=False)
        connection.cursor().execute("UPDATE t SET b = REPEAT('killed', 5000)")
        table.server.query(f"KILL {connection.thread_id()}")
        table.server.query(f"SELECT id FROM {schema}.t FOR UPDATE")
    table.check()
