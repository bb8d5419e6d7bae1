"""What was published for E3 (published/e3.toml), judged from the raw rounds. Each claim names its kind; each kind has a function here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from ...design import published, rules
from ...design.cells import CellKey, Cells, client_cpus, server_cpus
from ...design.methods import LABELS, METHODS
from ...design.published import GAIN_TOLERANCE_MIN, Claim, Figure
from ...design.results import RunDirectory
from ...design.rules import Level, against, direction, gain, level
from ...report import stats
from ...report.stats import Summary
from ...report.verdicts import MIXED, NOT_MEASURED, OPPOSITE, REPRODUCED, WEAKER, FindingRow, Verdict, not_measured, stated
from ...servers.links import LINKS
from .. import by_engine
from ..by_engine import ON_NDB, ON_QUARRY, Engine

DOCUMENT = published.document("e3")
REAL = "real"
RANDOM = ("stub-62", "stub-10", "stub-4", "stub-2")
DOCUMENT_BYTES = int(DOCUMENT.value("largest-document"))
MEDIUM_BYTES, LARGE_BYTES = int(DOCUMENT.value("largest-medium")), int(DOCUMENT.value("smallest-large"))
THREADS = int(DOCUMENT.value("client-threads"))
LOCAL, CLOUD = "localhost", "cloud"
NEAR = (LOCAL, CLOUD)
NONE, LZ4_9, LZ4_17, MYSQL, TABLE = "app-none", "app-lz4-9", "app-lz4-17", "app-mysql", "row-compressed"
_UNCOMPRESS = "uncompress"
_LEAST = 1e-9  # where a range ends that leaves out none
_SLIGHT_LOSS = (-0.25, -_LEAST)  # what counts as losing slightly: our reading
_OWNER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}( \d+ ARRAY)?")
Rates = dict[str, dict[int, float]]  # variant -> round -> rate
# Roles are the ways that the document has. Of Quarry a CODEC is what ROW_FORMAT=COMPRESSED is of InnoDB: the engine compresses by itself.
INNODB = Engine("", "", {key: key for key, method in METHODS.items() if method.engine == "InnoDB"})
QUARRY = Engine(ON_QUARRY, "Quarry", {NONE: "quarry", LZ4_17: "quarry-app-lz4-17", TABLE: "quarry-lz4", "quarry-zstd": "quarry-zstd"})
NDB = Engine(ON_NDB, "NDB", {NONE: "ndb-app-none", LZ4_17: "ndb-app-lz4-17"})
ENGINES = (INNODB, QUARRY, NDB)


def bytes_rate(point: dict) -> float:
    """Uncompressed bytes per second, the metric of this experiment."""
    return point["result"]["uncompressed_bytes_per_second"]


def stored_ratio(point: dict) -> float | None:
    """Bytes of the values over bytes that the client sent to store them."""
    loaded = point.get("loaded")
    return loaded["uncompressed_bytes"] / loaded["sent_bytes"] if loaded else None


def proxy_cpus(point: dict) -> float:
    """Processors of the proxy that makes the link."""
    return point["cpu"].get("proxy_cpus", 0.0)


def own_cpus(point: dict) -> float:
    """Processors of the servers, without that proxy."""
    return server_cpus(point) - proxy_cpus(point)


def server_work(point: dict) -> float:
    """Processors of the server for each uncompressed byte a second."""
    return own_cpus(point) / bytes_rate(point)


def client_work(point: dict) -> float:
    return client_cpus(point) / bytes_rate(point)


def size_text(size_bytes: int) -> str:
    """As the author counts: a MB has 1,000,000 bytes."""
    return f"{size_bytes / 1e6:.2f} MB" if size_bytes >= 1_000_000 else f"{size_bytes / 1000:.0f} KB"


def kind_text(kind: str) -> str:
    """A kind of data as the claims name it: '62 symbols'; the real data as they are."""
    return f"{kind.removeprefix('stub-')} symbols" if kind in RANDOM else kind


def as_published(found: Summary, figure: Figure) -> str:
    """A gain against a published one. Where that was next to nothing it is met by what overlaps it, on either side; beyond that its sign counts."""
    low, high = figure.judged
    if low <= 0 <= high:
        if found.low <= high and found.high >= low:
            return REPRODUCED
        low, high = (low, -_LEAST) if figure.value < 0 else (_LEAST, high)
    return _but_nothing(against(found, (low, high), 0.0), found)


def _but_nothing(state: str, found: Summary) -> str:
    """Over a link many ways come equally fast: what is next to nothing in every round is not the opposite of anything."""
    return WEAKER if state == OPPOSITE and max(abs(found.low), abs(found.high)) < GAIN_TOLERANCE_MIN else state


@dataclass(frozen=True)
class Seen:
    """The rounds of one engine in a run as the rules read them: its ways have the names of their roles."""

    cells: Cells
    parameters: dict

    @classmethod
    def of(cls, run: RunDirectory, engine: Engine) -> Seen:
        roles = {way: role for role, way in engine.roles.items()}
        points = [point | {"variant": roles[point["variant"]]} for point in run.points if point["variant"] in roles]
        return cls(Cells(points, {role: LABELS[way] for role, way in engine.roles.items()}), run.run["parameters"])

    def keys(self, link: str, kinds: Iterable[str] = (REAL,)) -> list[CellKey]:
        return [key for key in self.cells.keys() if key.setting == link and key.operation in kinds and key.threads == THREADS]

    def compared(self, key: CellKey, pair: Iterable[str], state: Callable[[Summary], str], name: str = "", figure=bytes_rate) -> list[Level]:
        """One level, of a gain; none where a variant is missing."""
        variant, over = pair
        ratio = self.cells.ratio(key, variant, over, figure)
        if not ratio:
            return []
        points = self.cells.rounds_of([key], (variant, over))
        return [level(name or f"{self.cells.label(variant)} / {self.cells.label(over)}", state(gain(ratio)), gain(ratio), points, self.parameters)]

    def applications(self, key: CellKey) -> list[str]:
        """The ways to compress in the application that this cell has, and none."""
        return [v for v in self.cells.variants() if v.startswith("app-") and self.cells.rounds(key, v)]

    def rates(self, key: CellKey, variants: Iterable[str]) -> Rates:
        return {v: self.cells.values(key, v, bytes_rate) for v in variants}


# --- who is ahead of whom ---
def _each_round(rates: Rates, pick: Callable[[Iterable[float]], float]) -> dict[int, float]:
    """Of the rounds that all have."""
    rounds = set.intersection(*(set(found) for found in rates.values())) if rates else set()
    return {number: pick([found[number] for found in rates.values()]) for number in sorted(rounds)}


def _ahead(seen: Seen, key: CellKey, these: list[str], of: list[str]) -> list[Level]:
    """
    One level: all of these ahead of the fastest of the others. Mixed where but some are. Shown is the slowest of these over that one.
    """
    if not these or not of:
        return []
    fastest = _each_round(seen.rates(key, of), max)
    slow, fast = (stats.paired_ratio(_each_round(seen.rates(key, these), pick), fastest) for pick in (min, max))
    if not slow or not fast:
        return []
    states = direction(slow, 1.0), direction(fast, 1.0)
    state = states[0] if states[0] == states[1] else OPPOSITE if states[1] == OPPOSITE else MIXED
    points = seen.cells.rounds_of([key], [*these, *of])
    slowest, best = (_by_median(seen, key, variants, pick) for variants, pick in ((these, min), (of, max)))
    return [level(f"{size_text(key.size_bytes)}, {seen.cells.label(slowest)} / {seen.cells.label(best)}", state, gain(slow), points, seen.parameters)]


def _by_median(seen: Seen, key: CellKey, variants: list[str], pick: Callable) -> str:
    found = {v: summary.median for v in variants if (summary := seen.cells.summary(key, v, bytes_rate))}
    return pick(found, key=found.__getitem__)


def _sides(seen: Seen, key: CellKey) -> dict[str, list[str]]:
    """Of a cell: every lz4, none, and the other codecs of the application."""
    here = seen.applications(key)
    lz4 = [v for v in here if v.startswith("app-lz4")]
    return {"lz4": lz4, "none": [v for v in here if v == NONE], "others": [v for v in here if v not in lz4 and v != NONE]}


# kind of a claim -> which side is ahead of which
_ORDERS = {"lz4_over_none": ("lz4", "none"), "lz4_first": ("lz4", "others"), "none_next": ("none", "others")}


def _in_order(seen: Seen, claim: Claim) -> list[Level]:
    """Of medium values the author's charts have lz4 behind none, so that order is judged of large ones."""
    these, of = _ORDERS[claim.judging["kind"]]
    least = LARGE_BYTES if claim.judging["kind"] == "lz4_over_none" else 0
    made = []
    for key in (key for key in seen.keys(claim.judging["link"]) if key.size_bytes >= least):
        sides = _sides(seen, key)
        made += _ahead(seen, key, sides[these], sides[of])
    return made


