"""The value cache: what it spares, what it keeps, how it gives way, and that nobody changes what stands in it."""

import threading

import pymysql
import pytest

from harness.segments import all_extents, flip_bit
from harness.server import NO_BACKGROUND, Server
from harness.trace import READS, RING, Trace, thread_of
from harness.values import payload, text

pytestmark = pytest.mark.quarry_only

MIB = 1 << 20
PINNED_BYTES = 16 * MIB


@pytest.fixture(scope="module")
def lab():
    """A server of this module's own that has forgotten what it wrote whenever a test restarts it."""
    made = Server("cache", ["--quarry-recent-cache-bytes=0", *NO_BACKGROUND]).start()
    made.query("CREATE DATABASE k")
    yield made
    made.remove()


def value(table, row, size):
    return payload((table, row), size)


def make(server, table, rows, size, options=""):
    server.query(f"CREATE OR REPLACE TABLE k.{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY {options}")
    for row in range(rows):
        server.query(f"INSERT INTO k.{table} VALUES (%s, %s)", (row, value(table, row, size)))
    server.restart()
    server.query("SELECT COUNT(*) FROM k." + table)


def read(server, table, row):
    return server.query(f"SELECT b FROM k.{table} WHERE id = %s", (row,))[0][0]


def counts(server):
    return {name[len("quarry_cache_") :]: int(number) for name, number in server.status("quarry\\_cache%").items()}


def segment_reads(server, sql):
    """(rows, reads of segments by the thread that serves us) of a statement."""
    connection = server.connect("k")
    with connection.cursor() as cursor:
        thread = thread_of(connection)
        with Trace(server, (*READS, *RING)) as trace:
            cursor.execute(sql)
            rows = cursor.fetchall()
    connection.close()
    return rows, trace.of(READS, ".qseg") + trace.of(RING, thread=thread)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_the_second_read_asks_no_segment(lab, codec):
    make(lab, "second", 3, 100_000, f"CODEC={codec}")
    sql = "SELECT b FROM second WHERE id = 1"
    rows, calls = segment_reads(lab, sql)
    assert rows[0][0] == value("second", 1, 100_000) and calls
    rows, calls = segment_reads(lab, sql)
    assert rows[0][0] == value("second", 1, 100_000) and not calls, calls
    assert counts(lab)["hits"] == 1 and counts(lab)["misses"] == 1 and counts(lab)["admissions"] == 1


def test_in_a_full_cache_the_third_read_asks_no_segment(lab):
    make(lab, "full", 30, 60_000)
    lab.query(f"SET GLOBAL quarry_cache_size = {MIB}")
    for row in range(1, 30):
        read(lab, "full", row)
    admitted = counts(lab)["admissions"]
    assert 10 < admitted < 18 and counts(lab)["evictions"] == 0, "what fits, and nothing had to go for it"
    sql = "SELECT b FROM full WHERE id = 0"
    for first_two in range(2):
        rows, calls = segment_reads(lab, sql)
        assert rows[0][0] == value("full", 0, 60_000) and calls, first_two
    rows, calls = segment_reads(lab, sql)
    assert rows[0][0] == value("full", 0, 60_000) and not calls, calls
    assert counts(lab)["admissions"] == admitted + 1 and counts(lab)["evictions"] == 1
    lab.query(f"SET GLOBAL quarry_cache_size = {PINNED_BYTES}")


