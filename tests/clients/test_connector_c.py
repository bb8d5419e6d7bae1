"""Connector/C: long data sent in pieces, columns fetched in pieces, by a program of our own (long_data.c)."""

import pathlib
import shutil

import pytest
from harness.server import SCRATCH
from payloads import check_files, check_in_server
from quarry_lab.servers.connector import connector_flags
from quarry_server.run import run_or_raise

SOURCE = pathlib.Path(__file__).with_name("long_data.c")


@pytest.fixture(scope="session")
def program():
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed (scripts/packages.txt lists g++)")
    flags = [connector_flags(what) for what in ("--cflags", "--libs")]
    program = SCRATCH / "long_data"
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", *flags[0], str(SOURCE), "-o", str(program)]
    run_or_raise([*command, *flags[1]])
    yield program
    program.unlink()


def run(program, server, table, values, output, piece_bytes):
    command = [program, server.socket, table, values[0].path.parent, output, piece_bytes]
    assert run_or_raise(command, data="".join(value.line() for value in values)) == f"{len(values)} values\n"


@pytest.mark.parametrize("piece_bytes", [1_000_003, 64 << 20])
def test_all_sizes(program, client_server, table, all_values, output_directory, piece_bytes):
    run(program, client_server, table, all_values, output_directory, piece_bytes)
    check_in_server(client_server, table, all_values)
    check_files(output_directory, all_values)


@pytest.mark.parametrize("piece_bytes", [1, 4096])
def test_small_pieces(program, client_server, table, small_values, output_directory, piece_bytes):
    values = [value for value in small_values if piece_bytes > 1 or (value.size_bytes or 0) < 10000]
    run(program, client_server, table, values, output_directory, piece_bytes)
    check_in_server(client_server, table, values)
    check_files(output_directory, values)
