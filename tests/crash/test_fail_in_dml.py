"""Calls on Quarry's files that fail (EIO, ENOSPC), in the real server, at each place of each kind of transaction.

The layer of kill_in_dml.py makes one call fail, once. Either the client hears of it, in words that name the file and the
cause, and nothing of its transaction is there; or nobody needs to, and all of it is. Nothing else changes, every value
can be read, the same works again at once, and a kill -9 at the end loses nothing.
"""

import collections
import errno
import os
import random
import re

import pymysql
import pytest
from dml_kinds import KINDS
from harness import io_layer
from harness.values import INLINE_SIZE_DEFAULT_BYTES, SEED, payload
from kill_in_dml import Hunt

pytestmark = pytest.mark.quarry_only

PLACES = int(os.environ.get("QUARRY_TEST_KILLS", "0")) or 4
QUARRY_FILES = ("segment", "CATALOGUE", "home directory")
WORK = [kind for kind in KINDS if kind.clients == 1 and not kind.call]
FILE_FULL, ERROR_ON_WRITE = 1114, 1026
ERRORS = {errno.EIO: ERROR_ON_WRITE, errno.ENOSPC: FILE_FULL}
CLEAR = re.compile(
    r"^Quarry could not (write to|make durable|rebuild|create) .*(i/o error|no space|poisoned).*#quarry\.d[/:].*errno \d+"
)


@pytest.fixture(scope="module", params=[False, True], ids=["binlog-off", "binlog-on"])
def hunt(request):
    try:
        hunt = Hunt("fail-in-dml", request.param, SEED)
    except io_layer.CannotBuild as reason:
        pytest.skip(str(reason))
    yield hunt
    hunt.layer.disarm()
    if hunt.server.alive():
        hunt.finish()  # kill -9, and everything is there
    hunt.remove()


def quarry_calls(hunt, kind):
    """(call, kind of file, thread or None for the client's, how many before it) of every call on Quarry's files that the
    client's thread makes, and those that flush for it. Whoever commits new long values makes some; what is rolled back
    before it was written down anywhere need not."""
    (client,) = hunt.clients(kind)
    hunt.layer.reset_events()
    hunt.run_clients([client])
    written = []
    for one in client.transactions:
        written += [value for key, value in one.effects.items() if hunt.model.rows.get(key) != value]
        hunt.model.apply(one)
    seen, found, flushing = collections.Counter(), [], hunt.server.threads("quarry_flush")
    for event in hunt.layer.events():
        if event.kind in QUARRY_FILES and event.thread in {client.thread, *flushing}:
            who = event.thread if event.thread in flushing else None
            found.append((event.call, event.kind, who, seen[event.call, event.kind, who]))
            seen[event.call, event.kind, who] += 1
    long = [value for value in written if isinstance(value, bytes) and len(value) > INLINE_SIZE_DEFAULT_BYTES]
    assert found or not long, f"{kind.name} wrote no segment"
    return found


@pytest.mark.parametrize("kind", WORK, ids=[kind.name for kind in WORK])
def test_one_call_fails(hunt, kind):
    rng = random.Random(f"{SEED}-{kind.name}")
    calls = quarry_calls(hunt, kind)
    heard = 0
    for call, file, thread, number in rng.sample(calls, min(PLACES, len(calls))):
        for error in ERRORS:
            heard += fail(hunt, kind, call, file, thread, number, error)
    print(f"{len(calls)} calls, {heard} failures heard of")


def fail(hunt, kind, call, file, thread, number, error):
    """Whether the client was told."""
    (client,) = hunt.clients(kind)
    hunt.layer.arm(io_layer.FAIL_ONCE, call, file, after=number, thread=thread or client.thread, error=error)
    client.start()
    client.join()
    client.connection.close()
    fired = hunt.layer.fired
    hunt.layer.disarm()
    where = f"{call} of {file} #{number} fails with {errno.errorcode[error]}"
    failed = [one for one in client.transactions if one.outcome == "in doubt"]
    for one in client.transactions:
        if one.outcome == "acknowledged":
            hunt.model.apply(one)
    if client.failure is not None:
        assert fired, f"nothing failed, and the client hears {client.failure}"
        code, text = client.failure.args
        assert code == ERRORS[error] and CLEAR.search(text), f"{where}: {client.failure}"
        assert f"errno {error})" in text, f"{where}: {text}"
        assert len(failed) == 1
    else:
        assert not failed, f"{where}: the server died"
    assert not hunt.server.query("XA RECOVER"), f"{where}: a transaction that failed is prepared"
    hunt.model.check()
    return client.failure is not None