def test_size_is_shown_and_moves(lab):
    assert lab.query("SELECT @@global.quarry_cache_size") == ((PINNED_BYTES,),)
    make(lab, "moves", 4, 50_000)
    for _ in range(2):
        for row in range(4):
            read(lab, "moves", row)
    used = counts(lab)["bytes"]
    assert 4 * 50_000 <= used <= 4 * 58_000
    cached = "SELECT cached_bytes FROM information_schema.quarry_tables WHERE table_name = 'moves'"
    assert lab.query(cached) == ((used,),)
    lab.query("SET GLOBAL quarry_cache_size = 0")
    assert counts(lab)["bytes"] == 0 and lab.query(cached) == ((0,),)
    hits = counts(lab)["hits"]
    for _ in range(3):
        assert read(lab, "moves", 2) == value("moves", 2, 50_000)
    assert counts(lab)["hits"] == hits
    lab.query(f"SET GLOBAL quarry_cache_size = {PINNED_BYTES}")
    for _ in range(3):
        assert read(lab, "moves", 2) == value("moves", 2, 50_000)
    assert counts(lab)["hits"] == hits + 2
    with pytest.raises(pymysql.err.MySQLError) as error:
        lab.query("SET GLOBAL quarry_cache_size = 'much'")
    assert error.value.args[0] == 1232
    with pytest.raises(pymysql.err.MySQLError) as error:
        lab.query("SET SESSION quarry_cache_size = 1")
    assert error.value.args[0] == 1229


def test_a_scan_puts_nothing_out(lab):
    make(lab, "big", 200, 60_000)
    make(lab, "hot", 10, 60_000)
    lab.query(f"SET GLOBAL quarry_cache_size = {4 * MIB}")
    for _ in range(3):
        for row in range(10):
            assert read(lab, "hot", row) == value("hot", row, 60_000)
    hot, room = counts(lab), 4 * MIB // 60_000
    admissions = []
    for _ in range(2):
        assert lab.query("SELECT SUM(LENGTH(b)), COUNT(DISTINCT MD5(b)) FROM k.big") == ((200 * 60_000, 200),)
        admissions.append(counts(lab)["admissions"] - hot["admissions"])
    assert room / 2 < admissions[0] < room and admissions[1] == admissions[0], "what there was room for"
    assert counts(lab)["evictions"] == hot["evictions"]
    for row in (0, 9):
        _, calls = segment_reads(lab, f"SELECT b FROM hot WHERE id = {row}")
        assert not calls
    lab.query(f"SET GLOBAL quarry_cache_size = {PINNED_BYTES}")


def test_an_update_leaves_a_hot_value_hot(lab):
    make(lab, "updated", 2, 50_000, "CODEC=lz4")
    for _ in range(3):
        read(lab, "updated", 0)
    for row in (0, 1):
        lab.query("UPDATE k.updated SET b = %s WHERE id = %s", (value("updated", 10 + row, 60_000), row))
    assert counts(lab)["carried"] == 1, "the other row's value was read by nobody"
    rows, calls = segment_reads(lab, "SELECT b FROM updated WHERE id = 0")
    assert rows[0][0] == value("updated", 10, 60_000) and not calls
    assert read(lab, "updated", 1) == value("updated", 11, 60_000)
    lab.query("SET GLOBAL quarry_cache_size = 0")
    assert read(lab, "updated", 0) == value("updated", 10, 60_000), "in the segment it is the same"
    lab.query(f"SET GLOBAL quarry_cache_size = {PINNED_BYTES}")


def test_a_rollback_leaves_the_old_value_hot(lab):
    lab.query("CREATE OR REPLACE TABLE k.undone (id INT PRIMARY KEY, u INT UNIQUE, b LONGBLOB) ENGINE=QUARRY")
    for row in (0, 1):
        lab.query("INSERT INTO k.undone VALUES (%s, %s, %s)", (row, row, value("undone", row, 50_000)))
    lab.restart()
    for _ in range(4):
        read(lab, "undone", 0)
    other = value("undone", 2, 50_000)
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        with pytest.raises(pymysql.err.IntegrityError):
            cursor.execute("UPDATE undone SET u = 1, b = %s WHERE id = 0", (other,))
        cursor.execute("BEGIN")
        cursor.execute("UPDATE undone SET b = %s WHERE id = 0", (other,))
        before = counts(lab)["hits"]
        cursor.execute("SELECT b FROM undone WHERE id = 0")
        assert cursor.fetchall() == ((other,),) and counts(lab)["hits"] == before + 1
        assert read(lab, "undone", 0) == value("undone", 0, 50_000), "nobody else sees it"
        cursor.execute("ROLLBACK")
    connection.close()
    assert counts(lab)["carried"] == 2
    rows, calls = segment_reads(lab, "SELECT b FROM undone WHERE id = 0")
    assert rows[0][0] == value("undone", 0, 50_000) and not calls, "what was there before is there still"


