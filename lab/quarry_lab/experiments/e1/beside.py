"""
What stands next to E1's verdicts: the client's own floor at each level, and why a claim that NDB shows does not show on Quarry.

The floor is the same mix without an engine. Where its p95 is a good part of what was measured, latency is made by client and scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...design.cells import CellKey, Cells, p95_ms, throughput
from ...design.published import Claim
from ...design.rules import Level
from ...design.variants import KIB
from ...report import stats
from ...report.verdicts import Verdict
from ..by_engine import is_ndbs_alone

FLOOR = "floor"
FLOOR_SHARE_MIN = 0.5  # of p95, from which on a level is the scheduler's more than the engine's: our threshold


def floor_note(cells: Cells, levels: Iterable[Level]) -> str:
    """The levels whose latency the client alone has for a good part; empty where there is none, or the floor was not measured."""
    shares: dict[CellKey, tuple[float, float]] = {}
    for key, variant in sorted({(CellKey("mix", p["size_bytes"], p["threads"]), p["variant"]) for each in levels for p in each.points}):
        alone, measured = cells.summary(key, FLOOR, p95_ms), cells.summary(key, variant, p95_ms)
        if alone and measured and measured.median and alone.median / measured.median >= FLOOR_SHARE_MIN:
            known = shares.get(key)
            if known is None or measured.median < known[1]:
                shares[key] = alone.median, measured.median
    if not shares:
        return ""
    named = ", ".join(f"{key.size_bytes // KIB} KB x{key.threads} {alone:.3g} of {measured:.3g} ms" for key, (alone, measured) in shares.items())
    return f"; latency is the client's and the scheduler's more than the engine's, by the floor's p95, at {named}"


def why_not_here(cells: Cells, claim: Claim, here: Verdict, there: Verdict, base: tuple[str, str]) -> str:
    """
    One line with a figure where NDB shows a claim and Quarry does not; else empty. base: the variant that the claim compares with, of Quarry
    and of NDB.
    """
    if not is_ndbs_alone(here, there) or "on_quarry" not in claim.judging:
        return ""
    sizes = claim.judging["sizes"] if "sizes" in claim.judging else [claim.judging["size"]]
    for key in cells.keys():
        if key.setting or key.operation != "mix" or key.size_bytes // KIB not in sizes:
            continue
        ours, theirs = (cells.summary(key, variant, throughput) for variant in base)
        if ours and theirs:
            alone = cells.summary(key, FLOOR, throughput)
            rates = f"{stats.human_count(ours.median)}/s here, {stats.human_count(theirs.median)}/s on NDB"
            rates += f", {stats.human_count(alone.median)}/s for the client alone" if alone else ""
            return f"; not as on NDB: {claim.judging['on_quarry']} ({key.size_bytes // KIB} KB x{key.threads}: {rates})"
    return ""
