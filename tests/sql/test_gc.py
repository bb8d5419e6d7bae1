"""Mark passes in a live server: what anybody may still need stays, and space comes back when nobody does.

Each holder is shown to hold: the pass looks again and again and goes on waiting, the holder reads its old values byte
for byte, and only when it has ended the bytes are gone from the disk.
"""

import contextlib
import threading

import pytest
from quarry_lab.probes.device import allocated_bytes
from quarry_server.server import HOME_NAME

from harness.gc import Gc, figures
from harness.server import Server
from harness.values import payload
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

ROWS = 24
SIZE = 100_000
HEADERS_BYTES = 500  # of the extents of one such value, at the most
# A store keeps what it appends to open, and extents share blocks with their neighbours.
SLACK_BYTES = 600_000


# What memory still holds would hide what the disk has lost.
NO_CACHE = ["--quarry-recent-cache-bytes=0", "--loose-quarry-cache-size=0"]


@pytest.fixture(scope="module")
def gc_server():
    options = ["--quarry-gc=OFF", "--quarry-segment-size=1M", "--innodb-lock-wait-timeout=60", *NO_CACHE]
    server = Server("gc", options).start()
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
        self.put_all()

    def put_all(self, version=0):
        """Every row, in one transaction."""
        self.rows = {row: payload((row, version), SIZE) for row in self.rows}
        with self.server.connect("d") as connection, connection.cursor() as cursor:
            cursor.execute("START TRANSACTION")
            for row in self.rows.items():
                cursor.execute("INSERT INTO t (id, b) VALUES (%s, %s) ON DUPLICATE KEY UPDATE b = VALUES(b)", row)
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
        return allocated_bytes(
            file for (path,) in paths for file in (self.server.datadir / HOME_NAME / path).glob("*.qseg")
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
    assert real == allocated_bytes(table.server.segments_of("d", "t"))
    assert len(table.rows) * SIZE <= live <= len(table.rows) * (SIZE + HEADERS_BYTES)
    amplification, last, last_live = table.server.query(
        "SELECT space_amplification, last_gc, last_gc_live_bytes FROM information_schema.quarry_tables "
        "WHERE table_schema = 'd' AND state = 'BOUND'"
    )[0]
    assert abs(float(amplification) - real / live) < 0.01
    assert last is not None and last_live == live


def test_the_general_log_is_the_users(table):
    """What Quarry asks the server in sessions of its own does not stand there."""
    server = table.server
    server.query("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = ON")
    try:
        table.gc.run_well()
        server.query("SELECT COUNT(*) FROM information_schema.quarry_tables WHERE table_name = 'no such'")
        server.query("CREATE TABLE d.fresh (b LONGBLOB) ENGINE=QUARRY SELECT REPEAT('x', 9000) AS b")
    finally:
        server.query("SET GLOBAL general_log = OFF, GLOBAL log_output = DEFAULT")
    logged = [text for (text,) in server.query("SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log")]
    assert any("quarry_gc_now" in text for text in logged) and any("'no such'" in text for text in logged)
    foreign = [text for text in logged if "INNODB_" in text.upper() or "SUM(1)" in text or "sql_select_limit" in text]
    assert foreign == []


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


def test_what_dies_during_a_pass_is_known_and_given_back(gc_server):
    """The pass marked it, and must not count it as live: the figures are true at once, and GC by itself makes another pass."""
    table = Table(gc_server, rows=100)
    server = table.server
    server.query("SET GLOBAL quarry_gc_full_interval = 0, GLOBAL quarry_gc_interval = 1")  # as of the round that comes now
    with session(server, "START TRANSACTION", "SELECT * FROM other") as first:
        request = table.gc.request()
        table.gc.wait_held()
        with session(server, "START TRANSACTION WITH CONSISTENT SNAPSHOT") as second:
            first.execute("ROLLBACK")
            table.gc.wait_state("waiting for readers")
            table.put_all(1)
            second.execute("ROLLBACK")
    table.gc.wait_done(request)
    live = len(table.rows) * SIZE
    real, counted = figures(server, "d", "t")
    assert real > 1.9 * live and live <= counted <= 1.01 * live, (real, counted, live)
    server.query("SET GLOBAL quarry_gc = ON")
    try:
        wait_for(lambda: f"{table.disk_bytes()} bytes, {table.gc.status()}", lambda: table.disk_bytes() <= 1.5 * live)
    finally:
        server.query("SET GLOBAL quarry_gc = OFF, GLOBAL quarry_gc_interval = 60")
    table.check()


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


@pytest.mark.parametrize("restart", [False, True], ids=["detached", "recovered"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_prepared_transactions_without_a_connection(table, restart, end):
    value = payload("prepared", SIZE)
    with session(table.server, "XA START 'x'") as cursor:
        cursor.execute("INSERT INTO t VALUES (1000, %s)", (value,))
        cursor.execute("UPDATE t SET b = %s WHERE id = 1", (value,))
        cursor.execute("XA END 'x'")
        cursor.execute("XA PREPARE 'x'")
    if restart:
        table.server.kill()
        table.server.start()
    table.delete(*range(10, 20))
    request = table.gc.request()
    table.gc.wait_held()
    table.server.query(f"XA {end} 'x'")
    table.gc.wait_done(request)
    if end == "COMMIT":
        table.rows.update({1000: value, 1: value})
    table.check()
    table.gc.run_well()
    table.check()
    table.check_space()


def test_a_cursor_of_a_procedure(table):
    """It goes on reading, statement by statement, what was there when it was opened."""
    table.server.query(
        """CREATE PROCEDURE d.walk() BEGIN
          DECLARE done INT DEFAULT 0; DECLARE i INT; DECLARE v LONGBLOB;
          DECLARE c CURSOR FOR SELECT id, b FROM t ORDER BY id;
          DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
          CREATE OR REPLACE TEMPORARY TABLE seen (id INT, b LONGBLOB) ENGINE=InnoDB;
          OPEN c; DO GET_LOCK('gate', 1000); FETCH c INTO i, v;
          WHILE NOT done DO INSERT INTO seen VALUES (i, v); FETCH c INTO i, v; END WHILE;
          CLOSE c; SELECT * FROM seen; END"""
    )
    old, seen = dict(table.rows), {}

    def walk(cursor):
        cursor.execute("CALL walk()")
        seen.update(cursor.fetchall())

    with session(table.server, "DO GET_LOCK('gate', 1000)") as gate, session(table.server) as cursor:
        thread = threading.Thread(target=walk, args=(cursor,))
        thread.start()
        waiting = "SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'"
        wait_for("the procedure's wait for the lock", lambda: table.server.query(waiting))
        table.delete(*range(12))
        table.gc.run_well()
        gate.execute("DO RELEASE_LOCK('gate')")
        thread.join()
    assert seen == old
    table.check_space()


def test_a_cursor_of_the_protocol(table):
    """A server-side cursor, fetched from while its rows are deleted and passes are made."""
    mariadb = pytest.importorskip("mariadb", reason="MariaDB's connector for Python is not installed")
    connection = mariadb.connect(unix_socket=table.server.socket, user=table.server.account, database="d", autocommit=True)
    with contextlib.closing(connection):
        cursor = connection.cursor(cursor_type=mariadb.constants.CURSOR.READ_ONLY, prefetch_size=1, buffered=False)
        cursor.execute("SELECT id, b FROM t ORDER BY id", ())
        old = dict(table.rows)
        seen = dict([cursor.fetchone()])
        table.delete(*range(12))
        table.gc.run()
        seen.update(cursor)
        assert seen == old
        cursor.close()
    table.gc.run_well()
    table.check_space()


def test_history_rows(gc_server):
    table = Table(gc_server, "", "WITH SYSTEM VERSIONING")
    history = [(row, value) for row, value in table.rows.items()]
    for row in range(6):
        table.put(row, version=1)
        history.append((row, table.rows[row]))
    table.delete(7, 8)
    table.gc.run_well()

    def everything():
        return sorted(table.server.query("SELECT id, b FROM d.t FOR SYSTEM_TIME ALL"))

    assert everything() == sorted(history)
    table.check()
    assert table.disk_bytes() >= len(history) * SIZE
    table.server.query("DELETE HISTORY FROM d.t")
    done = table.gc.run_well()
    assert done["reclaimed_bytes"] >= 8 * SIZE - SLACK_BYTES, done
    assert everything() == sorted(table.rows.items())
    table.check_space()


def test_cascades(gc_server):
    """What InnoDB deletes by itself is not counted by anybody: the rows alone say it."""
    table = Table(gc_server)
    for name, action in (("cascade_child", "CASCADE"), ("null_child", "SET NULL")):
        table.server.query(
            f"CREATE TABLE d.{name} (id INT PRIMARY KEY, parent INT, b LONGBLOB, FOREIGN KEY (parent) "
            f"REFERENCES t (id) ON DELETE {action}) ENGINE=QUARRY"
        )
        for row in range(12):
            table.server.query(f"INSERT INTO d.{name} VALUES (%s, %s, %s)", (row, row, payload((name, row), SIZE)))
    table.delete(*range(8))
    table.gc.run_well()
    for name, rows in (("cascade_child", range(8, 12)), ("null_child", range(12))):
        expected = {row: payload((name, row), SIZE) for row in rows}
        assert dict(table.server.query(f"SELECT id, b FROM d.{name}")) == expected
        assert allocated_bytes(table.server.segments_of("d", name)) <= len(rows) * SIZE + SLACK_BYTES
    table.check()


PARTITIONS = "PARTITION BY HASH (id) PARTITIONS 3"


def test_partitions(gc_server):
    table = Table(gc_server, partitions=PARTITIONS)
    table.delete(*range(0, ROWS, 2))
    done = table.gc.run_well()
    assert done["passes"] == 1, done
    table.check()
    assert table.disk_bytes() <= len(table.rows) * SIZE + 3 * SLACK_BYTES


def test_columns(gc_server):
    """Every managed column counts, invisible ones, JSON and TEXT too, and NULL and short values do not."""
    table = Table(gc_server, ", c LONGTEXT, j JSON, h LONGBLOB INVISIBLE, n LONGBLOB, tiny TINYBLOB, m MEDIUMBLOB NOT NULL DEFAULT ''")
    texts = {row: payload(("text", row), SIZE // 2).hex() for row in range(ROWS)}
    table.server.query("UPDATE d.t SET m = 'short', tiny = 'x'")
    for row, text in texts.items():
        value = (text, f'["{text}"]', payload(("h", row), SIZE), payload(("m", row), SIZE), row)
        table.server.query("UPDATE d.t SET c = %s, j = %s, h = %s, m = %s WHERE id = %s", value)
    for row in range(0, ROWS, 2):
        table.delete(row)
    table.gc.run_well()
    rows = table.server.query("SELECT id, b, c, j, h, n, tiny, m FROM d.t ORDER BY id")
    assert rows == tuple(
        (row, table.rows[row], text, f'["{text}"]', payload(("h", row), SIZE), None, b"x", payload(("m", row), SIZE))
        for row, text in texts.items()
        if row in table.rows
    )
    assert table.disk_bytes() <= len(table.rows) * 5 * SIZE + SLACK_BYTES


def test_strange_names(gc_server):
    server = gc_server
    server.query("CREATE OR REPLACE DATABASE `d-``1`")
    server.query("CREATE TABLE `d-``1`.`sélect #P# t` (`b``b` LONGBLOB, `id` INT) ENGINE=QUARRY")
    for row in range(8):
        server.query("INSERT INTO `d-``1`.`sélect #P# t` VALUES (%s, %s)", (payload(row, SIZE), row))
    server.query("DELETE FROM `d-``1`.`sélect #P# t` WHERE id < 4")
    Gc(server).run_well()
    expected = [(payload(row, SIZE), row) for row in range(4, 8)]
    assert list(server.query("SELECT * FROM `d-``1`.`sélect #P# t` ORDER BY id")) == expected
    server.query("DROP DATABASE `d-``1`")


DDL = {
    "rename": ["RENAME TABLE t TO t2"],
    "rename-and-replace": ["RENAME TABLE t TO t2", "CREATE TABLE t LIKE t2"],
    "rebuild-in-place": ["ALTER TABLE t FORCE, ALGORITHM=INPLACE, RENAME TO t2"],
    "copy": ["ALTER TABLE t ADD KEY (b(20)), ALGORITHM=COPY, RENAME TO t2"],
    "exchange": ["CREATE TABLE t2 (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY", "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE t2"],
    "engine": ["ALTER TABLE t ENGINE=InnoDB", "RENAME TABLE t TO t2"],
}


@pytest.mark.parametrize("kind", DDL)
def test_ddl_in_the_middle_of_a_pass(gc_server, kind):
    """The pass is dropped, whatever it had sealed, and the rows keep their values wherever they are now."""
    table = Table(gc_server, partitions="PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000))" if kind == "exchange" else "")
    with session(table.server, "START TRANSACTION", "SELECT * FROM other") as cursor:
        table.delete(*range(6))
        before = table.gc.status()
        request = table.gc.request()
        table.gc.wait_held()
        for statement in DDL[kind]:
            table.server.query(statement, database="d")
        cursor.execute("ROLLBACK")
    table.gc.wait_done(request)
    after = table.gc.status()
    assert after["passes_dropped"] == before["passes_dropped"] + 1, after
    table.check("d.t2")
    table.gc.run()
    table.check("d.t2")


def test_no_pass_is_begun_while_nobody_can_tell_who_is_open(gc_server):
    """A client that reads INNODB_TRX all the time keeps the list from being renewed. A pass that was begun and dropped would
    have sealed the table's segment: a file more for each try."""
    table = Table(gc_server, rows=2)
    stop = threading.Event()

    def read_on():
        with session(gc_server) as cursor:
            while not stop.is_set():
                cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx")
                cursor.fetchall()

    def segments():
        counts = "SELECT segments FROM information_schema.quarry_tables WHERE table_schema = 'd' AND state = 'BOUND'"
        return [count for (count,) in gc_server.query(counts)]

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    tries_without_a_pass = 0
    try:
        before = segments()
        for version in range(1, 60):
            table.put(0, version)
            tries_without_a_pass = 0 if table.gc.run()["passes"] else tries_without_a_pass + 1
            if tries_without_a_pass == 0:  # the readers were too slow for once
                table.put(0, version)
                before = segments()
            elif tries_without_a_pass == 3:
                break
        assert tries_without_a_pass == 3
        table.put(0, 1000)
        assert segments() == before
        assert "who reads INNODB_TRX" in table.gc.status()["last_error"]
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    table.gc.run_well()
    table.check()


def test_truncate_in_the_middle_of_a_pass(table):
    with session(table.server, "START TRANSACTION", "SELECT * FROM other") as cursor:
        request = table.gc.request()
        table.gc.wait_held()
        table.server.query("TRUNCATE TABLE d.t")
        table.rows = {}
        table.put(5)
        cursor.execute("ROLLBACK")
    table.gc.wait_done(request)
    table.check()
    table.gc.run()
    table.check()


@pytest.mark.parametrize("stop", ["clean", "kill"])
def test_stopped_while_it_waits(table, stop):
    """At once, and the next run of the server gives the space back."""
    with session(table.server, "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT 1 FROM other"):
        table.delete(*range(12))
        table.gc.request()
        table.gc.wait_held()
        if stop == "clean":
            table.server.stop()
        else:
            table.server.kill()
    table.server.start()
    table.check()
    table.gc.run_well()
    table.check()
    table.check_space()


def test_another_rate_counts_at_once(table):
    """At a byte a second a block takes more than an hour."""
    table.delete(*range(0, ROWS, 2))
    (rate,) = table.server.query("SELECT @@quarry_gc_rate")[0]
    table.server.query("SET GLOBAL quarry_gc_rate = 1")
    try:
        request = table.gc.request()
        table.gc.wait_state("reclaiming")
    finally:
        table.server.query("SET GLOBAL quarry_gc_rate = %s", (rate,))
    table.gc.wait_done(request)
    table.check()
    table.check_space()


def test_switched_off_while_it_waits(table):
    """quarry_gc=OFF ends a pass that nobody asked for."""
    with session(table.server, "START TRANSACTION", "SELECT * FROM other"):
        table.server.query("SET GLOBAL quarry_gc_full_interval = 1, GLOBAL quarry_gc_interval = 1, GLOBAL quarry_gc = ON")
        try:
            table.gc.wait_held()
        finally:
            table.server.query("SET GLOBAL quarry_gc = OFF, GLOBAL quarry_gc_full_interval = 0, GLOBAL quarry_gc_interval = 60")
        table.gc.wait_state("idle")
    table.check()


def delete_unflushed(table, flush_setting):
    """Deletes rows 0-11 in a transaction that commits, and holds a pass that waits for the log. Returns the log files as
    the disk knew them before; None: InnoDB flushed the log by itself meanwhile."""
    server = table.server
    server.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
    server.query("UPDATE d.other SET x = x + 1")
    server.query(f"SET GLOBAL innodb_flush_log_at_trx_commit = {flush_setting}")
    flushed = server.status("innodb_lsn_flushed")
    saved = {path: path.read_bytes() for path in server.datadir.glob("ib_logfile*")}
    with session(server, "START TRANSACTION", "DELETE FROM t WHERE id < 12", "COMMIT"):
        pass
    request, looks = table.gc.request(), table.gc.status()["looks"]

    def is_held_or_done():
        status = table.gc.status()
        is_held = status["state"].startswith("waiting for readers") and status["looks"] >= looks + 4
        return is_held or status["requests_done"] >= request

    wait_for(lambda: f"a pass that waits, or has ended: {table.gc.status()}", is_held_or_done)
    return saved if server.status("innodb_lsn_flushed") == flushed else None


@pytest.mark.parametrize("flush_setting", [0, 2])
def test_a_delete_that_the_disk_does_not_know(own_server, flush_setting):
    """InnoDB has not flushed the delete: a power cut undoes it. So the pass waits, and the values are there."""
    server = own_server(
        f"gc-flush-{flush_setting}",
        "--quarry-gc=OFF",
        "--quarry-segment-size=1M",
        "--innodb-flush-log-at-timeout=2700",
        "--innodb-stats-auto-recalc=OFF",
        "--innodb-adaptive-flushing=OFF",
        *NO_CACHE,
    )
    table = Table(server)
    for _ in range(10):
        saved = delete_unflushed(table, flush_setting)
        if saved is not None:
            break
        server.query("SET GLOBAL innodb_flush_log_at_timeout = 1")
        table.put_all()
        table.gc.wait_done(table.gc.status()["requests"])
        server.query("SET GLOBAL innodb_flush_log_at_timeout = 2700")
    assert saved is not None, "something had the log flushed ten times"
    server.kill()
    # With 2 the kernel has the log, which a power cut takes with it: the file as the disk knew it.
    if flush_setting == 2:
        for path, content in saved.items():
            path.write_bytes(content)
    server.start()
    table.check()
    server.query("SET GLOBAL innodb_flush_log_at_timeout = 1")
    table.delete(*range(12))
    table.gc.run_well()
    table.check()
    table.check_space()


def test_read_uncommitted_in_the_middle_of_a_statement(table):
    """It reads without a view, and so heads that are rolled back a moment later; but in a transaction, which holds."""
    value, seen = payload("dirty", SIZE), {}

    def walk(cursor):
        cursor.execute("SELECT id, b, IF(id = 0, GET_LOCK('gate', 1000), 0) FROM t ORDER BY id")
        seen.update((row, value) for row, value, _ in cursor.fetchall())

    dirty = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"
    with session(table.server, "START TRANSACTION") as writer, session(table.server, dirty) as reader:
        writer.execute("UPDATE t SET b = %s WHERE id IN (0, 1)", (value,))
        with session(table.server, "DO GET_LOCK('gate', 1000)"):
            thread = threading.Thread(target=walk, args=(reader,))
            thread.start()
            waiting = "SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'"
            wait_for("the reader's wait for the lock", lambda: table.server.query(waiting))
            writer.execute("ROLLBACK")
            table.delete(2)
            request = table.gc.request()
            table.gc.wait_held()
        thread.join()
    table.gc.wait_done(request)
    assert seen == table.rows | {0: value}
    table.check()
    table.gc.run_well()
    table.check_space()


def test_read_uncommitted_beside_rollbacks_and_passes(table):
    """A dirty reader meets heads that were just rolled back; it must get rows, never an error."""
    stop, errors = threading.Event(), []

    def reader():
        with session(table.server, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED") as cursor:
            try:
                while not stop.is_set():
                    cursor.execute("SELECT id, SHA2(b, 256) FROM t")
                    cursor.fetchall()
            except Exception as error:
                errors.append(error)

    def writer():
        with session(table.server) as cursor:
            try:
                for version in range(100000):
                    if stop.is_set():
                        return
                    cursor.execute("START TRANSACTION")
                    cursor.execute("UPDATE t SET b = %s WHERE id = 3", (payload(("dirty", version), SIZE),))
                    cursor.execute("INSERT INTO t VALUES (%s, 'x'), (%s, %s)", (2000, 2001, payload(version, SIZE)))
                    cursor.execute("ROLLBACK")
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for work in (reader, writer)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            table.gc.run()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    table.check()
    # Full segments that were never flushed, for nobody committed, are candidates of the pass after the one that flushed.
    table.gc.run_well()
    wait_for(
        table.gc.status, lambda: table.gc.run_well() and table.disk_bytes() <= len(table.rows) * SIZE + SLACK_BYTES
    )
    table.check()


@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.nightly)])
def test_space_stays_bounded_while_everything_is_overwritten(own_server, rounds):
    """By itself: no pass is asked for, and what was released says when to look, not the interval. After each round GC has its
    chance, and real bytes per live byte is within the bound."""
    server = own_server(
        "gc-overwrite",
        "--quarry-gc-interval=86400",
        "--quarry-gc-full-interval=0",
        "--quarry-segment-size=4M",
        "--innodb-flush-log-at-trx-commit=0",
    )
    Gc(server).run()  # the look of the start is over: the table is made after it
    table = Table(server, rows=100)
    bound = float(server.query("SELECT @@quarry_space_amplification_max")[0][0])
    assert bound == 1.5
    live = len(table.rows) * (SIZE + HEADERS_BYTES)
    for version in range(1, rounds + 1):
        table.put_all(version)
        wait_for(
            lambda: f"{table.disk_bytes()} bytes on disk, {live} live, {table.gc.status()}, figures {figures(server, 'd', 't')}",
            lambda: table.disk_bytes() <= bound * live,
        )
        real, live_counted = figures(server, "d", "t")
        assert real <= 2.5 * live_counted
    table.check()
