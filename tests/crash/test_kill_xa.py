"""kill -9 around prepared XA transactions: between XA PREPARE and the decision, twice, and in the middle of each step.

Each transaction changes a QUARRY table and an InnoDB twin alike, so whatever becomes of it, both must stay equal; what
must become of it is said beside that. With the binary log off and on: the server prepares and recovers in two ways.
"""

import os
import random

import kill_at
import pymysql
import pytest
from harness.server import ENGINE, Server
from harness.values import SEED, payload

BINLOG = {"binlog off": (), "binlog on": ("--log-bin=binlog", "--server-id=1", "--sync-binlog=1")}
LOCK_WAIT_TIMEOUT = 1205
# Transactions write those with an odd place, all but the NULL out of line.
SIZES_BYTES = (0, 9000, 4096, 200000, 100, 66000, 4097, None)
ROWS = 24
TABLES = (
    "CREATE TABLE {p}_plain (id INT PRIMARY KEY, b LONGBLOB, KEY (b(20))) ENGINE={e}",
    "CREATE TABLE {p}_parts (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE {p}_history (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} WITH SYSTEM VERSIONING",
    "CREATE TABLE {p}_other (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
)


@pytest.fixture(scope="module", params=BINLOG)
def xa_server(request):
    server = Server("xa-" + request.param.replace(" ", "-"), BINLOG[request.param]).start()
    yield server
    server.remove()


@pytest.fixture
def server(xa_server):
    """With the tables anew."""
    if not xa_server.alive():
        xa_server.start()
    for xid in prepared(xa_server):
        xa_server.query(f"XA ROLLBACK '{xid}'")  # of a test that failed
    xa_server.query("CREATE OR REPLACE DATABASE xa")
    connection = xa_server.connect("xa")
    with connection.cursor() as cursor:
        for prefix, engine in (("q", ENGINE), ("i", "InnoDB")):
            for statement in TABLES:
                cursor.execute(statement.format(p=prefix, e=engine))
            for table in ("plain", "parts", "history"):
                rows = [(row, value(row)) for row in range(ROWS)]
                cursor.executemany(f"INSERT INTO {prefix}_{table} VALUES (%s, %s)", rows)
    connection.close()
    return xa_server


def value(row, salt=0):
    size_bytes = SIZES_BYTES[(row + salt) % len(SIZES_BYTES)]
    return None if size_bytes is None else payload(1000 * salt + row, size_bytes)


# Of one transaction: `row` is the only one of the old rows that it touches, `salt` makes its values its own.
CHANGES = (
    ("UPDATE {p}_plain SET b = %(b)s WHERE id = %(row)s",),
    ("DELETE FROM {p}_plain WHERE id = %(row)s", "INSERT INTO {p}_other VALUES (%(row)s, %(b)s)"),
    ("UPDATE {p}_parts SET b = NULL WHERE id = %(row)s", "REPLACE INTO {p}_plain VALUES (%(row)s, %(b)s)"),
    ("UPDATE {p}_history SET b = %(b)s WHERE id = %(row)s", "DELETE FROM {p}_parts WHERE id = %(row)s"),
    (
        "INSERT INTO {p}_other VALUES (%(row)s, %(b)s)",
        "SAVEPOINT s",
        "UPDATE {p}_plain SET b = REPEAT('lost', 9000) WHERE id = %(row)s",
        "ROLLBACK TO SAVEPOINT s",
        "UPDATE {p}_plain SET b = CONCAT(%(b)s, b) WHERE id = %(row)s",
    ),
    ("UPDATE {p}_plain SET b = %(b)s WHERE id = %(row)s", "UPDATE {p}_plain SET b = CONCAT(b, 'x') WHERE id = %(row)s"),
)


def begin(server, xid, row, kind):
    """A connection whose transaction has done its work and ended, not yet prepared; and its thread."""
    connection = server.connect("xa")
    thread = kill_at.thread_of(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"XA START '{xid}'")
        for statement in CHANGES[kind]:
            for prefix in ("q", "i") if "{p}" in statement else ("",):
                data = value(row, salt=row + 1) or b"instead of NULL" * 500
                cursor.execute(statement.format(p=prefix), {"row": row, "b": data})
        cursor.execute(f"XA END '{xid}'")
    return connection, thread


