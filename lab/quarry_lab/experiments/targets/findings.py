"""
The targets that `targets` measures, each a finding with its rule, and their verdicts.

Ratios are taken round by round to InnoDB in the same run; the median decides, and the range is shown. Where a target names no thread
count, every measured one must reach it.
"""

from __future__ import annotations

from dataclasses import replace

from ...design.cells import CellKey, Cells, bytes_written_ratio, payload_rate, throughput
from ...design.variants import KIB
from ...load.ordered_commits import GROWING, WRITTEN
from ...report.stats import Summary, paired_ratio
from ...report.verdicts import NOT_MEASURED, Finding, Verdict, figures_of, judge, not_measured
from ..target_rules import DEVICE_SHARE, INNODB, WORDS, device_share, judge_bytes_written, judge_ratio, judge_ratio_or_device, ratio_text, share_text

TEXT3 = "text3"
NO_TABLE, NO_ENGINE, HEADS_ALONE, FREE_VALUES, MEMORY_VALUES = "no-table", "blackhole", "heads-alone", "heads-and-constant", "heads-and-memory"
HEADED_VALUES = "heads-and-headed"
DURABLE_VALUES = {"heads-and-growing": ("where their file grows", "grown"), HEADED_VALUES: ("behind headers where their file grows", "headed"),
                  "heads-and-written": ("in space written before", "overwritten")}
_FREE_TEXT = "the heads in InnoDB and a constant for each value"
_MEMORY_TEXT = "the heads in InnoDB and values from memory"
_COMPRESSED_TEXT = "the heads in InnoDB and values compressed by lz4 and made durable beside them, nobody waiting,"
COUNTER_VARIANTS = ("innodb-counter", "quarry-counter")
QUARRY_LZ4, PAGE_COMPRESSED, ROCKSDB, COMPRESSED_VALUES = COMPRESSED_VARIANTS = ("quarry-lz4", "innodb-page-compressed", "rocksdb", "heads-and-compressed")
# threads -> size in KB -> ratio to InnoDB
INSERT_FLOORS = {32: {24: 1.8, 64: 2.2, 448: 2.0}, 8: {24: 1.4, 64: 1.7, 448: 1.9}, 1: {24: 1.0, 64: 1.05, 448: 1.3}}
READ_FLOORS = {24: 1.0, 64: 1.05, 448: 1.2}
MIX_FLOORS = {24: 1.1, 64: 1.4, 448: 1.6}
READ_THREADS, MIX_THREADS, LARGE_THREADS = 8, 16, 32
AT_THE_DEVICE = (LARGE_THREADS, 448)  # threads and KB: DEVICE_SHARE of its rate will do as well
SMALL_FLOOR, COUNTER_FLOOR, CONSTANT_FLOOR = 0.97, 1.0, 0.9
# operation -> lowest and highest thread count -> bytes written per payload byte; one thread may spend more for its latency
WRITTEN_MOST = {"insert": {(8, 32): 1.05, (1, 1): 2.1}, "update": {(8, 32): 1.6}}
AHEAD_FLOOR, LZ4_GAIN_FLOOR = 2.0, 1.5
SIZES_KIB = tuple(READ_FLOORS)

SMALL = Finding("targets-4kb", f"4 KB whole in the row, insert, read and mix: at least {SMALL_FLOOR}x InnoDB in every cell",
                f"lowest median ratio >= {SMALL_FLOOR}")
COUNTER = Finding("targets-counter", f"update of an INT in rows with 64 KB values: at least {COUNTER_FLOOR}x InnoDB", f"lowest median ratio >= {COUNTER_FLOOR}")

Ordered = dict[tuple[int, int, str], Summary]  # ordered_commits.rates


