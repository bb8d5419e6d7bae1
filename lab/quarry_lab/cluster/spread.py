"""What an operation costs on each node, and what follows for more shards and fronts: `python -m quarry_lab.cluster.spread`.

Measured: throughput and p95 of 64 KB reads and writes through a front and straight at a primary; CPU seconds (/proc) and
bytes of the SQL protocol (Bytes_sent, Bytes_received; HAProxy's own counters) on every node. All nodes share this machine,
so throughput here says little. Modelled: a class of nodes is full when its operations use all cores, or one direction of the
network, of every node in it. A value passes each node that it meets once in each direction at most.
Thread-safety: externally synchronised.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Sequence

import pymysql
from quarry_cluster.cluster import Cluster, passing_cluster
from quarry_cluster.ddl import ShardedTables
from quarry_cluster.plan import Node
from quarry_server.server import BUILD
from rich.console import Console
from rich.table import Table

from ..report import charts
from ..report.stats import counted, percentile, summarize
from .ledger import DEFINITION, VALUE_BYTES, Connect, Load

DATABASE = "spread"
SHARDS = (1, 2, 4)
CORES = 16
NETWORK_BYTES_PER_S = 10e9 / 8
CLIENTS = 8
WARM_S, MEASURED_S = 2, 8
MODES = {"read": 100, "90/10": 90, "write": 0}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Of one class of nodes: CPU seconds and bytes."""

    cpu_s: float
    sent: int
    received: int

    def __sub__(self, other: Usage) -> Usage:
        return Usage(self.cpu_s - other.cpu_s, self.sent - other.sent, self.received - other.received)

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.cpu_s + other.cpu_s, self.sent + other.sent, self.received + other.received)


NOTHING = Usage(0, 0, 0)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def usages(cluster: Cluster) -> dict[str, Usage]:
    """By class: front, HAProxy, primary, replica."""
    found = {"front": NOTHING, "HAProxy": NOTHING, "primary": NOTHING, "replica": NOTHING}
    primaries = cluster.primaries()
    for member in cluster.members.values():
        name = "front" if member.node.role == "front" else "primary" if member in primaries else "replica"
        status = member.status("Bytes_%")
        pid = member.server.pid
        assert pid is not None
        found[name] += Usage(cpu_s(pid), int(status["bytes_sent"]), int(status["bytes_received"]))
    pid = cluster.proxy.pid()
    assert pid is not None
    for shard in cluster.plan.routes:
        found["HAProxy"] += Usage(0, *cluster.proxy.bytes_of(shard))
    found["HAProxy"] += Usage(cpu_s(pid), 0, 0)
    return found


def ways(cluster: Cluster, fronts: int) -> Sequence[Connect]:
    """Through so many fronts; 0: straight at the only shard's primary."""
    members = cluster.role("front")[:fronts] if fronts else cluster.primaries()

    def way(node: Node) -> Connect:
        return lambda: pymysql.connect(**cluster.login(node), database=DATABASE, autocommit=True, read_timeout=60)

    return [way(member.node) for member in members]


def measure(cluster: Cluster, fronts: int, mode: str, first: int) -> dict[str, Any]:
    """One cell. `first`: the number of the first client, for rows that no other cell has."""
    load = Load(ways(cluster, fronts), CLIENTS, first=first, read_percent=MODES[mode])
    load.begin()
    time.sleep(WARM_S)
    before, began, own = usages(cluster), time.monotonic(), time.process_time()
    time.sleep(MEASURED_S)
    after, ended, own = usages(cluster), time.monotonic(), time.process_time() - own
    load.end()
    if load.wrong() or load.errors():
        raise RuntimeError(f"the load met errors: {load.wrong()[:3]} {load.errors()}")
    took = [event.took_s for event in load.events() if began <= event.ended_s < ended]
    cell: dict[str, Any] = {
        "shards": len(cluster.plan.routes),
        "fronts": fronts,
        "mode": mode,
        "per_s": len(took) / (ended - began),
        "p95_ms": percentile(took, 95) * 1000,
        "client_cpu_ms": own * 1000 / len(took),
    }
    for name in before:
        used = after[name] - before[name]
        cell[name] = {
            "cpu_ms": used.cpu_s * 1000 / len(took),
            "kb": (used.sent + used.received) / 1024 / len(took),
        }
    return cell


