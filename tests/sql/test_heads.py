"""Values that end as a head ends: they must come back as they were, never be taken for a head."""

import time

import pymysql
import pytest

from harness.segments import TRAILER_MAGIC, TRAILER_SIZE_BYTES
from harness.values import payload

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}"
PREFIX_BYTES = 80
INDEXED = f"CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, KEY (b({PREFIX_BYTES}))) ENGINE={{e}}"


def real_trailers(server, schema, table):
    """Trailers as they stand in the table's .ibd file, once InnoDB has written its pages."""
    server.query("SET GLOBAL innodb_max_dirty_pages_pct = 0")
    try:
        path = server.datadir / schema / f"{table}.ibd"
        for _ in range(200):
            data, found, position = path.read_bytes(), [], -1
            while (position := data.find(TRAILER_MAGIC, position + 1)) != -1:
                found.append(data[position + len(TRAILER_MAGIC) - TRAILER_SIZE_BYTES : position + len(TRAILER_MAGIC)])
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"no trailer ever reached {path}")
    finally:
        server.query("SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT")


def check_values(twin, values):
    for row, value in enumerate(values):
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, value))
        assert twin.value("SELECT b FROM t WHERE id = %s", (row,)) == value, f"value {row} of {len(value)} bytes"
    for row, value in enumerate(values):
        twin.run("SELECT id FROM t WHERE b = %s", (value,))
        twin.run("UPDATE t SET b = CONCAT('x', b) WHERE id = %s", (row,))
        twin.run("UPDATE t SET b = %s WHERE id = %s", (value, row))
    twin.run("SELECT id, b, LENGTH(b) FROM t ORDER BY b, id")
    twin.run("INSERT INTO t SELECT id + 1000, CONCAT(b, b) FROM t")
    twin.run("ALTER TABLE t FORCE, ALGORITHM=COPY")
    twin.check()


def indexable(values):
    """A column with an index prefix cannot hold a value shorter than it that ends like a head."""
    return [value for value in values if len(value) >= PREFIX_BYTES or not value.endswith(TRAILER_MAGIC)]


@pytest.mark.quarry_only
def test_too_short_for_the_index_prefix(server):
    """What an index would see of it were the trailer's bytes: it is refused, by name, and the row stays as it was."""
    server.query("CREATE OR REPLACE DATABASE h")
    server.query(INDEXED.format(e="QUARRY"), database="h")
    server.query("INSERT INTO h.t VALUES (1, 'x')")
    for sql in ("INSERT INTO h.t VALUES (2, %s)", "UPDATE h.t SET b = %s"):
        with pytest.raises(pymysql.err.Error, match="ends in the bytes that mark a head.*80"):
            server.query(sql, (bytes(PREFIX_BYTES - 9) + TRAILER_MAGIC,))
    assert server.query("SELECT * FROM h.t") == ((1, b"x"),)
    server.query("UPDATE h.t SET b = %s", (bytes(PREFIX_BYTES - 8) + TRAILER_MAGIC,))
    assert server.query(
        "SELECT COUNT(*) FROM h.t FORCE INDEX (b) WHERE b = %s", (bytes(PREFIX_BYTES - 8) + TRAILER_MAGIC,)
    ) == ((1,),)
    server.query("DROP DATABASE h")


@pytest.mark.parametrize("definition", [TABLE, INDEXED], ids=["plain", "indexed"])
def test_values_that_end_in_the_magic(twin, definition):
    twin.run(definition)
    bodies = [
        b"",
        b"x",
        bytes(55),
        bytes(56),
        bytes(57),
        payload(1, 500),
        payload(2, 4088),
        payload(3, 4089),
        payload(4, 9000),
        payload(5, 70000),
    ]
    endings = [TRAILER_MAGIC, TRAILER_MAGIC * 2, TRAILER_MAGIC[1:], TRAILER_MAGIC[:-1], TRAILER_MAGIC + b"\0"]
    values = [body + ending for body in bodies for ending in endings]
    check_values(twin, values if definition == TABLE else indexable(values))


