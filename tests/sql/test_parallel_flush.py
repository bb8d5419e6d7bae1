"""quarry_parallel_flush: a commit flushes its values and InnoDB's redo log at the same time.

Which commits do so, that none is answered before both flushes, and that one which fails is rolled back for good. What a crash
leaves is tests/crash/test_prepared_commits.py's.
"""

import pymysql
import pytest

from harness.server import NO_BACKGROUND, Server
from harness.trace import FLUSHES, WRITES, Trace, thread_of
from harness.values import payload

pytestmark = pytest.mark.quarry_only

SEGMENT, REDO = ".qseg", "ib_logfile0"
ANSWERS = ("sendto", "sendmsg")
WATCHED = (*WRITES, *FLUSHES, *ANSWERS)
EXTENTS_MAX = 6  # kCommitRecordExtentsMax
LONG = 9000


@pytest.fixture(scope="module")
def server():
    binlog = ("--log-bin=binlog", "--server-id=1", "--binlog-format=ROW")
    quiet = ("--innodb-stats-auto-recalc=OFF", "--innodb-flush-log-at-timeout=2700")
    server = Server("parallel-flush", [*binlog, *quiet, *NO_BACKGROUND]).start()
    server.query("CREATE DATABASE d")
    yield server
    server.remove()


@pytest.fixture
def cursor(server):
    for table in ("t", "u"):
        server.query(f"CREATE OR REPLACE TABLE d.{table} (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE=QUARRY")
        server.query(f"INSERT INTO d.{table} VALUES (0, 0, %s)", (payload("first", LONG),))
    connection = server.connect("d")
    with connection.cursor() as cursor:
        cursor.execute("SET NAMES binary, sql_log_bin = 0")
        yield cursor
    connection.close()
    server.query("SET GLOBAL quarry_parallel_flush = ON, GLOBAL innodb_flush_log_at_trx_commit = 1")


def prepared(server):
    return int(server.status("quarry_commits_prepared")["quarry_commits_prepared"])


def synced(server):
    return int(server.status("quarry_commit_syncs")["quarry_commit_syncs"])


def insert(*ids, table="t"):
    return (
        f"INSERT INTO {table} VALUES " + ", ".join(["(%s, 0, %s)"] * len(ids)),
        tuple(part for row in ids for part in (row, payload(row, LONG))),
    )


ONE_BY_ONE = {
    "insert": [insert(1)],
    "as many values as a record names": [insert(*range(1, 1 + EXTENTS_MAX))],
    "update": [("UPDATE t SET b = %s WHERE id = 0", (payload("new", LONG),))],
    "replace": [("REPLACE INTO t VALUES (0, 1, %s)", (payload("new", LONG),))],
    "several statements": [("BEGIN",), insert(1), ("UPDATE t SET n = 5 WHERE id = 1",), insert(2), ("COMMIT",)],
    "a savepoint": [("BEGIN",), insert(1), ("SAVEPOINT s",), insert(2), ("ROLLBACK TO s",), insert(3), ("COMMIT",)],
    "a statement that failed": [("BEGIN",), insert(1), ("INSERT IGNORE INTO t VALUES (1, 0, 'x')",), ("COMMIT",)],
    "rows of InnoDB beside": [("BEGIN",), insert(1), ("REPLACE INTO innodb VALUES (1)",), ("COMMIT",)],
}
IN_ORDER = {
    "more values than a record names": [insert(*range(1, 2 + EXTENTS_MAX))],
    "two tables": [("BEGIN",), insert(1), insert(1, table="u"), ("COMMIT",)],
    "the binary log": [("SET sql_log_bin = 1",), insert(1), ("SET sql_log_bin = 0",)],
    "off": [("SET GLOBAL quarry_parallel_flush = OFF",), insert(1)],
    "a log that is flushed each second": [("SET GLOBAL innodb_flush_log_at_trx_commit = 0",), insert(1)],
    "a log that is only written": [("SET GLOBAL innodb_flush_log_at_trx_commit = 2",), insert(1)],
    "a log that is flushed twice": [("SET GLOBAL innodb_flush_log_at_trx_commit = 3",), insert(1)],
    "XA in one phase": [("XA START 'x'",), insert(1), ("XA END 'x'",), ("XA COMMIT 'x' ONE PHASE",)],
    "the commit that DDL makes": [("BEGIN",), insert(1), ("CREATE OR REPLACE TABLE made (id INT)",)],
    "versions by transaction": [("BEGIN",), insert(1), ("INSERT INTO versioned (id) VALUES (1)",), ("COMMIT",)],
}
NOTHING = {
    "short values": [("INSERT INTO t VALUES (1, 0, 'short')",)],
    "no value": [("UPDATE t SET n = n + 1",)],
    "rolled back": [("BEGIN",), insert(1), ("ROLLBACK",)],
}
CASES = [(name, steps, 1, 1) for name, steps in ONE_BY_ONE.items()]
CASES += [(name, steps, 0, 1) for name, steps in IN_ORDER.items()]
CASES += [(name, steps, 0, 0) for name, steps in NOTHING.items()]


