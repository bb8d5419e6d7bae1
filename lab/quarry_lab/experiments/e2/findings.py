"""
The claims of E2's document (published/e2.toml), judged from the raw rounds: for NDB, for Quarry with NDB's defaults and with its own, and for InnoDB.

A claim's `kind` names its function here; `roles` are the variants that it speaks of, the one that is compared first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...design import published
from ...design.cells import CellKey, Cells, throughput, trips
from ...design.published import Claim
from ...design.rules import Level, against, gain_levels, level, reaches, verdict
from ...design.variants import KIB
from ...report import stats
from ...report.verdicts import NOT_MEASURED, Finding, FindingRow, Verdict
from .. import by_engine
from ..by_engine import Engine
from ..table_experiment import answer_gain
from .bench import CACHES

DOCUMENT = published.document("e2")
THREADS, ROW, WIDE_ROW = 8, 1 * KIB, 2 * KIB
INSERT, THROUGH = (CellKey(load, ROW, THREADS) for load in ("insert", "fronts"))
READ, FEW, UPDATED = (CellKey(load, WIDE_ROW, THREADS) for load in ("read", "few", "updated"))
_KEYS = {key.operation: key for key in (INSERT, THROUGH, READ, FEW, UPDATED)}
LOCKS_KEPT_MOST = 0.8  # our threshold

_ROLES = {**{f"prefetch-{n}": f"quarry-prefetch-{n}" for n in CACHES}, "blob": "quarry-2blob", "varbinary": "quarry-2varbinary"}
QUARRY = Engine("", "", _ROLES)
# A VARBINARY is the same with either defaults.
OWN = Engine(by_engine.OWN, "Quarry with its own defaults", {"blob": "quarry-2blob-default", "varbinary": "quarry-2varbinary"})
NDB = Engine(by_engine.ON_NDB, "NDB", {role: "target-" + key.replace("quarry", "ndb") for role, key in _ROLES.items()})
INNODB = Engine(by_engine.ON_INNODB, "InnoDB", {"blob": "innodb-2blob", "varbinary": "innodb-2varbinary"})
ENGINES = (QUARRY, OWN, NDB, INNODB)

SEQUENCE = Finding("e2-sequence", "ids from a SEQUENCE, where each reservation is a write: CACHE 256 against CACHE 1 (not published)",
                   "gain in statements/s")
FRONT_IDS = Finding(
    "e2-fronts",
    "two Spider fronts, ids from a SEQUENCE on a shard, which a client asks first, in one trip a statement: CACHE 256 against CACHE 1 "
    "(not published)",
    "gain in statements/s")
FRONT_COUNTS = Finding(
    "e2-fronts-trip",
    "two Spider fronts, what that trip costs: AUTO_INCREMENT counted by each front against a SEQUENCE on a shard, CACHE 1024 (not published)",
    "gain in statements/s of AUTO_INCREMENT")
_SHARDS = {NDB.suffix: "the shards of Spider are servers of MariaDB", INNODB.suffix: "the tables behind the fronts are QUARRY's"}
# Why another engine has no answer.
_ELSEWHERE = {SEQUENCE.id: {NDB.suffix: "MySQL has no SEQUENCE", INNODB.suffix: "the rows that a SEQUENCE gives ids to are QUARRY's"},
              FRONT_IDS.id: _SHARDS, FRONT_COUNTS.id: _SHARDS}


# --- kinds of claims ---
def _rate(cells: Cells, claim: Claim, variants: list[str], parameters: dict) -> list[Level]:
    """A rate, whatever the hardware was."""
    key, (variant,) = _KEYS[claim.judging["load"]], variants
    found = cells.summary(key, variant, throughput)
    if not found:
        return []
    points, state = cells.rounds_of([key], [variant]), against(found, claim.figure.judged)
    return [level(f"x{key.threads}", state, found, points, parameters, claim.figure.measured)]


def _gain(cells: Cells, claim: Claim, variants: list[str], parameters: dict) -> list[Level]:
    variant, over = variants
    return gain_levels(cells, [_KEYS[claim.judging["load"]]], variant, over, claim.figure, parameters)


def kept(cells: Cells, variant: str) -> dict[int, float]:
    """By round: the share of their throughput that readers keep beside the updater."""
    alone, beside = cells.values(FEW, variant, throughput), cells.values(UPDATED, variant, throughput)
    return {number: beside[number] / alone[number] for number in alone.keys() & beside.keys()}


def _locks(cells: Cells, claim: Claim, variants: list[str], parameters: dict) -> list[Level]:
    shares = {variant: kept(cells, variant) for variant in variants}
    ratio = stats.paired_ratio(*shares.values())
    if not ratio:
        return []
    one = level("kept", reaches(ratio, LOCKS_KEPT_MOST), ratio, cells.rounds_of((FEW, UPDATED), variants), parameters, "{:.2f}".format)
    medians = {variant: stats.summarize(list(share.values())).median for variant, share in shares.items()}
    each = "; ".join(f"readers of {cells.label(variant)} keep {median:.0%} of their rate" for variant, median in medians.items())
    return [replace(one, text=f"{each}; one over the other {one.text.removeprefix('kept: ')}")]


_KINDS: dict[str, Callable[[Cells, Claim, list[str], dict], list[Level]]] = {"rate": _rate, "gain": _gain, "locks": _locks}


# --- verdicts ---
def verdicts(cells: Cells, parameters: dict) -> list[Verdict]:
    found = []
    for claim in DOCUMENT.claims.values():
        engines = [engine for engine in ENGINES if has(claim, engine)]
        found += by_engine.judged(engines, lambda engine, claim=claim: _of_engine(cells, claim, engine, parameters),
                                  lambda here, there, claim=claim: why_not_here(cells, claim, here, there))
    return [*found, answer_gain(cells, SEQUENCE, [INSERT], "sequence-256", "sequence-1", parameters),
            answer_gain(cells, FRONT_IDS, [THROUGH], "fronts-shard-256", "fronts-shard-1", parameters),
            answer_gain(cells, FRONT_COUNTS, [THROUGH], "fronts-counting", "fronts-shard-1024", parameters)]


def has(claim: Claim, engine: Engine) -> bool:
    return all(role in engine.roles for role in claim.judging["roles"])


def _of_engine(cells: Cells, claim: Claim, engine: Engine, parameters: dict) -> Verdict:
    variants = [engine.roles[role] for role in claim.judging["roles"]]
    levels = _KINDS[claim.judging["kind"]](cells, claim, variants, parameters)
    made = verdict(engine.finding(claim.finding), levels, f"this run lacks {' or '.join(cells.label(variant) for variant in variants)}")
    return _with_trips(cells, made, variants) if levels and claim.judging["load"] == "insert" else made


def _with_trips(cells: Cells, made: Verdict, variants: list[str]) -> Verdict:
    """What an id cost: reservations on Quarry; waits for the data nodes on NDB, where a statement has one of its own that no prefetch saves."""
    notes = []
    for figure, what in ((reservations_per_1000_rows, "reservations"), (trips_per_1000_rows, "waits for the data nodes")):
        counted = {variant: found for variant in variants if (found := cells.summary(INSERT, variant, figure))}
        if counted:
            notes.append(f"; {what} per 1,000 rows: " + ", ".join(f"{cells.label(variant)} {found.median:.2f}" for variant, found in counted.items()))
        if counted and figure is trips_per_1000_rows:
            (rows_of_one, *_) = {point["batch_rows"] for point in cells.rounds_of([INSERT], variants)}
            notes.append(f" (one for each statement: {1000 / rows_of_one:.2f})")
    return replace(made, reason=made.reason + "".join(notes))


def why_not_here(cells: Cells, claim: Claim, here: Verdict, there: Verdict) -> str:
    """One line with a figure where NDB shows a claim and Quarry does not, or shows more of a gain; else empty."""
    is_less = claim.judging["kind"] == "gain" and by_engine.is_less_here(here, there)
    if not (is_less or by_engine.is_ndbs_alone(here, there)) or "on_quarry" not in claim.judging:
        return ""
    return f"; not as on NDB: {claim.judging['on_quarry']} ({_seen(cells, claim)}{_waits(cells, claim)})"


def _seen(cells: Cells, claim: Claim) -> str:
    """Of both engines the figure that shows it: what BLOB readers keep, else the rate of the variant that the claim compares with."""
    if claim.judging["kind"] == "locks":
        ours, theirs = (stats.summarize(list(kept(cells, engine.roles["blob"]).values())).median for engine in (QUARRY, NDB))
        return f"BLOB readers keep {ours:.0%} here, {theirs:.0%} on NDB"
    key, variants = _KEYS[claim.judging["load"]], [engine.roles[claim.judging["roles"][-1]] for engine in (QUARRY, NDB)]
    rates = {variant: found for variant in variants if (found := cells.summary(key, variant, throughput))}
    return "; ".join(f"{cells.label(variant)}: {stats.human_count(found.median)}/s" for variant, found in rates.items())


def _waits(cells: Cells, claim: Claim) -> str:
    """Of reads, what NDB's trips were; those of inserts stand next to NDB's own verdict."""
    variants = [NDB.roles[role] for role in claim.judging["roles"]] if claim.judging["load"] == "read" else []
    counted = [f"{cells.label(variant)} {found.median:.2f}" for variant in variants if (found := cells.summary(READ, variant, trips))]
    return f"; waits for the data nodes in a read: {', '.join(counted)}" if counted else ""


def reservations_per_1000_rows(point: dict) -> float | None:
    """From the server's own counter over the whole point; None when the server has none (InnoDB)."""
    rows = point["result"]["total_rows_written"]
    counts = [count for name, count in point["quarry_status"].items() if "reservation" in name]
    return 1000 * counts[0] / rows if counts and rows else None


def trips_per_1000_rows(point: dict) -> float | None:
    """Of NDB's SQL nodes; None elsewhere."""
    rows, trips = point["result"]["total_rows_written"], point.get("nodes", {}).get("trips", {})
    return 1000 * sum(trips.values()) / rows if trips and rows else None


# --- the table ---
def rows(found: list[Verdict]) -> list[FindingRow]:
    return by_engine.rows(DOCUMENT, found, _without, lambda name, suffix: ("", _ELSEWHERE[name][suffix]))


def _without(claim: Claim, suffix: str) -> tuple[str, str]:
    (engine,) = (engine for engine in ENGINES if engine.suffix == suffix)
    if not has(claim, engine):
        return "", "InnoDB has no such option: it counts ids in memory"
    return by_engine.NO_POINT_OF_NDB if engine is NDB else (NOT_MEASURED, "this run lacks its variants")
