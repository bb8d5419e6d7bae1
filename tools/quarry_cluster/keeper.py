"""Keeps each shard's primary writable and its replica fit to take over: the one place where a promotion is decided.

The keeper finds out that a primary is gone (watch.py) and HAProxy cuts its sessions; MariaDB's semi-synchronous replication (AFTER_SYNC) has put every acknowledged
transaction on the replica; the keeper connects the two. What it knows of a shard is written down, durably, before it acts:
who is primary, and whether the replica is in sync.

Invariants:
- A server is writable only after shards.json names it as its shard's primary; every data node starts read-only.
- While `in_sync` stands, the primary acknowledges nothing that its replica has not received: semi-sync waits without
  time-out. It is switched off only after `in_sync` was taken back, and `in_sync` stands only after all that was acknowledged
  without it has reached the replica.
- A replica is promoted only while `in_sync` stands, after it was routed away from the old primary and has applied all
  that it received. Else the shard waits for its primary.
- A replica that is restarted throws away what it received and had not applied (MariaDB with GTID fetches it again). `in_sync`
  is taken back before it receives again, and until then it is not promoted, unless it has all that its primary has.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable

import pymysql

from .haproxy import HAProxy
from .nodes import Member
from .plan import ClusterError, Plan, write_durably
from .tls import Certificates
from .watch import Watch

STEP_S = 0.25
RESOLVE_EVERY_S = 2
PATIENCE_S = 2  # so long commits wait for a missing replica before the primary goes on without it
APPLY_TIMEOUT_S = 120
QUICK = {"connect_timeout": 2, "read_timeout": 5, "write_timeout": 5}
REPLICATION_USER = "replication"


@dataclass
class ShardState:
    """What must survive the keeper."""

    primary: str
    in_sync: bool = False


class StateFile:
    """shards.json. Internally synchronised."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.path, self._lock = directory / "shards.json", threading.Lock()
        self._states = {shard: ShardState(plan.shard(shard)[0].name) for shard in plan.routes}
        if self.path.exists():
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            self._states = {shard: ShardState(**state) for shard, state in raw.items()}

    def __getitem__(self, shard: str) -> ShardState:
        with self._lock:
            return ShardState(**asdict(self._states[shard]))

    def save(self, shard: str, state: ShardState) -> None:
        """Error: OSError; then what was known before still is, here as on the disk."""
        with self._lock:
            states = {**self._states, shard: state}
            write_durably(self.path, {name: asdict(one) for name, one in states.items()})
            self._states = states


