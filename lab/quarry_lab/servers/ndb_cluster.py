"""
The NDB Cluster of scripts/ndb as one engine of a run: started before its points, stopped behind them, so that it takes no memory and no processor
while others are measured. Clients are spread over both of its SQL nodes.

Invariants: its data is made anew at each start; it is stopped, or as it was found, on any way out (`as_found`).
"""

from __future__ import annotations

import functools
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pymysql
from quarry_server.server import BUILD, REPOSITORY

from ..design.request import Address, LabError
from .connected import rows
from .target import NDB_RUN, NDB_SOCKET, SCHEMA_PREFIX, TargetServer, connect, local_cluster

STAMP = BUILD / "ndb" / "STAMP"  # scripts/ndb: written when the build is whole
SQL_NODES = {4: NDB_SOCKET, 5: NDB_RUN / "sql5" / "mysqld.sock"}
ONE_SQL_NODE = (next(iter(SQL_NODES)),)  # for experiments whose document had one
_SYSTEM_SCHEMAS = {"information_schema", "mysql", "ndbinfo", "performance_schema", "sys"}
CONNECTIONS_MAX = 600  # of each SQL node, as scripts/ndb has it
# Lock wait timeout, and what NDB calls a temporary error: its redo log or a send buffer is full. A client is expected to repeat the statement.
_TEMPORARY_ERRORS = "1205,1297"
_MEMORY = ("SELECT SUM(fixed_elem_alloc_bytes + var_elem_alloc_bytes + hash_index_alloc_bytes) FROM ndbinfo.memory_per_fragment "
           "WHERE fq_name LIKE '{0}/%' OR parent_fq_name LIKE '{0}/%'")
_LINKS = "SELECT node_id, remote_node_id, bytes_sent, overload_count FROM ndbinfo.transporters WHERE remote_node_id IN (4, 5)"
_TRIPS = "Ndb_api_wait_exec_complete_count"  # times that a thread of a SQL node waited for an answer of the data nodes
_PAGES_WRITTEN = "SELECT SUM(pages_written + pages_written_lcp) FROM ndbinfo.diskpagebuffer"
_PAGES_POLL_SECONDS, _PAGES_QUIET_POLLS, _PAGES_SECONDS_MAX = 1, 3, 60
_THREADS = "SELECT node_id, thr_no, thr_nm, os_ru_utime + os_ru_stime FROM ndbinfo.threadstat"


def is_built() -> bool:
    return STAMP.exists()


def address() -> Address:
    """Where its first SQL node is once it runs."""
    return Address(socket=str(NDB_SOCKET))


