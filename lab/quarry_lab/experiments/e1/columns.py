"""E1's findings as a table: what was published, and for each engine its verdict with the figures, or why it has none."""

from __future__ import annotations

from ...design.published import Claim
from ...report.verdicts import NOT_MEASURED, FindingRow, Verdict
from .findings import DOCUMENT, INNODB, NDB, OWN_DEFAULTS, QUARRY, Engine

HEADINGS = ("published", "NDB here", "Quarry here", "InnoDB here")
_NO_SUCH = {INNODB.suffix: "InnoDB has no inline size and no batches"}


def rows(found: list[Verdict]) -> list[FindingRow]:
    """found: all verdicts of a run."""
    by_id = {verdict.id: verdict for verdict in found}
    made = []
    for claim in DOCUMENT.claims.values():
        figures = "; ".join(figure.text for figure in claim.figures) or "no figure"
        quarry = [_cell(by_id, claim, QUARRY)]
        if own := by_id.pop(claim.id + OWN_DEFAULTS.suffix, None):
            quarry.append((own.state, f"with Quarry's own defaults: {own.reason}"))
        made.append(FindingRow(claim.says, ([("", figures)], [_cell(by_id, claim, NDB)], quarry, [_cell(by_id, claim, INNODB)])))
        for engine in (QUARRY, NDB, INNODB):
            by_id.pop(claim.id + engine.suffix, None)
    made += [FindingRow(other.statement, ([("", "not published")], [], [(other.state, other.reason)], [])) for other in by_id.values()]
    return made


def _cell(by_id: dict[str, Verdict], claim: Claim, engine: Engine) -> tuple[str, str]:
    if found := by_id.get(claim.id + engine.suffix):
        return found.state, found.reason
    if not _has_variants(claim, engine):
        return "", _NO_SUCH.get(engine.suffix, "it has no such variant")
    lacking = claim.judging.get("lacking") or claim.judging.get("needs")
    return NOT_MEASURED, lacking or "this run has no such level of it"


def _has_variants(claim: Claim, engine: Engine) -> bool:
    judging = claim.judging
    if judging["kind"] in ("lacking", "sweep"):
        return judging["kind"] == "lacking" or bool(engine.sweep)
    if "pairs" in judging:
        return any(role in engine.roles and over in engine.roles for role, over in judging["pairs"])
    return any(role in engine.roles for role in judging["roles"])