def _winners(seen: Seen, claim: Claim) -> list[Level]:
    """None and the best lz4: the slower of the two decides."""
    made = []
    for key in seen.keys(claim.judging["link"]):
        lz4, none, others = _sides(seen, key).values()
        if not lz4 or not none or not others:
            continue
        best = _each_round(seen.rates(key, lz4), max)
        both = _each_round({"lz4": best, NONE: seen.rates(key, none)[NONE]}, min)
        if ratio := stats.paired_ratio(both, _each_round(seen.rates(key, others), max)):
            points = seen.cells.rounds_of([key], [*lz4, *none, *others])
            made.append(level(f"{size_text(key.size_bytes)}, both / the others", direction(gain(ratio)), gain(ratio), points, seen.parameters))
    return made


# --- against figures ---
def _ratios(seen: Seen, claim: Claim) -> list[Level]:
    """Of the largest document; all of them are needed."""
    key = CellKey(REAL, DOCUMENT_BYTES, THREADS, claim.judging["link"])
    levels = [seen.compared(key, (variant, over), lambda found, figure=claim.figures[which]: as_published(found, figure))
              for variant, over, which in claim.judging["ratios"]]
    return sum(levels, []) if all(levels) else []


def _row(seen: Seen, claim: Claim, key_of: Callable[[str], CellKey]) -> list[Level]:
    """A level for each figure of a row. key_of: its cell, by the figure's key in the row."""
    made = []
    for figure in claim.figures:
        key, name = key_of(figure.part), kind_text(figure.part)
        made += seen.compared(key, claim.judging["pair"], lambda found, figure=figure: as_published(found, figure), name)
    return made


