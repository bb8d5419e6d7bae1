"""
What each yardstick of `limits` says of Quarry's rate in the same cell: how it compares with InnoDB's, and how much of it is reached.

A bound of several parts is the scarcest of them. One client is not at the device while it is in the SQL layer, so its bound is all parts one after
the other. What stands beside a bound is one arrangement; an engine may be beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..design.cells import CellKey, Cells, bytes_written_ratio, payload_rate, throughput
from ..design.profile import PRODUCTION
from ..design.variants import KIB
from ..experiments.target_rules import INNODB, ratio_text
from ..experiments.targets.findings import LARGE_THREADS, MIX_THREADS, PAGE_COMPRESSED, QUARRY_LZ4, ROCKSDB, SIZES_KIB, TEXT3
from ..report.stats import Summary, paired_ratio
from ..report.verdicts import ANSWERED, Finding, Verdict, figures_of, not_measured, stated
from .ordered_commits import GROWING, WRITTEN

QUARRY = "quarry"
NO_TABLE, NO_ENGINE, HEADS_ALONE, FREE_VALUES, MEMORY_VALUES = "no-table", "blackhole", "heads-alone", "heads-and-constant", "heads-and-memory"
HEADED_VALUES, COMPRESSED_VALUES = "heads-and-headed", "heads-and-compressed"
DURABLE_VALUES = {"heads-and-growing": ("where their file grows", "grown"), HEADED_VALUES: ("behind headers where their file grows", "headed"),
                  "heads-and-written": ("in space written before", "overwritten")}
INSERT_THREADS, READ_THREADS = (1, 8, 32), 8
_FREE_TEXT = "the heads in InnoDB and a constant for each value"
_MEMORY_TEXT = "the heads in InnoDB and values from memory"
_RULE = "the medians of this run, side by side"

Ordered = dict[tuple[int, int, str], Summary]  # ordered_commits.rates


@dataclass(frozen=True)
class Rate:
    """A yardstick's rate: what it is of, and its name among the figures."""

    text: str
    name: str
    per_second: float | None  # None: not measured


def verdicts(cells: Cells, parameters: dict, ordered: Ordered, values: Ordered) -> list[Verdict]:
    """ordered: what the device alone gives to commits of a value and a log; values: and to values without a log."""
    return [*(_insert(cells, size, threads, ordered, values, parameters) for threads in INSERT_THREADS for size in SIZES_KIB),
            *(_read(cells, size, parameters) for size in SIZES_KIB), *(_mix(cells, size, parameters) for size in SIZES_KIB),
            *(_written(cells, size, parameters) for size in SIZES_KIB), *(_compressed(cells, size, parameters) for size in SIZES_KIB)]


def share_text(rate: float, ours: float, innodb: float) -> str:
    return f"{rate / innodb:.2f}x InnoDB, of which Quarry reaches {ours / rate:.0%}"


def one_after_the_other(rates: Sequence[float]) -> float:
    """How often a second all of them are done, when each takes its turn."""
    return 1 / sum(1 / rate for rate in rates)


