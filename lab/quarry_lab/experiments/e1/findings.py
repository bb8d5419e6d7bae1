"""
The claims of E1's document (published/e1.toml), judged from the raw rounds, for Quarry and for every other engine that has the variants a claim compares.

A claim's `kind` names its function here, which gives the levels it speaks of; rules.py makes the verdict of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ...design import published
from ...design.cells import CellKey, Cells, memory_ratio, p95_ms, throughput, transactions
from ...design.published import GAIN_TOLERANCE_MIN, Claim
from ...design.rules import Level, against, direction, gain, level, no_difference, reaches, together, verdict
from ...design.variants import KIB, SWEEP_KIB, sweep_key
from ...report import stats
from ...report.stats import Summary
from ...report.verdicts import MIXED, NOT_JUDGED, OPPOSITE, REPRODUCED, STRONGER, WEAKER, Finding, Verdict, figures_of, not_measured, stated
from ...run.tables import size_label
from .. import by_engine
from .beside import AT_MOST_USERS, floor_note, why_not_here

DOCUMENT = published.document("e1")
HEAD, INLINE, VARBINARY, HEAD_4M, INLINE_4M = "quarry-head", "quarry-inline", "quarry-varbinary", "quarry-head-4m", "quarry-inline-4m"
OWN, OWN_INLINE, OWN_4M, OWN_INLINE_4M = "quarry-default", "quarry-default-inline", "quarry-default-4m", "quarry-default-inline-4m"
SWEEP_SIZE, SWEEP_THREADS = 448 * KIB, 32
LINK_MBITS = 150  # ours: half of what values of 24 KB take of each link of NDB on two processors
LIMITED_LINKS = f"links of {LINK_MBITS} Mbit/s"  # a cell's setting: each way between each data node and each SQL node
HARM_MIN = 0.05  # of an excessive batch: our threshold
Measure = Callable[[dict], float | None]
_ROLES = {"default": HEAD, "inline": INLINE, "binary": VARBINARY, "default_4m": HEAD_4M, "inline_4m": INLINE_4M}


@dataclass(frozen=True, eq=False)
class Engine(by_engine.Engine):
    """sweep: what stands for 'quarry' in the keys of swept variants, empty where there are none."""

    sweep: str = ""


QUARRY = Engine("", "", _ROLES, "quarry")
NDB = Engine(by_engine.ON_NDB, "NDB", {role: "target-" + key.replace("quarry", "ndb") for role, key in _ROLES.items()}, "target-ndb")
# VARBINARY is the same table with either defaults, and stands with those of NDB.
OWN_DEFAULTS = Engine(by_engine.OWN, "Quarry with its own defaults",
                      {"default": OWN, "inline": OWN_INLINE, "default_4m": OWN_4M, "inline_4m": OWN_INLINE_4M})
INNODB = Engine(by_engine.ON_INNODB, "InnoDB", {"default": "innodb", "binary": "innodb-varbinary"})
ENGINES = (QUARRY, OWN_DEFAULTS, NDB, INNODB)


@dataclass(frozen=True)
class Side:
    """What one engine measured in one run."""

    cells: Cells
    parameters: dict
    roles: dict[str, str]

    def keys(self, sizes_kib: Iterable[int], users: Iterable[int] = (), setting: str = "") -> list[CellKey]:
        wanted, levels = {size * KIB for size in sizes_kib}, set(users)
        plain = [k for k in self.cells.keys() if k.operation == "mix" and k.setting == setting]
        return [k for k in plain if k.size_bytes in wanted and (not levels or k.threads in levels)]

    def pairs(self, claim: Claim) -> Iterator[tuple[str, str, str]]:
        """Variant, the one that it is over, and both in the document's words; of the pairs that this engine has."""
        for role, over in claim.judging["pairs"]:
            if role in self.roles and over in self.roles:
                yield self.roles[role], self.roles[over], f"{word(role)} / {word(over)}"

    def of(self, claim: Claim) -> list[tuple[str, str]]:
        return [(self.roles[role], word(role)) for role in claim.judging["roles"] if role in self.roles]

    def compared(self, claim: Claim, keys: list[CellKey], state: Callable[[Summary], str], only: str = "", note: str = "") -> list[Level]:
        """A level for every cell and pair (of `only` alone); `state` is given the gain, of latency how many times sooner. note: ends a level's name."""
        made, is_p95 = [], _is_p95(claim)
        for variant, over, words in (pair for pair in self.pairs(claim) if only in ("", pair[2])):
            for key in keys:
                ratio = self.cells.ratio(key, over, variant, p95_ms) if is_p95 else self.cells.ratio(key, variant, over)
                if ratio:
                    points = self.cells.rounds_of([key], (variant, over))
                    made.append(level(self._name(claim, key, words, is_p95) + note, state(gain(ratio)), gain(ratio), points, self.parameters))
        return made

    def _name(self, claim: Claim, key: CellKey, words: str, is_p95: bool) -> str:
        """As short as it can be: what all levels of the claim share is in its rule."""
        parts = [f"{key.size_bytes // KIB} KB"] if "sizes" in claim.judging else []
        parts += [words] if len(claim.judging["pairs"]) > 1 else []
        return " ".join([*parts, f"x{key.threads}"]) + (", " + key.setting if key.setting else "") + (" sooner" if is_p95 else "")

    def growth(self, size_kib: int, variant: str, few: int, many: int, figure: Measure = throughput) -> tuple[Summary, list[dict]] | None:
        """Throughput, or another figure, of `many` users over that of `few`, as a gain, and the points; None where one is missing."""
        before, after = (CellKey("mix", size_kib * KIB, users) for users in (few, many))
        ratio = stats.paired_ratio(self.cells.values(after, variant, figure), self.cells.values(before, variant, figure))
        return (gain(ratio), self.cells.rounds_of((before, after), [variant])) if ratio else None

    def last_step(self, size_kib: int, variant: str, users: float = float("inf")) -> tuple[int, int, Summary, list[dict]] | None:
        """The two most users that this variant has, of at most so many, its growth from one to the other, and the points; None without two."""
        found = [key.threads for key in self.keys([size_kib]) if key.threads <= users and self.cells.rounds(key, variant)]
        step = self.growth(size_kib, variant, found[-2], found[-1]) if len(found) > 1 else None
        return (found[-2], found[-1], step[0], step[1]) if step else None

    def grown(self, claim: Claim, few: int, many: int, state: Callable[[Summary], str]) -> list[Level]:
        made, figure = [], p95_ms if _is_p95(claim) else throughput
        for variant, words in self.of(claim):
            if found := self.growth(claim.judging["size"], variant, few, many, figure):
                made.append(level(f"{words} {few} to {many}", state(found[0]), found[0], found[1], self.parameters))
        return made