def _medium(seen: Seen, claim: Claim) -> list[Level]:
    return _row(seen, claim, lambda link: CellKey(REAL, MEDIUM_BYTES, THREADS, link))


def _random(seen: Seen, claim: Claim) -> list[Level]:
    return _row(seen, claim, lambda kind: CellKey(kind, DOCUMENT_BYTES, THREADS, claim.judging["link"]))


def _stored(seen: Seen, claim: Claim) -> list[Level]:
    """
    Once for each alphabet: what was stored is the same in every round and on every link. Data that nothing compresses have a ratio of 1, so a ratio
    is judged by what it is over that.
    """
    made = []
    for figure in claim.figures:
        key = CellKey(figure.part, DOCUMENT_BYTES, THREADS, LOCAL)
        if ratio := seen.cells.summary(key, MYSQL, stored_ratio):
            points, over_one = seen.cells.rounds_of([key], [MYSQL]), replace(figure, low=figure.low - 1, high=figure.high - 1)
            made.append(level(kind_text(key.operation), against(gain(ratio), over_one.judged, 0.0), ratio, points, seen.parameters, "{:.2f}".format))
    return made


# --- by direction ---
def _poor_ratio(seen: Seen, _claim: Claim) -> list[Level]:
    return [one for link in (LOCAL, CLOUD) for one in seen.compared(
        CellKey("stub-62", DOCUMENT_BYTES, THREADS, link), (LZ4_9, NONE), lambda found: _but_nothing(against(found, _SLIGHT_LOSS, 0.0), found), link)]


