"""One large value on one shard, or its pieces on all of them: `python -m quarry_lab.cluster.pieces`.

A value lives on one shard, whole. Whoever wants several nodes to carry one value stores it as rows of a table of pieces,
PRIMARY KEY (id, piece), sharded by the piece. Measured, with one client through one front: milliseconds for a value, and
which part of its bytes, and how much CPU, each shard's primary had. All nodes share this machine: the times say little,
the shares do not depend on it.
Thread-safety: externally synchronised.
"""

from __future__ import annotations

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable

import pymysql
from quarry_cluster.cluster import Cluster, passing_cluster
from quarry_cluster.ddl import ShardedTables
from quarry_server.server import BUILD
from rich.console import Console
from rich.table import Table

from ..report.stats import summarize
from .spread import cpu_s, ways

SHARDS = 4
VALUE_BYTES, PIECE_BYTES = 8 << 20, 512 << 10
PIECES = VALUE_BYTES // PIECE_BYTES
VALUES = 12
DATABASE = "spread"  # where spread.ways() lead
WHOLE = "CREATE TABLE whole (id BIGINT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY"
IN_PIECES = "CREATE TABLE pieces (id BIGINT, piece INT, b LONGBLOB, PRIMARY KEY (id, piece)) ENGINE=QUARRY"
Cell = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """How a value is stored and fetched: each function takes the connections, the id and, for storing, the value."""

    label: str
    store: Callable[[list[pymysql.Connection], int, bytes], None]
    fetch: Callable[[list[pymysql.Connection], int], bytes]


def rows(connection: pymysql.Connection, sql: str, arguments: tuple) -> tuple:
    with connection.cursor() as cursor:
        cursor.execute(sql, arguments)
        return cursor.fetchall()


def cut(value: bytes) -> list[bytes]:
    return [value[at : at + PIECE_BYTES] for at in range(0, len(value), PIECE_BYTES)]


def store_whole(connections: list[pymysql.Connection], row: int, value: bytes) -> None:
    rows(connections[0], "INSERT INTO whole VALUES (%s, _binary %s)", (row, value))


def fetch_whole(connections: list[pymysql.Connection], row: int) -> bytes:
    return rows(connections[0], "SELECT b FROM whole WHERE id = %s", (row,))[0][0]


def store_pieces(connections: list[pymysql.Connection], row: int, value: bytes) -> None:
    """In one statement; atomic over the shards with spider_internal_xa=ON, which `measure` sets."""
    marks = ", ".join(["(%s, %s, _binary %s)"] * PIECES)
    arguments = tuple(field for number, piece in enumerate(cut(value)) for field in (row, number, piece))
    rows(connections[0], f"INSERT INTO pieces VALUES {marks}", arguments)


def fetch_pieces(connections: list[pymysql.Connection], row: int) -> bytes:
    return b"".join(piece for (piece,) in rows(connections[0], "SELECT b FROM pieces WHERE id = %s ORDER BY piece", (row,)))


def fetch_side_by_side(connections: list[pymysql.Connection], row: int) -> bytes:
    """A connection for each shard, which asks for that shard's pieces alone: the integer modulo the shards chooses it."""

    def of_shard(shard: int) -> list[tuple[int, bytes]]:
        mine = tuple(range(shard, PIECES, SHARDS))
        return list(rows(connections[shard], "SELECT piece, b FROM pieces WHERE id = %s AND piece IN %s", (row, mine)))

    with ThreadPoolExecutor(SHARDS) as readers:
        found = sorted(piece for pieces in readers.map(of_shard, range(SHARDS)) for piece in pieces)
    return b"".join(piece for _number, piece in found)


WAYS = (
    Way("whole, on one shard", store_whole, fetch_whole),
    Way("pieces, one statement", store_pieces, fetch_pieces),
    Way("pieces, a connection for each shard", store_pieces, fetch_side_by_side),
)


def primaries_use(cluster: Cluster, counter: str) -> list[tuple[int, float]]:
    """(bytes, CPU seconds) of each shard's primary so far; `counter`: Bytes_sent or Bytes_received."""
    found = []
    for primary in cluster.primaries():
        assert primary.server.pid is not None
        found.append((int(primary.status(counter)[counter.lower()]), cpu_s(primary.server.pid)))
    return found


def timed(cluster: Cluster, counter: str, work: Callable[[int], None], ids: range) -> Cell:
    before, took = primaries_use(cluster, counter), []
    for row in ids:
        began = time.monotonic()
        work(row)
        took.append((time.monotonic() - began) * 1000)
    used = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, primaries_use(cluster, counter))]
    moved = sum(count for count, _ in used)
    return {
        "ms": {"median": summarize(took).median, "low": min(took), "high": max(took)},
        "share_of_bytes": [count / moved for count, _ in used],
        "cpu_ms": [seconds * 1000 / len(took) for _, seconds in used],
    }


def measure(cluster: Cluster) -> list[Cell]:
    for definition, key in ((WHOLE, "id"), (IN_PIECES, "piece")):
        ShardedTables(cluster).create(DATABASE, definition, key)
    (way_in,) = ways(cluster, 1)
    connections = [way_in() for _ in range(SHARDS)]
    for connection in connections:
        rows(connection, "SET spider_internal_xa = ON", ())
    bytes_of = random.Random(1)
    cells = []
    for number, way in enumerate(WAYS):
        # Ids of one shard alone, so that what one value does to the nodes is seen, not what many do.
        ids = range(SHARDS * VALUES * number, SHARDS * VALUES * (number + 1), SHARDS)
        values = {row: bytes_of.randbytes(VALUE_BYTES) for row in ids}
        cells.append({"way": way.label, "load": "write", **timed(cluster, "Bytes_received", lambda row: way.store(connections, row, values[row]), ids)})

        def read(row: int) -> None:
            if way.fetch(connections, row) != values[row]:
                raise RuntimeError(f"{way.label}: value {row} came back with other bytes")

        cells.append({"way": way.label, "load": "read", **timed(cluster, "Bytes_sent", read, ids)})
    for connection in connections:
        connection.close()
    return cells


def table(cells: list[Cell]) -> Table:
    made = Table(title=f"a value of {VALUE_BYTES >> 20} MiB, one client, one front, {SHARDS} shards; {VALUES} values", title_justify="left")
    for heading in ("stored as", "load", "ms a value", "share of its bytes, by shard", "CPU ms of the primaries, by shard"):
        made.add_column(heading, justify="left" if heading == "stored as" else "right")
    for cell in cells:
        shares = " / ".join(f"{share:.0%}" for share in cell["share_of_bytes"])
        cpu = " / ".join(f"{ms:.0f}" for ms in cell["cpu_ms"])
        ms = cell["ms"]
        made.add_row(cell["way"], cell["load"], f"{ms['median']:.0f} ({ms['low']:.0f}-{ms['high']:.0f})", shares, cpu)
    return made


def main() -> int:
    report = BUILD / "report" / "cluster"
    report.mkdir(parents=True, exist_ok=True)
    with passing_cluster(BUILD / "cluster-pieces", "spider", SHARDS) as cluster:
        cells = measure(cluster)
    (report / "pieces.json").write_text(json.dumps(cells, indent=1), encoding="utf-8")
    Console(width=130).print(table(cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
