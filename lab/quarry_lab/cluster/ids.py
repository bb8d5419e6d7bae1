"""What an id costs where several servers give ids: `python -m quarry_lab.cluster.ids`.

On a cluster of Spider fronts: AUTO_INCREMENT counted by the front or asked of the shards, a SEQUENCE on the front itself and
one on a shard. On Galera: a SEQUENCE, whose reservations are certified by all nodes, and quarry_autoincrement_prefetch_sz.
Each with 1, 256 and 1,024 ids a reservation, where that can be set.
Thread-safety: externally synchronised.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Callable

import pymysql
from quarry_cluster.cluster import Cluster, passing_cluster
from quarry_cluster.ddl import ShardedTables
from quarry_cluster.keeper import run
from quarry_cluster.nodes import READ_TIMEOUT_S, Member
from quarry_cluster.plan import FRONTS_MAX
from quarry_server.server import BUILD
from rich.console import Console
from rich.table import Table

IDS = 1000
RESERVATIONS = (1, 256, 1024)
DATABASE = "ids"
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE=QUARRY"
Cell = dict[str, Any]


def timed(what: str, connection: pymysql.Connection, sql: str, commits: Callable[[], int] | None = None) -> Cell:
    """`sql`, IDS times; `commits` counts the transactions of whoever keeps the ids, where something counts them."""
    with connection.cursor() as cursor:
        cursor.execute(sql)  # opens what is to be opened
        before, began = commits() if commits else 0, time.monotonic()
        for _ in range(IDS):
            cursor.execute(sql)
        took = time.monotonic() - began
    connection.close()
    counted = (commits() - before) * 1000 / IDS if commits else None
    return {"what": what, "us_per_id": took * 1e6 / IDS, "commits_per_1000": counted}


def binlog_events(member: Member) -> Callable[[], int]:
    """Transactions in a server's binlog."""
    return lambda: int(member.value("SELECT @@gtid_binlog_pos").rpartition("-")[2])


def galera_commits(member: Member) -> Callable[[], int]:
    """Write-sets of the cluster."""
    return lambda: int(member.status("wsrep_last_committed")["wsrep_last_committed"])


def through_route(cluster: Cluster, shard: str, database: str = DATABASE) -> pymysql.Connection:
    """A client's own connection to a shard's primary."""
    route = cluster.plan.routes[shard]
    return pymysql.connect(
        **{**cluster.login(cluster.primary(shard).node), "host": route.host, "port": route.port},
        database=database,
        autocommit=True,
        read_timeout=READ_TIMEOUT_S,
        write_timeout=READ_TIMEOUT_S,
    )


def measure_spider(cluster: Cluster) -> list[Cell]:
    front, shard = cluster.role("front")[0], cluster.primary("s1")
    ShardedTables(cluster).create(DATABASE, TABLE, "id")
    writes = [binlog_events(primary) for primary in cluster.primaries()]

    def committed() -> int:
        return sum(one() for one in writes)

    cells = []
    for mode, label in ((1, "the front counts"), (0, "the front asks the shards")):
        connection = front.connect(DATABASE)
        with connection.cursor() as cursor:
            cursor.execute(f"SET spider_auto_increment_mode = {mode}")
        cells.append(timed(f"INSERT, {label}", connection, "INSERT INTO t (n) VALUES (1)", committed))
    for cache in RESERVATIONS:
        name = f"{DATABASE}.s{cache}"
        run(shard, f"CREATE SEQUENCE {name} CACHE {cache} ENGINE=InnoDB")
        run(front, f"CREATE SEQUENCE {name} INCREMENT BY {FRONTS_MAX} CACHE {cache} ENGINE=InnoDB")
        sql = f"SELECT NEXT VALUE FOR {name}"
        cells.append(timed(f"SEQUENCE on a shard, CACHE {cache}", through_route(cluster, "s1"), sql, binlog_events(shard)))
        cells.append(timed(f"SEQUENCE on the front, CACHE {cache}", front.connect(), sql))
    return cells


def measure_galera(cluster: Cluster) -> list[Cell]:
    node = cluster.role("galera")[0]
    run(node, f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", TABLE)
    cells = []
    for cache in RESERVATIONS:
        name = f"{DATABASE}.s{cache}"
        run(node, f"CREATE SEQUENCE {name} INCREMENT BY 0 CACHE {cache} ENGINE=InnoDB")
        sql = f"SELECT NEXT VALUE FOR {name}"
        cells.append(timed(f"Galera: SEQUENCE, CACHE {cache}", node.connect(), sql, galera_commits(node)))
    for size in RESERVATIONS:
        run(node, f"SET GLOBAL quarry_autoincrement_prefetch_sz = {size}")
        what, sql = f"Galera: INSERT, prefetch {size}", "INSERT INTO t (n) VALUES (1)"
        cells.append(timed(what, node.connect(DATABASE), sql, galera_commits(node)))
    return cells


def main() -> int:
    report, cells = BUILD / "report" / "cluster", []
    report.mkdir(parents=True, exist_ok=True)
    for kind, measure in (("spider", measure_spider), ("galera", measure_galera)):
        with passing_cluster(BUILD / f"cluster-ids-{kind}", kind) as cluster:
            cells += measure(cluster)
    (report / "ids.json").write_text(json.dumps(cells, indent=1), encoding="utf-8")
    table = Table(title=f"{IDS:,} ids each", title_justify="left")
    for heading in ("ids by", "us an id", "transactions for 1,000 ids"):
        table.add_column(heading, justify="left" if heading == "ids by" else "right")
    for cell in cells:
        counted = cell["commits_per_1000"]
        table.add_row(cell["what"], f"{cell['us_per_id']:,.0f}", "" if counted is None else f"{counted:,.0f}")
    Console(width=110).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
