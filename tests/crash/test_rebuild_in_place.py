"""A rebuild in place, cut off or failing at each step of it: the store is the table's that InnoDB has, and of no other.

A rebuild gives the rows another InnoDB table, while their heads point into the store of the old one. The store is bound to
both before InnoDB commits, and to the one that is left after (docs/internals/durability.md). Whatever comes between, the start or the
sweep must end it: every value is there, GC gives back what is dead, and DROP TABLE everything.
"""

import errno
import os
import random
import re

import kill_at
import pymysql
import pytest
from ddl_kinds import SERVER_FAULTS
from harness import io_layer
from harness.gc import Gc
from harness.server import Server
from harness.trace import thread_of
from harness.values import SEED, payload
from harness.waiting import wait_for
from quarry_server.server import HOME_NAME, ServerError

pytestmark = pytest.mark.quarry_only

KILLS = int(os.environ.get("QUARRY_TEST_KILLS", "0"))  # of each table
ROWS, KEPT_ROWS, VALUE_BYTES = 40, 10, 100_000
SHAPES = {"plain": "", "partitioned": "PARTITION BY HASH (id) PARTITIONS 3"}
REBUILD = "ALTER TABLE app.t FORCE, ALGORITHM=INPLACE"
OPTIONS = ("--quarry-gc=OFF", "--quarry-segment-size=1M")
REBINDING = "SELECT COUNT(*) FROM information_schema.quarry_tables WHERE state = 'REBINDING'"
STORES = """
    SELECT q.table_id = i.table_id FROM information_schema.innodb_sys_tables i
    LEFT JOIN information_schema.quarry_tables q ON q.table_id = i.table_id AND q.state = 'BOUND'
    WHERE i.name = 'app/t' OR i.name LIKE 'app/t#P#%'
"""


def fill(server, shape):
    """The table `t`; its rows."""
    server.query("CREATE DATABASE IF NOT EXISTS app")  # not anew: a kill leaves files of InnoDB's partitions in it
    server.query(f"CREATE OR REPLACE TABLE app.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY {SHAPES[shape]}")
    rows = {row: payload(row, VALUE_BYTES) for row in range(ROWS)}
    connection = server.connect("app")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", list(rows.items()))
    connection.close()
    return rows


def check_bound(server):
    """Nothing is undecided, and each table of InnoDB's has its store."""
    assert server.query(REBINDING) == ((0,),)
    assert {row[0] for row in server.query(STORES)} == {1}


def check_rows(server, rows):
    assert dict(server.query("SELECT id, b FROM app.t")) == rows
    assert server.query("CHECK TABLE app.t")[-1][-1] == "OK"


def check_all_comes_back(server, rows):
    """The table is one like any other: rows change, GC gives back dead space, DROP the rest."""
    server.query("INSERT INTO app.t VALUES (%s, %s)", (ROWS, payload(ROWS, VALUE_BYTES)))
    server.query("DELETE FROM app.t WHERE id < %s", (ROWS - KEPT_ROWS,))
    Gc(server).run_well()
    rows = {row: value for row, value in rows.items() if row >= ROWS - KEPT_ROWS} | {ROWS: payload(ROWS, VALUE_BYTES)}
    check_rows(server, rows)
    live = len(rows) * VALUE_BYTES
    real = int(server.query("SELECT SUM(real_bytes) FROM information_schema.quarry_tables WHERE state = 'BOUND'")[0][0])
    assert real < 1.5 * live, f"{real} bytes for {live}"
    server.query("DROP TABLE app.t")


def check_nothing_is_left(server):
    home = server.datadir / HOME_NAME
    wait_for("an empty home", lambda: not [*(home / "stores").iterdir(), *(home / "trash").iterdir()])


def points_of(server, shape):
    """Every place of the rebuild from its first flush of the catalogue on."""
    fill(server, shape)
    connection = server.connect("app")
    points = kill_at.run(server, connection, REBUILD).points
    connection.close()
    first = next(i for i, point in enumerate(points) if "CATALOGUE" in point.file)
    return points[first:]


def chosen(points):
    """As many as are asked for; else the first calls behind InnoDB's commit, and some around the catalogue's flushes."""
    rng = random.Random(f"{SEED}-rebuild")
    if KILLS:
        return rng.sample(points, min(KILLS, len(points)))
    quarrys = [i for i, point in enumerate(points) if HOME_NAME in point.file]
    commit = next(i for i, point in enumerate(points) if point.file.startswith("ib_logfile"))
    committed = next(i for i in quarrys if i > commit)
    flushes = [i for i in quarrys if "CATALOGUE" in points[i].file]
    around = sorted({j for i in flushes for j in (i, i + 1, i + 2) if j < len(points)} - {committed, committed + 1})
    return [points[i] for i in (committed - 1, committed, committed + 1, *rng.sample(around, 3))]