def _growing_gain(seen: Seen, claim: Claim) -> list[Level]:
    made = []
    for few, many in pairwise(RANDOM):
        gains = [_paired(seen, CellKey(kind, DOCUMENT_BYTES, THREADS, claim.judging["link"])) for kind in (few, many)]
        if ratio := stats.paired_ratio(gains[1], gains[0]):
            keys = [CellKey(kind, DOCUMENT_BYTES, THREADS, claim.judging["link"]) for kind in (few, many)]
            points = seen.cells.rounds_of(keys, (LZ4_9, NONE))
            made.append(level(_pair_text(few, many), direction(gain(ratio)), gain(ratio), points, seen.parameters))
    return made


def _pair_text(few: str, many: str) -> str:
    return f"{kind_text(many)} / {kind_text(few)}"


def _paired(seen: Seen, key: CellKey) -> dict[int, float]:
    """lz4 9 over none, round by round."""
    rates = seen.rates(key, (LZ4_9, NONE))
    return {number: rates[LZ4_9][number] / rates[NONE][number] for number in rates[LZ4_9].keys() & rates[NONE].keys()}


def _moves_work(seen: Seen, claim: Claim) -> list[Level]:
    turned = {REPRODUCED: OPPOSITE, OPPOSITE: REPRODUCED}
    made: list[Level] = []
    for key in seen.keys(claim.judging["link"], (REAL, *RANDOM)):
        name, pair = f"{kind_text(key.operation)} {size_text(key.size_bytes)}", claim.judging["pair"]
        made += seen.compared(key, pair, lambda found: turned.get(direction(found), direction(found)), f"server, {name}", server_work)
        made += seen.compared(key, pair, direction, f"client, {name}", client_work)
    return made


def _more_effort(seen: Seen, claim: Claim) -> list[Level]:
    key = CellKey(REAL, DOCUMENT_BYTES, THREADS, claim.judging["link"])
    return [one for variant in seen.applications(key) if variant != NONE for one in seen.compared(key, (variant, NONE), direction, figure=client_work)]


_KINDS: dict[str, Callable[[Seen, Claim], list[Level]]] = {
    **dict.fromkeys(_ORDERS, _in_order), "winners": _winners, "ratios": _ratios, "medium": _medium,
    "random": _random, "stored": _stored, "poor_ratio": _poor_ratio, "growing_gain": _growing_gain, "moves_work": _moves_work, "more_effort": _more_effort}


def _pairs(claim: Claim) -> list[list]:
    """[variant, over, ...] of a claim that names its ways."""
    judging = claim.judging
    return judging.get("ratios") or ([judging["pair"]] if "pair" in judging else [])


def _parts(claim: Claim) -> list[str]:
    """Names of the levels that a claim speaks of, where it names them."""
    if claim.judging["kind"] in ("medium", "random", "stored"):
        return [kind_text(figure.part) for figure in claim.figures]
    return {"poor_ratio": list(NEAR), "growing_gain": [_pair_text(few, many) for few, many in pairwise(RANDOM)]}.get(claim.judging["kind"], [])


