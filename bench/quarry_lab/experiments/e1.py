"""
E1: inline, parts and batches. The 90/10 mix over the column variants of Oracle's blog 'Tuning BLOB with SQL', part 2 (MySQL Cluster 9.4).

There: 2 data nodes and 16 SQL nodes on 64 cores, 8 tables, 32 to 512 threads. Here: one server, the same tables and statements but for
the engine's name. A finding that needs more users or nodes than the machine can carry is 'not applicable here', never 'reproduced'.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from .. import charts
from ..cells import CellKey, Cells, p95_ms
from ..results import RunDirectory
from ..runner import Settings
from ..session import Request, execute
from ..tables import Verdict, judge, print_table, print_verdicts, size_label, throughput_figure
from ..variants import ALL, CORE_SIZES_KIB, KIB, by_keys

NAME = "e1"
TITLE = "E1: default head, inline and VARBINARY under the 90/10 mix"
REFERENCE = "quarry-head"
VARIANTS = ("innodb", "quarry-head", "quarry-inline", "quarry-varbinary", "quarry-head-4m", "quarry-inline-4m")
CURVE_VARIANTS = ("quarry-head", "quarry-inline", "quarry-varbinary")
SOURCE = "Oracle MySQL blog, 'Tuning BLOB with SQL', part 2 (MySQL Cluster 9.4)"


def default_request() -> Request:
    return Request(NAME, TITLE, ["mix"], [s * KIB for s in CORE_SIZES_KIB], [8, 32], by_keys(list(VARIANTS)), settings=Settings(tables=8))


def quick(request: Request) -> Request:
    return replace(request, sizes_bytes=[4 * KIB, 24 * KIB], rounds=1, settings=replace(request.settings, seconds=3, warmup_seconds=1))


def small_curve(console: Console, plugin: Path, output: Path, seconds: int = 3, threads: tuple[int, ...] = (1, 4, 16),
                sizes_kib: tuple[int, ...] = (4, 24)) -> RunDirectory:
    """
    The small E1 curve: default head, inline and VARBINARY, one short round each (about 8 s a point). Raw points in `output`;
    `figures(run)` draws it. Raises what session.execute raises.
    """
    settings = Settings(tables=8, seconds=seconds, warmup_seconds=1, dataset_bytes=128 << 20, device_probe_seconds=0)
    request = Request(NAME, TITLE, ["mix"], [s * KIB for s in sizes_kib], list(threads), by_keys(list(CURVE_VARIANTS)), rounds=1,
                      settings=settings, plugin=plugin, output=output, fresh=True)
    return execute(request, console)


# --- the published findings ---
@dataclass(frozen=True)
class Finding:
    """A published gain of one variant over another at one size: 'reproduced' when ours is at least as large as the least published."""

    statement: str
    size_kib: int
    variant: str
    over: str
    gain_min: float


FINDINGS = (
    Finding("4 KB: inline 15-20% over the default head", 4, "quarry-inline", "quarry-head", 0.15),
    Finding("4 KB: VARBINARY about 50% over inline", 4, "quarry-varbinary", "quarry-inline", 0.50),
    Finding("24 KB: inline 10-33% over the default head", 24, "quarry-inline", "quarry-head", 0.10),
    Finding("24 KB: VARBINARY 30-50% over inline", 24, "quarry-varbinary", "quarry-inline", 0.30),
    Finding("64 KB: inline 5% over the default head, both with 4 MB batches", 64, "quarry-inline-4m", "quarry-head-4m", 0.05),
    Finding("64 KB: 4 MB batches more than 50% over 64 KB batches", 64, "quarry-head-4m", "quarry-head", 0.50),
    Finding("448 KB: 4 MB batches more than 50% over 64 KB batches", 448, "quarry-head-4m", "quarry-head", 0.50),
)
NOT_HERE = (
    ("64 KB: 60% more throughput from 32 to 64 users, 33% more to 128, then 5%", "needs many SQL nodes and cores; the client shares this machine's"),
    ("4 KB: saturation at 512 users", "512 users on these processors would measure the scheduler"),
    ("448 KB: capped near 8,000 tps, 500 per SQL node", "there is one server here, no SQL nodes"),
    ("best latency band 10-15 ms", "a band of a 16-node cluster at hundreds of users"),
)


def _judge(cells: Cells, finding: Finding, parameters: dict) -> Verdict:
    statement = finding.statement
    keys = [k for k in cells.keys() if k.size_bytes == finding.size_kib * KIB and k.operation == "mix"]
    ratios = [(k, r) for k in keys if (r := cells.ratio(k, finding.variant, finding.over))]
    if not ratios:
        return Verdict(statement, "not measured", "no such pair of variants in this run")
    found = "; ".join(f"x{k.threads}: {r.median - 1:+.0%} (rounds {r.low - 1:+.0%} to {r.high - 1:+.0%})" for k, r in ratios)
    # As there, at the thread count that shows it best; every round must agree in direction.
    shown = any(r.median - 1 >= finding.gain_min and r.low > 1 for _k, r in ratios)
    return judge(statement, shown, ("reproduced", "not reproduced"), found, parameters)


def verdicts(cells: Cells, run: dict) -> list[Verdict]:
    found = [_judge(cells, finding, run["parameters"]) for finding in FINDINGS]
    return found + [Verdict(statement, "not applicable here", reason) for statement, reason in NOT_HERE]


def latency_figure(cells: Cells):
    """p95 against throughput would hide the thread counts; so p95 against threads, panels by size."""
    panels = []
    for size in sorted({k.size_bytes for k in cells.keys()}):
        threads = sorted({k.threads for k in cells.keys() if k.size_bytes == size})
        series = [charts.Series(v, ALL[v].label, [cells.summary(CellKey("mix", size, t), v, p95_ms) for t in threads])
                  for v in cells.variants() if any(cells.rounds(CellKey("mix", size, t), v) for t in threads)]
        panels.append(charts.Panel(size_label(size), threads, series))
    return charts.line_panels("90/10 mix, 95th percentile of latency", "client threads", "milliseconds", panels)


def figures(run: RunDirectory) -> dict:
    cells = Cells(run.points)
    return {"mix": throughput_figure(cells, "mix"), "latency": latency_figure(cells)} if run.points else {}


def report(console: Console, run: RunDirectory) -> None:
    cells = Cells(run.points)
    print_table(console, cells, run.run, REFERENCE)
    print_verdicts(console, f"published findings ({SOURCE}), judged from this run's raw rounds", "there", verdicts(cells, run.run))
