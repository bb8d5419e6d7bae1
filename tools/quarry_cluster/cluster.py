"""A whole cluster: started on top of whatever is there, stopped, its killed nodes started again.

Directory layout, mode 0700: cluster.json (the plan)  shards.json (who is primary: keeper.py)  haproxy.cfg  keeper.log
<node>/ (one PrivateServer each)  tls/ (tls.py)  client.cnf (how to get in)  bin/ (Galera: the rsync of state transfers)
Invariants: a process is signalled only after /proc says that it is this cluster's.
Thread-safety: externally synchronised; `members` may be asked from any thread.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator

import pymysql
from quarry_server.private import is_foreign, make_directory, unprivileged_id, unreachable, write_secret
from quarry_server.run import run_or_raise
from quarry_server.server import BUILD, MARIADB, PLUGIN, holds_former_home, set_aside

from .galera import recovered_position, transfer_path, why_no_galera
from .haproxy import HAPROXY, HAProxy
from .keeper import REPLICATION_USER, ShardState, StateFile, is_running, is_waited_for, run
from .nodes import Member
from .plan import ClusterError, Node, make_plan, read_plan, recorded_pid, write_plan
from .tls import Certificates

DIRECTORY = BUILD / "cluster"
SQL_USER = "quarry"  # of clients, and of fronts on the shards
READY_TIMEOUT_S = 120
STARTS_AT_ONCE = 3
# What a front does on a shard. Not ALL: read_only must hold for it.
RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, LOCK TABLES, CREATE TEMPORARY TABLES, "
    "EXECUTE, TRIGGER, SHOW VIEW, CREATE VIEW, PROCESS, SHOW DATABASES"
)


class Cluster:
    """The cluster in `directory`, which has a plan already."""

    def __init__(self, directory: Path = DIRECTORY, plugin: Path | None = PLUGIN) -> None:
        plan = read_plan(directory)
        if plan is None:
            raise ClusterError(f"no cluster in {directory}: run 'make cluster'")
        self.directory, self.plan = make_directory(directory), plan
        self.tls = Certificates(directory)
        self.members = {node.name: Member(plan, node, directory, plugin) for node in plan.nodes}
        self.proxy = HAProxy(plan, directory)
        self.keeper_pid_file = directory / "keeper.pid"

    @staticmethod
    def make(
        directory: Path,
        kind: str,
        shards: int | None = None,
        fronts: int | None = None,
        plugin: Path | None = PLUGIN,
        tls: bool = True,
    ) -> "Cluster":
        """The cluster that is there, if it is of this kind, else a new plan. One of a build from before the first release, or
        of one that let in other accounts of the machine, is stopped and set aside. `tls`: between the nodes of a new one."""
        plan = read_plan(directory)
        if plan is not None and (holds_former_home(directory) or not plan.closed):
            why = "from before the first release" if plan.closed else "whose servers let in every account of this machine"
            Cluster(directory, plugin).stop()
            print(f"{directory} was of a build {why}: it is {set_aside(directory)} now, this one begins anew")
            plan = None
        if plan is None:
            reason = why_no_galera() if kind == "galera" else None
            if reason:
                raise ClusterError(reason)
            make_directory(directory)
            write_plan(directory, make_plan(kind, shards, tls=tls, **({"fronts": fronts} if fronts else {})))
        elif plan.kind != kind:
            raise ClusterError(
                f"{directory} holds a cluster of KIND={plan.kind}: 'make cluster-stop', then remove {directory}"
            )
        return Cluster(directory, plugin)

    def role(self, role: str) -> list[Member]:
        return [self.members[node.name] for node in self.plan.role(role)]

    def states(self) -> StateFile:
        """What the keeper has written down by now."""
        return StateFile(self.plan, self.directory)

    def primary(self, shard: str) -> Member:
        return self.members[self.states()[shard].primary]

    def replica(self, shard: str) -> Member:
        return self.pair(shard)[1]

    def pair(self, shard: str) -> tuple[Member, Member]:
        """(primary, replica)"""
        first, second = (self.members[node.name] for node in self.plan.shard(shard))
        return (first, second) if first.name == self.states()[shard].primary else (second, first)

    def primaries(self) -> list[Member]:
        return [self.primary(shard) for shard in self.plan.routes]

    # --- starting ---------------------------------------------------------------------------------
    def start(self) -> None:
        """Whatever does not run is started; returns when the cluster serves."""
        self.tls.make(["127.0.0.1", *(route.host for route in self.plan.routes.values())])
        write_secret(self.directory / "client.cnf", self._client_options())
        if self.plan.kind == "galera":
            transfer_path(self.directory)  # writes what belongs to the nodes
        self._hand_over()
        if self.plan.kind == "galera":
            self._start_galera()
            return
        if not HAPROXY.exists():
            raise ClusterError("HAProxy is not in the unpacked MariaDB: run scripts/fetch-mariadb")
        self._start_nodes()
        self._start_keeper()
        self.wait_in_sync()
        for front in self.role("front"):
            self._introduce_shards(front)

    def _start_nodes(self) -> None:
        """Those that do not run. A start that was broken off may have left any of them without accounts."""
        dead = [name for name, member in self.members.items() if not member.alive()]
        with ThreadPoolExecutor(STARTS_AT_ONCE) as starters:
            list(starters.map(self.start_node, dead))
            list(starters.map(accounts, self.members.values()))

    def _hand_over(self) -> None:
        """Root's servers run as a user id of their own, which the directory and what they share belong to; as root where that
        can't reach the tree: then all of it is root's, for rsync takes no secret from a file of somebody else's."""
        if os.geteuid() != 0:
            return
        number = unprivileged_id(self.directory)
        os.chown(self.directory, number, number)
        if unreachable(number, [MARIADB / "usr" / "sbin" / "mariadbd", self.directory]):
            number = 0
            os.chown(self.directory, number, number)
        shared = [path for path in (self.directory / "tls", self.directory / "bin") if path.exists()]
        run_or_raise(["chown", "-hR", f"{number}:{number}", *shared], ClusterError)

    def _client_options(self) -> str:
        entry = self.role("galera" if self.plan.kind == "galera" else "front")[0].node
        lines = ["host = 127.0.0.1", f"port = {entry.port}", f"user = {SQL_USER}", f"password = {self.plan.password}"]
        lines += [f"ssl_ca = {self.tls.authority}", "ssl_verify_server_cert"] if self.plan.tls else []
        return "\n".join(["[client]", *lines, ""])

    def login(self, node: Node) -> dict[str, Any]:
        """PyMySQL's arguments for a client of the cluster at a node: a data node asks for the nodes' certificate."""
        where = {"host": "127.0.0.1", "port": node.port, "user": SQL_USER, "password": self.plan.password}
        if node.role == "data" and self.plan.tls:
            return {**where, **self.tls.client()}
        return {**where, "ssl_disabled": True}

    def start_node(self, name: str) -> None:
        """Starts one server that is down; one that was killed recovers, and joins again when the keeper sees it."""
        member = self.members[name]
        is_new = not has_data(member)
        if member.node.role == "galera":
            self._start_galera_node(member)
            return
        if is_new and member.node.role == "data":
            self._refuse_an_empty_primary(member)
        member.start(*self.start_options(member))
        if is_new:
            accounts(member)
        if member.node.role == "front" and not is_new:
            self._introduce_shards(member)

    def _refuse_an_empty_primary(self, member: Member) -> None:
        """Its replica has data, and may not be promoted: what is served would be empty, without a word."""
        states, shard = self.states(), member.node.shard
        other = next(self.members[node.name] for node in self.plan.shard(shard) if node.name != member.name)
        is_its_place = states.path.exists() and states[shard].primary == member.name and not states[shard].in_sync
        if is_its_place and has_data(other):
            raise ClusterError(
                f"{member.name}, the primary of {shard}, has lost its data ({member.server.datadir}), and {other.name} was not in sync: "
                f"bring the data back. To go on with what {other.name} has, write its name as the primary of {shard} into {states.path}"
            )

    def start_options(self, member: Member) -> list[str]:
        """A server that starts as a replica after a crash takes back what is in its binlog and was never acknowledged by
        a replica. A primary that went on alone keeps all it has: it is the authority."""
        if member.node.role != "data":
            return []
        state = self.states()[member.node.shard]
        is_authority = state.primary == member.name and not state.in_sync
        return ["--init-rpl-role=MASTER"] if is_authority else ["--init-rpl-role=SLAVE", "--rpl-semi-sync-slave-enabled=ON"]

    def _introduce_shards(self, front: Member) -> None:
        statements = [
            f"CREATE OR REPLACE SERVER {shard} FOREIGN DATA WRAPPER mysql OPTIONS (HOST '{route.host}', PORT {route.port}, "
            f"USER '{SQL_USER}', PASSWORD '{self.plan.password}')"
            for shard, route in self.plan.routes.items()
        ]
        run(front, *statements)

    def is_in_sync(self, shard: str) -> bool:
        """Whether the primary is writable and the replica may be promoted, now. The keeper's word alone is not enough: it
        stands for a while after the replica was away. Raises what a server raises that does not answer.
        """
        primary, replica = self.pair(shard)
        return (
            not primary.value("SELECT @@read_only")
            and is_running(replica.slave_status())
            and is_waited_for(primary)
            # Last: a primary that went on alone has the word taken back before its replica runs again.
            and self.states()[shard] == ShardState(primary.name, in_sync=True)
        )

    def fits_promotion(self, shard: str) -> bool:
        """is_in_sync, where a server that does not answer is one more reason against it."""
        try:
            return self.is_in_sync(shard)
        except (pymysql.err.Error, OSError):
            return False

    def wait_in_sync(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Until every shard has a writable primary, and a replica that may be promoted."""

        def is_ready() -> bool:
            if self.keeper_pid() is None:
                raise ClusterError(f"the keeper ended:\n{self.log_tail()}")
            return all(self.is_in_sync(shard) for shard in self.plan.routes)

        what = "not every shard has a writable primary and a replica in sync"
        wait_for(is_ready, timeout_s, lambda: f"{what}\n{self.log_tail()}")

    # --- the keeper -------------------------------------------------------------------------------
    def _start_keeper(self) -> None:
        if self.keeper_pid() is not None:
            return
        with open(self.directory / "keeper.log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "quarry_cluster", "--directory", self.directory, "keep"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # of this tree, whatever the interpreter knows
            )
        self.keeper_pid_file.write_text(f"{process.pid}\n", encoding="ascii")
        wait_for(
            lambda: self.keeper_pid() is not None or process.poll() is not None,
            READY_TIMEOUT_S,
            lambda: "the keeper did not start",
        )

    def keeper_pid(self) -> int | None:
        return recorded_pid(self.keeper_pid_file, self.directory)

    def log_tail(self, lines: int = 12) -> str:
        try:
            text = (self.directory / "keeper.log").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return "no keeper.log"
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """The keeper first, so that nothing is promoted on the way out; then whatever else is ours."""
        pid = self.keeper_pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: self.keeper_pid() is None, READY_TIMEOUT_S, lambda: "the keeper does not end")
        self.keeper_pid_file.unlink(missing_ok=True)
        self.proxy.stop()
        for member in [*self.role("front"), *self._data_primaries_first(), *self.role("galera")]:
            if member.alive():
                member.server.stop()

    def _data_primaries_first(self) -> list[Member]:
        states = self.states()
        return sorted(self.role("data"), key=lambda member: states[member.node.shard].primary != member.name)

    # --- Galera -----------------------------------------------------------------------------------
    def _start_galera(self) -> None:
        members = self.role("galera")
        if not any(member.alive() for member in members):
            self._bootstrap(members)
        for member in members:
            if not member.alive():
                self._start_galera_node(member)
        accounts(members[0])

    def _bootstrap(self, members: list[Member]) -> None:
        """The first of a new cluster, or the one that has all transactions, begins: a node without data copies that one's."""
        with_data = [member for member in members if has_data(member)]
        first = members[0]
        if with_data:
            first = max(with_data, key=lambda member: int(recovered_position(member.server).rpartition(":")[2]))
        mark_safe_to_bootstrap(first.server.datadir / "grastate.dat")
        self._start_galera_node(first, "--wsrep-new-cluster")

    def _start_galera_node(self, member: Member, *extra: str) -> None:
        member.server.environment["PATH"] = transfer_path(self.directory)
        if not extra and has_data(member):
            extra = (f"--wsrep-start-position={recovered_position(member.server)}",)
        member.start(*extra)
        state = "wsrep_local_state_comment"
        wait_for(lambda: member.status(state)[state] == "Synced", READY_TIMEOUT_S, lambda: f"{member.name} is not Synced")


def has_data(member: Member) -> bool:
    return (member.server.datadir / "mysql").is_dir()


def mark_safe_to_bootstrap(path: Path) -> None:
    if path.exists():
        path.write_text(
            path.read_text(encoding="ascii").replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"), encoding="ascii"
        )


def accounts(member: Member) -> None:
    """Of clients, fronts and replicas. Made on each data node by itself: its binlog begins empty. A data node lets in whoever
    has the password and the nodes' certificate. Where the last of them is there, all are."""
    plan = member.plan
    user, right = (REPLICATION_USER, "Repl_slave_priv") if member.node.role == "data" else (SQL_USER, "Create_view_priv")
    if member.value(f"SELECT 1 FROM mysql.user WHERE User = %s AND {right} = 'Y'", (user,)):
        return
    certified = "REQUIRE X509" if plan.tls and member.node.role == "data" else ""
    statements = [
        f"CREATE USER IF NOT EXISTS {SQL_USER}@'127.0.0.1' IDENTIFIED BY '{plan.password}' {certified}",
        f"GRANT {RIGHTS} ON *.* TO {SQL_USER}@'127.0.0.1'",
    ]
    if member.node.role == "data":
        statements = [
            "SET sql_log_bin = 0",
            *statements,
            f"CREATE USER IF NOT EXISTS {REPLICATION_USER}@'127.0.0.1' IDENTIFIED BY '{plan.replication_password}' {certified}",
            f"GRANT REPLICATION SLAVE ON *.* TO {REPLICATION_USER}@'127.0.0.1'",
        ]
    run(member, *statements)


def wait_for(condition: Callable[[], Any], timeout_s: float, what: Callable[[], str]) -> None:
    """Until `condition()` is true; a server that does not answer yet counts as false."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if condition():
                return
        except pymysql.err.Error:
            pass
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {timeout_s:g} s in vain: {what()}")
        time.sleep(0.1)


@contextmanager
def passing_cluster(
    directory: Path, kind: str, shards: int | None = None, plugin: Path | None = PLUGIN
) -> Iterator[Cluster]:
    """A new cluster for the time of a measurement; what an earlier, killed one left there is removed."""
    if read_plan(directory) is not None:
        Cluster(directory).stop()
    shutil.rmtree(directory, ignore_errors=True)
    cluster = Cluster.make(directory, kind, shards, plugin=plugin)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
    shutil.rmtree(directory)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One command at a time changes a cluster."""
    if is_foreign(directory, "lock", "cluster.json"):
        raise ClusterError(f"{directory} holds files, and none of a cluster's: name a directory of its own (--directory)")
    make_directory(directory)
    with open(directory / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ClusterError(f"another command is at work on {directory}") from error
        yield
