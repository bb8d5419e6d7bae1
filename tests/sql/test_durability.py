"""The durability promise, told by the order of system calls: a committed row never points at bytes not on disk.

At every commit the segment's fdatasync has returned before InnoDB (or the binlog) writes the commit. That is the order with
quarry_parallel_flush off, and of every commit that has a coordinator; test_parallel_flush.py is about the others.
"""

import threading

import pytest

from harness.server import NO_BACKGROUND, Server
from harness.trace import FLUSHES, WRITES, Trace, thread_of
from harness.values import payload

pytestmark = pytest.mark.quarry_only

WATCHED = ("pwrite64", "pwritev", "pwritev2", "write", *FLUSHES)
SEGMENT = ".qseg"
SHARING_CLIENTS, SHARED_COMMITS = 8, 30


@pytest.fixture(scope="module")
def durable():
    binlog = ("--log-bin=binlog", "--server-id=1", "--binlog-format=ROW")
    # Threads of InnoDB's that commit statistics, and flush the log each second, would take a statement's commit along.
    quiet = ("--innodb-stats-auto-recalc=OFF", "--innodb-flush-log-at-timeout=2700")
    server = Server("durability", [*binlog, *quiet, *NO_BACKGROUND, "--quarry-parallel-flush=OFF"]).start()
    server.query("CREATE DATABASE d")
    yield server
    server.remove()


@pytest.fixture
def table(durable):
    durable.query("CREATE OR REPLACE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    durable.query("CREATE OR REPLACE TABLE d.u (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    durable.query("INSERT INTO d.t VALUES (0, %s)", (payload("first", 9000),))
    durable.query("INSERT INTO d.u VALUES (0, %s)", (payload("first", 9000),))
    yield durable
    durable.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 0")


def assert_segments_synced_before(trace, redo_path, thread):
    """Every segment written was flushed, by a flush that began after its last write, and that flush had returned before
    `thread` first wrote the commit to `redo_path`."""
    written = trace.of(WRITES, SEGMENT)
    assert written, f"nothing was written to a segment\n{trace.show()}"
    commits = trace.of(WRITES, redo_path, thread)
    for path in {call.path for call in written}:
        last_write = max(call.ended for call in written if call.path == path)
        flushes = [call for call in trace.of(FLUSHES, path) if call.began > last_write]
        assert flushes, f"{path} was written but not flushed\n{trace.show()}"
        for commit in commits[:1]:
            assert flushes[0].ended < commit.began, f"{redo_path} was written before {path} was flushed\n{trace.show()}"
    return commits


@pytest.mark.parametrize("size", [5000, 70000, 3_000_000])
@pytest.mark.parametrize("flush_setting", [0, 1, 2])
@pytest.mark.parametrize("binlog", [0, 1], ids=["no-binlog", "binlog"])
def test_commit(table, flush_setting, binlog, size):
    table.query(f"SET GLOBAL innodb_flush_log_at_trx_commit = {flush_setting}")
    connection = table.connect("d", autocommit=False)
    with connection.cursor() as cursor:
        cursor.execute(f"SET sql_log_bin = {binlog}")
        cursor.execute("SELECT 1 FROM t, u")
        cursor.execute("INSERT INTO t VALUES (1, %s)", (payload(size, size),))
        cursor.execute("INSERT INTO u VALUES (1, %s)", (payload(-size, size),))
        cursor.execute("UPDATE t SET b = %s WHERE id = 0", (payload("update", size),))
        thread = thread_of(connection)
        with Trace(table, WATCHED) as trace:
            cursor.execute("INSERT INTO t VALUES (2, %s)", (payload(size + 1, size),))
            connection.commit()
    connection.close()
    redo = assert_segments_synced_before(trace, "ib_logfile0", thread)
    if binlog:
        assert assert_segments_synced_before(trace, "binlog.0", thread), f"no binlog write seen\n{trace.show()}"
    elif flush_setting != 0:
        assert redo, f"no redo write seen, so the order was not tested\n{trace.show()}"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1, {})",
        "UPDATE t SET b = {}",
        "REPLACE INTO t VALUES (0, {})",
        "INSERT INTO t SELECT id + 5, {} FROM u",
        "INSERT INTO t VALUES (0, 'x') ON DUPLICATE KEY UPDATE b = {}",
        "UPDATE t, u SET t.b = {}, u.b = {}",
    ],
)
def test_autocommit_statements(table, statement):
    connection = table.connect("d")
    with connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("SELECT 1 FROM t, u")
        thread = thread_of(connection)
        with Trace(table, WATCHED) as trace:
            cursor.execute(
                statement.replace("{}", "%s"), tuple(payload(("a", n), 40000) for n in range(statement.count("{}")))
            )
    connection.close()
    assert assert_segments_synced_before(trace, "ib_logfile0", thread), f"no redo write seen\n{trace.show()}"


def test_trigger(table):
    table.query(
        "CREATE TRIGGER d.copies BEFORE INSERT ON d.u FOR EACH ROW INSERT INTO d.t VALUES (NEW.id + 100, "
        "CONCAT(NEW.b, NEW.b))"
    )
    connection = table.connect("d")
    with connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("INSERT INTO u VALUES (8, 'opens both')")
        thread = thread_of(connection)
        with Trace(table, WATCHED) as trace:
            cursor.execute("INSERT INTO u VALUES (9, %s)", (payload(9, 50000),))
    connection.close()
    assert assert_segments_synced_before(trace, "ib_logfile0", thread), f"no redo write seen\n{trace.show()}"
    assert len({call.path for call in trace.of(WRITES, SEGMENT)}) == 2


