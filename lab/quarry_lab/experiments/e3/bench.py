"""
Measures E3's points: the same values in one table for each method, fetched by JMH through one of the links.

Datasets are loaded when a block first needs them and stay until the run ends: they are small against the buffer pool, so every fetch is
hot, and each point verifies all its values first (lab/java, FetchBlobs).
"""

from __future__ import annotations

from dataclasses import asdict

from ...design.methods import METHODS
from ...design.plan import Block, Point
from ...load import java
from ...probes import noise
from ...run.experiment import Bench, Context
from ...servers import links
from ...servers.lab_server import LabServer
from ...servers.links import LINKS, LOOPBACK, Endpoint, Network

ROWS_MAX, ROWS_MIN = 256, 4
_DATABASE = "e3"
_PAYLOADS = "payloads"
_DOCUMENT_IDENTITY = "JSON_VALUE(CONVERT(data USING utf8mb4), '$.owner')"


def rows_of(size_bytes: int, dataset_bytes: int) -> int:
    """Several values of a size, so that no single one is fetched again and again."""
    return max(ROWS_MIN, min(ROWS_MAX, dataset_bytes // size_bytes))


def schema_of(kind: str, size_bytes: int, method: str) -> str:
    return f"{_DATABASE}_{kind}_{size_bytes}_{method}".replace("-", "_")


class FetchBench(Bench):
    """
    Externally synchronised. The caller starts and closes the server and the network. methods: of every (kind, bytes of a value) all
    that any round measures; a resumed run may have nothing left of some of them in its first round.
    """

    def __init__(self, context: Context, server: LabServer, network: Network, methods: dict[tuple[str, int], set[str]]):
        self._methods = methods
        self.run, self.progress, self.request = context.run, context.progress, context.request
        self.server, self.network = server, network
        password = java.create_account(server)
        self._loader = java.Client(Endpoint(LOOPBACK, network.port), password)
        self._clients = {key: java.Client(network.endpoint(key), password) for key in context.request.options["links"]}
        self._loaded: dict[tuple[str, int], dict[str, dict]] = {}  # (kind, size) -> method -> what LoadBlobs said

    def describe(self) -> dict:
        self.progress.step("measuring the links")
        found = links.probe([LINKS[key] for key in self.request.options["links"]])
        return {"servers": {"main": self.server.describe()}, "links": found, "java": java.version(), "libraries": java.libraries()}

    # --- preparing ---
    def begin(self, block: Block) -> None:
        kind, size_bytes = block.points[0].operation, block.points[0].size_bytes
        if (kind, size_bytes) in self._loaded:
            return
        self.progress.step(f"loading {kind}, {size_bytes} bytes")
        methods = sorted(self._methods[kind, size_bytes])
        payloads = f"{schema_of(kind, size_bytes, _PAYLOADS)}.{_PAYLOADS}"
        self.server.execute(f"CREATE DATABASE `{schema_of(kind, size_bytes, _PAYLOADS)}`")
        self.server.execute(f"CREATE TABLE {payloads} (id INT PRIMARY KEY, sha256 BINARY(32))")
        targets = []
        for key in methods:
            schema = schema_of(kind, size_bytes, key)
            self.server.execute(f"CREATE DATABASE `{schema}`")
            self.server.execute(METHODS[key].create_table(schema))
            targets.append(java.LoadTarget(f"{schema}.{METHODS[key].table}", METHODS[key].codec, METHODS[key].insert))
        dataset = java.Dataset(kind, size_bytes, self._rows(size_bytes), self.request.seed)
        loads = java.load_blobs(dataset, payloads, targets, self._loader)
        self.server.settle()
        self._loaded[kind, size_bytes] = dict(zip(methods, loads, strict=True))
        if kind == "real":
            self._look_inside(kind, size_bytes, methods)

    def _rows(self, size_bytes: int) -> int:
        return rows_of(size_bytes, self.request.settings.dataset_bytes)

    def _look_inside(self, kind: str, size_bytes: int, methods: list[str]) -> None:
        """Whether the server can use the stored documents: JSON_VALUE of the column as it stands."""
        found = {}
        for key in methods:
            ((value,),) = self.server.rows(f"SELECT {_DOCUMENT_IDENTITY} FROM `{schema_of(kind, size_bytes, key)}`.{METHODS[key].table} WHERE id = 1")
            found[key] = value
        seen = self.run.run["sessions"][-1].get("json_value", {})
        self.run.update_session("json_value", {**seen, str(size_bytes): found})

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        method = METHODS[point.variant]
        schema = schema_of(point.operation, point.size_bytes, method.key)
        payloads = f"{schema_of(point.operation, point.size_bytes, _PAYLOADS)}.{_PAYLOADS}"
        target = java.LoadTarget(f"{schema}.{method.table}", method.codec, method.select)
        settings = self.request.settings
        self.progress.step(f"{method.label}, {point.operation} {point.size_bytes} bytes, {point.setting}")
        with noise.Meter({self.server.pid, *self.network.pids()}) as meter:
            fetched = java.fetch_blobs(target, payloads, self._rows(point.size_bytes), point.threads, (settings.warmup_seconds, settings.seconds),
                                       self.run.path / "jmh.json", self._clients[point.setting])
        return {
            "result": {"events_per_second": fetched.operations_per_second, "interval_seconds": settings.seconds, **asdict(fetched)},
            "loaded": self._loaded[point.operation, point.size_bytes][point.variant],
            "cpu": meter.usage,
        }
