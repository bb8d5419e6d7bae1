"""Raw points grouped into cells, and the figures of a cell. Nothing here measures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from ..report import stats
from ..report.stats import Summary
from .plan import WITHOUT_PAYLOAD, Cell
from .variants import LABELS

COLD_SHARE_MAX = 0.01


@dataclass(frozen=True, order=True)
class CellKey:
    operation: str
    size_bytes: int
    threads: int
    setting: str = ""

    @classmethod
    def of(cls, cell: Cell) -> CellKey:
        return cls(cell.operation, cell.size_bytes, cell.threads, cell.setting)


def throughput(point: dict) -> float:
    """Events per second."""
    return point["result"]["events_per_second"]


def p95_ms(point: dict) -> float | None:
    return point["result"].get("latency_p95_ms")


def server_cpus(point: dict) -> float:
    return point["cpu"]["server_cpus"]


def client_cpus(point: dict) -> float:
    return point["cpu"]["client_cpus"]


def bytes_written_ratio(point: dict) -> float | None:
    """Bytes that the server's process wrote per payload byte, deferred work included."""
    return point["written"]["server_bytes_per_payload_byte"]


def memory_ratio(point: dict) -> float | None:
    """Bytes of the server's caches that the dataset takes, per payload byte, after every row was read."""
    memory = point.get("memory")
    return sum(memory["cached_bytes"].values()) / memory["payload_bytes"] if memory else None


def transactions(point: dict) -> int:
    return point["result"]["total_reads"] + point["result"]["total_rows_written"]


def trips(point: dict) -> float | None:
    """Times that a SQL node of NDB waited for the data nodes, for each transaction; None elsewhere."""
    found = point.get("nodes", {}).get("trips", {})
    return sum(found.values()) / transactions(point) if found and transactions(point) else None


def payload_rate(point: dict) -> float:
    """Payload bytes written per second in the measured interval."""
    if point["operation"] in WITHOUT_PAYLOAD:
        return 0.0
    result = point["result"]
    return result["writes"] * point["batch_rows"] * point["size_bytes"] / result["interval_seconds"]


class Cells:
    """Points by cell, variant and round. Immutable. labels: what people read for each variant, in the order of tables and charts."""

    def __init__(self, points: list[dict], labels: dict[str, str] = LABELS):
        self._labels = labels
        self._points: dict[CellKey, dict[str, dict[int, dict]]] = {}
        for point in points:
            key = CellKey(point["operation"], point["size_bytes"], point["threads"], point.get("setting", ""))
            self._points.setdefault(key, {}).setdefault(point["variant"], {})[point["round"]] = point

    def points(self) -> list[dict]:
        return [p for by_variant in self._points.values() for rounds in by_variant.values() for p in rounds.values()]

    def keys(self) -> list[CellKey]:
        return sorted(self._points)

    def variants(self) -> list[str]:
        """In the order of the labels, so that tables and charts agree."""
        return sorted({v for by_variant in self._points.values() for v in by_variant}, key=list(self._labels).index)

    def label(self, variant: str) -> str:
        return self._labels[variant]

    def rounds(self, key: CellKey, variant: str) -> dict[int, dict]:
        return self._points.get(key, {}).get(variant, {})

    def rounds_of(self, keys: Iterable[CellKey], variants: Collection[str]) -> list[dict]:
        """The raw rounds of these variants in these cells, for a verdict that rests on them."""
        return [point for key in keys for variant in variants for point in self.rounds(key, variant).values()]

    def values(self, key: CellKey, variant: str, figure: Callable[[dict], float | None]) -> dict[int, float]:
        found = {number: figure(point) for number, point in self.rounds(key, variant).items()}
        return {number: value for number, value in found.items() if value is not None}

    def summary(self, key: CellKey, variant: str, figure: Callable[[dict], float | None]) -> Summary | None:
        values = self.values(key, variant, figure)
        return stats.summarize(list(values.values())) if values else None

    def ratio(self, key: CellKey, variant: str, reference: str, figure: Callable[[dict], float | None] = throughput) -> Summary | None:
        return stats.paired_ratio(self.values(key, variant, figure), self.values(key, reference, figure))

    def ratios(self, keys: Iterable[CellKey], variant: str, reference: str,
               figure: Callable[[dict], float | None] = throughput) -> dict[CellKey, Summary]:
        """Of the cells that have both."""
        return {key: ratio for key in keys if (ratio := self.ratio(key, variant, reference, figure))}

    def noisy_rounds(self, key: CellKey, variant: str) -> int:
        return sum(point["cpu"]["noisy"] for point in self.rounds(key, variant).values())

    def unsettled_rounds(self, key: CellKey, variant: str) -> int:
        return sum(not (p["settle_before"]["settled"] and p["settle_after"]["settled"]) for p in self.rounds(key, variant).values())

    def cold_rounds(self, key: CellKey, variant: str) -> int:
        """Rounds of a hot read in which more than COLD_SHARE_MAX of the payload came from the device."""
        return sum(p["operation"] in ("read", "few") and p["written"].get("server_read_bytes_during_run", 0) > COLD_SHARE_MAX * p["result"]["events"] * p["size_bytes"]
                   for p in self.rounds(key, variant).values())
