"""
The findings of an experiment as tables of Markdown: a verdict in a word for each engine, the rule and the figures behind it, and how many there are
of each.

Engines are the columns of Experiment.finding_columns without what was published. Pure functions from rows of findings to lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from .report.verdicts import MEANINGS, FindingRow, parts_of

NO_VERDICT = "-"
_OWN_DEFAULTS = " (own defaults)"  # the second verdict of Quarry's cell; its text says the same


def table_row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table_head(*headings: str) -> list[str]:
    return [table_row(*headings), "|---" * len(headings) + "|"]


def in_lines(text: str) -> str:
    """A level a line, within a cell."""
    return "<br>".join(parts_of(text))


def engines(columns: Sequence[str]) -> list[str]:
    _published, *headings = columns
    return [heading.removesuffix(" here") for heading in headings]


def meanings() -> list[str]:
    return [*table_head("verdict", "means"), *(table_row(state, text) for state, text in MEANINGS.items())]


def counts(title: str, columns: Sequence[str], rows: Iterable[FindingRow]) -> Iterator[str]:
    """A line for each engine that has a verdict: of Quarry's two the first, which has NDB's defaults."""
    rows = list(rows)
    for number, engine in enumerate(engines(columns), 1):
        states = Counter(row.cells[number][0][0] for row in rows)
        if any(states[state] for state in MEANINGS):
            yield table_row(title, engine, *(str(states[state] or "") for state in MEANINGS))


def verdict_table(columns: Sequence[str], rows: Iterable[FindingRow]) -> list[str]:
    lines = table_head("no.", "finding", "published", *engines(columns))
    for number, row in enumerate(rows, 1):
        (published,), *cells = row.cells
        lines.append(table_row(str(number), row.statement, published[1], *map(_states, cells)))
    return lines


def _states(cell: list[tuple[str, str]]) -> str:
    found = [state + _OWN_DEFAULTS * (n > 0) for n, (state, _text) in enumerate(cell) if state]
    return "<br>".join(found) or NO_VERDICT


def rule_table(rows: Iterable[FindingRow]) -> list[str]:
    """Findings that are judged by the same rule share a line."""
    numbers: dict[str, list[str]] = {}
    for number, row in enumerate(rows, 1):
        numbers.setdefault(row.rule, []).append(str(number))
    return [*table_head("no.", "rule"), *(table_row(", ".join(of), rule) for rule, of in numbers.items())]


def figure_table(columns: Sequence[str], rows: Iterable[FindingRow]) -> list[str]:
    """Engines of which the same is said share a line; so do findings on which an engine has no verdict, at the end."""
    lines = table_head("no.", "engine", "here: median (lowest to highest round)")
    unasked: dict[tuple[str, str], list[str]] = {}
    for number, row in enumerate(rows, 1):
        said: dict[tuple[str, str], list[str]] = {}
        for engine, cell in zip(engines(columns), row.cells[1:], strict=True):
            for verdict in cell:
                said.setdefault(verdict, []).append(engine)
        for (state, text), of in said.items():
            if state:
                lines.append(table_row(str(number), ", ".join(of), f"**{state}**<br>{in_lines(text)}"))
            else:
                unasked.setdefault((", ".join(of), text), []).append(str(number))
    return lines + [table_row(", ".join(numbers), of, text) for (of, text), numbers in unasked.items()]
