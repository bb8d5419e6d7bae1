"""
What was published for E5 (published/e5.toml), judged from the raw rounds for each engine: rates and latencies as they are, whatever the hardware;
what limits them; what more drives give; what background work takes.

A claim's `kind` names its function here, which gives the levels it speaks of; rules.py makes the verdict of them. usage.py reads the timelines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from ...design import published
from ...design.cells import CellKey, Cells, client_cpus, throughput
from ...design.published import Claim
from ...design.results import RunDirectory
from ...design.rules import Level, against, gain, level, never_above, reaches, verdict
from ...load.ycsb import PAYLOAD_BYTES
from ...report import stats
from ...report.stats import Summary
from ...report.verdicts import MIXED, OPPOSITE, REPRODUCED, WEAKER, Verdict
from .. import by_engine
from .engines import LIMITED_NETWORK, ONE_PATH, Setting, drive_setting
from .usage import DRIVES, NETWORK, PROCESSORS, background_ratio, device_busy, moved_share, used

DOCUMENT = published.document("e5")
LIMIT_MIN = 1 - published.TOLERANCE  # a limit is used fully; as of every published value, a quarter less counts
DOUBLED_MIN = 1 / 2  # of a doubling of the drives, as a gain: our threshold
LEFT_ALONE_MIN = 0.9  # of throughput beside background work: our threshold
_WORDS = {"load": "load", "published": "mix"}


@dataclass(frozen=True, eq=False)
class Engine(by_engine.Judged):
    """work: its background work, as usage.py knows it."""

    variant: str
    work: str


QUARRY = Engine("", "", "quarry", "gc")
NDB = Engine(by_engine.ON_NDB, "NDB", "target-ndb", "ndb")
INNODB = Engine(by_engine.ON_INNODB, "InnoDB", "innodb", "innodb")
ENGINES = (QUARRY, NDB, INNODB)


# --- figures of a point ---
def payload_rate(point: dict) -> float:
    """Payload bytes per second, read and written."""
    return point["payload_read_bytes_per_second"] + point["payload_written_bytes_per_second"]


def device_probe(run: dict, round_number: int) -> dict | None:
    """The device's own rates in a round; a resumed run may have probed it again."""
    found = [p for session in run["sessions"] for p in session.get("device_probes", []) if p["round"] == round_number]
    return found[-1] if found else None


def _raw_rates(point: dict, run: dict) -> tuple[float, float] | None:
    """Of reads and writes. None where the values are on another device, or it was not probed, or so short on a busy machine that nothing was read."""
    probe = device_probe(run, point["round"]) if DRIVES not in point.get("unseen", []) else None
    rates = (probe["random_read_bytes_per_second"], probe["sequential_write_bytes_per_second"]) if probe else (0.0, 0.0)
    return rates if all(rates) else None


def device_share(point: dict, run: dict) -> float | None:
    """
    The part of each second that the device, at its raw rates (random direct reads, sequential direct writes), would need for the payload
    read and written in it.
    """
    if not (rates := _raw_rates(point, run)):
        return None
    return point["payload_read_bytes_per_second"] / rates[0] + point["payload_written_bytes_per_second"] / rates[1]


def _moved_share(point: dict, run: dict) -> float | None:
    """The same for all that it read and wrote."""
    rates = _raw_rates(point, run)
    return moved_share(point, *rates) if rates else None


def write_latency_ms(point: dict) -> float | None:
    """Mean of the workload's statements that write."""
    for name in ("UPDATE", "INSERT"):
        if name in point["latencies"]:
            return point["latencies"][name]["mean_ms"]
    return None


def read_latency_ms(point: dict) -> float | None:
    return point["latencies"]["READ"]["mean_ms"] if "READ" in point["latencies"] else None


def mean_latency_ms(point: dict) -> float | None:
    """Of all statements of the measured mix together."""
    found = [each for name, each in point["latencies"].items() if name in ("READ", "UPDATE", "INSERT")]
    operations = sum(each["operations"] for each in found)
    return sum(each["mean_ms"] * each["operations"] for each in found) / operations if operations else None


def _latency_ratio(point: dict) -> float | None:
    write, read = write_latency_ms(point), read_latency_ms(point)
    return write / read if write and read else None


