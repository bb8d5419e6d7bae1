"""
A server of the user's (--target): measured beside the private ones, never configured, and left as it was found.

Invariants: only schemas named quarry_lab_* are made, and none if one exists already; what was made is dropped at the end. No global
setting is changed. What belongs to the machine (bytes written, memory, disk) is not asked: the server may be elsewhere.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pymysql
from quarry_server.server import BUILD

from ..design.request import Address, LabError
from .connected import ConnectedServer, engines, rows
from .links import LOOPBACK

SCHEMA_PREFIX = "quarry_lab_"
NO_TARGET = "a server for variants that are named target-*: --target, or NDB Cluster, which `make ndb` builds"
_OUR_SCHEMAS = "SHOW DATABASES LIKE '" + SCHEMA_PREFIX.replace("_", r"\_") + "%'"
PASSWORD_VARIABLE = "QUARRY_TARGET_PASSWORD"
NDB_RUN = BUILD / "ndb" / "run"  # of `make ndb`: a directory for each node, with its process id
NDB_SOCKET = NDB_RUN / "sql4" / "mysqld.sock"  # while that cluster runs
NDB_ALONE = {"NDBCLUSTER"}  # of its engines, when nobody asked for more
NDB_MANAGEMENT_PORT = 21186  # as scripts/ndb has it
_SETTLE_SECONDS_MAX = 30
_POLL_SECONDS = 0.5
# Recorded with every point, where the server has them: they decide what a commit costs.
_RECORDED = ("innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method", "sync_binlog", "log_bin",
             "ndb_blob_read_batch_bytes", "ndb_blob_write_batch_bytes", "ndb_autoincrement_prefetch_sz")


def parse_address(text: str, user: str = "root") -> Address:
    if "/" in text:
        return Address(socket=text, user=user)
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise LabError(f"--target '{text}' is neither HOST:PORT nor the path of a socket")
    return Address(host=host, port=int(port), user=user)


def local_cluster() -> Address | None:
    """The NDB Cluster that scripts/ndb started, if it runs."""
    address = Address(socket=str(NDB_SOCKET))
    if not NDB_SOCKET.exists():
        return None
    try:
        connect(address).close()
    except LabError:
        return None  # the socket of one that was stopped
    return address


def connect(address: Address) -> pymysql.Connection:
    """Raises LabError, which says what is needed."""
    where = {"unix_socket": address.socket} if address.socket else {"host": address.host, "port": address.port}
    try:
        return pymysql.connect(**where, user=address.user, password=os.environ.get(PASSWORD_VARIABLE, ""), autocommit=True, charset="utf8mb4",
                               connect_timeout=10, read_timeout=900, write_timeout=900)
    except (pymysql.Error, OSError) as error:
        raise LabError(f"a server at {address.text} that lets {address.user} in (--target-user, password in ${PASSWORD_VARIABLE}): {error}") from None


def over_tcp(address: Address) -> Address:
    """The same server for clients that know TCP alone. Raises LabError when it listens on a socket only, or lets `user` in there only."""
    if not address.socket:
        return address
    connection = connect(address)
    try:
        found = dict(rows(connection, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('port', 'skip_networking')"))
    finally:
        connection.close()
    if found["skip_networking"] == "ON" or found["port"] == "0":
        raise LabError(f"the server at {address.text} to listen on TCP, too (skip_networking is {found['skip_networking']}, port {found['port']})")
    reached = Address(host=LOOPBACK, port=int(found["port"]), user=address.user)
    connect(reached).close()
    return reached


def needs_over_tcp(address: Address) -> list[str]:
    """As needs(), for an experiment whose clients know TCP alone."""
    missing = needs(address)
    if not missing:
        try:
            over_tcp(address)
        except LabError as error:
            missing = [str(error)]
    return missing


def readable_processes() -> set[int]:
    """Those whose use of processors and devices this user may see."""
    return {int(path.parent.name) for path in Path("/proc").glob("[0-9]*/io") if os.access(path, os.R_OK)}


def process_ids(address: Address) -> set[int]:
    """Processes of this machine that serve it: all of the cluster of `make ndb`; else the one that its pid_file names. Empty: elsewhere, or not ours to read."""
    if address.socket == str(NDB_SOCKET):
        return {int(path.read_text()) for path in NDB_RUN.glob("*/quarry.pid")} & readable_processes()
    connection = connect(address)
    try:
        found = dict(rows(connection, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('pid_file', 'datadir')"))
    finally:
        connection.close()
    if not address.socket and address.host not in (LOOPBACK, "localhost"):
        return set()
    try:
        return {int((Path(found["datadir"]) / found["pid_file"]).read_text())} & readable_processes()
    except (OSError, ValueError):
        return set()


def engines_of(address: Address) -> set[str]:
    """As connected.engines names them."""
    connection = connect(address)
    try:
        return engines(connection)
    finally:
        connection.close()


def needs(address: Address) -> list[str]:
    """What is missing there: the server itself, rights, or room for the names. Leaves nothing behind."""
    try:
        connection = connect(address)
    except LabError as error:
        return [str(error)]
    try:
        leftovers = [row[0] for row in rows(connection, _OUR_SCHEMAS)]
        if leftovers:
            return [f"no schemas named {SCHEMA_PREFIX}* at {address.text}: drop {', '.join(leftovers)}"]
        with connection.cursor() as cursor:
            trial = f"{SCHEMA_PREFIX}trial"
            for statement in (f"CREATE DATABASE {trial}", f"CREATE TABLE {trial}.t (id INT PRIMARY KEY)", f"INSERT INTO {trial}.t VALUES (1)",
                              f"UPDATE {trial}.t SET id = 2", f"SELECT id FROM {trial}.t", f"DROP DATABASE {trial}"):
                cursor.execute(statement)
    except pymysql.Error as error:
        return [f"the rights CREATE, DROP, INSERT, SELECT and UPDATE on {SCHEMA_PREFIX}* for {address.user} at {address.text}: {error}"]
    finally:
        connection.close()
    return []


def connections_lacking(address: Address, users: int) -> list[str]:
    """What a server that can be reached lacks for so many users at once."""
    connection = connect(address)
    try:
        ((allowed,),) = rows(connection, "SELECT @@max_connections")
    finally:
        connection.close()
    return [f"max_connections of at least {users + 2} at {address.text} for {users} users (it is {allowed})"] if int(allowed) < users + 2 else []


class TargetServer(ConnectedServer):
    """What TableBench needs of a server; see LabServer. Externally synchronised."""

    def __init__(self, key: str, address: Address, named: Address | None = None):
        """named: how the user named it, where a client needs another way to it."""
        self.key, self.address, self.named = key, address, named or address
        self.process_ids: set[int] = set()
        self.last_statements: list[str] = []  # of close(), once the schemas are gone
        self.datasets: dict[tuple[str, int, str], str] = {}

    @property
    def login(self) -> dict:
        a = self.address
        return {"socket": a.socket, "host": a.host, "port": a.port, "user": a.user, "password": os.environ.get(PASSWORD_VARIABLE, "")}

    def another_connection(self) -> pymysql.Connection:
        return connect(self.address)

    def start(self) -> TargetServer:
        self._connection = connect(self.address)
        self.process_ids = process_ids(self.named)
        return self

    def close(self) -> None:
        """Drops what was made here."""
        if self._connection:
            for (name,) in self.rows(_OUR_SCHEMAS):
                self.execute(f"DROP DATABASE `{name}`")
            for statement in self.last_statements:
                self.execute(statement)
            self._disconnect()

    def verify_pinned(self) -> dict[str, str]:
        """As it is found: nothing is demanded of a user's server."""
        found = self.variables()
        return {name: found[name] for name in _RECORDED if name in found}

    def describe(self) -> dict:
        ((version,),) = self.rows("SELECT VERSION()")
        return {"version": f"{version} at {self.named.text} (--target)", "pinned": self.verify_pinned()}

    def counters(self) -> None:
        return None

    def settle(self) -> dict:
        """Waits until InnoDB there writes nothing, where it tells; the server's own settings say how long that takes."""
        started, before = time.monotonic(), None
        while time.monotonic() - started < _SETTLE_SECONDS_MAX:
            now = self.status("Innodb_data_written")
            if now == before:
                break
            before = now
            time.sleep(_POLL_SECONDS)
        return {"settled": now == before, "seconds": round(time.monotonic() - started, 2)}
