"""
Findings with a verdict for each engine: who the engines are, the verdicts of a claim, and the table with a column for each.

Quarry's verdict has the claim's own id; the others' ids end with the engine's suffix, and exist where something was measured. In E3, whose document
measured InnoDB, the claim's own id is InnoDB's. A cell of the table without a verdict says why.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from ..design.published import Claim, Document, quoted
from ..design.results import RunDirectory
from ..report.verdicts import MIXED, NOT_JUDGED, NOT_MEASURED, OPPOSITE, REPRODUCED, STRONGER, WEAKER, Finding, FindingRow, Verdict
from ..run.experiment import Experiment, PublishedFigure

Who = TypeVar("Who", bound="Judged")
HEADINGS = ("published", "NDB here", "Quarry here", "InnoDB here")
ON_NDB, OWN, ON_INNODB, ON_QUARRY = "-ndb", "-own", "-innodb", "-quarry"
COLUMNS = (ON_NDB, "", ON_INNODB)  # suffixes of the ids, as HEADINGS has the engines
SHOWN, NOT_SHOWN = (REPRODUCED, STRONGER), (WEAKER, OPPOSITE, MIXED)


@dataclass(frozen=True, eq=False)
class Judged:
    """Who gets a verdict. suffix: of the findings' ids; name: before their statements. The one with the claim's own id has neither."""

    suffix: str
    name: str

    def finding(self, of: Finding) -> Finding:
        return replace(of, id=of.id + self.suffix, statement=f"{self.name}: {of.statement}" if self.name else of.statement)


@dataclass(frozen=True, eq=False)
class Engine(Judged):
    """roles: a claim's names of variants -> ours."""

    roles: dict[str, str]


def twins(here: Engine, there: Engine) -> dict[str, str]:
    """One engine's variants -> the other's of the same role, where it has one."""
    return {variant: there.roles[role] for role, variant in here.roles.items() if role in there.roles}


def judged(engines: Collection[Who], judge: Callable[[Who], Verdict],
           why: Callable[[Verdict, Verdict], str] = lambda _here, _there: "", quarry: str = "",
           lacks: Callable[[Who], bool] = lambda _who: False) -> list[Verdict]:
    """
    Of one finding the verdict with the claim's own id, and every other engine's that was measured. why: what Quarry's adds to its words, given it and
    NDB's. quarry: its suffix. lacks: engines whose verdict stays where it says what was lacking.
    """
    made = {engine.suffix: judge(engine) for engine in engines}
    if {quarry, ON_NDB} <= made.keys():
        made[quarry] = replace(made[quarry], reason=made[quarry].reason + why(made[quarry], made[ON_NDB]))
    stays = {"", *(engine.suffix for engine in engines if lacks(engine))}
    return [verdict for suffix, verdict in made.items() if suffix in stays or verdict.state != NOT_MEASURED]


def is_ndbs_alone(here: Verdict, there: Verdict) -> bool:
    """NDB shows it, and Quarry does not: of a Quarry that was not measured, or not judged, nothing is known."""
    return there.state in SHOWN and here.state in NOT_SHOWN


def is_less_here(here: Verdict, there: Verdict) -> bool:
    """Of gains, at every level: every round of NDB has one, and more of it than any round of Quarry. Whatever was published, that has a cause."""
    shared = here.figures.keys() & there.figures.keys()
    return bool(shared) and here.state in NOT_SHOWN and there.state != NOT_JUDGED and all(
        max(0.0, here.figures[name]["high"]) < there.figures[name]["low"] for name in shared)


class ByEngine(Experiment):
    """
    What experiments share whose findings have a verdict for each engine. on_ndb, on_innodb: Quarry's variants -> those of the other engine that stand
    with them beside a published figure.
    """

    finding_columns: ClassVar[tuple[str, ...]] = HEADINGS
    whose: ClassVar[str] = "Quarry"
    on_ndb: ClassVar[Mapping[str, str]] = {}
    on_innodb: ClassVar[Mapping[str, str]] = {}

    def beside(self, run: RunDirectory, figure: PublishedFigure) -> str:
        here = self.of_one(run, figure)
        others = [f"{name} {found}" for name, twins_of in (("NDB", self.on_ndb), ("InnoDB", self.on_innodb))
                  if (found := self._twin_beside(run, figure, twins_of))]
        return "; ".join([f"Quarry {here}", *others]) if others else here

    def of_one(self, run: RunDirectory, figure: PublishedFigure) -> str:
        """What stands beside a figure for the engine whose variants it names."""
        return super().beside(run, figure)

    def _twin_beside(self, run: RunDirectory, figure: PublishedFigure, twins_of: Mapping[str, str]) -> str:
        """Empty where the other engine has no such variant, or was not measured."""
        variant, over = (twins_of.get(key) if key else None for key in (figure.cell.variant, figure.over))
        if not variant or (figure.over and not over):
            return ""
        found = self.of_one(run, replace(figure, cell=replace(figure.cell, variant=variant), over=over))
        return "" if found == NOT_MEASURED else found

    def quarrys_own(self, found: list[Verdict]) -> list[Verdict]:
        return [verdict for verdict in found if not verdict.id.endswith((ON_NDB, OWN, ON_INNODB, ON_QUARRY))]


NO_POINT_OF_NDB = NOT_MEASURED, "this run has no such point of NDB, which `make ndb` builds"


def no_such_point(_name: str, _suffix: str) -> tuple[str, str]:
    return NOT_MEASURED, "this run has no such point of it"


def rows(document: Document, found: list[Verdict], without: Callable[[Claim, str], tuple[str, str]],
         unasked: Callable[[str, str], tuple[str, str]] = no_such_point, columns: tuple[str, str, str] = COLUMNS,
         part_text: Callable[[str], str] = str) -> list[FindingRow]:
    """
    What was published, and each engine's verdict with its figures. found: all verdicts of a run. without: state and text of an engine (its suffix)
    that has no verdict on a claim. unasked: the same of a finding that was not published, by its id. columns: as COLUMNS. part_text: the name of
    a figure in a row of them, by its key there.
    """
    by_id = {verdict.id: verdict for verdict in found}
    made = []
    for claim in document.claims.values():
        figures = quoted(claim.published, part_text) or "no figure"
        ndb, quarry, innodb = ([_said(by_id.pop(claim.id + suffix, None)) or without(claim, suffix)] for suffix in columns)
        made.append(FindingRow(claim.says, claim.rule, ([("", figures)], ndb, [*quarry, *_own(by_id, claim.id)], innodb)))
    return made + [_not_published(by_id, name, unasked) for name in [name for name in by_id if not name.endswith((ON_NDB, OWN, ON_INNODB))]]


def _said(verdict: Verdict | None) -> tuple[str, str] | None:
    return (verdict.state, verdict.reason) if verdict else None


def _own(by_id: dict[str, Verdict], name: str) -> list[tuple[str, str]]:
    own = by_id.pop(name + OWN, None)
    return [(own.state, f"with Quarry's own defaults: {own.reason}")] if own else []


def _not_published(by_id: dict[str, Verdict], name: str, unasked: Callable[[str, str], tuple[str, str]]) -> FindingRow:
    found = by_id[name]
    ndb, quarry, innodb = ([_said(by_id.pop(name + suffix, None)) or unasked(name, suffix)] for suffix in (ON_NDB, "", ON_INNODB))
    return FindingRow(found.statement, found.rule, ([("", "not published")], ndb, [*quarry, *_own(by_id, name)], innodb))