def _is_p95(claim: Claim) -> bool:
    return claim.judging.get("measure") == "p95"


def word(role: str) -> str:
    return {"binary": "VARBINARY", "default_4m": "default 4 MB", "inline_4m": "inline 4 MB"}.get(role, role)


def _sizes(claim: Claim) -> list[int]:
    return claim.judging["sizes"] if "sizes" in claim.judging else [claim.judging["size"]]


# --- kinds of claims ---
def _gain(side: Side, claim: Claim) -> list[Level]:
    below = claim.judging.get("users_below", float("inf"))
    keys = [key for key in side.keys(_sizes(claim), claim.judging.get("users", ())) if key.threads < below]
    return side.compared(claim, keys, lambda found: against(found, claim.figure.judged, 0.0))


def _direction(side: Side, claim: Claim) -> list[Level]:
    return side.compared(claim, side.keys(_sizes(claim), claim.judging.get("users", ())), direction)


def _slight(side: Side, claim: Claim) -> list[Level]:
    """More than nothing, less than the least gain that the document gives as a range."""
    most, least = claim.figure.low, 1e-9
    return side.compared(claim, side.keys(_sizes(claim), claim.judging["users"]), lambda found: against(found, (least, most), 0.0))


def _no_difference(side: Side, claim: Claim) -> list[Level]:
    apart = claim.figures[-1].low
    return side.compared(claim, side.keys(_sizes(claim), claim.judging["users"]), lambda found: no_difference(found, apart))


