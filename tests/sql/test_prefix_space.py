"""A prefix in the row is nowhere else: what 64 KiB with the PREFIX_SIZE of an NDB comment take, write and read."""

import time

import pytest

from harness.server import NO_BACKGROUND, Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

SIZE = 65_536
PREFIX = 29_736
ROWS = 1_000


@pytest.fixture(scope="module")
def server():
    made = Server(
        "prefix-space",
        ["--quarry-recent-cache-bytes=0", "--quarry-cache-size=0", *NO_BACKGROUND],
    ).start()
    made.query("CREATE DATABASE p")
    made.query(
        f"CREATE TABLE p.t (id INT PRIMARY KEY, b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE={PREFIX}') ENGINE=QUARRY"
    )
    yield made
    made.remove()


def number(server, name):
    return int(server.status(name)[name.lower()])


def written(server):
    """Bytes of segments; of InnoDB's pages and log, without its doublewrite buffer, whose share is a matter of when pages
    happen to be written."""
    pages = number(server, "Innodb_data_written") - 16_384 * number(server, "Innodb_dblwr_pages_written")
    return number(server, "Quarry_file_bytes_written"), pages + number(server, "Innodb_os_log_written")


def wait_until_written(server):
    """InnoDB's dirty pages are on the disk, and will only go there together again."""
    server.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    until = time.monotonic() + 60
    while number(server, "Innodb_buffer_pool_pages_dirty") > 0 and time.monotonic() < until:
        time.sleep(0.1)
    server.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")


def test_what_is_written_and_kept(server):
    wait_until_written(server)
    before = written(server)
    connection = server.connect()
    with connection.cursor() as cursor:
        for row in range(ROWS):
            cursor.execute("INSERT INTO p.t VALUES (%s, %s)", (row, payload(("prefix", row), SIZE)))
        connection.commit()
    connection.close()
    wait_until_written(server)
    quarry, innodb = (after - start for after, start in zip(written(server), before))
    ((live, extents),) = server.query(
        "SELECT live_bytes, stored_values FROM information_schema.quarry_tables WHERE table_name = 't'"
    )
    assert extents == ROWS
    print(f"live {live / ROWS:.0f}; per payload byte: {quarry / ROWS / SIZE:.3f} + {innodb / ROWS / SIZE:.3f}")
    assert live / ROWS <= 35_950
    assert (quarry + innodb) / ROWS / SIZE < 1.65


def test_a_piece_of_the_prefix_asks_no_segment(server):
    names = ("Quarry_read_submissions", "Quarry_extents_read")
    before = [number(server, name) for name in names]
    for sql in (f"LEFT(b, {PREFIX})", "SUBSTRING(b, 100, 1000)", "LENGTH(b)"):
        rows = server.query(f"SELECT id, {sql} FROM p.t")
        assert len(rows) == ROWS
    for row, piece in server.query(f"SELECT id, LEFT(b, {PREFIX}) FROM p.t"):
        assert piece == payload(("prefix", row), SIZE)[:PREFIX]
    assert [number(server, name) for name in names] == before


def test_nor_does_one_of_a_short_value(server):
    server.query("CREATE TABLE p.s (id INT PRIMARY KEY, b BLOB PREFIX_SIZE=300) ENGINE=QUARRY")
    server.query("INSERT INTO p.s VALUES (1, %s)", (payload("short", 9_000),))
    before = number(server, "Quarry_extents_read")
    assert server.query("SELECT LEFT(b, 300), SUBSTRING(b, 7, 20) FROM p.s") == (
        (payload("short", 9_000)[:300], payload("short", 9_000)[6:26]),
    )
    assert number(server, "Quarry_extents_read") == before
    assert server.query("SELECT LEFT(b, 301) FROM p.s") == ((payload("short", 9_000)[:301],),)
    assert number(server, "Quarry_extents_read") == before + 1


def test_a_cold_read_asks_for_the_remainder(server):
    server.restart()
    before = number(server, "Quarry_file_bytes_read"), number(server, "Quarry_read_submissions")
    assert server.query("SELECT b FROM p.t WHERE id = 7")[0][0] == payload(("prefix", 7), SIZE)
    assert number(server, "Quarry_file_bytes_read") - before[0] <= 40_960
    assert number(server, "Quarry_read_submissions") - before[1] == 1


def test_heads_keep_their_own_prefix_when_its_size_changes(server):
    for size in (0, 5_000, PREFIX):
        server.query(f"ALTER TABLE p.t MODIFY b LONGBLOB PREFIX_SIZE={size}, ALGORITHM=INSTANT")
        new = 1_000 + size
        server.query("INSERT INTO p.t VALUES (%s, %s)", (new, payload(("altered", size), SIZE)))
        assert server.query(f"SELECT b FROM p.t WHERE id = {new}")[0][0] == payload(("altered", size), SIZE)
        for row in (0, ROWS - 1):
            assert server.query(f"SELECT b FROM p.t WHERE id = {row}")[0][0] == payload(("prefix", row), SIZE)
        # The same bytes again: the head that is there stays, whatever its prefix.
        kept = number(server, "Quarry_heads_kept")
        server.query("UPDATE p.t SET b = %s WHERE id = 3", (payload(("prefix", 3), SIZE),))
        assert number(server, "Quarry_heads_kept") == kept + 1
    assert server.query("CHECK TABLE p.t")[-1][-1] == "OK"
