"""E1's findings as a table: what an engine's cell says where it has no verdict."""

from __future__ import annotations

from ...design.published import Claim
from ...report.verdicts import NOT_MEASURED, FindingRow, Verdict
from .. import by_engine
from .findings import DOCUMENT, ENGINES, INNODB, Engine

_NO_SUCH = {INNODB.suffix: "InnoDB has no inline size and no batches"}


def rows(found: list[Verdict]) -> list[FindingRow]:
    """found: all verdicts of a run."""
    return by_engine.rows(DOCUMENT, found, _without, lambda _name, _suffix: ("", "it compares Quarry with InnoDB"))


def _without(claim: Claim, suffix: str) -> tuple[str, str]:
    (engine,) = (engine for engine in ENGINES if engine.suffix == suffix)
    if not _has_variants(claim, engine):
        return "", _NO_SUCH.get(suffix, "it has no such variant")
    lacking = claim.judging.get("lacking") or claim.judging.get("needs")
    return NOT_MEASURED, lacking or "this run has no such level of it"


def _has_variants(claim: Claim, engine: Engine) -> bool:
    judging = claim.judging
    if judging["kind"] in ("lacking", "sweep"):
        return judging["kind"] == "lacking" or bool(engine.sweep)
    if "pairs" in judging:
        return any(role in engine.roles and over in engine.roles for role, over in judging["pairs"])
    return any(role in engine.roles for role in judging["roles"])
