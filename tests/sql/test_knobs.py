"""Every knob shown by its effect on system calls, bytes on disk or pages, as the table of knobs in the design asks;
a counter that moves proves nothing.
"""

import math
import os
import pathlib
import subprocess
import threading
import time

import pymysql
import pytest
from quarry_server.ports import free_ports
from quarry_server.server import HOME_NAME

from harness.cluster import follow
from harness.segments import all_extents
from harness.server import NO_BACKGROUND, Server
from harness.trace import READS, RING, WRITES, Trace, thread_of
from harness.values import payload
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

PAGE_SIZE_BYTES = 16384
# What a segment gets beside the parts: header, index, and the block that a flush pads to.
SLACK_BYTES = 16384


@pytest.fixture(scope="module")
def lab():
    """A server of this module's own: restarted to make values cold; no zeroed pool, whose writes would count."""
    made = Server("knobs", ["--quarry-zeroed-pool-bytes=0", *NO_BACKGROUND]).start()
    made.query("CREATE DATABASE k")
    yield made
    made.remove()


def pages_in_pool(server, table):
    return server.query(
        "SELECT COUNT(*) FROM information_schema.innodb_buffer_page WHERE table_name = %s", (f"`k`.`{table}`",)
    )[0][0]


def innodb_bytes(server, table):
    """Bytes of the clustered index, from InnoDB's own statistics."""
    server.query(f"ANALYZE TABLE k.{table}")
    return (
        server.query(
            "SELECT stat_value FROM mysql.innodb_index_stats WHERE database_name = 'k' AND table_name = %s AND "
            "index_name = 'PRIMARY' "
            "AND stat_name = 'size'",
            (table,),
        )[0][0]
        * PAGE_SIZE_BYTES
    )


def segment_bytes(server, table):
    return sum(extent.size for extent in all_extents(server.segments_of("k", table)))


def make(server, name, options, rows, size, column="LONGBLOB"):
    server.query(f"CREATE OR REPLACE TABLE k.{name} (id INT PRIMARY KEY, b {column} {options}) ENGINE=QUARRY")
    connection = server.connect("k", autocommit=False)
    with connection.cursor() as cursor:
        for row in range(rows):
            cursor.execute(f"INSERT INTO {name} VALUES (%s, %s)", (row, payload((name, row), size)))
    connection.commit()
    connection.close()


def read_calls(server, sql):
    """(rows, reads of segments by the thread that serves us) of one statement."""
    connection = server.connect("k")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM information_schema.quarry_tables LIMIT 1")
        thread = thread_of(connection)
        with Trace(server, (*READS, *RING)) as trace:
            cursor.execute(sql)
            rows = cursor.fetchall()
    connection.close()
    return rows, trace.of(READS, ".qseg") + trace.of(RING, thread=thread)


# --- INLINE_SIZE, PREFIX_SIZE ---------------------------------------------------------------------------------------
def test_inline_size_decides_between_row_and_segment(lab):
    rows, size = 400, 3000
    make(lab, "inside", "INLINE_SIZE=4096", rows, size)
    make(lab, "outside", "INLINE_SIZE=256", rows, size)
    assert segment_bytes(lab, "inside") == 0, "a value of 3000 bytes fits into INLINE_SIZE=4096"
    assert rows * size <= segment_bytes(lab, "outside") <= rows * (size + 200)
    assert innodb_bytes(lab, "inside") > rows * size
    assert innodb_bytes(lab, "outside") < rows * 200 + 4 * PAGE_SIZE_BYTES
    lab.restart()
    for name, segment_read in (("inside", False), ("outside", True)):
        values, calls = read_calls(lab, f"SELECT b FROM {name} WHERE id IN (7, 133, 399)")
        assert [value for (value,) in values] == [payload((name, row), size) for row in (7, 133, 399)]
        assert bool(calls) == segment_read, f"{name}: {calls}"
    assert len(lab.query("SELECT b FROM k.inside")) == len(lab.query("SELECT b FROM k.outside")) == rows
    assert pages_in_pool(lab, "inside") > 5 * pages_in_pool(lab, "outside")