def verdicts(cells: Cells, rate: Summary | None, parameters: dict, ordered: Ordered | None = None, values: Ordered | None = None) -> list[Verdict]:
    """rate: the device's raw sequential rate. ordered: what the device alone gives to commits behind their values. values: and to values without a log."""
    counter_keys = [k for k in cells.keys() if k.operation == "counter"]
    return [
        *(_with_limit(_insert(cells, threads, size, floor, rate, parameters), cells, threads, size, ordered or {}, values or {})
          for threads, floors in INSERT_FLOORS.items() for size, floor in floors.items()),
        judge_ratio(cells, SMALL, [k for k in cells.keys() if k.size_bytes == 4 * KIB], SMALL_FLOOR, parameters),
        *(_read(cells, size, floor, parameters) for size, floor in READ_FLOORS.items()),
        *(_constant(cells, size, parameters) for size in SIZES_KIB),
        *(_mix(cells, size, floor, parameters) for size, floor in MIX_FLOORS.items()),
        judge_ratio(cells, COUNTER, counter_keys, COUNTER_FLOOR, parameters, variant="quarry-counter", over="innodb-counter"),
        *(_written(cells, operation, size, threads, most, parameters)
          for operation, limits in WRITTEN_MOST.items() for threads, most in limits.items() for size in SIZES_KIB),
        *(_ahead(cells, size, over, parameters) for over in (PAGE_COMPRESSED, ROCKSDB) for size in SIZES_KIB),
        *(_gain_of_lz4(cells, size, rate, parameters) for size in SIZES_KIB),
    ]


def gigabytes_per_core_second(point: dict) -> float | None:
    """Payload bytes written per second of processor time of the server's process, warm-up included on both sides; 10^9 bytes."""
    cpu_seconds = point["cpu"]["server_cpus"] * point["cpu"]["seconds"]
    return point["payload_bytes_written"] / cpu_seconds / 1e9 if cpu_seconds else None


def _insert(cells: Cells, threads: int, size_kib: int, floor: float, rate: Summary | None, parameters: dict) -> Verdict:
    key = CellKey("insert", size_kib * KIB, threads)
    name, what = f"targets-insert-{size_kib}kb-x{threads}", f"{size_kib} KB durable insert, {threads} thread{'s' if threads > 1 else ''}: at least"
    if (threads, size_kib) != AT_THE_DEVICE:
        return judge_ratio(cells, Finding(name, f"{what} {floor}x InnoDB", f"median ratio >= {floor}"), [key], floor, parameters)
    finding = Finding(name, f"{what} the smaller of {floor}x InnoDB and {DEVICE_SHARE} of the device's raw sequential rate",
                      f"median ratio >= {floor}, or median payload rate >= {DEVICE_SHARE} of the median probe")
    return judge_ratio_or_device(cells, finding, key, floor, rate, parameters)


def _with_limit(verdict: Verdict, cells: Cells, threads: int, size_kib: int, ordered: Ordered, values: Ordered) -> Verdict:
    """
    What no engine can beat on this machine that keeps rows in InnoDB and values outside of its log: the SQL layer alone (the engine does nothing: BLACKHOLE),
    the rows without their values, as InnoDB commits them while the values are sent and dropped, and the device alone, which makes the value and the log durable,
    both at once (groups formed the better way). The scarcest decides. A lone client is not at the device while it is in the SQL layer, so there one comes after
    the other. Also said: what the device gives where the values' file grows, as ours does, and, as a yardstick, what comes of rows and values one after the
    other, as long as neither disturbs the other: an engine that overlaps them can be beyond that. And what the same server gives, on the same processors, to rows
    whose values are made durable beside them while nobody waits for it but the client's next insert: who keeps values in a file of their own, and flushes it, has
    to do that much and to wait for it, too.
    """
    key = CellKey("insert", size_kib * KIB, threads)
    probed = (threads, key.size_bytes)
    rows = cells.summary(key, HEADS_ALONE, throughput)
    layer, both = cells.summary(key, NO_ENGINE, throughput), ordered.get((*probed, WRITTEN))
    one_by_one = threads == 1
    parts = {"the SQL layer alone": layer, **({} if one_by_one else {"the rows without their values": rows}), "two durable writes at once of the device alone": both}
    found = _beside_limit(verdict, cells, key, parts, one_by_one)
    ours, innodb = (cells.summary(key, variant, throughput) for variant in ("quarry", INNODB))
    if not ours or not innodb:
        return found
    beside = [("the two writes where the values' file grows", "growing", growing.median)] if (growing := ordered.get((*probed, GROWING))) else []
    if (grown := values.get((*probed, GROWING))) and rows:
        beside.append(("a row without its value and then a value where the file grows, each as fast as alone", "one_by_one",
                       _one_after_the_other([rows.median, grown.median])))
    beside += [(f"rows whose values are made durable beside them {where}, nobody waiting,", name, durable.median)
               for variant, (where, name) in DURABLE_VALUES.items() if (durable := cells.summary(key, variant, throughput))]
    for text, name, rate in beside:
        found = _beside_figure(found, text, name, rate, ours, innodb)
    return found


