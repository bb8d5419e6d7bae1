"""A sharded table on every node or on none: QUARRY tables on the shards, a Spider table over them on each front.

MariaDB has no DDL that spans servers, so: everything that can be known is checked before anything is created, on every
node; what goes wrong later is undone. The table's name is written down first (ddl.json), so that an undoing that could
not reach a node, or a command that was killed, is made good by the next command.

An ALTER cannot be undone in general, so it is rehearsed on an empty copy of the table on every node, then written down
(alter.json) with the definition that it leads to, and carried out node by node. What stops it half way (a node that is
lost, rows of one shard that do not allow it) leaves alter.json: until the same ALTER is repeated and ends, or is taken
back, no other DDL is done.
Invariants: a table named in ddl.json must be nowhere; it is dropped from every node before anything else is done, unless
clients have filled it: then nothing is. While there is alter.json, each shard's table has either of the two definitions in it.
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
COLUMN_OPTION = re.compile(r" `(?:INLINE_SIZE|PREFIX_SIZE|PART_SIZE|CODEC|DEFAULTS)`=(?:'[^']*'|\w+)")
NEXT_ID = re.compile(r"(?<=\) ENGINE=)(\w+) AUTO_INCREMENT=\d+")
CHARSET = re.compile(r"DEFAULT CHARSET=\w+(?: COLLATE=\w+)?")
SHARDING = re.compile(r"ENGINE=SPIDER.*\bPARTITION BY ((?:HASH|KEY) \(`[^`]+`\))", re.DOTALL)
# The table's own name is not an alteration's to change: fronts find it on the shards by it.
RENAMING = re.compile(r"(?:^|,)\s*RENAME\s+(?!COLUMN\b|INDEX\b|KEY\b)", re.IGNORECASE)
TLS_FILES = {"ssl_ca": "ca.pem", "ssl_cert": "node.pem", "ssl_key": "node.key"}
APPLY_TIMEOUT_S = 30
ALTER_TIMEOUT_S = 24 * 3600  # a replica copies a large table as long as its primary did
REHEARSAL = "quarry_cluster_rehearsal"  # the name of an altered table's empty copy, beside it
EXISTS = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


@dataclass(frozen=True)
class TableName:
    """A table and the databases that it was the first of: those go with it. `is_new`: a CREATE that may have ended is to be undone."""

    database: str
    table: str
    new_database: bool
    is_new: bool = False

    def __str__(self) -> str:
        return f"{quoted(self.database)}.{quoted(self.table)}"


@dataclass(frozen=True)
class Alteration:
    """An ALTER TABLE of a sharded table; definitions as SHOW CREATE TABLE has them on the shards."""

    database: str
    table: str
    clauses: str
    before: str
    after: str

    @property
    def name(self) -> TableName:
        return TableName(self.database, self.table, False)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class ShardedTables:
    """DDL on one cluster of Spider fronts."""

    def __init__(self, cluster: Cluster) -> None:
        if not cluster.plan.routes:
            raise ClusterError("only a cluster with shards has sharded tables; on Galera use CREATE TABLE on any node")
        self.cluster = cluster
        self.intent = cluster.directory / "ddl.json"
        self.alteration = cluster.directory / "alter.json"

    def create(self, database: str, statement: str, key: str) -> None:
        match = STATEMENT.match(statement)
        if not match:
            raise ClusterError("the statement must be CREATE TABLE name (...) with no database, IF NOT EXISTS, LIKE or AS")
        self._begin()
        table = match[1].strip("`")
        self._refuse_unless_ready(lambda member: self._problem_with_new_table(member, database, table))
        fresh = not any(self._has_database(member, database) for member in self.cluster.members.values())
        name = TableName(database, table, fresh, is_new=True)
        write_durably(self.intent, asdict(name))
        try:
            definition = self._create_on_shards(name, statement)
            self._create_on_fronts(name, definition, key)
        except (pymysql.err.Error, ClusterError) as failure:
            self._undo_after(failure)
        self.intent.unlink()

    def drop(self, database: str, table: str) -> None:
        self._begin()
        self._refuse_unless_ready(lambda member: self._problem_with_old_table(member, database, table))
        write_durably(self.intent, asdict(TableName(database, table, False)))
        self.finish_undoing()

    def _begin(self) -> None:
        """What every command does first."""
        if unfinished := self.unfinished_alteration():
            raise ClusterError(
                f"refused, nothing was changed: ALTER TABLE {unfinished.name} {unfinished.clauses} is not done everywhere; "
                "repeat it (scripts/cluster alter), or take it back (--take-back)"
            )
        self.finish_undoing()

    # --- altering -----------------------------------------------------------------------------------
    def unfinished_alteration(self) -> Alteration | None:
        if not self.alteration.exists():
            return None
        return Alteration(**json.loads(self.alteration.read_text(encoding="utf-8")))

    def alter(self, database: str, table: str, clauses: str, say: Callable[[str], None] = print) -> None:
        """ALTER TABLE on every shard, then on the fronts. Repeated after a failure it goes on where it stopped. `say` is told of each step."""
        if RENAMING.search(clauses):
            raise ClusterError("refused, nothing was changed: a sharded table keeps its name; make a new one and copy the rows")
        planned = self.unfinished_alteration()
        if planned is None or (planned.database, planned.table, planned.clauses) != (database, table, clauses):
            self._begin()
            say("rehearsing on empty copies")
            planned = self._rehearsed(TableName(database, table, False), clauses)
            if planned.before == planned.after:  # FORCE and the like: there is nothing that nodes could differ in
                for primary in self.cluster.primaries():
                    say(f"altering on {primary.name}")
                    run(primary, f"ALTER TABLE {planned.name} {clauses}", read_timeout=None)
                return
            write_durably(self.alteration, asdict(planned))
        else:
            self._refuse_unless_ready(lambda member: self._problem_with_old_table(member, database, table))
        self._carry_out(planned, planned.clauses, planned.before, planned.after, say)

    def take_back(self, database: str, table: str, clauses: str, say: Callable[[str], None] = print) -> None:
        """The way back of an alteration that is not done everywhere: `clauses` undo it where it was done."""
        planned = self.unfinished_alteration()
        if planned is None or (planned.database, planned.table) != (database, table):
            raise ClusterError(f"refused, nothing was changed: no ALTER of {database}.{table} was left unfinished")
        self._refuse_unless_ready(lambda member: self._problem_with_old_table(member, database, table))
        self._carry_out(planned, clauses, planned.after, planned.before, say)

    def _rehearsed(self, name: TableName, clauses: str) -> Alteration:
        """The plan, after an empty copy of the table was altered so on every node."""
        copy = TableName(name.database, REHEARSAL, False)
        self._refuse_unless_ready(
            lambda member: self._problem_with_old_table(member, name.database, name.table)
            or self._problem_with_new_table(member, copy.database, copy.table)
        )
        try:
            before = self._agreed_definition(name)
        except ClusterError as failure:
            raise ClusterError(f"refused, nothing was changed: {failure}") from failure
        write_durably(self.intent, asdict(copy))
        try:
            for primary in self.cluster.primaries():
                run(primary, f"USE {quoted(name.database)}", f"CREATE TABLE {copy} LIKE {name}", f"ALTER TABLE {copy} {clauses}")
            copied = self._agreed_definition(copy)
            for front in self.cluster.role("front"):
                statement = self._on_front(copy, copied, self._sharding_of(front, name))
                run(front, f"CREATE TABLE {statement}", f"SELECT 1 FROM {copy} LIMIT 1")
        except (pymysql.err.Error, ClusterError) as failure:
            self._undo_after(failure, "nothing was changed")
        self.finish_undoing()
        after = copied.replace(quoted(REHEARSAL), quoted(name.table), 1)
        return Alteration(name.database, name.table, clauses, before, after)

    def _agreed_definition(self, name: TableName, timeout_s: int = APPLY_TIMEOUT_S) -> str:
        """What SHOW CREATE TABLE says on every shard and replica, which must be the same (but for the next id)."""
        found: dict[str, list[str]] = defaultdict(list)
        for shard in self.cluster.plan.routes:
            self._wait_for_replica(shard, timeout_s)
            for member in self.cluster.pair(shard):
                found[definition_on(member, name)].append(member.name)
        if len(found) > 1:
            raise ClusterError(f"the nodes have {name} differently: {describe(found)}")
        return next(iter(found))

    def _carry_out(self, planned: Alteration, clauses: str, begin: str, end: str, say: Callable[[str], None]) -> None:
        name, done = planned.name, []
        for primary in self.cluster.primaries():
            found = definition_on(primary, name)
            if found not in (begin, end):
                raise ClusterError(f"{primary.name} has {name} neither as it was nor as it shall be: {found}")
            try:
                if found != end:
                    say(f"altering on {primary.name}")
                    run(primary, f"ALTER TABLE {name} {clauses}", read_timeout=None)
            except pymysql.err.Error as failure:
                self._stop_half_way(planned, primary, done, failure)
            if definition_on(primary, name) != end:
                raise ClusterError(f"{clauses} on {primary.name} does not lead to the definition that is wanted: {end}")
            done.append(primary.name)
        say("waiting for the replicas")
        self._agreed_definition(name, ALTER_TIMEOUT_S)
        for front in self.cluster.role("front"):
            run(front, f"CREATE OR REPLACE TABLE {self._on_front(name, end, self._sharding_of(front, name))}")
        self.alteration.unlink()

    def _stop_half_way(self, planned: Alteration, primary: Member, done: list[str], failure: Exception) -> None:
        if not done and all(definition_on(member, planned.name) == planned.before for member in self.cluster.primaries()):
            self.alteration.unlink()
            raise ClusterError(f"{primary.name}: {failure}; nothing was changed") from failure
        raise ClusterError(
            f"{primary.name}: {failure}; it is done on {', '.join(done) or 'other shards'} and not on the fronts. Mend what is in the way and "
            "repeat the command, or take it back (--take-back) by clauses that undo it"
        ) from failure

    @staticmethod
    def _sharding_of(front: Member, name: TableName) -> str:
        found = SHARDING.search(definition_on(front, name))
        if not found:
            raise ClusterError(f"{front.name} has {name}, but not as a Spider table with a sharding column")
        return found[1]

    # --- undoing ------------------------------------------------------------------------------------
    def finish_undoing(self) -> None:
        """Drops, from fronts first, what a failed or killed command left behind."""
        if not self.intent.exists():
            return
        name = TableName(**json.loads(self.intent.read_text(encoding="utf-8")))
        if name.is_new:
            self._refuse_rows(name)
        for member in [*self.cluster.role("front"), *self.cluster.primaries()]:
            try:
                drop_table(member, name)
            except pymysql.err.Error as failure:
                raise still_there(name, member, failure) from failure
        for shard in self.cluster.plan.routes:
            if self.cluster.replica(shard).alive():  # one that is down gets it from the binlog
                self._wait_for_replica(shard)
        self.intent.unlink()

    def _refuse_rows(self, name: TableName) -> None:
        """A CREATE that was killed at its very end left a table that clients have used since."""
        for primary in self.cluster.primaries():
            try:
                is_there = primary.value(EXISTS, (name.database, name.table))
                has_rows = is_there and primary.value(f"SELECT 1 FROM {name} LIMIT 1")
            except pymysql.err.Error as failure:
                raise still_there(name, primary, failure) from failure
            if has_rows:
                raise ClusterError(
                    f"{name} comes from a CREATE that was broken off, and has rows by now (on {primary.name}). If all nodes have it, "
                    f"remove {self.intent}, and it stays; else save its rows, delete them, and repeat the command, which drops it"
                )

    def _wait_for_replica(self, shard: str, timeout_s: int = APPLY_TIMEOUT_S) -> None:
        primary, replica = self.cluster.pair(shard)
        position = primary.value("SELECT @@gtid_binlog_pos")
        if replica.value("SELECT MASTER_GTID_WAIT(%s, %s)", (position, timeout_s), read_timeout=None) != 0:
            raise ClusterError(f"{replica.name} does not apply the statement")

    def _undo_after(self, failure: Exception, left: str = "nothing was created") -> None:
        try:
            self.finish_undoing()
        except ClusterError as second:
            raise ClusterError(f"{failure}; and not everything could be undone: {second}") from failure
        raise ClusterError(f"{failure}; {left}") from failure

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
        out_of_sync = [shard for shard in self.cluster.plan.routes if not self.cluster.fits_promotion(shard)]
        problems += [f"{shard}: its replica is not in sync" for shard in out_of_sync]
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
        for primary in self.cluster.primaries():
            run(primary, f"CREATE DATABASE IF NOT EXISTS {quoted(name.database)}", f"USE {quoted(name.database)}", statement)
        return self._agreed_definition(name)

    def _create_on_fronts(self, name: TableName, definition: str, key: str) -> None:
        statement = self._on_front(name, definition, self._hash(name, key))
        for front in self.cluster.role("front"):
            run(
                front,
                f"CREATE DATABASE IF NOT EXISTS {quoted(name.database)}",
                f"CREATE TABLE {statement}",
                f"SELECT 1 FROM {name} LIMIT 1",
            )

    def _on_front(self, name: TableName, definition: str, sharding: str) -> str:
        """What stands behind CREATE TABLE on a front: a shard's columns and character set, over all shards."""
        columns, _, options = definition.partition("(")[2].rpartition("\n) ENGINE=")
        if "PARTITION BY" in options or "FOREIGN KEY" in columns:
            raise ClusterError("a sharded table has neither partitions of its own nor foreign keys")
        charset = CHARSET.search(options)
        shards = ", ".join(f"""PARTITION {shard} COMMENT 'srv "{shard}"'""" for shard in self.cluster.plan.routes)
        comment = f'wrapper "mysql", database "{name.database}", table "{name.table}"'
        if self.cluster.plan.tls:
            # Seen from a front's data directory, so that the definition stays true wherever the cluster's directory is.
            comment += "".join(f', {key} "../../tls/{file}"' for key, file in TLS_FILES.items())
            comment += ', ssl_verify_server_cert "1"'
        return (
            f"{name} ({COLUMN_OPTION.sub('', columns)}\n) ENGINE=SPIDER {charset[0] if charset else ''} COMMENT='{comment}' "
            f"PARTITION BY {sharding} ({shards})"
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


def still_there(name: TableName, member: Member, failure: pymysql.err.Error) -> ClusterError:
    return ClusterError(
        f"{name} is still to be dropped on {member.name}, which answers {failure.args}; "
        "start the cluster, then repeat the command: it drops it first"
    )


def drop_table(member: Member, name: TableName) -> None:
    run(member, f"DROP TABLE IF EXISTS {name}")
    query = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s"
    if name.new_database and not member.value(query, (name.database,)):
        run(member, f"DROP DATABASE IF EXISTS {quoted(name.database)}")


def definition_on(member: Member, name: TableName) -> str:
    """SHOW CREATE TABLE, without the next id, which differs from node to node."""
    return NEXT_ID.sub(r"\1", member.query(f"SHOW CREATE TABLE {name}")[0]["Create Table"])


def describe(groups: dict[str, list[str]]) -> str:
    return "; ".join(f"{', '.join(names)} have {what}" for what, names in groups.items())
