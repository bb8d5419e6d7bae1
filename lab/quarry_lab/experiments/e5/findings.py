"""What was published for E5 (published/e5.toml), judged from the raw rounds: rates and latencies as they are, whatever the hardware."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...design import published, rules
from ...design.cells import CellKey, Cells, throughput
from ...design.results import RunDirectory
from ...load.ycsb import PAYLOAD_BYTES
from ...report import stats
from ...report.verdicts import OPPOSITE, REPRODUCED, WEAKER, Verdict, figures_of, not_measured

DOCUMENT = published.document("e5")
ONE_PATH = "1 path"  # the setting of every engine
DEVICE_BUSY_MIN = 0.90  # where a device is said to be the limit: our threshold
_LACKING = "the published mix on QUARRY"


def payload_rate(point: dict) -> float:
    """Payload bytes per second, read and written."""
    return point["payload_read_bytes_per_second"] + point["payload_written_bytes_per_second"]


def device_probe(run: dict, round_number: int) -> dict | None:
    """The device's own rates in a round; a resumed run may have probed it again."""
    found = [p for session in run["sessions"] for p in session.get("device_probes", []) if p["round"] == round_number]
    return found[-1] if found else None


def device_share(point: dict, run: dict) -> float | None:
    """
    The part of each second that the device, at its raw rates (random direct reads, sequential direct writes), would need for the payload
    read and written in it.
    """
    probe = device_probe(run, point["round"])
    if probe is None:
        return None
    return (point["payload_read_bytes_per_second"] / probe["random_read_bytes_per_second"]
            + point["payload_written_bytes_per_second"] / probe["sequential_write_bytes_per_second"])


def write_latency_ms(point: dict) -> float | None:
    """Mean of the workload's statements that write."""
    for name in ("UPDATE", "INSERT"):
        if name in point["latencies"]:
            return point["latencies"][name]["mean_ms"]
    return None


def read_latency_ms(point: dict) -> float | None:
    return point["latencies"]["READ"]["mean_ms"] if "READ" in point["latencies"] else None


def samples_under_load(point: dict) -> list[dict]:
    """The timeline's samples of the measured interval."""
    until = point["measured_until"] - point["timeline_started"]
    return [s for s in point["timeline"] if until - point["result"]["interval_seconds"] <= s["second"] <= until]


def _key(cells: Cells, operation: str) -> CellKey | None:
    """Quarry's cell on one path, with the most threads."""
    keys = [k for k in cells.keys() if k.operation == operation and k.setting == ONE_PATH and cells.rounds(k, "quarry")]
    return max(keys, key=lambda k: k.threads) if keys else None


def mean_latency_ms(point: dict) -> float | None:
    """Of all statements of the measured mix together."""
    found = [each for name, each in point["latencies"].items() if name in ("READ", "UPDATE", "INSERT")]
    operations = sum(each["operations"] for each in found)
    return sum(each["mean_ms"] * each["operations"] for each in found) / operations if operations else None


def _latency_ratio(point: dict) -> float | None:
    write, read = write_latency_ms(point), read_latency_ms(point)
    return write / read if write and read else None


def _rate(cells: Cells, name: str, operation: str, run: dict) -> Verdict:
    """With what carries over to other hardware: the share of the device's own rate."""
    claim, key = DOCUMENT.claim(name), _key(cells, operation)
    if key is None:
        return not_measured(claim.finding, f"'{operation}' on QUARRY")
    rate, payload = cells.summary(key, "quarry", throughput), cells.summary(key, "quarry", payload_rate)
    share = cells.summary(key, "quarry", lambda p: device_share(p, run))
    assert rate and payload
    made = rules.judge_absolute(claim, rate, cells.rounds_of([key], ["quarry"]), run["parameters"], "")
    shown = f", {share.median:.0%} of the device's raw rate (rounds {share.low:.0%}-{share.high:.0%})" if share else ""
    return replace(made, reason=f"{made.reason}; {PAYLOAD_BYTES} bytes each: {stats.human_bytes(payload.median)}/s{shown}")


def _time(cells: Cells, name: str, figure: Callable[[dict], float | None], parameters: dict, less_is_better: bool = True) -> Verdict:
    key = _key(cells, "published")
    measured = cells.summary(key, "quarry", figure) if key else None
    points = cells.rounds_of([key], ["quarry"]) if key else []
    return rules.judge_absolute(DOCUMENT.claim(name), measured, points, parameters, _LACKING, less_is_better)


def _limits(cells: Cells, parameters: dict) -> list[Verdict]:
    """Of a round: the median of the device's busy share, the highest of the processors'."""
    limit, claim = DOCUMENT.finding("limit"), DOCUMENT.claim("processors")
    key = _key(cells, "published")
    points = cells.rounds_of([key], ["quarry"]) if key else []
    samples = {p["round"]: found for p in points if (found := [s for s in samples_under_load(p) if "device_busy_share" in s])}
    if not samples:
        return [not_measured(each, f"{_LACKING}, on a block device") for each in (limit, claim.finding)]
    busy, processors = ([stats.summarize([s[name] for s in found]) for found in samples.values()] for name in ("device_busy_share", "machine_busy_share"))
    device, highest = stats.summarize([s.median for s in busy]), stats.summarize([s.high for s in processors])
    middle = stats.summarize([s.median for s in processors])
    state = REPRODUCED if device.high >= DEVICE_BUSY_MIN else WEAKER if device.median > middle.median else OPPOSITE
    one = rules.level("device busy", state, device, points, parameters, "{:.0%}".format)
    beside = f"; processors {middle.median:.0%} (highest second {highest.high:.0%}), client included"
    found = rules.verdict(limit, [replace(one, text=one.text + beside)], "")
    found = replace(found, figures={"device_busy": figures_of(device), "processors_busy": figures_of(middle)})
    return [found, rules.judge_absolute(claim, highest, points, parameters, "", less_is_better=True)]


def verdicts(run: RunDirectory, labels: dict[str, str]) -> list[Verdict]:
    cells, parameters = Cells(run.points, labels), run.run["parameters"]
    return [
        _rate(cells, "load", "load", run.run), _rate(cells, "mix", "published", run.run),
        _time(cells, "mean-latency", mean_latency_ms, parameters),
        _time(cells, "read-latency", read_latency_ms, parameters),
        _time(cells, "write-latency", write_latency_ms, parameters),
        _time(cells, "latency", _latency_ratio, parameters, less_is_better=False),
        *_limits(cells, parameters),
    ]