_MEASURES: dict[str, Callable[[dict], float | None]] = {
    "rate": throughput, "read": lambda p: p["payload_read_bytes_per_second"] / 1e9, "written": lambda p: p["payload_written_bytes_per_second"] / 1e9}
_TIMES: dict[str, Callable[[dict], float | None]] = {"mean": mean_latency_ms, "read": read_latency_ms, "write": write_latency_ms}


# --- what one engine measured ---
@dataclass(frozen=True)
class Side:
    cells: Cells
    run: dict
    engine: Engine

    @property
    def parameters(self) -> dict:
        return self.run["parameters"]

    def keys(self, operations: tuple[str, ...], wanted: Callable[[str], bool]) -> Iterator[CellKey]:
        """Cells of this engine; wanted: of the setting. The load first."""
        for operation in operations:
            for key in self.cells.keys():
                if key.operation == operation and wanted(key.setting) and self.cells.rounds(key, self.engine.variant):
                    yield key

    def points(self, key: CellKey) -> list[dict]:
        return self.cells.rounds_of([key], [self.engine.variant])

    def summary(self, key: CellKey, figure: Callable[[dict], float | None]) -> Summary | None:
        return self.cells.summary(key, self.engine.variant, figure)

    def level(self, name: str, state: str, measured: Summary, points: list[dict], form: Callable[[float], str]) -> Level:
        return level(name, state, measured, points, self.parameters, form)


def _own_device(setting: str) -> bool:
    return setting == ONE_PATH


def _local(setting: str) -> bool:
    return setting != LIMITED_NETWORK


def _name(key: CellKey) -> str:
    return f"{_WORDS[key.operation]}, {key.setting} x{key.threads}"


# --- levels of a claim ---
def _rate(side: Side, claim: Claim) -> list[Level]:
    made = []
    for key in side.keys((claim.judging["operation"],), _own_device):
        for measure in claim.judging["measures"]:
            if found := side.summary(key, _MEASURES[measure]):
                name = f"{measure} x{key.threads}" if len(claim.judging["measures"]) > 1 else f"x{key.threads}"
                made.append(side.level(name, against(found, claim.figure.judged), found, side.points(key), claim.figure.measured))
    return made


def _time(side: Side, claim: Claim) -> list[Level]:
    return _of_mix(side, claim, _TIMES[claim.judging["measure"]], less_is_better=True)


def _quotient(side: Side, claim: Claim) -> list[Level]:
    return _of_mix(side, claim, _latency_ratio, less_is_better=False)


def _of_mix(side: Side, claim: Claim, figure: Callable[[dict], float | None], less_is_better: bool) -> list[Level]:
    found = {key: measured for key in side.keys(("published",), _own_device) if (measured := side.summary(key, figure))}
    ends = [figure.judged for figure in claim.figures]
    published_range = min(low for low, _high in ends), max(high for _low, high in ends)
    return [side.level(f"x{key.threads}", against(measured, published_range, less_is_better=less_is_better), measured, side.points(key),
                       claim.figure.measured) for key, measured in found.items()]


def most_used(rounds: list[dict[str, float]], what: str) -> str:
    """A state, from what each round used of drives, processors and network."""
    is_first = [max(shares, key=lambda name: shares[name]) == what for shares in rounds]
    if not any(is_first):
        return OPPOSITE
    if not all(is_first):
        return MIXED
    return REPRODUCED if max(shares[what] for shares in rounds) >= LIMIT_MIN else WEAKER


def _limited_by(side: Side, what: str, wanted: Callable[[str], bool]) -> list[Level]:
    made = []
    for key in side.keys(tuple(_WORDS), wanted):
        points = side.points(key)
        # A round without its timeline does not tell.
        rounds = [shares for point in points if {what, PROCESSORS} <= (shares := used(point, side.parameters)).keys()]
        if not rounds:
            continue
        names = [name for name in (DRIVES, NETWORK, PROCESSORS) if all(name in shares for shares in rounds)]
        medians = {name: stats.summarize([shares[name] for shares in rounds]) for name in names}
        one = side.level(f"{_name(key)}, {what}", most_used(rounds, what), medians[what], points, "{:.0%}".format)
        others = [f"{name} {medians[name].median:.0%}" for name in names if name != what]
        made.append(replace(one, text=", ".join([one.text, *others, *_not_asked(side, key)])))
    return made