def compared(cells: Cells, finding: Finding, key: CellKey, bounds: Sequence[Rate], beside: Sequence[Rate], parameters: dict, one_by_one: bool = False,
             variant: str = QUARRY) -> Verdict:
    """bounds: no engine beats the scarcest, or, one_by_one, all of them after each other. beside: arrangements that are no bounds."""
    ours, innodb = (cells.summary(key, each, throughput) for each in (variant, INNODB))
    bounds, beside = ([rate for rate in rates if rate.per_second] for rates in (bounds, beside))
    if not ours or not innodb or not (bounds or beside):
        return not_measured(finding, "a yardstick, Quarry and InnoDB are needed in the cell")
    rates = [rate.per_second for rate in bounds]
    parts, figures = [], {f"{rate.name}_per_second": rate.per_second for rate in (*bounds, *beside)}
    if rates:
        limit = one_after_the_other(rates) if one_by_one else min(rates)
        how = f": {'together' if one_by_one else 'at most'} {limit:,.0f}/s" if len(rates) > 1 else ""
        parts.append(f"{', '.join(f'{rate.text} {rate.per_second:,.0f}/s' for rate in bounds)}{how}, {share_text(limit, ours.median, innodb.median)}")
        figures |= {"limit_per_second": limit, "share_of_limit": ours.median / limit}
    parts += [f"{rate.text} {rate.per_second:,.0f}/s, {share_text(rate.per_second, ours.median, innodb.median)}" for rate in beside]
    figures |= {f"share_of_{rate.name}": ours.median / rate.per_second for rate in beside}
    return stated(finding, ANSWERED, "; ".join(parts), figures, cells.rounds_of([key], (variant, INNODB)), parameters)


def rate_of(cells: Cells, key: CellKey, variant: str, text: str, name: str) -> Rate:
    found = cells.summary(key, variant, throughput)
    return Rate(text, name, found.median if found else None)


def _probed(ordered: Ordered, key: CellKey, file: str, text: str, name: str) -> Rate:
    found = ordered.get((key.threads, key.size_bytes, file))
    return Rate(text, name, found.median if found else None)


def _insert(cells: Cells, size_kib: int, threads: int, ordered: Ordered, values: Ordered, parameters: dict) -> Verdict:
    """
    Bounds: the SQL layer with an engine that does nothing, the rows without their values, and the device alone, which makes value and log
    durable at once. Beside them: what the same server gives, on the same processors, to rows whose values are made durable while only the
    client's next insert waits. An engine with values in a file of its own does that much, and waits for it.
    """
    key, one_by_one = CellKey("insert", size_kib * KIB, threads), threads == 1
    what = f"{size_kib} KB durable insert, {threads} thread{'s' if threads > 1 else ''}: what bounds it"
    finding = Finding(f"limits-insert-{size_kib}kb-x{threads}", what, _RULE)
    rows = rate_of(cells, key, HEADS_ALONE, "the rows without their values", "rows")
    bounds = [rate_of(cells, key, NO_ENGINE, "the SQL layer alone", "sql_layer"), *([] if one_by_one else [rows]),
              _probed(ordered, key, WRITTEN, "two durable writes at once of the device alone", "device")]
    grown = _probed(values, key, GROWING, "", "")
    in_turn = one_after_the_other([rows.per_second, grown.per_second]) if rows.per_second and grown.per_second else None
    beside = [_probed(ordered, key, GROWING, "the two writes where the values' file grows", "growing"),
              Rate("a row without its value and then a value where the file grows, each as fast as alone", "one_by_one", in_turn),
              *(rate_of(cells, key, variant, f"rows whose values are made durable beside them {where}, nobody waiting,", name)
                for variant, (where, name) in DURABLE_VALUES.items())]
    return compared(cells, finding, key, bounds, beside, parameters, one_by_one)


def _read(cells: Cells, size_kib: int, parameters: dict) -> Verdict:
    key = CellKey("read", size_kib * KIB, READ_THREADS)
    finding = Finding(f"limits-read-{size_kib}kb", f"{size_kib} KB hot read, {READ_THREADS} threads: what bounds it", _RULE)
    bounds = [rate_of(cells, replace(key, operation="constant"), NO_TABLE, "a constant of that size and no engine", "constant"),
              rate_of(cells, key, FREE_VALUES, _FREE_TEXT, "free_values"), rate_of(cells, key, MEMORY_VALUES, _MEMORY_TEXT, "memory")]
    return compared(cells, finding, key, bounds, [], parameters)