def prepare(server, xid, row, kind):
    connection, _ = begin(server, xid, row, kind)
    with connection.cursor() as cursor:
        cursor.execute(f"XA PREPARE '{xid}'")
    return connection


def prepared(server):
    return sorted(bytes(row[3]).decode() if isinstance(row[3], bytes) else row[3] for row in server.query("XA RECOVER"))


def contents(server, prefix):
    tables = ("plain", "parts", "other", "history FOR SYSTEM_TIME ALL")
    columns = "id, LENGTH(b), SHA2(b, 256)"
    return [server.query(f"SELECT {columns} FROM xa.{prefix}_{table} ORDER BY 1, 2, 3") for table in tables]


def check(server):
    """Equal to the twin, whole; gives the rows."""
    mine, theirs = contents(server, "q"), contents(server, "i")
    assert mine == theirs
    for table in ("plain", "parts", "other"):
        checksums = server.query(f"CHECKSUM TABLE xa.q_{table}, xa.i_{table}")
        assert checksums[0][1] == checksums[1][1], checksums
    for table in ("plain", "parts", "other", "history"):
        verdict = server.query(f"CHECK TABLE xa.q_{table}")
        assert verdict[-1][-1] == "OK", verdict
    return mine


def kill_and_start(server):
    server.kill()
    server.start()


def test_many_prepared_survive_two_kills(server):
    """Twelve at once, some of whose clients left before; committed or rolled back by others after the second kill."""
    before = check(server)
    connections = {}
    for row in range(12):
        xid = f"x{row:02}"
        connections[xid] = prepare(server, xid, row, row % len(CHANGES))
        if row % 3 == 0:
            connections.pop(xid).close()
    xids = [f"x{row:02}" for row in range(12)]
    for turn in range(2):
        kill_and_start(server)
        assert prepared(server) == xids, f"after kill {turn + 1}"
        # Nothing of them shows yet, and their rows stay locked, in both engines.
        assert contents(server, "q") == contents(server, "i") == before
        for prefix in ("q", "i"):
            with pytest.raises(pymysql.err.OperationalError) as failure:
                no_wait = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR"
                server.query(f"{no_wait} UPDATE xa.{prefix}_plain SET b = 'stolen' WHERE id = 0")
            assert failure.value.args[0] == LOCK_WAIT_TIMEOUT
    for row, xid in enumerate(xids):
        server.query(f"XA {'COMMIT' if row % 2 == 0 else 'ROLLBACK'} '{xid}'")
    after = check(server)
    kill_and_start(server)
    for xid in prepared(server):
        # InnoDB flushes no log for a rollback: the last ones may be prepared again. A commit never.
        assert xids.index(xid) % 2 == 1, xid
        server.query(f"XA ROLLBACK '{xid}'")
    assert check(server) == after
    # What each transaction did is there if committed, and not if rolled back.
    plain = {row[0]: row[1:] for row in after[0]}
    old = {row[0]: row[1:] for row in before[0]}
    for row in range(12):
        touched = plain.get(row) != old.get(row)
        writes_plain = row % len(CHANGES) != 3
        assert touched == (row % 2 == 0 and writes_plain), f"row {row}"
    assert {row[0] for row in after[2]} == {row for row in range(0, 12, 2) if row % len(CHANGES) in (1, 4)}


def test_work_goes_on_beside_prepared_ones(server):
    """Other rows change, tables are rebuilt beside them, killed, and only then it is decided."""
    prepare(server, "keep", 0, 0)
    prepare(server, "drop", 1, 4)
    kill_and_start(server)
    for turn in range(3):
        for prefix in ("q", "i"):
            server.query(f"UPDATE xa.{prefix}_plain SET b = CONCAT(COALESCE(b, ''), 'more') WHERE id BETWEEN 5 AND 9")
            server.query(f"DELETE FROM xa.{prefix}_plain WHERE id = %s", (20 + turn,))
            server.query(f"ALTER TABLE xa.{prefix}_parts FORCE")
        kill_and_start(server)
        assert prepared(server) == ["drop", "keep"]
        check(server)
    server.query("XA COMMIT 'keep'")
    server.query("XA ROLLBACK 'drop'")
    check(server)
    for prefix in ("q", "i"):
        assert server.query(f"SELECT SHA2(b, 256) FROM xa.{prefix}_plain WHERE id = 0") == server.query(
            "SELECT SHA2(%s, 256)", (value(0, salt=1),)
        )