def starts_again(server):
    """False: InnoDB's recovery stops at what the kill left of its own files (ddl_kinds.SERVER_FAULTS)."""
    try:
        server.start()
    except ServerError:
        if any(re.search(fault.pattern, server.error_log()) for fault in SERVER_FAULTS if not fault.kinds):
            return False
        raise
    return True


@pytest.fixture
def killed_server(own_server):
    made = []

    def new():
        made.append(own_server(f"rebuild-in-place-{len(made)}", *OPTIONS))
        return made[-1]

    return new


@pytest.mark.parametrize("shape", SHAPES)
def test_kill_in_a_rebuild(killed_server, shape):
    server = killed_server()
    try:
        points = chosen(points_of(server, shape))
    except kill_at.CannotTrace as reason:
        pytest.skip(str(reason))
    check_bound(server)
    for point in points:
        rows = fill(server, shape)
        connection = server.connect("app")
        killed = kill_at.run(server, connection, REBUILD, point).killed
        connection.close()
        if killed and not starts_again(server):
            assert shape == "partitioned", point
            print(f"{shape}, {point}: InnoDB does not start")
            server = killed_server()
            continue
        print(f"{shape}, {point}: {'killed' if killed else 'done before the point'}")
        check_bound(server)
        check_rows(server, rows)
        check_all_comes_back(server, rows)
    check_nothing_is_left(server)


@pytest.fixture(scope="module")
def failing():
    """A server whose calls on files can be made to fail, and the layer that does it."""
    try:
        layer = io_layer.IoLayer(Server("rebuild-fails").directory)
    except io_layer.CannotBuild as reason:
        pytest.skip(str(reason))
    server = Server("rebuild-fails", [*io_layer.OPTIONS, *OPTIONS], environment=layer.environment).start()
    yield server, layer
    server.remove()
    layer.remove()


def rebuild_with_failures(failing, after, thread_alone=True):
    """A rebuild of which the catalogue's flushes fail from the `after`th on; what the client hears."""
    server, layer = failing
    connection = server.connect("app")
    thread = thread_of(connection) if thread_alone else 0
    layer.arm(io_layer.FAIL_FROM_THEN_ON, "fdatasync", "CATALOGUE", after=after, thread=thread, error=errno.EIO)
    try:
        with connection.cursor() as cursor:
            cursor.execute(REBUILD)
        return None
    except pymysql.err.Error as failure:
        return failure
    finally:
        assert layer.fired
        if thread_alone:
            layer.disarm()
        connection.close()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rebuild_that_cannot_be_announced_fails(failing, shape):
    server, _ = failing
    stores = 1 if shape == "plain" else 3
    for after in range(stores):
        rows = fill(server, shape)
        before = server.query("SELECT table_id FROM information_schema.quarry_tables WHERE state = 'BOUND'")
        failure = rebuild_with_failures(failing, after)
        assert failure is not None and "Quarry could not rebuild" in failure.args[1], failure
        assert server.query("SELECT table_id FROM information_schema.quarry_tables WHERE state = 'BOUND'") == before or after
        wait_for("the sweep", lambda: server.query(REBINDING) == ((0,),))
        check_bound(server)
        check_rows(server, rows)
        server.query(REBUILD)
        check_bound(server)
        check_rows(server, rows)
        check_all_comes_back(server, rows)
    check_nothing_is_left(server)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("by", ["sweep", "start", "drop"])
def test_a_rebuild_whose_end_cannot_be_written_is_settled(failing, shape, by):
    """InnoDB has committed: the ALTER succeeds, and the sweep, or the next start, does what it could not."""
    server, layer = failing
    stores = 1 if shape == "plain" else 3
    rows = fill(server, shape)
    assert rebuild_with_failures(failing, after=stores, thread_alone=by == "sweep") is None
    if by == "sweep":
        wait_for("the sweep", lambda: server.query(REBINDING) == ((0,),))
    else:
        assert server.query(REBINDING) == ((stores,),)
        check_rows(server, rows)
    if by == "drop":
        server.query("DROP TABLE app.t")
    if by == "start":
        server.kill()
    layer.disarm()
    if by == "start":
        server.start()
    if by != "drop":
        check_bound(server)
        check_rows(server, rows)
        check_all_comes_back(server, rows)
    check_nothing_is_left(server)
