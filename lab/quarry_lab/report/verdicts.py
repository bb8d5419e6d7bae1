"""
Verdicts on findings: computed from the raw rounds of one run, by a rule that is written beside them.

rules.py has the rules for what was published. `judge` is for the project's own targets and for questions: a rule holds or does not. A run that is too
short, or on a machine that other work disturbed, gets its figures but no verdict.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from .stats import Summary

REPRODUCED, WEAKER, STRONGER, OPPOSITE, MIXED = "reproduced", "weaker", "stronger", "opposite", "mixed"  # of what was published: rules.py
NOT_JUDGED, NOT_MEASURED = "not judged", "not measured"
MET, NOT_MET = "met", "not met"  # of targets, which nobody published
ANSWERED = "answered"  # a question that was left open there
FAIR_SECONDS, FAIR_ROUNDS = 10, 3
_CELL = ("operation", "size_bytes", "threads", "setting", "variant")  # of a point, next to its round
NOISY_SHARE_MAX = 1 / 3  # of the points that a verdict rests on
PUBLISHED_STATES = (REPRODUCED, WEAKER, STRONGER, OPPOSITE, MIXED, NOT_JUDGED, NOT_MEASURED)
# What pages say of each, in the order in which they count them.
MEANINGS = {
    REPRODUCED: "the range of the rounds overlaps the published one, and every round points the published way",
    STRONGER: "more than that, the same way",
    WEAKER: "less than that, or nothing",
    OPPOSITE: "every round points the other way",
    MIXED: "not at all client levels, or not in every round",
    ANSWERED: "a question that the document left open, or one of ours",
    NOT_JUDGED: "too few or too short rounds, a machine that was not quiet, or rounds too far apart to tell",
    NOT_MEASURED: "the run lacked what is named",
}
_BETWEEN_PARTS = re.compile(r"; (?![^()]*\))")
COLOURS = {ANSWERED: "green", MET: "green", NOT_MET: "red", REPRODUCED: "green", OPPOSITE: "red", WEAKER: "red", STRONGER: "cyan", MIXED: "magenta"}


@dataclass(frozen=True)
class Finding:
    """What was published, under an id that stays, and the rule by which this lab judges it."""

    id: str
    statement: str
    rule: str


@dataclass(frozen=True)
class Verdict:
    """`figures`: the numbers that the rule was applied to; `reason`: them in words, and why there is no verdict when there is none."""

    id: str
    statement: str
    rule: str
    state: str
    reason: str
    figures: dict = field(default_factory=dict)


@dataclass(frozen=True)
class FindingRow:
    """A row of a table with a column for each engine. cells: of each column what it says, as (state, text); the state may be empty."""

    statement: str
    rule: str
    cells: tuple[list[tuple[str, str]], ...]


def parts_of(reason: str) -> list[str]:
    """A reason's levels and notes, one each; what stands in brackets belongs together, and so does why it is not as on NDB, which comes last."""
    levels, between, why = reason.partition("; not as on NDB")
    return _BETWEEN_PARTS.split(levels) + ([between.removeprefix("; ") + why] if between else [])


def not_measured(finding: Finding, what: str) -> Verdict:
    """what: was lacking."""
    return Verdict(finding.id, finding.statement, finding.rule, NOT_MEASURED, what)


def unfair(points: list[dict], rounds: int) -> str:
    """Why these rounds bear no verdict; empty when they do."""
    seconds = min((p["result"]["interval_seconds"] for p in points if "interval_seconds" in p["result"]), default=0)
    if rounds < FAIR_ROUNDS or round(seconds) < FAIR_SECONDS:
        return f"a verdict takes {FAIR_ROUNDS} rounds of {FAIR_SECONDS} s"
    noisy = _noisy(points)
    return f"the machine was not quiet in {noisy} of {len(points)} points" if noisy / len(points) > NOISY_SHARE_MAX else ""


def noise_note(points: list[dict]) -> str:
    """What a verdict says of points that were disturbed, or measured again because they were."""
    note = f"; {noisy} of {len(points)} points noisy" if (noisy := _noisy(points)) else ""
    if repeated := sum("repeat" in p for p in points):
        note += f"; {repeated} of {len(points)} points measured again, for they or what they are compared with were disturbed"
    return note


def _noisy(points: list[dict]) -> int:
    return sum(bool(p.get("cpu", {}).get("noisy")) for p in points)


def judge(finding: Finding, holds: bool, reason: str, figures: dict, points: list[dict], parameters: dict, words: tuple[str, str]) -> Verdict:
    """points: the raw rounds that the figures come from. words: what to say when the rule holds and when it does not."""
    return stated(finding, words[0] if holds else words[1], reason, figures, points, parameters)


def stated(finding: Finding, state: str, reason: str, figures: dict, points: list[dict], parameters: dict) -> Verdict:
    """`state`, unless the rounds bear no verdict. A run that is not finished has fewer of a cell than it was asked for."""
    why = unfair(points, min(parameters["rounds"], _fewest_rounds(points)))
    return Verdict(finding.id, finding.statement, finding.rule, NOT_JUDGED if why else state, reason + (f"; {why}" if why else noise_note(points)), figures)


def _fewest_rounds(points: list[dict]) -> int:
    """Of each cell and variant that these are of; 0 where there is none."""
    found: dict[tuple, set[int]] = {}
    for p in points:
        found.setdefault(tuple(p.get(name) for name in _CELL), set()).add(p["round"])
    return min(map(len, found.values()), default=0)


def figures_of(summary: Summary) -> dict:
    """A summary as it stands in verdicts.json."""
    return {"median": summary.median, "low": summary.low, "high": summary.high, "rounds": summary.rounds}


def write(path: Path, experiment: str, verdicts: list[Verdict]) -> None:
    path.write_text(json.dumps({"experiment": experiment, "verdicts": [asdict(v) for v in verdicts]}, indent=1) + "\n")


def print_verdicts(console: Console, title: str, found: list[Verdict]) -> None:
    table = Table(title=title, header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, ratio in (("finding", 4), ("verdict", 1), ("found", 4)):
        table.add_column(name, ratio=ratio)
    for verdict in found:
        table.add_row(verdict.statement, f"[{COLOURS.get(verdict.state, 'yellow')}]{verdict.state}[/]", verdict.reason)
    console.print(table)