def test_inline_size_boundary(lab):
    """INLINE_SIZE bytes stay in the row, one byte more leaves it."""
    for size, extents in ((1000, 0), (1001, 1)):
        make(lab, "boundary", "INLINE_SIZE=1000", 1, size)
        assert len(all_extents(lab.segments_of("k", "boundary"))) == extents


def test_inline_values_touch_no_segment_file(lab):
    """Neither to write nor to read: not a single call on a segment, and no store is made."""
    lab.query("CREATE OR REPLACE TABLE k.tiny (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    before = lab.stores()
    connection = lab.connect("k")
    with connection.cursor() as cursor, Trace(lab, (*READS, *WRITES, "openat", "fdatasync")) as trace:
        for row in range(20):
            cursor.execute("INSERT INTO tiny VALUES (%s, %s)", (row, payload(row, 4096)))
            cursor.execute("SELECT b FROM tiny WHERE id = %s", (row,))
            assert cursor.fetchone()[0] == payload(row, 4096)
            cursor.execute("UPDATE tiny SET b = REVERSE(b) WHERE id = %s", (row,))
    connection.close()
    touched = [call for call in trace.calls if ".qseg" in call.path]
    assert not touched and not set(lab.stores()) - set(before), trace.show(touched)


def test_columns_that_are_not_asked_for_are_not_read(lab):
    make(lab, "unread", "", 20, 30000)
    lab.restart()
    for sql in (
        "SELECT id FROM unread",
        "SELECT COUNT(*) FROM unread",
        "SELECT id FROM unread WHERE id > 5 ORDER BY id DESC",
    ):
        _, calls = read_calls(lab, sql)
        assert not calls, f"{sql}: {calls}"


def test_prefix_size_keeps_raw_bytes_in_the_row(lab):
    rows, size = 300, 20000
    measured = {}
    for prefix in (0, 500, 2000):
        make(lab, f"prefix{prefix}", f"INLINE_SIZE=4096 PREFIX_SIZE={prefix}", rows, size)
        measured[prefix] = innodb_bytes(lab, f"prefix{prefix}")
        remainder = size - prefix
        assert rows * remainder <= segment_bytes(lab, f"prefix{prefix}") <= rows * (remainder + 200)
    assert measured[500] - measured[0] > rows * 500 * 0.8
    assert measured[2000] - measured[500] > rows * 1500 * 0.8
    make(lab, "ndb", "COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=2000'", rows, size)
    assert abs(innodb_bytes(lab, "ndb") - measured[2000]) <= measured[2000] * 0.2


# --- PART_SIZE, CODEC -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options, part_size",
    [
        ("", 65536),
        ("PART_SIZE=4096", 4096),
        ("PART_SIZE=1048576", 1048576),
        ("COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=256,MAX_BLOB_PART_SIZE'", 13948),
    ],
)
def test_part_size_is_the_number_of_parts(lab, options, part_size):
    size = 300000
    make(lab, "parts", options, 3, size)
    found = all_extents(lab.segments_of("k", "parts"))
    assert [(extent.value_size, extent.part_size, extent.part_count) for extent in found] == [
        (size, part_size, math.ceil(size / part_size))
    ] * 3


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_codec_is_the_bytes_in_the_segment(lab, codec):
    lab.query(f"CREATE OR REPLACE TABLE k.codec (id INT PRIMARY KEY, b LONGTEXT CODEC={codec}) ENGINE=QUARRY")
    words = " ".join(f"the quarry gave {number} blocks of granite" for number in range(3000))
    lab.query("INSERT INTO k.codec VALUES (1, %s)", (words,))
    lab.query("INSERT INTO k.codec VALUES (2, %s)", (payload("codec", 100000).hex()[:100000],))
    compressible, _ = all_extents(lab.segments_of("k", "codec"))
    assert compressible.codec == codec
    ratio = compressible.stored_total / len(words)
    assert ratio == 1 if codec == "none" else ratio < 0.5
    lab.restart()
    assert lab.query("SELECT b FROM k.codec WHERE id = 1") == ((words,),)


