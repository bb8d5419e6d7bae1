"""
Measures E3's points: the same values in one table for each method, fetched by JMH through one of the links.

Datasets are loaded when a block first needs them and stay until the run ends: they are small against the buffer pool, so every fetch is
hot, and each point verifies all its values first (lab/java, FetchBlobs).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict

from ...design.methods import METHODS
from ...design.plan import Block, Point
from ...design.request import LabError
from ...load import java
from ...probes import noise, processors
from ...run.experiment import Bench, Context
from ...servers import links
from ...servers.lab_server import LabServer
from ...servers.links import LINKS, LOOPBACK, Endpoint, Network
from ...servers.processor_cgroup import ProcessorCgroup
from ...servers.routed import PRIMARY, RoutedPair
from .datasets import Datasets, payloads_of, schema_of
from .findings import DOCUMENT

ROWS_MAX, ROWS_MIN = 256, 4
Methods = dict[tuple[str, int], set[str]]  # (kind, bytes of a value) -> all that any round measures


def rows_of(size_bytes: int, dataset_bytes: int) -> int:
    """Several values of a size, so that no single one is fetched again and again."""
    return max(ROWS_MIN, min(ROWS_MAX, dataset_bytes // size_bytes))


def weak_processors() -> float:
    """What a weak server may use: of this machine's processors the share that the author's weak server had of his other one's."""
    return len(processors.AVAILABLE) * (1 + DOCUMENT.value("weak-processor-share"))


class FetchBench(Bench):
    """
    Externally synchronised. The caller starts and closes the server, the pair and the networks. methods: those of the server; a resumed run may
    have nothing left of some of them in its first round. weak: where the server runs.
    """

    def __init__(self, context: Context, server: LabServer, network: Network, methods: Methods, weak: ProcessorCgroup | None = None):
        self.run, self.progress, self.request = context.run, context.progress, context.request
        self.server, self.network, self._weak = server, network, weak
        self._pair: RoutedPair | None = None
        password = java.create_account(server)
        self._data = Datasets(server, java.Client(Endpoint(LOOPBACK, network.port), password), methods)
        self._clients = {link.key: java.Client(network.endpoint(link.key), password) for link in network.links}

    def route(self, pair: RoutedPair, network: Network, methods: Methods) -> None:
        """Gives the points of routed links their servers. network: of the proxy."""
        password = java.create_account(pair.primary)
        pair.replicate(java.USER, password)
        self._pair, self._routed_network = pair, network
        self._routed_data = Datasets(pair.primary, java.Client(Endpoint(LOOPBACK, pair.ports[PRIMARY]), password), methods)
        self._clients |= {link.key: java.Client(network.endpoint(link.key), password) for link in network.links}

    def describe(self) -> dict:
        self.progress.step("measuring the links")
        found = links.probe([LINKS[key] for key in self.request.options["links"]])
        weak = {"weak_server_processors": round(weak_processors(), 3)} if self._weak else {}
        pair = self._pair.describe() if self._pair else {}
        return {"servers": {"main": self.server.describe(), **pair}, "links": found, **weak, "java": java.version(), "libraries": java.libraries()}

    # --- preparing ---
    def begin(self, block: Block) -> None:
        kind, size_bytes = block.points[0].operation, block.points[0].size_bytes
        dataset = java.Dataset(kind, size_bytes, self._rows(size_bytes), self.request.seed)
        if self._data.needs(kind, size_bytes):
            self.progress.step(f"loading {kind}, {size_bytes} bytes")
            self._data.load(dataset)
            self.server.settle()
            if kind == "real":
                seen = self.run.run["sessions"][-1].get("json_value", {})
                self.run.update_session("json_value", {**seen, str(size_bytes): self._data.inside(kind, size_bytes)})
        if self._pair and self._routed_data.needs(kind, size_bytes):
            self.progress.step(f"loading {kind}, {size_bytes} bytes, on the primary")
            self._routed_data.load(dataset)
            self._pair.catch_up()

    def _rows(self, size_bytes: int) -> int:
        return rows_of(size_bytes, self.request.settings.dataset_bytes)

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        link, method = LINKS[point.setting], METHODS[point.variant]
        self.progress.step(f"{method.label}, {point.operation} {point.size_bytes} bytes, {point.setting}")
        data = self._routed_data if link.routed else self._data
        before = self._pair.fetches() if link.routed and self._pair else {}
        with self._limit(link), noise.Meter(self._pids(link)) as meter:
            fetched = self._fetch(point)
        more = {"routed_to": self._routed_to(before)} if before else {}
        return {
            "result": {"events_per_second": fetched.operations_per_second, "interval_seconds": self.request.settings.seconds, **asdict(fetched)},
            "loaded": data.loaded(point.operation, point.size_bytes, point.variant),
            "cpu": meter.usage, **more,
        }

    def _fetch(self, point: Point) -> java.FetchResult:
        method, settings = METHODS[point.variant], self.request.settings
        target = java.LoadTarget(f"{schema_of(point.operation, point.size_bytes, method.key)}.{method.table}", method.codec, method.select)
        return java.fetch_blobs(target, payloads_of(point.operation, point.size_bytes), self._rows(point.size_bytes), point.threads,
                                (settings.warmup_seconds, settings.seconds), self.run.path / "jmh.json", self._clients[point.setting])

    def _limit(self, link: links.Link) -> AbstractContextManager[None]:
        return self._weak.limited(weak_processors()) if link.weak_server and self._weak else nullcontext()

    def _pids(self, link: links.Link) -> set[int]:
        if link.routed and self._pair:
            return self._pair.pids() | self._routed_network.pids()
        return {self.server.pid, *self.network.pids()}

    def _routed_to(self, before: dict[str, int]) -> dict[str, int]:
        """Fetches of each server meanwhile. Raises LabError unless both had some."""
        assert self._pair
        moved = {name: count - before[name] for name, count in self._pair.fetches().items()}
        if idle := [name for name, count in moved.items() if not count]:
            raise LabError(f"the {idle[0]} had no fetch: connections are to be spread over both servers")
        return moved
