"""Servers that replicate: a primary with a replica, a Galera cluster, and load on each, all on the loopback interface.

Ports are free ones below the range that the kernel hands out to clients. Everything that waits has a limit.
Thread-safety: externally synchronised; a started server may be used from any thread.
"""

import os
import pathlib
import re
import shlex
import shutil
import signal

import pymysql
from quarry_cluster.galera import recovered_position, transfer_path, wsrep_options
from quarry_server.ports import free_ports
from quarry_cluster.tls import Certificates
from quarry_server.private import new_secret
from quarry_server.server import HOME_NAME, ServerError

from harness.server import SCRATCH, Server
from harness.values import SEED
from harness.waiting import WAIT_S, wait_for
from harness.workload import CONFLICTS, Load, Worker, check_models, compare, create_tables

# What a node writes into its error log when it loses the message that begins a group, and when it sends it.
LOST_STATE_UUID = "Temporary failure in sending state UUID"
SENT_STATE_UUID = "STATE EXCHANGE: sent state UUID"
DDL_ATTEMPTS = 5


# --- a primary and a replica ----------------------------------------------------------------------------------------
PRIMARY_OPTIONS = ["--log-bin=binlog", "--gtid-strict-mode=ON", "--sync-binlog=1", "--bind-address=127.0.0.1"]
REPLICA_OPTIONS = [
    "--gtid-strict-mode=ON",
    "--relay-log=relay",
    "--relay-log-recovery=ON",
    "--slave-net-timeout=10",
    "--slave-transaction-retries=100",
]
LOG_SLAVE_UPDATES = ["--log-bin=binlog", "--sync-binlog=1", "--log-slave-updates"]


def slave_status(replica):
    connection = replica.connect()
    try:
        with connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            return cursor.fetchone()
    finally:
        connection.close()


def follow(primary, port, replicas):
    """The replicas begin to apply what the primary logs."""
    password = new_secret()
    primary.query(f"CREATE USER r@'127.0.0.1' IDENTIFIED BY '{password}'")
    primary.query("GRANT REPLICATION SLAVE ON *.* TO r@'127.0.0.1'")
    for replica in replicas:
        replica.query(
            f"CHANGE MASTER TO master_host='127.0.0.1', master_port={port}, master_user='r', "
            f"master_password='{password}', master_use_gtid=slave_pos, master_connect_retry=1"
        )
        replica.query("START SLAVE")


def wait_applied(primary, replica):
    """Until the replica has applied all that is in the primary's binlog now."""
    position = primary.query("SELECT @@gtid_binlog_pos")[0][0]

    def caught_up():
        reached = replica.query("SELECT MASTER_GTID_WAIT(%s, 1)", (position,)) == ((0,),)
        if not reached:
            status = slave_status(replica)
            broken = status["Slave_SQL_Running"] != "Yes" and status["Last_SQL_Errno"]
            assert not broken, f"the applier stopped: {status['Last_SQL_Error']}"
        return reached

    wait_for(f"the replica to reach {position}", caught_up)


class Pair:
    """A primary and its replica, by GTID."""

    def __init__(self, name, primary_options=(), replica_options=()):
        (self.port,) = free_ports(1)
        self.primary = Server(
            f"{name}-primary",
            [*PRIMARY_OPTIONS, "--log-slave-updates", "--server-id=1", f"--port={self.port}", *primary_options],
        )
        self.replica = Server(
            f"{name}-replica", [*LOG_SLAVE_UPDATES, *REPLICA_OPTIONS, "--server-id=2", *replica_options]
        )

    def start(self):
        self.primary.start()
        self.replica.start()
        follow(self.primary, self.port, [self.replica])
        return self

    @staticmethod
    def start_again(server, *extra):
        """Starts a server that was stopped or killed, with `extra` options for this start alone."""
        usual = server.private.options
        server.private.options = [*usual, *extra]
        try:
            server.start()
        finally:
            server.private.options = usual

    def configure(self, primary=None, replica=None):
        """Global variables of each side, {name: value}; the replica's threads start anew to see them."""
        self.wait()
        self.replica.query("STOP SLAVE")
        for server, variables in ((self.primary, primary), (self.replica, replica)):
            for name, value in (variables or {}).items():
                server.query(f"SET GLOBAL {name} = {value}")
        self.replica.query("START SLAVE")

    def wait(self):
        """Until the replica has applied all that is in the primary's binlog now."""
        wait_applied(self.primary, self.replica)

    def slave_status(self):
        return slave_status(self.replica)

    def running(self):
        return [server for server in (self.primary, self.replica) if server.alive()]

    def remove(self):
        for server in (self.replica, self.primary):
            server.remove()


