"""
Experiments on tables of one BLOB column with sysbench (runner.TableBench), and what their kinds of server need.

Variants are those of variants.ALL; every variant lives on a private server of the run ('main', 'baseline'). A cell's setting is the
kind of its payload; without one it has the request's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import ClassVar

from quarry_server.server import MARIADB
from rich.table import Table

from ..design.cells import CellKey, Cells
from ..design.plan import OPERATIONS, OPERATION_LABELS, WITHOUT_DATASET, Cell, table_cells
from ..design.request import DATA, Request
from ..design.results import RunDirectory
from ..design.variants import ALL, TARGET, Variant
from ..load import sysbench
from ..load.payload import KINDS, Payload
from ..probes import device, processors
from ..report.stats import human_gain
from ..report.verdicts import ANSWERED, Finding, Verdict, figures_of, not_measured, stated
from ..run.experiment import Context, Experiment
from ..run.runner import TableBench, line
from ..run.tables import comparison_table
from ..servers import target
from ..servers.lab_server import PINNED, LabServer, file_sha256, normal
from ..servers.target import TargetServer

CONDITIONING_BYTES_PER_SECOND = 250 << 20  # estimates, for the planned wall time only
SERVER_SECONDS = 15 + (5 << 29) / CONDITIONING_BYTES_PER_SECOND  # to start and condition one
_POOL = "innodb_buffer_pool_size"
BESIDE_POOL_BYTES = 2 << 30  # of memory, for the value cache, the client and all else


class TableExperiment(Experiment):
    operations: ClassVar[tuple[str, ...]] = OPERATIONS
    payloads: ClassVar[tuple[str, ...]] = KINDS

    takes_target: ClassVar[bool] = True
    takes_apart: ClassVar[bool] = True

    known: ClassVar[Mapping[str, Variant]] = ALL

    @property
    def labels(self) -> dict[str, str]:
        return {key: variant.label for key, variant in self.known.items()}

    def variants(self, request: Request) -> list[Variant]:
        return [self.known[key] for key in request.variants]

    def cells(self, request: Request) -> list[Cell]:
        return table_cells(request.operations, request.sizes_bytes, request.threads, self.variants(request))

    def identity(self, request: Request) -> dict:
        """A changed plugin starts a new run."""
        builds = {"main": request.plugin, "baseline": request.baseline_plugin}
        wanted = {v.server for v in self.variants(request) if v.needs_plugin}
        return super().identity(request) | {f"{key}_plugin_sha256": file_sha256(path) for key, path in builds.items() if key in wanted and path}

    def needs(self, request: Request) -> list[str]:
        missing = server_needs([v for v in self.variants(request) if v.server != TARGET], request)
        if request.target:
            return missing + target.needs(request.target)
        return missing + ([target.NO_TARGET] if any(v.server == TARGET for v in self.variants(request)) else [])

    def disk_bytes(self, request: Request) -> int:
        """A size's datasets side by side (twice for what updates leave), the redo log, what conditioning writes, and the reserve."""
        datasets = request.settings.dataset_bytes * len(request.variants) * 2
        return datasets + (4 << 30) + request.settings.disk_reserve_bytes

    def seconds_around(self, request: Request) -> float:
        blocks = self.plan(request)
        loading = sum(len({p.variant for p in b.points if p.operation not in WITHOUT_DATASET}) for b in blocks)
        loaded_bytes = loading * request.settings.dataset_bytes * 2
        probing = request.rounds * (request.settings.device_probe_seconds + 4)
        return SERVER_SECONDS + loaded_bytes / CONDITIONING_BYTES_PER_SECOND + probing

    @contextmanager
    def open(self, context: Context) -> Iterator[TableBench]:
        request = context.request
        with ExitStack() as stack:
            kinds = dict.fromkeys((request.payload, *(cell.setting for cell in self.cells(request) if cell.setting)))
            payloads = {kind: stack.enter_context(Payload(kind)) for kind in kinds}
            servers: dict[str, LabServer | TargetServer] = {**make_servers(self.variants(request), request)}
            if request.target:
                servers[TARGET] = TargetServer(TARGET, request.target)
            for server in servers.values():
                stack.callback(server.close)
                server.start()
            yield self.bench(context, servers, payloads)

    def bench(self, context: Context, servers: dict[str, LabServer | TargetServer], payloads: dict[str, Payload]) -> TableBench:
        return TableBench(context, servers, payloads, self.known)

    def line(self, record: dict) -> str:
        return super().line({**record, "operation": OPERATION_LABELS[record["operation"]]}) + line(record)

    # --- what came out ---
    def tables(self, run: RunDirectory) -> list[Table]:
        return comparison_table(self.cells_of(run), run.run, self.reference)


