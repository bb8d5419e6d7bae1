"""A server that can make no thread answers with errors: nothing of Quarry's ends it, whoever asks.

The limit is made by a library that is loaded before the server's (no_threads.c), so it needs no other account of the system.
"""

import shutil
from pathlib import Path

import pymysql
import pytest

from harness.server import Server
from harness.values import payload
from harness.waiting import wait_for
from quarry_server.run import run_or_raise

pytestmark = pytest.mark.quarry_only

LONG = 90000


@pytest.fixture
def library(tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here, to make the library that refuses threads")
    made = tmp_path / "no_threads.so"
    source = Path(__file__).with_name("no_threads.c")
    run_or_raise([compiler, "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"])
    return made


@pytest.fixture
def server(library, tmp_path):
    no_threads = tmp_path / "no-threads"
    environment = {"LD_PRELOAD": str(library), "NO_THREADS": str(no_threads)}
    made = Server("security-no-threads", ["--thread-cache-size=8"], environment=environment)
    made.no_threads = no_threads
    made.start()
    made.query("CREATE USER low@localhost")
    made.query("CREATE DATABASE d")
    made.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PREFIX_SIZE=100")
    made.query("INSERT INTO d.t VALUES (1, %s)", (payload(1, LONG),))
    yield made
    made.remove()


STATEMENTS = (
    "SELECT COUNT(*) FROM information_schema.quarry_tables",
    "SELECT COUNT(*) FROM information_schema.quarry_columns",
    "SELECT COUNT(*) FROM information_schema.quarry_damage",
    "SHOW GLOBAL STATUS LIKE 'quarry%'",
    "SHOW ENGINE QUARRY STATUS",
    "SET GLOBAL quarry_gc_now = ON",
    "INSERT INTO d.t SELECT id + 1, b FROM d.t WHERE id = 1",
    "UPDATE d.t SET b = CONCAT(b, 'more') WHERE id = 1",
    "SELECT MD5(b) FROM d.t",
    "CHECK TABLE d.t",
    "CREATE TABLE d.made (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY",
    "INSERT INTO d.made SELECT * FROM d.t",
    "ALTER TABLE d.made ADD COLUMN n INT, ALGORITHM=INPLACE",
    "ALTER TABLE d.made FORCE",
    "RENAME TABLE d.made TO d.other",
    "TRUNCATE TABLE d.other",
    "DROP TABLE d.other",
    "SET SESSION quarry_backup_lock = 1",
    "SET SESSION quarry_backup_lock = 0",
    "DELETE FROM d.t WHERE id = 2",
    "XA RECOVER",
)


def ask(cursor, statement):
    try:
        cursor.execute(statement)
        cursor.fetchall()
    except pymysql.err.Error as failure:
        assert failure.args[0] not in (2006, 2013), f"the server was lost: {statement}"
        return False
    return True


def test_each_statement_is_answered(server, session_of):
    root, low = server.connect(), session_of(server, "low")
    with root.cursor() as cursor:
        server.no_threads.touch()
        done = [statement for statement in STATEMENTS if ask(cursor, statement)]
        for statement in STATEMENTS:
            ask(low, statement)
        server.assert_alive()
        server.no_threads.unlink()
        print(f"done without a thread: {len(done)} of {len(STATEMENTS)}")
        assert "SELECT MD5(b) FROM d.t" in done and "SELECT COUNT(*) FROM information_schema.quarry_tables" in done
        for statement in STATEMENTS:
            ask(cursor, statement)
        assert ask(cursor, "SELECT MD5(b) FROM d.t")
    root.close()
    server.assert_alive()
    server.restart()
    assert server.query("SELECT COUNT(*) FROM d.t") != ()


def test_a_start_goes_without_the_threads_of_the_background(server):
    """The engine comes up while the server can make threads for itself; INSTALL where it can't is refused or works."""
    connection = server.connect()
    with connection.cursor() as cursor:
        server.no_threads.touch()
        for _ in range(2):
            ask(cursor, "UNINSTALL SONAME 'ha_quarry'")
            ask(cursor, "INSTALL SONAME 'ha_quarry'")
        server.assert_alive()
        server.no_threads.unlink()
    connection.close()
    server.restart()
    wait_for(lambda: "the table", lambda: server.query("SELECT b FROM d.t WHERE id = 1") == ((payload(1, LONG),),))
