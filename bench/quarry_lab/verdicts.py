"""
Verdicts on findings: computed from the raw rounds of one run, by a rule that is written beside them.

A run that is too short, or on a machine that other work disturbed, gets its figures but no verdict; what one machine cannot show is
'not applicable', never 'reproduced'.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from .stats import Summary

REPRODUCED, NOT_REPRODUCED, NOT_APPLICABLE, NOT_JUDGED = "reproduced", "not reproduced", "not applicable", "not judged"
MET, NOT_MET = "met", "not met"  # of targets, which nobody published
ANSWERED = "answered"  # a question that was left open there
FAIR_SECONDS, FAIR_ROUNDS = 10, 3
NOISY_SHARE_MAX = 1 / 3  # of the points that a verdict rests on
COLOURS = {ANSWERED: "green", MET: "green", NOT_MET: "red", REPRODUCED: "green", NOT_REPRODUCED: "red"}


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


def not_applicable(finding: Finding, reason: str) -> Verdict:
    return Verdict(finding.id, finding.statement, finding.rule, NOT_APPLICABLE, reason)


def not_measured(finding: Finding, what: str) -> Verdict:
    return Verdict(finding.id, finding.statement, finding.rule, NOT_JUDGED, f"not measured: {what}")


def judge(finding: Finding, holds: bool, reason: str, figures: dict, points: list[dict], parameters: dict,
          words: tuple[str, str] = (REPRODUCED, NOT_REPRODUCED)) -> Verdict:
    """points: the raw rounds that the figures come from. words: what to say when the rule holds and when it does not."""
    state, note = words[0] if holds else words[1], ""
    noisy = sum(bool(p.get("cpu", {}).get("noisy")) for p in points)
    rounds = parameters["rounds"]
    seconds = min((p["result"]["interval_seconds"] for p in points if "interval_seconds" in p["result"]), default=0)
    if rounds < FAIR_ROUNDS or round(seconds) < FAIR_SECONDS:
        state, note = NOT_JUDGED, f"; a verdict takes {FAIR_ROUNDS} rounds of {FAIR_SECONDS} s"
    elif points and noisy / len(points) > NOISY_SHARE_MAX:
        state, note = NOT_JUDGED, f"; the machine was not quiet in {noisy} of {len(points)} points"
    elif noisy:
        note = f"; {noisy} of {len(points)} points noisy"
    if repeated := sum("repeat" in p for p in points):
        note += f"; {repeated} of {len(points)} points measured again, for they or what they are compared with were disturbed"
    return Verdict(finding.id, finding.statement, finding.rule, state, reason + note, figures)


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