STEPS = ("XA PREPARE", "XA COMMIT", "XA ROLLBACK", "XA COMMIT ONE PHASE")
# Each has a row of its own.
KILLS_OF_A_STEP = min(int(os.environ.get("QUARRY_TEST_KILLS", "1")), ROWS - 1)


@pytest.mark.parametrize("step", STEPS)
def test_kill_in_the_middle_of(server, step):
    """Cut off at some of a step's system calls: prepared still, or decided as asked, in both engines alike."""
    try:
        points = run_step(server, step, row=0)[0].points
    except kill_at.CannotTrace as reason:
        pytest.skip(str(reason))
    # InnoDB flushes no log for a rollback: it may change no file.
    assert points or step == STEPS[2], f"{step} changed no file"
    chosen = random.Random(f"{SEED}-{step}").sample(points, min(len(points), KILLS_OF_A_STEP))
    decided = {"x0": "COMMIT"} if step == STEPS[3] else {}
    for row, point in enumerate(chosen, start=1):
        old = check(server)[0]
        outcome, connection = run_step(server, step, row, point)
        if outcome.killed:
            server.start()
        left = prepared(server)
        # InnoDB flushes no log for a rollback, and with the binary log on none for a commit in one phase, whose xid the
        # recovery from the binary log does not know: after a kill they are prepared again, and are decided again.
        for xid in sorted(set(decided).intersection(left)):
            assert decided[xid] == "ROLLBACK" or step == STEPS[3], f"{xid} was committed, and is prepared again"
            left.remove(xid)
            server.query(f"XA {decided[xid]} '{xid}'")
        assert left in ([], [f"x{row}"])
        if left:
            # (With the binary log on, one phase has two inside.)
            check_hidden(server, old, point)
            decision = "COMMIT" if row % 2 == 1 else "ROLLBACK"
            decide(server, None if outcome.killed else connection, f"XA {decision} 'x{row}'")
            must_show = decision == "COMMIT"
        else:
            # One phase: all or nothing, unless it was answered.
            must_show = {STEPS[1]: True, STEPS[3]: None if outcome.killed else True}.get(step, False)
        decided[f"x{row}"] = "ROLLBACK" if must_show is False else "COMMIT"
        new = check(server)[0]
        assert [entry for entry in new if entry[0] != row] == [entry for entry in old if entry[0] != row]
        shows = [entry for entry in new if entry[0] == row] != [entry for entry in old if entry[0] == row]
        assert must_show in (None, shows), f"{step} at {point}, {left} left: the change shows: {shows}"


def check_hidden(server, old, point):
    assert contents(server, "q")[0] == contents(server, "i")[0] == old, f"prepared, and shows: {point}"


def test_rollback_and_kill(server):
    """A rollback that was answered may be prepared again after a kill, for InnoDB flushes no log for it; never committed."""
    old = check(server)
    for row in range(3):
        prepare(server, f"x{row}", row, row).close()
    kill_and_start(server)
    for row in range(3):
        server.query(f"XA ROLLBACK 'x{row}'")
    kill_and_start(server)
    for xid in prepared(server):
        server.query(f"XA ROLLBACK '{xid}'")
    assert check(server) == old


def run_step(server, step, row, point=None):
    """The outcome, and the connection at which it ran; the transaction `x<row>` changes that row."""
    xid = f"x{row}"
    connection, thread = begin(server, xid, row, 0)
    if step in STEPS[1:3]:
        decide(server, connection, f"XA PREPARE '{xid}'")
    words = step.split()
    statement = " ".join([*words[:2], f"'{xid}'", *words[2:]])
    outcome = kill_at.run(server, connection, statement, point, thread)
    if point is None and step == STEPS[0]:
        decide(server, connection, f"XA COMMIT '{xid}'")
    return outcome, connection


def decide(server, connection, statement):
    """At the transaction's own connection while that lives: nobody else may."""
    if connection is None:
        server.query(statement)
        return
    with connection.cursor() as cursor:
        cursor.execute(statement)
