"""A server that can make no thread answers with errors: nothing of Quarry's ends it, whoever asks.

The limit is made by a library that is loaded before the server's (no_threads.c), so it needs no other account of the system.
"""

from pathlib import Path

import pytest

from harness.scarce import STATEMENTS, ask, make_library
from harness.server import Server
from harness.values import payload
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

LONG = 90000


@pytest.fixture
def server(tmp_path):
    library = make_library(Path(__file__).with_name("no_threads.c"), tmp_path)
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
