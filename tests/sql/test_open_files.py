"""quarry_open_files: never more segments open than that, whatever a transaction touches, and every value is there."""

import pathlib

import pytest

from harness.server import Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

LIMIT = 16
TABLES = 60
LONG = 9000


@pytest.fixture(scope="module")
def server():
    options = [f"--quarry-open-files={LIMIT}", "--quarry-segment-size=1M", "--quarry-recent-cache-bytes=0", "--loose-quarry-cache-size=0"]
    server = Server("open-files", options).start()
    server.query("CREATE DATABASE d")
    yield server
    server.remove()


def open_segments(server):
    """As the kernel has them."""
    links = pathlib.Path(f"/proc/{server.private.process.pid}/fd").iterdir()
    return sum(str(link.readlink()).endswith(".qseg") for link in links if link.is_symlink())


def check(server):
    figures = {name: int(value) for name, value in server.status("quarry_open_files%").items()}
    assert figures["quarry_open_files_limit"] == LIMIT
    assert figures["quarry_open_files"] <= LIMIT and open_segments(server) <= LIMIT, figures


def test_one_transaction_over_many_tables(server):
    with server.connect("d") as connection, connection.cursor() as cursor:
        for table in range(TABLES):
            cursor.execute(f"CREATE TABLE t{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        connection.begin()
        for row in range(2):
            for table in range(TABLES):
                cursor.execute(f"INSERT INTO t{table} VALUES (%s, %s)", (row, payload(table * 10 + row, LONG)))
            check(server)
        connection.commit()
        for table in range(TABLES):
            cursor.execute(f"SELECT id, b FROM t{table} ORDER BY id")
            assert cursor.fetchall() == tuple((row, payload(table * 10 + row, LONG)) for row in range(2))
        check(server)


def test_one_statement_over_many_partitions(server):
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 200")
        cursor.execute("INSERT INTO p SELECT seq, REPEAT(CHAR(65 + seq MOD 26), 9000) FROM seq_1_to_400")
        check(server)
        cursor.execute("SELECT COUNT(*) FROM p WHERE b = REPEAT(CHAR(65 + id MOD 26), 9000)")
        assert cursor.fetchall() == ((400,),)
        check(server)
        cursor.execute("CHECK TABLE p EXTENDED")
        assert cursor.fetchall()[-1][-1] == "OK"


def test_one_transaction_of_many_segments(server):
    with server.connect("d") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE large (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        connection.begin()
        for row in range(60):
            cursor.execute("INSERT INTO large VALUES (%s, %s)", (row, payload(row, 900_000)))
        check(server)
        connection.commit()
    assert dict(server.query("SELECT id, b FROM d.large")) == {row: payload(row, 900_000) for row in range(60)}
    # What was changed is the same after a crash.
    server.kill()
    server.start()
    check(server)
    assert dict(server.query("SELECT id, b FROM d.large")) == {row: payload(row, 900_000) for row in range(60)}


def test_without_a_value_it_is_a_quarter_of_what_the_server_may_open(server):
    assert int(server.query("SELECT @@quarry_open_files")[0][0]) == LIMIT
    server.private.options.append("--quarry-open-files=0")
    server.kill()
    server.start()
    limits = pathlib.Path(f"/proc/{server.private.process.pid}/limits").read_text()
    (soft,) = (int(line.split()[3]) for line in limits.splitlines() if line.startswith("Max open files"))
    assert int(server.status("quarry_open_files_limit")["quarry_open_files_limit"]) == soft // 4
