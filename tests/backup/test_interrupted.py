"""A backup that does not end as it should: the server goes on as if nothing was, and nobody takes the rest for a backup."""

import os
import shutil
import signal
import subprocess

import pymysql
import pytest
from drill import checksums
from quarry_server.server import ServerError
from test_backup import fill

from harness.waiting import wait_for

LOCK = "SET SESSION quarry_backup_lock = 1"


def is_free(server):
    connection = server.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute(LOCK)
        return True
    except pymysql.err.OperationalError:
        return False
    finally:
        connection.close()


@pytest.fixture
def source(own_server):
    server = own_server("backup-interrupted")
    fill(server, rows=10)
    return server


class Held:
    """A backup whose mariadb-backup says that it is there and then waits, before its work or behind it."""

    def __init__(self, drill, server, name, behind, interrupt=signal.SIG_DFL):
        """`interrupt`: what SIGINT is to it; a job in the background starts with it ignored."""
        self.at, self.go = drill.path(f"{name}.at"), drill.path(f"{name}.go")
        wait = f"touch '{self.at}'; while [ ! -e '{self.go}' ]; do sleep 0.05; done"
        wrapper = drill.wrapper(f'"$real" "$@"\n{wait}' if behind else f'{wait}\n"$real" "$@"')
        arguments = [*drill.connection(server), f"--target-dir={drill.path(name)}", f"--mariadb-backup={wrapper}"]
        self.process = subprocess.Popen(
            drill.command("backup", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, interrupt),
        )
        wait_for("mariadb-backup to be called", self.at.exists)

    def release(self):
        """(exit code, what it said)"""
        self.go.touch()
        said = self.process.communicate(timeout=300)[0]
        return self.process.returncode, said


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed(source, own_server, drill, behind, number):
    held = Held(drill, source, "broken", behind, signal.SIG_IGN if number == signal.SIGTERM else signal.SIG_DFL)
    assert not is_free(source)
    held.process.send_signal(number)
    said = held.process.communicate(timeout=300)[0]
    assert held.process.returncode != 0 and ("interrupted" in said or number == signal.SIGKILL), said
    wait_for("the lock of a killed backup to be free", lambda: is_free(source))
    assert (drill.path("broken") / "INCOMPLETE").exists() and not (drill.path("broken") / "backup.json").exists()
    for refusal in (
        drill.verify("broken", fails=True),
        drill.prepare("broken", fails=True),
        drill.backup(source, "x", base="broken", fails=True),
        drill.restore_to(own_server("backup-interrupted-copy", start=False), "broken", fails=True),
    ):
        assert "never completed" in refusal
    assert "not empty" in drill.backup(source, "broken", fails=True)
    if behind and number == signal.SIGKILL:
        before = checksums(source)
        drill.backup(source, "again")
        drill.prepare("again")
        copy = own_server("backup-interrupted-copy", start=False)
        drill.restore_to(copy, "again")
        source.stop()
        copy.start()
        assert checksums(copy) == before


def test_the_session_is_lost(source, drill):
    held = Held(drill, source, "broken", behind=True)
    (session,) = source.query(
        "SELECT id FROM information_schema.processlist WHERE command = 'Sleep' AND info IS NULL "
        "AND user = SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"
    )
    source.query(f"KILL {session[0]}")
    code, said = held.release()
    assert code != 0 and "the server:" in said and "complete:" not in said, said
    assert (drill.path("broken") / "INCOMPLETE").exists()


def test_two_at_once(source, drill):
    held = Held(drill, source, "first", behind=False)
    assert "another backup is under way" in drill.backup(source, "second", fails=True)
    assert not drill.path("second").exists()
    # Somebody else's mariadb-backup, in between: whose moment is whose cannot be told.
    connection = source.connect()
    with connection.cursor() as cursor:
        for stage in ("START", "BLOCK_COMMIT", "END"):
            cursor.execute(f"BACKUP STAGE {stage}")
    connection.close()
    code, said = held.release()
    assert code != 0 and "2 backups reached BACKUP STAGE END" in said, said
    drill.backup(source, "third")


def test_a_segment_is_gone(source, drill):
    victim = source.segments()[0]
    held = Held(drill, source, "broken", behind=True)
    os.rename(victim, drill.path("away"))
    code, said = held.release()
    assert code != 0 and victim.name in said and "not complete" in said, said
    os.rename(drill.path("away"), victim)


def test_no_room(source, drill):
    # /proc has no room for anybody.
    said = drill.run("backup", *drill.connection(source), "--target-dir=/proc/backup", fails=True)
    assert "free: make room" in said, said


def test_without_quarry(own_server, drill):
    server = own_server("backup-without", start=False)
    server.private.plugin = None
    server.start()
    assert "mariadb-backup alone" in drill.backup(server, "x", fails=True)
    assert not drill.path("x").exists()


def test_prepare_is_broken_off(source, own_server, drill):
    drill.backup(source, "full")
    source.query("DELETE FROM d.t WHERE id % 2 = 0")
    before = checksums(source)
    drill.backup(source, "one", base="full")
    copy = own_server("backup-interrupted-copy", start=False)
    broken = [f"--mariadb-backup={drill.wrapper('exit 9')}"]
    arguments = ["prepare", f"--target-dir={drill.path('full')}"]
    # Of the full backup: once more is right.
    assert "ended with 9" in drill.run(*arguments, *broken, fails=True)
    assert "broken off" in drill.restore_to(copy, "full", fails=True)
    drill.prepare("full")
    shutil.copytree(drill.path("full"), drill.path("kept"))
    # Of an increment: nobody knows what is half done.
    arguments.append(f"--incremental-dir={drill.path('one')}")
    half = drill.wrapper('for word; do case $word in --target-dir=*) touch "${word#*=}/ibdata1" ;; esac; done\nexit 9')
    assert "ended with 9" in drill.run(*arguments, f"--mariadb-backup={half}", fails=True)
    assert "broken off" in drill.restore_to(copy, "full", fails=True)
    assert "cannot go on" in drill.prepare("full", increment="one", fails=True)
    assert "cannot go on" in drill.prepare("full", fails=True)
    assert not copy.datadir.exists()
    drill.prepare("kept", increment="one")
    drill.restore_to(copy, "kept")
    source.stop()
    copy.start()
    assert checksums(copy) == before


def test_restore_is_broken_off(source, own_server, drill):
    before = checksums(source)
    drill.backup(source, "full")
    drill.prepare("full")
    copy = own_server("backup-interrupted-copy", start=False)
    victim = max((drill.path("full") / "quarry" / "home" / "stores").glob("*/*.qseg"), key=os.path.getsize)
    os.rename(victim, drill.path("away"))
    assert "Nothing that was restored can be used" in drill.restore_to(copy, "full", fails=True)
    # The rows are there, and not all of the values: such a server does not start.
    with pytest.raises(ServerError):
        copy.start()
    assert "QUARRY tables are here" in copy.error_log()
    shutil.rmtree(copy.datadir)
    os.rename(drill.path("away"), victim)
    drill.restore_to(copy, "full")
    source.stop()
    copy.start()
    assert checksums(copy) == before
