"""Connector/J by a small program of our own (Values.java): setBytes, streams with and without a length, Blob and its
ranges, batches; with parameters in the text of the statement and with prepared statements of the server."""

import pathlib
import os
import shutil

import pytest
from harness.server import SCRATCH
from loopback import PASSWORD, PASSWORD_VARIABLE, USER, port_of
from payloads import check_files, check_in_server
from quarry_server.run import run_or_raise

SOURCE = pathlib.Path(__file__).with_name("Values.java")
DRIVER = pathlib.Path("/usr/share/java/mariadb-java-client.jar")


@pytest.fixture(scope="session")
def java():
    """The start of a command that runs the program."""
    if not DRIVER.exists():
        pytest.skip(f"no {DRIVER} (scripts/packages.txt lists libmariadb-java)")
    if shutil.which("java") is None or shutil.which("javac") is None:
        pytest.skip("no Java Development Kit (scripts/packages.txt lists openjdk-17-jdk-headless)")
    classes = SCRATCH / "java"
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    command = ["javac", "-Xlint:all", "-Werror", "-d", classes, SOURCE]
    run_or_raise(command)
    yield ["java", "-Xmx1g", "-XX:+UseSerialGC", "-cp", f"{classes}:{DRIVER}", "Values"]
    shutil.rmtree(classes)


def run(java, server, table, values, output, mode, prepared):
    url = (
        f"jdbc:mariadb://127.0.0.1:{port_of(server)}/clients?user={USER}"
        f"&useServerPrepStmts={'true' if prepared else 'false'}"
    )
    command = [*java, url, table, values[0].path.parent, output, mode]
    said = run_or_raise(command, data="".join(value.line() for value in values), env={**os.environ, PASSWORD_VARIABLE: PASSWORD})
    assert said == f"{len(values)} values\n"


@pytest.mark.parametrize("mode, prepared", [("bytes", True), ("stream", True), ("blob", True)])
def test_all_sizes(java, client_server, table, all_values, output_directory, mode, prepared):
    run(java, client_server, table, all_values, output_directory, mode, prepared)
    check_in_server(client_server, table, all_values)
    check_files(output_directory, all_values)


@pytest.mark.parametrize("mode", ["bytes", "stream", "length", "blob", "batch"])
@pytest.mark.parametrize("prepared", [False, True], ids=["literals", "prepared"])
def test_small_sizes(java, client_server, table, small_values, output_directory, mode, prepared):
    run(java, client_server, table, small_values, output_directory, mode, prepared)
    check_in_server(client_server, table, small_values)
    check_files(output_directory, small_values)
