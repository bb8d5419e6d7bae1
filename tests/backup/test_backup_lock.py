"""quarry_backup_lock and INFORMATION_SCHEMA.QUARRY_BACKUP: what a backup holds on to in the server, and for how long."""

import time

import pymysql
import pytest

from harness.waiting import wait_for

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
    assert files["DIRECTORY"].startswith(b"QXDrct\r\n")
    manifest = files[f"stores/{store}/MANIFEST"]
    assert manifest.startswith(b"QXManf\r\n") and b"d/t" in manifest
    segments = {name: path for name, path, _, _ in seen["segment"]}
    listed = {str(path) for path in clean.segments()}
    in_use = {path for path in segments.values() if "/#quarry/trash/" not in path}
    assert in_use <= listed and any(store in path for path in in_use)
    assert not kinds(clean.connect()), "only the session with the lock may see it"
    make_table(clean, "later")
    assert [name for name, _, _, _ in kinds(holder)["file"]] == list(files), "it stays what it was"
    run_stages(clean, *STAGES)
    assert kinds(holder)["snapshots"][0][0] == "2"
    run(holder, "SET quarry_backup_lock = 0")
    assert not kinds(holder)
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
