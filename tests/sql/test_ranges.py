"""Pieces of values: a SELECT that looks at a column only by SUBSTRING, LEFT, RIGHT or LENGTH reads the parts it needs.

What is not read holds 0xAA here instead of zeros (QUARRY_TEST_FILL_UNREAD), so that a statement that was taken for
one that does not look at it gives something else than the InnoDB twin.
"""

import os
import random

import pymysql
import pytest

from harness.range_statements import RangeStatements
from harness.segments import all_extents, flip_bit
from harness.server import ENGINE, Server
from harness.twin import Twin
from harness.values import SEED, payload, text

STATEMENTS = int(os.environ.get("QUARRY_TEST_RANGE_STATEMENTS", "600"))
MIB = 1 << 20
SIZES = (None, 0, 3, 64, 3999, 4097, 20_000, 32_767, 32_768, 40_000, 65_536, 100_001, 131_072, 300_000)


@pytest.fixture(scope="module")
def lab():
    made = Server("ranges", ["--quarry-recent-cache-bytes=0"] if is_quarry() else [], {"QUARRY_TEST_FILL_UNREAD": "1"})
    yield made.start()
    made.remove()


def is_quarry():
    return ENGINE.upper() == "QUARRY"


def wide_text(seed, size):
    """`size` characters of one to four bytes each."""
    return "".join(random.Random(f"wide-{seed}").choices("ab cdé€ß中😀", k=size))


