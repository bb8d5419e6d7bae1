"""
One run of an experiment from request to raw points and verdicts: needs checked, configuration printed and recorded, the plan executed, all
cleaned up.

An interrupted run (Ctrl-C, a crash) keeps its points; the same request resumes it on fresh servers.
"""

from __future__ import annotations

import fcntl
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pymysql
from quarry_server.server import BUILD, REPOSITORY, PrivateServer, ServerError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..design.plan import Block, Point, all_points
from ..design.profile import BARE, PRODUCTION, TEXTS
from ..design.repeats import blocks_to_repeat
from ..design.request import BENCH_OUTPUT, DATA, LabError, Request
from ..design.results import RunDirectory, open_run, point_key
from ..load import sysbench
from ..load.sysbench import LateReport
from ..probes import device, processors
from ..report import stats, verdicts
from ..servers import drives, journal
from ..servers.program import ProgramError
from .experiment import Bench, Context, Experiment
from .kept_settings import ChangedServer, changed_links, changed_servers
from .progress import RunProgress

_KEPT_OF_MACHINE = ("cpu", "processors", "memory_bytes", "kernel", "sysbench", "commit")
FAILURES_MAX = 3  # groups of blocks that fail in a session: more are no accident
ATTEMPTS = 8  # at a point whose load told its figures too late: with 512 users of 448 KB three in a row did


def machine() -> dict:
    """The machine, as far as it bears on the figures."""
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    BUILD.mkdir(parents=True, exist_ok=True)
    place = DATA if DATA.exists() else BUILD
    found = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", str(place)], capture_output=True, text=True, check=False)
    return {
        "cpu": model, "processors": len(processors.AVAILABLE), "memory_bytes": device.memory_info()["MemTotal"],
        "kernel": platform.release(), "file_system": found.stdout.strip(), "journal": device.has_journal(device.device_of(place)),
        "device": device.device_of(BUILD), "sysbench": sysbench.version(), "commit": commit(),
    }


def changed_machine(before: dict, now: dict) -> str:
    """What of it (machine()) is otherwise than in an earlier session of a run that is gone on with; empty where nothing is."""
    return "; ".join(f"{name.replace('_', ' ')} {before.get(name)}, now {now.get(name)}" for name in _KEPT_OF_MACHINE if before.get(name) != now.get(name))


def changed_session(before: dict, now: dict) -> str:
    """What an earlier session of a run that is gone on with had otherwise, of its machine, its links and servers that run from its start."""
    changed = (changed_machine(before["machine"], now["machine"]), changed_servers(before.get("servers", {}), now.get("servers", {})),
               changed_links(before.get("links", []), now.get("links", [])))
    return "; ".join(filter(None, changed))


def commit() -> str:
    found = subprocess.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


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


def left_to_do(experiment: Experiment, request: Request) -> tuple[list[Point], list[Point]]:
    """(all points, those that an interrupted run of the same request has not got yet)."""
    points = all_points(experiment.plan(request))
    if not points:
        raise LabError(f"{experiment.name}: nothing to measure: none of the variants applies to the given sizes")
    kept = None if request.fresh else open_run(request.output_directory)
    done = kept.done_keys() if kept and kept.may_resume(experiment.identity(request), request.repeat_seconds_max > 0) else set()
    return points, [p for p in points if p.key not in done]


def check(experiment: Experiment, request: Request) -> None:
    """Everything that can be known to be missing, said at once and before any work starts. Raises LabError."""
    missing = experiment.needs(request)
    if wants_journal(request) and (reason := journal.reason_against()):
        missing.append(f"{reason} (--profile {BARE} takes the file system as it is)")
    if request.apart and (reason := processors.reason_against()):
        missing.append(reason)
    place = next(path for path in DATA.absolute().parents if path.exists())  # the servers' data are there, wherever --output is
    free, need = device.free_bytes(place) + _left_bytes(DATA), experiment.disk_bytes(request)
    if free < need:
        missing.append(f"{stats.human_bytes(need)} of free disk under {DATA.parent} ({stats.human_bytes(free)} are free)")
    if missing:
        raise LabError(f"{experiment.name} needs " + "; and ".join(missing))


def _left_bytes(data: Path) -> int:
    """Disk that a run holds which was killed: the next one sweeps it away before it begins."""
    places = [data, *drives.place(data).glob("*")]
    files = [path for place in places if place.is_dir() and not place.is_mount() for path in device.files_below(place)]
    return device.allocated_bytes([*files, *data.parent.glob(f"{data.name}.ext4"), *drives.place(data).glob("*.ext4")])


