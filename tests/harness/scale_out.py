"""A cluster of quarry_cluster under test: in build/tests, with a ledger on it, compared node by node.

Thread-safety: externally synchronised.
"""

import hashlib
import shutil

import pymysql
from quarry_cluster.cluster import Cluster
from quarry_cluster.ddl import ShardedTables
from quarry_lab.cluster.ledger import DEFINITION, TABLE, Load

from harness.server import SCRATCH
from harness.waiting import wait_for

DATABASE = "l"
CLIENT_TIMEOUT_S = 30
SETTLE_TIMEOUT_S = 120


class ScaleOut:
    """One cluster, its ledger, and clients that reach it over TCP as users do."""

    def __init__(self, name, kind="spider", **sizes):
        self.directory = SCRATCH / name
        if self.directory.exists():
            self.remove()
        self.cluster = Cluster.make(self.directory, kind, **sizes)
        self.loads = []

    def start(self):
        self.cluster.start()
        if self.cluster.plan.kind == "galera":
            first = self.cluster.role("galera")[0]
            first.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
            first.query(DEFINITION, database=DATABASE)
        else:
            ShardedTables(self.cluster).create(DATABASE, DEFINITION, "id")
        return self

    def entries(self):
        return self.cluster.role("galera" if self.cluster.plan.kind == "galera" else "front")

    def connects(self, database=DATABASE):
        """A way in through each entry."""

        def way(node):
            return lambda: pymysql.connect(
                **self.cluster.login(node),
                database=database,
                autocommit=True,
                charset="utf8mb4",
                connect_timeout=2,
                read_timeout=CLIENT_TIMEOUT_S,
                write_timeout=CLIENT_TIMEOUT_S,
            )

        return [way(member.node) for member in self.entries()]

    def load(self, clients):
        """New clients, with rows of their own, that are remembered for check()."""
        first = 1 + sum(len(load.workers) for load in self.loads)
        self.loads.append(Load(self.connects(), clients, first=first))
        return self.loads[-1]

    def settle(self):
        """Every node runs and has what any had; a shard's replica may be promoted again."""
        if self.cluster.plan.routes:
            self.cluster.wait_in_sync(SETTLE_TIMEOUT_S)
            wait_for(lambda: f"replicas that are behind: {self._behind()}", lambda: not self._behind(), SETTLE_TIMEOUT_S)
            return
        for member in self.entries():
            member.query("SELECT COUNT(*) FROM mysql.global_priv", init_command="SET wsrep_sync_wait = 15")

    def _behind(self):
        position, behind = "SELECT @@gtid_binlog_pos", []
        for shard in self.cluster.plan.routes:
            reached = {self.cluster.members[node.name].value(position) for node in self.cluster.plan.shard(shard)}
            if len(reached) > 1:
                behind.append(shard)
        return behind

    def ledgers(self):
        """{node: rows of its ledger} of all nodes that hold rows."""
        holders = self.cluster.role("galera") or self.cluster.role("data")
        return {member.name: self._rows(member) for member in holders}

    @staticmethod
    def _rows(member):
        rows = member.query(f"SELECT id, version, SHA2(body, 256) AS found FROM {TABLE}", database=DATABASE)
        return {row["id"]: (row["version"], row["found"]) for row in rows}

    def check(self):
        """All copies are equal and hold what was acknowledged to anybody; {node: digest}. AssertionError with what is wrong."""
        self.settle()
        ledgers = self.ledgers()
        digests = {name: digest(rows) for name, rows in ledgers.items()}
        plan = self.cluster.plan
        groups = [plan.shard(shard) for shard in plan.routes] or [plan.role("galera")]
        whole = {}
        for group in groups:
            found = {digests[node.name] for node in group}
            assert len(found) == 1, f"copies differ: { {node.name: digests[node.name] for node in group} }"
            assert not whole.keys() & ledgers[group[0].name].keys(), "a row is on two shards"
            whole |= ledgers[group[0].name]
        everybody = Load([], 0)
        everybody.workers = [worker for load in self.loads for worker in load.workers]
        problems = everybody.wrong() + everybody.missing(whole)
        assert not problems, f"{len(problems)} wrong rows: {problems[:5]}"
        return digests

    def stop(self):
        self.cluster.stop()

    def remove(self):
        """Whatever runs in the directory is ours: it is ended first."""
        if (self.directory / "cluster.json").exists():
            Cluster(self.directory).stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def digest(rows):
    """SHA-256 over all rows in order."""
    made = hashlib.sha256()
    for row, (version, found) in sorted(rows.items()):
        made.update(f"{row} {version} {found} ".encode())
    return made.hexdigest()[:16]
