"""A scan that cannot end within quarry_gc_timeout is not begun again and again: it is named, and begun when it may take its time."""

import pytest

from harness.gc import Gc
from harness.server import Server

pytestmark = pytest.mark.quarry_only

ROWS_MAX = 16_000_000


@pytest.fixture
def server():
    server = Server("gc-forecast", ["--quarry-gc=OFF", "--quarry-gc-timeout=1", "--innodb-flush-log-at-trx-commit=0"]).start()
    yield server
    server.remove()


def needed_seconds(server, table):
    (row,) = server.query("SELECT gc_needs_seconds FROM information_schema.quarry_tables WHERE table_name = %s", (table,))
    return row[0]


@pytest.mark.nightly
def test_a_scan_that_takes_too_long_is_named_and_waits(server):
    gc = Gc(server)
    server.query("CREATE DATABASE d")
    for table in ("small", "large"):
        server.query(f"CREATE TABLE d.{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        server.query(f"INSERT INTO d.{table} VALUES (0, REPEAT('a', 100000))")
    rows = 0
    while gc.run()["passes_dropped"] == 0:
        assert rows < ROWS_MAX, "a scan of so many rows should take more than a second"
        more = max(rows, 1_000_000)
        server.query(f"INSERT INTO large SELECT seq, 'x' FROM seq_{rows + 1}_to_{rows + more}", database="d")
        rows += more
    size = len(server.error_log())
    for _ in range(3):
        done = gc.run()
        assert (done["passes"], done["passes_dropped"], done["passes_skipped"]) == (1, 0, 1), done
        assert "`d`.`large`: a scan takes about" in done["last_error"], done
    assert needed_seconds(server, "large") > 1
    assert needed_seconds(server, "small") is None
    assert server.error_log()[size:].count("no mark pass over table `d`.`large`") == 1
    server.query("SET GLOBAL quarry_gc_timeout = 3600")
    assert gc.run_well()["passes"] == 2
    assert needed_seconds(server, "large") is None
