"""HAProxy in front of the shards: one port for each shard, behind it the shard's two servers, of which one is routed to.

HAProxy obeys the keeper, through its admin socket, in which server it routes to and which it takes for gone (watch.py): it cuts
the sessions of one that is. It checks nothing itself, for that would take an account without a password. In its configuration
every server is disabled: nothing is routed to before the keeper has said so.
Thread-safety: every call opens a connection of its own; start and stop are externally synchronised.
"""

from __future__ import annotations

import csv
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from quarry_server.private import unprivileged_id
from quarry_server.server import MARIADB

from .plan import ClusterError, Plan, recorded_pid

HAPROXY = MARIADB / "usr" / "sbin" / "haproxy"
READY_TIMEOUT_S = 10
STOP_TIMEOUT_S = 30

CONFIGURATION = """global{identity}
    stats socket unix@haproxy.sock mode 600 level admin
    nbthread 1
    maxconn 4096
"""
DEFAULTS = """
defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    retries 0
"""
LISTEN = """
listen {shard}
    bind {host}:{port}
    option contstats
    default-server on-marked-down shutdown-sessions disabled
"""


def identity(directory: Path) -> str:
    """Lines of the global section: who HAProxy becomes that root starts in this directory."""
    number = unprivileged_id(directory)
    return f"\n    uid {number}\n    gid {number}" if os.geteuid() == 0 else ""


class HAProxy:
    """The one process of a cluster, in the cluster's directory."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan, self.directory = plan, directory
        self.configuration = directory / "haproxy.cfg"
        self.pid_file = directory / "haproxy.pid"

    def start(self) -> None:
        if self.pid() is not None:
            return
        self.configuration.write_text(self._text(), encoding="utf-8")
        with open(self.directory / "haproxy.log", "ab") as log:
            process = subprocess.Popen(
                [HAPROXY, "-db", "-f", self.configuration],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
            )
        self.pid_file.write_text(f"{process.pid}\n", encoding="ascii")
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self.ready():
            if process.poll() is not None or time.monotonic() > deadline:
                log_text = (self.directory / "haproxy.log").read_text(encoding="utf-8", errors="replace")
                raise ClusterError(f"HAProxy did not start:\n{log_text[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while self.pid() is not None:
                if time.monotonic() > deadline:
                    raise ClusterError(f"HAProxy (pid {pid}) does not end within {STOP_TIMEOUT_S} s of SIGTERM: end it, then repeat")
                time.sleep(0.05)
        self.pid_file.unlink(missing_ok=True)

    def pid(self) -> int | None:
        return recorded_pid(self.pid_file, self.configuration)

    def ready(self) -> bool:
        try:
            return "Uptime" in self._ask("show info")
        except OSError:
            return False

    # --- the admin socket -----------------------------------------------------------------------
    def states(self, shard: str) -> dict[str, str]:
        """What HAProxy thinks of each server of a shard: 'no check' (it is up), DOWN, MAINT. Error: OSError, also of an answer
        that breaks off."""
        found = {row.get("svname"): row.get("status") for row in self._statistics(shard)}
        missing = [node.name for node in self.plan.shard(shard) if not found.get(node.name)]
        if missing:
            raise OSError(f"HAProxy tells nothing of {', '.join(missing)}")
        return found

    def bytes_of(self, shard: str) -> tuple[int, int]:
        """(sent to clients, received from them) since HAProxy started."""
        rows = self._statistics(shard)
        return sum(int(row["bout"]) for row in rows), sum(int(row["bin"]) for row in rows)

    def _statistics(self, shard: str) -> list[dict[str, str]]:
        lines = self._ask(f"show stat {shard} 4 -1").lstrip("# ").splitlines()
        return list(csv.DictReader(lines))

    def route(self, shard: str, server: str) -> None:
        """New sessions go to `server`, the sessions of all others end."""
        for node in self.plan.shard(shard):
            if node.name != server:
                self.fence(shard, node.name)
        self._ask(f"set server {shard}/{server} state ready")

    def fence(self, shard: str, server: str) -> None:
        """Nothing reaches `server` through HAProxy any more."""
        self._ask(f"set server {shard}/{server} state maint")
        self._ask(f"shutdown sessions server {shard}/{server}")

    def mark(self, shard: str, server: str, is_up: bool) -> None:
        """What the keeper has found out; the sessions of one that is down end."""
        self._ask(f"set server {shard}/{server} health {'up' if is_up else 'down'}")

    def _ask(self, command: str) -> str:
        # Through the directory's descriptor: the path of a socket may have 107 bytes only.
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(READY_TIMEOUT_S)
                connection.connect(f"/proc/self/fd/{descriptor}/haproxy.sock")
                connection.sendall(command.encode() + b"\n")
                answer = b""
                while chunk := connection.recv(1 << 16):
                    answer += chunk
        finally:
            os.close(descriptor)
        return answer.decode()

    def _text(self) -> str:
        text = CONFIGURATION.format(identity=identity(self.directory)) + DEFAULTS
        for shard, route in self.plan.routes.items():
            text += LISTEN.format(
                shard=shard,
                host=route.host,
                port=route.port,
            )
            for node in self.plan.shard(shard):
                text += f"    server {node.name} 127.0.0.1:{node.port}\n"
        return text
