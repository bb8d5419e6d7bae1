"""
The table and the charts that experiments share: events per second by operation, size and threads, one column per variant, with ratios.

Everything shown is computed from the raw rounds of one run (cells.py).
"""

from __future__ import annotations

from collections.abc import Callable

from rich import box
from rich.table import Table

from ..design.cells import CellKey, Cells, bytes_written_ratio, p95_ms, payload_rate, throughput
from ..design.plan import OPERATION_LABELS
from ..design.variants import BASELINE_SUFFIX, KIB
from ..probes.noise import NOISE_CPUS_MAX
from ..report import charts, stats


def device_rate(run: dict) -> stats.Summary | None:
    """The device's raw sequential write rate over all probes of the run, bytes per second."""
    probes = [p["sequential_write_bytes_per_second"] for session in run["sessions"] for p in session.get("device_probes", [])]
    return stats.summarize(probes) if probes else None


def _range(summary: stats.Summary, form: Callable[[float], str]) -> str:
    return f"{form(summary.low)}-{form(summary.high)}" if summary.rounds > 1 else ""


def median_text(summary: stats.Summary | None, form: Callable[[float], str]) -> str:
    return "" if summary is None else form(summary.median)


def _times(value: float) -> str:
    return f"{value:.2f}"


def _ratio(summary: stats.Summary | None) -> str:
    if summary is None:
        return ""
    colour = "green" if summary.median >= 1 else "red"
    return f"[{colour}]{summary.median:.2f}x[/{colour}] [dim]{_range(summary, _times)}[/dim]"


def references(variants: list[str], reference: str) -> list[str]:
    """What ratios are taken against: the experiment's reference, and the older of two builds of the plugin."""
    baselines = [v for v in variants if v.endswith(BASELINE_SUFFIX)]
    return [r for r in dict.fromkeys((reference, *baselines)) if r in variants and len(variants) > 1]


def _is_compared(variant: str, reference: str) -> bool:
    return variant + BASELINE_SUFFIX == reference if reference.endswith(BASELINE_SUFFIX) else variant != reference


def notes_on(cells: Cells, key: CellKey, variant: str) -> str:
    """In how many rounds something was not as it should be; empty where all was."""
    rounds = len(cells.rounds(key, variant))
    notes = []
    if noisy := cells.noisy_rounds(key, variant):
        notes.append(f"noisy {noisy}/{rounds}")
    if unsettled := cells.unsettled_rounds(key, variant):
        notes.append(f"not settled {unsettled}/{rounds}")
    if cold := cells.cold_rounds(key, variant):
        notes.append(f"read from the device {cold}/{rounds}")
    return f"[yellow]{', '.join(notes)}[/yellow]" if notes else ""


def head(key: CellKey) -> str:
    return " ".join(x for x in (OPERATION_LABELS[key.operation], size_label(key.size_bytes), key.setting, f"x{key.threads}") if x)


def _row(cells: Cells, key: CellKey, variant: str, against: list[str], rate: stats.Summary | None) -> list[str]:
    rate_found = cells.summary(key, variant, throughput)
    assert rate_found  # only variants that have rounds get a row
    ratios = [_ratio(cells.ratio(key, variant, r)) if _is_compared(variant, r) else "" for r in against]
    payload = cells.summary(key, variant, payload_rate)
    share = f"{payload.median / rate.median:.0%}" if rate and payload and payload.median else ""
    return [
        cells.label(variant), f"[bold]{stats.human_count(rate_found.median)}[/bold]", f"[dim]{_range(rate_found, stats.human_count)}[/dim]",
        *ratios, median_text(cells.summary(key, variant, p95_ms), _times),
        median_text(cells.summary(key, variant, bytes_written_ratio), _times), share, notes_on(cells, key, variant)]


