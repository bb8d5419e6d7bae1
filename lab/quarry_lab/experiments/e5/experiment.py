"""
E5: YCSB with values on disk. One table of a primary key and one payload, several times larger than the memory allowed.

Published for NDB disk data (published/e5.toml) on two large machines. Measured on the machine's own device, on one, two and four drives with I/O
quotas and a drive for the logs, and over a limited network. An operation is a workload; a setting is what data, logs and clients have (engines.Setting).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from matplotlib.figure import Figure
from rich.table import Table

from ...design.cells import CellKey
from ...design.plan import Block, Cell, Point
from ...design.request import Address, LabError, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import TARGET_PREFIX
from ...load.ycsb import PAYLOAD_BYTES, WORKLOADS
from ...probes import device, processors
from ...report import stats
from ...report.verdicts import NOT_MEASURED, FindingRow, Verdict
from ...run.experiment import Context, PlanRow, PublishedFigure, Source, noise_note
from ...run.limited_bench import REDO_BYTES
from ...run.runner import line
from ...servers import drives, ndb_cluster, target
from ..java_experiment import JavaExperiment
from ..by_engine import ByEngine
from . import columns, figures as e5_figures, findings as e5_findings
from .bench import PUBLISHED, DiskBench, drive_size, measured_seconds, rows_of
from .engines import ENGINES, LIMITED_NETWORK, ONE_PATH, PRIVATE_ENGINES, DiskEngine, Setting, drive_setting, ndb_disk_bytes, path_setting
from .findings import DOCUMENT, INNODB, NDB, QUARRY, device_share, mean_latency_ms, payload_rate, read_latency_ms, write_latency_ms

THREADS = 16
MEMORY_BYTES_MIN = 384 << 20
BESIDE_MEMORY_BYTES = 2 << 30  # the client, the lab, and the page cache of what is outside the limit
APART_FROM = 4  # processors, from which on servers and clients have their own: with fewer, a client's one would be what limits
COMPARED = ("load", PUBLISHED)  # what was published; the other workloads are next to them, on the machine's own device
# Estimates, for the planned wall time only.
_START_SECONDS, _DRIVES_SECONDS, _AROUND_POINT_SECONDS = 12, 6, 7
_NDB_START_SECONDS = 190  # with its files and, in front of and behind the mix, its page buffers
_LOAD_BYTES_PER_SECOND = 60 << 20
# On the data drives: InnoDB's pages of values, past the doublewrite buffer, and those of rows, twice, for keys come in no order; Quarry's values, and
# zeros ahead of them, for the drives have a journal.
_WRITTEN_PER_BYTE = {"InnoDB": 1.5, "QUARRY": 1.6}
_MIX_WRITES_BYTES_PER_SECOND = 200 << 20
_MEANS = {"latency": mean_latency_ms, "read-latency": read_latency_ms, "write-latency": write_latency_ms}


def _beside(name: str, operation: str) -> PublishedFigure:
    return PublishedFigure(DOCUMENT.figure(name), Cell(operation, "quarry", PAYLOAD_BYTES, THREADS, ONE_PATH))


class DiskData(ByEngine, JavaExperiment):
    name = "e5"
    title = f"E5: YCSB with values of {PAYLOAD_BYTES:,} bytes, more data than memory"
    operations = tuple(WORKLOADS)
    takes_target = True
    takes_apart = True
    reference = "innodb"
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        "One server with a memory limit and a dataset four times that. Rates and latencies are of the machine's own device ('1 path'), and the share "
        "of its raw rate is next to them. Drives are loop devices with I/O quotas of our choice: what more of them give is measured, and that they are "
        "the limit follows from the quotas. A quota holds for all that reaches its drive. It is the root group's of cgroup v1, for that of a server's "
        "own group leaves out what the page cache writes later. Redo log and binary log have a drive of their own, without a quota; the server's own "
        "directory, with InnoDB's doublewrite buffer, is on the first data drive. NDB, where it is built, has 2 data nodes on the machine's own device, "
        "with the memory that scripts/ndb gives them and outside of the limit.")
    on_ndb = {QUARRY.variant: NDB.variant}
    on_innodb = {QUARRY.variant: INNODB.variant}
    published = (_beside("load", "load"), _beside("mix", PUBLISHED), *(_beside(name, PUBLISHED) for name in _MEANS))

    @property
    def labels(self) -> dict[str, str]:
        return {key: engine.label for key, engine in ENGINES.items()}

    # --- what to run ---
    def default_request(self) -> Request:
        """
        paths: numbers of data paths on the machine's own device, or on data_paths. data_paths, redo_path: directories on drives of the user's. drives:
        numbers of drives with a quota of drive_mbytes a second; link_mbits: of the limited network, 0 for none.
        """
        options = {"memory_bytes": MEMORY_BYTES_MIN, "paths": [1], "data_paths": [], "redo_path": "", "drives": [1, 2, 4], "drive_mbytes": 12,
                   "link_mbits": 300, "mix_seconds": 30}
        settings = Settings(dataset_bytes=4 * MEMORY_BYTES_MIN)
        return Request(self.name, list(WORKLOADS), [PAYLOAD_BYTES], [THREADS], list(PRIVATE_ENGINES), settings=settings, options=options,
                       apart=len(processors.AVAILABLE) >= APART_FROM)

    def quick(self, request: Request) -> Request:
        made = super().quick(request)
        return replace(made, operations=list(COMPARED), settings=replace(made.settings, dataset_bytes=512 << 20),
                       options={**made.options, "drives": [1, 2], "mix_seconds": 5})

    def full(self, request: Request) -> Request:
        """Far beyond any cache, and long enough for purge, GC and compaction to take their share."""
        made = super().full(request)
        return replace(made, settings=replace(made.settings, dataset_bytes=24 << 30, seconds=60, warmup_seconds=10),
                       options={**made.options, "memory_bytes": 4 << 30, "mix_seconds": 60, "drive_mbytes": 48})

    def own_target(self) -> Address | None:
        """The cluster of `make ndb`, running or not: it is started for its own points alone."""
        return ndb_cluster.address() if ndb_cluster.is_built() else None

    def on_target(self, keys: list[str], engines: set[str]) -> list[str]:
        """NDB, too, which no private server has."""
        wanted = {TARGET_PREFIX + key for key in (*keys, "ndb")}
        return [key for key, engine in ENGINES.items() if key in wanted and engine.engine.upper() in engines]

    def cells(self, request: Request) -> list[Cell]:
        """Every block begins with its load."""
        return [Cell(operation, key, PAYLOAD_BYTES, threads, setting) for key in request.variants for setting in _settings_of(request, ENGINES[key])
                for threads in request.threads for operation in _workloads(request, ENGINES[key], setting)]

    def group(self, cell: Cell) -> Hashable:
        return (cell.variant, cell.setting, cell.threads)

    def plan(self, request: Request) -> list[Block]:
        """Blocks in random order; within one, the workloads in the order of WORKLOADS."""
        order = list(WORKLOADS)
        return [replace(block, points=tuple(sorted(block.points, key=lambda p: order.index(p.operation)))) for block in super().plan(request)]

    def needs_plugin(self, request: Request) -> bool:
        return any(ENGINES[key].is_private_quarry for key in request.variants)

    # --- what it takes ---
    def needs(self, request: Request) -> list[str]:
        _check_options(request.options)
        missing = super().needs(request) + (self._target_needs(request.target) if self._has_target(request) else [])
        named = [*request.options["data_paths"], *filter(None, [request.options["redo_path"]])]
        missing += [f"the directory {path}" for path in named if not Path(path).is_dir()]
        missing += _room_lacking(request)
        if self._takes_drives(request) and (reason := drives.reason_against()):
            missing.append(f"{reason} (--option drives= leaves them out)")
        need, memory = request.options["memory_bytes"] + BESIDE_MEMORY_BYTES, device.memory_info()["MemAvailable"] + ndb_cluster.held_bytes()
        if memory < need:
            missing.append(f"{stats.human_bytes(need)} of available memory ({stats.human_bytes(memory)} are available)")
        return missing

    def _takes_drives(self, request: Request) -> bool:
        return any(Setting.of(cell.setting).on_drives for cell in self.cells(request))

    def _has_target(self, request: Request) -> bool:
        """The cluster of `make ndb` is a request's target whichever variants are chosen."""
        return any(ENGINES[key].on_target for key in request.variants)

    def _target_needs(self, address: Address | None) -> list[str]:
        if address is None:
            return [target.NO_TARGET]
        return ndb_cluster.needs() if address == ndb_cluster.address() else target.needs_over_tcp(address)

    def disk_bytes(self, request: Request) -> int:
        """
        The dataset, as much again for each of what updates leave until it is given back, doublewrite and the binary log, what the mix writes, the redo
        log, and the reserve. What a target takes is not in it: it may be elsewhere, and `scripts/ndb room` asks for that of our cluster at the normal
        scale; what a larger table takes there is added.
        """
        mix = request.options["mix_seconds"] * _MIX_WRITES_BYTES_PER_SECOND
        private = 4 * request.settings.dataset_bytes + mix + REDO_BYTES + (1 << 30) + request.settings.disk_reserve_bytes
        return private + (self._more_of_cluster(request) if self._has_target(request) and request.target == ndb_cluster.address() else 0)

    def _more_of_cluster(self, request: Request) -> int:
        normal, wanted = (ndb_disk_bytes(rows_of(each), each.options["mix_seconds"]) for each in (self.default_request(), request))
        return 2 * max(0, wanted - normal)  # on each of two data nodes

    def seconds_of(self, request: Request, point: Point) -> float:
        engine, setting = ENGINES[point.variant], Setting.of(point.setting)
        if point.operation != "load":
            return measured_seconds(request, point.operation) + request.settings.warmup_seconds + _AROUND_POINT_SECONDS
        start = _NDB_START_SECONDS if engine.on_target else _START_SECONDS + _DRIVES_SECONDS * setting.on_drives
        return start + request.settings.dataset_bytes / _load_rate(request, engine, setting) + _AROUND_POINT_SECONDS

    def seconds_around(self, request: Request) -> float:
        """The device's rates in every round, and the clients' build."""
        return 30 + request.rounds * (2 * request.settings.device_probe_seconds + 6)

    def planned_seconds(self, request: Request, points: list[Point]) -> float:
        return super().planned_seconds(request, points) + self._seconds_again(request, points)

    def _seconds_again(self, request: Request, points: list[Point]) -> float:
        """For what an interrupted run has of its blocks, and runs again before what is left of them."""
        blocks: dict[tuple, list[Point]] = {}
        for point in points:
            blocks.setdefault((point.round, point.variant, point.setting, point.threads), []).append(point)
        return sum(self.seconds_of(request, replace(left[0], operation=key)) for left in blocks.values() for key in _again(request, left))

    def plan_rows(self, request: Request, left: list[Point]) -> list[PlanRow]:
        made = []
        for setting in dict.fromkeys(cell.setting for cell in self.cells(request)):
            points = [point for point in left if point.setting == setting]
            what = ", ".join(self.labels[key] for key in dict.fromkeys(point.variant for point in points))
            seconds = sum(self.seconds_of(request, point) for point in points) + self._seconds_again(request, points)
            made.append(PlanRow(setting, what, len(points), seconds))
        return [*made, PlanRow("the device's own rates, and the clients' build", "", 0, self.seconds_around(request) if left else 0)]

    # --- running it ---
    @contextmanager
    def open(self, context: Context) -> Iterator[DiskBench]:
        uses_ours = ndb_cluster.is_built() and context.request.target in (None, ndb_cluster.address())
        with ndb_cluster.as_found(uses_ours), DiskBench(context) as bench:
            yield bench

    def line(self, record: dict) -> str:
        result, latencies = record["result"], record["latencies"]
        means = ", ".join(f"{name.lower()} {latency['mean_ms']:.2f} ms" for name, latency in latencies.items())
        return (f"round {record['round']}  {record['operation']:<10} {self.labels[record['variant']]:<28} {record['setting']:<15} "
                f"[bold]{stats.human_count(result['events_per_second']):>7}[/bold]/s  mean {means}{line(record)}{noise_note(record)}")

    # --- what came out ---
    def ours(self, run: RunDirectory, cell: Cell) -> str:
        """With the figure that carries over to other hardware."""
        key, cells = CellKey.of(cell), self.cells_of(run)
        payload = cells.summary(key, cell.variant, payload_rate)
        share = cells.summary(key, cell.variant, lambda point: device_share(point, run.run))
        if payload is None:
            return NOT_MEASURED
        of_device = f", {share.median:.0%} of the device's raw rate" if share else ""
        return f"{super().ours(run, cell)}, {stats.human_megabytes(payload.median)}/s{of_device}"

    def of_one(self, run: RunDirectory, figure: PublishedFigure) -> str:
        """Latencies in their own unit."""
        mean = _MEANS.get(figure.figure.id)
        if mean is None:
            return super().of_one(run, figure)
        found = self.cells_of(run).summary(CellKey.of(figure.cell), figure.cell.variant, mean)
        return f"{found.median:.2f} ms{found.range_text('{:.2f}'.format)}" if found else NOT_MEASURED

    def size_text(self, size_bytes: int) -> str:
        return f"{size_bytes:,} bytes"

    def conditions(self, run: RunDirectory) -> str:
        return e5_figures.conditions(run.run)

    def figures(self, run: RunDirectory) -> dict[str, Figure]:
        return e5_figures.figures(run, self.labels)

    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        return e5_findings.verdicts(run, self.labels)

    def finding_rows(self, run: RunDirectory) -> list[FindingRow]:
        return columns.rows(self.verdicts(run))

    def tables(self, run: RunDirectory) -> list[Table]:
        return e5_figures.tables(run, self.labels)


