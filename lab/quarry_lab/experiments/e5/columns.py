"""E5's findings as a table: what an engine's cell says where it has no verdict."""

from __future__ import annotations

from ...design.published import Claim
from ...report.verdicts import FindingRow, Verdict
from .. import by_engine
from .findings import DOCUMENT, NDB


def rows(found: list[Verdict]) -> list[FindingRow]:
    """found: all verdicts of a run."""
    return by_engine.rows(DOCUMENT, found, _without)


def _without(claim: Claim, suffix: str) -> tuple[str, str]:
    if suffix == NDB.suffix:
        state, text = by_engine.NO_POINT_OF_NDB
        return state, claim.judging.get("lacking_ndb", text)
    return by_engine.no_such_point(claim.id, suffix)
