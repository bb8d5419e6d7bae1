"""The servers of a cluster: their options, and connections to them.

Every data node starts read-only and replicates nothing until the keeper has decided what it is (keeper.py). A server
here is small: a cluster of ten must fit beside other work on one machine.
Thread-safety: a Member is externally synchronised; connections belong to the thread that made them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymysql
from quarry_server import private
from quarry_server.server import PLUGIN, PrivateServer

from .galera import galera_options
from .plan import FRONTS_MAX, Node, Plan
from .tls import Certificates

SMALL = [
    "--innodb-log-file-size=32M",
    "--innodb-log-buffer-size=4M",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=4M",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-buffer-pool-load-at-startup=0",
    "--max-allowed-packet=64M",
    "--character-set-server=utf8mb4",
    "--bind-address=127.0.0.1",
]
BUFFER_POOL = {"front": "16M", "data": "32M", "galera": "64M"}
QUARRY_CACHE = ["--loose-quarry-cache-size=16M", "--loose-quarry-recent-cache-bytes=8M"]
# A primary never acknowledges alone by time-out: only the keeper switches semi-sync off, after it has written down
# that the replica is no longer fit to be promoted.
NEVER_MS = 4294967295
REPLICATION = [
    "--log-bin=binlog",
    "--binlog-format=ROW",
    "--binlog-row-image=MINIMAL",
    "--binlog-annotate-row-events=OFF",  # a value sent as a literal would be there twice
    "--log-slave-updates",
    "--gtid-strict-mode=ON",
    "--sync-binlog=1",
    "--relay-log=relay",
    "--relay-log-recovery=ON",
    "--skip-slave-start",
    "--slave-net-timeout=10",
    "--slave-parallel-threads=2",
    "--read-only=ON",
    "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
    "--rpl-semi-sync-master-wait-no-slave=ON",
    f"--rpl-semi-sync-master-timeout={NEVER_MS}",
]
FRONT = [
    "--plugin-load-add=ha_spider.so",
    "--spider-conn-recycle-mode=2",  # a session keeps its connections; else each transaction makes new ones
    "--spider-connect-timeout=2",
    "--spider-net-read-timeout=30",
    "--spider-net-write-timeout=30",
    # A front counts on from the largest id that it saw; interleaving keeps the fronts' ids apart without a trip.
    "--spider-auto-increment-mode=1",
    f"--auto-increment-increment={FRONTS_MAX}",
    "--spider-use-default-database=ON",
]
READ_TIMEOUT_S = 60


class Member:
    """A node of a plan and its server in `directory`/<name>."""

    def __init__(self, plan: Plan, node: Node, directory: Path, plugin: Path | None = PLUGIN) -> None:
        self.node, self.name, self.plan = node, node.name, plan
        options = [
            *SMALL,
            f"--innodb-buffer-pool-size={BUFFER_POOL[node.role]}",
            f"--port={node.port}",
            f"--server-id={node.server_id}",
        ]
        if node.role == "front":
            options += [*FRONT, f"--auto-increment-offset={node.server_id}"]
            plugin = None
        else:
            options += QUARRY_CACHE
        if node.role == "data":
            options += REPLICATION
        if node.role == "galera":
            options += galera_options(plan, node, directory)
        if plan.tls:
            options += Certificates(directory).server_options()
        self.options = options
        self.server = PrivateServer(
            directory / node.name, options, plugin=plugin, drop=(), drop_to=private.unprivileged_id(directory)
        )
        self.server.adopt()

    def start(self, *extra: str, detach: bool = True) -> None:
        """With `extra` options for this start alone."""
        self.server.options = [*self.options, *extra]
        self.server.start(detach=detach)

    def alive(self) -> bool:
        return self.server.running() or self.server.adopt()

    def connect(self, database: str | None = None, **settings: Any) -> pymysql.Connection:
        """As root, through the socket: no wait lasts for ever."""
        settings = {"autocommit": True, "read_timeout": READ_TIMEOUT_S, "write_timeout": READ_TIMEOUT_S, **settings}
        return pymysql.connect(
            unix_socket=str(self.server.socket),
            user=private.account(),
            database=database,
            charset="utf8mb4",
            ssl_disabled=True,  # a TLS context for each connection would cost more than most statements
            **settings,
        )

    def query(self, sql: str, arguments: tuple | None = None, **settings: Any) -> list[dict[str, Any]]:
        """Rows of one statement, by column name, on a connection of its own."""
        connection = self.connect(**settings)
        try:
            with connection.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute(sql, arguments)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def value(self, sql: str, arguments: tuple | None = None, **settings: Any) -> Any:
        """The first field of the only row, or None."""
        rows = self.query(sql, arguments, **settings)
        return next(iter(rows[0].values())) if rows else None

    def status(self, pattern: str) -> dict[str, str]:
        rows = self.query("SHOW GLOBAL STATUS LIKE %s", (pattern,))
        return {row["Variable_name"].lower(): row["Value"] for row in rows}

    def slave_status(self, **settings: Any) -> dict[str, Any]:
        """Empty when it is no replica."""
        rows = self.query("SHOW SLAVE STATUS", **settings)
        return rows[0] if rows else {}
