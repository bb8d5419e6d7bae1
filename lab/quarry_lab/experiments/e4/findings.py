"""
The claims of E4's document (published/e4.toml), judged from the raw rounds: for NDB, Quarry and InnoDB; and the questions that it left open.

A claim's `kind` names its function here; `roles` are the ways that it speaks of, the one that is compared first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...design import published
from ...design.cells import CellKey, Cells, client_cpus, server_cpus, throughput
from ...design.published import Claim
from ...design.rules import Level, gain_levels, level, reaches, verdict
from ...report import stats
from ...report.verdicts import (
    ANSWERED,
    FAIR_ROUNDS,
    MIXED,
    NOT_JUDGED,
    NOT_MEASURED,
    OPPOSITE,
    REPRODUCED,
    WEAKER,
    Finding,
    FindingRow,
    Verdict,
    figures_of,
    not_measured,
    stated,
)
from ...run.tables import size_label
from .. import by_engine
from ..by_engine import Engine
from ..table_experiment import answer_gain
from . import space
from .engines import FETCH
from .ways import DAEMON, NDB_API_WAY, SMALL

DOCUMENT = published.document("e4")
BUSY_MIN = 0.9  # of the processors, where a server is said to max them out: our threshold
ALONE_MIN = 0.5  # of a lone request's wall time, which then is the server's processor time more than all else: our threshold
APART_MIN = 2.0  # disk of short values over that of long ones, half of what a fixed size gives: our threshold

_SQL = {"plain": "text", "compressed": "text-compressed", "prepared": "prepared", "connect": "connect"}
QUARRY = Engine("", "", _SQL | {"handlersocket": "handlersocket", "disk": "quarry-disk"})
NDB = Engine(by_engine.ON_NDB, "NDB", {role: f"target-ndb-{key}" for role, key in _SQL.items()} | {"native": NDB_API_WAY, "disk": "target-ndb-disk"})
INNODB = Engine(by_engine.ON_INNODB, "InnoDB",
                {role: f"innodb-{key}" for role, key in _SQL.items()} | {"embedded": "innodb-embedded", "disk": "innodb-disk"})
ENGINES = (QUARRY, NDB, INNODB)

_LARGE = Finding("e4-compress-large", "the compressed protocol for values of 4, 64 and 448 KB (not published)",
                 "ratio of SQL text without compression to with it, at each of these sizes")


@dataclass(frozen=True)
class Question:
    """What a way gives over another one. elsewhere: by an engine's suffix, why it has no such way."""

    finding: Finding
    role: str
    over: str
    elsewhere: Mapping[str, str] = field(default_factory=dict)


QUESTIONS = (
    Question(Finding("e4-prepared", "left open there: what role does the protocol play? Prepared statements, in the binary protocol, over SQL text",
                     "gain in requests/s, small rows"), "prepared", "plain"),
    Question(Finding("e4-handlersocket", "HandlerSocket, MariaDB's own interface next to SQL, over SQL text (not published)",
                     "gain in requests/s, small rows"), "handlersocket", "plain",
             {NDB.suffix: "MySQL has no HandlerSocket", INNODB.suffix: "HandlerSocket is asked on Quarry alone"}),
    Question(Finding("e4-connect", "left open there: what does connecting cost? SQL text, a connection for each request over one that is kept",
                     "gain in requests/s, small rows"), "connect", "plain"),
    Question(Finding("e4-embedded", "left open there: what would an embedded server give? Prepared statements in it, over the same through TCP",
                     "gain in requests/s, small rows (libmariadbd has no Galera and cannot load ENGINE=QUARRY)"),
             "embedded", "prepared",
             {QUARRY.suffix: "libmariadbd cannot load ENGINE=QUARRY; InnoDB's is measured", NDB.suffix: "MySQL 9 has no embedded server"}))


def small(cells: Cells) -> list[CellKey]:
    return [key for key in cells.keys() if key.operation == FETCH and key.size_bytes == SMALL]


# --- kinds of claims ---
def _gain(cells: Cells, claim: Claim, variants: list[str], parameters: dict) -> list[Level]:
    """Of a percentage and two rates that do not quite agree, what lies between counts."""
    variant, over = variants
    figure = replace(claim.figure, high=max(figure.high for figure in claim.figures)) if len(claim.figures) > 1 else claim.figure
    return gain_levels(cells, small(cells), variant, over, figure, parameters)


def _processors(cells: Cells, claim: Claim, variants: list[str], parameters: dict) -> list[Level]:
    """
    With many clients in a closed loop shared processors are full whatever the cause: who fills them counts. A lone client leaves them room, so there
    the server's share of a request's wall time tells what a request is made of. One without the other says nothing.
    """
    plain, *others = variants
    if len({key.threads == 1 for key in small(cells) if cells.rounds(key, plain)}) < 2:
        return []
    made = []
    for key in small(cells):
        judge = _alone if key.threads == 1 else _full
        made += [judge(f"x{key.threads}{', compressed' if variant in others else ''}", points, parameters)
                 for variant in variants if (points := cells.rounds_of([key], [variant]))]
    return made