def _settings_of(request: Request, engine: DiskEngine) -> list[str]:
    """Data paths are Quarry's; drives and the limited network are of the engines that findings compare."""
    if engine.on_target:
        return [ONE_PATH]
    options, found = request.options, [path_setting(paths) for paths in (request.options["paths"] if engine.is_private_quarry else [1])]
    if engine.takes_drives:
        found += [drive_setting(number) for number in options["drives"]] + ([LIMITED_NETWORK] if options["link_mbits"] else [])
    return found


def _workloads(request: Request, engine: DiskEngine, setting: str) -> list[str]:
    """All on the machine's own device, the published ones elsewhere and on a target; everywhere on paths at full scale."""
    wanted = {"load", *request.operations}
    if setting != ONE_PATH or engine.on_target:
        is_path = not Setting.of(setting).on_drives and setting != LIMITED_NETWORK
        wanted &= wanted if request.scale == "full" and is_path else set(COMPARED)
    return [key for key in WORKLOADS if key in wanted]


def _again(request: Request, left: list[Point]) -> list[str]:
    """Workloads of a block that come before the last point that is left of it, and are not left."""
    planned, keys = _workloads(request, ENGINES[left[0].variant], left[0].setting), {point.operation for point in left}
    return [key for key in planned[:max(map(planned.index, keys))] if key not in keys]