def print_configuration(console: Console, experiment: Experiment, request: Request, session: dict, left: int, total: int) -> None:
    table = Table(show_header=False, box=None, padding=(0, 1))
    info = session["machine"]
    shared = "divided" if request.apart else "shared"
    table.add_row("machine", f"{info['cpu']}, {info['processors']} processors {shared} by server and client, "
                             f"{stats.human_bytes(info['memory_bytes'])} memory ({stats.human_bytes(session['memory']['MemAvailable'])} available)")
    journaled = {True: ", with a journal", False: ", no journal", None: ""}[info["journal"]]
    table.add_row("profile", TEXTS[request.profile])
    free, asked = (stats.human_bytes(size) for size in (session["free_disk_bytes"], experiment.disk_bytes(request)))
    table.add_row("storage", f"{info['device'] or 'no block device'}: {info['file_system']}{journaled}; {free} free, of which this run asks for {asked}")
    for key, server in session.get("servers", {}).items():
        plugin = f"; plugin sha256 {server['plugin_sha256'][:12]}" if server.get("plugin_sha256") else ""
        table.add_row(f"server {key}", f"{server['version']}{plugin}")
        table.add_row("", "[dim]" + ", ".join(f"{k}={v}" for k, v in server["pinned"].items()) + "[/dim]")
    if payload := session.get("payload"):
        table.add_row("payload", f"{payload['kind']}; a 64 KB value compresses {payload['compression_ratio_of_64KB']} to 1")
    settings = request.settings
    table.add_row("points", f"{left} to measure of {total}: {settings.warmup_seconds} s warm-up + {settings.seconds} s, "
                            f"{stats.counted(request.rounds, 'round')}, random order (seed {request.seed})")
    console.print(f"[bold]{experiment.title}[/bold]")
    console.print(table, highlight=False)


def sweep(data: Path) -> None:
    """
    Ends servers that a run left behind when it was killed, and removes their data, its own files and the file systems that it mounted for them. Only
    under the lock of `exclusive`.
    """
    for directory in (*(data.iterdir() if data.exists() else ()), *drives.place(data).glob("*/*")):
        if not directory.is_dir():
            continue  # of a probe of the device
        left = PrivateServer(directory)
        if left.adopt():
            left.kill()
    journal.release(data)
    drives.release(drives.place(data))
    for directory in (data, drives.place(data)):
        shutil.rmtree(directory, ignore_errors=True)


def wants_journal(request: Request) -> bool:
    """Whether a file system with a journal is to be made: the profile asks for one, and the tree's own has none."""
    return request.profile == PRODUCTION and not device.has_journal(device.device_of(BUILD))


