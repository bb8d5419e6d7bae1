"""E5's findings as a table: what was published, and for each engine its verdict with the figures, or why it has none."""

from __future__ import annotations

from ...design.published import Claim
from ...report.verdicts import NOT_MEASURED, FindingRow, Verdict
from .findings import DOCUMENT, ENGINES, INNODB, NDB, QUARRY, Engine

HEADINGS = ("published", "NDB here", "Quarry here", "InnoDB here")


def rows(found: list[Verdict]) -> list[FindingRow]:
    """found: all verdicts of a run."""
    by_id = {verdict.id: verdict for verdict in found}
    return [_row(claim, by_id) for claim in DOCUMENT.claims.values()]


def _row(claim: Claim, by_id: dict[str, Verdict]) -> FindingRow:
    figures = "; ".join(figure.text for figure in claim.figures) or "no figure"
    return FindingRow(claim.says, ([("", figures)], *([_cell(by_id, claim, engine)] for engine in (NDB, QUARRY, INNODB))))


def _cell(by_id: dict[str, Verdict], claim: Claim, engine: Engine) -> tuple[str, str]:
    if found := by_id.get(claim.id + engine.suffix):
        return found.state, found.reason
    if engine is NDB:
        return NOT_MEASURED, claim.judging.get("lacking_ndb", "this run has no such point of NDB, which `make ndb` builds")
    return NOT_MEASURED, "this run has no such point of it"


def quarrys(found: list[Verdict]) -> list[Verdict]:
    others = tuple(engine.suffix for engine in ENGINES if engine is not QUARRY)
    return [verdict for verdict in found if not verdict.id.endswith(others)]