def _room_lacking(request: Request) -> list[str]:
    """Of named data paths: the first of them has all values where it is the only one."""
    each, paths = drive_size(request), [Path(path) for path in request.options["data_paths"][:max(request.options["paths"])]]
    return [f"{stats.human_bytes(each)} of free disk under {path} ({stats.human_bytes(free)} are free)"
            for path in paths if path.is_dir() and (free := device.free_bytes(path)) < each]


def _check_options(options: dict) -> None:
    """Raises LabError for what cannot work."""
    if options["memory_bytes"] < MEMORY_BYTES_MIN:
        raise LabError(f"memory_bytes must be at least {MEMORY_BYTES_MIN}: no server carries this load with less (got {options['memory_bytes']})")
    if min(options["paths"], default=0) < 1:
        raise LabError(f"paths must be numbers from 1 (got {options['paths']})")
    if options["data_paths"] and max(options["paths"]) > len(options["data_paths"]):
        raise LabError(f"{max(options['paths'])} data paths are wanted, {len(options['data_paths'])} are named")
    if options["drives"] and (min(options["drives"]) < 1 or options["drive_mbytes"] < 1):
        raise LabError(f"drives must be numbers from 1, of at least 1 MiB a second (got {options['drives']}, {options['drive_mbytes']})")
    if options["link_mbits"] < 0 or options["mix_seconds"] < 1:
        raise LabError(f"link_mbits must be at least 0 and mix_seconds at least 1 (got {options['link_mbits']}, {options['mix_seconds']})")


def _load_rate(request: Request, engine: DiskEngine, setting: Setting) -> float:
    """Payload bytes a second, an estimate."""
    limits = [float(_LOAD_BYTES_PER_SECOND)]
    if setting.on_drives:
        limits.append((request.options["drive_mbytes"] << 20) * setting.paths / _WRITTEN_PER_BYTE[engine.engine])
    if setting.is_limited:
        limits.append(request.options["link_mbits"] * 10**6 / 8)
    return min(limits)
