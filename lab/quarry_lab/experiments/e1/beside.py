"""
What stands next to E1's verdicts: the client's own floor at each level, and why a claim that NDB shows does not show on Quarry.

The floor is the same mix without an engine. Where its p95 is a good part of what was measured, latency is made by client and scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ...design.cells import CellKey, Cells, memory_ratio, p95_ms, throughput, trips
from ...design.published import Claim
from ...design.rules import Level
from ...design.variants import KIB
from ...report import stats
from ...report.verdicts import Verdict
from ..by_engine import is_ndbs_alone

FLOOR = "floor"
FLOOR_SHARE_MIN = 0.5  # of p95, from which on a level is the scheduler's more than the engine's: our threshold
AT_MOST_USERS = ("saturation", "same", "reduced", "rises", "many_users")  # kinds of claims about the users of their first figure


def floor_note(cells: Cells, levels: Iterable[Level]) -> str:
    """The levels whose latency the client alone has for a good part; empty where there is none, or the floor was not measured."""
    shares: dict[CellKey, tuple[float, float]] = {}
    measured_at = {(CellKey("mix", p["size_bytes"], p["threads"], p.get("setting", "")), p["variant"]) for each in levels for p in each.points}
    for key, variant in sorted(measured_at):
        # The floor has no engine, and so no setting of one.
        alone, measured = cells.summary(replace(key, setting=""), FLOOR, p95_ms), cells.summary(key, variant, p95_ms)
        if alone and measured and measured.median and alone.median / measured.median >= FLOOR_SHARE_MIN:
            known = shares.get(key)
            if known is None or measured.median < known[1]:
                shares[key] = alone.median, measured.median
    if not shares:
        return ""
    named = ", ".join(f"{_level(key)} {stats.human_ms(alone)} of {stats.human_ms(measured)}" for key, (alone, measured) in shares.items())
    return f"; latency is the client's and the scheduler's more than the engine's, by the floor's p95, at {named}"


def _level(key: CellKey) -> str:
    return f"{key.size_bytes // KIB} KB x{key.threads}" + (f", {key.setting}," if key.setting else "")


# --- why a claim shows on NDB alone ---
def busy_processors(point: dict) -> float | None:
    """Of servers and client."""
    cpu = point["cpu"]
    return cpu["server_cpus"] + cpu["client_cpus"] if "server_cpus" in cpu else None


def _shown_by_trips(cells: Cells, key: CellKey, ours: list[str], theirs: list[str]) -> str:
    """Rates, which are the trips' price, and the trips themselves where they were counted."""
    here, there, alone = (cells.summary(key, variant, throughput) for variant in (ours[-1], theirs[-1], FLOOR))
    if not here or not there:
        return ""
    rates = f"{stats.human_count(here.median)}/s here, {stats.human_count(there.median)}/s on NDB"
    rates += f", {stats.human_count(alone.median)}/s for the client alone" if alone else ""
    counted = [f"{cells.label(variant)} {found.median:.2f}" for variant in theirs if (found := cells.summary(key, variant, trips))]
    return rates + (f"; waits for the data nodes in a transaction: {', '.join(counted)}" if counted else "")


def _shown_by_processors(cells: Cells, key: CellKey, ours: list[str], theirs: list[str]) -> str:
    here, there = (cells.summary(key, variants[-1], busy_processors) for variants in (ours, theirs))
    if not here or not there:
        return ""
    (processors, *_) = {point["cpu"]["processors"] for point in cells.rounds(key, ours[-1]).values()}
    return f"of {processors} processors {here.median:.2f} are busy here, {there.median:.2f} with NDB"


def _shown_by_memory(cells: Cells, key: CellKey, ours: list[str], theirs: list[str]) -> str:
    said = [f"{cells.label(variant)} {found.median:.2f}" for variant in (*ours, *theirs) if (found := cells.summary(key, variant, memory_ratio))]
    return f"bytes of memory for each of payload: {', '.join(said)}" if len(said) == len(ours) + len(theirs) else ""


SHOWN_BY: dict[str, Callable[[Cells, CellKey, list[str], list[str]], str]] = {
    "trips": _shown_by_trips, "processors": _shown_by_processors, "memory": _shown_by_memory}


def _keys(cells: Cells, claim: Claim) -> list[CellKey]:
    """The claim's own levels, of which each can show why."""
    judging = claim.judging
    sizes = judging["sizes"] if "sizes" in judging else [judging["size"]]
    users = {int(claim.figure.value)} if judging["kind"] in AT_MOST_USERS else set(judging.get("users", ()))
    plain = [key for key in cells.keys() if key.operation == "mix" and not key.setting and key.size_bytes // KIB in sizes]
    return [key for key in plain if (not users or key.threads in users) and key.threads < judging.get("users_below", float("inf"))]


def why_not_here(cells: Cells, claim: Claim, here: Verdict, there: Verdict, quarry: dict[str, str], ndb: dict[str, str]) -> str:
    """
    One line where NDB shows a claim and Quarry does not, with the measured figures that show it (the claim's `shown_by`); else empty, also where these
    were not measured. quarry, ndb: a claim's names of variants -> theirs.
    """
    if not is_ndbs_alone(here, there) or "on_quarry" not in claim.judging:
        return ""
    compared = claim.judging["pairs"][0] if "pairs" in claim.judging else claim.judging.get("roles", ["default"])[:1]
    ours, theirs = ([roles[role] for role in compared] for roles in (quarry, ndb))
    for key in _keys(cells, claim):
        if not all(cells.rounds(key, variant) for variant in (*ours, *theirs)):
            continue
        if shown := SHOWN_BY[claim.judging["shown_by"]](cells, key, ours, theirs):
            return f"; not as on NDB: {claim.judging['on_quarry']} ({_level(key)}: {shown})"
    return ""