def _converges(side: Side, claim: Claim) -> list[Level]:
    """No difference, of a pair that has one with fewer users: what is alike from the first users on has nothing to converge from."""
    made: list[Level] = []
    for _variant, _over, words in side.pairs(claim):
        fewer = [key for key in side.keys(_sizes(claim)) if key.threads < min(claim.judging["users"])]
        before, after = (side.compared(claim, keys, lambda found: no_difference(found, claim.figures[-1].low), words)
                         for keys in (fewer, side.keys(_sizes(claim), claim.judging["users"])))
        judged = {each.state for each in before} - {NOT_JUDGED}
        nothing = judged == {REPRODUCED}
        made += [replace(each, state=WEAKER, text=f"{each.text}, as with fewer users") if nothing and each.state == REPRODUCED else each for each in after]
    return made


def _same(side: Side, claim: Claim) -> list[Level]:
    most = int(claim.figure.value)
    return side.grown(claim, most // 2, most, no_difference)


def _reduced(side: Side, claim: Claim) -> list[Level]:
    most = int(claim.figure.value)
    return side.grown(claim, most // 2, most, lambda found: {REPRODUCED: OPPOSITE, OPPOSITE: REPRODUCED}.get(direction(found), direction(found)))


def _rises(side: Side, claim: Claim) -> list[Level]:
    most = int(claim.figure.value)
    return side.grown(claim, most // 2, most, direction)


def _growth(side: Side, claim: Claim) -> list[Level]:
    """Every step of every variant that has them all."""
    made: list[Level] = []
    for variant, words in side.of(claim):
        steps = [(few, many, claim.figures[which], side.growth(claim.judging["size"], variant, few, many)) for few, many, which in claim.judging["steps"]]
        if all(found for *_step, found in steps):
            made += [level(f"{words} {few} to {many}", against(found[0], figure.judged, 0.0), found[0], found[1], side.parameters)
                     for few, many, figure, found in steps if found]
    return made


def _saturation(side: Side, claim: Claim) -> list[Level]:
    """No more growth, and latency as the cause. A variant that did not grow before either is bounded with fewer users already: that is more."""
    users, healthy, bounded = claim.figures
    most = int(users.value)
    key = CellKey("mix", claim.judging["size"] * KIB, most)
    made = []
    for variant, words in side.of(claim):
        found, late = side.growth(claim.judging["size"], variant, most // 2, most), side.cells.summary(key, variant, p95_ms)
        if found and late:
            grown, limit = found[0], bounded.judged[1]
            holds = grown.high <= limit and late.low > healthy.value
            state = REPRODUCED if holds else WEAKER if grown.low > limit or late.high <= healthy.value else MIXED
            before = side.last_step(claim.judging["size"], variant, most // 2)
            if before and before[2].high <= limit and state == REPRODUCED:
                state = STRONGER
            one = level(f"{words} {most // 2} to {most}", state, grown, found[1], side.parameters)
            text = f"{one.text}, p95 {stats.human_ms(late.median)}{late.range_text(stats.human_ms)}"
            made.append(replace(one, text=text + (f", {before[0]} to {before[1]} {stats.human_gain(before[2].median)}" if before else "")))
    return made


def per_server(point: dict) -> float:
    """Throughput of each SQL server that has clients: NDB has several, and they share the load."""
    return throughput(point) / max(1, len(point.get("nodes", {}).get("statements", {})))


def _cap(side: Side, claim: Claim) -> list[Level]:
    """The highest of all variants and levels, of a variant whose last users gain nothing: that is what a cap is."""
    _all, per_node, bounded = claim.figures
    keys, limit = side.keys(_sizes(claim)), bounded.judged[1]
    rates = [(rate, key, variant, words) for variant, words in side.of(claim) for key in keys if (rate := side.cells.summary(key, variant, per_server))]
    if not rates:
        return []
    rate, key, variant, words = max(rates, key=lambda found: found[0].median)
    last = side.last_step(claim.judging["size"], variant)
    if not last:
        return []
    few, many, grown, points = last
    state = WEAKER if grown.low > limit else MIXED if grown.high > limit else against(rate, per_node.judged)
    points += [point for point in side.cells.rounds_of([key], [variant]) if key.threads not in (few, many)]
    one = level(f"highest {words} x{key.threads}", state, rate, points, side.parameters, per_node.measured)
    return [replace(one, text=f"{one.text}, {few} to {many} users {stats.human_gain(grown.median)}")]


def _where(side: Side, claim: Claim, least: float, most: float) -> list[Level]:
    """The levels, those with limited links among them, at which the default variant's own latency is between these."""
    made: list[Level] = []
    for _variant, over, words in side.pairs(claim):
        for key in side.keys(_sizes(claim)) + side.keys(_sizes(claim), setting=LIMITED_LINKS):
            late = side.cells.summary(key, over, p95_ms)
            if late and least <= late.median <= most:
                made += side.compared(claim, [key], direction, words, f" at p95 {stats.human_ms(late.median)}")
    return made


def _acceptable(side: Side, claim: Claim) -> list[Level]:
    return _where(side, claim, 0, claim.figure.high)


def _strained(side: Side, claim: Claim) -> list[Level]:
    """
    The other way round: parts ahead is what was published. One level may show it, so a level takes more than chance gives: what is within two points is
    no difference here either.
    """
    turned = {REPRODUCED: OPPOSITE, OPPOSITE: REPRODUCED}
    made = [replace(each, state=turned.get(each.state, each.state)) for each in _where(side, claim, claim.figure.low, claim.figure.high)]
    return [replace(each, state=WEAKER) if each.state == REPRODUCED and each.measured.median > -GAIN_TOLERANCE_MIN else each for each in made]


def sometimes(levels: list[Level], mainly: str) -> str:
    """Of a claim that something is so at some levels, mainly at those whose name begins so."""
    shown = [each for each in levels if each.state == REPRODUCED]
    if shown:
        return REPRODUCED if any(each.name.startswith(mainly) for each in shown) else MIXED
    judged = {each.state for each in levels} - {NOT_JUDGED}
    return together(judged) if judged <= {OPPOSITE} else WEAKER


def _many_users(side: Side, claim: Claim) -> list[Level]:
    """Latency at the most users at each size, beyond what is healthy, over users at each size, and over sizes at the most users."""
    most, healthy = int(claim.figure.value), claim.figures[1]
    made: list[Level] = []
    for variant, _words in side.of(claim):
        late = {size: CellKey("mix", size * KIB, most) for size in _sizes(claim)}
        late = {size: key for size, key in late.items() if side.cells.values(key, variant, p95_ms)}
        if len(late) < 2:
            continue
        for size, key in late.items():
            if found := side.cells.summary(key, variant, p95_ms):
                state = REPRODUCED if found.low > healthy.value else WEAKER if found.high <= healthy.value else MIXED
                made.append(level(f"{size} KB x{most}", state, found, side.cells.rounds_of([key], [variant]), side.parameters, stats.human_ms))
        steps = [(f"{size} KB, {most} / 32 users", key, replace(key, threads=32)) for size, key in late.items()]
        steps += [(f"{size} / {before} KB x{most}", late[size], late[before]) for before, size in zip(list(late), list(late)[1:], strict=False)]
        for name, key, base in steps:
            if ratio := stats.paired_ratio(side.cells.values(key, variant, p95_ms), side.cells.values(base, variant, p95_ms)):
                made.append(level(name, direction(ratio, 1.0), ratio, side.cells.rounds_of((key, base), [variant]), side.parameters, "{:.2f}x".format))
    return made


def _memory(side: Side, claim: Claim) -> list[Level]:
    """Once a size, at the first level with most rounds: memory is that of the tables, whatever the users."""
    made = []
    for variant, over, words in side.pairs(claim):
        keys = side.keys(_sizes(claim))
        for size in _sizes(claim):
            ratios = side.cells.ratios((key for key in keys if key.size_bytes == size * KIB), variant, over, memory_ratio)
            if ratios:
                key, ratio = max(ratios.items(), key=lambda found: found[1].rounds)
                points = side.cells.rounds_of([key], (variant, over))
                made.append(level(f"{size} KB {words}", direction(ratio, 1.0), ratio, points, side.parameters, "{:.2f}x".format))
    return made


def link_loads(point: dict) -> dict[str, int]:
    """By data node: bytes sent over its links to SQL nodes."""
    loads: dict[str, int] = {}
    for link, sent in point.get("nodes", {}).get("sent_bytes", {}).items():
        node = link.split()[0]
        loads[node] = loads.get(node, 0) + sent
    return loads


def thread_loads(point: dict) -> dict[str, int]:
    """By thread, microseconds of the LDM threads of all data nodes; nodes of few processors have none of their own, and then of all threads."""
    threads = point.get("nodes", {}).get("thread_us", {})
    return {name: used for name, used in threads.items() if "ldm" in name} or threads


def of_transaction(loads: dict[str, int], point: dict) -> float | None:
    """Of the busiest."""
    return max(loads.values()) / transactions(point) if loads else None


def share_of_busiest(loads: dict[str, int]) -> float | None:
    total = sum(loads.values())
    return max(loads.values()) / total if total else None


def _thread_kind(points: list[dict]) -> str:
    """The busiest thread's, as '2 main 0' has it."""
    loads = thread_loads(points[0])
    return max(loads, key=loads.__getitem__).split()[1]


def _spread(side: Side, claim: Claim) -> list[Level]:
    """
    At the most users that both have: what the busiest link and the busiest thread do for a transaction, default over inline; less is relief. Where all do
    less alike, the load is smaller, and nothing is spread.
    """
    made: list[Level] = []
    for variant, over, _words in side.pairs(claim):
        for what, loads_of in (("links", link_loads), ("threads", thread_loads)):
            ratios = side.cells.ratios(side.keys(_sizes(claim)), over, variant, lambda point, of=loads_of: of_transaction(of(point), point))
            if not ratios:
                continue
            key, ratio = list(ratios.items())[-1]
            points = side.cells.rounds_of([key], (variant, over))
            share = side.cells.ratio(key, over, variant, lambda point, of=loads_of: share_of_busiest(of(point)))
            state = {REPRODUCED: OPPOSITE, OPPOSITE: REPRODUCED}.get(direction(ratio, 1.0), direction(ratio, 1.0))
            alike = state == REPRODUCED and (not share or share.median > 1 - GAIN_TOLERANCE_MIN)
            name = f"{what if loads_of is link_loads else f'{_thread_kind(points)} threads'} x{key.threads}"
            one = level(name, WEAKER if alike else state, ratio, points, side.parameters, "{:.2f}x".format)
            made.append(replace(one, text=f"{one.text}, alike on all nodes") if alike else one)
    return made


_KINDS: dict[str, Callable[[Side, Claim], list[Level]]] = {
    "gain": _gain, "direction": _direction, "slight": _slight, "no_difference": _no_difference, "converges": _converges, "same": _same,
    "reduced": _reduced, "rises": _rises, "growth": _growth, "saturation": _saturation, "cap": _cap, "acceptable": _acceptable, "strained": _strained,
    "many_users": _many_users, "memory": _memory, "spread": _spread}


# --- verdicts ---
def verdicts(cells: Cells, parameters: dict) -> list[Verdict]:
    """Of each claim Quarry's, and of every other engine that has a level of it."""
    found = []
    for claim in DOCUMENT.claims.values():
        found += _of_claim(cells, claim, parameters)
    return found


def _of_claim(cells: Cells, claim: Claim, parameters: dict) -> list[Verdict]:
    kind = claim.judging["kind"]
    if kind == "lacking":
        return [not_measured(claim.finding, claim.judging["lacking"])]
    return by_engine.judged(ENGINES, lambda engine: _of_engine(cells, claim, engine, parameters),
                            lambda here, there: why_not_here(cells, claim, here, there, QUARRY.roles, NDB.roles))


def _of_engine(cells: Cells, claim: Claim, engine: Engine, parameters: dict) -> Verdict:
    kind, finding = claim.judging["kind"], engine.finding(claim.finding)
    if kind == "sweep":
        return _excessive_verdict(cells, finding, engine, parameters)
    levels = _KINDS[kind](Side(cells, parameters, engine.roles), claim)
    made = verdict(finding, levels, _lacking(claim))
    if levels and kind == "strained":
        made = replace(made, state=sometimes(levels, f"{claim.judging['mainly']} KB"))
    return replace(made, reason=made.reason + floor_note(cells, levels))


def _lacking(claim: Claim) -> str:
    """What this run would have needed."""
    judging = claim.judging
    if "needs" in judging:
        return judging["needs"]
    if judging["kind"] in ("acceptable", "strained"):
        return f"no client level of this run has both variants and such a latency ({claim.figure.text})"
    roles = [word(role) for role in judging.get("roles", [])] or [" and ".join(map(word, pair)) for pair in judging["pairs"]]
    levels = judging.get("users") or sorted({users for few, many, _which in judging.get("steps", []) for users in (few, many)})
    if judging["kind"] in AT_MOST_USERS:
        most = int(claim.figure.value)
        levels = [32 if judging["kind"] == "many_users" else most // 2, most]
    users = f" with {', '.join(map(str, levels))} users" if levels else ""
    some = " at two client levels" if judging["kind"] == "cap" else " at the same client level"
    some += f" of fewer than {judging['users_below']} users" if "users_below" in judging else ""
    return f"this run lacks {' or '.join(roles)} of {', '.join(map(str, _sizes(claim)))} KB{users or some}"


def sweep(cells: Cells, engine: Engine = QUARRY) -> dict[int, str]:
    """Batch bytes -> variant, of what this run measured at the sweep's cell."""
    if not engine.sweep:
        return {}
    known = {64 * KIB: HEAD, 4096 * KIB: HEAD_4M, **{kib * KIB: sweep_key(kib) for kib in SWEEP_KIB}}
    key = CellKey("mix", SWEEP_SIZE, SWEEP_THREADS)
    found = {size: variant.replace("quarry", engine.sweep) for size, variant in sorted(known.items())}
    return {size: variant for size, variant in found.items() if cells.rounds(key, variant)}


def _excessive_verdict(cells: Cells, finding: Finding, engine: Engine, parameters: dict) -> Verdict:
    key, by_size = CellKey("mix", SWEEP_SIZE, SWEEP_THREADS), sweep(cells, engine)
    if len(by_size) < 3:
        return not_measured(finding, "no sweep of the batch bytes in this run")
    summaries = {size: cells.summary(key, variant, throughput) for size, variant in by_size.items()}
    largest = max(summaries)
    best = max((size for size in summaries if size != largest), key=lambda size: summaries[size].median)
    text = ", ".join(f"{size_label(size)}: {stats.human_count(s.median)}/s" for size, s in summaries.items())
    ratio = cells.ratio(key, by_size[largest], by_size[best])
    assert ratio
    state = OPPOSITE if ratio.low > 1 else reaches(ratio, 1 - HARM_MIN)
    figures = {"largest_over_best": figures_of(ratio), "best_batch_bytes": best}
    return stated(finding, state, text, figures, cells.rounds_of([key], by_size.values()), parameters)