def _mix(cells: Cells, size_kib: int, parameters: dict) -> Verdict:
    key = CellKey("mix", size_kib * KIB, MIX_THREADS)
    finding = Finding(f"limits-mix-{size_kib}kb", f"{size_kib} KB 90/10 mix, {MIX_THREADS} threads: what bounds it", _RULE)
    bounds = [rate_of(cells, key, FREE_VALUES, _FREE_TEXT, "free_values"),
              rate_of(cells, key, MEMORY_VALUES, f"{_MEMORY_TEXT}, made durable beside them, nobody waiting,", "memory")]
    return compared(cells, finding, key, bounds, [], parameters)


def _written(cells: Cells, size_kib: int, parameters: dict) -> Verdict:
    """
    What InnoDB writes of rows without their values, once for each byte of payload, comes on top of the value itself; and its copy in the binary
    log, where there is one, for there the rows have their values.
    """
    what = f"{size_kib} KB durable insert, 8 threads and more: the fewest bytes written per payload byte"
    finding = Finding(f"limits-written-{size_kib}kb", what, _RULE)
    keys = [CellKey("insert", size_kib * KIB, threads) for threads in INSERT_THREADS if threads >= 8]

    def most(variant: str) -> float | None:
        return max((s.median for key in keys if (s := cells.summary(key, variant, bytes_written_ratio))), default=None)

    ours, rows, headed = most(QUARRY), most(HEADS_ALONE), most(HEADED_VALUES)
    if ours is None or rows is None:
        return not_measured(finding, "Quarry and rows without their values are needed in the cell")
    logged = int(parameters["profile"] == PRODUCTION)
    least = 1 + logged + rows
    values = ", the binary log has the values" * logged
    text = f"InnoDB writes {rows:.3f} of the rows without their values{values}, so {least:.3f} is the least; Quarry {ours:.3f}"
    figures = {"least_bytes_per_byte": least, "bytes_per_byte": ours}
    if headed is not None:
        # A header for each value is what a file needs that says by itself what is in it, and whole blocks for each flush.
        text += f"; values behind headers beside those rows, nobody waiting for their groups, come to {headed:.3f}"
        figures["headed_bytes_per_byte"] = headed
    return stated(finding, ANSWERED, text, figures, cells.rounds_of(keys, (QUARRY, HEADS_ALONE)), parameters)


def _compressed(cells: Cells, size_kib: int, parameters: dict) -> Verdict:
    """The price of the codec: rows whose values cost no more than lz4 and a durable write that nobody waits for."""
    plain = CellKey("insert", size_kib * KIB, LARGE_THREADS)
    key = replace(plain, setting=TEXT3)
    what = f"{size_kib} KB durable insert, {LARGE_THREADS} threads, values that compress 3:1: what lz4 leaves"
    finding = Finding(f"limits-lz4-{size_kib}kb", what, _RULE)
    limit, ours = (cells.summary(key, variant, payload_rate) for variant in (COMPRESSED_VALUES, QUARRY_LZ4))
    if not limit or not ours:
        return not_measured(finding, "values compressed beside their rows and CODEC=lz4 are needed in the cell")
    rivals = (("InnoDB's page compression", key, PAGE_COMPRESSED), ("MyRocks with lz4", key, ROCKSDB),
              ("our own incompressible figure", plain, QUARRY))
    found = {name: ratio for name, cell, variant in rivals
             if (ratio := paired_ratio(cells.values(key, COMPRESSED_VALUES, payload_rate), cells.values(cell, variant, payload_rate)))}
    text = "the heads in InnoDB and values compressed by lz4 and made durable beside them, nobody waiting: "
    text += f"Quarry reaches {ours.median / limit.median:.0%}"
    text += "".join(f"; to {name} {ratio_text(ratio)}" for name, ratio in found.items())
    figures = {"share_of_limit": ours.median / limit.median} | {name: figures_of(ratio) for name, ratio in found.items()}
    return stated(finding, ANSWERED, text, figures, cells.rounds_of([key], (COMPRESSED_VALUES, QUARRY_LZ4)), parameters)