def _not_asked(side: Side, key: CellKey) -> list[str]:
    """What speaks for another limit and has no say in the claim: what else may have been one, and whether a busy device had room."""
    found, on_drives = [], Setting.of(key.setting).on_drives
    if on_drives and (busy := side.summary(key, device_busy)):
        found.append(f"the device under drives and log busy {busy.median:.0%}")
    if not on_drives and (moved := side.summary(key, lambda point: _moved_share(point, side.run))):
        found.append(f"the device at {moved.median:.0%} of its raw rates")
    if side.parameters.get("apart") and (client := side.summary(key, client_cpus)):
        found.append(f"the client's processor {client.median:.0%}")
    return found


def _limit(side: Side, _claim: Claim) -> list[Level]:
    return _limited_by(side, DRIVES, _local)


def _network(side: Side, _claim: Claim) -> list[Level]:
    return _limited_by(side, NETWORK, lambda setting: setting == LIMITED_NETWORK)


def _processors(side: Side, claim: Claim) -> list[Level]:
    def highest(point: dict) -> float | None:
        return used(point, side.parameters, max).get(PROCESSORS)

    return [side.level(_name(key), never_above(found, claim.figure.high), found, side.points(key), claim.figure.number)
            for key in side.keys(tuple(_WORDS), _local) if (found := side.summary(key, highest))]