class Fan:
    """A primary and several replicas, by GTID. `replicas`: {name: options}; they keep every relay log."""

    def __init__(self, name, replicas):
        (self.port,) = free_ports(1)
        self.primary = Server(
            f"{name}-primary", [*PRIMARY_OPTIONS, "--binlog-format=ROW", "--server-id=1", f"--port={self.port}"]
        )
        self.replicas = [
            Server(f"{name}-{kind}", [*REPLICA_OPTIONS, "--relay-log-purge=OFF", f"--server-id={number}", *options])
            for number, (kind, options) in enumerate(replicas.items(), 2)
        ]

    @property
    def servers(self):
        return [self.primary, *self.replicas]

    def start(self):
        for server in self.servers:
            server.start()
        follow(self.primary, self.port, self.replicas)
        return self

    def configure(self, variables):
        """Global variables of each replica; their threads start anew to see them."""
        self.wait()
        for replica in self.replicas:
            replica.query("STOP SLAVE")
            for name, value in variables.items():
                replica.query(f"SET GLOBAL {name} = {value}")
            replica.query("START SLAVE")

    def wait(self):
        for replica in self.replicas:
            wait_applied(self.primary, replica)

    def remove(self):
        for server in reversed(self.servers):
            server.remove()


def run_commits(load, commits):
    """Until the workers together have committed `commits` more transactions, those with their large values among them,
    however many lose a conflict or are rolled back on purpose; all connections must hold."""
    target, lost = load.commits() + commits, load.counts()["connections lost"]
    load.begin()
    try:
        wait_for(f"{commits} commits", lambda: load.ended() or (load.commits() >= target and not load.large_bytes()))
    finally:
        load.end()
    assert load.counts()["connections lost"] == lost, "a connection broke"
    assert load.commits() >= target, f"only {load.commits() - target + commits} of {commits} commits"


class PairLoad(Load):
    """Clients of the primary; `engines`: of the primary's and of the replica's tables."""

    def __init__(self, pair, schema, engines=("QUARRY", "QUARRY"), workers=2, large_bytes=0):
        super().__init__(
            [
                Worker(i, f"{SEED}-{schema}", lambda: pair.primary.connect(schema), large_bytes=0 if i else large_bytes)
                for i in range(workers)
            ]
        )
        self.pair, self.schema = pair, schema
        if engines[0] == engines[1]:
            create_tables(pair.primary, schema, engines[0])
            return
        pair.wait()
        for server, engine in zip((pair.primary, pair.replica), engines):
            create_tables(server, schema, engine, log=False)

    def run(self, transactions):
        """So many for each worker, counting those that were committed; the primary must stay."""
        run_commits(self, len(self.workers) * transactions)

    def check(self):
        """The primary holds what was acknowledged, the replica the same: rows of all tables together."""
        self.pair.wait()
        check_models(self.pair.primary, self.schema, self.workers)
        return compare((self.pair.primary, self.pair.replica), self.schema)


