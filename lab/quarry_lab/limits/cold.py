"""
limits-cold: what bounds cold reads, in the cells of `cold`: rows that hold a trailer, and the device read past everything.

With `trailers-and-device` a function of the server reads a value's bytes in the statement's own thread, with `trailers-and-client` the client
reads them beside its statement: the second bounds an engine of any thread, for there everything is paid where it costs least. A scan of the other
columns is bounded by the same rows with values of no bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from rich.table import Table

from ..design.cells import CellKey, Cells
from ..design.plan import OPERATION_LABELS, Point
from ..design.request import DATA, LabError, Request
from ..design.results import RunDirectory
from ..design.variants import KIB, Variant
from ..experiments.cold.bench import WORK, ColdBench, Work
from ..experiments.cold.experiment import COLUMNS_SIZE, READ_THREADS, Cold
from ..experiments.cold.findings import QUARRY, VALUES_KIB, pool_bytes, times
from ..experiments.target_rules import INNODB
from ..load import clients, sysbench
from ..probes import device
from ..report import stats
from ..report.verdicts import ANSWERED, Finding, Verdict, figures_of, not_measured, stated
from ..run.experiment import Context
from ..run.tables import comparison_table, size_label
from . import server_functions
from .bench import require_bytes
from .findings import compared, rate_of
from .yardsticks import KNOWN, Yardstick

CLIENT, DEVICE, EMPTY = "trailers-and-client", "trailers-and-device", "empty-values"
OPERATION_OF = {CLIENT: "cold-read", DEVICE: "cold-read", EMPTY: "columns"}
DIRECT_READ_BYTES_MAX = 2 << 20  # direct_read.cc
_RULE = "the medians of this run, side by side"
_POOL = Finding("limits-cold-pool", "buffer pool for the same rows, all rows' other columns hot: the least there can be", _RULE)


class ColdLimitsBench(ColdBench):
    def __init__(self, context: Context, payload_bytes: int):
        super().__init__(context, payload_bytes, KNOWN)

    def _load(self, point: Point, work: Work, database: str, threads: int) -> sysbench.Load:
        variant = self.known[point.variant]
        return replace(super()._load(point, work, database, threads), free_values=isinstance(variant, Yardstick) and variant.free_values)

    def _run(self, point: Point, database: str) -> dict:
        variant = self.known[point.variant]
        if not isinstance(variant, Yardstick) or not variant.device_reads:
            return super()._run(point, database)
        load = self._load(point, WORK[point.operation], database, point.threads)
        before = device.device_counters(device.device_of(DATA.parent))
        with self._device_file() as path:
            if variant.device_reads == "client":
                record = self._run_load(point, replace(load, device_path=str(path)))
            else:
                with server_functions.loaded(self.server, "direct_read", {"direct_read": "STRING"}):
                    record = self._run_load(point, replace(load, free_value=f"direct_read('{path}', {point.size_bytes})"))
        after = device.device_counters(device.device_of(DATA.parent))
        found = {"sent": record["bytes_sent"], **({"read from the device": after.read_bytes - before.read_bytes} if before and after else {})}
        require_bytes(variant, record["result"]["total_reads"] * point.size_bytes, found)
        return record

    @contextmanager
    def _device_file(self) -> Iterator[Path]:
        """As large as the dataset, for reads of the device that are no engine's."""
        dataset = self.request.options["dataset_bytes"] >> 20 << 20
        self.progress.step(f"writing {stats.human_bytes(dataset)} for reads of the device")
        with device.random_file(DATA, dataset) as path:
            yield path


class LimitsOfColdReads(Cold):
    name = "limits-cold"
    title = "upper bounds of cold reads: rows alone, and the device read past everything"
    operations = ("cold-read", "columns")
    known: ClassVar[Mapping[str, Variant]] = KNOWN
    operation_of: ClassVar[Mapping[str, str]] = OPERATION_OF
    bench_class: ClassVar[type[ColdBench]] = ColdLimitsBench

    def default_request(self) -> Request:
        made = super().default_request()
        return replace(made, name=self.name, operations=list(self.operations), variants=[INNODB, QUARRY, *OPERATION_OF])

    def needs(self, request: Request) -> list[str]:
        device_reads = [cell for cell in self.cells(request) if cell.variant in (CLIENT, DEVICE)]
        if longest := max((c.size_bytes for c in device_reads if c.size_bytes > DIRECT_READ_BYTES_MAX), default=0):
            raise LabError(f"{device_reads[0].variant} takes values of at most {DIRECT_READ_BYTES_MAX} bytes (got {longest}): "
                           "leave it out with --engines, or the size with --sizes")
        return [*super().needs(request), *(clients.needs() if device_reads else [])]

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        cells, parameters = self.cells_of(run), run.run["parameters"]
        reads = [_read(cells, kib * KIB, threads, parameters) for kib in VALUES_KIB for threads in READ_THREADS]
        return [*reads, _columns(cells, parameters), _pool(cells, parameters)]

    def tables(self, run: RunDirectory) -> list[Table]:
        return comparison_table(self.cells_of(run), run.run, self.reference)


def _finding(key: CellKey) -> Finding:
    what = f"{OPERATION_LABELS[key.operation]} {size_label(key.size_bytes)}, {key.threads} thread{'s' if key.threads > 1 else ''}"
    return Finding(f"limits-{key.operation}-{key.size_bytes // KIB}kb-x{key.threads}", f"{what}: what bounds it", _RULE)


def _read(cells: Cells, size_bytes: int, threads: int, parameters: dict) -> Verdict:
    key = CellKey("cold-read", size_bytes, threads)
    bounds = [rate_of(cells, key, CLIENT, "rows in InnoDB, as many bytes sent from memory, as many read from the device by the client", "any_thread")]
    beside = [rate_of(cells, key, DEVICE, "rows in InnoDB, one read of the device by the thread of the statement, and nothing else for the value",
                      "in_thread")]
    return compared(cells, _finding(key), key, bounds, beside, parameters, variant=QUARRY)


def _columns(cells: Cells, parameters: dict) -> Verdict:
    key = CellKey("columns", COLUMNS_SIZE, 1)
    bounds = [rate_of(cells, key, EMPTY, "the same rows with values of no bytes", "empty")]
    return compared(cells, _finding(key), key, bounds, [], parameters, variant=QUARRY)


def _pool(cells: Cells, parameters: dict) -> Verdict:
    key = CellKey("columns", COLUMNS_SIZE, 1)
    ours, least = (cells.ratio(key, variant, INNODB, pool_bytes) for variant in (QUARRY, EMPTY))
    if not ours or not least:
        return not_measured(_POOL, "a scan of values of no bytes, of Quarry's and of InnoDB's is needed")
    text = f"the same rows with values of no bytes {times(least)} of InnoDB's; Quarry {times(ours)}"
    figures = {"ratio": figures_of(ours), "least": figures_of(least)}
    return stated(_POOL, ANSWERED, text, figures, cells.rounds_of([key], (QUARRY, EMPTY, INNODB)), parameters)