def _one_after_the_other(rates: list[float]) -> float:
    """How often a second all of them are done, when each takes its turn."""
    return 1 / sum(1 / rate for rate in rates)


def _beside_figure(verdict: Verdict, text: str, name: str, rate: float, ours: Summary, innodb: Summary) -> Verdict:
    """The verdict with one more rate to compare ours with."""
    return replace(verdict, reason=f"{verdict.reason}; {text} {rate:,.0f}/s, {share_text(rate, ours, innodb)}",
                   figures={**verdict.figures, f"{name}_per_second": rate, f"share_of_{name}": ours.median / rate})


def _beside_limit(verdict: Verdict, cells: Cells, key: CellKey, parts: dict[str, Summary | None], one_by_one: bool = False) -> Verdict:
    """
    The verdict with the most that is possible: of `parts` that were measured the scarcest, or, one_by_one, all of them after each other in every operation.
    As it is when none was, or an engine was not.
    """
    ours, innodb = (cells.summary(key, variant, throughput) for variant in ("quarry", INNODB))
    measured = {text: part for text, part in parts.items() if part}
    if not (measured and ours and innodb):
        return verdict
    rates = [part.median for part in measured.values()]
    limit = _one_after_the_other(rates) if one_by_one else min(rates)
    text = ", ".join(f"{text} {part.median:,.0f}/s" for text, part in measured.items())
    how = f": {'together' if one_by_one else 'at most'} {limit:,.0f}/s" if len(measured) > 1 else ""
    text = f"; {text}{how}, {share_text(limit, ours, innodb)}"
    figures = {**verdict.figures, **{text.replace(" ", "_") + "_per_second": figures_of(part) for text, part in measured.items()},
               "limit_per_second": limit, "share_of_limit": ours.median / limit}
    return replace(verdict, reason=verdict.reason + text, figures=figures)


def _read(cells: Cells, size_kib: int, floor: float, parameters: dict) -> Verdict:
    finding = Finding(f"targets-read-{size_kib}kb", f"{size_kib} KB hot read: at least {floor}x InnoDB", f"lowest median ratio >= {floor}")
    verdict = judge_ratio(cells, finding, _keys(cells, "read", size_kib), floor, parameters)
    key = CellKey("read", size_kib * KIB, READ_THREADS)
    return _beside_limit(verdict, cells, key, {"a constant of that size and no engine": cells.summary(replace(key, operation="constant"), NO_TABLE, throughput),
                                               _FREE_TEXT: cells.summary(key, FREE_VALUES, throughput),
                                               _MEMORY_TEXT: cells.summary(key, MEMORY_VALUES, throughput)})


def _mix(cells: Cells, size_kib: int, floor: float, parameters: dict) -> Verdict:
    finding = Finding(f"targets-mix-{size_kib}kb", f"{size_kib} KB 90/10 mix, {MIX_THREADS} threads: at least {floor}x InnoDB", f"median ratio >= {floor}")
    key = CellKey("mix", size_kib * KIB, MIX_THREADS)
    return _beside_limit(judge_ratio(cells, finding, [key], floor, parameters), cells, key,
                         {_FREE_TEXT: cells.summary(key, FREE_VALUES, throughput),
                          f"{_MEMORY_TEXT}, made durable beside them, nobody waiting,": cells.summary(key, MEMORY_VALUES, throughput)})


