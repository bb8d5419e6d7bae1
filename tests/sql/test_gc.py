"""Mark passes in a live server: what anybody may still need stays, and space comes back when nobody does.

Each holder is shown to hold: the pass looks again and again and goes on waiting, the holder reads its old values byte
for byte, and only when it has ended the bytes are gone from the disk.
"""

import contextlib
import threading

import pytest

from harness.gc import Gc, disk_bytes, figures, wait_for
from harness.server import Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

ROWS = 24
SIZE = 100_000
# A store keeps what it appends to open, and extents share blocks with their neighbours.
SLACK_BYTES = 600_000


@pytest.fixture(scope="module")
def gc_server():
    server = Server("gc", ["--quarry-gc=OFF", "--quarry-segment-size=1M", "--innodb-lock-wait-timeout=60"]).start()
    yield server
    server.remove()


class Table:
    """d.t, filled; knows what its rows must hold."""

    def __init__(self, server, definition="", partitions="", rows=ROWS):
        self.server, self.gc = server, Gc(server)
        server.query("CREATE OR REPLACE DATABASE d")
        server.query("CREATE TABLE d.other (id INT PRIMARY KEY, x INT) ENGINE=InnoDB")
        server.query("INSERT INTO d.other VALUES (1, 1)")
        server.query(f"CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB {definition}) ENGINE=QUARRY {partitions}")
        self.rows = {row: payload((row, 0), SIZE) for row in range(rows)}
        with server.connect("d") as connection, connection.cursor() as cursor:
            cursor.execute("START TRANSACTION")
            for row in self.rows.items():
                cursor.execute("INSERT INTO t (id, b) VALUES (%s, %s)", row)
            cursor.execute("COMMIT")

    def put(self, row, version=0):
        self.rows[row] = payload((row, version), SIZE)
        self.server.query(
            "INSERT INTO d.t (id, b) VALUES (%s, %s) ON DUPLICATE KEY UPDATE b = VALUES(b)", (row, self.rows[row])
        )

    def delete(self, *rows):
        for row in rows:
            del self.rows[row]
            self.server.query("DELETE FROM d.t WHERE id = %s", (row,))

    def disk_bytes(self):
        """Of the stores in use: those of tables that earlier tests dropped go when the trash is emptied."""
        paths = self.server.query("SELECT store_path FROM information_schema.quarry_tables WHERE state <> 'DROPPED'")
        return disk_bytes(
            file for (path,) in paths for file in (self.server.datadir / "#quarry" / path).glob("*.qseg")
        )

    def check(self, name="d.t"):
        assert dict(self.server.query(f"SELECT id, b FROM {name}")) == self.rows
        assert self.server.query(f"CHECK TABLE {name}")[-1][3] == "OK"

    def check_space(self):
        assert self.disk_bytes() <= len(self.rows) * SIZE + SLACK_BYTES


@pytest.fixture
def table(gc_server):
    if not gc_server.alive():
        gc_server.start()
    return Table(gc_server)


@contextlib.contextmanager
def session(server, *statements):
    connection = server.connect("d")
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            yield cursor
    finally:
        connection.close()


def read(cursor, where="1"):
    cursor.execute(f"SELECT id, b FROM t WHERE {where}")
    return dict(cursor.fetchall())


def test_gives_back_what_is_dead(table):
    table.delete(*range(0, ROWS, 2))
    table.put(1, version=1)
    done = table.gc.run_well()
    assert done["reclaimed_bytes"] >= 12 * SIZE, done
    table.check()
    table.check_space()


def test_nothing_dead_nothing_given_back(table):
    table.gc.run_well()
    before = table.disk_bytes()
    assert table.gc.run_well()["reclaimed_bytes"] == 0
    assert table.disk_bytes() == before
    table.check()


