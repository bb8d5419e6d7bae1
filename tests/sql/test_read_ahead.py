"""Reading ahead (quarry_batch_size): which scans have their next values read by other threads, which do not, and that
nobody can tell but by the time and the counters."""

import threading
import time

import pymysql
import pytest

from harness.segments import all_extents, flip_bit
from harness.server import NO_BACKGROUND, Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

ROWS = 60
SIZE = 40_000  # read at once, and long enough to be remembered as read
WINDOW = 16
# Longer values are written past the chunk that stays in memory while it fills.
PRIVATE = "quarry_write_batch_bytes = 16384"
COLUMNS = "id INT PRIMARY KEY, k INT, g INT, b LONGBLOB, KEY (k), KEY (g)"


@pytest.fixture(scope="module")
def lab():
    """No value is in memory before it was read; what was just made was never read."""
    made = Server("ahead", ["--quarry-recent-cache-bytes=0", "--quarry-cache-size=0", *NO_BACKGROUND]).start()
    made.query("CREATE DATABASE k")
    made.query(f"CREATE TABLE k.base ({COLUMNS}) ENGINE=QUARRY")
    connection = made.connect("k")
    with connection.cursor() as cursor:
        rows = [(row, row * 7 % ROWS, row % 3, payload(row, SIZE)) for row in range(ROWS)]
        cursor.executemany("INSERT INTO base VALUES (%s, %s, %s, %s)", rows)
        cursor.execute("CREATE TABLE groups (g INT PRIMARY KEY) ENGINE=InnoDB")
        cursor.execute("INSERT INTO groups VALUES (0), (1), (2)")
        connection.commit()
    connection.close()
    yield made
    made.remove()


@pytest.fixture(autouse=True)
def alive(lab):
    yield
    lab.assert_alive()


def fresh(server, name, columns=COLUMNS, options="", values="id, k, g, b"):
    """A copy of `base` that nobody has read, its values in no order of the rows."""
    server.query(f"CREATE OR REPLACE TABLE {name} ({columns}) ENGINE=QUARRY {options}", database="k")
    names = values if values == "id, k, g, b" else ""
    into = f"{name} ({names})" if names else name
    insert = f"INSERT INTO {into} SELECT {values} FROM base ORDER BY id * 37 % 61"
    server.query(f"SET STATEMENT {PRIVATE} FOR {insert}", database="k")


def counts(server):
    names = ("values", "bytes", "unused")
    status = {name.lower(): int(number) for name, number in server.status("quarry\\_read\\_ahead%").items()}
    return {name: status[f"quarry_read_ahead_{name}"] for name in names}


def grown(server, before):
    after = counts(server)
    return {name: after[name] - before[name] for name in after}


def run(server, statements, batch=None):
    """The rows of the last of `statements`, in one session."""
    connection = server.connect("k")
    try:
        with connection.cursor() as cursor:
            if batch is not None:
                cursor.execute(f"SET quarry_batch_size = {batch}")
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall()
            return rows
    finally:
        connection.close()


def both_ways(server, sql, columns=COLUMNS, options="", values="id, k, g, b", before=()):
    """The rows of `sql` one by one and read ahead, which are the same; and what was read ahead."""
    found = []
    for batch in (0, 4 << 20):
        fresh(server, "t", columns, options, values)
        start = counts(server)
        statements = [sql] if isinstance(sql, str) else list(sql)
        found.append((run(server, [*before, *statements], batch), grown(server, start)))
    (plain, nothing), (ahead, counted) = found
    assert plain == ahead
    assert nothing["values"] == 0
    return ahead, counted


