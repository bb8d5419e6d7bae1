"""What was published for E5, and the rule by which this lab judges each finding from its own raw rounds."""

from __future__ import annotations

from .. import stats
from ..cells import CellKey, Cells, throughput
from ..results import RunDirectory
from ..stats import Summary
from ..verdicts import Finding, Verdict, figures_of, judge, not_applicable, not_measured
from ..ycsb import PAYLOAD_BYTES

ONE_PATH = "1 path"  # the setting of every engine
CPU_SHARE_MAX = 0.20
DEVICE_BUSY_MIN = 0.90

LOAD = Finding("e5-load", "load: 44,500 inserts/s, 1.25 GB/s", "needs two machines of 8 drives; the share of the device's raw rate is shown")
MIX = Finding("e5-mix", "50/50: almost 70,000 tps, 1 GB/s read and 1 GB/s written", "needs two machines of 8 drives; the share is shown")
LATENCY = Finding("e5-latency", "50/50: reads just over 1 ms on average, writes 4 to 5 ms", "QUARRY: mean of writes / mean of reads at least 2 in every round")
LIMIT = Finding("e5-limit", "the drives were the limit: processors never over 20%",
                f"QUARRY, 50/50: device busy at least {DEVICE_BUSY_MIN:.0%} of the time by median, all processors at most {CPU_SHARE_MAX:.0%} in every second")


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


def _not_here(cells: Cells, finding: Finding, operation: str, run: dict) -> Verdict:
    key = _key(cells, operation)
    if key is None:
        return not_applicable(finding, "other hardware; not run here")
    rate, payload = cells.summary(key, "quarry", throughput), cells.summary(key, "quarry", payload_rate)
    share = cells.summary(key, "quarry", lambda p: device_share(p, run))
    assert rate and payload
    shown = f", {share.median:.0%} of the device's raw rate (rounds {share.low:.0%}-{share.high:.0%})" if share else ""
    here = f"{stats.human_count(rate.median)}/s of {PAYLOAD_BYTES} bytes = {stats.human_bytes(payload.median)}/s"
    return not_applicable(finding, f"other hardware; here {here}{shown}")


def _latency_ratio(point: dict) -> float | None:
    write, read = write_latency_ms(point), read_latency_ms(point)
    return write / read if write and read else None


def _latency(cells: Cells, parameters: dict) -> Verdict:
    key = _key(cells, "published")
    ratio = cells.summary(key, "quarry", _latency_ratio) if key else None
    if key is None or ratio is None:
        return not_measured(LATENCY, "the published mix on QUARRY")
    reads, writes = cells.summary(key, "quarry", read_latency_ms), cells.summary(key, "quarry", write_latency_ms)
    assert reads and writes
    text = f"reads {reads.median:.2f} ms, writes {writes.median:.2f} ms: {ratio.median:.1f} times (rounds {ratio.low:.1f}-{ratio.high:.1f})"
    figures = {"write/read": figures_of(ratio), "read_ms": figures_of(reads), "write_ms": figures_of(writes)}
    return judge(LATENCY, ratio.low >= 2, text, figures, cells.rounds_of([key], ["quarry"]), parameters)


def _limit(cells: Cells, parameters: dict) -> Verdict:
    key = _key(cells, "published")
    points = cells.rounds_of([key], ["quarry"]) if key else []
    samples = [sample for point in points for sample in samples_under_load(point) if "device_busy_share" in sample]
    if not samples:
        return not_measured(LIMIT, "the published mix on QUARRY, on a block device")
    busy: Summary = stats.summarize([s["device_busy_share"] for s in samples])
    processors: Summary = stats.summarize([s["machine_busy_share"] for s in samples])
    holds = busy.median >= DEVICE_BUSY_MIN and processors.high <= CPU_SHARE_MAX
    text = f"device busy {busy.median:.0%} of the time, processors {processors.median:.0%} (highest second {processors.high:.0%}), client included"
    return judge(LIMIT, holds, text, {"device_busy": figures_of(busy), "processors_busy": figures_of(processors)}, points, parameters)


def verdicts(run: RunDirectory, labels: dict[str, str]) -> list[Verdict]:
    cells, parameters = Cells(run.points, labels), run.run["parameters"]
    return [_not_here(cells, LOAD, "load", run.run), _not_here(cells, MIX, "published", run.run), _latency(cells, parameters), _limit(cells, parameters)]