@pytest.mark.quarry_only
@pytest.mark.parametrize("definition", [TABLE, INDEXED], ids=["plain", "indexed"])
def test_values_that_end_in_real_trailers(twin, definition):
    """A trailer that is valid in this very store, as the end of a value of every size."""
    twin.run("CREATE TABLE source (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")
    for row in range(5):
        twin.run("INSERT INTO source VALUES (%s, %s)", (row, payload(row, 9000 + row)))
    trailers = real_trailers(twin.server, twin.under_test, "source")[:5]
    assert all(len(trailer) == TRAILER_SIZE_BYTES for trailer in trailers)
    twin.run(definition)
    lengths = (0, 1, 100, 4031, 4032, 4033, 9000)
    values = [payload(length, length) + trailer for trailer in trailers[:3] for length in lengths]
    values += [trailers[0][cut:] for cut in (1, 8, 48, 55, 56, 57)]
    values += [trailers[0] * 2, trailers[-1] + trailers[0]]
    check_values(twin, values if definition == TABLE else indexable(values))


@pytest.mark.quarry_only
@pytest.mark.parametrize("seed", range(4))
def test_a_default_cannot_bring_a_head_into_rows(twin, seed):
    """RAND is another value each time that it is asked: what is looked at before an ALTER is not what rows get."""
    twin.run(TABLE)
    values = {payload(row, 9000 + row) for row in range(3)}
    for row, value in enumerate(sorted(values)):
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, value))
    trailer = real_trailers(twin.server, twin.under_test, "t")[0]
    legal = {trailer, b"harmless"}
    for number, comparison in enumerate((f"RAND({seed}) < 0.5", f"RAND({seed}) >= 0.5")):
        default = f"(IF({comparison}, x'{trailer.hex()}', 'harmless'))"
        with twin.connection("main", twin.under_test).cursor() as cursor:
            cursor.execute(f"ALTER TABLE t ADD COLUMN v{number} LONGBLOB DEFAULT {default}")
            cursor.execute(f"SELECT v{number} FROM t")
            assert {value for (value,) in cursor.fetchall()} <= legal
            cursor.execute("UPDATE t SET b = NULL WHERE id = 0")
            cursor.execute("ALTER IGNORE TABLE t MODIFY b LONGBLOB NOT NULL DEFAULT " + default)
            cursor.execute("SELECT b FROM t")
            assert {value for (value,) in cursor.fetchall()} <= legal | values | {b""}
            cursor.execute("ALTER TABLE t MODIFY b LONGBLOB")


@pytest.mark.quarry_only
def test_a_literal_default_that_ends_like_a_head_comes_back_as_it_is(twin):
    twin.run(TABLE)
    for row in range(20):
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, payload(row, 9000 + row)))
    # The server cannot read back every binary default with a quote that it wrote into a table's definition; nor need it here.
    trailer = next(one for one in real_trailers(twin.server, twin.under_test, "t") if not set(one) & set(b"'\\")).hex()
    for number, literal in enumerate((f"x'{trailer}'", f"0x{trailer}", f"_binary x'{trailer}'", f"x'4142{trailer}'")):
        twin.run(f"ALTER TABLE t ADD COLUMN v{number} LONGBLOB DEFAULT {literal}")
        twin.run(f"SELECT id, v{number} FROM t")
    twin.run("INSERT INTO t (id) VALUES (99)")
    twin.run("ALTER TABLE t ADD COLUMN last INT, ALGORITHM=INSTANT")
    twin.check()


def test_text_that_ends_in_the_magic(twin):
    """In utf8mb4 the magic is no text; in latin1 every byte is."""
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGTEXT CHARACTER SET latin1) ENGINE={e}")
    for row, size in enumerate((0, 10, 4088, 9000)):
        value = b"a" * size + TRAILER_MAGIC
        twin.run("INSERT INTO t VALUES (%s, CONVERT(%s USING latin1))", (row, value))
    twin.run("SELECT id, HEX(b) FROM t")
    twin.check()