def _keys(cells: Cells, operation: str, size_kib: int) -> list[CellKey]:
    return [k for k in cells.keys() if k.operation == operation and k.size_bytes == size_kib * KIB and not k.setting]


def _constant(cells: Cells, size_kib: int, parameters: dict) -> Verdict:
    finding = Finding(f"targets-constant-{size_kib}kb", f"{size_kib} KB hot read: at least {CONSTANT_FLOOR} of what the SQL layer gives for a constant of that size",
                      f"lowest median ratio of reads to selects of a literal in a prepared statement >= {CONSTANT_FLOOR}")
    found = []
    for key in _keys(cells, "read", size_kib):
        constant = replace(key, operation="constant")
        if ratio := paired_ratio(cells.values(key, "quarry", throughput), cells.values(constant, NO_TABLE, throughput)):
            beside = {name: paired_ratio(cells.values(key, variant, throughput), cells.values(constant, NO_TABLE, throughput))
                      for name, variant in (("innodb", INNODB), ("free_values", FREE_VALUES))}
            found.append((ratio, beside, [*cells.rounds_of([key], ["quarry"]), *cells.rounds_of([constant], [NO_TABLE])]))
    if not found:
        return not_measured(finding, "no reads beside selects of a constant in this run")
    worst, beside, points = min(found, key=lambda item: item[0].median)
    beside = {name: ratio for name, ratio in beside.items() if ratio}
    words = {"innodb": "InnoDB's read", "free_values": f"{_FREE_TEXT}, which no engine with its rows there can beat,"}
    text = "".join(f"; {words[name]} {ratio_text(ratio)} of it" for name, ratio in beside.items())
    figures = {"ratio": figures_of(worst)} | {name: figures_of(ratio) for name, ratio in beside.items()}
    return judge(finding, worst.median >= CONSTANT_FLOOR, f"{ratio_text(worst)} of the constant{text}", figures, points, parameters, WORDS)


def _written(cells: Cells, operation: str, size_kib: int, threads: tuple[int, int], most: float, parameters: dict) -> Verdict:
    what = {"insert": "durable insert", "update": "steady update with GC on"}[operation]
    name, who = ("-x1", "1 thread") if threads == (1, 1) else ("", f"{threads[0]} to {threads[1]} threads")
    finding = Finding(f"targets-written-{operation}-{size_kib}kb{name}", f"{size_kib} KB {what}, {who}: at most {most} bytes written per payload byte",
                      f"highest median <= {most}")
    keys = [k for k in _keys(cells, operation, size_kib) if threads[0] <= k.threads <= threads[1]]
    verdict = judge_bytes_written(cells, finding, keys, most, parameters)
    # What InnoDB writes of rows without their values, once for each byte of payload, comes on top of the value itself.
    rows = [s.median for k in keys if k.operation == "insert" and (s := cells.summary(k, HEADS_ALONE, bytes_written_ratio))]
    if not rows or "bytes_per_byte" not in verdict.figures:
        return verdict
    text = f"; InnoDB writes {max(rows):.3f} of the rows without their values, so {1 + max(rows):.3f} is the least"
    figures = {**verdict.figures, "least_bytes_per_byte": 1 + max(rows)}
    # A header for each value is what a file needs that says by itself what is in it, and whole blocks for each flush.
    if headed := [s.median for k in keys if (s := cells.summary(k, HEADED_VALUES, bytes_written_ratio))]:
        text += f"; values behind headers beside those rows, nobody waiting for their groups, come to {max(headed):.3f}"
        figures["headed_bytes_per_byte"] = max(headed)
    return replace(verdict, reason=verdict.reason + text, figures=figures)


