"""Made-up rounds for the rules: points as the benches of E1 to E5 record them, and what the rules read of a run."""

from __future__ import annotations

from quarry_lab.design.variants import KIB
from quarry_lab.load.ycsb import PAYLOAD_BYTES

DOCUMENT_BYTES, MEDIUM_BYTES = 4_287_156, 94_417
FETCH_THREADS = 2
ROUNDS = (1, 2, 3)
OPTIONS = {"drives": [1, 2], "drive_mbytes": 12, "link_mbits": 300}  # of E5
SETTLED = {"settle_before": {"settled": True}, "settle_after": {"settled": True}}


class Run:
    def __init__(self, points: list[dict], rounds: int = 3, **session):
        self.points = points
        probes = [{"round": n, "random_read_bytes_per_second": 4e8, "sequential_write_bytes_per_second": 8e8} for n in ROUNDS]
        limit = {"how": "memory cgroup", "limit_bytes": 384 << 20}
        self.run = {"parameters": {"rounds": rounds, "settings": {"seconds": 10}, "payload": "random", "profile": "bare", "options": OPTIONS},
                    "sessions": [{"device_probes": probes, "json_value": {}, "links": [], "memory_limit": limit, "payload_bytes": 3 << 29, **session}]}


def spread(value) -> tuple:
    """One figure for all rounds, or one for each."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * len(ROUNDS)


def points(operation: str, size_bytes: int, threads: int, variant: str, rate, p95=2.0, setting: str = "", noisy=(), seconds: float = 10.0) -> list[dict]:
    """A point for each of the rates; p95 alike. noisy: the rounds in which other work ran."""
    rates, late = spread(rate), spread(p95)
    return [{"round": n, "operation": operation, "size_bytes": size_bytes, "threads": threads, "variant": variant, "setting": setting, "batch_rows": 1,
             "result": {"events_per_second": events, "latency_p95_ms": milliseconds, "interval_seconds": seconds, "writes": 100, "total_rows_written": 100,
                        "uncompressed_bytes_per_second": events * 1e6, "received_bytes_per_second": events * 1e6},
             "cpu": {"noisy": n in noisy, "server_cpus": 1.2, "client_cpus": 0.7, "processors": 2}, "quarry_status": {}}
            for n, (events, milliseconds) in enumerate(zip(rates, late, strict=True), 1)]


def mix(size_kib: int, threads: int, p95=2.0, **rates) -> list[dict]:
    """E1's load. rates: variant (underscores for dashes) -> rate or rates; p95 of all, or a dictionary by variant."""
    made = []
    for name, rate in rates.items():
        late = p95[name] if isinstance(p95, dict) else p95
        made += points("mix", size_kib * KIB, threads, name.replace("_", "-"), rate, late)
    return made


def fetch(link: str, **rates) -> list[dict]:
    """E3: megabytes a second of the largest document, by application codec."""
    return fetched("real", DOCUMENT_BYTES, link, **rates)


def fetched(kind: str, size_bytes: int, link: str, server=1.2, client=0.7, stored: float = 1.0, **rates) -> list[dict]:
    """
    E3: megabytes a second of any values. server, client: processors, of all or a dictionary by variant; stored: bytes of the values for each byte sent
    to store them.
    """
    made = []
    for name, rate in rates.items():
        of = points(kind, size_bytes, FETCH_THREADS, name.replace("_", "-"), rate, setting=link)
        for p in of:
            p["cpu"] |= {"server_cpus": server[name] if isinstance(server, dict) else server, "client_cpus": client[name] if isinstance(client, dict) else client}
            p["loaded"] = {"uncompressed_bytes": 1_000_000, "sent_bytes": 1_000_000 / stored}
        made += of
    return made


def ycsb(operation: str, rate, read_ms: float = 1.1, write_ms: float = 4.5, busy: float = 0.95, processors=0.15, variant: str = "quarry",
         setting: str = "1 path", dent=0.0, work: str = "gc_at_work", idle: float = 0.0, link: float = 0.0,
         by_proxy: bool = False) -> list[dict]:
    """
    E5. busy: of the device, or in a setting of drives the share of the busiest one's quota; processors: of all rounds or of each; dent: the part
    of throughput, of all rounds or of each, that is missing in every second second, when background work writes; idle: of that work in the other
    seconds; link: payload of the busier way over the rate of a limited network; by_proxy: whether a proxy makes it.
    """
    made = points(operation, PAYLOAD_BYTES, 16, variant, rate, setting=setting)
    quota, on_drives = 10_000_000, "drive" in setting
    used = {"drives": {"data1": [0.0, busy * quota], "log": [0.0, 9 * quota]}} if on_drives else {"device_busy_share": busy}
    latencies = {"INSERT": {"mean_ms": write_ms, "operations": 100}} if operation == "load" else {
        "READ": {"mean_ms": read_ms, "operations": 100}, "UPDATE": {"mean_ms": write_ms, "operations": 100}}
    for p, missing, share in zip(made, spread(dent), spread(processors), strict=True):
        events = p["result"]["events_per_second"]
        lines = [[1000.0 + s, events * (1 - missing if s % 2 else 1)] for s in range(1, 15)]
        timeline = [{"second": s, "machine_busy_share": share, "server_cpus": share, "work": {work: s % 2 or idle}, **used} for s in range(1, 15)]
        p |= {"latencies": latencies, "written": {"server_bytes_per_payload_byte": 1.1}, "timeline": timeline, "timeline_started": 1000.0, "measured_until": 1012.0,
              "operations_timeline": lines, "payload_read_bytes_per_second": 0 if operation == "load" else events / 2 * PAYLOAD_BYTES,
              "payload_written_bytes_per_second": events / (1 if operation == "load" else 2) * PAYLOAD_BYTES, **SETTLED}
        if on_drives:
            p["drive_bytes_per_second"] = {"data1": quota, "log": 0}
        if link:
            p["link_bytes_per_second"] = max(p["payload_read_bytes_per_second"], p["payload_written_bytes_per_second"]) / link
            p["link_by_proxy"] = by_proxy
    return made