def comparison_table(cells: Cells, run: dict, reference: str) -> list[Table]:
    """One row per cell and variant; ratios are taken round by round (stats.paired_ratio). A list, for an experiment's tables()."""
    variants, rate = cells.variants(), device_rate(run)
    against = references(variants, reference)
    parameters = run["parameters"]
    rounds = f"{stats.counted(parameters['rounds'], 'round')} of {parameters['settings']['seconds']} s"
    table = Table(title=f"{parameters['name']}: {rounds}, profile {parameters['profile']}, payload {parameters['payload']}",
                  header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=_caption(cells, rate), caption_justify="left")
    table.add_column("", no_wrap=True)
    table.add_column("engine", no_wrap=True)
    for heading in ("events/s", "range", *(f"/ {cells.label(r)}" for r in against), "p95 ms", "B/B", "dev"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("notes")
    keys = sorted(cells.keys(), key=lambda k: (list(OPERATION_LABELS).index(k.operation), k.size_bytes, k.setting, k.threads))
    sections = [(head(key), [key]) for key in keys]
    add_sections(table, cells, sections, lambda key, variant: _row(cells, key, variant, against, rate))
    return [table]


def add_sections(table: Table, cells: Cells, sections: list[tuple[str, list[CellKey]]], row: Callable[[CellKey, str], list[str]]) -> None:
    """A section per head and its cells: one row per variant that was measured there, the first of them with the head."""
    for head, keys in sections:
        measured = [(key, variant) for key in keys for variant in cells.variants() if cells.rounds(key, variant)]
        for i, (key, variant) in enumerate(measured):
            table.add_row("" if i else head, *row(key, variant))
        table.add_section()


def _caption(cells: Cells, rate: stats.Summary | None) -> str:
    available = [p["memory_free_before"]["MemAvailable"] for p in cells.points()]
    lines = [f"B/B: bytes that the server's process wrote per payload byte, until settled; noisy: others or the hypervisor used more than "
             f"{NOISE_CPUS_MAX} processor",
             f"memory available before the points: {stats.human_bytes(min(available))} to {stats.human_bytes(max(available))}"]
    if rate:
        lines.append(f"device, raw sequential direct writes: {stats.human_bytes(rate.median)}/s (probes {stats.human_bytes(rate.low)}-"
                     f"{stats.human_bytes(rate.high)}/s); dev: payload bytes per second over that")
    return "\n".join(lines)


def size_label(size_bytes: int) -> str:
    if size_bytes >= KIB * KIB and size_bytes % (KIB * KIB) == 0:
        return f"{size_bytes // (KIB * KIB)} MB"
    return f"{size_bytes // KIB} KB" if size_bytes >= KIB else f"{size_bytes} B"


def size_panels(cells: Cells, operation: str, figure: Callable[[dict], float | None]) -> list[charts.Panel]:
    """By size: the figure against client threads. Empty when the operation was not measured. Cells with a setting of their own are left out."""
    keys = [k for k in cells.keys() if k.operation == operation and not k.setting]
    panels = []
    for size in sorted({k.size_bytes for k in keys}):
        threads = sorted({k.threads for k in keys if k.size_bytes == size})
        series = [charts.Series(v, cells.label(v), [cells.summary(CellKey(operation, size, t), v, figure) for t in threads])
                  for v in cells.variants() if any(cells.rounds(CellKey(operation, size, t), v) for t in threads)]
        panels.append(charts.Panel(size_label(size), threads, series))
    return panels


def throughput_figure(cells: Cells, operation: str):
    """None when the operation was not measured."""
    panels = size_panels(cells, operation, throughput)
    return charts.line_panels(OPERATION_LABELS[operation], "client threads", "events per second", panels) if panels else None


def bytes_written_figure(cells: Cells):
    """Bytes written per payload byte of durable inserts, by size, at the largest thread count. None when not measured."""
    keys = [k for k in cells.keys() if k.operation == "insert" and not k.setting]
    if not keys:
        return None
    threads = max(k.threads for k in keys)
    sizes = sorted({k.size_bytes for k in keys if k.threads == threads})
    series = [charts.Series(v, cells.label(v), [cells.summary(CellKey("insert", size, threads), v, bytes_written_ratio) for size in sizes])
              for v in cells.variants() if any(cells.rounds(key, v) for key in keys)]
    return charts.bars(f"bytes written per payload byte, durable insert, {threads} threads", "bytes / byte", "value size",
                       [size_label(size) for size in sizes], series)
