"""quarry_backup_lock and INFORMATION_SCHEMA.QUARRY_BACKUP: what a backup holds on to in the server, and for how long."""

import threading
import time

import pymysql
import pytest

from harness import io_layer
from harness.values import payload
from harness.waiting import WAIT_S, wait_for
from quarry_server.server import HOME_NAME

LOCK = "SET SESSION quarry_backup_lock = 1"
STAGES = ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT", "END")
# The sweep of dropped tables looks every 5 seconds.
SWEEPS_S = 16


def run(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def kinds(connection):
    found = {}
    for kind, name, path, number, contents in run(connection, "SELECT * FROM information_schema.quarry_backup"):
        found.setdefault(kind, []).append((name, path, number, contents))
    return found


def run_stages(server, *stages):
    connection = server.connect()
    for stage in stages:
        run(connection, f"BACKUP STAGE {stage}")
    connection.close()


def make_table(server, name="t"):
    server.query("CREATE DATABASE IF NOT EXISTS d")
    server.query(f"CREATE TABLE d.{name} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query(f"INSERT INTO d.{name} VALUES (1, REPEAT('x', 50000)), (2, REPEAT('y', 9000))")
    return server.store_of("d", name)


def reset(connection):
    """COM_RESET_CONNECTION, as a pool sends it before it hands the connection to the next user."""
    connection._execute_command(0x1F, b"")
    connection._read_ok_packet()


@pytest.fixture
def clean(server):
    server.query("DROP DATABASE IF EXISTS d")
    yield server
    server.query("DROP DATABASE IF EXISTS d")


def test_one_session_has_it_until_it_ends(clean):
    first, second = clean.connect(), clean.connect()
    run(first, LOCK)
    run(first, LOCK)
    assert run(first, "SELECT @@quarry_backup_lock") == ((1,),)
    with pytest.raises(pymysql.err.OperationalError, match=f"session {first.thread_id()} holds quarry_backup_lock"):
        run(second, LOCK)
    assert run(second, "SELECT @@quarry_backup_lock") == ((0,),)
    run(first, "SET quarry_backup_lock = 0")
    run(second, LOCK)
    clean.query(f"KILL {second.thread_id()}")
    third = clean.connect()

    def taken():
        try:
            run(third, LOCK)
        except pymysql.err.OperationalError:
            return False
        return True

    wait_for("the lock of a killed session to be free", taken)
    third.close()


@pytest.mark.parametrize("value", ["GLOBAL quarry_backup_lock = 1", "quarry_backup_lock = 7", "quarry_backup_lock = NULL"])
def test_what_it_refuses(clean, value):
    with pytest.raises(pymysql.err.MySQLError, match="quarry_backup_lock"):
        clean.query(f"SET {value}")
    free = clean.connect()
    run(free, LOCK)
    free.close()


def test_it_needs_reload(clean):
    clean.query("CREATE OR REPLACE USER mere@localhost")
    connection = pymysql.connect(unix_socket=clean.socket, user="mere")
    with pytest.raises(pymysql.err.OperationalError, match="RELOAD"):
        run(connection, LOCK)
    clean.query("GRANT RELOAD ON *.* TO mere@localhost")
    connection.close()
    connection = pymysql.connect(unix_socket=clean.socket, user="mere")
    run(connection, LOCK)
    connection.close()
    clean.query("DROP USER mere@localhost")


def test_snapshot_of_the_moment_when_commits_are_blocked(clean):
    store = make_table(clean)
    holder = clean.connect()
    assert not kinds(holder)
    run(holder, LOCK)
    seen = kinds(holder)
    assert seen["snapshots"][0][0] == "0" and "BACKUP STAGE END" in seen["error"][0][0]
    run_stages(clean, "START", "FLUSH", "END")  # broken off: no moment, no snapshot
    assert kinds(holder)["snapshots"][0][0] == "0"
    run_stages(clean, *STAGES)
    seen = kinds(holder)
    assert seen["snapshots"][0][0] == "1" and "error" not in seen
    files = {name: bytes.fromhex(contents) for name, _, _, contents in seen["file"]}
    (name,) = files
    assert name.startswith("CATALOGUE-") and files[name].startswith(b"QXcr") and b"d/t" in files[name]
    segments = {name: path for name, path, _, _ in seen["segment"]}
    listed = {str(path) for path in clean.segments()}
    in_use = {path for path in segments.values() if f"/{HOME_NAME}/trash/" not in path}
    assert in_use <= listed and any(store in path for path in in_use)
    assert not kinds(clean.connect()), "only the session with the lock may see it"
    make_table(clean, "later")
    assert [name for name, _, _, _ in kinds(holder)["file"]] == list(files), "it stays what it was"
    run_stages(clean, *STAGES)
    assert kinds(holder)["snapshots"][0][0] == "2"
    run(holder, "SET quarry_backup_lock = 0")
    assert not kinds(holder)
    holder.close()


def test_a_connection_that_was_reset_sees_no_snapshot_and_begins_anew(clean):
    """The server sets the variable to 0 then, and tells no engine. What was kept is not for the next user of the connection."""
    make_table(clean)
    holder = clean.connect()
    run(holder, LOCK)
    run_stages(clean, *STAGES)
    assert kinds(holder)["snapshots"][0][0] == "1"
    reset(holder)
    assert run(holder, "SELECT @@quarry_backup_lock") == ((0,),)
    assert not kinds(holder)
    run(holder, LOCK)
    seen = kinds(holder)
    assert seen["snapshots"][0][0] == "0" and "BACKUP STAGE END" in seen["error"][0][0], "it has the snapshot of another backup"
    reset(holder)
    run(holder, "SET quarry_backup_lock = 0")
    second = clean.connect()
    run(second, LOCK)
    second.close()
    holder.close()


def test_nothing_is_given_back_meanwhile(clean):
    store = make_table(clean)
    holder = clean.connect()
    run(holder, LOCK)
    clean.query("DROP TABLE d.t")
    time.sleep(SWEEPS_S)
    assert store in clean.stores(), "the sweep went on in spite of the lock"
    run_stages(clean, *STAGES)  # the end of another pause does not end this one
    time.sleep(SWEEPS_S)
    assert store in clean.stores(), "the end of a backup stage ended the session's pause too"
    holder.close()
    wait_for("the sweep to go on when the session has ended", lambda: store not in clean.stores())


def test_the_stages_alone_pause_too(clean):
    store = make_table(clean)
    backup = clean.connect()
    run(backup, "BACKUP STAGE START")
    clean.query("DROP TABLE d.t")
    time.sleep(SWEEPS_S)
    assert store in clean.stores()
    backup.close()
    wait_for("the sweep to go on after the connection died", lambda: store not in clean.stores())


def test_a_backup_without_the_tool_is_warned_of(clean):
    make_table(clean)
    before = len(clean.error_log())
    run_stages(clean, *STAGES)
    assert "a backup starts without quarry-backup" in clean.error_log()[before:]
    before = len(clean.error_log())
    holder = clean.connect()
    run(holder, LOCK)
    run_stages(clean, *STAGES)
    holder.close()
    assert "without quarry-backup" not in clean.error_log()[before:]


# --- nobody waits for it --------------------------------------------------------------------------------------------
SIZE, COMMITS = 20_000, 1600


class Writers:
    """Clients that commit one value of 20 KB after the other; `seconds` and `longest` are for people."""

    def __init__(self, server, clients, commits=None):
        self.longest, self.failures, self.done, self.ids = 0.0, [], 0, []
        connections = [server.connect("d") for _ in range(clients)]
        self.ids = [connection.thread_id() for connection in connections]
        self.began = time.monotonic()
        self.threads = [
            threading.Thread(target=self._write, args=(connection, commits // clients if commits else None), daemon=True)
            for connection in connections
        ]
        for thread in self.threads:
            thread.start()

    def _write(self, connection, commits):
        value = payload(connection.thread_id(), SIZE)
        try:
            while commits is None or commits > 0:
                began = time.monotonic()
                run(connection, f"INSERT INTO w (b) VALUES (X'{value.hex()}')")
                self.longest = max(self.longest, time.monotonic() - began)
                self.done += 1
                commits = None if commits is None else commits - 1
        except pymysql.err.Error as failure:
            self.failures.append(failure.args[0])
        finally:
            connection.close() if connection.open else None

    def join(self):
        for thread in self.threads:
            thread.join(WAIT_S)
            assert not thread.is_alive(), f"a client stands still after {self.done} commits"
        seconds = time.monotonic() - self.began
        return f"{self.done / seconds:.0f} commits a second, the longest {1000 * self.longest:.0f} ms"


@pytest.mark.parametrize("clients", [1, 8, 32])
def test_commits_go_on_meanwhile(clean, clients, capsys):
    clean.query("CREATE DATABASE d")
    clean.query("CREATE TABLE d.w (id INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    before = Writers(clean, clients, COMMITS).join()
    holder = clean.connect()
    run(holder, LOCK)
    during = Writers(clean, clients, COMMITS)
    text = during.join()
    assert not during.failures
    assert clean.query("SELECT COUNT(*) FROM d.w") == ((2 * COMMITS,),)
    with capsys.disabled():
        print(f"\n{clients} clients: {before}; under the lock {text}")
    holder.close()


@pytest.mark.parametrize("clients", [1, 8])
def test_kill_ends_who_commits_meanwhile(clean, clients):
    clean.query("CREATE DATABASE d")
    clean.query("CREATE TABLE d.w (id INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    holder = clean.connect()
    run(holder, LOCK)
    writers = Writers(clean, clients)
    wait_for("the clients to have committed for a while", lambda: writers.done >= 200 * clients)
    for identity in writers.ids:
        clean.query(f"KILL {identity}")
    writers.join()
    assert len(writers.failures) == clients
    assert clean.query("SELECT COUNT(*) FROM d.w")[0][0] >= writers.done
    holder.close()


def test_kill_ends_who_waits_for_the_flush_of_another(own_server):
    directory = io_layer.SCRATCH / "held-flush"
    try:
        layer = io_layer.IoLayer(directory)
    except io_layer.CannotBuild as reason:
        pytest.skip(str(reason))
    # In order: the client that leads is in the operating system, and InnoDB has not been asked for anything yet.
    options = [*io_layer.OPTIONS, "--quarry-parallel-flush=OFF"]
    server = own_server("held-flush", *options, environment=layer.environment)
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.w (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.w VALUES (0, REPEAT('x', 20000))")
    outcomes = {}

    def value_bytes(of):
        return int(of.status("quarry_value_bytes_appended")["quarry_value_bytes_appended"])

    def insert(number, connection):
        try:
            run(connection, f"INSERT INTO d.w VALUES ({number}, REPEAT('x', 20000))")
            outcomes[number] = None
        except pymysql.err.Error as failure:
            outcomes[number] = failure.args[0]

    connections = {number: server.connect() for number in (1, 2, 3)}
    threads = {n: threading.Thread(target=insert, args=(n, c), daemon=True) for n, c in connections.items()}
    layer.arm(io_layer.WAIT, call="fdatasync", kind="segment")
    try:
        threads[1].start()
        wait_for("the first client to flush", lambda: layer.fired == 1)
        for number in (2, 3):
            threads[number].start()
            appended = 20_000 * (number + 1)
            wait_for("the next to have appended", lambda appended=appended: value_bytes(server) >= appended)
        server.query(f"KILL QUERY {connections[2].thread_id()}")
        wait_for("the killed client to give up", lambda: 2 in outcomes)
        assert outcomes == {2: 1317}
    finally:
        layer.disarm()
    for thread in threads.values():
        thread.join(WAIT_S)
    assert outcomes == {1: None, 2: 1317, 3: None}
    assert server.query("SELECT id, LENGTH(b) FROM d.w ORDER BY id") == ((0, 20000), (1, 20000), (3, 20000))
    layer.remove()


def test_a_long_pause_is_warned_of_once(own_server):
    server = own_server("long-pause", environment={"QUARRY_TEST_LONG_PAUSE_S": "1"})
    make_table(server)
    for pauses, look_again_s in ((1, 11), (2, 0)):
        holder = server.connect()
        run(holder, LOCK)
        warning = f"no space has been given back (quarry_backup_lock of session {holder.thread_id()})"
        wait_for("the warning", lambda warning=warning: server.error_log().count(warning) == 1)
        time.sleep(look_again_s)
        holder.close()
        assert server.error_log().count(warning) == 1
        wait_for("the lock to be free", lambda: server.error_log().count("lock was given back") == pauses)
