"""E4's ways to a value: which path of the client, to which engine's table; whose server runs for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...design.variants import ALL, KIB, TARGET, TARGET_PREFIX, Variant
from ...load import value_reader
from . import space

SMALL = 100
SIZES = (SMALL, 4 * KIB, 64 * KIB, 448 * KIB)
THREADS = 8
NDB = "NDB"
DAEMON = "daemon"  # the server that requests are sent to: of NDB its SQL node, without the data nodes


@dataclass(frozen=True)
class Way:
    """One path to a value: the client's --path, the engine, compressed or not, the server in the client's process or not."""

    label: str
    path: str
    table: str = "quarry-default"  # a key of variants.ALL
    compress: bool = False
    embedded: bool = False

    @property
    def variant(self) -> Variant:
        return ALL[self.table]

    @property
    def is_protocol(self) -> bool:
        """An SQL statement on a kept connection: what the compressed protocol concerns."""
        return self.path in ("text", "prepared") and not self.embedded


_SQL = {
    "text": Way("SQL text", "text"),
    "text-compressed": Way("SQL text, compressed protocol", "text", compress=True),
    "prepared": Way("prepared statement", "prepared"),
    "connect": Way("a connection per request", "connect"),
}
SQL_WAYS = tuple(_SQL)  # what every server of the family has
PRIVATE_WAYS = {
    **_SQL,
    "handler": Way("HANDLER statement", "handler"),
    "handlersocket": Way("HandlerSocket", "handlersocket"),
    **{f"innodb-{key}": replace(way, label=f"InnoDB, {way.label}", table="innodb") for key, way in _SQL.items()},
    "innodb-embedded": Way("InnoDB, embedded server", "prepared", table="innodb", embedded=True),
}
# On NDB with its own head, 256 bytes.
TARGET_TABLES = {"innodb": "target-innodb", "quarry": "target-quarry-default", "ndb": "target-ndb-head"}
NDB_API_WAY = "target-ndb-api"
# Of the default grid the other ways are measured at these sizes only: between them the protocol is what differs from size to size.
EVERY_WAY_SIZES = (SMALL, 64 * KIB)
ALONE = {"text", "innodb-text", "target-ndb-text"}  # of small rows, by one client, too


def _target_ways() -> dict[str, Way]:
    names = {engine: "NDB" if engine == "ndb" else f"{ALL[table].label.split(',')[0]} of the target" for engine, table in TARGET_TABLES.items()}
    return {f"target-{engine}-{key}": replace(own, label=f"{names[engine]}, {own.label}", table=table)
            for engine, table in TARGET_TABLES.items() for key, own in _SQL.items()}


WAYS = PRIVATE_WAYS | _target_ways() | {NDB_API_WAY: Way("NDB API", value_reader.NDB_API_PATH, table=TARGET_TABLES["ndb"])}
LABELS = {key: way.label for key, way in WAYS.items()} | space.LABELS


def engine_of(key: str) -> str:
    """Whose server runs while this is measured; one at a time."""
    engine = space.TABLES[key].engine if key in space.TABLES else WAYS[key].variant.engine
    if key.startswith(TARGET_PREFIX):
        return NDB if engine == "NDBCLUSTER" else TARGET
    return engine


def tables_of(keys: list[str]) -> list[Variant]:
    """The kinds of table that these ways read."""
    return list({WAYS[key].table: WAYS[key].variant for key in keys if key in WAYS}.values())
