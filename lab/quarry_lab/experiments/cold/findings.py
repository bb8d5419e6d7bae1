"""The targets of `cold`, and the rule by which each is judged from the raw rounds; the memory that points recorded, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.table import Table

from ...design.cells import CellKey, Cells, throughput
from ...design.plan import OPERATION_LABELS
from ...design.variants import KIB
from ...report import stats
from ...report.stats import Summary
from ...report.verdicts import Finding, Verdict, figures_of, judge, not_measured
from ...run.tables import add_sections, median_text, size_label
from ..target_rules import INNODB, WORDS

QUARRY, ONE_BY_ONE = "quarry-default", "quarry-one-by-one"
OPERATION_OF = {ONE_BY_ONE: "scan"}  # what is measured of a variant; of all others everything
DATASET_FACTOR = 4  # how many times the memory a cold dataset has at least
# Of the payload that a cold point read reads, the least that must have come from the device in every round; less was not cold.
DEVICE_SHARE_MIN = 0.5
VALUES_KIB = (64, 448)
MEMORY_MIB_MAX = 64
POOL_RATIO_MAX = 0.1
_COLD = f"dataset at least {DATASET_FACTOR} times the memory of the cgroup"


@dataclass(frozen=True)
class Faster:
    """A target of so many times the operations per second of `reference`. size_bytes: of the values; None: whatever was measured."""

    finding: Finding
    operation: str
    ratio_min: float
    size_bytes: int | None = None
    reference: str = INNODB


def _faster(number: str, what: str, operation: str, ratio_min: float, size_bytes: int | None = None) -> Faster:
    rule = f"median of the rounds' ratios >= {ratio_min:g} at every thread count measured; {_COLD}"
    return Faster(Finding(f"cold-{number}", f"{what}: at least {ratio_min:g}x InnoDB", rule), operation, ratio_min, size_bytes)


FASTER = (
    _faster("read-64kb", "cold point read of whole 64 KB values", "cold-read", 3, 64 * KIB),
    _faster("read-448kb", "cold point read of whole 448 KB values", "cold-read", 5, 448 * KIB),
    _faster("columns", "cold SELECT of the columns beside 64 KB values", "columns", 5),
    Faster(Finding("cold-scan", "cold scan of 64 KB values that lie in a random order: reading ahead at least 2x one by one",
                   f"median of the rounds' ratios of quarry_batch_size's default to 0 >= 2; {_COLD}"), "scan", 2, 64 * KIB, ONE_BY_ONE),
    _faster("range", "read of 64 KB at a random place of a 64 MB value, SUBSTRING()", "range", 50, 64 << 20),
)
MEMORY = Finding("cold-memory", f"server memory beyond the buffer pool, 32 threads of 448 KB, inserts and reads: at most {MEMORY_MIB_MAX} MiB over InnoDB's",
                 "peak anonymous memory of the server less innodb_buffer_pool_size, the pool filled before; the rounds' differences to InnoDB: "
                 f"the higher median of the two loads <= {MEMORY_MIB_MAX} MiB")
POOL = Finding("cold-pool", "buffer pool for the same rows with 64 KB values, all rows' other columns hot: at most a tenth of InnoDB's",
               "bytes of the table's pages in the buffer pool after a scan of the other columns on a fresh server: "
               f"median of the rounds' ratios <= {POOL_RATIO_MAX}")


# --- figures of a point ---
def device_share(point: dict) -> float | None:
    """Bytes that the server had to read from the device per byte of the values that it gave, warm-up included."""
    if "total_reads" not in point["result"]:
        return None
    payload = point["result"]["total_reads"] * point["size_bytes"]
    return point["written"]["server_read_bytes_during_run"] / payload if payload else None


def beyond_pool(point: dict) -> float | None:
    memory = point.get("server_memory")
    return memory["peak_bytes"] - memory["buffer_pool_bytes"] if memory else None


def beyond_pool_and_cache(point: dict) -> float | None:
    memory = point.get("server_memory")
    return memory["peak_bytes"] - memory["buffer_pool_bytes"] - memory["value_cache_bytes"] if memory else None


def pool_bytes(point: dict) -> float | None:
    memory = point.get("memory")
    return memory["cached_bytes"].get("buffer_pool") if memory else None


def rate_share(point: dict, run: dict) -> float | None:
    """Bytes per second that a point read took from the device, over the device's raw rate of random reads of this size in the same round."""
    share = device_share(point) if point["operation"] == "cold-read" else None
    rates = [p["bytes_per_second"] for session in run["sessions"] for p in session.get("read_probes", [])
             if (p["round"], p["size_bytes"]) == (point["round"], point["size_bytes"])]
    return throughput(point) * point["size_bytes"] * share / rates[-1] if share and rates else None


# --- judging ---
def verdicts(cells: Cells, run: dict) -> list[Verdict]:
    """run: run.json's content."""
    parameters = run["parameters"]
    return [*(_faster_verdict(cells, target, run) for target in FASTER), _memory_verdict(cells, parameters), _pool_verdict(cells, parameters)]


def not_cold(points: list[dict]) -> str | None:
    """Why these rounds say nothing about cold reads; None where they do."""
    for point in points:
        limit, dataset = point["memory_limit_bytes"], point["dataset_bytes"]
        if limit is None:
            return "there was no memory cgroup, so the page cache had no limit"
        if dataset < DATASET_FACTOR * limit:
            return f"the dataset was {dataset / limit:.2f} times the memory"
        share = device_share(point) if point["operation"] == "cold-read" else None
        if share is not None and share < DEVICE_SHARE_MIN:
            return f"only {share:.0%} of what {point['variant']} read came from the device in round {point['round']}"
    return None


