"""A damaged segment: the statement that needs the damaged value fails and says where; everything else goes on."""

import re

import pymysql
import pytest

from harness.segments import BLOCK_SIZE_BYTES, all_extents, flip_bit
from harness.values import payload

pytestmark = pytest.mark.quarry_only

ROWS = 12


def value(row):
    return payload(("corruption", row), 20000 + row * 10000)


@pytest.fixture
def table(own_server):
    """A table `broken` and a table `whole` next to it, on a server that has written and forgotten all its values."""
    server = own_server("corruption")
    server.query("CREATE DATABASE c")
    for name in ("broken", "whole"):
        server.query(
            f"CREATE TABLE c.{name} (id INT PRIMARY KEY, n INT, b LONGBLOB, KEY (n)) ENGINE=QUARRY PART_SIZE=16384"
        )
        for row in range(ROWS):
            server.query(f"INSERT INTO c.{name} VALUES (%s, %s, %s)", (row, row % 3, value(row)))
    return server


def extent_of(server, row):
    """The extent in c.broken's segments that holds a row's value (no codec: the bytes stand there as they are)."""
    wanted = value(row)
    for extent in all_extents(server.segments_of("c", "broken")):
        with extent.path.open("rb") as stream:
            stream.seek(extent.first_part_offset)
            if extent.value_size == len(wanted) and stream.read(100) == wanted[:100]:
                return extent
    raise AssertionError(f"row {row} is in no segment of c.broken")


def expect_corruption(server, sql, extent, offset=None):
    with pytest.raises(pymysql.err.Error) as failure:
        server.query(sql)
    message = str(failure.value)
    assert "broken" in message, message
    assert re.search(rf"segment {int(extent.path.stem, 16)}\b", message), f"no segment number in: {message}"
    found = re.search(r"offset (\d+)", message)
    assert found, f"no offset in: {message}"
    assert (
        extent.offset <= int(found.group(1)) < extent.offset + extent.size
    ), f"offset outside of the extent {extent}: {message}"
    if offset is not None:
        assert int(found.group(1)) <= offset, message


def expect_the_rest_whole(server, *damaged):
    for row in range(ROWS):
        assert server.query("SELECT b FROM c.whole WHERE id = %s", (row,))[0][0] == value(row)
        if row not in damaged:
            assert server.query("SELECT b FROM c.broken WHERE id = %s", (row,))[0][0] == value(row)
    assert server.alive()


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
def test_flipped_bits(table, running):
    """Bits flipped in a part, in the header and in the index of three values."""
    table.restart()  # what was written a moment ago would be served from memory
    targets = {
        3: lambda extent: extent.first_part_offset + 17000,
        5: lambda extent: extent.offset + 33,
        8: lambda extent: extent.offset + 80,
    }
    places = {row: extent_of(table, row) for row in targets}
    if not running:
        table.stop()
    for row, place in targets.items():
        flip_bit(places[row].path, place(places[row]), bit=row % 8)
    if not running:
        table.start()
    for row, place in targets.items():
        expect_corruption(table, f"SELECT b FROM c.broken WHERE id = {row}", places[row], place(places[row]))
    expect_corruption(table, "SELECT MD5(b) FROM c.broken WHERE id BETWEEN 3 AND 4", places[3])
    expect_corruption(table, "UPDATE c.broken SET b = CONCAT(b, 'x') WHERE id = 5", places[5])
    expect_the_rest_whole(table, *targets)
    # Statements that do not read the value do not meet the damage; they are the way out.
    assert len(table.query("SELECT id, n FROM c.broken")) == ROWS
    table.query("UPDATE c.broken SET n = 7 WHERE id = 3")
    table.query("UPDATE c.broken SET b = %s WHERE id = 3", (value(3),))
    table.query("DELETE FROM c.broken WHERE id = 5")
    assert table.query("SELECT b FROM c.broken WHERE id = 3")[0][0] == value(3)
    expect_corruption(table, "SELECT b FROM c.broken", places[8])
    expect_corruption(table, "ALTER TABLE c.broken FORCE, ALGORITHM=COPY", places[8])
    table.query("DELETE FROM c.broken WHERE id = 8")
    assert len(table.query("SELECT id, b FROM c.broken")) == ROWS - 2
    assert int(table.status("quarry_corruptions")["quarry_corruptions"]) > 0
    table.restart()
    expect_the_rest_whole(table, 5, 8)


def test_cut_off_segment(table):
    """The file is shorter than the rows say."""
    table.stop()
    table.start()
    extent = max((extent_of(table, row) for row in range(ROWS)), key=lambda item: (item.path, item.offset))
    row = next(row for row in range(ROWS) if extent_of(table, row) == extent)
    table.stop()
    with extent.path.open("r+b") as stream:
        stream.truncate((extent.first_part_offset + 5000) // BLOCK_SIZE_BYTES * BLOCK_SIZE_BYTES)
    table.start()
    expect_corruption(table, f"SELECT b FROM c.broken WHERE id = {row}", extent)
    expect_the_rest_whole(table, row)


def test_missing_segment(table):
    """A segment that is gone: its values cannot be read, new ones can be written, the server starts and lives."""
    table.restart()
    paths = table.segments_of("c", "broken")
    assert paths
    table.stop()
    for path in paths:
        path.rename(path.with_suffix(".away"))
    table.start()
    with pytest.raises(pymysql.err.Error) as failure:
        table.query("SELECT b FROM c.broken WHERE id = 1")
    message = str(failure.value)
    assert "broken" in message and any(path.name in message for path in paths), message
    table.query("UPDATE c.broken SET b = %s WHERE id = 1", (value(1),))
    assert table.query("SELECT b FROM c.broken WHERE id = 1")[0][0] == value(1)
    expect_the_rest_whole(table, *(row for row in range(ROWS) if row != 1))
    table.stop()
    for path in paths:
        path.with_suffix(".away").rename(path)
    table.start()
    expect_the_rest_whole(table)


def test_every_byte_of_a_small_extent(table):
    """Any flipped bit gives an error or the right bytes, never wrong bytes."""
    table.query("CREATE TABLE c.one (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY INLINE_SIZE=100")
    wanted = payload("one", 400)
    table.query("INSERT INTO c.one VALUES (1, %s)", (wanted,))
    table.restart()
    table.query("SET GLOBAL quarry_cache_size = 0")  # a value that was read twice would be served from memory
    (extent,) = all_extents(table.segments_of("c", "one"))
    errors = 0
    for position in range(extent.offset, extent.offset + extent.size):
        flip_bit(extent.path, position, position % 8)
        try:
            got = table.query("SELECT b FROM c.one")[0][0]
            assert got == wanted, f"wrong bytes after a flip at {position - extent.offset} of the extent"
        except pymysql.err.Error as failure:
            errors += 1
            assert "offset" in str(failure), failure
        flip_bit(extent.path, position, position % 8)
    assert table.query("SELECT b FROM c.one")[0][0] == wanted
    assert errors > extent.size * 3 // 4
