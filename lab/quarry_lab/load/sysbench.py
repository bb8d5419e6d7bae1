"""Runs one sysbench process with the scripts of lab/sysbench and reads the JSON lines that they print."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from quarry_server.run import run_or_raise

from ..probes.noise import children_cpu_seconds
from ..servers.program import ProgramError, RunningProgram, last_words
from .payload import Payload

SCRIPTS = Path(__file__).resolve().parents[2] / "sysbench"
OPERATIONS = {"insert": "blob_insert.lua", "read": "blob_read.lua", "mix": "blob_mix.lua", "few": "blob_read.lua", "updated": "blob_read.lua",
              "constant": "blob_constant.lua", "update": "blob_mix.lua", "counter": "blob_counter.lua", "range": "blob_range.lua",
              "floor": "blob_floor.lua"}


class SysbenchError(ProgramError):
    """sysbench is missing, failed, or printed no report; the message holds the end of what it said."""


class LateReport(ProgramError):
    """
    No SysbenchError, for nothing went wrong: who names those with their level lets it through, and the point is measured again.

    The load ended well, and its warm-up cannot be told from its measured seconds. sysbench leaves a report out when its reporting thread gets no
    processor in time, which hundreds of other threads see to now and then. Of JMH the lab may come too late to read what it used.
    """


@dataclass(frozen=True)
class Load:
    """One load on one server; sizes in bytes, times in seconds."""

    operation: str  # a key of OPERATIONS
    database: str
    value_bytes: int
    threads: int
    socket: str = ""  # or host and port; several, with commas between, take turns by connection
    host: str = ""
    port: int = 0
    user: str = "root"
    password: str = ""
    rows: int = 1
    shuffled: bool = False  # fill: ids in a random order
    tables: int = 1
    warmup_seconds: int = 2
    seconds: int = 10
    read_percent: int = 90
    batch_rows: int = 1
    session_sql: str = ""
    columns: int = 1  # of value_bytes each
    id_expression: str = ""
    value_expression: str = "?"  # what is stored of a value
    free_values: bool = False  # free_value is selected in the place of what the row holds
    free_value: str = ""  # an SQL expression of value_bytes; empty: a literal
    range_bytes: int = 1  # of a range read
    turn_ms: int = 0  # the tables have turns of so many milliseconds; 0: a table is chosen at random
    ignored_errors: str = "none"  # numbers of errors upon which a statement is repeated; each is counted
    device_path: str = ""  # a file of which each read's client reads value_bytes, before its statement, past the page cache

    @property
    def write_percent(self) -> int:
        """Of the statements of a mix of reads and updates."""
        return 100 if self.operation == "update" else 100 - self.read_percent


    @property
    def turn_rounds(self) -> int:
        """Turns that each table has within the measured seconds."""
        return self.seconds * 1000 // (self.turn_ms * self.tables) if self.turn_ms else 0


@dataclass(frozen=True)
class LoadResult:
    """
    The measured interval (after the warm-up), and the totals of the whole run, which the bytes written belong to.
    `rows_written_*` counts rows, not statements.
    """

    interval_seconds: float
    events: int
    reads: int
    writes: int
    errors: int
    events_per_second: float
    latency_avg_ms: float
    latency_p95_ms: float
    latency_max_ms: float
    total_reads: int
    total_rows_written: int
    client_cpu_seconds: float

    def as_dict(self) -> dict:
        return asdict(self)


def is_installed() -> bool:
    return shutil.which("sysbench") is not None


def version() -> str:
    path = shutil.which("sysbench")
    if not path:
        raise SysbenchError("sysbench is not installed (scripts/setup installs it)")
    return run_or_raise([path, "--version"], SysbenchError).strip()


def _command(load: Load, payload: Payload, script: str) -> list[str]:
    where = [f"--mysql-socket={load.socket}"] if load.socket else [f"--mysql-host={load.host}", f"--mysql-port={load.port}"]
    return [
        "sysbench", *where,
        f"--mysql-db={load.database}", f"--mysql-user={load.user}",
        # An ignored error is retried silently: only what a Load names, and its number is in the report.
        f"--mysql-ignore-errors={load.ignored_errors}",
        f"--threads={load.threads}", "--rand-type=uniform", "--percentile=95", f"--shuffled={'on' if load.shuffled else 'off'}",
        f"--value-bytes={load.value_bytes}", f"--rows={load.rows}", f"--tables={load.tables}",
        f"--read-percent={100 - load.write_percent}", f"--batch-rows={load.batch_rows}",
        f"--session-sql={load.session_sql}", f"--columns={load.columns}", f"--id-expression={load.id_expression}",
        f"--value-expression={load.value_expression}", f"--free-values={'on' if load.free_values else 'off'}", f"--free-value={load.free_value}",
        f"--range-bytes={load.range_bytes}", f"--device-path={load.device_path}",
        f"--turn-ms={load.turn_ms}", f"--turn-rounds={load.turn_rounds}", f"--turn-warmup-ms={load.warmup_seconds * 1000}",
        f"--payload-path={payload.path}", f"--payload-bytes={payload.size}",
        str(SCRIPTS / script),
    ]


class RunningLoad(RunningProgram):
    """A started sysbench. The password stands in a file without a name, which no other account can open, and in no command line."""

    error = SysbenchError

    def __init__(self, command: list[str], payload: Payload, password: str):
        options = os.memfd_create("quarry-sysbench-options")
        try:
            os.write(options, f"mysql-password={password}\n".encode())
            command = [command[0], f"--config-file=/proc/self/fd/{options}", *command[1:]]
            super().__init__(command, pass_fds=[payload.fd, options])
        finally:
            os.close(options)


def reports_of(output: str) -> list[dict]:
    """The script's report lines, in order."""
    return [json.loads(line) for line in output.splitlines() if line.startswith('{"quarry_report"')]