def _ahead(cells: Cells, size_kib: int, over: str, parameters: dict) -> Verdict:
    key = CellKey("insert", size_kib * KIB, LARGE_THREADS, TEXT3)
    rival = "InnoDB with page compression" if over == PAGE_COMPRESSED else "MyRocks with lz4"
    finding = Finding(f"targets-lz4-{size_kib}kb-{over}", f"{size_kib} KB durable insert, {LARGE_THREADS} threads, values that compress 3:1, CODEC=lz4: "
                      f"at least {AHEAD_FLOOR}x {rival}", f"median ratio >= {AHEAD_FLOOR}")
    verdict = judge_ratio(cells, finding, [key], AHEAD_FLOOR, parameters, variant=QUARRY_LZ4, over=over)
    verdict = _beside_compressed(verdict, cells, key, key, over)
    algorithms = {point["configuration"]["innodb_compression_algorithm"] for point in cells.rounds_of([key], [PAGE_COMPRESSED])}
    return replace(verdict, reason=f"{verdict.reason}; pages compressed with {', '.join(algorithms)}") if over == PAGE_COMPRESSED and algorithms else verdict


def _gain_of_lz4(cells: Cells, size_kib: int, rate: Summary | None, parameters: dict) -> Verdict:
    plain = CellKey("insert", size_kib * KIB, LARGE_THREADS)
    compressed = replace(plain, setting=TEXT3)
    finding = Finding(f"targets-lz4-{size_kib}kb-gain", f"{size_kib} KB durable insert, {LARGE_THREADS} threads, values that compress 3:1, CODEC=lz4: at least "
                      f"{LZ4_GAIN_FLOOR} times our own incompressible figure where the device was the limit",
                      f"median ratio >= {LZ4_GAIN_FLOOR} where the incompressible insert took at least {DEVICE_SHARE} of the device's raw sequential rate")
    gain = paired_ratio(cells.values(compressed, QUARRY_LZ4, payload_rate), cells.values(plain, "quarry", payload_rate))
    share, per_core = device_share(cells, plain, "quarry", rate), cells.summary(compressed, QUARRY_LZ4, gigabytes_per_core_second)
    if not gain or share is None or not per_core:
        return not_measured(finding, "no such cells of both payloads in this run")
    at_limit = share >= DEVICE_SHARE
    found = (f"{ratio_text(gain)}; incompressible at {share:.0%} of the device's rate{'' if at_limit else ': it was not the limit'}; "
             f"{per_core.median:.2f} GB/s per core of the server")
    figures = {"ratio": figures_of(gain), "share_of_device": share, "gigabytes_per_core_second": figures_of(per_core)}
    points = [*cells.rounds_of([compressed], [QUARRY_LZ4]), *cells.rounds_of([plain], ["quarry"])]
    words = WORDS if at_limit else (NOT_MEASURED, NOT_MEASURED)
    return _beside_compressed(judge(finding, gain.median >= LZ4_GAIN_FLOOR, found, figures, points, parameters, words), cells, compressed, plain, "quarry")


def _beside_compressed(verdict: Verdict, cells: Cells, key: CellKey, over_key: CellKey, over: str) -> Verdict:
    """
    The verdict with what rows give whose values cost no more than lz4 and a durable write that nobody waits for, to what ours is compared with, median of the
    rounds' ratios, and how much of that rate is ours. As it is when that was not measured.
    """
    limit, ours = (cells.summary(key, variant, payload_rate) for variant in (COMPRESSED_VALUES, QUARRY_LZ4))
    ratio = paired_ratio(cells.values(key, COMPRESSED_VALUES, payload_rate), cells.values(over_key, over, payload_rate))
    if not (limit and ours and ratio):
        return verdict
    share = ours.median / limit.median
    return replace(verdict, reason=f"{verdict.reason}; {_COMPRESSED_TEXT} {ratio_text(ratio)}, of which this is {share:.0%}",
                   figures={**verdict.figures, "compressed_ratio": figures_of(ratio), "share_of_compressed": share})