def test_incompressible_parts_are_stored_raw(lab):
    make(lab, "raw", "CODEC=zstd", 1, 200000)
    (extent,) = all_extents(lab.segments_of("k", "raw"))
    assert extent.codec == "zstd" and extent.raw_parts == extent.part_count == 4
    assert extent.stored_total == 200000


# --- batches --------------------------------------------------------------------------------------------------------
def test_read_batch_bytes_is_the_number_of_reads(lab):
    """A cold value of 1 MiB in parts of 16 KiB: one submission for each batch."""
    size = 1 << 20
    make(lab, "cold", "PART_SIZE=16384", 4, size)
    lab.restart()
    counts = {}
    for row, batch in enumerate((32 << 10, 128 << 10, 4 << 20)):
        lab.query(f"SET GLOBAL quarry_read_batch_bytes = {batch}")
        values, calls = read_calls(lab, f"SELECT b FROM cold WHERE id = {row}")
        assert values == ((payload(("cold", row), size),),)
        counts[batch] = len(calls)
        expected = math.ceil(size / batch)
        assert (
            expected <= counts[batch] <= expected + 2
        ), f"{batch}: {counts[batch]} reads, expected about {expected}\n{calls[:40]}"
        assert max((call.result for call in calls if call.name != "io_uring_enter"), default=0) <= batch + SLACK_BYTES
    lab.query("SET GLOBAL quarry_read_batch_bytes = DEFAULT")
    assert counts[32 << 10] > counts[128 << 10] > counts[4 << 20]


def segment_writes(server, action):
    with Trace(server, (*WRITES, *RING)) as trace:
        action()
        time.sleep(0.2)
    return trace.of(WRITES, ".qseg")