def rows():
    for number, size in enumerate(SIZES):
        if size is None:
            yield (number, number % 4, None, None, None, None, None)
            continue
        wide = wide_text(number, size // 2)
        yield (
            *(number, number % 4, payload(("range", number), size), wide, text(number, size)),
            *(wide_text(-number, size // 3), '["' + text(number, max(size - 4, 0)) + '"]'),
        )


COLUMNS = (
    "id INT PRIMARY KEY, k INT, b LONGBLOB, u LONGTEXT COLLATE utf8mb4_nopad_bin, l MEDIUMTEXT COLLATE latin1_nopad_bin, "
    "w LONGTEXT COLLATE utf16_nopad_bin, j JSON, KEY (k), KEY (b(20)), KEY (u(10))"
)
# name: (columns besides the common ones, what follows, quarry_part_size, quarry_prefix_size, quarry_codec)
TABLES = {
    "t": ("", "", 4096, 0, "none"),
    "z": ("", "", 5000, 100, "zstd"),
    "p": ("", "PARTITION BY HASH (id) PARTITIONS 3", 4096, 0, "lz4"),
    "g": (", vl INT AS (LENGTH(b)) VIRTUAL, vc VARCHAR(20) AS (RIGHT(u, 10)) VIRTUAL", "", 4096, 0, "none"),
    "h": ("", "WITH SYSTEM VERSIONING", 65536, 0, "none"),
}
OBJECTS = [
    "CREATE TABLE scratch (id INT PRIMARY KEY, x LONGBLOB) ENGINE={e}",
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE VIEW pieces AS SELECT id, SUBSTRING(b, 33000, 50) AS piece, LENGTH(u) AS size FROM t",
    "CREATE PROCEDURE show_piece(p BIGINT, n BIGINT) SELECT id, SUBSTRING(b, p, n), LEFT(u, n) FROM t",
    "CREATE PROCEDURE walk_pieces(p BIGINT) BEGIN DECLARE x LONGBLOB; DECLARE done INT DEFAULT 0; "
    "DECLARE c CURSOR FOR SELECT SUBSTRING(b, p, 9) FROM t; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; "
    "OPEN c; REPEAT FETCH c INTO x; SELECT x; UNTIL done END REPEAT; CLOSE c; END",
    "CREATE FUNCTION piece_of(row INT, p BIGINT, n BIGINT) RETURNS LONGBLOB READS SQL DATA "
    "RETURN (SELECT SUBSTRING(b, p, n) FROM t WHERE id = row)",
    "CREATE FUNCTION bump() RETURNS INT NO SQL BEGIN SET @position = @position + 1; RETURN 3; END",
]


@pytest.fixture(scope="module")
def pair(lab):
    made = Twin(lab, "ranges")
    made.run("SET timestamp = 1767225600")  # the rows of the versioned tables begin at the same moment
    for name, (columns, options, part, prefix, codec) in TABLES.items():
        if is_quarry():
            set_on(made, f"SET quarry_part_size = {part}, quarry_prefix_size = {prefix}, quarry_codec = {codec}")
        made.run(f"CREATE TABLE {name} ({COLUMNS}{columns}) ENGINE={{e}} {options}")
        for row in rows():
            made.run(f"INSERT INTO {name} (id, k, b, u, l, w, j) VALUES (%s, %s, %s, %s, %s, %s, %s)", row)
    for sql in OBJECTS:
        made.run(sql)
    made.run("SET timestamp = DEFAULT")
    yield made
    made.close()


def set_on(twin, sql):
    """On the sessions of the engine under test and of its twin alike, though only one of them minds."""
    for schema in twin.engines:
        with twin.connection("main", schema).cursor() as cursor:
            cursor.execute(sql)


def counter(server, name):
    return int(server.status(name.replace("_", "\\_"))[name])


def test_random_selects_are_the_twins(lab, pair):
    statements = RangeStatements(random.Random(f"ranges-{SEED}"))
    reads = counter(lab, "quarry_range_reads") if is_quarry() else 0
    executed = refused = 0
    pair.run("SET @position = 1, max_error_count = 65535")
    for number in range(STATEMENTS):
        if is_quarry() and number % 50 == 0:
            lab.query(f"SET GLOBAL quarry_cache_size = {0 if number % 100 else 64 * MIB}")
        for sql in statements.one():
            # Some of them are refused by every engine: a number out of range, a table that is not locked.
            outcome = pair.run(sql, error="any", any_plan=True)
            executed += 1
            refused += outcome.error is not None
            assert outcome.error is None or "QUARRY" not in outcome.error[1], (sql, outcome.error)
    pair.check(*TABLES)
    assert refused < executed / 10
    if is_quarry():
        # How many are pushed is chance: about as many as there are statements.
        assert counter(lab, "quarry_range_reads") - reads > STATEMENTS / 4


# Each with the most that it may read of one 4 MiB value in parts of 64 KiB.
PART = 65_536
PUSHED = [
    ("SELECT SUBSTRING(b, 2000001, 65536) FROM m WHERE id = 1", 2 * PART),
    ("SELECT MID(b, 2000001, 10), SUBSTR(b, 2000050, 10) FROM m WHERE id = 1", PART),
    ("SELECT LEFT(b, 10), RIGHT(b, 10), SUBSTRING(b, -300000, 5) FROM m WHERE id = 1", 3 * PART),
    ("SELECT SUBSTRING(b, 4194305, 10), SUBSTRING(b, 0, 10), LEFT(b, 0) FROM m WHERE id = 1", 0),
    ("SELECT LENGTH(b), OCTET_LENGTH(b), BIT_LENGTH(b), CHAR_LENGTH(b), b IS NULL FROM m", 0),
    ("SELECT id FROM m WHERE LENGTH(b) > 10 AND b IS NOT NULL AND SUBSTRING(b, 65537, 3) <> 'abc'", PART),
    ("SELECT UPPER(HEX(LEFT(b, 9))), CASE WHEN LENGTH(b) > 9 THEN SUBSTRING(b, 9, 9) END FROM m", PART),
    ("SELECT id, LEFT(b, 9) AS x FROM m ORDER BY LENGTH(b), SUBSTRING(b, 3, 3), x, id LIMIT 5", 3 * PART),
    ("SELECT SUM(LENGTH(b)), COUNT(*), MAX(LEFT(b, 3)) FROM m", PART),
    ("SELECT LEFT(u, 1000), SUBSTRING(u, 5000, 10), LENGTH(u) FROM m WHERE id = 1", PART),
    ("SELECT LEFT(b, 9) INTO @x FROM m WHERE id = 1", PART),
    ("SELECT LEFT(b, 9) FROM m LOCK IN SHARE MODE", PART),
    ("SELECT LEFT(b, 9) FROM mp WHERE id = 1", PART),
    ("SELECT LEFT(b, 9) FROM mp ORDER BY id", PART),
    ("EXPLAIN EXTENDED SELECT LEFT(b, 9) FROM m WHERE id = 1", PART),
]
WHOLE = [
    "SELECT b FROM m",
    "SELECT LEFT(b, 9), MD5(b) FROM m",
    "SELECT LEFT(b, 9) FROM m WHERE b LIKE '%x'",
    "SELECT LEFT(b, 9) FROM m ORDER BY b, id",
    "SELECT SUBSTRING(b, id, 9) FROM m",
    "SELECT SUBSTRING(b, @nothing, 9) FROM m",
    "SELECT LEFT(b, 3000000) FROM m",
    "SELECT LEFT(b, 9) FROM m FOR UPDATE",
    "SELECT LEFT(b, 9) FROM m GROUP BY id",
    "SELECT DISTINCT LEFT(b, 9) FROM m",
    "SELECT LEFT(b, 9) AS x FROM m HAVING x <> 'a'",
    "SELECT LEFT(b, 9) FROM m UNION SELECT 'a'",
    "SELECT LEFT(b, 9) FROM (SELECT b FROM m LIMIT 9) d",
    "SELECT LEFT(b, 9) FROM mv",
    "SELECT LEFT(b, 9), ROW_NUMBER() OVER (ORDER BY id) FROM m",
    "SELECT LEFT(b, 9) FROM mg",
    "SELECT SUBSTRING(u, -9, 3) FROM m",
    "SELECT CHAR_LENGTH(u) FROM m",
    "SELECT MAX(b) FROM m",
]


@pytest.fixture(scope="module")
def measured(lab):
    """One row of 4 MiB in a plain, a partitioned, and a table with a virtual column; a view."""
    lab.query("CREATE DATABASE IF NOT EXISTS m")
    columns = "id INT PRIMARY KEY, b LONGBLOB, u LONGTEXT CHARACTER SET utf8mb4"
    lab.query("SET GLOBAL quarry_cache_size = 0")
    lab.query(f"CREATE TABLE m.m ({columns}) ENGINE=QUARRY")
    lab.query(f"CREATE TABLE m.mp ({columns}) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 2")
    lab.query(f"CREATE TABLE m.mg ({columns}, g INT AS (LENGTH(b)) VIRTUAL) ENGINE=QUARRY")
    lab.query("CREATE VIEW m.mv AS SELECT * FROM m.m")
    value, wide = payload("measured", 4 * MIB), "é€" * (4 * MIB // 5)
    for table in ("m", "mp", "mg"):
        lab.query(f"INSERT INTO m.{table} (id, b, u) VALUES (1, %s, %s)", (value, wide))
    return value


class Reading:
    """What one statement reads of segments."""

    def __init__(self, server, setting="quarry_range_pushdown = ON"):
        self.server = server
        self.connection = server.connect("m")
        self.cursor = self.connection.cursor()
        self.cursor.execute("SET " + setting)

    def of(self, sql):
        before = counter(self.server, "quarry_file_bytes_read"), counter(self.server, "quarry_range_reads")
        self.cursor.execute(sql)
        rows = self.cursor.fetchall()
        return (
            counter(self.server, "quarry_file_bytes_read") - before[0],
            counter(self.server, "quarry_range_reads") - before[1],
            rows,
        )


@pytest.mark.quarry_only
@pytest.mark.parametrize("sql, limit", PUSHED)
def test_reads_the_parts_it_needs(lab, measured, sql, limit):
    read, ranges, _ = Reading(lab).of(sql)
    index_and_alignment = 16_384 * (1 + limit // PART) if limit else 0
    assert ranges > 0
    assert (limit > 0) <= read <= limit + index_and_alignment


@pytest.mark.quarry_only
@pytest.mark.parametrize("sql", WHOLE)
def test_reads_all_when_more_may_be_looked_at(lab, measured, sql):
    read, ranges, _ = Reading(lab).of(sql)
    assert ranges == 0 and read >= 4 * MIB


@pytest.mark.quarry_only
def test_a_prepared_statement_reads_what_each_execution_asks_for(lab, measured):
    reading = Reading(lab)
    reading.cursor.execute("PREPARE s FROM 'SELECT SUBSTRING(b, ?, ?) FROM m'")
    for position, length, most in ((5, 10, 2 * PART), (2_000_000, 300_000, 7 * PART), (1, 5_000_000, 6 * MIB)):
        reading.cursor.execute(f"SET @p = {position}, @n = {length}")
        read, ranges, rows = reading.of("EXECUTE s USING @p, @n")
        assert rows == ((measured[position - 1 : position - 1 + length],),)
        assert read <= most and (ranges == 1) == (length < 2 * MIB)
    reading.cursor.execute("SET @p = '5'")
    read, ranges, rows = reading.of("EXECUTE s USING @p, @n")
    assert rows == ((measured[4:],),) and ranges == 0 and read > 4 * MIB


@pytest.mark.quarry_only
def test_a_value_asked_for_again_is_cached_when_it_is_not_long(lab, measured):
    """Up to 1 MiB a hit costs less than any range; a longer one is never read whole for the cache's sake."""
    lab.query("CREATE OR REPLACE TABLE m.a (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    lab.query("INSERT INTO m.a VALUES (1, %s)", (measured[:MIB],))
    lab.query(f"SET GLOBAL quarry_cache_size = {64 * MIB}")
    reading = Reading(lab)
    sql, rows = "SELECT SUBSTRING(b, 500001, 10) FROM a", ((measured[500_000:500_010],),)
    read, ranges, found = reading.of(sql)
    assert (ranges, found) == (1, rows) and read < 2 * PART
    read, ranges, found = reading.of(sql)
    assert (ranges, found) == (0, rows) and read > MIB
    assert reading.of(sql) == (0, 0, rows)
    for _ in range(4):
        assert reading.of("SELECT SUBSTRING(b, 500001, 10) FROM m")[1:] == (1, rows)
    assert reading.of("SELECT LENGTH(b) FROM m")[:2] == (0, 1)
    lab.query("SET GLOBAL quarry_cache_size = 0")


@pytest.mark.quarry_only
def test_the_switch_turns_it_off(lab, measured):
    sql = "SELECT SUBSTRING(b, 2000001, 3), LENGTH(b) FROM m"
    expected = ((measured[2_000_000:2_000_003], 4 * MIB),)
    assert Reading(lab).of(sql)[1:] == (1, expected)
    read, ranges, rows = Reading(lab, "quarry_range_pushdown = OFF").of(sql)
    assert read > 4 * MIB and (ranges, rows) == (0, expected)
    assert lab.query("SELECT @@global.quarry_range_pushdown") == ((1,),)
    lab.query("SET GLOBAL quarry_range_pushdown = OFF")
    assert Reading(lab, "@x = 1").of(sql)[1] == 0
    lab.query("SET GLOBAL quarry_range_pushdown = DEFAULT")


@pytest.mark.quarry_only
def test_a_statement_that_follows_reads_all_it_needs(lab, measured):
    """Nothing of one statement's ranges is left for the next on the same table handle."""
    reading = Reading(lab)
    for lock in ("", "LOCK TABLES m READ"):
        if lock:
            reading.cursor.execute(lock)
        for _ in range(2):
            assert reading.of("SELECT LEFT(b, 5), LENGTH(b) FROM m")[1:] == (1, ((measured[:5], 4 * MIB),))
            assert reading.of("SELECT b FROM m")[1:] == (0, ((measured,),))
            assert reading.of("SELECT RIGHT(b, 5) FROM m")[2] == ((measured[-5:],),)
    reading.cursor.execute("UNLOCK TABLES")
    reading.cursor.execute("UPDATE m SET b = CONCAT(LEFT(b, 4194303), RIGHT(b, 1)) WHERE LENGTH(b) > 5")
    assert reading.of("SELECT b FROM m")[2] == ((measured,),)


@pytest.mark.quarry_only
def test_rows_of_a_scan_do_not_show_in_each_other(lab):
    lab.query("CREATE DATABASE IF NOT EXISTS m")
    lab.query("CREATE OR REPLACE TABLE m.s (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PART_SIZE=4096")
    sizes = [random.Random(f"scan-{SEED}").randrange(2 * MIB) for _ in range(40)]
    values = {row: payload(("scan", row), size) for row, size in enumerate(sizes)}
    for row, value in values.items():
        lab.query("INSERT INTO m.s VALUES (%s, %s)", (row, value))
    reads = counter(lab, "quarry_range_reads")
    for _ in range(2):
        found = lab.query("SELECT id, LENGTH(b), SUBSTRING(b, -50000, 300), SUBSTRING(b, 40000, 9000) FROM m.s")
        assert len(found) == 40
        for row, size, first, second in found:
            value = values[row]
            assert size == len(value) and second == value[39_999:48_999]
            assert first == (value[-50_000:][:300] if size >= 50_000 else b"")
    assert counter(lab, "quarry_range_reads") - reads > 40


@pytest.mark.quarry_only
def test_a_damaged_part_is_an_error_where_it_is_read(own_server):
    server = own_server("ranges_damaged", "--quarry-recent-cache-bytes=0", "--quarry-cache-size=0")
    server.query("CREATE DATABASE m")
    server.query("CREATE TABLE m.d (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    value = payload("damaged", MIB)
    server.query("INSERT INTO m.d VALUES (1, %s)", (value,))
    server.restart()
    (extent,) = all_extents(server.segments_of("m", "d"))
    flip_bit(extent.path, extent.first_part_offset + 5 * PART + 1000, 3)
    assert server.query("SELECT SUBSTRING(b, 1, 10), LENGTH(b) FROM m.d") == ((value[:10], MIB),)
    for sql in ("SELECT SUBSTRING(b, 330000, 5) FROM m.d", "SELECT b FROM m.d"):
        with pytest.raises(pymysql.err.MySQLError) as error:
            server.query(sql)
        assert "damaged" in str(error.value) or "corrupt" in str(error.value).lower()
    assert server.query("CHECK TABLE m.d")[-1][2:] == ("error", "Corrupt")
