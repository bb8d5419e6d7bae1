"""
bench/clients/read_values.cc: compiled when it is needed, twice (with Connector/C, and with the server inside), and run.

One program for every path into the server, so that the paths differ in nothing but themselves.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from .links import LOOPBACK
from .payload import Payload
from .program import ProgramError, RunningProgram
from .server import BUILD, MARIADB, REPOSITORY

PASSWORD_VARIABLE = "QUARRY_READER_PASSWORD"  # bench/clients/read_values.cc
SOURCE = REPOSITORY / "bench" / "clients" / "read_values.cc"
PROGRAMS = BUILD / "bench-clients"
HEADERS = MARIADB.parent / "headers"
COMPILE_SECONDS_MAX, FILL_SECONDS_MAX = 600, 1800
COMPILE = ("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")


class ReaderError(ProgramError):
    """The program could not be compiled, or ended with an error; the message is its own."""


class _Run(RunningProgram):
    error = ReaderError


def embedded_library() -> Path | None:
    """The server as a library, of the private server's own version; None when it was not fetched."""
    return next(iter(sorted((MARIADB / "usr" / "lib").glob("*/libmariadbd.so.19"))), None)


def needs() -> list[str]:
    missing = [f"{tool} (scripts/setup installs it)" for tool in ("g++", "mariadb_config") if not shutil.which(tool)]
    if not embedded_library():
        missing.append(f"libmariadbd.so.19 under {MARIADB} (scripts/fetch-mariadb gets it)")
    return missing


def build(embedded: bool) -> Path:
    """The compiled program; compiled anew when its source is newer."""
    program = PROGRAMS / ("read_values_embedded" if embedded else "read_values")
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return program
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    if embedded:
        library = embedded_library()
        assert library
        # The server's own client headers: its structures differ from Connector/C's.
        flags = ["-DQUARRY_EMBEDDED", "-DEMBEDDED_LIBRARY", f"-I{HEADERS / 'include'}", f"-I{HEADERS / 'generated'}"]
        libraries = [str(library), f"-Wl,-rpath,{library.parent}"]
    else:
        flags, libraries = (_Run(["mariadb_config", what]).wait(COMPILE_SECONDS_MAX).split() for what in ("--cflags", "--libs"))
    _Run([*COMPILE, *flags, str(SOURCE), "-o", str(program), *libraries]).wait(COMPILE_SECONDS_MAX)
    return program


@dataclass(frozen=True)
class Reading:
    """One load of point reads, or a fill. Sizes in bytes, times in seconds."""

    database: str
    table: str
    value_bytes: int
    rows: int
    path: str = "prepared"
    socket: str = ""
    host: str = LOOPBACK
    port: int = 0
    user: str = "root"
    password: str = ""
    compress: bool = False
    threads: int = 1
    warmup_seconds: int = 1
    seconds: int = 10
    first: str = ""  # a statement to run before
    server_options: tuple[str, ...] | None = None  # of a server in the same process; None: the server is elsewhere

    def arguments(self) -> list[str]:
        where = [f"--socket={self.socket}"] if self.socket else [f"--host={self.host}", f"--port={self.port}"] if self.port else []
        return [
            str(build(self.server_options is not None)), *where, f"--user={self.user}", f"--database={self.database}", f"--table={self.table}",
            f"--value-bytes={self.value_bytes}", f"--rows={self.rows}", f"--threads={self.threads}", f"--path={self.path}",
            f"--warmup={self.warmup_seconds}", f"--seconds={self.seconds}",
            *(["--compress"] if self.compress else []), *([f"--first={self.first}"] if self.first else []),
        ]

    def environment(self) -> dict[str, str]:
        """No command line shows a password."""
        return {PASSWORD_VARIABLE: self.password} if self.password else {}

    def server_arguments(self) -> list[str]:
        return ["--", *self.server_options] if self.server_options is not None else []


def fill(reading: Reading, payload: Payload) -> None:
    """Rows 1..rows of slices of the payload."""
    arguments = [*reading.arguments(), "--fill", f"--payload-path={payload.path}", f"--payload-bytes={payload.size}"]
    _Run([*arguments, *reading.server_arguments()], reading.environment(), [payload.fd]).wait(FILL_SECONDS_MAX)


def measure(reading: Reading) -> dict:
    """events, interval_seconds, events_per_second, latency_*_ms of the measured interval."""
    command = [*reading.arguments(), *reading.server_arguments()]
    # The start of an embedded server, and a last read that waits.
    output = _Run(command, reading.environment()).wait(reading.warmup_seconds + reading.seconds + 120)
    return json.loads(output.splitlines()[-1])