def _drives(side: Side, _claim: Claim) -> list[Level]:
    made = []
    for key in side.keys(tuple(_WORDS), lambda setting: _local(setting) and Setting.of(setting).on_drives):
        fewer = replace(key, setting=drive_setting(Setting.of(key.setting).paths // 2))
        ratio = stats.paired_ratio(*(side.cells.values(each, side.engine.variant, throughput) for each in (key, fewer)))
        if ratio and Setting.of(key.setting).paths % 2 == 0:
            state = reaches(ratio, 1 + DOUBLED_MIN)
            points, name = side.points(key) + side.points(fewer), f"{_WORDS[key.operation]}, {key.setting} over {fewer.setting} x{key.threads}"
            made.append(side.level(name, state, gain(ratio), points, stats.human_gain))
    return made


def _checkpoints(side: Side, _claim: Claim) -> list[Level]:
    made = []
    for key in side.keys(tuple(_WORDS), lambda _setting: True):
        if ratio := side.summary(key, lambda point: background_ratio(point, side.engine.work)):
            state = REPRODUCED if ratio.low >= LEFT_ALONE_MIN else WEAKER if ratio.high < LEFT_ALONE_MIN else MIXED
            made.append(side.level(_name(key), state, ratio, side.points(key), "{:.2f}x".format))
    return made


_KINDS: dict[str, Callable[[Side, Claim], list[Level]]] = {
    "rate": _rate, "time": _time, "quotient": _quotient, "limit": _limit, "network": _network, "processors": _processors, "drives": _drives,
    "checkpoints": _checkpoints}
_LACKING = {
    "rate": "the load or the published mix on the machine's own device", "time": "the published mix on the machine's own device",
    "quotient": "the published mix on the machine's own device", "limit": "a block device under the load, or drives with quotas",
    "network": "the limited network", "processors": "the load or the published mix", "drives": "two numbers of drives, one twice the other",
    "checkpoints": "seconds with such work next to seconds without it"}


# --- verdicts ---
def verdicts(run: RunDirectory, labels: dict[str, str]) -> list[Verdict]:
    """Of each claim Quarry's, and of every other engine that was measured."""
    cells = Cells(run.points, labels)
    measured = {point["variant"] for point in run.points}
    here, there = (Side(cells, run.run, engine) for engine in (QUARRY, NDB))
    made = []
    for claim in DOCUMENT.claims.values():
        made += by_engine.judged(ENGINES, lambda engine, claim=claim: _of_engine(Side(cells, run.run, engine), claim),
                                 lambda ours, theirs, claim=claim: _why_not_here(here, there, claim) if by_engine.is_ndbs_alone(ours, theirs) else "",
                                 lacks=lambda engine, claim=claim: engine.variant in measured and not _says_why_not_on_ndb(engine, claim))
    return made


def _says_why_not_on_ndb(engine: Engine, claim: Claim) -> bool:
    return engine is NDB and "lacking_ndb" in claim.judging


def _of_engine(side: Side, claim: Claim) -> Verdict:
    kind = claim.judging["kind"]
    levels = _KINDS[kind](side, claim)
    made = verdict(side.engine.finding(claim.finding), levels, f"this run lacks {_LACKING[kind]}")
    if kind == "network" and any(each.state == REPRODUCED for each in levels):
        made = replace(made, state=REPRODUCED)
    if kind == "rate" and levels and claim.judging["measures"] == ["rate"]:
        made = replace(made, reason=made.reason + _of_device(side, claim))
    return replace(made, reason=made.reason + _refused(side)) if kind == "checkpoints" else made


def _refused(side: Side) -> str:
    """NDB refuses statements while its logs are full, until a checkpoint has ended. A client repeats them, so that no error tells of it."""
    count = sum(point["result"].get("errors", 0) for key in side.keys(tuple(_WORDS), lambda _setting: True) for point in side.points(key))
    return f"; {stats.counted(count, 'execution')} refused and repeated: the wait is in the statements' latency" if count else ""


def _of_device(side: Side, claim: Claim) -> str:
    """What carries over to other hardware, of each level: the share of the device's own rate."""
    said = []
    for key in side.keys((claim.judging["operation"],), _own_device):
        payload, share = side.summary(key, payload_rate), side.summary(key, lambda point: device_share(point, side.run))
        assert payload
        shown = f", {share.median:.0%} of the device's raw rate{share.range_text('{:.0%}'.format)}" if share else ""
        said.append(f"x{key.threads} {stats.human_megabytes(payload.median)}/s{shown}")
    return f"; {PAYLOAD_BYTES:,} bytes each: {'; '.join(said) if len(said) > 1 else said[0].partition(' ')[2]}"


# --- why not here ---
@dataclass(frozen=True)
class Shown:
    """A figure that shows why a claim shows on NDB alone. less: it is less than NDB's, else more; where it is not, it shows nothing."""

    what: str
    form: Callable[[float], str]
    of_point: Callable[[Side, dict], float | None]
    less: bool = False


# By what a claim's `shown_by` names.
_SHOWN = {
    "write": Shown("writes", "{:.2f} ms".format, lambda _side, point: write_latency_ms(point)),
    "read": Shown("reads", "{:.2f} ms".format, lambda _side, point: read_latency_ms(point)),
    "drives": Shown("drives", "{:.0%}".format, lambda side, point: used(point, side.parameters).get(DRIVES), less=True),
    "processors": Shown("processors", "{:.0%}".format, lambda side, point: used(point, side.parameters).get(PROCESSORS)),
    "background": Shown("throughput next to it", "{:.2f}x".format, lambda side, point: background_ratio(point, side.engine.work), less=True),
}


def _why_not_here(here: Side, there: Side, claim: Claim) -> str:
    """
    One line with the figures of both, at the first level of the claim that does not show here and that NDB has, too; else empty. So it is where the
    first of these figures speaks against the reason.
    """
    missing = [each for each in _KINDS[claim.judging["kind"]](here, claim) if each.state in by_engine.NOT_SHOWN]
    for key in dict.fromkeys(_key_of(each) for each in missing):
        found = [(shown, figures) for name in claim.judging.get("shown_by", []) if (figures := _of_both(here, there, key, (shown := _SHOWN[name])))]
        if found and _speaks_for_it(*found[0]):
            said = "; ".join(f"{shown.what} {shown.form(ours)} here, {shown.form(theirs)} on NDB" for shown, (ours, theirs) in found)
            return f"; not as on NDB: {claim.judging['on_quarry']} ({_WORDS[key.operation]} x{key.threads}: {said})"
    return ""


def _key_of(one: Level) -> CellKey:
    point = one.points[0]
    return CellKey(point["operation"], point["size_bytes"], point["threads"], point["setting"])


def _of_both(here: Side, there: Side, key: CellKey, shown: Shown) -> tuple[float, float] | None:
    """Medians."""
    ours, theirs = (side.summary(key, partial(shown.of_point, side)) for side in (here, there))
    return (ours.median, theirs.median) if ours and theirs else None


def _speaks_for_it(shown: Shown, figures: tuple[float, float]) -> bool:
    ours, theirs = figures
    return ours < theirs if shown.less else ours > theirs