SCANS = {
    "table": "SELECT id, b FROM t",
    "primary key": "SELECT id, b FROM t ORDER BY id",
    "primary key, backwards": "SELECT id, b FROM t ORDER BY id DESC",
    "index": "SELECT k, b FROM t FORCE INDEX (k) ORDER BY k",
    "index, backwards": "SELECT k, b FROM t FORCE INDEX (k) ORDER BY k DESC",
    "range of the primary key": "SELECT id, b FROM t WHERE id >= 10 AND id < 50 ORDER BY id",
    "range, backwards": "SELECT id, b FROM t WHERE id >= 10 AND id < 50 ORDER BY id DESC",
    "range of an index": "SELECT k, b FROM t FORCE INDEX (k) WHERE k BETWEEN 5 AND 55 ORDER BY k",
    "rows of one key": "SELECT id, b FROM t FORCE INDEX (g) WHERE g = 1 ORDER BY id",
    "rows of one key, backwards": "SELECT id, b FROM t FORCE INDEX (g) WHERE g = 1 ORDER BY g DESC, id DESC",
    "aggregate": "SELECT COUNT(*), MIN(MD5(b)), MAX(MD5(b)) FROM t",
    "filter": "SELECT id FROM t WHERE MD5(b) LIKE '%a'",
    "join, inner table": "SELECT STRAIGHT_JOIN o.g, t.id, t.b FROM groups o JOIN t FORCE INDEX (g) ON t.g = o.g "
    "ORDER BY o.g, t.id",
    "derived": "SELECT * FROM (SELECT id, b FROM t ORDER BY id LIMIT 50) AS d",
    "subquery": "SELECT g, (SELECT MIN(MD5(b)) FROM t WHERE t.g = o.g) FROM groups o",
    "union": "SELECT id, b FROM t WHERE id < 30 UNION ALL SELECT id, b FROM t WHERE id >= 30 ORDER BY id",
    "itself": "SELECT STRAIGHT_JOIN x.id, y.id, MD5(x.b), MD5(y.b) FROM t x JOIN t y WHERE x.id < 7 "
    "ORDER BY x.id, y.id",
}


@pytest.mark.parametrize("sql", SCANS.values(), ids=SCANS.keys())
def test_a_scan_is_read_ahead(lab, sql):
    _, counted = both_ways(lab, sql)
    assert counted["values"] >= 5, counted
    assert counted["bytes"] == counted["values"] * SIZE
    assert counted["unused"] <= WINDOW


def test_nearly_all_of_a_scan_is(lab):
    """But the first few; and of the others those that the reader came to before a thread did."""
    _, counted = both_ways(lab, "SELECT id, b FROM t")
    assert ROWS // 4 <= counted["values"] <= ROWS - 4
    assert counted["unused"] == 0


PARTITIONS = {
    "key": "PARTITION BY KEY (id) PARTITIONS 3",
    "range": "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (30), PARTITION z VALUES LESS THAN MAXVALUE)",
}


@pytest.mark.parametrize("sql", ["table", "primary key", "primary key, backwards", "range of an index"])
@pytest.mark.parametrize("options", PARTITIONS.values(), ids=PARTITIONS.keys())
def test_partitions(lab, options, sql):
    rows, counted = both_ways(lab, SCANS[sql] if sql != "table" else "SELECT id, b FROM t", options=options)
    assert len(rows) == (51 if "range" in sql else ROWS)
    assert counted["values"] >= 5


@pytest.mark.parametrize("kind", ["VIRTUAL", "STORED"])
def test_generated_columns(lab, kind):
    columns = f"{COLUMNS}, s INT AS (k + 1) VIRTUAL, m CHAR(32) AS (MD5(b)) {kind}, KEY (s)"
    for sql in ("SELECT id, m, b FROM t ORDER BY id", "SELECT s, m, b FROM t FORCE INDEX (s) WHERE s > 3 AND s < 55"):
        _, counted = both_ways(lab, sql, columns)
        assert counted["values"] >= 5


def test_several_columns_nulls_and_short_values(lab):
    columns = "id INT PRIMARY KEY, b LONGBLOB, c LONGBLOB NOT NULL, d LONGTEXT"
    values = "id, IF(id % 5 = 4, NULL, b), IF(id % 7 = 6, 'short', REVERSE(b)), IF(id % 11 = 3, TO_BASE64(b), NULL)"
    for sql in ("SELECT * FROM t", "SELECT id, c FROM t ORDER BY id DESC", "SELECT d, b FROM t"):
        _, counted = both_ways(lab, sql, columns, values=values)
        assert counted["values"] >= 5


OPTIONS = ["CODEC=lz4", "CODEC=zstd PART_SIZE=8192", "PREFIX_SIZE=300", "ROW_FORMAT=COMPRESSED"]


@pytest.mark.parametrize("options", OPTIONS)
def test_table_options(lab, options):
    _, counted = both_ways(lab, "SELECT id, b FROM t ORDER BY id", options=options)
    assert counted["values"] >= 5