def test_write_batch_bytes_is_the_number_and_size_of_writes(lab):
    """A value of 4 MiB: one write for each batch, none larger than a batch (and the block that it is padded to)."""
    size = 4 << 20
    lab.query("CREATE OR REPLACE TABLE k.writes (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    lab.query("INSERT INTO k.writes VALUES (-1, REPEAT('opens the segment', 1000))")
    for row, batch in enumerate((32 << 10, 256 << 10, 2 << 20)):
        connection = lab.connect("k")
        with connection.cursor() as cursor:
            cursor.execute(f"SET quarry_write_batch_bytes = {batch}")
            calls = segment_writes(
                lab,
                lambda cursor=cursor, row=row: cursor.execute(
                    "INSERT INTO writes VALUES (%s, %s)", (row, payload(row, size))
                ),
            )
        connection.close()
        expected = math.ceil(size / batch)
        assert expected <= len(calls) <= expected + 4, f"{batch}: {len(calls)} writes, expected about {expected}"
        assert max(call.result for call in calls) <= batch + SLACK_BYTES
        assert sum(call.result for call in calls) <= size + 4 * SLACK_BYTES
    assert lab.query("SELECT b FROM k.writes WHERE id = 1")[0][0] == payload(1, size)


ROWS, ROW_SIZE = 100, 2048


def values_of(seed):
    return [payload((seed, row), ROW_SIZE) for row in range(ROWS)]


def expect_one_write(calls):
    """Of all rows together, in one write call: no more than what they take in a segment."""
    assert len(calls) == 1, f"{len(calls)} writes for {ROWS} rows"
    assert ROWS * ROW_SIZE <= calls[0].result <= ROWS * (ROW_SIZE + 96) + SLACK_BYTES


@pytest.mark.parametrize("way", ["one INSERT", "INSERTs of one transaction", "LOAD DATA", "INSERT ... SELECT"])
def test_rows_that_are_committed_together_are_written_together(lab, way, tmp_path):
    """A hundred values of 2 KB outside of their rows: one write of segments, not a hundred."""
    lab.query("CREATE OR REPLACE TABLE k.many (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY INLINE_SIZE=256")
    lab.query("CREATE OR REPLACE TABLE k.source (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB")
    lab.query("INSERT INTO k.many VALUES (-1, REPEAT('opens the segment', 100))")
    rows = list(enumerate(values_of(way)))
    file = tmp_path / "rows"
    file.write_text("".join(f"{row}\t{value.hex()}\n" for row, value in rows), encoding="ascii")
    several = f"VALUES {', '.join(['(%s, %s)'] * ROWS)}"
    cells = [cell for row in rows for cell in row]
    connection = lab.connect("k", autocommit=False)
    with connection.cursor() as cursor:

        def write():
            if way == "one INSERT":
                cursor.execute(f"INSERT INTO many {several}", cells)
            elif way == "LOAD DATA":
                cursor.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE many (id, @b) SET b = UNHEX(@b)")
            elif way == "INSERT ... SELECT":
                cursor.execute("INSERT INTO many SELECT * FROM source")
            else:
                for row in rows:
                    cursor.execute("INSERT INTO many VALUES (%s, %s)", row)
            connection.commit()

        if way == "INSERT ... SELECT":
            cursor.execute(f"INSERT INTO source {several}", cells)
            connection.commit()
        expect_one_write(segment_writes(lab, write))
    connection.close()
    assert lab.query("SELECT id, b FROM k.many WHERE id >= 0 ORDER BY id") == tuple(rows)


# --- the replication applier ----------------------------------------------------------------------------------------
@pytest.fixture
def replicated(own_server):
    """A primary and a replica on the loopback interface."""
    (port,) = free_ports(1)
    primary = own_server(
        "primary",
        "--log-bin=binlog",
        "--server-id=1",
        "--binlog-format=ROW",
        "--bind-address=127.0.0.1",
        f"--port={port}",
    )
    replica = own_server("replica", "--server-id=2", "--quarry-zeroed-pool-bytes=0", "--skip-slave-start")
    follow(primary, port, [replica])
    return primary, replica


def wait_for_replica(primary, replica):
    position = primary.query("SELECT @@gtid_binlog_pos")[0][0]
    assert replica.query("SELECT MASTER_GTID_WAIT(%s, 60)", (position,)) == ((0,),), replica.query("SHOW SLAVE STATUS")


@pytest.mark.parametrize("workers", [0, 3], ids=["one-applier", "parallel-appliers"])
def test_replica_write_batch_bytes_in_the_applier(replicated, workers):
    primary, replica = replicated
    replica.query("STOP SLAVE")
    replica.query(f"SET GLOBAL slave_parallel_threads = {workers}")
    replica.query("SET GLOBAL quarry_write_batch_bytes = 1048576")
    replica.query("START SLAVE")
    primary.query("CREATE DATABASE k")
    primary.query("CREATE TABLE k.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    primary.query("INSERT INTO k.t VALUES (-1, REPEAT('opens', 3000))")
    wait_for_replica(primary, replica)
    size = 2 << 20
    for row, batch in enumerate((32 << 10, 512 << 10)):
        replica.query(f"SET GLOBAL quarry_replica_write_batch_bytes = {batch}")

        def insert(row=row):
            primary.query("INSERT INTO k.t VALUES (%s, %s)", (row, payload(row, size)))
            wait_for_replica(primary, replica)

        calls = segment_writes(replica, insert)
        expected = math.ceil(size / batch)
        assert (
            expected <= len(calls) <= expected + 4
        ), f"{batch}: {len(calls)} writes in the replica, expected about {expected}"
        assert max(call.result for call in calls) <= batch + SLACK_BYTES
    assert primary.query("CHECKSUM TABLE k.t") == replica.query("CHECKSUM TABLE k.t")


def test_an_event_of_many_rows_is_written_by_one_call_of_the_applier(replicated):
    primary, replica = replicated
    primary.query("CREATE DATABASE k")
    primary.query("CREATE TABLE k.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY INLINE_SIZE=256")
    primary.query("INSERT INTO k.t VALUES (-1, REPEAT('opens', 300))")
    wait_for_replica(primary, replica)
    cells = [cell for row in enumerate(values_of("event")) for cell in row]

    def insert():
        primary.query(f"INSERT INTO k.t VALUES {', '.join(['(%s, %s)'] * ROWS)}", cells)
        wait_for_replica(primary, replica)

    expect_one_write(segment_writes(replica, insert))
    assert primary.query("CHECKSUM TABLE k.t") == replica.query("CHECKSUM TABLE k.t")


def test_replication_carries_values(replicated):
    """Row-based replication with every binlog_row_image: the replica holds what the primary holds."""
    primary, replica = replicated
    primary.query("CREATE DATABASE k")
    primary.query(
        "CREATE TABLE k.t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, b LONGBLOB, v LONGTEXT, KEY (b(20))) ENGINE=QUARRY"
    )
    primary.query("CREATE TABLE k.nokey (n INT, b LONGBLOB) ENGINE=QUARRY")
    for image in ("FULL", "MINIMAL", "NOBLOB"):
        primary.query(f"SET GLOBAL binlog_row_image = {image}")
        for row in range(12):
            primary.query(
                "INSERT INTO k.t (n, b, v) VALUES (%s, %s, %s)",
                (row, payload((image, row), row * 2500), "text" * row * 600),
            )
            primary.query("INSERT INTO k.nokey VALUES (%s, %s)", (row, payload((image, row), row * 1000)))
        primary.query("UPDATE k.t SET n = n + 1 WHERE n % 3 = 0")
        primary.query("UPDATE k.t SET b = CONCAT(b, v) WHERE n % 4 = 1")
        primary.query("DELETE FROM k.t WHERE n = 7")
        primary.query("UPDATE k.nokey SET b = REVERSE(b) WHERE n = 8")
        primary.query("DELETE FROM k.nokey WHERE n = 3")
    primary.query("ALTER TABLE k.t ADD COLUMN x LONGBLOB DEFAULT REPEAT('x', 5000)")
    primary.query("CREATE TABLE k.made ENGINE=QUARRY SELECT * FROM k.t")
    primary.query("TRUNCATE TABLE k.nokey")
    wait_for_replica(primary, replica)
    for table in ("t", "nokey", "made"):
        assert primary.query(f"CHECKSUM TABLE k.{table}") == replica.query(f"CHECKSUM TABLE k.{table}"), table
        assert sorted(primary.query(f"SELECT * FROM k.{table}")) == sorted(replica.query(f"SELECT * FROM k.{table}"))
    assert replica.query(
        "SELECT engine FROM information_schema.tables WHERE table_schema = 'k' AND table_name = 'made'"
    ) == (("QUARRY",),)


# --- auto-increment -------------------------------------------------------------------------------------------------
def next_id(server, table):
    """Where a connection that never inserted before is put: behind every range reserved so far."""
    server.query(f"INSERT INTO k.{table} (b) VALUES ('probe')")
    return server.query(f"SELECT MAX(id) FROM k.{table}")[0][0]


@pytest.mark.parametrize("prefetch", [1, 16, 256])
def test_autoincrement_prefetch_reserves_ranges(lab, prefetch):
    """1,000 single-row inserts by one connection reserve 1000 / prefetch ranges; the ids stay without gaps."""
    lab.query("CREATE OR REPLACE TABLE k.ids (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE=QUARRY")
    before = int(lab.status("quarry_autoincrement_reservations")["quarry_autoincrement_reservations"])
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        cursor.execute(f"SET quarry_autoincrement_prefetch_sz = {prefetch}")
        cursor.execute("BEGIN")
        for number in range(1000):
            cursor.execute("INSERT INTO ids (b) VALUES ('x')")
            assert cursor.lastrowid == number + 1
        cursor.execute("COMMIT")
        used = int(lab.status("quarry_autoincrement_reservations")["quarry_autoincrement_reservations"]) - before
        assert math.ceil(1000 / prefetch) <= used <= math.ceil(1000 / prefetch) + 1
        # The effect itself: another connection's id lies behind the whole range that this one holds.
        assert next_id(lab, "ids") == math.ceil(1000 / prefetch) * prefetch + 1
        cursor.execute("INSERT INTO ids (b) VALUES ('y')")
        assert cursor.lastrowid == (1001 if 1000 % prefetch else 1000 + 2)
    connection.close()


def test_autoincrement_ids_are_unique_over_clients(lab):
    """8 clients, single rows and batches of 16, different prefetch sizes, rollbacks between: no id twice, none lost."""
    lab.query("CREATE OR REPLACE TABLE k.many (id INT PRIMARY KEY AUTO_INCREMENT, who INT, b LONGBLOB) ENGINE=QUARRY")
    failures, expected = [], [0] * 8

    def work(who):
        try:
            connection = lab.connect("k", autocommit=False)
            with connection.cursor() as cursor:
                cursor.execute(f"SET quarry_autoincrement_prefetch_sz = {(1, 7, 256, 1024)[who % 4]}")
                for turn in range(40):
                    count = 16 if turn % 3 == 0 else 1
                    cursor.execute(
                        "INSERT INTO many (who, b) VALUES " + ", ".join(["(%s, %s)"] * count),
                        [item for _ in range(count) for item in (who, payload((who, turn), 300 * (turn % 20)))],
                    )
                    if turn % 10 == 9:
                        connection.rollback()
                    else:
                        connection.commit()
                        expected[who] += count
            connection.close()
        except Exception as failure:  # noqa: BLE001 - reported below
            failures.append(repr(failure))

    threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    found = dict(lab.query("SELECT who, COUNT(DISTINCT id) FROM k.many GROUP BY who"))
    assert found == dict(enumerate(expected))


def wait_for_state(server, state):
    until = time.monotonic() + 30
    while not server.query("SELECT 1 FROM information_schema.processlist WHERE state = %s", (state,)):
        assert time.monotonic() < until, f"no session is in the state '{state}'"
        time.sleep(0.02)


def test_prefetched_ids_ask_for_no_counter(lab):
    """An INSERT ... SELECT holds InnoDB's counter until it ends; rows with prefetched ids pass it by."""
    lab.query("CREATE OR REPLACE TABLE k.passing (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE=QUARRY")
    connection, holder = lab.connect("k"), lab.connect("k")
    slow = "INSERT INTO passing (b) SELECT IF(seq = 1, 'first', SLEEP(100)) FROM seq_1_to_2"

    def hold():
        with holder.cursor() as cursor, pytest.raises(pymysql.err.Error):
            cursor.execute(slow)

    with connection.cursor() as cursor:
        cursor.execute("SET quarry_autoincrement_prefetch_sz = 256, innodb_lock_wait_timeout = 1")
        cursor.execute("INSERT INTO passing (b) VALUES ('reserves')")
        thread = threading.Thread(target=hold)
        thread.start()
        wait_for_state(lab, "User sleep")
        try:
            cursor.execute("INSERT INTO passing (b) VALUES ('passes'), ('too')")
            assert cursor.lastrowid == 2
            cursor.execute("INSERT INTO passing (b) VALUES ('again')")
            cursor.execute("SET quarry_autoincrement_prefetch_sz = 1")
            with pytest.raises(pymysql.err.Error, match="Lock wait timeout|Failed to read auto-increment"):
                cursor.execute("INSERT INTO passing (b) VALUES ('waits')")
        finally:
            cursor.execute(f"KILL QUERY {holder.thread_id()}")
            thread.join()
        cursor.execute("INSERT INTO passing (b) VALUES ('last')")
        cursor.execute("SELECT id, b FROM passing ORDER BY id LIMIT 4")
        assert cursor.fetchall() == ((1, b"reserves"), (2, b"passes"), (3, b"too"), (4, b"again"))
    connection.close()
    holder.close()
    lab.restart()
    assert next_id(lab, "passing") > 256


def test_an_id_that_was_named_in_vain_stops_no_insert(lab):
    """The row was refused, so InnoDB counts up to the id later: a range of ten for ten rows holds it."""
    lab.query(
        "CREATE OR REPLACE TABLE k.vain (id INT PRIMARY KEY AUTO_INCREMENT, u INT UNIQUE, b LONGBLOB) ENGINE=QUARRY"
    )
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        cursor.execute("SET quarry_autoincrement_prefetch_sz = 2")
        cursor.execute("INSERT INTO vain (u) VALUES (1)")
        with pytest.raises(pymysql.err.IntegrityError, match="Duplicate entry '1' for key 'u'"):
            cursor.execute("INSERT INTO vain (id, u) VALUES (10, 1)")
        rows = ", ".join(f"({number})" for number in range(2, 12))
        cursor.execute(f"INSERT INTO vain (u) VALUES {rows}")
        cursor.execute("INSERT INTO vain (u) VALUES (12)")
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT id) FROM vain")
        assert cursor.fetchone() == (12, 12)
    connection.close()


def test_a_wait_for_the_counter_does_not_stop_the_statement_that_has_it(lab):
    """An INSERT ... SELECT has InnoDB's counter, and asks for more ids while another session waits for the counter."""
    lab.query("CREATE OR REPLACE TABLE k.stalled (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE=QUARRY")
    gate, holder, waiter = lab.connect("k"), lab.connect("k"), lab.connect("k")
    failures = []

    def run(connection, statement):
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET quarry_autoincrement_prefetch_sz = 2, innodb_lock_wait_timeout = 10")
                cursor.execute(statement)
        except pymysql.err.Error as failure:
            failures.append(f"{statement}: {failure!r}")

    many = "INSERT INTO stalled (b) SELECT IF(seq = 5, GET_LOCK('gate', 100), seq) FROM seq_1_to_40"
    long = threading.Thread(target=run, args=(holder, many))
    short = threading.Thread(target=run, args=(waiter, "INSERT INTO stalled (b) VALUES ('waits')"))
    with gate.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK('gate', 0)")
        long.start()
        wait_for_state(lab, "User lock")
        short.start()
        waits = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        wait_for("a wait for InnoDB's counter", lambda: lab.query(waits))
        cursor.execute("SELECT RELEASE_LOCK('gate')")
    for thread in (long, short):
        thread.join()
    for connection in (gate, holder, waiter):
        connection.close()
    assert not failures, failures
    assert lab.query("SELECT COUNT(*), COUNT(DISTINCT id) FROM k.stalled") == ((41, 41),)


def test_autoincrement_explicit_ids_and_restart(lab):
    lab.query("CREATE OR REPLACE TABLE k.ids2 (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE=QUARRY")
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        cursor.execute("SET quarry_autoincrement_prefetch_sz = 100")
        cursor.execute("INSERT INTO ids2 (b) VALUES ('a')")
        cursor.execute("INSERT INTO ids2 VALUES (50, 'inside the range held')")
        for _ in range(120):
            cursor.execute("INSERT INTO ids2 (b) VALUES ('b')")
        cursor.execute("INSERT INTO ids2 VALUES (100000, 'far ahead')")
        cursor.execute("INSERT INTO ids2 (b) VALUES ('c')")
        assert cursor.lastrowid > 100000
    connection.close()
    lab.restart()
    lab.query("INSERT INTO k.ids2 (b) VALUES ('after the restart')")
    count, distinct = lab.query("SELECT COUNT(*), COUNT(DISTINCT id) FROM k.ids2")[0]
    assert count == distinct == 125


def test_ids_that_a_session_names_are_not_given_again(lab):
    """SET INSERT_ID, which stands before each statement that a binary log replays, between prefetched ids."""
    lab.query("CREATE OR REPLACE TABLE k.named (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE=QUARRY")
    connection = lab.connect("k")
    with connection.cursor() as cursor:
        cursor.execute("SET quarry_autoincrement_prefetch_sz = 10")
        cursor.execute("INSERT INTO named (b) VALUES ('prefetched')")
        for number in (7, 15):  # of the range held, and behind it
            cursor.execute(f"SET INSERT_ID = {number}")
            cursor.execute("INSERT INTO named (b) VALUES ('named')")
            assert cursor.lastrowid == number
        for _ in range(30):
            cursor.execute("INSERT INTO named (b) VALUES ('prefetched')")
            assert cursor.lastrowid > 15
    connection.close()
    assert lab.query("SELECT COUNT(*), COUNT(DISTINCT id) FROM k.named") == ((33, 33),)


# --- zeros ahead ----------------------------------------------------------------------------------------------------
def has_journal(path):
    """As src/io/journal.cc: XFS, and ext4 unless it was made without one."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True).stdout.strip()
    if kind != "ext2/ext3":
        return kind == "xfs"
    number = os.stat(path).st_dev
    device = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    task = pathlib.Path("/sys/fs/ext4") / device.resolve().name / "journal_task"
    return not (device.exists() and task.exists() and task.read_text().startswith("<"))


def test_zeros_are_ahead_of_small_flushes_where_a_journal_is(own_server):
    """There the file ends megabytes behind its last extent; elsewhere every byte is written once."""
    server = own_server("zeros", *NO_BACKGROUND)
    server.query("CREATE DATABASE k")
    server.query("CREATE TABLE k.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for row in range(40):
        server.query("INSERT INTO k.t VALUES (%s, %s)", (row, payload(row, 9000)))
    (segment,) = server.segments_of("k", "t")
    last = max(extent.offset + extent.size for extent in all_extents([segment]))
    assert (os.path.getsize(segment) - last > 1 << 20) == has_journal(segment)
    assert all(value == payload(row, 9000) for row, value in server.query("SELECT * FROM k.t"))
    with pytest.raises(pymysql.err.Error, match="read only"):
        server.query("SET GLOBAL quarry_zeroed_pool_bytes = 0")


# --- data paths -----------------------------------------------------------------------------------------------------
def test_data_paths_each_get_segments(own_server):
    server = own_server("paths", start=False)
    paths = [pathlib.Path(server.directory) / f"drive{number}" for number in range(3)]
    for path in paths:
        path.mkdir()
    server.options += [f"--quarry-data-paths={';'.join(map(str, paths))}"]
    server._new_private_server()
    server.start()
    server.query("CREATE DATABASE k")
    server.query("CREATE TABLE k.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    rows, size = 60, 50000
    for row in range(rows):
        server.query("INSERT INTO k.t VALUES (%s, %s)", (row, payload(row, size)))
    share = {path: sum(extent.value_size for extent in all_extents(path.glob("quarry/*/*.qseg"))) for path in paths}
    assert sum(share.values()) == rows * size
    assert min(share.values()) >= rows * size / 3 / 2, f"not striped: {share}"
    assert not list(
        (server.datadir / HOME_NAME / "stores").glob("*/*.qseg")
    ), "a segment in the data directory beside the data paths"
    server.restart()
    assert all(value == payload(row, size) for row, value in server.query("SELECT * FROM k.t"))
    # A path that is not mounted: its values fail by name or the engine refuses to start; nothing is created there anew.
    server.stop()
    paths[1].rename(paths[1].with_suffix(".away"))
    paths[1].mkdir()
    try:
        server.start()
        answers = [outcome(server, row) for row in range(rows)]
        assert any(isinstance(answer, str) for answer in answers), "values of the missing path were read"
        assert all(answer == payload(row, size) or isinstance(answer, str) for row, answer in enumerate(answers))
        server.stop()
    except Exception as failure:  # noqa: BLE001 - the server may refuse to start; the log must say why
        assert "drive1" in server.error_log(), failure
    (
        paths[1].rmdir()
        if not any(paths[1].iterdir())
        else pytest.fail(f"something was created in the empty mount point: {list(paths[1].iterdir())}")
    )
    paths[1].with_suffix(".away").rename(paths[1])
    server.start()
    assert all(value == payload(row, size) for row, value in server.query("SELECT * FROM k.t"))


def outcome(server, row):
    try:
        return server.query("SELECT b FROM k.t WHERE id = %s", (row,))[0][0]
    except pymysql.err.Error as failure:
        return str(failure)
