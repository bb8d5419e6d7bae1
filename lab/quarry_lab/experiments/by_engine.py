"""
Findings with a verdict for each engine: who the engines are, the verdicts of a claim, and the table with a column for each.

Quarry's verdict has the claim's own id; the others' ids end with the engine's suffix, and exist where something was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from ..design.published import Claim, Document
from ..report.verdicts import NOT_MEASURED, REPRODUCED, STRONGER, Finding, FindingRow, Verdict

Who = TypeVar("Who", bound="Judged")
HEADINGS = ("published", "NDB here", "Quarry here", "InnoDB here")
ON_NDB, OWN, ON_INNODB = "-ndb", "-own", "-innodb"
SHOWN = (REPRODUCED, STRONGER)


@dataclass(frozen=True, eq=False)
class Judged:
    """Who gets a verdict. suffix: of the findings' ids; name: before their statements. Quarry has neither."""

    suffix: str
    name: str

    def finding(self, of: Finding) -> Finding:
        return replace(of, id=of.id + self.suffix, statement=f"{self.name}: {of.statement}" if self.name else of.statement)


@dataclass(frozen=True, eq=False)
class Engine(Judged):
    """roles: a claim's names of variants -> ours."""

    roles: dict[str, str]


def judged(engines: Iterable[Who], judge: Callable[[Who], Verdict],
           why: Callable[[Verdict, Verdict], str] = lambda _here, _there: "") -> list[Verdict]:
    """Of one finding Quarry's verdict, and every other engine's that was measured. why: what Quarry's adds to its words, given it and NDB's."""
    made = {engine.suffix: judge(engine) for engine in engines}
    if ON_NDB in made:
        made[""] = replace(made[""], reason=made[""].reason + why(made[""], made[ON_NDB]))
    return [verdict for suffix, verdict in made.items() if not suffix or verdict.state != NOT_MEASURED]


def is_ndbs_alone(here: Verdict, there: Verdict) -> bool:
    """NDB shows it, and Quarry does not."""
    return there.state in SHOWN and here.state not in SHOWN


class ByEngine:
    """What experiments share whose findings have a verdict for each engine: mixed into Experiment."""

    finding_columns: ClassVar[tuple[str, ...]] = HEADINGS

    def quarrys_own(self, found: list[Verdict]) -> list[Verdict]:
        return [verdict for verdict in found if not verdict.id.endswith((ON_NDB, OWN, ON_INNODB))]


def rows(document: Document, found: list[Verdict], without: Callable[[Claim, str], tuple[str, str]]) -> list[FindingRow]:
    """
    What was published, and each engine's verdict with its figures. found: all verdicts of a run. without: state and text of an engine (its suffix)
    that has no verdict on a claim.
    """
    by_id = {verdict.id: verdict for verdict in found}
    made = []
    for claim in document.claims.values():
        figures = "; ".join(figure.text for figure in claim.figures) or "no figure"
        ndb, quarry, innodb = ([_said(by_id.pop(claim.id + suffix, None)) or without(claim, suffix)] for suffix in (ON_NDB, "", ON_INNODB))
        made.append(FindingRow(claim.says, ([("", figures)], ndb, [*quarry, *_own(by_id, claim.id)], innodb)))
    return made + [_not_published(by_id, name) for name in [name for name in by_id if not name.endswith((ON_NDB, OWN, ON_INNODB))]]


def _said(verdict: Verdict | None) -> tuple[str, str] | None:
    return (verdict.state, verdict.reason) if verdict else None


def _own(by_id: dict[str, Verdict], name: str) -> list[tuple[str, str]]:
    own = by_id.pop(name + OWN, None)
    return [(own.state, f"with Quarry's own defaults: {own.reason}")] if own else []


def _not_published(by_id: dict[str, Verdict], name: str) -> FindingRow:
    statement = by_id[name].statement
    ndb, quarry, innodb = ([said] if (said := _said(by_id.pop(name + suffix, None))) else [] for suffix in (ON_NDB, "", ON_INNODB))
    return FindingRow(statement, ([("", "not published")], ndb, [*quarry, *_own(by_id, name)], innodb))
