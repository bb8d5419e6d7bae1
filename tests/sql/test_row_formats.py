"""InnoDB's row formats under QUARRY: where each keeps inline parts, references and values that stay in the row.

The table of docs/use/options.md, 'Row formats', says the same in words.
"""

import time

import pymysql
import pytest

from harness.values import payload, text

ROW_TOO_LARGE = 1118
# FIL_PAGE_TYPE_BLOB, and the two of a compressed table.
OVERFLOW_PAGE_TYPES = (10, 11, 12)
POINTER_BYTES, ANTELOPE_BYTES = 20, 768
FORMATS = ["REDUNDANT", "COMPACT", "DYNAMIC", "COMPRESSED KEY_BLOCK_SIZE=8"]
every_format = pytest.mark.parametrize("row_format", FORMATS)


@every_format
def test_values_and_inline_parts_of_every_length_read_back(twin, row_format):
    """Heads, inline values and values in overflow pages, written, grown, shrunk and indexed."""
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=256', "
        "b LONGTEXT COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=29736', v LONGBLOB, KEY (a(40))) "
        f"ENGINE={{e}} ROW_FORMAT={row_format}"
    )
    sizes = [0, 1, 255, 256, 257, 320, 321, 767, 768, 769, 788, 4096, 8000, 9000, 29736, 29801, 70000]
    for row, size in enumerate(sizes):
        twin.run("INSERT INTO t VALUES (%s, %s, %s, %s)", (row, payload(row, size), text(row, size), payload(-row, size)))
    twin.check()
    twin.run("UPDATE t SET a = CONCAT(a, a), b = LEFT(b, LENGTH(b) / 3), v = b WHERE id % 2 = 0")
    twin.run("UPDATE t SET a = LEFT(a, 300), v = NULL WHERE id % 3 = 0")
    twin.check()
    twin.rows("SELECT id, LEFT(a, 200), SUBSTRING(b, 700, 100), LENGTH(v) FROM t WHERE a LIKE 'a%' ORDER BY id")
    twin.rows("SELECT id FROM t FORCE INDEX (a) WHERE a < 'p' ORDER BY a, id")


@pytest.fixture
def schema(server):
    server.query("CREATE OR REPLACE DATABASE f")
    yield server
    server.query("DROP DATABASE f")


def overflow_pages(server, row_format):
    """In the table's file, once InnoDB has written all of it."""
    server.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    until = time.monotonic() + 60
    while int(server.status("Innodb_buffer_pool_pages_dirty")["innodb_buffer_pool_pages_dirty"]) > 0:
        assert time.monotonic() < until, "InnoDB keeps dirty pages"
        time.sleep(0.02)
    server.query("SET GLOBAL innodb_max_dirty_pages_pct = 90")
    pages = (server.datadir / "f" / "t.ibd").read_bytes()
    size = 8192 if "KEY_BLOCK_SIZE=8" in row_format else 16384
    types = [int.from_bytes(pages[at + 24 : at + 26], "big") for at in range(0, len(pages), size)]
    return sum(types.count(overflow) for overflow in OVERFLOW_PAGE_TYPES)


def make(server, row_format, columns, options=""):
    definitions = ", ".join(f"c{number} LONGBLOB" for number in range(columns))
    server.query(
        "SET STATEMENT innodb_strict_mode = OFF FOR "
        f"CREATE OR REPLACE TABLE f.t (id INT PRIMARY KEY, {definitions}) ENGINE=QUARRY ROW_FORMAT={row_format} {options}"
    )


def insert(server, columns, size, row=1):
    values = [payload((row, number), size) for number in range(columns)]
    server.query(f"INSERT INTO f.t VALUES (%s{', %s' * columns})", (row, *values))


@pytest.mark.quarry_only
@every_format
def test_strict_mode_counts_what_a_moved_field_leaves_behind(schema, row_format):
    columns = ", ".join(f"c{number} LONGBLOB" for number in range(11))
    statement = f"CREATE TABLE f.t (id INT PRIMARY KEY, {columns}) ENGINE=QUARRY INLINE_SIZE=0 ROW_FORMAT={row_format}"
    if row_format in ("REDUNDANT", "COMPACT"):
        with pytest.raises(pymysql.err.Error, match="Row size too large"):
            schema.query(statement)
    else:
        schema.query(statement)


@pytest.mark.quarry_only
@every_format
def test_a_reference_stays_in_its_page(schema, row_format):
    """Thirty long values of one row take 30 references, and no format moves one."""
    make(schema, row_format, 30)
    insert(schema, 30, 100_000)
    assert overflow_pages(schema, row_format) == 0


@pytest.mark.quarry_only
@every_format
@pytest.mark.parametrize(
    "prefix", [pytest.param(256, marks=pytest.mark.nightly), 768, pytest.param(3000, marks=pytest.mark.nightly)]
)
def test_inline_parts_of_less_than_half_a_page_stay_in_it(schema, row_format, prefix):
    make(schema, row_format, 1, f"INLINE_SIZE={prefix} PREFIX_SIZE={prefix}")
    for row in range(10):
        insert(schema, 1, 50_000, row)
    assert overflow_pages(schema, row_format) == 0


@pytest.mark.quarry_only
@every_format
def test_beyond_half_a_page_the_longest_field_moves(schema, row_format):
    """A page for each row: it holds the longer of two inline parts with its reference, or what follows its 768 bytes."""
    make(schema, row_format, 2, "INLINE_SIZE=5000 PREFIX_SIZE=5000")
    for row in range(10):
        insert(schema, 2, 50_000, row)
    assert overflow_pages(schema, row_format) == 10


@pytest.mark.quarry_only
@every_format
def test_what_a_moved_field_leaves_behind(schema, row_format):
    """REDUNDANT and COMPACT keep 768 bytes of each: eleven are more than half a page. The others keep 20 bytes."""
    keeps = ANTELOPE_BYTES if row_format in ("REDUNDANT", "COMPACT") else 0
    assert 11 * (keeps + POINTER_BYTES) > 8126 or not keeps
    for size, options in ((5000, "INLINE_SIZE=5000"), (50_000, "INLINE_SIZE=5000 PREFIX_SIZE=5000")):
        make(schema, row_format, 11, options)
        if keeps:
            with pytest.raises(pymysql.err.Error, match="Row size too large") as failure:
                insert(schema, 11, size)
            assert failure.value.args[0] == ROW_TOO_LARGE
        else:
            insert(schema, 11, size)
    # As references the same values fit every format.
    make(schema, row_format, 11, "INLINE_SIZE=256")
    insert(schema, 11, 5000)
    assert overflow_pages(schema, row_format) == 0


@pytest.mark.quarry_only
def test_compressed_pages_hold_inline_values_and_parts_compressed(schema):
    """What stays in the row, of text, takes half the file; segments are CODEC's to compress."""
    sizes = {}
    for row_format in FORMATS[2:]:
        make(schema, row_format, 1, "INLINE_SIZE=3000 PREFIX_SIZE=3000")
        for row in range(200):
            schema.query("INSERT INTO f.t VALUES (%s, %s)", (row, text(row, 20_000)))
        schema.query("ANALYZE TABLE f.t")
        ((sizes[row_format], stored),) = schema.query(
            "SELECT data_length - live_bytes, live_bytes FROM information_schema.tables t "
            "JOIN information_schema.quarry_tables q USING (table_schema, table_name) WHERE table_schema = 'f' "
            "AND q.state = 'BOUND'"
        )
        assert stored >= 200 * 17_000
    dynamic, compressed = sizes.values()
    assert dynamic > 200 * 3000 and compressed < 0.7 * dynamic
