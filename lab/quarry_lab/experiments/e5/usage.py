"""What a point of E5 used of drives, network and processors, and what background work did to its throughput, second by second."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...probes.timeline import GC_AT_WORK, INNODB_FLUSHES, NDB_CHECKPOINTS
from ...report import stats

DRIVES, NETWORK, PROCESSORS = "drives", "network", "processors"
_WORK = {"gc": GC_AT_WORK, "innodb": INNODB_FLUSHES, "ndb": NDB_CHECKPOINTS}
COVERED_MIN = 1 / 2  # of the measured interval, by the timeline
SECONDS_MIN = 3  # with background work, and without it, for a round to tell
IDLE_MAX = 1 / 2  # of the work in seconds at work, what the others have at most: our threshold; else it never rests, or chance parts the seconds
_APART_MAX = 0.75  # seconds between a sample and the status line of the same second


def samples_under_load(point: dict) -> list[dict]:
    """
    The timeline's samples of the measured interval. Each is of the time since the one before it: one that begins earlier is of the warm-up, too. None
    where they tell of less than half of it: a timeline ends when the server does not answer it any more.
    """
    until, interval = point["measured_until"] - point["timeline_started"], point["result"]["interval_seconds"]
    begins = [0.0, *(sample["second"] for sample in point["timeline"])]
    found = [(begin, sample) for begin, sample in zip(begins, point["timeline"], strict=False)
             if until - interval <= begin and sample["second"] <= until]
    covered = sum(sample["second"] - begin for begin, sample in found)
    return [sample for _begin, sample in found] if covered >= COVERED_MIN * interval else []


def _median(values: list[float]) -> float:
    return stats.summarize(values).median


def used(point: dict, parameters: dict, over: Callable[[list[float]], float] = _median) -> dict[str, float]:
    """
    The part of each that was used, by `over` of the measured seconds: of the busiest drive, of the processors, and of the network where it has a
    rate of its own. What the timeline does not tell is left out: a point names under 'unseen' what the sampled device and processors are not.
    """
    samples, unseen = samples_under_load(point), point.get("unseen", [])
    found = {}
    quotas = point.get("drive_bytes_per_second", {})
    drives = [share for sample in samples if (share := _drives_share(sample, quotas)) is not None]
    if drives and DRIVES not in unseen:
        found[DRIVES] = over(drives)
    if "link_bytes_per_second" in point:
        found[NETWORK] = _link_bytes(point) / point["link_bytes_per_second"]
    if samples and PROCESSORS not in unseen:
        found[PROCESSORS] = over([_processors_share(sample, point, parameters) for sample in samples])
    return found


def _drives_share(sample: dict, quotas: dict[str, int]) -> float | None:
    """Reads and writes have a quota each; a drive without one, the logs', is not asked."""
    shares = [max(sample["drives"][name]) / quota for name, quota in quotas.items() if quota and name in sample.get("drives", {})]
    return max(shares) if shares else sample.get("device_busy_share")


def device_busy(point: dict) -> float | None:
    """Of a point on drives: the median busy share of the device that all of them lie on, the log's, too, which has no quota."""
    found = [sample["device_busy_share"] for sample in samples_under_load(point) if "device_busy_share" in sample]
    return _median(found) if found else None


def moved_share(point: dict, reads: float, writes: float) -> float | None:
    """The part of its median second that the device would need at these rates for what it really read and wrote: a busy one may have room."""
    samples = [sample for sample in samples_under_load(point) if "device_read_bytes" in sample]
    return _median([each["device_read_bytes"] / reads + each["device_write_bytes"] / writes for each in samples]) if samples else None


def _link_bytes(point: dict) -> float:
    """Of the busier way; of both by a proxy: each connection has a share of either way's rate, which rests while it sends the other way."""
    ways = point["payload_read_bytes_per_second"], point["payload_written_bytes_per_second"]
    return sum(ways) if point.get("link_by_proxy") else max(ways)


def _processors_share(sample: dict, point: dict, parameters: dict) -> float:
    """Where the server has processors of its own (all but one), of these."""
    if parameters.get("apart"):
        return sample["server_cpus"] / (point["cpu"]["processors"] - 1)
    return sample["machine_busy_share"]


def background_ratio(point: dict, engine: str) -> float | None:
    """
    Throughput of the measured seconds with more background work than on average over that of the others. None where these do not tell: no such
    work, or about as much of it always. InnoDB's is the difference of two counters, of all pages written and of those that were evicted: where it
    falls below nothing they did not move together, and so much of it is chance.
    """
    seconds = [(sample["work"][_WORK[engine]], rate) for sample in samples_under_load(point)
               if _WORK[engine] in sample.get("work", {}) and (rate := _rate_at(point, sample["second"])) is not None]
    if not seconds:
        return None
    mean = _mean(work for work, _rate in seconds)
    at_work, others = ([second for second in seconds if (second[0] > mean) is more] for more in (True, False))
    if min(len(at_work), len(others)) < SECONDS_MIN:
        return None
    busy, idle = (_mean(work for work, _rate in part) for part in (at_work, others))
    chance = -min(work for work, _rate in seconds)
    at_work_rate, others_rate = (_mean(rate for _work, rate in part) for part in (at_work, others))
    return at_work_rate / others_rate if others_rate and max(idle, chance) <= IDLE_MAX * busy else None


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def _rate_at(point: dict, second: float) -> float | None:
    """Operations a second of the client's status line next to that second of the timeline."""
    lines = [(abs(when - point["timeline_started"] - second), rate) for when, rate in point["operations_timeline"]]
    apart, rate = min(lines, default=(_APART_MAX, 0.0))
    return rate if apart < _APART_MAX else None