def test_prepared_statements_and_routines(lab):
    lab.query("DROP PROCEDURE IF EXISTS scan", database="k")
    lab.query("DROP FUNCTION IF EXISTS digest", database="k")
    lab.query(
        "CREATE PROCEDURE scan() BEGIN DECLARE d INT DEFAULT 0; DECLARE m TEXT DEFAULT ''; DECLARE v LONGBLOB; "
        "DECLARE c CURSOR FOR SELECT b FROM t ORDER BY id; DECLARE CONTINUE HANDLER FOR NOT FOUND SET d = 1; OPEN c; "
        "l: LOOP FETCH c INTO v; IF d THEN LEAVE l; END IF; SET m = MD5(CONCAT(m, MD5(v))); END LOOP; CLOSE c; "
        "SELECT m; END",
        database="k",
    )
    lab.query(
        "CREATE FUNCTION digest() RETURNS TEXT READS SQL DATA BEGIN DECLARE m TEXT; "
        "SELECT BIT_XOR(CRC32(b)) INTO m FROM t; RETURN m; END",
        database="k",
    )
    prepared = ["PREPARE p FROM 'SELECT id, b FROM t WHERE id > ? ORDER BY id'", "SET @a = 5"]
    for sql in ([*prepared, "EXECUTE p USING @a"], "CALL scan()", "SELECT digest()"):
        rows, counted = both_ways(lab, sql)
        assert rows and counted["values"] >= 5, sql


def test_under_lock_tables_a_plain_select_is_a_consistent_read(lab):
    for kind in ("READ", "WRITE"):
        rows, counted = both_ways(lab, "SELECT id, b FROM t ORDER BY id", before=[f"LOCK TABLES t {kind}"])
        assert len(rows) == ROWS and counted["values"] >= 5


NOT_AHEAD = {
    "for update": ["SELECT id, b FROM t FOR UPDATE"],
    "in share mode": ["SELECT id, b FROM t LOCK IN SHARE MODE"],
    "serializable": ["SET tx_isolation = 'SERIALIZABLE'", "BEGIN", "SELECT id, b FROM t"],
    "update": ["UPDATE t SET b = REVERSE(b)"],
    "update by its value": ["UPDATE t SET k = 1 WHERE MD5(b) LIKE '%a'"],
    "delete": ["DELETE FROM t WHERE MD5(b) LIKE '%a'"],
    "insert select": ["CREATE OR REPLACE TABLE u (b LONGBLOB) ENGINE=QUARRY", "INSERT INTO u SELECT b FROM t"],
    "create select": ["CREATE OR REPLACE TABLE u ENGINE=QUARRY AS SELECT b FROM t"],
    "alter": ["ALTER TABLE t FORCE, ALGORITHM=COPY"],
    "check": ["CHECK TABLE t"],
    "checksum": ["CHECKSUM TABLE t"],
    "keys": ["SELECT id, k FROM t ORDER BY k"],
    "lengths": ["SELECT id, LENGTH(b) FROM t"],
    "pieces": ["SELECT id, SUBSTRING(b, 100, 10) FROM t"],
    "handler": ["HANDLER t OPEN", "HANDLER t READ FIRST LIMIT 50"],
    "three rows": ["SELECT id, b FROM t LIMIT 3"],
    "off": ["SET quarry_batch_size = 0", "SELECT id, b FROM t"],
    "less than a value": [f"SET quarry_batch_size = {SIZE - 1}", "SELECT id, b FROM t"],
}


@pytest.mark.parametrize("statements", NOT_AHEAD.values(), ids=NOT_AHEAD.keys())
def test_what_is_not_read_ahead(lab, statements):
    fresh(lab, "t")
    before = counts(lab)
    run(lab, statements)
    assert grown(lab, before)["values"] == 0


def test_point_selects_and_short_values_are_not(lab):
    fresh(lab, "t")
    fresh(lab, "s", values="id, k, g, LEFT(b, 2000)")
    before = counts(lab)
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        for row in range(ROWS):
            cursor.execute("SELECT b FROM t WHERE id = %s", (row,))
            assert cursor.fetchall() == ((payload(row, SIZE),),)
    connection.close()
    assert len(run(lab, ["SELECT id, b FROM s"])) == ROWS
    assert grown(lab, before)["values"] == 0