# Kinds of claims that name no pair of ways -> the ways that they take.
_WAYS = {
    "lz4_over_none": "no compression and an lz4 in the application",
    "lz4_first": "an lz4 and another codec in the application",
    "none_next": "no compression and a codec other than lz4 in the application",
    "winners": "no compression, an lz4 and another codec in the application",
    "poor_ratio": f"{LABELS[LZ4_9]}, {LABELS[NONE]}", "growing_gain": f"{LABELS[LZ4_9]}, {LABELS[NONE]}",
    "stored": LABELS[MYSQL],
    "more_effort": "no compression and a codec in the application",
}
_DOCUMENT, _STUBS = f"real data of {size_text(DOCUMENT_BYTES)}", f"random data of {size_text(DOCUMENT_BYTES)}"
# And the values that they take.
_VALUES = {
    **dict.fromkeys(("lz4_first", "none_next", "winners"), "real data"), "lz4_over_none": f"real data from {size_text(LARGE_BYTES)} on",
    **dict.fromkeys(("ratios", "more_effort"), _DOCUMENT), "medium": f"real data of {size_text(MEDIUM_BYTES)}",
    **dict.fromkeys(("random", "stored", "growing_gain", "poor_ratio"), _STUBS), "moves_work": "real or random data"}


def _lacking(claim: Claim) -> str:
    """What this run would have needed."""
    kind, link = claim.judging["kind"], claim.judging.get("link", LOCAL)
    ways = _WAYS.get(kind) or ", ".join(dict.fromkeys(LABELS[v] for pair in _pairs(claim) for v in pair[:2]))
    links = NEAR if kind in ("medium", "poor_ratio") else (link,)
    return f"takes {ways}, of {_VALUES[kind]}, on {' or '.join(LINKS[key].label for key in links)}"


# --- what the server can do with the stored values ---
def _asked(run: RunDirectory, engine: Engine) -> dict[int, dict[str, str | None]]:
    """Of each size that was stored uncompressed and in other ways, what the JSON functions gave, by role: of the last session that asked."""
    said = [pair for session in run.run["sessions"] for pair in session.get("json_value", {}).items()]
    last = {int(size): found for size, found in said if engine.roles[NONE] in found}
    ways = {role: way for role, way in engine.roles.items() if way != _UNCOMPRESS}
    return {size: {role: found[way] for role, way in ways.items() if way in found} for size, found in sorted(last.items())}


def _sides_inside(found: dict[str, str | None]) -> tuple[list[str | None], list[str | None]]:
    """Of application codecs, and of what the server compresses."""
    return ([value for role, value in found.items() if role.startswith("app-") and role != NONE],
            [value for role, value in found.items() if not role.startswith("app-")])


def _usable(run: RunDirectory, claim: Claim, engine: Engine) -> Verdict:
    """Every size counts that was stored in both kinds of ways."""
    finding, asked = engine.finding(claim.finding), _asked(run, engine)
    if not asked:
        return not_measured(finding, "no document was stored uncompressed in this run")
    whole = {size: found for size, found in asked.items() if all(_sides_inside(found))}
    if not whole:
        return not_measured(finding, "takes an application codec and a column that the server compresses")
    text = "; ".join(f"{size_text(size)}: {_given(found, engine)}" for size, found in whole.items())
    points = [p for p in run.points if p["operation"] == REAL and p["variant"] in engine.roles.values()]
    figures = {"json_value": {str(size): found for size, found in whole.items()}}
    return stated(finding, rules.together(map(_state_inside, whole.values())), text, figures, points, run.run["parameters"])


def _state_inside(found: dict[str, str | None]) -> str:
    plain, (codecs, inside) = found[NONE], _sides_inside(found)
    holds = bool(plain and _OWNER.fullmatch(plain)) and not any(codecs) and all(value == plain for value in inside)
    return REPRODUCED if holds else OPPOSITE if all(codecs) else MIXED


def _given(found: dict[str, str | None], engine: Engine) -> str:
    plain = found[NONE]
    given, nothing, other = ([LABELS[engine.roles[role]] for role, value in found.items() if is_of(value)] for is_of in (
        lambda value: value == plain, lambda value: value != plain and value is None, lambda value: value not in (plain, None)))
    more = f"; something else from: {', '.join(other)}" if other else ""
    return f"'{plain}' from: {', '.join(given)}; nothing from: {', '.join(nothing) or '-'}{more}"


