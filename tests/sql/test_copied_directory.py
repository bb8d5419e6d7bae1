"""A data directory that was copied, and its source's data paths: whatever happens in the copy, the source loses nothing."""


import pymysql
import pytest
from quarry_server.run import run_or_raise
from quarry_server.server import ServerError
from harness.gc import Gc
from harness.values import payload

pytestmark = pytest.mark.quarry_only

ROWS = 100
ADOPT = "--quarry-adopt-data-paths=ON"


def value(row):
    return payload(row, 20000)


def fill(server):
    server.query("CREATE DATABASE d")
    for table in ("t", "dropped"):
        server.query(f"CREATE TABLE d.{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        for row in range(ROWS):
            server.query(f"INSERT INTO d.{table} VALUES (%s, %s)", (row, value(row)))


def check(server, tables=("t", "dropped")):
    for table in tables:
        rows = server.query(f"SELECT id, b FROM d.{table} ORDER BY id")
        assert [row for row, found in rows if found == value(row)] == list(range(ROWS))


def files_below(path):
    return {found: found.stat().st_blocks for found in path.rglob("*.qseg*")}


def started_log(server):
    return server.error_log().rpartition(" as process ")[2]


def says_read_only(server, path):
    ((_type, _name, status),) = server.query("SHOW ENGINE QUARRY STATUS")
    said = f"data path '{path}' was last opened by another data directory"
    assert (said in status) == (said in started_log(server))
    return said in status


@pytest.fixture
def pair(own_server, tmp_path):
    """(source, which was stopped cleanly, its copy, their data path)"""
    path = tmp_path / "path"
    path.mkdir()
    source = own_server("source", f"--quarry-data-paths={path}")
    fill(source)
    source.stop()
    copy = own_server("source-copy", f"--quarry-data-paths={path}", start=False)
    run_or_raise(["cp", "-a", "--sparse=always", source.datadir, copy.datadir])
    return source, copy, path


def do_harm(server):
    """What gives back the space of everything, where it may."""
    server.query("DELETE FROM d.t")
    server.query("DROP TABLE d.dropped")
    Gc(server).run()


def test_the_source_loses_nothing(pair):
    source, copy, path = pair
    before = files_below(path)
    copy.start()
    do_harm(copy)
    copy.restart()
    copy.kill()
    copy.start()
    copy.stop()
    assert files_below(path) == before
    source.start()
    check(source)


def test_the_copy_reads_and_says_so(pair):
    source, copy, path = pair
    copy.start()
    check(copy)
    assert says_read_only(copy, path)
    with pytest.raises(pymysql.err.MySQLError, match="was last opened by another data directory"):
        copy.query("INSERT INTO d.t VALUES (1000, %s)", (value(1),))
    copy.query("INSERT INTO d.t VALUES (1001, 'short')")
    source.start()  # the copy does not keep it from its own
    assert not says_read_only(source, path)
    source.query("INSERT INTO d.t VALUES (1000, %s)", (value(1),))
    source.query("DELETE FROM d.t WHERE id = 1000")
    check(source)


def test_beside_its_source_it_does_not_open_the_path(pair):
    source, copy, path = pair
    source.start()
    with pytest.raises(ServerError):
        copy.start()
    assert f"data path '{path}' is in use by another server" in copy.error_log()
    # Recorded, and not configured: the rest of the copy works.
    copy.restart(options=[])
    with pytest.raises(pymysql.err.MySQLError, match="is in use by another server"):
        copy.query("SELECT b FROM d.t")
    do_harm(copy)
    check(source)


def test_a_copy_with_a_path_of_its_own_writes_there(pair, tmp_path):
    source, copy, path = pair
    own = tmp_path / "own"
    own.mkdir()
    copy.restart(options=[f"--quarry-data-paths={own};{path}"])
    copy.query("INSERT INTO d.t VALUES (1000, %s)", (value(1),))
    assert copy.query("SELECT b FROM d.t WHERE id = 1000") == ((value(1),),)
    assert list(own.rglob("*.qseg"))
    do_harm(copy)
    copy.stop()
    source.start()
    check(source)


def test_adopting_makes_the_path_ones_own(pair):
    source, copy, path = pair
    copy.restart(options=[f"--quarry-data-paths={path}", ADOPT])
    assert not says_read_only(copy, path) and "quarry_adopt_data_paths" in started_log(copy)
    copy.query("INSERT INTO d.t VALUES (1000, %s)", (value(1),))
    copy.restart(options=[f"--quarry-data-paths={path}"])
    copy.query("DELETE FROM d.t WHERE id = 1000")
    check(copy)
    copy.stop()
    source.start()
    assert says_read_only(source, path)
    source.restart(options=[f"--quarry-data-paths={path}", ADOPT])
    source.restart(options=[f"--quarry-data-paths={path}"])
    assert not says_read_only(source, path)
    check(source)