def combine(reports: list[dict], batch_rows: int, client_cpu_seconds: float) -> LoadResult:
    """reports: the warm-up's and the measured interval's, or the latter alone when there was no warm-up."""
    if not reports:
        raise SysbenchError("sysbench printed no report")
    measured = reports[-1]
    if measured["events"] <= 0 or measured["interval_seconds"] <= 0:
        raise SysbenchError("sysbench finished no event in the measured interval")
    return LoadResult(
        interval_seconds=measured["interval_seconds"], events=measured["events"], reads=measured["reads"], writes=measured["writes"],
        errors=measured["errors"], events_per_second=measured["events"] / measured["interval_seconds"],
        latency_avg_ms=measured["latency_avg_ms"], latency_p95_ms=measured["latency_p95_ms"], latency_max_ms=measured["latency_max_ms"],
        total_reads=sum(r["reads"] for r in reports), total_rows_written=sum(r["writes"] for r in reports) * batch_rows,
        client_cpu_seconds=client_cpu_seconds)


def run(load: Load, payload: Payload) -> LoadResult:
    """One load, warm-up first. Errors: SysbenchError; LateReport, after which the same load may be run again."""
    command = _command(load, payload, OPERATIONS[load.operation])
    command[1:1] = [f"--time={load.warmup_seconds + load.seconds}", "--events=0"]
    if load.warmup_seconds:
        command.insert(1, f"--report-checkpoints={load.warmup_seconds}")
    cpu_before = children_cpu_seconds()
    running = RunningLoad([*command, "run"], payload, load.password)
    # A last event may wait for a stalled flush; beyond this something hangs.
    output = running.wait(load.warmup_seconds + load.seconds + 120)
    reports = reports_of(output)
    expected = 2 if load.warmup_seconds else 1
    if len(reports) != expected:
        error = LateReport if len(reports) == 1 else SysbenchError
        raise error(f"sysbench printed {len(reports)} reports, {expected} were expected")
    return combine(reports, load.batch_rows, children_cpu_seconds() - cpu_before)


def events_by_turn(output: str, load: Load) -> list[float]:
    """Events a second of each table's turns, of what the threads said at their end. Errors: SysbenchError."""
    threads = [json.loads(line) for line in output.splitlines() if line.startswith('{"quarry_turns"')]
    if len(threads) != load.threads:
        raise SysbenchError(f"{len(threads)} threads told whose turn their events were in, {load.threads} were expected")
    if not all(thread["complete"] for thread in threads):
        raise SysbenchError(f"the load ended before every table had its {load.turn_rounds} turns")
    seconds = load.turn_rounds * load.turn_ms / 1000
    return [sum(thread["quarry_turns"][table] for thread in threads) / seconds for table in range(load.tables)]


def run_in_turns(load: Load, payload: Payload) -> list[float]:
    """One load whose tables have turns: events a second in those of each. Errors: SysbenchError."""
    command = _command(load, payload, OPERATIONS[load.operation])
    # The counted turns begin with a whole round of them, up to two after the warm-up.
    seconds = load.warmup_seconds + load.seconds + 3 * load.turn_ms * load.tables // 1000 + 1
    command[1:1] = [f"--time={seconds}", "--events=0"]
    return events_by_turn(RunningLoad([*command, "run"], payload, load.password).wait(seconds + 120), load)


@contextmanager
def updating(load: Load, payload: Payload) -> Iterator[None]:
    """Meanwhile one client updates the same rows without a pause. An error of it is raised at the end."""
    command = _command(replace(load, operation="update", threads=1), payload, OPERATIONS["update"])
    command[1:1] = ["--time=0", "--events=0"]
    running = RunningLoad([*command, "run"], payload, load.password)
    try:
        yield
        if running.process.poll() is not None:
            running.wait(1)
            raise SysbenchError("the updater ended before the readers")
    finally:
        running.stop()


def fill(load: Load, payload: Payload) -> float:
    """Fills the tables with rows 1..load.rows; seconds taken. Errors: SysbenchError."""
    started = time.monotonic()
    output = RunningLoad([*_command(load, payload, "blob_read.lua"), "prepare"], payload, load.password).wait(1800)
    if output.count('{"quarry_filled": true}') != load.threads:
        raise SysbenchError(f"a fill ended before all rows were there: {last_words(output.splitlines())}")
    return time.monotonic() - started