# --- verdicts ---
def verdicts(run: RunDirectory) -> list[Verdict]:
    seen = {engine.suffix: Seen.of(run, engine) for engine in ENGINES}
    return [verdict for claim in DOCUMENT.claims.values() for verdict in by_engine.judged(
        [engine for engine in ENGINES if has(claim, engine)], lambda engine, claim=claim: _of_engine(run, seen[engine.suffix], claim, engine),
        lambda here, there, claim=claim: _why_not_here(seen, claim, here, there), ON_QUARRY)]


def _of_engine(run: RunDirectory, seen: Seen, claim: Claim, engine: Engine) -> Verdict:
    if claim.judging["kind"] == "usable":
        return _usable(run, claim, engine)
    levels = _KINDS[claim.judging["kind"]](seen, claim)
    made = rules.verdict(engine.finding(claim.finding), levels, _lacking(claim))
    if not levels:
        return made
    without = ", ".join(part for part in _parts(claim) if part not in {each.name for each in levels})
    more = (f"not measured: {without}" if without else "", _weak_server(run, seen, claim), claim.aside if made.state in by_engine.NOT_SHOWN else "")
    return replace(made, reason="; ".join(filter(None, (made.reason, *more))))


def _weak_server(run: RunDirectory, seen: Seen, claim: Claim) -> str:
    """Whether its processors were the limit: what the ways of a claim took of them. Empty of other links."""
    link = claim.judging.get("link", LOCAL)
    quota = run.run["sessions"][-1].get("weak_server_processors") if LINKS[link].weak_server else None
    if not quota:
        return ""
    key, ways = CellKey(REAL, DOCUMENT_BYTES, THREADS, link), dict.fromkeys(way for pair in _pairs(claim) for way in pair[:2])
    used = [f"{seen.cells.label(way)} {found.median:.2f}" for way in ways if (found := seen.cells.summary(key, way, own_cpus))]
    return f"of its {quota:.2f} processors the server used: {', '.join(used)}"


def _why_not_here(seen: dict[str, Seen], claim: Claim, here: Verdict, there: Verdict) -> str:
    """
    One line with the figure that shows it where NDB shows a gain and Quarry does not: without compression, and without a link, NDB is the slower one.
    Empty where it is not, and of other claims.
    """
    rates = [seen[engine.suffix].cells.summary(CellKey(REAL, DOCUMENT_BYTES, THREADS, LOCAL), NONE, bytes_rate) for engine in (QUARRY, NDB)]
    ours, theirs = (rate.median if rate else 0.0 for rate in rates)
    if not by_engine.is_ndbs_alone(here, there) or "on_quarry" not in claim.judging or not ours > theirs > 0:
        return ""
    return (f"; not as on NDB: {claim.judging['on_quarry']} "
            f"({size_text(DOCUMENT_BYTES)} uncompressed on localhost {ours / 1e6:,.0f} MB/s here, {theirs / 1e6:,.0f} MB/s on NDB)")


def has(claim: Claim, engine: Engine) -> bool:
    """Whether grid.py has what a claim takes in an engine's tables. InnoDB, which was published, has all."""
    judging = claim.judging
    if engine is INNODB:
        return True
    if judging["kind"] == "usable":
        return engine is QUARRY
    ways = {NONE, LZ4_17} if judging["kind"] == "lz4_over_none" else {way for pair in _pairs(claim) for way in pair[:2]}
    return bool(ways) and ways <= engine.roles.keys() and judging.get("link", LOCAL) in NEAR


def rows(found: list[Verdict]) -> list[FindingRow]:
    return by_engine.rows(DOCUMENT, found, _without, columns=(ON_NDB, ON_QUARRY, ""), part_text=kind_text)


def _without(claim: Claim, suffix: str) -> tuple[str, str]:
    (engine,) = (engine for engine in ENGINES if engine.suffix == suffix)
    if not has(claim, engine):
        return "", "not asked: only some of the ways were fetched from this engine's tables"
    return by_engine.NO_POINT_OF_NDB if engine is NDB else (NOT_MEASURED, "this run lacks its ways")
