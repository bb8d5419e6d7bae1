"""
One run of an experiment from request to raw points: servers up, configuration printed and recorded, the plan executed, all cleaned up.

An interrupted run (Ctrl-C, a crash) keeps its points; the same request resumes it on fresh servers.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import device, stats, sysbench
from .lab_server import LabServer, file_sha256
from .payload import Payload
from .plan import Block, all_points, make_plan
from .progress import RunProgress
from .results import RunDirectory
from .runner import LabError, Runner, Settings
from .server import BUILD, MARIADB, PLUGIN, REPOSITORY, PrivateServer
from .variants import Variant

BENCH_OUTPUT = BUILD / "bench"


@dataclass
class Request:
    """What to run. Sizes in bytes."""

    name: str
    title: str
    operations: list[str]
    sizes_bytes: list[int]
    threads: list[int]
    variants: list[Variant]
    rounds: int = 3
    seed: int = 20260101
    payload: str = "random"
    settings: Settings = field(default_factory=Settings)
    mycnf: dict[str, str] = field(default_factory=dict)
    plugin: Path = PLUGIN
    baseline_plugin: Path | None = None
    output: Path | None = None
    fresh: bool = False

    @property
    def output_directory(self) -> Path:
        return self.output or BENCH_OUTPUT / self.name

    def plan(self) -> list[Block]:
        return make_plan(self.operations, self.sizes_bytes, self.threads, self.variants, self.rounds, self.seed)

    def parameters(self) -> dict:
        """What makes two runs the same run: a changed plugin starts a new one."""
        wanted = {v.server for v in self.variants if v.needs_plugin}
        return {
            "name": self.name, "operations": self.operations, "sizes_bytes": self.sizes_bytes, "threads": self.threads,
            "variants": [v.key for v in self.variants], "rounds": self.rounds, "seed": self.seed, "payload": self.payload,
            "settings": asdict(self.settings), "mycnf": self.mycnf,
            "plugin_sha256": file_sha256(self.plugin) if "main" in wanted else None,
            "baseline_plugin_sha256": file_sha256(self.baseline_plugin) if "baseline" in wanted and self.baseline_plugin else None,
        }


def check_tools(request: Request) -> None:
    sysbench.version()
    if not (MARIADB / "usr" / "sbin" / "mariadbd").exists():
        raise LabError(f"no MariaDB in {MARIADB}: run scripts/fetch-mariadb")
    needs = {v.server: v for v in request.variants if v.needs_plugin}
    for server_key, path in (("main", request.plugin), ("baseline", request.baseline_plugin)):
        if server_key in needs and (path is None or not Path(path).exists()):
            raise LabError(f"{needs[server_key].label} needs a plugin, and there is none at {path}: build it ('make plugin'), "
                           "or leave it out of --engines")


def machine() -> dict:
    """The machine, as far as it bears on the figures."""
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    BUILD.mkdir(parents=True, exist_ok=True)
    found = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", str(BUILD)], capture_output=True, text=True, check=False)
    return {
        "cpu": model, "processors": len(os.sched_getaffinity(0)), "memory_bytes": device.memory_info()["MemTotal"],
        "kernel": platform.release(), "file_system": found.stdout.strip(), "device": device.device_of(BUILD),
        "sysbench": sysbench.version(), "commit": commit(),
    }


def commit() -> str:
    found = subprocess.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def make_servers(request: Request, data: Path) -> dict[str, LabServer]:
    servers = {}
    for key in sorted({v.server for v in request.variants} | {"main"}):
        mine = [v for v in request.variants if v.server == key]
        if not mine:
            continue
        plugin = (request.plugin if key == "main" else request.baseline_plugin) if any(v.needs_plugin for v in mine) else None
        servers[key] = LabServer(key, data / key, plugin, any(v.engine == "ROCKSDB" for v in mine), request.mycnf)
    return servers


@contextmanager
def exclusive():
    """One measuring run at a time in this tree: two would spoil each other."""
    BENCH_OUTPUT.mkdir(parents=True, exist_ok=True)
    with open(BENCH_OUTPUT / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError("another bench run of this tree is under way; wait for it or interrupt it") from None
        yield


def print_configuration(console: Console, request: Request, session: dict, left: int, total: int) -> None:
    table = Table(show_header=False, box=None, padding=(0, 1))
    info = session["machine"]
    table.add_row("machine", f"{info['cpu']}, {info['processors']} processors shared by server and client, "
                             f"{stats.human_bytes(info['memory_bytes'])} memory ({stats.human_bytes(session['memory']['MemAvailable'])} available)")
    table.add_row("storage", f"{info['device'] or 'no block device'}: {info['file_system']}; {stats.human_bytes(session['free_disk_bytes'])} free")
    for key, server in session["servers"].items():
        pinned = ", ".join(f"{k}={v}" for k, v in server["pinned"].items())
        plugin = f"; plugin sha256 {server['plugin_sha256'][:12]}" if server["plugin_sha256"] else ""
        table.add_row(f"server {key}", f"MariaDB {server['version']}{plugin}")
        table.add_row("", f"[dim]{pinned}[/dim]")
    payload = session["payload"]
    table.add_row("payload", f"{payload['kind']}; a 64 KB value compresses {payload['compression_ratio_of_64KB']} to 1")
    settings = request.settings
    table.add_row("points", f"{left} to measure of {total}: {settings.warmup_seconds} s warm-up + {settings.seconds} s, {request.rounds} rounds, "
                            f"random order (seed {request.seed}), {settings.tables} table(s) a variant, SET NAMES binary, binary parameters")
    console.print(f"[bold]{request.title}[/bold]")
    console.print(table, highlight=False)


def start_session(run: RunDirectory, servers: dict[str, LabServer], payload: Payload) -> dict:
    session = {
        "started": time.time(), "machine": machine(), "memory": device.memory_info(), "free_disk_bytes": device.free_bytes(run.path),
        "payload": payload.describe(), "servers": {key: server.describe() for key, server in servers.items()},
    }
    run.add_session(session)
    return session


def sweep(data: Path) -> None:
    """Ends servers that a run left behind when it was killed, and removes their data. Only under the lock of `exclusive`."""
    for directory in data.iterdir() if data.exists() else ():
        left = PrivateServer(directory)
        if left.adopt():
            left.kill()
    shutil.rmtree(data, ignore_errors=True)


def execute(request: Request, console: Console) -> RunDirectory:
    """
    Runs what is not yet done of the request. KeyboardInterrupt passes through after cleaning up, with all finished points kept.
    Errors: LabError, ConfigurationError, SysbenchError, ServerError, OSError.
    """
    check_tools(request)
    with exclusive():
        run = RunDirectory(request.output_directory, request.parameters(), request.fresh)
        if run.moved_to:
            console.print(f"[dim]the earlier run is kept in {run.moved_to}[/dim]")
        blocks = request.plan()
        points = all_points(blocks)
        if not points:
            raise LabError("nothing to measure: no engine applies to the given sizes")
        left = [p for p in points if p.key not in run.done_keys()]
        if run.resumed:
            console.print(f"resuming the interrupted run: {len(points) - len(left)} of {len(points)} points are there")
        data = BENCH_OUTPUT / "data"
        sweep(data)
        servers = make_servers(request, data)
        try:
            with Payload(request.payload) as payload:
                for server in servers.values():
                    server.start()
                print_configuration(console, request, start_session(run, servers, payload), len(left), len(points))
                guess = request.settings.seconds + request.settings.warmup_seconds + 4
                with RunProgress(console, request.name, [p.operation for p in left], guess) as progress:
                    Runner(run, servers, payload, request.settings, progress).run(blocks)
            run.finish()
        finally:
            for server in servers.values():
                server.close()
            sweep(data)
            run.write_csv()
    return run