def daemon_cpus(point: dict) -> float:
    """Of the server that requests are sent to; of NDB without its data nodes."""
    return point["cpu"].get(f"{DAEMON}_cpus", server_cpus(point))


def _rest_cpus(point: dict) -> float:
    """Of the servers behind that one."""
    return server_cpus(point) - daemon_cpus(point)


def _who(points: list[dict]) -> str:
    daemon, rest, client = (stats.summarize([figure(point) for point in points]).median for figure in (daemon_cpus, _rest_cpus, client_cpus))
    return f"server {daemon:.2f}{f', data nodes {rest:.2f}' if rest else ''} and client {client:.2f} processors"


def _by_rounds(holds: Iterable[bool], clients_more: Iterable[bool]) -> str:
    """In every round, in none, in some; opposite where the client takes more in every round."""
    if all(clients_more):
        return OPPOSITE
    found = set(holds)
    return MIXED if len(found) > 1 else REPRODUCED if found == {True} else WEAKER


def _is_clients(point: dict) -> bool:
    return client_cpus(point) > daemon_cpus(point)


def _full(name: str, points: list[dict], parameters: dict) -> Level:
    busy = [(server_cpus(point) + client_cpus(point)) / point["cpu"]["processors"] for point in points]
    ahead = [daemon_cpus(point) > max(client_cpus(point), _rest_cpus(point)) for point in points]
    state = _by_rounds([b >= BUSY_MIN and a for b, a in zip(busy, ahead, strict=True)], map(_is_clients, points))
    one = level(name, state, stats.summarize(busy), points, parameters, "{:.0%}".format)
    return replace(one, text=f"{one.text} of the processors busy, {_who(points)}")


def _alone(name: str, points: list[dict], parameters: dict) -> Level:
    share = [daemon_cpus(point) for point in points]
    state = _by_rounds([each >= ALONE_MIN for each in share], map(_is_clients, points))
    one = level(name, state, stats.summarize(share), points, parameters, "{:.0%}".format)
    return replace(one, text=f"{one.text} of a request's wall time, {_who(points)}")


def _disk(cells: Cells, claim: Claim, variants: list[str], parameters: dict) -> list[Level]:
    """Space is judged by its rounds: other work on the processors, and the time a fill takes, do not change it."""
    short, full = (CellKey(space.OPERATION, size, 1) for size in space.SIZES)
    per_byte = [cells.values(key, variants[0], space.disk_bytes_per_byte) for key in (short, full)]
    ratio = stats.paired_ratio(*per_byte)
    if not ratio:
        return []
    why = f"a verdict takes {FAIR_ROUNDS} rounds" if min(ratio.rounds, parameters["rounds"]) < FAIR_ROUNDS else ""
    each = ", ".join(f"{size_label(key.size_bytes)} {stats.summarize(list(values.values())).median:.2f}"
                     for key, values in zip((short, full), per_byte, strict=True))
    over = f"{ratio.median:.2f}{ratio.range_text('{:.2f}'.format)}"
    text = f"bytes of disk for each payload byte, by size of the values: {each}; one over the other {over}"
    return [Level("disk", NOT_JUDGED if why else reaches(ratio, APART_MIN), text, ratio, cells.rounds_of((short, full), variants), why)]


_KINDS: dict[str, Callable[[Cells, Claim, list[str], dict], list[Level]]] = {"gain": _gain, "processors": _processors, "disk": _disk}


# --- verdicts ---
def verdicts(cells: Cells, parameters: dict) -> list[Verdict]:
    found = []
    for claim in DOCUMENT.claims.values():
        found += by_engine.judged(ENGINES, lambda engine, claim=claim: _of_engine(cells, claim, engine, parameters),
                                  lambda here, there, claim=claim: _why_not_here(cells, claim, here, there))
    found += by_engine.judged(ENGINES, lambda engine: _large_verdict(cells, engine, parameters))
    for question in QUESTIONS:
        found += by_engine.judged(ENGINES, lambda engine, question=question: _answer(cells, engine, question, parameters))
    return found


def has(claim: Claim, engine: Engine) -> bool:
    return all(role in engine.roles for role in claim.judging["roles"])


