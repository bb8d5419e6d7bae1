"""An acknowledged commit belongs to the engine: none is left prepared for others where the server may run without it.

Prepared transactions are everybody's (XA RECOVER, XA COMMIT and XA ROLLBACK need no privilege). So commits are prepared only
where quarry=FORCE keeps the server down without the engine, and a server that cannot decide one stays down, too.
"""

import pymysql
import pytest
from quarry_server.server import ServerError

from harness.server import Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

# InnoDB's log is not flushed in the background: a commit that was answered is found prepared after a kill.
OPTIONS = ("--innodb-flush-log-at-timeout=2700", "--innodb-stats-auto-recalc=OFF", "--quarry-gc=OFF", "--quarry-scrub-rate=0")
LONG = 9000


@pytest.fixture
def make_server(tmp_path):
    """Makes servers that have an account without any right, and d.t with one row in each of two data paths' segments."""
    made = []

    def make(*options, paths=()):
        for path in paths:
            (tmp_path / path).mkdir()
        if paths:
            options = [*options, "--quarry-data-paths=" + ";".join(str(tmp_path / path) for path in paths)]
        server = Server("security-prepared", [*OPTIONS, *options]).start()
        made.append(server)
        server.query("CREATE USER low@localhost")
        server.query("CREATE DATABASE d")
        server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        insert(server, 0)
        return server

    yield make
    for server in made:
        server.remove()


def insert(server, *rows):
    for row in rows:
        server.query("INSERT INTO d.t VALUES (%s, %s)", (row, payload(row, LONG)))


def status(server, name):
    return server.status(name)[name]


def start_fails(server):
    """The log of a start that must fail."""
    before = len(server.error_log())
    with pytest.raises(ServerError):
        server.start()
    return server.error_log()[before:]


def test_only_with_force_anything_is_prepared(make_server):
    server = make_server()
    assert status(server, "quarry_parallel_flush_active") == "ON"
    assert int(status(server, "quarry_commits_prepared")) == 1
    server.query("SET GLOBAL quarry_parallel_flush = OFF")
    assert status(server, "quarry_parallel_flush_active") == "OFF"
    server.query("SET GLOBAL quarry_parallel_flush = ON, GLOBAL innodb_flush_log_at_trx_commit = 2")
    assert status(server, "quarry_parallel_flush_active") == "OFF"
    server.restart([*OPTIONS, "--quarry=FORCE_PLUS_PERMANENT"])
    assert status(server, "quarry_parallel_flush_active") == "ON"
    server.restart([*OPTIONS, "--quarry=ON"])
    assert status(server, "quarry_parallel_flush_active") == "OFF"
    assert "was not loaded with quarry=FORCE" in server.error_log()
    insert(server, 1, 2)
    assert int(status(server, "quarry_commits_prepared")) == 0
    assert int(status(server, "quarry_commit_syncs")) == 2


def test_without_force_nothing_waits_for_the_next_server(make_server, session_of):
    """The audit's chain: commit, kill -9, start without the engine, and an account without any right rolls back."""
    server = make_server("--quarry=ON")
    insert(server, 1)
    server.kill()
    server.private.plugin, plugin = None, server.private.plugin
    server.private.options = [option for option in server.private.options if not option.startswith("--quarry")]
    server.start()
    low = session_of(server, "low")
    low.execute("XA RECOVER")
    assert low.fetchall() == ()
    server.stop()
    server.private.plugin = plugin
    server.start()
    assert dict(server.query("SELECT * FROM d.t")) == {row: payload(row, LONG) for row in (0, 1)}


@pytest.mark.parametrize("what", ["the library is gone", "the library is not asked for"])
def test_with_force_no_server_runs_without_the_engine(make_server, what):
    server = make_server()
    insert(server, 1)
    server.kill()
    plugin = server.private.plugin
    if what == "the library is gone":
        server.private.plugin_dir.joinpath("ha_quarry.so").unlink()
        server.private.plugin = None
        server.private.options += ["--plugin-load-add=ha_quarry.so", "--quarry=FORCE"]
    else:
        server.private.plugin = None
        server.private.options += ["--quarry=FORCE"]
    assert "unknown variable 'quarry" in start_fails(server)
    server._new_private_server()
    assert server.private.plugin == plugin
    server.start()
    assert dict(server.query("SELECT * FROM d.t")) == {row: payload(row, LONG) for row in (0, 1)}


def test_a_missing_path_with_an_undecided_commit_keeps_the_server_down(make_server, session_of, tmp_path):
    server = make_server(paths=["drive"])
    insert(server, 1)
    server.kill()
    (tmp_path / "drive").rename(tmp_path / "away")
    log = start_fails(server)
    assert "cannot be decided" in log and "drive' is missing" in log and "quarry=ON and skip_networking=ON" in log
    # The way that the message names, for who must decide by hand.
    server.options.append("--quarry=ON")
    server._new_private_server()
    server.start()
    assert len(server.query("XA RECOVER")) == 1
    server.kill()
    (tmp_path / "away").rename(tmp_path / "drive")
    server.options.remove("--quarry=ON")
    server._new_private_server()
    server.start()
    assert server.query("XA RECOVER") == ()
    assert dict(server.query("SELECT * FROM d.t")) == {row: payload(row, LONG) for row in (0, 1)}


@pytest.mark.parametrize("mounted", [False, True], ids=["no folder", "an empty mount point"])
def test_a_missing_path_takes_only_its_values_away(make_server, tmp_path, mounted):
    server = make_server(paths=["one", "two"])
    insert(server, *range(1, 12))
    server.stop()
    (tmp_path / "two").rename(tmp_path / "away")
    if mounted:
        (tmp_path / "two").mkdir()
    server.start()
    assert "data path '" in server.error_log() and "two' is missing" in server.error_log()
    answers = []
    for row in range(12):
        try:
            answers.append(server.query("SELECT b FROM d.t WHERE id = %s", (row,))[0][0] == payload(row, LONG))
        except pymysql.err.Error as failure:
            assert "two' is missing" in str(failure)
            answers.append(None)
    assert None in answers and True in answers and False not in answers
    server.query("CREATE TABLE d.other (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.other VALUES (1, %s)", (payload("other", LONG),))
    assert not mounted or not list((tmp_path / "two").iterdir())
    server.stop()
    if mounted:
        (tmp_path / "two").rmdir()
    (tmp_path / "away").rename(tmp_path / "two")
    server.start()
    assert dict(server.query("SELECT * FROM d.t")) == {row: payload(row, LONG) for row in range(12)}


def test_a_path_that_never_was_ours_is_a_mistake_of_the_setting(make_server, tmp_path):
    server = make_server(paths=["one"])
    server.stop()
    server.options[-1] += f";{tmp_path / 'tow'}"
    server._new_private_server()
    assert f"data path '{tmp_path / 'tow'}' is missing (allowed in quarry_data_paths" in start_fails(server)