def test_a_temporary_table_is_not(lab):
    before = counts(lab)
    make = f"CREATE TEMPORARY TABLE tt ({COLUMNS}) ENGINE=QUARRY"
    assert len(run(lab, [make, "INSERT INTO tt SELECT * FROM base", "SELECT id, b FROM tt"])) == ROWS
    assert grown(lab, before)["values"] <= ROWS - 4, "of base at most"


def test_what_was_read_lately_is_not_read_ahead(lab):
    fresh(lab, "t")
    run(lab, ["SELECT id, b FROM t"])
    before = counts(lab)
    run(lab, ["SELECT id, b FROM t"])
    assert grown(lab, before)["values"] == 0


def test_an_early_end_wastes_a_few(lab):
    fresh(lab, "t")
    before = counts(lab)
    rows = run(lab, ["SELECT id, b FROM t ORDER BY id LIMIT 20"])
    assert rows == tuple((row, payload(row, SIZE)) for row in range(20))
    counted = grown(lab, before)
    assert 1 <= counted["values"] <= 20 - 4 + WINDOW and counted["unused"] <= WINDOW


def test_no_more_than_quarry_batch_size_is_read_ahead(lab):
    fresh(lab, "t")
    before = counts(lab)
    run(lab, ["SELECT id, b FROM t ORDER BY id LIMIT 20"], batch=2 * SIZE)
    assert grown(lab, before)["unused"] <= 2


def test_partitions_share_quarry_batch_size(lab):
    """In the order of a key all of them are scanned at once."""
    fresh(lab, "t", options=PARTITIONS["key"])
    before = counts(lab)
    rows = run(lab, ["SELECT id, b FROM t ORDER BY id LIMIT 50"], batch=2 * SIZE)
    assert rows == tuple((row, payload(row, SIZE)) for row in range(50))
    counted = grown(lab, before)
    assert counted["values"] >= 1 and counted["unused"] <= 2, counted


def test_a_range_ends_where_it_ends(lab):
    """The cursor that runs ahead knows the end of the range."""
    fresh(lab, "t")
    before = counts(lab)
    rows = run(lab, ["SELECT id, b FROM t WHERE id >= 5 AND id < 25 ORDER BY id"])
    assert len(rows) == 20
    counted = grown(lab, before)
    assert counted["values"] >= 1 and counted["unused"] == 0


def test_each_session_sees_its_own_view(lab):
    fresh(lab, "t")
    old = run(lab, ["SELECT id, k, b FROM base ORDER BY id"])
    new = tuple((row, k + 100, b[::-1]) if row % 2 == 0 else (row, k, b) for row, k, b in old if row % 5 != 1)
    connections = [lab.connect("k") for _ in range(2)]
    try:
        snapshot, writer = (connection.cursor() for connection in connections)
        snapshot.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        writer.execute(f"SET {PRIVATE}")
        writer.execute("BEGIN")
        writer.execute("UPDATE t SET b = REVERSE(b), k = k + 100 WHERE id % 2 = 0")
        writer.execute("DELETE FROM t WHERE id % 5 = 1")
        before = counts(lab)
        writer.execute("SELECT id, k, b FROM t ORDER BY id")
        assert writer.fetchall() == new
        assert grown(lab, before)["values"] >= 5, "its own changes, not committed"
        connections[1].commit()
        snapshot.execute("SELECT id, k, b FROM t ORDER BY id")
        assert snapshot.fetchall() == old
        snapshot.execute("SELECT id, k, b FROM t FORCE INDEX (k) ORDER BY k DESC")
        assert sorted(snapshot.fetchall()) == sorted(old)
        connections[0].commit()
        snapshot.execute("SET tx_isolation = 'READ-COMMITTED'")
        snapshot.execute("SELECT id, k, b FROM t ORDER BY id")
        assert snapshot.fetchall() == new
    finally:
        for connection in connections:
            connection.close()


def test_an_old_view_is_read_ahead(lab):
    """The cursor that runs ahead sees the rows as the scan does, not as they are now."""
    fresh(lab, "t")
    old = run(lab, ["SELECT id, k, b FROM base ORDER BY id"])
    connection = lab.connect("k")
    try:
        snapshot = connection.cursor()
        snapshot.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        lab.query("DELETE FROM t WHERE id % 5 = 1", database="k")
        lab.query(f"SET STATEMENT {PRIVATE} FOR INSERT INTO t SELECT id + 1000, k, g, b FROM base", database="k")
        before = counts(lab)
        snapshot.execute("SELECT id, k, b FROM t ORDER BY id")
        assert snapshot.fetchall() == old
        counted = grown(lab, before)
        assert counted["values"] >= 5 and counted["unused"] == 0
    finally:
        connection.close()