@contextmanager
def data_file_system(experiment: Experiment, request: Request) -> Iterator[None]:
    """
    What the servers' data lie on: the tree's own file system, or one with a journal that is made for the run. It is no larger than what the experiment
    needs and half as much, and what an engine writes of inserts in one point at most: what is written to it takes new blocks while there are any, and
    others need room on the same device.
    """
    if not wants_journal(request):
        yield
        return
    free = device.free_bytes(DATA.parent) - request.settings.disk_reserve_bytes
    inserted = device.ENGINE_BYTES_PER_SECOND_MAX * (request.settings.seconds + request.settings.warmup_seconds) if "insert" in request.operations else 0
    with journal.mounted(DATA, min(free, experiment.disk_bytes(request) * 3 // 2 + int(inserted))):
        yield


def measure_all(bench: Bench, context: Context, experiment: Experiment, blocks: list[Block]) -> None:
    """
    What is not yet done. Where a failed block leaves nothing behind, the others are measured before its error is raised: the same command has that
    one left, and an engine that fails in each round keeps no other from being measured.
    """
    done, failures = context.run.done_keys(), list[tuple[Hashable, Exception]]()
    for block in blocks:
        points = tuple(p for p in block.points if p.key not in done)
        if not points or len({group for group, _error in failures}) == FAILURES_MAX:
            continue
        left = replace(block, points=points)
        try:
            measure_block(bench, context, experiment, left)
        except (LabError, ProgramError, ServerError, pymysql.MySQLError) as error:
            if isinstance(error, ChangedServer) or not bench.blocks_stand_alone:
                raise
            bench.end(left)
            failures.append((block.group, error))
            context.progress.console.print(f"[red]failed:[/red] {escape(str(error))}", highlight=False)
    if failures:
        _group, first = failures[0]
        raise LabError(f"{stats.counted(len(failures), 'block')} failed, and the same command measures what is left: {first}") from first


def _measured(bench: Bench, point: Point) -> dict:
    """Another time when the load's reports came too late to be told apart, up to ATTEMPTS times in all."""
    for _ in range(ATTEMPTS - 1):
        with suppress(LateReport):
            return bench.measure(point)
    return bench.measure(point)


def _record_of(bench: Bench, experiment: Experiment, point: Point) -> dict:
    """Raises LabError where a program that serves the point has ended: others may answer for it, at another rate, and no client meets an error."""
    record = _measured(bench, point)
    if ended := bench.ended():
        raise LabError(f"{experiment.labels[point.variant]}, {point.operation} x{point.threads}: a server, or a part of it, ended meanwhile{ended}")
    return record


def measure_block(bench: Bench, context: Context, experiment: Experiment, block: Block, repeats: dict[tuple, int] | None = None) -> None:
    """repeats: which repetition this is of each point, by its key; None: the first measurement of all."""
    bench.begin(block)
    for point in block.points:
        started, wall_started = time.monotonic(), time.time()
        record = {**point.as_dict(), "started": wall_started, **({"repeat": repeats[point.key]} if repeats else {}),
                  **_record_of(bench, experiment, point)}
        context.run.add_point(record)
        context.progress.done(point.operation, time.monotonic() - started, experiment.line(record))
    bench.end(block)


def repeat_noisy(bench: Bench, context: Context, experiment: Experiment, blocks: list[Block], seconds_max: float) -> None:
    """Until nothing is noisy, or everything that is was repeated often enough, or the time is over: a block that has begun is ended."""
    deadline = time.monotonic() + seconds_max
    while time.monotonic() < deadline:
        records = {point_key(record): record for record in context.run.points}
        found = list(blocks_to_repeat(blocks, records, len(context.run.records), experiment.comparison))
        if not found:
            return
        context.progress.console.print(f"[dim]measuring again what was disturbed: {sum(len(b.points) for b in found)} points[/dim]", highlight=False)
        for block in found:
            if time.monotonic() >= deadline:
                return
            context.progress.more([point.operation for point in block.points])
            repeats = {point.key: records[point.key].get("repeat", 0) + 1 for point in block.points}
            measure_block(bench, context, experiment, block, repeats)


def execute(experiment: Experiment, request: Request, console: Console) -> RunDirectory:
    """
    Runs what is not yet done of the request. KeyboardInterrupt passes through after cleaning up, with all finished points kept.
    Errors: LabError, ConfigurationError, ProgramError, ServerError, OSError.
    """
    check(experiment, request)
    with exclusive():
        run = RunDirectory(request.output_directory, experiment.identity(request), request.fresh, request.repeat_seconds_max > 0)
        if run.moved_to:
            console.print(f"[dim]the earlier run is kept in {run.moved_to}[/dim]")
        points, left = left_to_do(experiment, request)
        if run.resumed:
            console.print(f"resuming the interrupted run: {len(points) - len(left)} of {len(points)} points are there")
        sweep(DATA)
        guess = experiment.planned_seconds(request, left) / max(1, len(left))
        try:
            with data_file_system(experiment, request), RunProgress(console, request.name, [p.operation for p in left], guess) as progress:
                context = Context(request, run, progress)
                with experiment.open(context) as bench:
                    session = {"started": time.time(), "command": ["quarry_lab", *sys.argv[1:]], "machine": machine(), "memory": device.memory_info(),
                               "free_disk_bytes": device.free_bytes(run.path), **bench.describe()}
                    if run.resumed and run.run["sessions"] and (changed := changed_session(run.run["sessions"][-1], session)):
                        console.print(f"[yellow]since the part of this run that is there:[/yellow] {changed}", highlight=False)
                    run.add_session(session)
                    print_configuration(console, experiment, request, session, len(left), len(points))
                    with processors.clients_apart(request.apart):
                        measure_all(bench, context, experiment, experiment.plan(request))
                        repeat_noisy(bench, context, experiment, experiment.plan(request), request.repeat_seconds_max)
            run.finish()
        finally:
            sweep(DATA)
            run.write_csv()
        verdicts.write(run.path / "verdicts.json", experiment.name, experiment.verdicts(run))
    return run