def test_check_table_sees_the_segment_behind_a_cached_value(lab):
    make(lab, "check_me", 3, 50_000)
    for _ in range(2):
        for row in range(3):
            read(lab, "check_me", row)
    (extent, *_) = all_extents(lab.segments_of("k", "check_me"))
    flip_bit(extent.path, extent.first_part_offset + 1000, 3)
    for row in range(3):
        assert read(lab, "check_me", row) == value("check_me", row, 50_000)
    rows = lab.query("CHECK TABLE k.check_me")
    assert rows[-1][2:] == ("error", "Corrupt"), rows
    lab.query("SET GLOBAL quarry_cache_size = 0")
    with pytest.raises(pymysql.err.MySQLError):
        lab.query("SELECT b FROM k.check_me")
    lab.query(f"SET GLOBAL quarry_cache_size = {PINNED_BYTES}")
    lab.query("DROP TABLE k.check_me")


STATEMENTS = [
    "SELECT {function}(v) FROM t WHERE id = 1",
    "SELECT {function}(CONCAT(v, 'x')), {function}(v) FROM t WHERE id = 1 ORDER BY {function}(v)",
    "UPDATE t SET w = {function}(v) WHERE id = 1",
]
FUNCTIONS = "UPPER LOWER REVERSE TRIM LTRIM QUOTE HEX TO_BASE64 MD5 COMPRESS SOUNDEX JSON_QUOTE ENCRYPT_ LENGTH".split()
OTHER_STATEMENTS = [
    "SELECT INSERT(v, 3, 5, 'xyz'), REPLACE(v, 'a', 'bb'), REGEXP_REPLACE(v, '[aeiou]', '-'), LEFT(v, 9), RPAD(v, 40000, '-') FROM t",
    "SELECT AES_ENCRYPT(v, 'k'), ENCODE(v, 'k'), DECODE(v, 'k'), DES_ENCRYPT(v), CONVERT(v USING ucs2), v COLLATE utf8mb4_bin FROM t",
    "SELECT v, COUNT(*) FROM t GROUP BY v ORDER BY v",
    "SELECT DISTINCT v FROM t ORDER BY v DESC",
    "SELECT GROUP_CONCAT(v ORDER BY id SEPARATOR '') FROM t",
    "SELECT a.v, b.v FROM t a JOIN t b ON a.id <= b.id ORDER BY b.v",
    "SELECT MIN(v), MAX(v), FIRST_VALUE(v) OVER (ORDER BY id) FROM t",
    "SELECT * FROM (SELECT v FROM t UNION SELECT CONCAT(v, 'y') FROM t) u",
    "SELECT JSON_SET(j, '$.a', 'new'), JSON_REMOVE(j, '$.a'), JSON_COMPACT(j), JSON_VALUE(j, '$.a') FROM t",
    "UPDATE t SET v = v WHERE id = 1",
    "UPDATE t SET w = CONCAT(v, w), v = v",
    "UPDATE t a JOIN t b ON a.id = b.id + 1 SET a.w = UPPER(b.v)",
    "INSERT INTO t SELECT id + 100, v, w, j FROM t WHERE id < 100 ON DUPLICATE KEY UPDATE w = CONCAT(VALUES(v), t.v)",
    "REPLACE INTO t SELECT id + 100, REVERSE(v), w, j FROM t WHERE id < 100",
    "DELETE FROM t WHERE id >= 100 AND v > 'a'",
]