def _faster_verdict(cells: Cells, target: Faster, run: dict) -> Verdict:
    keys = [k for k in cells.keys() if k.operation == target.operation and target.size_bytes in (None, k.size_bytes)]
    found = cells.ratios(keys, QUARRY, target.reference)
    if not found:
        return not_measured(target.finding, "no such cell with both engines in this run")
    points = cells.rounds_of(found, (QUARRY, target.reference))
    if reason := not_cold(points):
        return not_measured(target.finding, reason)
    text = "; ".join(f"x{key.threads}: {times(ratio)}{_of_device(cells, key, run)}" for key, ratio in found.items())
    figures = {f"ratio_x{key.threads}": figures_of(ratio) for key, ratio in found.items()}
    return judge(target.finding, all(r.median >= target.ratio_min for r in found.values()), text, figures, points, run["parameters"], WORDS)


def _of_device(cells: Cells, key: CellKey, run: dict) -> str:
    """What the device leaves room for: empty where no probe of its rate is there to compare with."""
    ours, theirs = (cells.summary(key, variant, lambda p: rate_share(p, run)) for variant in (QUARRY, INNODB))
    return f", reads at {ours.median:.0%} of the device's raw rate (InnoDB {theirs.median:.0%})" if ours and theirs else ""


def times(ratio: Summary) -> str:
    return f"{ratio.median:.2f}x{ratio.range_text('{:.2f}'.format)}"


def _mib(summary: Summary) -> str:
    return f"{summary.median / 2**20:+.0f} MiB{summary.range_text(lambda x: f'{x / 2**20:+.0f}')}"


def _differences(cells: Cells, key: CellKey, figure) -> Summary | None:
    """QUARRY's less InnoDB's, round by round."""
    ours, theirs = cells.values(key, QUARRY, figure), cells.values(key, INNODB, figure)
    both = sorted(set(ours) & set(theirs))
    return stats.summarize([ours[r] - theirs[r] for r in both]) if both else None


def _memory_verdict(cells: Cells, parameters: dict) -> Verdict:
    keys = [k for k in cells.keys() if k.operation.startswith("memory-")]
    over = {key: found for key in keys if (found := _differences(cells, key, beyond_pool))}
    if len(over) < 2:
        return not_measured(MEMORY, "inserts and reads of both engines are needed")
    points = cells.rounds_of(over, (QUARRY, INNODB))
    if any(p["server_memory"]["idle_bytes"] < p["server_memory"]["buffer_pool_bytes"] for p in points):
        return not_measured(MEMORY, "the buffer pool was not filled, so its size cannot be taken off")
    without = {key: _differences(cells, key, beyond_pool_and_cache) for key in over}
    text = "; ".join(f"{OPERATION_LABELS[key.operation]}: {_mib(found)}, {_mib(without[key])} without the value cache" for key, found in over.items())
    figures = {key.operation: {"over_innodb_bytes": figures_of(found), "without_value_cache_bytes": figures_of(without[key])} for key, found in over.items()}
    worst = max(found.median for found in over.values())
    return judge(MEMORY, worst <= MEMORY_MIB_MAX << 20, text, figures, points, parameters, WORDS)


def _pool_verdict(cells: Cells, parameters: dict) -> Verdict:
    keys = [k for k in cells.keys() if k.operation == "columns"]
    found = cells.ratios(keys, QUARRY, INNODB, pool_bytes)
    if not found:
        return not_measured(POOL, "no scan with both engines in this run")
    ((key, ratio),) = found.items()
    points = cells.rounds_of([key], (QUARRY, INNODB))
    each = {v: cells.summary(key, v, lambda p: pool_bytes(p) / p["scanned_rows"]) for v in (QUARRY, INNODB)}
    text = f"{times(ratio)}: {each[QUARRY].median:.0f} bytes a row, InnoDB {each[INNODB].median:.0f}"
    figures = {"ratio": figures_of(ratio), "bytes_a_row": {v: s.median for v, s in each.items()}}
    return judge(POOL, ratio.median <= POOL_RATIO_MAX, text, figures, points, parameters, WORDS)


# --- showing ---
def memory_tables(cells: Cells) -> list[Table]:
    """What comparison_table leaves out; empty when no point tells of it."""
    keys = [k for k in cells.keys() if any(_memory_row(cells, k, v)[1:] != ["", "", "", ""] for v in cells.variants() if cells.rounds(k, v))]
    if not keys:
        return []
    table = Table(title="cold: memory and what came from the device", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
                  caption="read/B: bytes read from the device per byte of the values (whole ones, for ranges too); beyond pool: peak anonymous memory less the buffer pool's size;\n"
                          "no cache: less what Quarry's value cache held, too; pool: the table's pages in the buffer pool after the scan", caption_justify="left")
    for heading in ("", "engine", "read/B", "beyond pool", "no cache", "pool"):
        table.add_column(heading, justify="left" if heading in ("", "engine") else "right", no_wrap=True)
    sections = [(f"{OPERATION_LABELS[key.operation]} {size_label(key.size_bytes)} x{key.threads}", [key]) for key in keys]
    add_sections(table, cells, sections, lambda key, variant: _memory_row(cells, key, variant))
    return [table]


def _memory_row(cells: Cells, key: CellKey, variant: str) -> list[str]:
    figures = ((device_share, "{:.2f}".format), (beyond_pool, stats.human_bytes), (beyond_pool_and_cache, stats.human_bytes), (pool_bytes, stats.human_bytes))
    return [cells.label(variant), *(median_text(cells.summary(key, variant, figure), form) for figure, form in figures)]