def script(verb: str, *options: str) -> str:
    """scripts/ndb; what it says. Raises LabError with what it says went wrong."""
    done = subprocess.run([str(REPOSITORY / "scripts" / "ndb"), verb, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"NDB Cluster, scripts/ndb {verb}: {(done.stderr or done.stdout).strip().removeprefix('ndb: ')}")
    return done.stdout


@functools.lru_cache
def reason_against_limits() -> str:
    """Why the links between its nodes cannot be limited here; empty where they can."""
    try:
        script("limits")
    except LabError as error:
        return str(error)
    return ""


def needs() -> list[str]:
    """What is missing for the lab to start it: the build, room, or that it holds nothing of anybody's."""
    if not is_built():
        return ["NDB Cluster, which `make ndb` builds"]
    running = local_cluster()
    if running is None:
        try:
            script("room")
        except LabError as error:
            return [str(error)]
        return []
    return _foreign_schemas(running)


def _schemas(running: Address) -> set[str]:
    connection = connect(running)
    try:
        return {name for (name,) in rows(connection, "SHOW DATABASES")} - _SYSTEM_SCHEMAS
    finally:
        connection.close()


def _foreign_schemas(running: Address) -> list[str]:
    foreign = sorted(name for name in _schemas(running) if not name.startswith(SCHEMA_PREFIX))
    return [f"no databases of yours in the running NDB Cluster ({', '.join(foreign)}): this experiment starts it anew"] if foreign else []


def held_bytes() -> int:
    """Memory of its processes, which is free once it is stopped."""
    pages = 0
    for node in NDB_RUN.glob("*"):
        try:
            pages += int(Path(f"/proc/{_process_id(node)}/statm").read_text().split()[1])
        except (OSError, ValueError):
            continue  # it has ended
    return pages * resource.getpagesize()


def _process_id(node: Path) -> int:
    """Of a node, by its directory. Raises OSError or ValueError where there is none."""
    return int((node / "quarry.pid").read_text(encoding="ascii"))


@contextmanager
def as_found(is_used: bool) -> Iterator[None]:
    """
    It is stopped meanwhile, but for what a NdbCluster does; if it ran before, it runs behind it. One with schemas of ours was left by a run that was
    killed, and would hold its memory from then on. Raises LabError where databases of the user's are in it: they would go.
    """
    running = local_cluster() if is_used else None
    if running and (lacking := _foreign_schemas(running)):
        raise LabError(f"the lab needs {lacking[0]}")
    is_users = running is not None and not any(name.startswith(SCHEMA_PREFIX) for name in _schemas(running))
    if running:
        script("stop")
    try:
        yield
    finally:
        if is_users:
            script("start")


class NdbCluster(TargetServer):
    """
    Externally synchronised. sql_nodes: those that clients are spread over; the first of all is the one that is asked. link_mbits: what each way of a
    link between a data node and a SQL node carries, 0 for no limit; then only its sockets are reached.
    """

    ignored_errors = _TEMPORARY_ERRORS

    def __init__(self, key: str, sql_nodes: tuple[int, ...] = tuple(SQL_NODES), link_mbits: int = 0):
        super().__init__(key, address())
        self.sql_nodes, self.link_mbits = sql_nodes, link_mbits
        self._second: pymysql.Connection | None = None

    @property
    def login(self) -> dict:
        return super().login | {"socket": ",".join(str(SQL_NODES[node]) for node in self.sql_nodes)}

    @property
    def daemon_ids(self) -> set[int]:
        """Processes of the SQL nodes with clients. Raises OSError or ValueError where one was not started."""
        return {_process_id(NDB_RUN / f"sql{node}") for node in self.sql_nodes}

    def start(self) -> NdbCluster:
        """One that does not start leaves nothing running."""
        try:
            script("stop")  # what a run that was killed left behind
            script("start", *([f"--link-mbits={self.link_mbits}"] if self.link_mbits else []))
            super().start()
            self._second = connect(Address(socket=str(SQL_NODES[5])))
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        if self._second:
            self._second.close()
            self._second = None
        self._disconnect()
        script("stop")

    def describe(self) -> dict:
        lines = (NDB_RUN / "config.ini").read_text(encoding="utf-8").partition("[ndbd default]")[2].partition("[")[0].split()
        limit = {"link_mbits": self.link_mbits} if self.link_mbits else {}
        return super().describe() | {"data_nodes": dict(line.split("=", 1) for line in lines if "=" in line)} | limit

    def ended(self) -> str:
        """Which nodes run, where one does not: of two data nodes one answers for both."""
        state = "; ".join(line.removeprefix("ndb: ") for line in script("status").splitlines())
        return f"\nthe cluster: {state}" if "does not run" in state else ""

    def settle_disk(self) -> dict:
        """
        Waits until no page of a table on disk is written any more. What a load left in the data nodes' page buffers would be written while the next
        is measured: on private servers `settle` sees to that.
        """
        started, before, quiet = time.monotonic(), None, 0
        while quiet < _PAGES_QUIET_POLLS and time.monotonic() - started < _PAGES_SECONDS_MAX:
            ((now,),) = self.rows(_PAGES_WRITTEN)
            quiet = quiet + 1 if now == before else 0
            before = now
            time.sleep(_PAGES_POLL_SECONDS)
        return {"settled": quiet >= _PAGES_QUIET_POLLS, "seconds": round(time.monotonic() - started, 2)}

    def memory_bytes(self, schema: str) -> dict[str, int]:
        """DataMemory of its tables, their parts and their indexes, in both copies."""
        ((found,),) = self.rows(_MEMORY.format(schema))
        return {"data_memory": int(found or 0)}

    def node_load(self) -> dict[str, dict[str, int]]:
        """
        Counters that only grow: of each SQL node with clients statements and trips to the data nodes, bytes that each data node sent to it, processor
        time of the data nodes' threads.
        """
        assert self._connection and self._second
        asked = {node: connection for node, connection in zip(SQL_NODES, (self._connection, self._second), strict=True) if node in self.sql_nodes}
        links = self.rows(_LINKS)
        return {"statements": _status(asked, "Com_stmt_execute"), "trips": _status(asked, _TRIPS),
                "sent_bytes": {f"{node} to {sql}": int(sent) for node, sql, sent, _overloads in links},
                "overloads": {f"{node} to {sql}": int(overloads) for node, sql, _sent, overloads in links},
                "thread_us": {f"{node} {name} {number}": int(used) for node, number, name, used in self.rows(_THREADS)}}


def _status(asked: dict[int, pymysql.Connection], name: str) -> dict[str, int]:
    """By SQL node; nothing of one that does not count this."""
    return {str(node): int(value) for node, connection in asked.items() for _name, value in rows(connection, f"SHOW GLOBAL STATUS LIKE '{name}'")}
