"""Fixtures of the client tests: one server that also listens on the loopback interface, and values to store."""

import re
import shutil

import pytest
from harness.server import ENGINE, SCRATCH, Server, has_failed
from loopback import PASSWORD, USER
from payloads import LARGE_SIZES_BYTES, SMALL_SIZES_BYTES, make_values
from quarry_server.ports import free_ports


@pytest.fixture(scope="session")
def client_server():
    (port,) = free_ports(1)
    server = Server("clients", [f"--port={port}", "--bind-address=127.0.0.1"]).start()
    server.query("CREATE DATABASE clients")
    server.query(f"CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
    server.query(f"GRANT ALL ON clients.* TO '{USER}'@'127.0.0.1'")
    yield server
    server.remove()


@pytest.fixture
def table(client_server, request):
    """`clients.<name of the test>`: an id, and a LONGBLOB. Dropped when the test passed."""
    name = "clients." + re.sub(r"\W+", "_", request.node.name)[:60].strip("_")
    client_server.query(f"CREATE TABLE {name} (id INT PRIMARY KEY, b LONGBLOB) ENGINE={ENGINE}")
    yield name
    client_server.assert_alive()
    if not has_failed(request):
        client_server.query(f"DROP TABLE {name}")


@pytest.fixture(scope="session")
def payload_directory():
    directory = SCRATCH / "client-values"
    shutil.rmtree(directory, ignore_errors=True)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def small_values(payload_directory):
    return make_values(payload_directory / "small", SMALL_SIZES_BYTES)


@pytest.fixture(scope="session")
def all_values(payload_directory):
    return make_values(payload_directory / "all", SMALL_SIZES_BYTES + LARGE_SIZES_BYTES)


@pytest.fixture
def output_directory(payload_directory, request):
    directory = payload_directory / re.sub(r"\W+", "_", request.node.name)
    directory.mkdir(parents=True)
    yield directory
    shutil.rmtree(directory)