def make_servers(variants: list[Variant], request: Request) -> dict[str, LabServer]:
    """The private servers that these variants live on, not started yet."""
    builds = {"main": request.plugin, "baseline": request.baseline_plugin}
    servers = {}
    for key in sorted({v.server for v in variants} - {TARGET}):
        mine = [v for v in variants if v.server == key]
        plugin = builds[key] if any(v.needs_plugin for v in mine) else None
        extra = {**(value_cache(request) if plugin else {}), **request.mycnf}
        plugins = ("ha_blackhole",) if any(v.engine == "BLACKHOLE" for v in mine) else ()
        servers[key] = LabServer(key, DATA / key, plugin, any(v.engine == "ROCKSDB" for v in mine), extra, plugins=plugins,
                                 only_on=processors.SERVERS if request.apart else None)
    return servers


def value_cache(request: Request) -> dict[str, str]:
    """The option for Quarry's value cache, as large as InnoDB's buffer pool. An older build of the plugin may have none."""
    return {} if "quarry_cache_size" in request.mycnf else {"loose_quarry_cache_size": str(buffer_pool_bytes(request))}


def buffer_pool_bytes(request: Request) -> int:
    return int(normal(request.mycnf.get(_POOL, PINNED[_POOL])))


def server_needs(variants: list[Variant], request: Request) -> list[str]:
    """What is missing for private servers with these variants."""
    missing = []
    if not sysbench.is_installed():
        missing.append("sysbench (scripts/setup installs it)")
    if not (MARIADB / "usr" / "sbin" / "mariadbd").exists():
        missing.append(f"a MariaDB server in {MARIADB} (scripts/fetch-mariadb gets one)")
    for key, path in (("main", request.plugin), ("baseline", request.baseline_plugin)):
        wanting = [v.label for v in variants if v.server == key and v.needs_plugin]
        if wanting and (path is None or not Path(path).exists()):
            missing.append(f"a plugin at {path} for {wanting[0]} ('make plugin' builds it; or leave it out of --engines)")
    return missing + memory_needs(request)


def memory_needs(request: Request, more_bytes: int = 0) -> list[str]:
    """Of a private server with its pool, and all beside it. more_bytes: of other servers that run meanwhile."""
    memory, need = device.memory_info()["MemAvailable"], buffer_pool_bytes(request) + BESIDE_POOL_BYTES + more_bytes
    return [f"{need >> 30} GiB of available memory ({memory >> 20} MiB are available)"] if memory < need else []


def _gain(ratio: float) -> str:
    return human_gain(ratio - 1)


def answer_gain(cells: Cells, finding: Finding, keys: list[CellKey], variant: str, over: str, parameters: dict) -> Verdict:
    """A question: how much faster a variant is, at every thread count."""
    found = cells.ratios(keys, variant, over)
    if not found:
        return not_measured(finding, f"this run lacks {cells.label(variant)} or {cells.label(over)} there")
    text = "; ".join(f"x{k.threads}: {_gain(r.median)}{r.range_text(_gain)}" for k, r in found.items())
    figures = {f"ratio_x{k.threads}": figures_of(r) for k, r in found.items()}
    return stated(finding, ANSWERED, text, figures, cells.rounds_of(found, (variant, over)), parameters)