@pytest.mark.parametrize(("name", "steps", "beside", "flushed"), CASES, ids=[case[0] for case in CASES])
def test_which_commits(server, cursor, name, steps, beside, flushed):
    cursor.execute("CREATE OR REPLACE TABLE innodb (id INT PRIMARY KEY) ENGINE=InnoDB")
    cursor.execute(
        "CREATE OR REPLACE TABLE versioned (id INT, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, "
        "e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING ENGINE=InnoDB"
    )
    before = prepared(server), synced(server)
    for step in steps:
        cursor.execute(*step)
    assert (prepared(server) - before[0], synced(server) - before[1]) == (beside, flushed), name
    assert server.query("XA RECOVER") == ()
    cursor.execute("COMMIT")
    if name == "a log that is flushed each second":
        cursor.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
        cursor.execute(*insert(99))  # flushes it
    # The next transaction of the session is an ordinary one.
    cursor.execute("SELECT id, b FROM t")
    rows = dict(cursor.fetchall())
    server.kill()
    server.start()
    assert dict(server.query("SELECT id, b FROM d.t")) == rows


def test_others_see_it_when_it_is_answered(server, cursor):
    for row in range(1, 50):
        cursor.execute(*insert(row))
        assert server.query("SELECT b FROM d.t WHERE id = %s", (row,)) == ((payload(row, LONG),),)


@pytest.mark.parametrize("size", [5000, 70000, 3_000_000])
@pytest.mark.parametrize("autocommit", [True, False])
def test_both_flushes_come_before_the_answer(server, cursor, size, autocommit):
    cursor.execute("SELECT 1 FROM t")
    thread = thread_of(cursor.connection)
    before = prepared(server)
    with Trace(server, WATCHED) as trace:
        if not autocommit:
            cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t VALUES (1, 0, %s)", (payload(size, size),))
        if not autocommit:
            cursor.execute("COMMIT")
        cursor.execute("SELECT 1")  # so that strace has seen the answer before
    assert prepared(server) == before + 1
    answers = [call for call in trace.of(ANSWERS) if call.thread == thread]
    answer = answers[0 if autocommit else 2]
    written = trace.of(WRITES, SEGMENT)
    assert written, f"nothing was written to a segment\n{trace.show()}"
    for path in {call.path for call in written}:
        last_write = max(call.ended for call in written if call.path == path)
        flushes = [call for call in trace.of(FLUSHES, path) if call.began > last_write]
        assert any(call.ended < answer.began for call in flushes), f"answered before {path} was flushed\n{trace.show()}"
    redo = trace.of(WRITES, REDO, thread)
    assert redo, f"no redo was written\n{trace.show()}"
    flushes = [call for call in trace.of(FLUSHES, REDO) if call.began > max(call.ended for call in redo)]
    assert any(call.ended < answer.began for call in flushes), f"answered before the redo log was flushed\n{trace.show()}"
    assert len(trace.of(FLUSHES, REDO)) == 1, f"the redo log was flushed again\n{trace.show()}"


def test_it_can_be_switched_at_any_time(server, cursor):
    before = prepared(server)
    for row in range(1, 21):
        cursor.execute(f"SET GLOBAL quarry_parallel_flush = {row % 2}")
        cursor.execute(*insert(row))
    assert prepared(server) == before + 10
    with pytest.raises(pymysql.err.Error):
        cursor.execute("SET GLOBAL quarry_parallel_flush = 'perhaps'")
    cursor.execute("SELECT COUNT(*), SUM(LENGTH(b)) FROM t")
    assert cursor.fetchall() == ((21, 21 * LONG),)