def test_update_that_cascades(table):
    """The child's row is written inside InnoDB, with the head that it had; the parent's new value is flushed before both."""
    table.query("CREATE OR REPLACE TABLE d.parent (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    table.query(
        "CREATE TABLE d.child (id INT PRIMARY KEY, b LONGBLOB, FOREIGN KEY (id) REFERENCES parent (id) "
        "ON UPDATE CASCADE) ENGINE=QUARRY"
    )
    for name in ("parent", "child"):
        table.query(f"INSERT INTO d.{name} VALUES (1, %s)", (payload(name, 9000),))
    connection = table.connect("d")
    with connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        thread = thread_of(connection)
        with Trace(table, WATCHED) as trace:
            cursor.execute("UPDATE parent SET id = 2, b = %s", (payload("moved", 50000),))
    connection.close()
    assert assert_segments_synced_before(trace, "ib_logfile0", thread), f"no redo write seen\n{trace.show()}"
    assert table.query("SELECT id, b FROM d.child") == ((2, payload("child", 9000)),)
    table.query("DROP TABLE d.child, d.parent")


def test_xa_prepare(table):
    """XA PREPARE is the promise: the bytes are on disk before InnoDB's prepare is."""
    connection = table.connect("d")
    with connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        thread = thread_of(connection)
        cursor.execute("XA START 'x'")
        cursor.execute("INSERT INTO t VALUES (3, %s)", (payload(3, 60000),))
        cursor.execute("XA END 'x'")
        with Trace(table, WATCHED) as trace:
            cursor.execute("XA PREPARE 'x'")
        cursor.execute("XA COMMIT 'x'")
    connection.close()
    assert assert_segments_synced_before(trace, "ib_logfile0", thread), f"no redo write seen\n{trace.show()}"


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t FORCE, ALGORITHM=COPY",
        "ALTER TABLE t ENGINE=QUARRY",
        "ALTER TABLE t ADD COLUMN x LONGBLOB DEFAULT REPEAT('x', 9000)",
        "ALTER TABLE plain ENGINE=QUARRY",
        "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 3",
        "CREATE OR REPLACE TABLE made ENGINE=QUARRY SELECT * FROM t",
        "INSERT INTO u SELECT id + 1000, b FROM t",
        "OPTIMIZE TABLE t",
    ],
)
def test_ddl_is_durable_when_it_returns(table, statement):
    """Whatever a statement wrote to segments was flushed before the client got its answer."""
    for row in range(1, 20):
        table.query("INSERT INTO d.t VALUES (%s, %s)", (row, payload(row, 3000 * row)))
    table.query("CREATE OR REPLACE TABLE d.plain ENGINE=InnoDB SELECT * FROM d.t")
    connection = table.connect("d")
    with connection.cursor() as cursor:
        with Trace(table, WATCHED) as trace:
            cursor.execute(statement)
    connection.close()
    written = trace.of(WRITES, SEGMENT)
    if "FORCE" in statement or "CREATE" in statement or "plain" in statement or "INSERT" in statement:
        assert written, f"no segment was written\n{trace.show()}"
    for path in {call.path for call in written}:
        last_write = max(call.ended for call in written if call.path == path)
        assert any(
            call.began > last_write for call in trace.of(FLUSHES, path)
        ), f"{path} was not flushed\n{trace.show(trace.of(WATCHED, SEGMENT))}"


def test_new_segment_and_its_directory_are_flushed(durable):
    """A file whose name is not on disk is no file: the directory of a new segment is flushed too."""
    durable.query("CREATE OR REPLACE TABLE d.fresh (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    with Trace(durable, WATCHED) as trace:
        durable.query("INSERT INTO d.fresh VALUES (1, %s)", (payload("fresh", 9000),))
    segments = {call.path for call in trace.of(WRITES, SEGMENT)}
    assert segments
    for path in segments:
        directory = path.rsplit("/", 1)[0]
        assert any(call.path == directory for call in trace.of(FLUSHES)), f"{directory} was not flushed\n{trace.show()}"


def test_lone_commits_flush_each_and_sharers_share(durable):
    """Group commit: many committers, fewer flushes; never a commit without one."""
    durable.query("CREATE OR REPLACE TABLE d.g (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    durable.query("INSERT INTO d.g VALUES (-1, %s)", (payload("g", 9000),))
    with Trace(durable, WATCHED) as trace:
        connection = durable.connect("d")
        with connection.cursor() as cursor:
            for row in range(10):
                cursor.execute("INSERT INTO g VALUES (%s, %s)", (row, payload(row, 9000)))
        connection.close()
    assert len(trace.of(FLUSHES, SEGMENT)) >= 10, trace.show(trace.of(WATCHED, SEGMENT))
    before = durable.status("quarry_%flush%")

    def commit(client):
        with durable.connect("d") as connection, connection.cursor() as cursor:
            for row in range(SHARED_COMMITS):
                cursor.execute("INSERT INTO g VALUES (%s, %s)", (1000 * client + row, payload(row, 9000)))

    clients = [threading.Thread(target=commit, args=(client,)) for client in range(1, SHARING_CLIENTS + 1)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    done = {name: int(value) - int(before[name]) for name, value in durable.status("quarry_%flush%").items() if value.isdigit()}
    assert durable.query("SELECT COUNT(*) FROM d.g WHERE id >= 1000") == ((SHARED_COMMITS * SHARING_CLIENTS,),)
    # A committer that comes when a flush has just covered it waits for none, and is not counted.
    assert SHARED_COMMITS * SHARING_CLIENTS >= done["quarry_committers_flushed"] > done["quarry_flushes"] > 0, done
