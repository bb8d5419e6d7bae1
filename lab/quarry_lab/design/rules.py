"""
The rules by which what was published is judged, from the rounds of this run.

reproduced    the rounds' range overlaps the published one, and every round points the published way
weaker        less than that, or nothing
stronger      more than that, the same way
opposite      every round points the other way
mixed         not at all client levels, or not in every round
not judged    too few or too short rounds, a machine that was not quiet, rounds too far apart to tell
not measured  with what was lacking

The published range of a figure is published.Figure.judged. Each client level (or other cell) is judged by itself and all of them count: none is picked
for being best. A level that is not judged is named, and leaves the others their verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..report.stats import Summary, human_gain
from ..report.verdicts import MIXED, NOT_JUDGED, OPPOSITE, REPRODUCED, STRONGER, WEAKER, Finding, Verdict, figures_of, noise_note, not_measured, unfair
from .cells import CellKey, Cells
from .published import GAIN_TOLERANCE_MIN, Figure

SAME_APART = 0.10  # a round so far from no difference is none: our threshold, of claims that name no figure


@dataclass(frozen=True)
class Level:
    """One client level, or another cell, that a claim speaks of. measured: on the axis of `state`'s rule; text: it in words; why: it is not judged."""

    name: str
    state: str
    text: str
    measured: Summary
    points: list[dict] = field(repr=False)
    why: str = ""


# --- the rules: a state from the rounds' range ---
def against(measured: Summary, published: tuple[float, float], neutral: float | None = None, less_is_better: bool = False) -> str:
    """neutral: what 'nothing' is on this axis, for figures with a direction; None: an absolute figure. less_is_better: of latencies."""
    low, high = published
    if neutral is not None and high < neutral:  # a loss was published: the same on a mirror
        return against(_mirrored(measured, neutral), (2 * neutral - high, 2 * neutral - low), neutral)
    if neutral is not None and measured.high < neutral:
        return OPPOSITE
    if measured.low <= high and measured.high >= low:
        return MIXED if neutral is not None and measured.low <= neutral else REPRODUCED
    return WEAKER if (measured.high < low) != less_is_better else STRONGER


def direction(measured: Summary, neutral: float = 0.0) -> str:
    """Of claims without a figure: above `neutral`, and by how much is not said."""
    if measured.low > neutral:
        return REPRODUCED
    if measured.high < neutral:
        return OPPOSITE
    return WEAKER if measured.low == measured.high else MIXED


def reaches(measured: Summary, threshold: float, neutral: float = 1.0) -> str:
    """
    Of claims without a figure, by a threshold of ours: at least it in every round (at most, where it lies below `neutral`), in none, or in some. The other
    way, too, less than SAME_APART is nothing.
    """
    if threshold < neutral:
        return reaches(_mirrored(measured, neutral), 2 * neutral - threshold, neutral)
    if measured.high < neutral - SAME_APART:
        return OPPOSITE
    return REPRODUCED if measured.low >= threshold else WEAKER if measured.high < threshold else MIXED


def never_above(measured: Summary, most: float) -> str:
    """Of claims that something was never more: so in every round, in none, or in some."""
    return REPRODUCED if measured.high <= most else WEAKER if measured.low > most else MIXED


def no_difference(gain: Summary, apart: float = SAME_APART) -> str:
    """Of claims that two are the same: within two points of no gain. apart: the gain that would be a difference; rounds that hold both tell nothing."""
    if gain.low > GAIN_TOLERANCE_MIN or gain.high < -GAIN_TOLERANCE_MIN:
        return WEAKER
    return NOT_JUDGED if gain.high >= apart or gain.low <= -apart else REPRODUCED


def together(states: Iterable[str]) -> str:
    """Of all levels; those that were not judged have no say unless there is no other."""
    found = set(states)
    judged = found - {NOT_JUDGED}
    if len(judged) > 1:
        return MIXED
    return judged.pop() if judged else NOT_JUDGED


def _mirrored(measured: Summary, neutral: float) -> Summary:
    return Summary(2 * neutral - measured.median, 2 * neutral - measured.high, 2 * neutral - measured.low, measured.rounds)


# --- levels ---
def level(name: str, state: str, measured: Summary, points: list[dict], parameters: dict, form=human_gain) -> Level:
    """`state` if the level's rounds are fair enough for one."""
    why = unfair(points, min(measured.rounds, parameters["rounds"])) or ("rounds too far apart to tell" if state == NOT_JUDGED else "")
    return Level(name, NOT_JUDGED if why else state, f"{name}: {form(measured.median)}{measured.range_text(form)}", measured, points, why)


def gain(ratio: Summary) -> Summary:
    """A ratio as a gain over 1."""
    return Summary(ratio.median - 1, ratio.low - 1, ratio.high - 1, ratio.rounds)


def gain_levels(cells: Cells, keys: Iterable[CellKey], variant: str, over: str, figure: Figure, parameters: dict) -> list[Level]:
    """Of one variant over another, at every one of these cells that has both, against a published gain."""
    return [level(f"x{key.threads}", against(found := gain(ratio), figure.judged, 0.0), found, cells.rounds_of([key], (variant, over)), parameters)
            for key, ratio in cells.ratios(keys, variant, over).items()]


# --- verdicts ---
def verdict(finding: Finding, levels: list[Level], lacking: str) -> Verdict:
    """From all levels; without any it was not measured, for what was lacking."""
    if not levels:
        return not_measured(finding, lacking)
    state = together(each.state for each in levels)
    points = {id(point): point for each in levels for point in each.points}
    figures = {each.name.replace(" ", "_"): figures_of(each.measured) | {"state": each.state} for each in levels}
    return Verdict(finding.id, finding.statement, finding.rule, state, _in_words(levels) + noise_note(list(points.values())), figures)


def _in_words(levels: list[Level]) -> str:
    """What all levels share is said once, at the end, or is the verdict itself."""
    if len({(each.state, each.why) for each in levels}) == 1:
        return "; ".join(each.text for each in levels) + (f"; {levels[0].why}" if levels[0].why else "")
    return "; ".join(f"{each.text}, {each.state}{f': {each.why}' if each.why else ''}" for each in levels)
