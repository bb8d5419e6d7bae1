"""E5's findings as a table: what an engine's cell says where it has no verdict."""

from __future__ import annotations

from ...design.published import Claim
from ...report.verdicts import NOT_MEASURED, FindingRow, Verdict
from .. import by_engine
from .findings import DOCUMENT, NDB


def rows(found: list[Verdict]) -> list[FindingRow]:
    """found: all verdicts of a run."""
    return by_engine.rows(DOCUMENT, found, _without)


def _without(claim: Claim, suffix: str) -> tuple[str, str]:
    if suffix == NDB.suffix:
        return NOT_MEASURED, claim.judging.get("lacking_ndb", "this run has no such point of NDB, which `make ndb` builds")
    return NOT_MEASURED, "this run has no such point of it"
