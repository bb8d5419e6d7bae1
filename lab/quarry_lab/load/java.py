"""The Java clients of E3 and E5 (lab/java): what they need, building them, an account for them, running one of them."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quarry_server.run import run_or_raise
from quarry_server.server import BUILD, REPOSITORY

from ..probes.noise import PhaseMeter
from ..servers.lab_server import LabServer
from ..servers.links import LOOPBACK, Endpoint
from quarry_server.ports import free_ports
from ..servers.program import ProgramError, RunningProgram
from .sysbench import LateReport

# lab/java: the constants of Database
URL_VARIABLE, USER_VARIABLE, PASSWORD_VARIABLE = "QUARRY_LAB_JDBC_URL", "QUARRY_LAB_JDBC_USER", "QUARRY_LAB_JDBC_PASSWORD"
USER = "lab"
IVY = Path("/usr/share/java/ivy.jar")  # scripts/build-java downloads with it
# JMH refuses to run beside another JMH of the machine; the lab sees to that itself, and notes who else used the processors.
_JVM_OPTIONS = ("-Xmx1g", "-XX:+UseParallelGC", "-Djmh.ignoreLock=true")
_WARMED_UP = ("# Warmup Iteration", "ops/s\n")  # JMH begins this line with the warm-up, and ends it when that is over; then it measures
_BEFORE_THE_END_SECONDS = 0.1  # the JVM that measures is read while it is surely there


class JavaError(ProgramError):
    """A Java client is missing, cannot be built, or failed."""


class RunningJava(RunningProgram):
    error = JavaError


def missing_tools() -> list[str]:
    wanted = (("a Java Development Kit", shutil.which("javac")), ("Ivy", IVY.exists()))
    return [f"{what} (scripts/setup installs it)" for what, is_there in wanted if not is_there]


def build() -> None:
    """Does nothing when build/java is current."""
    run_or_raise([REPOSITORY / "scripts" / "build-java"], JavaError)


def version() -> str:
    return run_or_raise(["java", "-version"], JavaError, stderr=subprocess.STDOUT).splitlines()[0]


def libraries() -> list[str]:
    """The jars that run, with their versions, for the records."""
    return sorted(path.name.removesuffix(".jar") for path in (BUILD / "java" / "lib").glob("*.jar"))


def network_options(port: int, addresses: list[str]) -> dict[str, str]:
    """Server settings that let JDBC in, through these addresses of the machine only."""
    return {"port": str(port), "bind_address": ",".join(addresses)}


def local_endpoint() -> Endpoint:
    (port,) = free_ports(1)
    return Endpoint(LOOPBACK, port)


@dataclass(frozen=True)
class Client:
    """How a Java client reaches a server: over which link, and as whom."""

    endpoint: Endpoint
    password: str
    user: str = USER

    def environment(self) -> dict[str, str]:
        """Statements are prepared by the server, so values travel as binary parameters and results."""
        where = f"{self.endpoint.host}:{self.endpoint.port}"
        return {URL_VARIABLE: f"jdbc:mariadb://{where}/?useServerPrepStmts=true&useCompression=false", USER_VARIABLE: self.user,
                PASSWORD_VARIABLE: self.password}


def create_account(server: LabServer) -> str:
    """The password, which is new for every server and stands in no command line."""
    password = secrets.token_hex(16)
    server.execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{password}'")
    server.execute(f"GRANT ALL ON *.* TO '{USER}'@'%'")
    return password


def start(main: str, arguments: list[str], client: Client, on_line: Callable[[str], None] | None = None) -> RunningJava:
    command = [*client.endpoint.prefix, "java", *_JVM_OPTIONS, "-cp", f"{BUILD}/java/classes:{BUILD}/java/lib/*", main, *arguments]
    return RunningJava(command, client.environment(), on_line=on_line)


# --- E3's programs ---
@dataclass(frozen=True)
class Dataset:
    """Values of one kind and size: the same seed gives the same bytes."""

    kind: str  # real, stub-62, stub-10, ...
    bytes_each: int
    rows: int
    seed: int


@dataclass(frozen=True)
class LoadTarget:
    table: str
    codec: str
    expression: str


@dataclass(frozen=True)
class FetchResult:
    operations_per_second: float
    uncompressed_bytes_per_second: float
    received_bytes_per_second: float


def load_blobs(dataset: Dataset, payloads: str, targets: list[LoadTarget], client: Client, timeout_seconds: float = 3600) -> list[dict]:
    """Fills the targets; what each took and how large its values are as they were sent."""
    arguments = [dataset.kind, str(dataset.bytes_each), str(dataset.rows), str(dataset.seed), payloads,
                 *(f"{t.table};{t.codec};{t.expression}" for t in targets)]
    return parse_loads(start("quarry.lab.LoadBlobs", arguments, client).wait(timeout_seconds), len(targets))


def parse_loads(output: str, expected: int) -> list[dict]:
    found = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if len(found) != expected:
        raise JavaError(f"LoadBlobs reported {len(found)} tables, {expected} were expected")
    return found


def fetch_blobs(target: LoadTarget, payloads: str, rows: int, threads: int, seconds: tuple[int, int], result_file: Path,
                client: Client, meter: PhaseMeter | None = None) -> tuple[FetchResult, dict]:
    """
    One JMH run, and what noise.usage() says of its measured seconds. seconds: (warm-up, measured). `target.expression` is what is selected. meter: by
    default one of the client alone. Errors: JavaError; LateReport, after which the same may be run again.
    """
    warmup, measured = seconds
    result_file.unlink(missing_ok=True)
    arguments = [target.table, target.expression, target.codec, payloads, str(rows), str(threads), str(max(1, warmup)), str(measured), str(result_file)]
    # Beyond the measured time: the start of two JVMs, and every value verified once over a slow link.
    cpu = _metered("quarry.lab.FetchBlobs", arguments, client, meter or PhaseMeter(set()), measured, warmup + measured + 300)
    result = parse_jmh(result_file.read_text())
    result_file.unlink()
    return result, cpu


def _metered(main: str, arguments: list[str], client: Client, meter: PhaseMeter, seconds: float, timeout_seconds: float) -> dict:
    """Runs a JMH program, which measures for `seconds`."""
    at_the_end = threading.Timer(seconds - _BEFORE_THE_END_SECONDS, meter.end)
    at_the_end.daemon = True

    def on_line(line: str) -> None:
        begins, ends = _WARMED_UP
        if line.startswith(begins) and line.endswith(ends):
            meter.begin()
            at_the_end.start()

    running = start(main, arguments, client, on_line)
    try:
        running.wait(timeout_seconds)
    finally:
        at_the_end.cancel()
    if not meter.has_begun:
        raise JavaError(f"JMH did not say when its warm-up was over, in a line '{' ... '.join(_WARMED_UP).strip()}'")
    if (found := meter.usage(running.process.pid)) is None:
        raise LateReport("JMH ended before its use of the processors was read")
    return found


def parse_jmh(text: str) -> FetchResult:
    """
    JMH's JSON. Its rate is of the measured fetches over their own time. The counters of FetchBlobs.Traffic, over that same time, have more fetches in
    them: those with which threads wait for each other at both ends. So bytes are taken for each fetch.
    """
    runs = json.loads(text)
    if len(runs) != 1:
        raise JavaError(f"JMH reported {len(runs)} benchmarks, one was expected")
    rate, counters = runs[0]["primaryMetric"]["score"], {name: metric["score"] for name, metric in runs[0]["secondaryMetrics"].items()}
    if not rate > 0:
        raise JavaError("JMH finished no fetch in the measured interval")
    return FetchResult(rate, *(rate * counters[name] / counters["fetches"] for name in ("uncompressedBytes", "receivedBytes")))
