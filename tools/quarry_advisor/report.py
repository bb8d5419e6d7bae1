"""
What the advisor says: tables for people and a document for programs, both from the same findings.

Every figure of the part 'estimate' is one, and is called so.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import constants as c
from .estimate import Estimate
from .numbers import human_bytes, human_count, percentile
from .profile import Profile
from .rules import Advice, ColumnAdvice
from .shown import plain, shown_lines, strong
from .statements import alter_statement, batch_statements, runnable, varbinary_statement

BAR_WIDTH = 40
_BARS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Findings:
    profile: Profile
    advice: Advice
    estimate: Estimate
    trial: dict | None = None


def octaves(sizes: list[int]) -> list[tuple[int, int, int]]:
    """(from, to, values) for powers of two; empty values first, no octave between the least and the greatest left out."""
    counts: dict[int, int] = {}
    for size in sizes:
        counts[size.bit_length()] = counts.get(size.bit_length(), 0) + 1
    if not counts:
        return []
    return [(1 << bits >> 1, (1 << bits) - 1, counts.get(bits, 0)) for bits in range(min(counts), max(counts) + 1)]


def bar(share: float) -> str:
    eighths = round(share * BAR_WIDTH * 8)
    return _BARS[8] * (eighths // 8) + (_BARS[eighths % 8] if eighths % 8 else "")


# --- for programs ---
def document(findings: Findings) -> dict:
    profile, advice, estimate = findings.profile, findings.advice, findings.estimate
    table, sample = profile.table, profile.sample
    return {
        "table": {"schema": table.schema, "name": table.name, "engine": table.engine, "rows": profile.rows, "data_bytes": table.data_bytes,
                  "partitions": len(table.partitions), "key": [column.name for column in table.key]},
        "server": asdict(profile.server),
        "sample": {"rows": len(sample.rows), "values": len(sample.values), "complete": sample.complete, "how": sample.how,
                   "stopped_by": sample.stopped_by or None, "read_bytes": sample.read_bytes, "fetched_bytes": sample.fetched_bytes,
                   "seconds": round(sample.seconds, 3)},
        "workload": asdict(profile.workload) | {"write_share": profile.workload.write_share},
        "columns": [_column_document(findings, mine) for mine in advice.columns],
        "left_alone": {column.name: column.left_alone for column in table.columns if column.left_alone},
        "batches": asdict(advice.batches),
        "verdict": {"worth_it": advice.worth_it, "text": advice.verdict},
        "notes": advice.notes,
        "estimate": {"disk_then_bytes": estimate.disk_then_bytes, **{name: value for name, value in asdict(estimate).items() if name != "alternatives"}},
        "codec_bytes_per_second": {codec: {"in": rates[0], "out": rates[1]} for codec, rates in profile.codec_rates.items()},
        "sources": c.SOURCES,
        "statements": {"alter": alter_statement(profile, advice), "batches": batch_statements(advice.batches)},
        "trial": findings.trial,
    }


def _column_document(findings: Findings, mine: ColumnAdvice) -> dict:
    sizes = findings.profile.sizes(mine.column)
    return asdict(mine) | {
        "histogram": [{"from_bytes": low, "to_bytes": high, "values": count} for low, high, count in octaves(sizes)],
        "percentiles": {str(p): percentile(sizes, p) for p in (50, 90, 99, 100)} if sizes else {},
        "alternatives": [asdict(alternative) for alternative in findings.estimate.alternatives[mine.column]],
    }


# --- for people ---
def print_report(console: Console, findings: Findings) -> None:
    _print_head(console, findings.profile)
    for mine in findings.advice.columns:
        _print_column(console, findings, mine)
    _print_estimate(console, findings)
    _print_statements(console, findings)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(plain(text, "bold"))


def _grid(console: Console, rows: list[tuple[str, str | Text]]) -> None:
    grid = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column()
    for name, text in rows:
        grid.add_row(name, plain(text) if isinstance(text, str) else text)
    console.print(grid)


def _print_head(console: Console, profile: Profile) -> None:
    table, sample, workload = profile.table, profile.sample, profile.workload
    rows = f"{profile.rows:,}" if sample.complete else f"about {human_count(profile.rows)}"
    partitions = f", {len(table.partitions)} partitions" if table.partitions else ""
    _heading(console, f"{table.schema}.{table.name}: {table.engine}, {rows} rows, {human_bytes(table.data_bytes)} by the engine's statistics{partitions}")
    stopped = f"; ended by the limit of {sample.stopped_by}" if sample.stopped_by else ""
    if workload.source:
        use = f"{workload.source}: {workload.reads:,} rows read, {workload.inserts:,} inserted, {workload.updates:,} updated, {workload.deletes:,} deleted"
        use += f" ({workload.note})" if workload.note else ""
    else:
        use = f"unknown: {workload.note}"
    _grid(console, [
        ("sample", f"{len(sample.rows):,} rows: {sample.how}{stopped}"),
        ("its cost", f"{human_bytes(sample.read_bytes)} of values read by the server, {human_bytes(sample.fetched_bytes)} of them sent, {sample.seconds:.1f} s"),
        ("use", use)])


def _print_column(console: Console, findings: Findings, mine: ColumnAdvice) -> None:
    profile = findings.profile
    sizes = profile.sizes(mine.column)
    column = profile.table.column(mine.column)
    _heading(console, f"Column {mine.column} ({'json' if column.is_json else column.type})")
    if sizes:
        _print_histogram(console, sizes, mine.inline_size)
        console.print(plain(f"half of the values have at most {percentile(sizes, 50):,} bytes, 99% {percentile(sizes, 99):,}, the longest {max(sizes):,}", "dim"))
    varbinary = mine.varbinary
    rows: list[tuple[str, str | Text]] = [
        ("INLINE_SIZE", strong(str(mine.inline_size), mine.reasons["INLINE_SIZE"])), ("PART_SIZE", strong(str(mine.part_size), mine.reasons["PART_SIZE"])),
        ("CODEC", strong(mine.codec, mine.reasons["CODEC"])),
        ("VARBINARY", strong("would do: " + str(varbinary.definition) if varbinary.would_do else "no", varbinary.reason))]
    if "PREFIX_SIZE" in mine.reasons:
        rows.insert(1, ("PREFIX_SIZE", strong(str(mine.prefix_size), mine.reasons["PREFIX_SIZE"])))
    _grid(console, rows)
    _print_alternatives(console, findings, mine)


def _print_histogram(console: Console, sizes: list[int], inline_size: int) -> None:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    for justify in ("right", "left", "right", "left"):
        table.add_column(justify=justify, no_wrap=True)
    found = octaves(sizes)
    most = max(count for *_, count in found)
    for low, high, count in found:
        label = "empty" if high == 0 else f"{human_bytes(low)} - {human_bytes(high + 1)}"
        mark = "in the row" if high <= inline_size else "partly in the row" if low <= inline_size else ""
        table.add_row(label, plain(bar(count / most), "cyan"), f"{count / len(sizes):.1%}", plain(mark, "green"))
    console.print(table)


def _print_alternatives(console: Console, findings: Findings, mine: ColumnAdvice) -> None:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), title="other sizes (estimate)", title_justify="left", title_style="dim")
    for heading in ("INLINE_SIZE", "values in the row", "buffer pool for all rows", "segments of this column"):
        table.add_column(heading, justify="right")
    for other in findings.estimate.alternatives[mine.column]:
        style = "bold" if other.inline_size == mine.inline_size else None
        table.add_row(str(other.inline_size), f"{other.share_in_row:.1%}", human_bytes(other.pages_bytes), human_bytes(other.segments_bytes), style=style)
    console.print(table)


def _by_clients(figures: dict[int, float], form: str) -> str:
    return " / ".join(f"{figures[clients]:{form}}" for clients in c.CLIENTS)


def _print_estimate(console: Console, findings: Findings) -> None:
    found, clients = findings.estimate, " / ".join(str(count) for count in c.CLIENTS)
    _heading(console, "What it would give (estimate)")
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    for heading in ("", "InnoDB", "Quarry as advised"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("buffer pool that holds every row", human_bytes(found.pages_now_bytes), human_bytes(found.pages_then_bytes))
    table.add_row("disk", human_bytes(found.pages_now_bytes), human_bytes(found.disk_then_bytes))
    table.add_row(f"bytes written per byte inserted, {clients} clients", _by_clients(found.written_now, ".2f"), _by_clients(found.written_then, ".2f"))
    table.add_row(f"durable inserts, {clients} clients", "1", _by_clients(found.insert_ratio, ".2f"))
    table.add_row(f"hot reads, {c.READ_CLIENTS} clients", "1", f"{found.read_ratio:.2f}")
    table.add_row(f"90/10 mix, {c.MIX_CLIENTS} clients", "1", f"{found.mix_ratio:.2f}")
    console.print(table)
    rates = "; ".join(f"{codec} {human_bytes(into)}/s in, {human_bytes(out)}/s out" for codec, (into, out) in findings.profile.codec_rates.items())
    console.print(plain(f"From: {c.SOURCES['speeds and bytes written']}. Without --trial nothing was measured on Quarry. Dead values take up to "
                        f"{c.SPACE_AMPLIFICATION_MAX - 1:.0%} more disk until GC comes. Codecs on one processor here: {rates or 'no value to try them on'}.", "dim"))
    _grid(console, [("batches", f"read {human_bytes(findings.advice.batches.read_bytes)}, write {human_bytes(findings.advice.batches.write_bytes)}: "
                                f"{findings.advice.batches.reason}"),
                    ("cache", "hot reads as above want a value cache that holds what is read again and again: quarry_cache_size, a tenth of the memory unless it is set; "
                              f"{human_bytes(max(0, found.pages_now_bytes - found.pages_then_bytes))} fewer are needed in InnoDB's buffer pool"),
                    ("verdict", strong(findings.advice.verdict)),
                    *(("note", note) for note in findings.advice.notes)])


def _print_statements(console: Console, findings: Findings) -> None:
    profile, advice = findings.profile, findings.advice
    _heading(console, "To do it (copies the table; writers wait meanwhile, and both copies need disk)")
    for statement in (alter_statement(profile, advice), *batch_statements(advice.batches)):
        console.print(shown_lines(runnable(statement)), soft_wrap=True)
    for mine in advice.columns:
        if mine.varbinary.would_do and mine.varbinary.definition:
            console.print(plain("or, without a BLOB:", "dim"))
            console.print(shown_lines(runnable(varbinary_statement(profile.table, profile.table.column(mine.column), mine.varbinary.definition))), soft_wrap=True)