def test_figures_are_those_of_the_disk(table):
    table.delete(*range(6))
    table.gc.run_well()
    real, live = figures(table.server, "d", "t")
    assert real == disk_bytes(table.server.segments_of("d", "t"))
    assert len(table.rows) * SIZE <= live <= len(table.rows) * (SIZE + 500)
    amplification, last, last_live = table.server.query(
        "SELECT space_amplification, last_gc, last_gc_live_bytes FROM information_schema.quarry_tables "
        "WHERE table_schema = 'd' AND state = 'BOUND'"
    )[0]
    assert abs(float(amplification) - real / live) < 0.01
    assert last is not None and last_live == live


def held_then_given_back(table, cursor, old, end):
    """A pass is held by whoever `cursor` belongs to, who reads `old`; after end() the space is given back."""
    request = table.gc.request()
    table.gc.wait_held()
    assert table.disk_bytes() >= len(old) * SIZE
    assert read(cursor) == old
    end()
    table.gc.wait_done(request)
    assert table.gc.status()["last_error"] == ""
    table.check()
    table.check_space()


@pytest.mark.parametrize(
    "begin",
    [
        ["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION", "SELECT * FROM other"],
        ["START TRANSACTION WITH CONSISTENT SNAPSHOT"],
        ["START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"],
        ["SET autocommit = 0", "SELECT * FROM other"],
        ["START TRANSACTION", "SELECT * FROM other", "UPDATE other SET x = x + 1"],
    ],
    ids=["view-of-another-table", "snapshot", "read-only-snapshot", "no-autocommit", "writer-elsewhere"],
)
def test_a_view_that_is_older_than_the_pass(table, begin):
    with session(table.server, *begin) as cursor:
        old = dict(table.rows)
        table.delete(*range(12))
        held_then_given_back(table, cursor, old, lambda: cursor.execute("ROLLBACK"))


def test_a_view_made_while_the_pass_waits_for_others(table):
    """It is not among those that were open at the start: only the second wait can hold what it sees."""
    with session(table.server, "START TRANSACTION", "SELECT * FROM other") as first:
        request = table.gc.request()
        table.gc.wait_held()
        with session(table.server, "START TRANSACTION WITH CONSISTENT SNAPSHOT") as cursor:
            old = dict(table.rows)
            table.delete(*range(12))
            first.execute("ROLLBACK")
            table.gc.wait_state("waiting for readers")
            table.gc.wait_held()
            assert table.disk_bytes() >= len(old) * SIZE
            assert read(cursor) == old
            cursor.execute("ROLLBACK")
        table.gc.wait_done(request)
    table.check()
    table.check_space()


def test_a_view_made_by_a_connection_that_only_read_before(table):
    """The transaction number of INNODB_TRX changes when a reader first writes: that is no end."""
    with session(table.server, "START TRANSACTION", "SELECT * FROM t WHERE id = 0") as cursor:
        old = dict(table.rows)
        table.delete(*range(12))
        request = table.gc.request()
        table.gc.wait_held()
        cursor.execute("UPDATE other SET x = x + 1")
        table.gc.wait_held()
        assert read(cursor) == old
        cursor.execute("COMMIT")
    table.gc.wait_done(request)
    table.check()
    table.check_space()


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_rows_that_are_not_committed_yet(table, end):
    """The pass's view would not see them: it must not be made before they have ended."""
    value = payload("new", SIZE)
    with session(table.server, "START TRANSACTION") as cursor:
        cursor.execute("INSERT INTO t VALUES (1000, %s)", (value,))
        cursor.execute("UPDATE t SET b = %s WHERE id = 1", (value,))
        cursor.execute("DELETE FROM t WHERE id = 2")
        request = table.gc.request()
        table.gc.wait_held()
        cursor.execute(end)
    table.gc.wait_done(request)
    if end == "COMMIT":
        table.rows.update({1000: value, 1: value})
        del table.rows[2]
    table.check()
    table.gc.run_well()
    table.check()
    table.check_space()
