"""
The targets that `targets` measures, each a finding with its rule, and their verdicts.

Ratios are taken round by round to InnoDB in the same run; the median decides, and the range is shown. Where a target names no thread
count, every measured one must reach it.
"""

from __future__ import annotations

from dataclasses import replace

from ...design.cells import CellKey, Cells, payload_rate
from ...design.variants import KIB
from ...report.stats import Summary, paired_ratio
from ...report.verdicts import NOT_MEASURED, Finding, Verdict, figures_of, judge, not_measured
from ..target_rules import DEVICE_SHARE, WORDS, device_share, judge_bytes_written, judge_ratio, judge_ratio_or_device, ratio_text

TEXT3 = "text3"
COUNTER_VARIANTS = ("innodb-counter", "quarry-counter")
QUARRY_LZ4, PAGE_COMPRESSED, ROCKSDB = COMPRESSED_VARIANTS = ("quarry-lz4", "innodb-page-compressed", "rocksdb")
# threads -> size in KB -> ratio to InnoDB
INSERT_FLOORS = {32: {24: 1.8, 64: 2.2, 448: 2.0}, 8: {24: 1.4, 64: 1.7, 448: 1.9}, 1: {24: 1.0, 64: 1.05, 448: 1.3}}
READ_FLOORS = {24: 1.0, 64: 1.05, 448: 1.2}
MIX_FLOORS = {24: 1.1, 64: 1.4, 448: 1.6}
MIX_THREADS, LARGE_THREADS = 16, 32
AT_THE_DEVICE = (LARGE_THREADS, 448)  # threads and KB: DEVICE_SHARE of its rate will do as well
SMALL_FLOOR, COUNTER_FLOOR = 0.97, 1.0
# operation -> lowest and highest thread count -> bytes written per payload byte; one thread may spend more for its latency
WRITTEN_MOST = {"insert": {(8, 32): 1.05, (1, 1): 2.1}, "update": {(8, 32): 1.6}}
AHEAD_FLOOR, LZ4_GAIN_FLOOR = 2.0, 1.5
SIZES_KIB = tuple(READ_FLOORS)

SMALL = Finding("targets-4kb", f"4 KB whole in the row, insert, read and mix: at least {SMALL_FLOOR}x InnoDB in every cell",
                f"lowest median ratio >= {SMALL_FLOOR}")
COUNTER = Finding("targets-counter", f"update of an INT in rows with 64 KB values: at least {COUNTER_FLOOR}x InnoDB", f"lowest median ratio >= {COUNTER_FLOOR}")


def verdicts(cells: Cells, rate: Summary | None, parameters: dict) -> list[Verdict]:
    """rate: the device's raw sequential rate."""
    counter_keys = [k for k in cells.keys() if k.operation == "counter"]
    return [
        *(_insert(cells, threads, size, floor, rate, parameters)
          for threads, floors in INSERT_FLOORS.items() for size, floor in floors.items()),
        judge_ratio(cells, SMALL, [k for k in cells.keys() if k.size_bytes == 4 * KIB], SMALL_FLOOR, parameters),
        *(_read(cells, size, floor, parameters) for size, floor in READ_FLOORS.items()),
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


def _read(cells: Cells, size_kib: int, floor: float, parameters: dict) -> Verdict:
    finding = Finding(f"targets-read-{size_kib}kb", f"{size_kib} KB hot read: at least {floor}x InnoDB", f"lowest median ratio >= {floor}")
    return judge_ratio(cells, finding, _keys(cells, "read", size_kib), floor, parameters)


def _mix(cells: Cells, size_kib: int, floor: float, parameters: dict) -> Verdict:
    finding = Finding(f"targets-mix-{size_kib}kb", f"{size_kib} KB 90/10 mix, {MIX_THREADS} threads: at least {floor}x InnoDB", f"median ratio >= {floor}")
    return judge_ratio(cells, finding, [CellKey("mix", size_kib * KIB, MIX_THREADS)], floor, parameters)


def _keys(cells: Cells, operation: str, size_kib: int) -> list[CellKey]:
    return [k for k in cells.keys() if k.operation == operation and k.size_bytes == size_kib * KIB and not k.setting]


def _written(cells: Cells, operation: str, size_kib: int, threads: tuple[int, int], most: float, parameters: dict) -> Verdict:
    what = {"insert": "durable insert", "update": "steady update with GC on"}[operation]
    name, who = ("-x1", "1 thread") if threads == (1, 1) else ("", f"{threads[0]} to {threads[1]} threads")
    finding = Finding(f"targets-written-{operation}-{size_kib}kb{name}", f"{size_kib} KB {what}, {who}: at most {most} bytes written per payload byte",
                      f"highest median <= {most}")
    keys = [k for k in _keys(cells, operation, size_kib) if threads[0] <= k.threads <= threads[1]]
    return judge_bytes_written(cells, finding, keys, most, parameters)


def _ahead(cells: Cells, size_kib: int, over: str, parameters: dict) -> Verdict:
    key = CellKey("insert", size_kib * KIB, LARGE_THREADS, TEXT3)
    rival = "InnoDB with page compression" if over == PAGE_COMPRESSED else "MyRocks with lz4"
    finding = Finding(f"targets-lz4-{size_kib}kb-{over}", f"{size_kib} KB durable insert, {LARGE_THREADS} threads, values that compress 3:1, CODEC=lz4: "
                      f"at least {AHEAD_FLOOR}x {rival}", f"median ratio >= {AHEAD_FLOOR}")
    verdict = judge_ratio(cells, finding, [key], AHEAD_FLOOR, parameters, variant=QUARRY_LZ4, over=over)
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
    found = (f"{ratio_text(gain, LZ4_GAIN_FLOOR)}; incompressible at {share:.0%} of the device's rate{'' if at_limit else ': it was not the limit'}; "
             f"{per_core.median:.2f} GB/s per core of the server")
    figures = {"ratio": figures_of(gain), "share_of_device": share, "gigabytes_per_core_second": figures_of(per_core)}
    points = [*cells.rounds_of([compressed], [QUARRY_LZ4]), *cells.rounds_of([plain], ["quarry"])]
    words = WORDS if at_limit else (NOT_MEASURED, NOT_MEASURED)
    return judge(finding, gain.median >= LZ4_GAIN_FLOOR, found, figures, points, parameters, words)