def test_a_full_disk(hunt):
    """Nothing can be written to segments for a while: reading, small values and deleting go on, and then everything."""
    server = hunt.server
    connection = server.connect("dml")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE full (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        for row in range(4):
            cursor.execute("INSERT INTO full VALUES (%s, %s)", (row, payload(row, 70000)))
        hunt.layer.arm(io_layer.FAIL_FROM_THEN_ON, kind="segment", error=errno.ENOSPC)
        for size in (9000, 200000, 3_000_000):
            for statement in (
                "INSERT INTO full VALUES (10, %s)",
                "UPDATE full SET b = %s WHERE id = 1",
                "REPLACE INTO full VALUES (2, %s)",
            ):
                with pytest.raises(pymysql.err.Error) as failure:
                    cursor.execute(statement, (payload("full", size),))
                assert failure.value.args[0] == FILE_FULL, failure.value
        cursor.execute("INSERT INTO full VALUES (11, 'small')")
        cursor.execute("DELETE FROM full WHERE id = 3")
        cursor.execute("SELECT id, b FROM full ORDER BY id")
        there = {0: payload(0, 70000), 1: payload(1, 70000), 2: payload(2, 70000), 11: b"small"}
        assert dict(cursor.fetchall()) == there
        with pytest.raises(pymysql.err.Error):
            cursor.execute("ALTER TABLE full FORCE, ALGORITHM=COPY")
        hunt.layer.disarm()
        cursor.execute("ALTER TABLE full FORCE, ALGORITHM=COPY")
        cursor.execute("INSERT INTO full VALUES (12, %s)", (payload(12, 200000),))
        cursor.execute("SELECT id, b FROM full ORDER BY id")
        assert dict(cursor.fetchall()) == there | {12: payload(12, 200000)}
        cursor.execute("CHECK TABLE full")
        assert cursor.fetchall()[-1][-1] == "OK"
        cursor.execute("DROP TABLE full")
    connection.close()


@pytest.mark.parametrize("call", ["write", "fdatasync"])
def test_a_failure_in_a_group_commit(hunt, call):
    """Whoever was told is not there, whoever was not told is."""
    (kind,) = [kind for kind in KINDS if kind.name == "group-commit"]
    told = 0
    for number in range(6):
        clients = hunt.clients(kind)
        hunt.layer.arm(io_layer.FAIL_ONCE, call, "segment", after=number, error=errno.EIO)
        for client in clients:
            client.start()
        for client in clients:
            client.join()
            client.connection.close()
        hunt.layer.disarm()
        for client in clients:
            for one in client.transactions:
                if one.outcome == "acknowledged":
                    hunt.model.apply(one)
            if client.failure is not None:
                assert client.failure.args[0] == ERROR_ON_WRITE, client.failure
                told += 1
        hunt.model.check()
    assert told, "no flush failed that anybody waited for"


def test_one_ddl_call_fails(hunt):
    """A copying ALTER whose n-th call fails leaves the old table, and the same ALTER works afterwards."""
    server = hunt.server
    server.query("CREATE TABLE dml.altered (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    rows = {row: payload(row, 20000 * row) for row in range(12)}
    for row, value in rows.items():
        server.query("INSERT INTO dml.altered VALUES (%s, %s)", (row, value))
    failed = 0
    for file in ("segment", "CATALOGUE"):
        for number in range(0, 12, 3):
            hunt.layer.arm(io_layer.FAIL_ONCE, kind=file, after=number, error=errno.EIO)
            try:
                server.query("ALTER TABLE dml.altered FORCE, ALGORITHM=COPY")
            except pymysql.err.Error as failure:
                failed += 1
                assert "Quarry could not" in failure.args[1], failure
            hunt.layer.disarm()
            assert dict(server.query("SELECT id, b FROM dml.altered")) == rows
    assert failed, "no ALTER failed"
    server.query("ALTER TABLE dml.altered FORCE, ALGORITHM=COPY")
    assert dict(server.query("SELECT id, b FROM dml.altered")) == rows
    server.query("DROP TABLE dml.altered")


def test_commits_after_failures_survive_a_kill(hunt):
    """The segments that failed are given up, those that followed are not."""
    for size in (9000, 200000, 3_000_000):
        hunt.run_undisturbed(hunt.maker().room("plain", "packed"))
        hunt.run_undisturbed([hunt.maker().insert("plain", [size])])
    hunt.finish()
