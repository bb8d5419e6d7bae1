"""What a crash leaves of commits whose two flushes were under way: decided at the next start, each as it must be.

The order in which the flushes end is chosen by strace, which holds one of them back (harness/trace.py skips where ptrace is
forbidden). InnoDB's log is not flushed in the background, so that a commit which was answered is found prepared.
"""

import contextlib
import pathlib
import re
import signal
import threading
import time

import pymysql
import pytest
from quarry_server.server import ServerError

from harness.server import Server
from harness.trace import CannotTrace, attach, detach, thread_of
from harness.values import payload
from harness.waiting import wait_for
from kill_at import is_lost

pytestmark = pytest.mark.quarry_only

OPTIONS = (
    "--innodb-flush-log-at-timeout=2700",
    "--innodb-stats-auto-recalc=OFF",
    "--innodb-purge-threads=1",
    "--innodb-lock-wait-timeout=1",
    "--loose-quarry-gc=OFF",
    "--loose-quarry-scrub-rate=0",
)
HELD_S = 5
LONG = 9000
LOCK_WAIT_TIMEOUT = 1205
DECIDED = re.compile(r"QUARRY: of (\d+) transactions .* (\d+) are committed and (\d+) rolled back")


@pytest.fixture
def server():
    server = Server("prepared-commits", OPTIONS).start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t VALUES (0, %s)", (payload(0, LONG),))
    yield server
    server.remove()


def rows(server):
    return dict(server.query("SELECT id, b FROM d.t"))


def expected(*ids):
    return {row: payload(row, LONG) for row in ids}


def insert(server, *ids):
    server.query(
        "INSERT INTO d.t VALUES " + ", ".join(["(%s, %s)"] * len(ids)),
        tuple(part for row in ids for part in (row, payload(row, LONG))),
    )


def restart(server):
    """(found, committed, rolled back) in this start's log; None: nothing was to be decided."""
    size = len(server.error_log())
    server.start()
    said = server.error_log()[size:]
    assert "[ERROR]" not in said, said[-4000:]
    decided = DECIDED.search(said)
    assert server.query("XA RECOVER") == ()
    return tuple(map(int, decided.groups())) if decided else None


def flush_thread(server):
    (thread,) = server.threads("quarry_flush")
    return thread


@contextlib.contextmanager
def injected(server, thread, call, what):
    """While it lasts, strace does `what` to the next calls of a thread (strace(1), 'Syscall injection')."""
    directory = pathlib.Path(server.directory)
    options = ["-o", directory / "injected.txt", "-e", f"inject={call}:{what}", "-p", thread]
    try:
        process = attach(options, (call,), directory / "injected.err")
    except CannotTrace as reason:
        pytest.skip(str(reason))
    try:
        yield
    finally:
        if process.poll() is None:
            detach(process)


def held(server, thread, call):
    """Calls are held back as they begin."""
    return injected(server, thread, call, f"delay_enter={HELD_S * 1000000}")


class Committer(threading.Thread):
    """Inserts a row on a connection of its own; `answered` says whether the server lived to tell."""

    def __init__(self, server, row):
        super().__init__()
        self.connection, self.row, self.answered = server.connect("d"), row, None
        self.thread = thread_of(self.connection)
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM t")

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("INSERT INTO t VALUES (%s, %s)", (self.row, payload(self.row, LONG)))
            self.answered = True
        except pymysql.err.Error as failure:
            assert is_lost(failure), failure
            self.answered = False


def redo_flushed(server):
    (row,) = server.query("SHOW GLOBAL STATUS LIKE 'innodb_lsn_flushed'")
    return int(row[1])


def written(server, row):
    """Whether the value of a row has reached its segment's file."""
    return any(payload(row, LONG) in segment.read_bytes() for segment in server.segments())


def kill_while(server, committer, hold, reached):
    with hold:
        committer.start()
        wait_for("the other flush", reached, every_s=0.05)
        assert committer.is_alive(), "it was answered before both flushes"
        server.private.process.send_signal(signal.SIGKILL)
        committer.join()
    server.private.process.wait(60)
    assert committer.answered is False


def test_an_answered_commit_is_found_prepared_and_committed(server):
    insert(server, 1)
    insert(server, 2, 3, 4)
    server.kill()
    # The redo of the first commit was flushed with the second's.
    assert restart(server) == (1, 1, 0)
    assert rows(server) == expected(0, 1, 2, 3, 4)
    # And it is as good as any other: changed, deleted, killed again.
    server.query("UPDATE d.t SET b = %s WHERE id = 2", (payload(0, LONG),))
    server.query("DELETE FROM d.t WHERE id = 3")
    server.kill()
    restart(server)
    assert rows(server) == expected(0, 1, 4) | {2: payload(0, LONG)}
    assert server.query("CHECK TABLE d.t EXTENDED")[-1][-1] == "OK"


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"], ids=["not written", "not flushed"])
def test_only_the_redo_log_was_flushed(server, call):
    """The values did not get to the disk: rolled back. Those that were written and not flushed are there after a kill (not
    after a power cut: test_power_cut.py), and then the start makes them durable before it commits."""
    committer, flushed = Committer(server, 1), redo_flushed(server)

    def reached():
        return redo_flushed(server) > flushed and (call == "pwrite64" or written(server, 1))

    kill_while(server, committer, held(server, flush_thread(server), call), reached)
    assert restart(server) == ((1, 0, 1) if call == "pwrite64" else (1, 1, 0))
    assert rows(server) == (expected(0) if call == "pwrite64" else expected(0, 1))
    insert(server, 5)
    assert rows(server)[5] == payload(5, LONG)