def test_a_killed_scan_leaves_nothing_behind(lab):
    fresh(lab, "t")
    before = counts(lab)
    connection = lab.connect("k")
    failures = []

    def scan():
        with connection.cursor() as cursor:
            try:
                cursor.execute("SELECT id, b, SLEEP(0.02) FROM t ORDER BY id")
                cursor.fetchall()
            except pymysql.err.Error as error:
                failures.append(error.args[0])

    thread = threading.Thread(target=scan)
    thread.start()
    while grown(lab, before)["values"] == 0 and thread.is_alive():
        time.sleep(0.01)
    lab.query(f"KILL QUERY {connection.thread_id()}")
    thread.join()
    assert failures in ([], [1317]), failures  # SLEEP may end early instead
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, b FROM t ORDER BY id DESC")
        assert cursor.fetchall() == tuple((row, payload(row, SIZE)) for row in range(ROWS - 1, -1, -1))
    connection.close()
    lab.query("DROP TABLE k.t")


def test_damage_is_told_as_without(lab):
    """One error, of the row that has it; the rows before it were handed out."""
    told = []
    for batch in (0, 4 << 20):
        fresh(lab, "t")
        extent = sorted(all_extents(lab.segments_of("k", "t")), key=lambda found: found.offset)[30]
        corruptions = int(lab.status("quarry_corruptions")["quarry_corruptions"])
        flip_bit(extent.path, extent.offset + 20_000)
        with pytest.raises(pymysql.err.Error) as failure:
            run(lab, ["SELECT id, b FROM t ORDER BY id"], batch)
        told.append(failure.value.args[0])
        assert int(lab.status("quarry_corruptions")["quarry_corruptions"]) > corruptions
        assert len(run(lab, ["SELECT id FROM t"])) == ROWS
        lab.query("DROP TABLE k.t")
    assert told[0] == told[1]


def test_the_server_counts_the_same_reads(lab):
    found = []
    for batch in (0, 4 << 20):
        fresh(lab, "t")
        statements = ["FLUSH STATUS", "SELECT k, b FROM t FORCE INDEX (k) ORDER BY k", "SELECT id, b FROM t"]
        found.append(run(lab, [*statements, "SHOW SESSION STATUS LIKE 'Handler_read%'"], batch))
    assert found[0] == found[1]


def test_ddl_waits_for_no_cursor(lab):
    """The second cursor of a scan is closed with its statement."""
    fresh(lab, "t")
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, b FROM t ORDER BY id LIMIT 10")
        cursor.fetchall()
        for ddl in ("ALTER TABLE t ADD COLUMN x INT, ALGORITHM=INPLACE", "TRUNCATE TABLE t", "DROP TABLE t"):
            lab.query(f"SET STATEMENT lock_wait_timeout=5 FOR {ddl}", database="k")
    connection.close()


def test_many_scans_at_once(lab):
    fresh(lab, "t")
    expected = tuple((row, payload(row, SIZE)) for row in range(ROWS))
    wrong = []

    def scan(order):
        for _ in range(3):
            rows = run(lab, [f"SELECT id, b FROM t ORDER BY id {order}"])
            if rows != (expected if order == "" else expected[::-1]):
                wrong.append(order)

    threads = [threading.Thread(target=scan, args=(order,)) for order in ("", "DESC") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_value_cache_takes_in_what_is_read_ahead(own_server):
    server = own_server("ahead_cache", "--quarry-recent-cache-bytes=0", "--quarry-cache-size=64M", *NO_BACKGROUND)
    server.query("CREATE DATABASE k")
    server.query("CREATE TABLE k.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for row in range(ROWS):
        server.query("INSERT INTO k.t VALUES (%s, %s)", (row, payload(row, SIZE)))
    server.restart()
    sql = "SELECT id, b FROM t ORDER BY id"
    first = run(server, [sql])
    once = counts(server)
    reads = server.status("quarry_read_submissions")
    assert once["values"] >= 5
    assert run(server, [sql]) == first
    assert counts(server) == once and server.status("quarry_read_submissions") == reads