# --- a Galera cluster -----------------------------------------------------------------------------------------------
# What the rsync of state transfers does as a client: it is recorded, and slowed down, when a test asks.
CALL = """control={control}
case "$*" in *rsync_sst_complete*) exec {rsync} "$@" ;; esac
[ -e "$control/watched" ] || exec {rsync} "$@"
snapshot() {{
  cd "$(cat "$control/watched")" || exit 1
  find . -printf '%P %y %s %T@ %i\\n' >"$control/$(date +%s.%N)-$$-$1.tree"
  cd - >/dev/null
}}
snapshot before
if mkdir "$control/slept" 2>/dev/null; then sleep "$(cat "$control/seconds")"; fi
{rsync} "$@"
code=$?
snapshot after
exit $code
"""


class Galera:
    """`size` nodes; the first one starts the cluster, each other one gets its state from a donor by rsync."""

    def __init__(self, size, name="galera", options=()):
        self.directory = SCRATCH / f"{name}-shared"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.control = self.directory / "control"
        self.control.mkdir(parents=True)
        self.certificates = Certificates(self.directory)
        self.certificates.make(["127.0.0.1"])
        self.path = transfer_path(self.directory, CALL.replace("{control}", shlex.quote(str(self.control))))
        ports = free_ports(4 * size)
        self.ports = [ports[4 * i : 4 * i + 4] for i in range(size)]
        self.address = "gcomm://" + ",".join(f"127.0.0.1:{group}" for _, group, _, _ in self.ports)
        self.nodes = [self._node(i, f"{name}-{i}", options) for i in range(size)]

    def _node(self, i, name, options):
        options = [
            f"--port={self.ports[i][0]}",
            "--bind-address=127.0.0.1",
            "--innodb-buffer-pool-size=128M",
            "--innodb-log-file-size=96M",
            *wsrep_options(
                name,
                f"{name.rsplit('-', 1)[0]}-{os.getpid()}",
                self.address,
                self.ports[i],
                gcache="1G",
                certificates=self.certificates,
            ),
            *options,
        ]
        return Server(name, options)

    # --- life ---------------------------------------------------------------------------------
    def start(self, i, *extra):
        """Starts node `i` with `extra` options for this start alone, and waits until it is Synced."""
        node = self.nodes[i]
        node.private.environment["PATH"] = self.path
        try:
            self._join(node, extra)
        except (ServerError, AssertionError) as failure:
            if not self.stands_still():
                raise
            # Not the node's fault, nor Quarry's: its leaving, and coming again, has the others send what they lost.
            print(f"{node.name} is started once more: a node says '{LOST_STATE_UUID}' ({str(failure)[:200]})")
            if node.alive():
                node.kill()
            self._join(node, extra)
        return node

    def _join(self, node, extra):
        usual = node.private.options
        node.private.options = [*usual, *extra]
        try:
            node.start()
        finally:
            node.private.options = usual
        wait_for(f"{node.name} to be Synced", lambda: self.state(node) == "Synced")

    def stands_still(self):
        """Whether Galera lost the message that begins a group, and did not send it since: docs/operate/replication.md, 'Large
        write-sets and a lost node'. Nothing is committed until a node comes or goes."""
        logs = [node.error_log() for node in self.running()]
        return any(log.rfind(LOST_STATE_UUID) > log.rfind(SENT_STATE_UUID) for log in logs)

    def wait_for_size(self, node, size):
        """Until `node` sees `size` members, or the cluster stands still."""
        wait_for(
            f"{node.name} to see {size} members",
            lambda: node.status("wsrep_cluster_size")["wsrep_cluster_size"] == str(size) or self.stands_still(),
        )

    def execute_ddl(self, node, statement):
        """By total order; repeated when a writer's commit came first and it was told of a deadlock."""
        for attempt in range(DDL_ATTEMPTS):
            connection = self.connect(node)
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SET wsrep_sync_wait = 15")
                    cursor.execute(statement)
                return
            except pymysql.err.OperationalError as failure:
                if failure.args[0] not in CONFLICTS or attempt + 1 == DDL_ATTEMPTS:
                    raise AssertionError(f"{node.name}: {statement}: {failure}") from failure
            except pymysql.err.Error as failure:
                raise AssertionError(f"{node.name}: {statement}: {failure}") from failure
            finally:
                connection.close()

    def restart_killed(self, i):
        """What mysqld_safe does after a crash: asks InnoDB how far it came, and joins from there."""
        position = recovered_position(self.nodes[i].private)
        self.start(i, f"--wsrep-start-position={position}")
        return position

    @staticmethod
    def state(node):
        return node.query("SHOW STATUS LIKE 'wsrep_local_state_comment'")[0][1]

    def running(self):
        return [node for node in self.nodes if node.alive()]

    def agree(self, schema):
        """Everything that was committed is everywhere, and equal; the number of rows."""
        self.settle()
        self.assert_healthy(len(self.running()))
        return compare(self.running(), schema)

    def assert_healthy(self, size):
        """All nodes Synced, in one primary component of `size`; nobody voted anybody out."""
        for node in self.running():
            wait_for(f"{node.name} to be Synced", lambda node=node: self.state(node) == "Synced")
            status = dict(node.query("SHOW STATUS LIKE 'wsrep_clu%'"))
            assert status["wsrep_cluster_status"] == "Primary", status
            assert status["wsrep_cluster_size"] == str(size), status
            votes = re.findall(r"(?im)^.*(?:inconsisten|initiates vote|vote over).*$", node.error_log())
            assert not votes, f"{node.name}: {votes[:5]}"

    def settle(self):
        """Until every running node has applied what any of them had committed by now."""
        for node in self.running():
            connection = self.connect(node)
            with connection.cursor() as cursor:
                cursor.execute("SET wsrep_sync_wait = 15")
                cursor.execute("SELECT COUNT(*) FROM mysql.global_priv")
            connection.close()

    @staticmethod
    def connect(node, database=None, **settings):
        """No statement may hang for ever."""
        return node.connect(database, read_timeout=WAIT_S, write_timeout=WAIT_S, **settings)

    def remove(self):
        for node in self.nodes:
            node.remove()
        self._end_strays()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end_strays(self):
        """State transfers whose node died over them: known by the cluster's paths in their arguments."""
        ours = [os.fsencode(node.directory) + b"/" for node in self.nodes]
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                arguments = (entry / "cmdline").read_bytes()
                if b"rsync" in arguments and any(path in arguments for path in ours):
                    os.kill(int(entry.name), signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue

    # --- watching a state transfer --------------------------------------------------------------
    def watch_transfer(self, donor, seconds):
        """From now on each rsync call of a donor records `donor`'s home before and after; the first one waits."""
        (self.control / "seconds").write_text(str(seconds))
        (self.control / "watched").write_text(str(donor.datadir / HOME_NAME))

    def watched(self):
        """The recorded trees, oldest first, as sets of lines (name, type, size, mtime, inode); forgets them."""
        (self.control / "watched").unlink()
        paths = sorted(self.control.glob("*.tree"), key=lambda path: float(path.name.split("-")[0]))
        trees = [set(path.read_text().splitlines()) for path in paths]
        for path in paths:
            path.unlink()
        if (self.control / "slept").exists():
            (self.control / "slept").rmdir()
        return trees


class GaleraLoad(Load):
    """A client on each of `nodes`; clients are told apart by ever new numbers, for their rows stay."""

    last_number = 0

    def __init__(self, cluster, nodes, schema, large_bytes=0):
        workers = []
        for node in nodes:
            GaleraLoad.last_number += 1
            workers.append(
                Worker(
                    GaleraLoad.last_number,
                    f"{SEED}-galera",
                    lambda node=node: cluster.connect(node, schema),
                    galera=True,
                    large_bytes=0 if workers else large_bytes,
                )
            )
        super().__init__(workers)
        self.cluster, self.schema = cluster, schema
        self.hot_before = int(cluster.running()[0].query(f"SELECT SUM(n) FROM {schema}.hot")[0][0])

    def check(self):
        """Every running node holds what was acknowledged, by whichever node."""
        for node in self.cluster.running():
            check_models(node, self.schema, self.workers, hot_before=self.hot_before)
