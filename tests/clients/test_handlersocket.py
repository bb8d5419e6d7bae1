"""HandlerSocket: reads and writes rows through the handler's interface, without SQL, over a port of its own.

It keeps its tables open and locked between requests, stores into the fields itself and commits a batch of requests at
once: another caller of the engine than the SQL layer.
"""

import pytest
from handlersocket import HandlerSocket, HandlerSocketError
from harness.server import ENGINE, Server
from payloads import SMALL_SIZES_BYTES, check_fetched, check_in_server, sha256
from quarry_server.ports import free_ports
from quarry_server.private import new_secret
from quarry_server.server import MARIADB


class Doors:
    """A server, and the connections that read and write rows of it."""

    def __init__(self, server, read_port, write_port):
        self.server, self.read_port, self.write_port = server, read_port, write_port
        self.reading, self.writing = server.secrets.values()

    def reader(self):
        return HandlerSocket(self.read_port, self.reading)

    def writer(self):
        return HandlerSocket(self.write_port, self.writing)


@pytest.fixture(scope="module")
def doors():
    if not (MARIADB / "usr/lib/mysql/plugin/handlersocket.so").exists():
        pytest.skip("the unpacked MariaDB has no handlersocket.so")
    read_port, write_port = free_ports(2)
    server = Server(
        "handlersocket",
        [
            "--plugin-load-add=handlersocket.so",
            "--handlersocket-address=127.0.0.1",
            f"--handlersocket-port={read_port}",
            f"--handlersocket-port-wr={write_port}",
            "--handlersocket-threads=2",
        ],
        secrets={"handlersocket_plain_secret": new_secret(), "handlersocket_plain_secret_wr": new_secret()},
    ).start()
    server.query("CREATE DATABASE clients")
    yield Doors(server, read_port, write_port)
    server.remove()


@pytest.fixture
def table(doors, request):
    """An own table for each test: HandlerSocket holds metadata locks while a client is connected."""
    name = request.node.name.replace("test_", "")
    doors.server.query(
        f"CREATE TABLE clients.{name} (id INT PRIMARY KEY, b LONGBLOB, n INT NOT NULL DEFAULT 0, t LONGTEXT, KEY (n), "
        f"KEY prefix (b(20))) ENGINE={ENGINE}"
    )
    return name


def test_all_sizes(doors, table, all_values):
    with doors.writer() as writer:
        writer.open_index(1, "clients", table, ["id", "b"])
        for value in all_values:
            writer.insert(1, value.id, value.read())
    check_in_server(doors.server, f"clients.{table}", all_values)
    with doors.reader() as reader:
        reader.open_index(1, "clients", table, ["id", "b"])
        check_fetched({value.id: reader.find(1, value.id)[0][1] for value in all_values}, all_values)
        # Many in one answer; a key that is not there.
        small = all_values[: len(SMALL_SIZES_BYTES)]
        check_fetched({int(key): data for key, data in reader.find(1, 0, comparison=">=", limit=len(small))}, small)
        assert reader.find(1, 10**6) == []


def test_update_and_delete(doors, table, small_values):
    values = [value for value in small_values if value.size_bytes is not None]
    with doors.writer() as writer:
        writer.open_index(1, "clients", table, ["id", "b", "t"])
        writer.open_index(2, "clients", table, ["b"])
        writer.open_index(3, "clients", table, ["n"])
        for value in values:
            writer.insert(1, value.id, b"before" * 3000, "text")
        # Each gets another's content; what was there comes back.
        for value in values:
            (before,) = writer.modify_and_get(2, "U", value.id, values=[value.read()])
            assert sha256(before[0]) == sha256(b"before" * 3000)
        check_in_server(doors.server, f"clients.{table}", values)
        # To the same value, another column only, to NULL and back.
        for value in values:
            assert writer.modify(2, "U", value.id, values=[value.read()]) == 1
            assert writer.modify(3, "+", value.id, values=[5]) == 1
        check_in_server(doors.server, f"clients.{table}", values)
        assert writer.modify(2, "U", values[-1].id, values=[None]) == 1
        row = doors.server.query(f"SELECT b, t, n FROM clients.{table} WHERE id = {values[-1].id}")
        assert row == ((None, "text", 5),)
        assert writer.modify(2, "U", values[-1].id, values=[values[-1].read()]) == 1
        for value in values[::2]:
            assert writer.modify(1, "D", value.id) == 1
        assert writer.modify(1, "D", values[0].id) == 0
        check_in_server(doors.server, f"clients.{table}", values[1::2])
    verdict = doors.server.query(f"CHECK TABLE clients.{table}")
    assert verdict[-1][-1] == "OK", verdict


def test_sql_beside_it(doors, table, small_values):
    """Rows written by SQL are read here and the reverse; by a prefix index over the BLOB, in ranges, with a filter."""
    values = [value for value in small_values if (value.size_bytes or 0) >= 64]
    for value in values:
        row = (value.id, value.read(), value.id)
        doors.server.query(f"INSERT INTO clients.{table} (id, b, n) VALUES (%s, %s, %s)", row)
    with doors.reader() as reader:
        reader.open_index(1, "clients", table, ["id", "b"], index="prefix")
        reader.open_index(2, "clients", table, ["id", "b"], index="n", filters=["id"])
        for value in values:
            ((key, data),) = reader.find(1, value.read()[:20])
            assert (int(key), sha256(data)) == (value.id, value.sha256)
        rows = reader.find(2, 0, comparison=">=", limit=1000, tail=("F", ">", 0, values[1].id))
        check_fetched({int(key): data for key, data in rows}, [value for value in values if value.id > values[1].id])
        with pytest.raises(HandlerSocketError, match="readonly"):
            reader.insert(2, 1, b"x")
        # A reader whose tables stay open must see what is committed meanwhile.
        doors.server.query(f"UPDATE clients.{table} SET b = REVERSE(b) WHERE id = {values[0].id}")
        ((_, data),) = reader.find(1, values[0].read()[::-1][:20])
        assert sha256(data) == sha256(values[0].read()[::-1])


def test_duplicate_key_is_an_error(doors, table):
    with doors.writer() as writer:
        writer.open_index(1, "clients", table, ["id", "b"])
        writer.insert(1, 7, b"first" * 5000)
        with pytest.raises(HandlerSocketError):
            writer.insert(1, 7, b"second" * 5000)
        writer.insert(1, 8, b"third" * 5000)
    rows = doors.server.query(f"SELECT id, SHA2(b, 256) FROM clients.{table} ORDER BY id")
    assert rows == ((7, sha256(b"first" * 5000)), (8, sha256(b"third" * 5000)))


def test_survives_a_kill(doors, table, small_values):
    """What was answered is committed: there after kill -9."""
    values = [value for value in small_values if value.size_bytes is not None]
    writer = doors.writer()
    writer.open_index(1, "clients", table, ["id", "b"])
    for value in values:
        writer.insert(1, value.id, value.read())
    doors.server.kill()
    writer.close()
    doors.server.start()
    check_in_server(doors.server, f"clients.{table}", values)
