"""A sharded table on every node or on none: QUARRY tables on the shards, a Spider table over them on each front.

MariaDB has no DDL that spans servers, so: everything that can be known is checked before anything is created, on every
node; what goes wrong later is undone. The table's name is written down first (ddl.json), so that an undoing that could
not reach a node, or a command that was killed, is made good by the next command.
Invariant: a table named in ddl.json must be nowhere; it is dropped from every node before anything else is done.
Thread-safety: externally synchronised (cluster.locked).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Callable

import pymysql

from .cluster import Cluster
from .keeper import run
from .nodes import Member
from .plan import ClusterError, write_durably

STATEMENT = re.compile(r"\s*CREATE\s+TABLE\s+(`[^`]+`|\w+)\s*\(", re.IGNORECASE)
# Fronts do not know QUARRY's column options, and the server refuses unknown ones in a table with partitions.
COLUMN_OPTION = re.compile(r" `(?:INLINE_SIZE|PREFIX_SIZE|PART_SIZE|CODEC)`=(?:'[^']*'|\w+)")
APPLY_TIMEOUT_S = 30
EXISTS = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


@dataclass(frozen=True)
class TableName:
    """A table and the databases that it was the first of: those go with it."""

    database: str
    table: str
    new_database: bool

    def __str__(self) -> str:
        return f"{quoted(self.database)}.{quoted(self.table)}"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class ShardedTables:
    """DDL on one cluster of Spider fronts."""

    def __init__(self, cluster: Cluster) -> None:
        if not cluster.plan.routes:
            raise ClusterError("only a cluster with shards has sharded tables; on Galera use CREATE TABLE on any node")
        self.cluster = cluster
        self.intent = cluster.directory / "ddl.json"

    def create(self, database: str, statement: str, key: str) -> None:
        match = STATEMENT.match(statement)
        if not match:
            raise ClusterError("the statement must be CREATE TABLE name (...) with no database, IF NOT EXISTS, LIKE or AS")
        self.finish_undoing()
        table = match[1].strip("`")
        self._refuse_unless_ready(lambda member: self._problem_with_new_table(member, database, table))
        fresh = not any(self._has_database(member, database) for member in self.cluster.members.values())
        name = TableName(database, table, fresh)
        write_durably(self.intent, asdict(name))
        try:
            definition = self._create_on_shards(name, statement)
            self._create_on_fronts(name, definition, key)
        except (pymysql.err.Error, ClusterError) as failure:
            self._undo_after(failure)
        self.intent.unlink()

    def drop(self, database: str, table: str) -> None:
        self.finish_undoing()
        self._refuse_unless_ready(lambda member: self._problem_with_old_table(member, database, table))
        write_durably(self.intent, asdict(TableName(database, table, False)))
        self.finish_undoing()

    def finish_undoing(self) -> None:
        """Drops, from fronts first, what a failed or killed command left behind."""
        if not self.intent.exists():
            return
        name = TableName(**json.loads(self.intent.read_text(encoding="utf-8")))
        for member in [*self.cluster.role("front"), *self.cluster.primaries()]:
            try:
                drop_table(member, name)
            except pymysql.err.Error as failure:
                raise ClusterError(
                    f"{name} is still to be dropped on {member.name}, which answers {failure.args}; "
                    "start the cluster, then repeat the command: it drops it first"
                ) from failure
        for shard in self.cluster.plan.routes:
            if self.cluster.replica(shard).alive():  # one that is down gets it from the binlog
                self._wait_for_replica(shard)
        self.intent.unlink()

    def _wait_for_replica(self, shard: str) -> None:
        primary, replica = self.cluster.pair(shard)
        position = primary.value("SELECT @@gtid_binlog_pos")
        if replica.value("SELECT MASTER_GTID_WAIT(%s, %s)", (position, APPLY_TIMEOUT_S)) != 0:
            raise ClusterError(f"{replica.name} does not apply the statement")

    def _undo_after(self, failure: Exception) -> None:
        try:
            self.finish_undoing()
        except ClusterError as second:
            raise ClusterError(f"{failure}; and not everything could be undone: {second}") from failure
        raise ClusterError(f"{failure}; nothing was created") from failure

    # --- looking first ------------------------------------------------------------------------------
    def _refuse_unless_ready(self, of_table: Callable[[Member], str | None]) -> None:
        problems = []
        versions: dict[str, list[str]] = defaultdict(list)
        for member in self.cluster.members.values():
            try:
                versions[str(member.value("SELECT VERSION()")).split("-")[0]].append(member.name)
                problem = of_table(member) or self._problem_with_member(member)
            except (pymysql.err.Error, OSError) as failure:
                problem = f"cannot be reached: {failure.args[-1]}"
            if problem:
                problems.append(f"{member.name}: {problem}")
        if len(versions) > 1:
            problems.append("server versions differ: " + describe(versions))
        problems += self._problems_with_engines() if not problems else []
        states = self.cluster.states()
        problems += [f"{shard}: its replica is not in sync" for shard in self.cluster.plan.routes if not states[shard].in_sync]
        if problems:
            raise ClusterError("refused, nothing was changed:\n  " + "\n  ".join(problems))

    def _problem_with_member(self, member: Member) -> str | None:
        if member.node.role == "front":
            return self._problem_with_servers(member)
        writable = not member.value("SELECT @@read_only")
        is_primary = member is self.cluster.primary(member.node.shard)
        if writable != is_primary:
            return f"is {'writable' if writable else 'read-only'}, though the {'primary' if is_primary else 'replica'}"
        return None

    def _problem_with_servers(self, front: Member) -> str | None:
        rows = front.query("SELECT server_name, host, port FROM mysql.servers")
        known = {row["server_name"]: (row["host"], int(row["port"])) for row in rows}
        wrong = [
            shard for shard, route in self.cluster.plan.routes.items() if known.get(shard) != (route.host, route.port)
        ]
        return f"does not know the way to {', '.join(wrong)} (scripts/cluster start teaches it)" if wrong else None

    def _problems_with_engines(self) -> list[str]:
        versions: dict[str, list[str]] = defaultdict(list)
        for role, engine in (("data", "QUARRY"), ("front", "SPIDER")):
            versions.clear()
            for member in self.cluster.role(role):
                query = "SELECT CONCAT(plugin_version, ' ', plugin_status) FROM information_schema.plugins "
                found = member.value(query + "WHERE plugin_type = 'STORAGE ENGINE' AND plugin_name = %s", (engine,))
                versions[found or "none"].append(member.name)
            if len(versions) > 1 or not next(iter(versions)).endswith(" ACTIVE"):
                return [f"{engine} is not the same everywhere: {describe(versions)}"]
        return []

    @staticmethod
    def _problem_with_new_table(member: Member, database: str, table: str) -> str | None:
        return f"has {database}.{table} already" if member.value(EXISTS, (database, table)) else None

    @staticmethod
    def _problem_with_old_table(member: Member, database: str, table: str) -> str | None:
        return None if member.value(EXISTS, (database, table)) else f"has no {database}.{table}"

    @staticmethod
    def _has_database(member: Member, database: str) -> bool:
        return bool(member.query("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", (database,)))

    # --- creating -----------------------------------------------------------------------------------
    def _create_on_shards(self, name: TableName, statement: str) -> str:
        """The definition, which all shards and their replicas agree on."""
        definitions: dict[str, list[str]] = defaultdict(list)
        for primary in self.cluster.primaries():
            run(primary, f"CREATE DATABASE IF NOT EXISTS {quoted(name.database)}", f"USE {quoted(name.database)}", statement)
        for shard in self.cluster.plan.routes:
            self._wait_for_replica(shard)
            for member in self.cluster.pair(shard):
                definitions[member.query(f"SHOW CREATE TABLE {name}")[0]["Create Table"]].append(member.name)
        if len(definitions) > 1:
            raise ClusterError(f"the nodes understand the statement differently: {describe(definitions)}")
        return next(iter(definitions))

    def _create_on_fronts(self, name: TableName, definition: str, key: str) -> None:
        columns, _, options = definition.partition("(")[2].rpartition("\n) ENGINE=")
        if "PARTITION BY" in options or "FOREIGN KEY" in columns:
            raise ClusterError("a sharded table has neither partitions of its own nor foreign keys")
        shards = ", ".join(f"""PARTITION {shard} COMMENT 'srv "{shard}"'""" for shard in self.cluster.plan.routes)
        comment = f'wrapper "mysql", database "{name.database}", table "{name.table}"'
        statement = (
            f"CREATE TABLE {name} ({COLUMN_OPTION.sub('', columns)}\n) ENGINE=SPIDER COMMENT='{comment}' "
            f"PARTITION BY {self._hash(name, key)} ({shards})"
        )
        for front in self.cluster.role("front"):
            run(
                front,
                f"CREATE DATABASE IF NOT EXISTS {quoted(name.database)}",
                statement,
                f"SELECT 1 FROM {name} LIMIT 1",
            )

    def _hash(self, name: TableName, key: str) -> str:
        """Integers modulo the number of shards: KEY() spreads them badly over an even number (one in two may get none)."""
        kind = self.cluster.primaries()[0].value(
            "SELECT data_type FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s AND column_name = %s",
            (name.database, name.table, key),
        )
        if kind is None:
            raise ClusterError(f"the table has no column {key} to shard by")
        return f"{'HASH' if kind.endswith('int') else 'KEY'} ({quoted(key)})"


def drop_table(member: Member, name: TableName) -> None:
    run(member, f"DROP TABLE IF EXISTS {name}")
    query = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s"
    if name.new_database and not member.value(query, (name.database,)):
        run(member, f"DROP DATABASE IF EXISTS {quoted(name.database)}")


def describe(groups: dict[str, list[str]]) -> str:
    return "; ".join(f"{', '.join(names)} have {what}" for what, names in groups.items())