def test_nobody_writes_to_a_cached_value(lab):
    """Values are lent to the server as they stand in the cache: after statements of every kind they are what they were."""
    lab.query(
        "CREATE OR REPLACE TABLE k.t (id INT PRIMARY KEY, v LONGTEXT, w LONGTEXT, j JSON) ENGINE=QUARRY "
        "CHARACTER SET utf8mb4 INLINE_SIZE=100"
    )
    kept = {row: text(("kept", row), 30_000) for row in (1, 2, 3)}
    json = '{"a": "' + "x" * 20_000 + '", "b": [1, 2, 3]}'
    for row, content in kept.items():
        lab.query("INSERT INTO k.t VALUES (%s, %s, 'w', %s)", (row, content, json))
    connection = lab.connect("k")
    executed = 0
    with connection.cursor() as cursor:
        for _ in range(3):
            cursor.execute("SELECT v, j FROM t")
            cursor.fetchall()
        everything = [s.format(function=function) for function in FUNCTIONS for s in STATEMENTS] + OTHER_STATEMENTS
        for statement in everything:
            try:
                cursor.execute(statement)
                cursor.fetchall()
                executed += 1
            except pymysql.err.MySQLError as error:
                assert "QUARRY" not in str(error), statement
            hits = counts(lab)["hits"]
            cursor.execute("SELECT id, v, j FROM t WHERE id < 100")
            for row, content, document in cursor.fetchall():
                assert (content, document) == (kept[row], json), f"row {row} after {statement}"
            assert counts(lab)["hits"] > hits
    connection.close()
    assert executed >= len(everything) - len(STATEMENTS) - 2, "ENCRYPT_ is no function, and one or two may be out of date"


def test_handler_statements_and_cursors_keep_what_they_show(lab):
    """A value stays while its row is shown, whatever becomes of the cache."""
    make(lab, "held", 5, 40_000)
    for _ in range(2):
        for row in range(5):
            read(lab, "held", row)
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        cursor.execute("HANDLER held OPEN")
        for row in range(5):
            cursor.execute("HANDLER held READ NEXT" if row else "HANDLER held READ FIRST")
            lab.query("SET GLOBAL quarry_cache_size = " + ("0" if row % 2 == 0 else str(MIB)))
            assert cursor.fetchall()[0][1] == value("held", row, 40_000)
        cursor.execute("HANDLER held CLOSE")
    connection.close()
    lab.query("SET GLOBAL quarry_cache_size = 0")
    assert counts(lab)["bytes"] == 0
    lab.query(f"SET GLOBAL quarry_cache_size = {PINNED_BYTES}")


def test_readers_beside_writers_and_a_moving_limit(lab):
    rows = 40
    make(lab, "busy", rows, 30_000)
    stop = threading.Event()
    failures = []

    def run(work):
        try:
            connection = lab.connect("k")
            with connection.cursor() as cursor:
                step = 0
                while not stop.is_set():
                    work(cursor, step)
                    step += 1
            connection.close()
        except Exception as error:  # noqa: BLE001: whatever it is, the test must say so
            failures.append(repr(error))
            stop.set()

    def read_some(cursor, step):
        cursor.execute("SELECT id, MD5(b), b FROM busy WHERE id BETWEEN %s AND %s", (step % rows, step % rows + 3))
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT b) FROM busy WHERE MD5(b) <> MD5(CONCAT(b))")
        if cursor.fetchall() != ((0, 0),):
            failures.append("a value changed while it was read")

    def change_some(cursor, step):
        row = step * 7 % rows
        cursor.execute("UPDATE busy SET b = %s WHERE id = %s", (value("busy", row, 30_000), row))
        cursor.execute("SELECT b FROM busy WHERE id = %s", (row,))
        if cursor.fetchall()[0][0] != value("busy", row, 30_000):
            failures.append(f"row {row} is not what was written")
        if step >= 150:
            stop.set()

    def move_limit(cursor, step):
        cursor.execute("SET GLOBAL quarry_cache_size = %s", ((0, MIB, 8 * MIB, 300_000)[step % 4],))
        stop.wait(0.01)

    threads = [threading.Thread(target=run, args=(work,)) for work in (read_some, read_some, change_some, move_limit)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    lab.query(f"SET GLOBAL quarry_cache_size = {PINNED_BYTES}")
    assert [row[0] for row in lab.query("SELECT b FROM k.busy ORDER BY id")] == [
        value("busy", row, 30_000) for row in range(rows)
    ]
