"""Mark passes that rewrite segments of small values: space, figures, the bound, readers at the same time, damage.

Each value is committed alone, and a commit pads to a block: so a segment of them takes several times what they need,
and no hole gives that back.
"""

import threading

import pytest
from quarry_lab.probes.device import allocated_bytes

from harness.gc import Gc, figures
from harness.segments import all_extents, flip_bit
from harness.server import Server
from harness.values import payload
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

ROWS = 200
BLOCK_BYTES = 4096
BOUND, BOUND_OF_A_REWRITE = 1.5, 1.25


@pytest.fixture(scope="module")
def rewrite_server():
    # What memory still holds would hide what the disk has lost.
    options = ["--quarry-gc=OFF", "--quarry-recent-cache-bytes=0", "--loose-quarry-cache-size=0"]
    server = Server("gc-rewrite", [*options, "--innodb-flush-log-at-trx-commit=0"]).start()
    yield server
    server.remove()


class Table:
    """d.t, with values of `size` bytes, each in a block of its own. Knows what its rows must hold."""

    def __init__(self, server, size):
        self.server, self.gc, self.size = server, Gc(server), size
        server.query("CREATE OR REPLACE DATABASE d")
        server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY INLINE_SIZE=0")
        self.rows = {row: payload((row, 0), size) for row in range(ROWS)}
        self.put(*self.rows.items())

    def put(self, *rows):
        with self.server.connect("d") as connection, connection.cursor() as cursor:
            for row in rows:
                cursor.execute("REPLACE INTO t VALUES (%s, %s)", row)
        self.rows.update(rows)

    def segments(self):
        return self.server.segments_of("d", "t")

    def check(self):
        assert dict(self.server.query("SELECT id, b FROM d.t")) == self.rows
        assert self.server.query("CHECK TABLE d.t")[-1][3] == "OK"

    def check_space(self, bound):
        real, live = figures(self.server, "d", "t")
        assert real == allocated_bytes(self.segments())
        assert len(self.rows) * self.size < live and real <= bound * live, (real, live)


def test_small_values_are_rewritten(rewrite_server):
    table = Table(rewrite_server, 1000)
    rewrite_server.restart()  # seals, and so cuts off what was zeroed ahead
    before = allocated_bytes(table.segments())
    assert before >= ROWS * BLOCK_BYTES
    done = table.gc.run_well()
    assert done["segments_rewritten"] == 1 and done["rewrites_refused"] == done["segments_damaged"] == 0, done
    assert ROWS * table.size < done["rewritten_bytes"] < ROWS * (table.size + 200), done
    assert done["reclaimed_bytes"] == before - allocated_bytes(table.segments()), done
    table.check()
    table.check_space(BOUND_OF_A_REWRITE)
    said = f"GC of table `d`.`t`: gave back {done['reclaimed_bytes']} bytes, unlinked 0 segments, rewrote 1"
    assert said in table.server.error_log()
    (status,) = table.server.query("SHOW ENGINE QUARRY STATUS")
    counts = table.gc.status()
    assert f"segments rewritten {counts['segments_rewritten']}, bytes copied {counts['rewritten_bytes']}" in status[2]
    # Nothing is left to do.
    assert table.gc.run_well()["segments_rewritten"] == 0


def test_a_bound_that_is_lower_has_more_rewritten(rewrite_server):
    """Values of 3,300 bytes take 1.2 times what they need: too much only for who wants less than that."""
    table = Table(rewrite_server, 3300)
    assert table.gc.run_well()["segments_rewritten"] == 0
    rewrite_server.query("SET GLOBAL quarry_space_amplification_max = 1.1")
    try:
        assert table.gc.run_well()["segments_rewritten"] == 1
    finally:
        rewrite_server.query(f"SET GLOBAL quarry_space_amplification_max = {BOUND}")
    table.check()
    table.check_space(1.1)


def test_readers_and_writers_beside_rewriting(rewrite_server):
    """Each reader gets a version of each row that was there, whole, whatever its isolation level and whichever file it
    began with."""
    table = Table(rewrite_server, 1000)
    versions = {row: {payload((row, version), table.size) for version in range(3)} for row in table.rows}
    stop, failures, reads = threading.Event(), [], []

    def read(level):
        try:
            with rewrite_server.connect("d") as connection, connection.cursor() as cursor:
                cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
                while not stop.is_set():
                    cursor.execute("SELECT id, b FROM t")
                    rows = dict(cursor.fetchall())
                    assert rows.keys() == versions.keys()
                    assert all(value in versions[row] for row, value in rows.items())
                    reads.append(level)
        except Exception as failure:
            failures.append(failure)

    readers = [threading.Thread(target=read, args=(level,)) for level in ("READ UNCOMMITTED", "REPEATABLE READ")]
    for reader in readers:
        reader.start()
    try:
        rewritten = 0
        for version in (1, 2):
            table.put(*((row, payload((row, version), table.size)) for row in list(table.rows)[::version]))
            rewritten += table.gc.run()["segments_rewritten"]
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert failures == [] and rewritten > 1 and len(set(reads)) == len(readers), (failures, rewritten, len(reads))
    table.check()


def test_a_lost_header_and_map_cost_no_value(rewrite_server):
    """The copies at the end of the segment are read, the log says so, and the next pass mends the segment."""
    table = Table(rewrite_server, 1000)
    assert table.gc.run_well()["segments_rewritten"] == 1
    (segment,) = table.segments()
    rewrite_server.stop()
    for offset in (100, BLOCK_BYTES + 100):
        flip_bit(segment, offset)
    rewrite_server.start()
    table.check()
    wait_for("the log to name the segment", lambda: "is read by the copy at its end" in rewrite_server.error_log())
    assert table.gc.run_well()["segments_rewritten"] == 1
    table.check()
    assert table.gc.run_well()["segments_rewritten"] == 0


def test_what_is_damaged_is_left_as_it_is(rewrite_server):
    """Neither healed nor lost: its segment keeps its bytes, and GC says so once."""
    table = Table(rewrite_server, 1000)
    (segment,) = table.segments()
    rewrite_server.stop()  # also seals
    victim = all_extents([segment])[ROWS // 2]
    flip_bit(segment, victim.first_part_offset + 10)
    before = segment.read_bytes()
    rewrite_server.start()
    done = table.gc.run_well()
    assert done["segments_damaged"] == 1 and done["segments_rewritten"] == 0, done
    assert segment.read_bytes() == before
    damage = table.gc.status()["last_damage"]
    assert f"offset {victim.first_part_offset}" in damage, damage
    assert table.gc.run_well()["segments_damaged"] == 1
    said = "[ERROR] QUARRY: GC leaves 1 damaged segments of table `d`.`t` as they are; the first: " + damage
    assert table.server.error_log().count(said) == 1
    assert damage in table.server.query("SHOW ENGINE QUARRY STATUS")[0][2]
    found = [text for _, _, kind, text in table.server.query("CHECK TABLE d.t") if kind == "error"]
    assert any(f"offset {victim.first_part_offset}" in text for text in found), found
    # The row goes, and with it the obstacle. (REPLACE would read the old value.)
    rewrite_server.query("DELETE FROM d.t WHERE id = %s", (ROWS // 2,))
    del table.rows[ROWS // 2]
    assert table.gc.run_well()["segments_rewritten"] > 0
    table.check()