def _of_engine(cells: Cells, claim: Claim, engine: Engine, parameters: dict) -> Verdict:
    finding, judging = engine.finding(claim.finding), claim.judging
    if judging["kind"] == "lacking" or not has(claim, engine):
        return not_measured(finding, judging.get("lacking") or judging["elsewhere"])
    variants = [engine.roles[role] for role in judging["roles"]]
    made = verdict(finding, _KINDS[judging["kind"]](cells, claim, variants, parameters), _lacking(cells, claim, variants))
    work = _work_seen(cells, variants) if judging["kind"] == "gain" and "compressed" in judging["roles"] else ""
    return replace(made, reason=f"{made.reason}; {work}") if work else made


def _lacking(cells: Cells, claim: Claim, variants: list[str]) -> str:
    needed = {"processors": ", with one client and with many", "disk": ", of short and of long values"}.get(claim.judging["kind"], " of small rows")
    return f"this run lacks {' or '.join(cells.label(variant) for variant in variants)}{needed}"


def _why_not_here(cells: Cells, claim: Claim, here: Verdict, there: Verdict) -> str:
    """One line with a figure where NDB shows a claim and Quarry does not; else empty."""
    if not by_engine.is_ndbs_alone(here, there) or "on_quarry" not in claim.judging:
        return ""
    ours, theirs = (_SEEN[claim.judging["kind"]](cells, [engine.roles[role] for role in claim.judging["roles"]]) for engine in (QUARRY, NDB))
    return f"; not as on NDB: {claim.judging['on_quarry']} (here {ours}; on NDB {theirs})"


# --- the figures that show why; of variants that have a verdict ---
def _request_us(point: dict) -> float:
    return 1e6 * (server_cpus(point) + client_cpus(point)) / throughput(point)


def _work_seen(cells: Cells, variants: list[str]) -> str:
    """What a request costs the processors, and how much more of it compression takes."""
    found = []
    for key in small(cells):
        plain, compressed = (cells.summary(key, variant, _request_us) for variant in variants)
        if plain and compressed:
            found.append(f"x{key.threads} {plain.median:.0f} µs of processor time a request, {compressed.median - plain.median:+.0f} with compression")
    return "; ".join(found)


def _processors_seen(cells: Cells, variants: list[str]) -> str:
    return "; ".join(f"x{key.threads} {_who(points)}" for key in small(cells) if (points := cells.rounds_of([key], variants[:1])))


def _disk_seen(cells: Cells, variants: list[str]) -> str:
    found = cells.summary(CellKey(space.OPERATION, space.SIZES[0], 1), variants[0], space.disk_bytes_per_byte)
    return f"{found.median:.2f} bytes of disk for each payload byte of values of {size_label(space.SIZES[0])}" if found else ""


_SEEN: dict[str, Callable[[Cells, list[str]], str]] = {"gain": _work_seen, "processors": _processors_seen, "disk": _disk_seen}


def _large_verdict(cells: Cells, engine: Engine, parameters: dict) -> Verdict:
    finding, pair = engine.finding(_LARGE), (engine.roles["plain"], engine.roles["compressed"])
    found = cells.ratios([k for k in cells.keys() if k.operation == FETCH and k.size_bytes > SMALL], *pair)
    if not found:
        return not_measured(finding, "no larger values in this run")
    text = "; ".join(f"{size_label(k.size_bytes)} x{k.threads}: {r.median:.2f} times the rate{r.range_text('{:.2f}'.format)} without it"
                     for k, r in found.items())
    figures = {f"ratio_{k.size_bytes}_x{k.threads}": figures_of(r) for k, r in found.items()}
    return stated(finding, ANSWERED, text, figures, cells.rounds_of(found, pair), parameters)


def _answer(cells: Cells, engine: Engine, question: Question, parameters: dict) -> Verdict:
    mine = engine.finding(question.finding)
    if question.role not in engine.roles:
        return not_measured(mine, question.elsewhere[engine.suffix])
    return answer_gain(cells, mine, small(cells), engine.roles[question.role], engine.roles[question.over], parameters)


# --- the table ---
def rows(found: list[Verdict]) -> list[FindingRow]:
    return by_engine.rows(DOCUMENT, found, _without, _unasked)


def _without(claim: Claim, suffix: str) -> tuple[str, str]:
    (engine,) = (engine for engine in ENGINES if engine.suffix == suffix)
    if claim.judging["kind"] == "lacking":
        return NOT_MEASURED, claim.judging["lacking"]
    if not has(claim, engine):
        return "", claim.judging["elsewhere"]
    return _not_in_run(suffix)


def _unasked(name: str, suffix: str) -> tuple[str, str]:
    elsewhere = {question.finding.id: question.elsewhere for question in QUESTIONS}
    if suffix in elsewhere.get(name, {}):
        return "", elsewhere[name][suffix]
    return _not_in_run(suffix)


def _not_in_run(suffix: str) -> tuple[str, str]:
    return by_engine.NO_POINT_OF_NDB if suffix == NDB.suffix else (NOT_MEASURED, "this run lacks its ways")
