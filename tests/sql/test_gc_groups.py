"""Small tables share a pass: they wait for the same transactions once, and what befalls one concerns none of the others."""

import pytest

from harness.gc import Gc
from harness.server import Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

TABLES = 40
LONG = 9000


@pytest.fixture(scope="module")
def server():
    server = Server("gc-groups", ["--quarry-gc=OFF", "--innodb-flush-log-at-trx-commit=0"]).start()
    yield server
    server.remove()


@pytest.fixture
def tables(server):
    server.query("CREATE OR REPLACE DATABASE d")
    server.query("CREATE TABLE d.other (id INT PRIMARY KEY)")
    for table in range(TABLES):
        server.query(f"CREATE TABLE d.t{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        server.query(f"INSERT INTO d.t{table} VALUES (1, %s), (2, %s)", (payload(table, LONG), payload(100 + table, LONG)))
        server.query(f"DELETE FROM d.t{table} WHERE id = 2")
    return server


def check(server, *, without=()):
    for table in set(range(TABLES)) - set(without):
        assert server.query(f"SELECT id, b FROM d.t{table}") == ((1, payload(table, LONG)),)


def test_they_wait_once_for_all(tables):
    gc = Gc(tables)
    done = gc.run_well()
    assert done["passes"] == TABLES and done["rows_scanned"] == TABLES
    assert done["looks"] < TABLES, "one look at least for each pass, if they waited one by one"
    assert done["reclaimed_bytes"] >= TABLES * LONG // 2
    check(tables)


def test_what_befalls_one_concerns_none_of_the_others(tables):
    gc = Gc(tables)
    with tables.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SELECT * FROM other")
        request = gc.request()
        assert gc.wait_held().endswith(f" and {TABLES - 1} more")
        before = gc.status()
        tables.query("RENAME TABLE d.t3 TO d.renamed")
        tables.query("DROP TABLE d.t5")
        tables.query("ALTER TABLE d.t7 FORCE")
        cursor.execute("ROLLBACK")
    gc.wait_done(request)
    after = gc.status()
    assert after["passes"] == before["passes"] + TABLES - 3, after
    assert after["passes_dropped"] == before["passes_dropped"] + 3, after
    check(tables, without=(3, 5))
    assert tables.query("SELECT b FROM d.renamed") == ((payload(3, LONG),),)
