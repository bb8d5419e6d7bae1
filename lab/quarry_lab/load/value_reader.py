"""
The programs of lab/clients that read values, compiled when they are needed, and run.

One program for every path into a server (compiled twice: with Connector/C, and with the server inside), so that the paths differ in nothing
but themselves; one for the NDB API, with the same loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quarry_server.server import BUILD, MARIADB

from ..servers.connector import CONFIG, connector_flags
from ..servers.links import LOOPBACK
from ..servers.program import ProgramError, RunningProgram
from . import clients
from .clients import SOURCES
from .payload import Payload

PASSWORD_VARIABLE = "QUARRY_READER_PASSWORD"  # lab/clients/read_values.cc
HEADERS = MARIADB.parent / "headers"
NDB = BUILD / "ndb"
NDB_LIBRARY = NDB / "build" / "library_output_directory" / "libndbclient.so"
NDB_API_PATH = "ndbapi"
FILL_SECONDS_MAX = 1800


class ReaderError(ProgramError):
    """The program could not be compiled, or ended with an error; the message is its own."""


class _Run(RunningProgram):
    error = ReaderError


def embedded_library() -> Path | None:
    """The server as a library, of the private server's own version; None when it was not fetched."""
    return next(iter(sorted((MARIADB / "usr" / "lib").glob("*/libmariadbd.so.19"))), None)


def sources() -> list[Path]:
    return sorted({path for build in (CLIENT, EMBEDDED, NDB_API) for path in build.sources()})


def needs() -> list[str]:
    missing = clients.needs() + ([] if CONFIG.exists() else [f"{CONFIG} (scripts/setup gets it)"])
    if not embedded_library():
        missing.append(f"libmariadbd.so.19 under {MARIADB} (scripts/fetch-mariadb gets it)")
    return missing


def has_ndb_api() -> bool:
    """Whether `make ndb` has built its client library here."""
    return NDB_LIBRARY.exists()


@dataclass(frozen=True)
class _Build:
    """A program: its source beside the common ones, and what the compiler is told. flags are asked for when it is compiled."""

    name: str
    source: str
    flags: Callable[[], list[str]]

    def sources(self) -> list[Path]:
        return [SOURCES / self.source, SOURCES / "reader.cc", SOURCES / "reader.h"]


def _client_flags() -> list[str]:
    return [word for what in ("--cflags", "--libs") for word in connector_flags(what)]


def server_headers() -> list[str]:
    """The compiler's flags for the server's own client headers: its structures differ from Connector/C's."""
    return [f"-I{HEADERS / 'include'}", f"-I{HEADERS / 'generated'}"]


def _embedded_flags() -> list[str]:
    library = embedded_library()
    assert library
    return ["-DQUARRY_EMBEDDED", "-DEMBEDDED_LIBRARY", *server_headers(), str(library), f"-Wl,-rpath,{library.parent}"]


def _ndb_flags() -> list[str]:
    includes = [NDB / tree / path for tree, path in (("source", "storage/ndb/include"), ("source", "storage/ndb/include/ndbapi"),
                                                    ("build", "storage/ndb/include"), ("source", "include"), ("build", "include"))]
    return [*(f"-isystem{path}" for path in includes), str(NDB_LIBRARY), f"-Wl,-rpath,{NDB_LIBRARY.parent}"]


CLIENT, EMBEDDED, NDB_API = (_Build("read_values", "read_values.cc", _client_flags), _Build("read_values_embedded", "read_values.cc", _embedded_flags),
                             _Build("ndb_read_values", "ndb_read_values.cc", _ndb_flags))


def build(what: _Build) -> Path:
    return clients.compiled(what.name, what.sources(), what.flags)


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

    @property
    def program(self) -> _Build:
        if self.path == NDB_API_PATH:
            return NDB_API
        return CLIENT if self.server_options is None else EMBEDDED

    def arguments(self) -> list[str]:
        where = [f"--socket={self.socket}"] if self.socket else [f"--host={self.host}", f"--port={self.port}"] if self.port else []
        return [
            str(build(self.program)), *where, f"--user={self.user}", f"--database={self.database}", f"--table={self.table}",
            f"--value-bytes={self.value_bytes}", f"--rows={self.rows}", f"--threads={self.threads}", f"--path={self.path}",
            f"--warmup={self.warmup_seconds}", f"--seconds={self.seconds}",
            *(["--compress"] if self.compress else []), *([f"--first={self.first}"] if self.first else []),
        ]

    def environment(self) -> dict[str, str]:
        """No command line shows a password."""
        return {PASSWORD_VARIABLE: self.password} if self.password else {}

    def server_arguments(self) -> list[str]:
        return ["--", *self.server_options] if self.server_options is not None else []


def prepare(reading: Reading) -> None:
    """Compiles its program where that is needed: seconds of processor time, which belong to no measurement."""
    build(reading.program)


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