class ShardKeeper(threading.Thread):
    """One shard's thread."""

    def __init__(
        self, shard: str, members: list[Member], proxy: HAProxy, states: StateFile, say: Callable[[str], None]
    ) -> None:
        super().__init__(name=f"keeper-{shard}", daemon=True)
        self.shard, self.proxy, self.states, self.say = shard, proxy, states, say
        self.members = {member.name: member for member in members}
        self.stop = threading.Event()
        self.missing_since_s: float | None = None
        self.last_said, self.routed_to = "", ""

    def run(self) -> None:
        while not self.stop.wait(STEP_S):
            try:
                self.step()
            except Exception as failure:  # pylint: disable=broad-except
                # Whatever a server that dies makes of an answer: without this thread nobody keeps the shard, and nobody knows.
                self.tell(f"{failure!r}")

    def tell(self, text: str) -> None:
        """Says what is new."""
        if text != self.last_said:
            self.last_said = text
            self.say(f"{self.shard}: {text}")

    @property
    def state(self) -> ShardState:
        return self.states[self.shard]

    def pair(self) -> tuple[Member, Member]:
        primary = self.members[self.state.primary]
        (replica,) = (member for member in self.members.values() if member is not primary)
        return primary, replica

    # --- one look -------------------------------------------------------------------------------
    def step(self) -> None:
        primary, replica = self.pair()
        status = self.proxy.states(self.shard)[primary.name]
        if self.routed_to != primary.name or status.startswith("MAINT"):
            self.proxy.route(self.shard, primary.name)
            self.routed_to = primary.name
        elif status.startswith("DOWN"):
            self.primary_lost(primary, replica)
        elif primary.value("SELECT @@read_only", **QUICK):
            self.primary_came_back(primary, replica)
        else:
            self.look_after(primary, replica)

    def primary_lost(self, primary: Member, replica: Member) -> None:
        if not self.state.in_sync:
            self.tell(f"{primary.name} is down and {replica.name} was not in sync: waiting for {primary.name}")
            return
        if was_restarted(replica.slave_status(**QUICK)):
            self.tell(f"{primary.name} is down and {replica.name} was restarted, and may lack what it had received: waiting for {primary.name}")
            return
        self.promote(primary, replica)

    def primary_came_back(self, primary: Member, replica: Member) -> None:
        """It was restarted. What it had not got acknowledged it has cut off its binlog; the replica may have more, or less when
        it was restarted, too."""
        if not self.state.in_sync:
            self.make_writable(primary)
            return
        self.stop_receiving(replica)
        position = "SELECT @@gtid_binlog_pos"
        own, other = primary.value(position, **QUICK), replica.value(position, **QUICK)
        if not has_all(own, other):
            self.promote(primary, replica)
            return
        if own != other:
            self.states.save(self.shard, ShardState(primary.name, in_sync=False))
        self.make_writable(primary)

    def promote(self, primary: Member, replica: Member) -> None:
        began = time.monotonic()
        self.proxy.fence(self.shard, primary.name)
        self.stop_receiving(replica)
        self.states.save(self.shard, ShardState(replica.name, in_sync=False))
        self.make_writable(replica)
        self.proxy.route(self.shard, replica.name)
        self.routed_to = replica.name
        self.tell(f"{primary.name} is gone: {replica.name} promoted in {time.monotonic() - began:.2f} s")

    def stop_receiving(self, replica: Member) -> None:
        """No more from the primary; what was received is applied."""
        run(replica, "STOP SLAVE IO_THREAD")
        deadline = time.monotonic() + APPLY_TIMEOUT_S
        while True:
            status = replica.slave_status()
            received = status.get("Gtid_IO_Pos", "")
            if not received or replica.value("SELECT @@gtid_slave_pos", **QUICK) == received:
                return
            if status["Slave_SQL_Running"] != "Yes":
                run(replica, "START SLAVE SQL_THREAD")
            if time.monotonic() > deadline or status["Last_SQL_Errno"]:
                raise OSError(f"{replica.name} cannot apply what it received: {status['Last_SQL_Error']}")
            time.sleep(0.02)

    def make_writable(self, member: Member) -> None:
        wait = "ON" if self.state.in_sync else "OFF"
        run(
            member,
            "STOP SLAVE",
            "RESET SLAVE ALL",
            "SET GLOBAL rpl_semi_sync_slave_enabled = OFF",
            f"SET GLOBAL rpl_semi_sync_master_enabled = {wait}",
            "SET GLOBAL read_only = OFF",
        )
        self.tell(f"{member.name} is writable, {'with' if self.state.in_sync else 'without'} a replica in sync")

    # --- the replica ----------------------------------------------------------------------------
    def look_after(self, primary: Member, replica: Member) -> None:
        try:
            status = self.replica_status(primary, replica)
        except pymysql.err.Error:
            status = {}
        if not is_running(status):
            self.replica_missing(primary, replica, status)
        elif not self.state.in_sync:
            self.try_to_sync(primary, replica)
        elif primary.status("rpl_semi_sync_master_clients")["rpl_semi_sync_master_clients"] == "0":
            self.replica_missing(primary, replica, status)
        else:
            self.missing_since_s = None

    def replica_status(self, primary: Member, replica: Member) -> dict:
        """SHOW SLAVE STATUS, once the replica follows this primary."""
        status = replica.slave_status(**QUICK)
        if status.get("Master_Port") != primary.node.port or not replica.value("SELECT @@read_only"):
            self.follow(primary, replica)
            return replica.slave_status()
        return status

    def follow(self, primary: Member, replica: Member) -> None:
        tls = Certificates(self.states.path.parent)
        encrypted = (
            f", master_ssl = 1, master_ssl_ca = '{tls.authority}', master_ssl_cert = '{tls.certificate}', "
            f"master_ssl_key = '{tls.key}', master_ssl_verify_server_cert = 1"
        )
        run(
            replica,
            "SET GLOBAL read_only = ON",
            "SET GLOBAL rpl_semi_sync_master_enabled = OFF",
            "SET GLOBAL rpl_semi_sync_slave_enabled = ON",
            "STOP SLAVE",
            f"CHANGE MASTER TO master_host = '127.0.0.1', master_port = {primary.node.port}, "
            f"master_user = '{REPLICATION_USER}', master_password = '{primary.plan.replication_password}', "
            f"master_connect_retry = 1, master_demote_to_slave = 1{encrypted if primary.plan.tls else ''}",
            "START SLAVE",
        )
        self.tell(f"{replica.name} follows {primary.name}")

    def replica_missing(self, primary: Member, replica: Member, status: dict) -> None:
        """Commits wait for the replica. After a while they need not, and the replica may not be promoted.

        Its threads are started at once and then not until that while is over: between two starts a thread that fails
        each time would pass for one that runs."""
        now = time.monotonic()
        if self.missing_since_s is None:
            self.missing_since_s = now
        elif now - self.missing_since_s < PATIENCE_S:
            return
        else:
            self.go_on_alone(primary, replica, status)
        if status:
            if self.state.in_sync and not was_started(status):
                self.states.save(self.shard, ShardState(primary.name, in_sync=False))
            run(replica, "START SLAVE")

    def go_on_alone(self, primary: Member, replica: Member, status: dict) -> None:
        if self.state.in_sync:
            self.states.save(self.shard, ShardState(primary.name, in_sync=False))
        run(primary, "SET GLOBAL rpl_semi_sync_master_enabled = OFF")
        why = status.get("Last_SQL_Error") or status.get("Last_IO_Error") or "it is down"
        self.tell(f"{primary.name} goes on without {replica.name}: {why}")

    def try_to_sync(self, primary: Member, replica: Member) -> None:
        """A replica that is nearly there is waited for from now on; once it has everything it is in sync."""
        if not self.reaches(primary, replica, seconds=1):
            return
        run(primary, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
        run(replica, "STOP SLAVE IO_THREAD", "START SLAVE IO_THREAD")
        if self.reaches(primary, replica, seconds=4) and self.becomes_waited_for(primary):
            self.missing_since_s = None
            self.states.save(self.shard, ShardState(primary.name, in_sync=True))
            self.tell(f"{replica.name} is in sync with {primary.name}")

    @staticmethod
    def becomes_waited_for(primary: Member) -> bool:
        """A replica that lacks nothing may still be on its way in, and with TLS that takes a while. To start its thread once
        more would begin it all over."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_waited_for(primary):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    @staticmethod
    def reaches(primary: Member, replica: Member, seconds: int) -> bool:
        position = primary.value("SELECT @@gtid_binlog_pos", **QUICK)
        return replica.value("SELECT MASTER_GTID_WAIT(%s, %s)", (position, seconds), **QUICK) == 0


def is_running(slave_status: dict) -> bool:
    """Whether a replica receives and applies."""
    return slave_status.get("Slave_IO_Running") == slave_status.get("Slave_SQL_Running") == "Yes"


def was_started(slave_status: dict) -> bool:
    """Whether a replica receives or applies, or tries to: when neither thread runs, the next start throws its relay log away."""
    return not slave_status.get("Slave_IO_Running") == slave_status.get("Slave_SQL_Running") == "No"


def was_restarted(slave_status: dict) -> bool:
    """Whether a replica has received nothing since its server started: what it had received before is not applied any more."""
    return not was_started(slave_status) and not slave_status.get("Gtid_IO_Pos")


def has_all(position: str, other: str) -> bool:
    """Whether a server at one GTID position has all that one at the other has. They share one history, and in it the numbers of
    a domain only grow (gtid_strict_mode)."""

    def numbers(text: str) -> dict[str, int]:
        return {domain: int(number) for domain, _server, number in (gtid.split("-") for gtid in text.split(",") if gtid)}

    own = numbers(position)
    return all(own.get(domain, -1) >= number for domain, number in numbers(other).items())


def is_waited_for(primary: Member) -> bool:
    """Whether commits wait for a replica that is there."""
    status = primary.status("rpl_semi_sync_master_%")
    return status["rpl_semi_sync_master_status"] == "ON" and status["rpl_semi_sync_master_clients"] != "0"


def run(member: Member, *statements: str, **settings: Any) -> None:
    connection = member.connect(connect_timeout=2, **settings)
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    finally:
        connection.close()


def keep(plan: Plan, directory: Path, stop: threading.Event, resolve: Callable[[], list[str]]) -> None:
    """Keeps all shards, and HAProxy running, until `stop` is set; now and then finishes, by `resolve`, what is in doubt."""

    def say(text: str) -> None:
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
        print(f"{now} {text}", flush=True)

    lock = open(directory / "keeper.lock", "w", encoding="ascii")  # held as long as this process lives
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    proxy, states = HAProxy(plan, directory), StateFile(plan, directory)
    proxy.start()
    keepers = [
        ShardKeeper(shard, [Member(plan, node, directory) for node in plan.shard(shard)], proxy, states, say)
        for shard in plan.routes
    ]
    watches = [Watch(shard, Member(plan, node, directory), proxy) for shard in plan.routes for node in plan.shard(shard)]
    say(f"keeping {len(keepers)} shards")
    threads = [*keepers, *watches]
    for thread in threads:
        thread.start()
    while not stop.wait(RESOLVE_EVERY_S):
        if proxy.pid() is None:
            say("HAProxy is gone: starting it again")
            try:
                proxy.start()
            except (ClusterError, OSError) as failure:
                say(f"{failure}: once more in {RESOLVE_EVERY_S} s")
                continue
        try:
            for line in resolve():
                say(line)
        except Exception:  # pylint: disable=broad-except
            continue  # a node is down, or dies while it answers: later
    for thread in threads:
        thread.stop.set()
    for thread in threads:
        thread.join()
