"""
YCSB's core workloads (site.ycsb:core, through the binding of lab/java): the properties of each, one run, and its report.

Throughput comes from YCSB's own status lines, one a second, after the warm-up, which begins with the first operations; latencies from its
histograms over the whole run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ..design import published
from .java import Client, JavaError, start

BINDING = "quarry.lab.PayloadTable"
PAYLOAD_BYTES = int(published.document("e5").value("payload"))
_OPERATIONS_MAX = 2_000_000_000  # the time ends a run, not the count
START_SECONDS = 2  # YCSB's clock runs while its threads connect: added to the time that is asked for


@dataclass(frozen=True)
class Workload:
    key: str
    label: str
    properties: Mapping[str, str]

    @property
    def is_load(self) -> bool:
        return self.key == "load"


def _mix(distribution: str, **shares: float) -> dict[str, str]:
    kinds = ("read", "update", "insert", "scan", "readmodifywrite")
    return {"requestdistribution": distribution, **{f"{kind}proportion": str(shares.get(kind, 0)) for kind in kinds}}


# Shares of reads and writes (updates, read-modify-writes in F, inserts in D), keys. The published mix meets rows that were just loaded, in every
# setting, and also where a run loads them again for it alone. The others come in YCSB's order; D is the last, for it inserts.
WORKLOADS = {
    workload.key: workload
    for workload in (
        Workload("load", "load", _mix("uniform")),
        Workload("published", "published: 50/50, uniform", _mix("uniform", read=0.5, update=0.5)),
        Workload("a", "A: 50/50, zipfian", _mix("zipfian", read=0.5, update=0.5)),
        Workload("b", "B: 95/5, zipfian", _mix("zipfian", read=0.95, update=0.05)),
        Workload("c", "C: reads, zipfian", _mix("zipfian", read=1)),
        Workload("f", "F: 50/50 modify, zipfian", _mix("zipfian", read=0.5, readmodifywrite=0.5)),
        Workload("d", "D: 95/5 insert, latest", _mix("latest", read=0.95, insert=0.05)),
    )
}


@dataclass(frozen=True)
class YcsbRun:
    workload: Workload
    table: str
    rows: int
    threads: int
    warmup_seconds: int = 0
    seconds: int = 0
    payload_bytes: int = PAYLOAD_BYTES
    check_values: bool = False  # values that the reader can recompute and compare; slow beyond some hundred bytes

    def arguments(self, export_file: Path) -> list[str]:
        properties = {
            "workload": "site.ycsb.workloads.CoreWorkload", "table": self.table, "recordcount": str(self.rows), "fieldcount": "1",
            "fieldlength": str(self.payload_bytes), "writeallfields": "true", "dataintegrity": str(self.check_values).lower(),
            "status.interval": "1", "measurementtype": "hdrhistogram", "hdrhistogram.percentiles": "50,95,99",
            "exporter": "site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter", "exportfile": str(export_file),
            **self.workload.properties,
        }
        if not self.workload.is_load:
            properties |= {"operationcount": str(_OPERATIONS_MAX), "maxexecutiontime": str(START_SECONDS + self.warmup_seconds + self.seconds)}
        phase = "-load" if self.workload.is_load else "-t"
        return [phase, "-s", "-db", BINDING, "-threads", str(self.threads), *(x for name, value in properties.items() for x in ("-p", f"{name}={value}"))]


@dataclass(frozen=True)
class Latency:
    operations: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True)
class YcsbReport:
    measured_until: float  # wall clock
    interval_seconds: float
    operations_per_second: float
    timeline: list[tuple[float, float]]  # (wall clock, operations per second), from the start
    latencies: dict[str, Latency] = field(default_factory=dict)  # by YCSB's names: READ, UPDATE, INSERT, READ-MODIFY-WRITE
    repeated: int = 0  # executions that met an error which NDB calls temporary


def run(load: YcsbRun, client: Client, export_file: Path) -> YcsbReport:
    export_file.unlink(missing_ok=True)
    limit = 3600 if load.workload.is_load else load.warmup_seconds + load.seconds + 120
    output = start("site.ycsb.Client", load.arguments(export_file), client).wait(limit)
    if not export_file.exists():
        raise JavaError(f"YCSB wrote no report; its last words: {output[-500:]}")
    exported = json.loads(export_file.read_text())
    export_file.unlink()
    return report_of(output, exported, load)


_STATUS = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}) \d+ sec: (\d+) operations", re.MULTILINE)
_REPEATED = re.compile(r"^repeated: (\d+)$", re.MULTILINE)  # as PayloadTable.java says it
_OPERATION_NAMES = ("READ", "UPDATE", "INSERT", "READ-MODIFY-WRITE")


def statuses(output: str) -> list[tuple[float, int]]:
    """(wall clock, operations so far) of every status line."""
    return [(datetime.strptime(when, "%Y-%m-%d %H:%M:%S:%f").timestamp(), int(count)) for when, count in _STATUS.findall(output)]


def report_of(output: str, exported: list[dict], load: YcsbRun) -> YcsbReport:
    """Rejects a run in which an operation failed."""
    values = {(entry["metric"], entry["measurement"]): entry["value"] for entry in exported}
    failed = {f"{metric} {name}": count for (metric, name), count in values.items() if name.startswith("Return=") and name != "Return=OK"}
    failed |= {metric: count for (metric, name), count in values.items() if metric.endswith("-FAILED") and name == "Operations"}
    if failed:
        raise JavaError(f"YCSB operations failed: {failed}; {_errors(output)}")
    runtime = values["OVERALL", "RunTime(ms)"] / 1000
    seen = statuses(output)
    if len(seen) < 2:
        raise JavaError("YCSB printed no status lines")
    started = seen[-1][0] - runtime
    return YcsbReport(*_measured(seen, started, load), _rates(seen, started), _latencies(values), sum(map(int, _REPEATED.findall(output))))


def _errors(output: str) -> str:
    return "; ".join([line for line in output.splitlines() if line.startswith("error:")][:3])


def _measured(seen: list[tuple[float, int]], started: float, load: YcsbRun) -> tuple[float, float, float]:
    """
    (wall clock of the end, seconds, operations per second): of a load from its start; else of the seconds asked for, after the first
    operations and the warm-up.
    """
    if load.workload.is_load:
        first, last = (started, 0), seen[-1]
    else:
        begun = next((when for when, count in seen if count), seen[-1][0])
        first = next((status for status in seen if status[0] - begun >= load.warmup_seconds - 0.5), seen[-1])
        last = [status for status in seen if status[0] - first[0] <= load.seconds + 0.5][-1]
    seconds, operations = last[0] - first[0], last[1] - first[1]
    if seconds <= 0 or operations <= 0:
        raise JavaError("YCSB finished no operation in the measured interval")
    return last[0], seconds, operations / seconds


def _rates(seen: list[tuple[float, int]], started: float) -> list[tuple[float, float]]:
    rates = []
    before = (started, 0)
    for when, count in seen:
        if when - before[0] >= 0.5:  # the closing line repeats the last second
            rates.append((when, (count - before[1]) / (when - before[0])))
            before = (when, count)
    return rates


def _latencies(values: dict[tuple[str, str], float]) -> dict[str, Latency]:
    found = {}
    for name in _OPERATION_NAMES:
        if values.get((name, "Operations")):
            percentiles = [values[name, f"{p}thPercentileLatency(us)"] / 1000 for p in (50, 95, 99)]
            found[name] = Latency(int(values[name, "Operations"]), values[name, "AverageLatency(us)"] / 1000, *percentiles)
    return found
