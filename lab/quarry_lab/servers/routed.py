"""
A primary and its replica behind a proxy that routes: each new connection goes to the one or the other in turn. The proxy is HAProxy, which clusters
of quarry_cluster have, too: it is in the unpacked server.

Both servers are private ones of the run, listen on the loopback interface, and hold the same rows: the replica applies the primary's binary log.
"""

from __future__ import annotations

import socket
import time
from pathlib import Path

from quarry_cluster.haproxy import DEFAULTS, HAPROXY, identity
from quarry_server import private
from quarry_server.ports import free_ports

from ..design.profile import PRODUCTION, SETTINGS
from ..design.request import LabError
from .lab_server import LabServer
from .links import LOOPBACK
from .program import RunningProgram

PRIMARY, REPLICA = "primary", "replica"
_READY_SECONDS_MAX, _CAUGHT_UP_SECONDS_MAX = 10, 300
# Small next to the run's main server: what is fetched fits.
_POOL_BYTES = 512 << 20
POOLS_BYTES = 2 * _POOL_BYTES
_OWN = {"innodb_buffer_pool_size": str(_POOL_BYTES), "innodb_log_file_size": str(128 << 20)}
_CONFIGURATION = """global{identity}
    nbthread 1
    maxconn 256
"""
_LISTEN = """
listen servers
    balance roundrobin
"""


def reason_against() -> str | None:
    """None where the proxy is there."""
    return None if HAPROXY.exists() else f"HAProxy at {HAPROXY} (scripts/fetch-mariadb gets it)"


def configuration(listen: list[tuple[str, int]], servers: dict[str, int], becomes: str = "") -> str:
    """listen: (address, port) of the proxy; servers: name -> port of the loopback interface; becomes: haproxy.identity."""
    binds = "".join(f"    bind {address}:{port}\n" for address, port in listen)
    return _CONFIGURATION.format(identity=becomes) + DEFAULTS + _LISTEN + binds + "".join(f"    server {name} {LOOPBACK}:{port}\n" for name, port in servers.items())


class RoutingProxy:
    """One HAProxy process with its configuration in `directory`. Use as a context manager."""

    def __init__(self, directory: Path, listen: list[tuple[str, int]], servers: dict[str, int]):
        self._directory, self._listen, self._servers = directory, listen, servers
        self._running: RunningProgram | None = None

    def __enter__(self) -> RoutingProxy:
        private.make_directory(self._directory)
        file = self._directory / "haproxy.cfg"
        file.write_text(configuration(self._listen, self._servers, identity(self._directory)), encoding="utf-8")
        self._running = RunningProgram([str(HAPROXY), "-db", "-f", str(file)])
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc) -> None:
        if self._running:
            self._running.stop()
            self._running = None

    @property
    def pid(self) -> int:
        assert self._running
        return self._running.process.pid

    def _wait(self) -> None:
        assert self._running
        deadline = time.monotonic() + _READY_SECONDS_MAX
        while True:
            try:
                socket.create_connection(self._listen[0], timeout=1).close()
                return
            except OSError:
                if self._running.process.poll() is not None:
                    self._running.wait(1)  # raises with what it said
                    raise LabError("the routing proxy ended at once") from None
                if time.monotonic() > deadline:
                    raise LabError("the routing proxy does not answer") from None
                time.sleep(0.05)


class RoutedPair:
    """Primary, replica and proxy. Externally synchronised. Use as a context manager; `replicate` once the accounts are made."""

    def __init__(self, directory: Path, listen: list[tuple[str, int]], plugin: Path | None, options: dict[str, str]):
        """listen: where clients reach the proxy; options: of both servers."""
        self.ports = dict(zip((PRIMARY, REPLICA), free_ports(2), strict=True))
        binary_log = SETTINGS[PRODUCTION]
        self.servers = {
            name: LabServer(name, directory / name, plugin, False, {
                **options, **_OWN, **binary_log, "port": str(port), "bind_address": LOOPBACK, "server_id": str(number)})
            for number, (name, port) in enumerate(self.ports.items(), 1)}
        self._proxy = RoutingProxy(directory / "routing", listen, self.ports)

    @property
    def primary(self) -> LabServer:
        return self.servers[PRIMARY]

    def __enter__(self) -> RoutedPair:
        try:
            for server in self.servers.values():
                server.start()
            self.primary.execute("RESET MASTER")  # what each server made for itself at its start is no part of it
            self._proxy.__enter__()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc) -> None:
        self._proxy.__exit__()
        for server in self.servers.values():
            server.close()

    def replicate(self, user: str, password: str) -> None:
        """user: an account of the primary that may replicate."""
        replica = self.servers[REPLICA]
        replica.execute("SET GLOBAL gtid_slave_pos = ''")
        replica.execute(f"CHANGE MASTER TO MASTER_HOST='{LOOPBACK}', MASTER_PORT={self.ports[PRIMARY]}, MASTER_USER='{user}', "
                        f"MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos")
        replica.execute("START SLAVE")

    def catch_up(self) -> None:
        """Waits until the replica has all that the primary has. Raises LabError."""
        ((position,),) = self.primary.rows("SELECT @@GLOBAL.gtid_binlog_pos")
        ((result,),) = self.servers[REPLICA].rows(f"SELECT MASTER_GTID_WAIT('{position}', {_CAUGHT_UP_SECONDS_MAX})")
        if result != 0:
            raise LabError(f"the replica has not applied {position} within {_CAUGHT_UP_SECONDS_MAX} s")

    def pids(self) -> set[int]:
        return {self._proxy.pid, *(server.pid for server in self.servers.values())}

    def ended(self) -> str:
        """As a server's."""
        return "".join(server.ended() for server in self.servers.values())

    def fetches(self) -> dict[str, int]:
        """SELECTs that each server had so far."""
        return {name: int(server.status("Com_select")["com_select"]) for name, server in self.servers.items()}

    def describe(self) -> dict:
        return {name: server.describe() for name, server in self.servers.items()}