def test_only_the_values_were_flushed(server):
    """InnoDB does not know the transaction: gone."""
    committer = Committer(server, 1)
    before = int(server.status("quarry_flushes")["quarry_flushes"])
    hold = held(server, committer.thread, "pwrite64")
    kill_while(server, committer, hold, lambda: int(server.status("quarry_flushes")["quarry_flushes"]) > before)
    assert restart(server) == (1, 1, 0)  # the row before it, whose commit no other flush took along
    assert rows(server) == expected(0)


def test_many_at_once(server):
    """Some are answered, some are not; no row without its value, no answer without its row."""
    stop, answered = threading.Event(), set()

    def work(client):
        try:
            with server.connect("d") as connection, connection.cursor() as cursor:
                for row in range(1000 * client, 1000 * client + 1000):
                    if stop.is_set():
                        return
                    cursor.execute("INSERT INTO t VALUES (%s, %s)", (row, payload(row, LONG)))
                    answered.add(row)
        except (pymysql.err.Error, OSError):
            pass

    found = 0
    for round_number in range(4):
        stop.clear()
        clients = [threading.Thread(target=work, args=(10 * round_number + client,)) for client in range(1, 9)]
        for client in clients:
            client.start()
        time.sleep(0.7)
        server.kill()
        stop.set()
        for client in clients:
            client.join()
        decided = restart(server)
        found += decided[0] if decided else 0
        there = rows(server)
        assert answered <= set(there), f"answered and lost: {sorted(answered - set(there))[:5]}"
        assert all(value == payload(row, LONG) for row, value in there.items())
    assert found, "no crash left a transaction to be decided"


@pytest.fixture
def failing_flush(server):
    """The next flush of a segment fails."""
    with injected(server, flush_thread(server), "fdatasync", "error=EIO:when=1"):
        yield


def test_a_failed_flush_is_rolled_back_for_good(server, failing_flush):
    """The client was told; nobody may find it committed, though all of its bytes are there."""
    with pytest.raises(pymysql.err.Error) as failure:
        insert(server, 1)
    assert "could not make durable" in failure.value.args[1], failure.value
    assert server.query("XA RECOVER") == ()
    assert rows(server) == expected(0)
    insert(server, 2)
    server.kill()
    assert restart(server) == (1, 1, 0)
    assert rows(server) == expected(0, 2)


def test_a_failed_flush_and_a_kill_at_once(server, failing_flush):
    with pytest.raises(pymysql.err.Error):
        insert(server, 1)
    server.kill()
    assert restart(server) is None, "the rollback was not durable when the client was told"
    assert rows(server) == expected(0)


@pytest.mark.parametrize("option", ["--read-only", "--transaction-read-only", "--transaction-isolation=SERIALIZABLE"])
def test_no_setting_keeps_it_from_being_decided(server, option):
    insert(server, 1)
    server.kill()
    server.private.options.append(option)
    assert restart(server) == (1, 1, 0)
    assert rows(server) == expected(0, 1)


def test_a_damaged_value_is_not_committed(server):
    insert(server, 1)
    server.kill()
    (segment,) = server.segments()
    content = bytearray(segment.read_bytes())
    at = content.find(payload(1, LONG)[:200])
    content[at + 100] ^= 1
    segment.write_bytes(content)
    assert restart(server) == (1, 0, 1)
    assert rows(server) == expected(0)


def test_what_cannot_be_told_stays_prepared(server):
    """The segment is away: the server does not start, and says so. One that is told to start all the same (quarry=ON)
    neither commits nor rolls back; it is decided when the segment is back."""
    for row in (100, 101):
        server.query("INSERT INTO d.t VALUES (%s, %s)", (row, payload(row, 900_000)))
    server.query("DELETE FROM d.t WHERE id >= 100")
    insert(server, 1)
    server.kill()
    (segment,) = server.segments()
    away = segment.with_suffix(".away")
    segment.rename(away)
    size = len(server.error_log())
    with pytest.raises(ServerError):
        server.start()
    said = server.error_log()[size:]
    assert "cannot be decided" in said and "the server does not start (quarry=FORCE)" in said, said[-3000:]
    server.private.options.append("--quarry=ON")
    server.start()
    server.private.options.remove("--quarry=ON")
    assert "cannot be decided" in said and segment.name in said, said[-3000:]
    assert server.status("quarry_prepared_%") == {
        "quarry_prepared_committed": "0",
        "quarry_prepared_rolled_back": "0",
        "quarry_prepared_undecided": "1",
    }
    assert len(server.query("XA RECOVER")) == 1
    assert server.query("SELECT id FROM d.t WHERE id = 1") == ()
    with pytest.raises(pymysql.err.OperationalError) as locked:
        server.query("DELETE FROM d.t WHERE id = 1")
    assert locked.value.args[0] == LOCK_WAIT_TIMEOUT
    server.kill()
    away.rename(segment)
    assert restart(server) == (1, 1, 0)
    assert rows(server) == expected(0, 1)


def test_without_the_plugin_it_waits(server):
    """A server that starts without the engine keeps the transaction, and INSTALL decides it."""
    insert(server, 1)
    server.kill()
    plugin, server.private.plugin = server.private.plugin, None
    server.start()
    ((format_id, global_size, branch_size, data),) = server.query("XA RECOVER")
    assert (format_id, global_size, branch_size, data[:8]) == (0x51584331, 64, 64, b"QXCmtt\r\n")
    (server.private.plugin_dir / "ha_quarry.so").symlink_to(plugin)
    server.query("INSTALL SONAME 'ha_quarry'")
    assert DECIDED.search(server.error_log()).groups() == ("1", "1", "0")
    assert server.query("XA RECOVER") == ()
    assert rows(server) == expected(0, 1)
