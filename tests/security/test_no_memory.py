"""A server in which Quarry's C++ finds no memory: statements fail, background work waits, a start is refused; none of it ends
the server, and nothing is lost.

The shortage is made by a library that is loaded before the server's (no_memory.cc).
"""

from pathlib import Path

import pytest

from harness.gc import Gc
from harness.scarce import STATEMENTS, ask, make_library
from harness.server import Server
from harness.values import payload
from harness.waiting import wait_for
from quarry_server.server import HOME_NAME, ServerError

pytestmark = pytest.mark.quarry_only

LONG = 90000
# Sessions have the name of the thread that made them.
SESSIONS = "mariadbd"


class Shortage:
    """Which threads of the server find no memory."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def begin(self, *threads):
        for name in threads:
            (self.folder / name).touch()

    def end(self):
        for path in self.folder.iterdir():
            path.unlink()


@pytest.fixture
def server(tmp_path):
    library = make_library(Path(__file__).with_name("no_memory.cc"), tmp_path)
    shortage = Shortage(tmp_path / "no-memory")
    environment = {"LD_PRELOAD": str(library), "NO_MEMORY": str(shortage.folder)}
    made = Server("security-no-memory", ["--quarry-gc-interval=1", "--quarry-scrub-interval=1"], environment=environment)
    made.shortage = shortage
    made.start()
    made.query("CREATE DATABASE d")
    made.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PREFIX_SIZE=100")
    made.query("INSERT INTO d.t VALUES (1, %s)", (payload(1, LONG),))
    yield made
    made.remove()


def check_value(server):
    assert server.query("SELECT b FROM d.t WHERE id = 1") == ((payload(1, LONG),),)


def out_of_memory(server):
    return int(server.status("quarry_out_of_memory")["quarry_out_of_memory"])


def test_each_statement_is_answered(server):
    assert out_of_memory(server) == 0
    old = server.connect()  # has a transaction of Quarry's own already
    with old.cursor() as cursor:
        assert ask(cursor, "INSERT INTO d.t SELECT 9, b FROM d.t WHERE id = 1")
        server.shortage.begin(SESSIONS)
        done = [statement for statement in STATEMENTS if ask(cursor, statement)]
        for statement in STATEMENTS:  # each in a session that knows nothing yet
            fresh = server.connect()
            with fresh, fresh.cursor() as other:
                ask(other, statement)
        server.assert_alive()
        server.shortage.end()
        print(f"done without memory: {len(done)} of {len(STATEMENTS)}")
        assert "INSERT INTO d.t SELECT id + 1, b FROM d.t WHERE id = 1" not in done
        assert out_of_memory(server) > 0
        for statement in STATEMENTS:
            ask(cursor, statement)
        assert ask(cursor, "SELECT MD5(b) FROM d.t")
    old.close()
    with server.connect() as fresh, fresh.cursor() as other:
        assert ask(other, "SET SESSION quarry_backup_lock = 1"), "no session that found no memory has it"
    server.assert_alive()
    server.restart()
    assert server.query("SELECT COUNT(*) FROM d.t WHERE id IN (1, 9)") == ((2,),)
    assert server.query("SELECT b FROM d.t WHERE id = 9") == ((payload(1, LONG),),)


def test_background_work_waits_for_memory(server):
    threads = ("quarry_gc", "quarry_scrub", "quarry_keeper")
    server.query("CREATE TABLE d.dropped (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.dropped VALUES (1, %s)", (payload(2, LONG),))
    server.shortage.begin(*threads)
    server.query("DROP TABLE d.dropped")
    said = [f"the thread {name} ran out of memory" for name in threads[:2]]
    said.append("stores of dropped tables are kept for now: out of memory")
    for line in said:
        wait_for(f"'{line}' in the log", lambda line=line: line in server.error_log())
    server.assert_alive()
    assert len(server.stores()) == 2
    assert out_of_memory(server) > 0
    check_value(server)
    for line in said:
        assert server.error_log().count(line) == 1, f"once, not at each try: {line}"
    server.shortage.end()
    Gc(server).run_well()
    rounds = int(server.status("quarry_scrub_rounds")["quarry_scrub_rounds"])
    wait_for("the scrub", lambda: int(server.status("quarry_scrub_rounds")["quarry_scrub_rounds"]) > rounds)
    trash = server.datadir / HOME_NAME / "trash"
    wait_for("an empty trash", lambda: len(server.stores()) == 1 and not list(trash.iterdir()))
    check_value(server)


def test_a_start_without_memory_is_refused(server):
    server.stop()
    server.shortage.begin(SESSIONS)
    with pytest.raises(ServerError):
        server.start()
    assert "cannot be opened: out of memory" in server.error_log()
    server.shortage.end()
    server.start()
    check_value(server)