def measure_cluster(cluster: Cluster) -> list[dict[str, Any]]:
    ShardedTables(cluster).create(DATABASE, DEFINITION, "id")
    fronts = ([0] if len(cluster.plan.routes) == 1 else []) + list(range(1, len(cluster.role("front")) + 1))
    cells = [(count, mode) for count in fronts for mode in MODES]
    return [measure(cluster, count, mode, 1 + i * CLIENTS) for i, (count, mode) in enumerate(cells)]


def table(cells: list[dict[str, Any]]) -> Table:
    made = Table(title="64 KB values: CPU and SQL bytes per operation, all nodes of a class together", title_justify="left")
    for heading in ("shards", "fronts", "load", "ops/s", "p95 ms", "front", "HAProxy", "primary", "replica", "client"):
        made.add_column(heading, justify="right")
    for cell in cells:
        costs = [f"{cell[name]['cpu_ms']:.2f} ms\n{cell[name]['kb']:.0f} KB" for name in ("front", "HAProxy", "primary", "replica")]
        head = [str(cell["shards"]), str(cell["fronts"] or "none"), cell["mode"], f"{cell['per_s']:.0f}", f"{cell['p95_ms']:.1f}"]
        made.add_row(*head, *costs, f"{cell['client_cpu_ms']:.2f} ms")
    return made


def modelled(cell: dict[str, Any], name: str, nodes: int) -> tuple[float, str]:
    """Operations/s at which so many nodes of a class, with CORES and NETWORK of their own, are full, and what is full first."""
    values = nodes * NETWORK_BYTES_PER_S / VALUE_BYTES
    cpu = nodes * CORES * 1000 / cell[name]["cpu_ms"] if cell[name]["cpu_ms"] else float("inf")
    return (cpu, "CPU") if cpu < values else (values, "network")


def model_table(cells: list[dict[str, Any]]) -> Table:
    """What the measured costs allow when every node is a machine of its own."""
    machine = f"{CORES} cores and {NETWORK_BYTES_PER_S * 8 / 1e9:.0f} Gbit/s a node"
    made = Table(title=f"modelled: operations/s at which a class of nodes is full, {machine}", title_justify="left")
    for heading in ("load", "fronts", "shards", "fronts full", "primaries full"):
        made.add_column(heading, justify="right")
    measured = [cell for cell in cells if cell["fronts"] == 2 and cell["shards"] == max(SHARDS)]
    for cell in measured:
        for fronts, shards in ((2, 4), (4, 4), (16, 16)):
            full = [modelled(cell, name, nodes) for name, nodes in (("front", fronts), ("primary", shards))]
            made.add_row(cell["mode"], str(fronts), str(shards), *(f"{rate:,.0f} ({what})" for rate, what in full))
    return made


def draw(cells: list[dict[str, Any]], directory: Path) -> list[Path]:
    """CPU per operation by class of nodes against the number of shards, for each load."""
    made = []
    for mode in MODES:
        of = [cell for cell in cells if cell["mode"] == mode]
        groups = [f"{counted(cell['fronts'], 'front')}, {counted(cell['shards'], 'shard')}" for cell in of]
        bars = [
            charts.Series(name, name, [summarize([cell[name]["cpu_ms"]]) for cell in of])
            for name in ("front", "HAProxy", "primary", "replica")
        ]
        figure = charts.bars(f"CPU per operation, {mode} of 64 KB", "ms of CPU", "", groups, bars)
        made.append(charts.save_png(figure, directory / f"spread-{mode.replace('/', '-')}.png"))
    return made


def main() -> int:
    report, cells = BUILD / "report" / "cluster", []
    report.mkdir(parents=True, exist_ok=True)
    for shards in SHARDS:
        with passing_cluster(BUILD / "cluster-spread", "spider", shards) as cluster:
            cells += measure_cluster(cluster)
    (report / "spread.json").write_text(json.dumps(cells, indent=1), encoding="utf-8")
    console = Console(width=120)
    console.print(table(cells))
    console.print(model_table(cells))
    print(*draw(cells, report), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
