"""E3's tables on one server: the same values in one table for each method, loaded when they are first needed, kept until the run ends."""

from __future__ import annotations

from collections.abc import Iterable

from ...design.methods import METHODS, Method
from ...load import java
from ...servers.lab_server import LabServer
from ...servers.target import TargetServer

DATABASE = "e3"
_PAYLOADS = "payloads"
# What the server finds in a document: who owns it, how many assets it has, and of which type they are. Empty parts are left out; NULL if all are.
_INSIDE = ("NULLIF(CONCAT_WS(' ', JSON_VALUE(d, '$.owner'), JSON_LENGTH(d, '$.assets'), JSON_TYPE(JSON_EXTRACT(d, '$.assets'))), '')")


class Datasets:
    """
    Externally synchronised. methods: of every (kind, bytes of a value) all that any round measures on this server. database: what its schemas' names
    begin with.
    """

    def __init__(self, server: LabServer | TargetServer, loader: java.Client, methods: dict[tuple[str, int], set[str]], database: str = DATABASE):
        self._server, self._loader, self._methods, self._database = server, loader, methods, database
        self._loaded: dict[tuple[str, int], dict[str, dict]] = {}  # (kind, size) -> method -> what LoadBlobs said

    def _schema(self, kind: str, size_bytes: int, method: str) -> str:
        return f"{self._database}_{kind}_{size_bytes}_{method}".replace("-", "_")

    def payloads(self, kind: str, size_bytes: int) -> str:
        """The table of what each value must be after it was fetched."""
        return f"{self._schema(kind, size_bytes, _PAYLOADS)}.{_PAYLOADS}"

    def target(self, kind: str, size_bytes: int, method: Method) -> java.LoadTarget:
        """What a fetch selects, and from where."""
        return java.LoadTarget(f"{self._schema(kind, size_bytes, method.key)}.{method.table}", method.codec, method.select)

    def needs(self, kind: str, size_bytes: int) -> bool:
        return (kind, size_bytes) in self._methods and (kind, size_bytes) not in self._loaded

    def load(self, dataset: java.Dataset) -> None:
        methods = sorted(self._methods[dataset.kind, dataset.bytes_each])
        payloads = self.payloads(dataset.kind, dataset.bytes_each)
        self._server.execute(f"CREATE DATABASE `{payloads.partition('.')[0]}`")
        self._server.execute(f"CREATE TABLE {payloads} (id INT PRIMARY KEY, sha256 BINARY(32))")
        loads = java.load_blobs(dataset, payloads, list(self._targets(dataset, methods)), self._loader)
        self._loaded[dataset.kind, dataset.bytes_each] = dict(zip(methods, loads, strict=True))

    def _targets(self, dataset: java.Dataset, methods: Iterable[str]) -> Iterable[java.LoadTarget]:
        for key in methods:
            schema = self._schema(dataset.kind, dataset.bytes_each, key)
            self._server.execute(f"CREATE DATABASE `{schema}`")
            self._server.execute(METHODS[key].create_table(schema))
            yield java.LoadTarget(f"{schema}.{METHODS[key].table}", METHODS[key].codec, METHODS[key].insert)

    def loaded(self, kind: str, size_bytes: int, method: str) -> dict:
        return self._loaded[kind, size_bytes][method]

    def inside(self, kind: str, size_bytes: int) -> dict[str, str | None]:
        """Whether the server can use the stored documents: what its JSON functions give of the column as it stands, by method."""
        found = {}
        for key in sorted(self._methods[kind, size_bytes]):
            table = f"`{self._schema(kind, size_bytes, key)}`.{METHODS[key].table}"
            ((found[key],),) = self._server.rows(f"SELECT {_INSIDE} FROM (SELECT CONVERT(data USING utf8mb4) d FROM {table} WHERE id = 1) document")
        return found
