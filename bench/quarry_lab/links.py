"""
The networks of E3: the loopback interface, and links with a rate and a round trip of their own.

A shaped link is toxiproxy, a proxy on the loopback interface that delays and throttles (scripts/build-toxiproxy). What it costs itself is
measured on the link `proxy`, which neither delays nor throttles. Every link is probed: what was asked for stands beside what it gives.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
import urllib.request
from dataclasses import asdict, dataclass

from . import stats
from .ports import free_ports
from .program import ProgramError, RunningProgram
from .server import BUILD, REPOSITORY

PROGRAM = BUILD / "toxiproxy-server"
_START_SECONDS_MAX = 20
_PROBE_BYTES = 1 << 16
_PINGS = 20


class LinkError(ProgramError):
    """A link could not be made."""


@dataclass(frozen=True)
class Link:
    """megabits_per_second 0: not throttled. The delay falls on what the server sends, the direction of the values."""

    key: str
    label: str
    megabits_per_second: int = 0
    delay_ms: int = 0
    jitter_ms: int = 0
    proxied: bool = True

    def toxics(self) -> list[dict]:
        """As toxiproxy's API wants them: latency in ms, rate in KB/s."""
        found = []
        if self.delay_ms:
            found.append({"name": "latency", "type": "latency", "stream": "downstream",
                          "attributes": {"latency": self.delay_ms, "jitter": self.jitter_ms}})
        if self.megabits_per_second:
            found.append({"name": "bandwidth", "type": "bandwidth", "stream": "downstream",
                          "attributes": {"rate": self.megabits_per_second * 1000 // 8}})
        return found


LINKS = {
    link.key: link
    for link in (
        Link("localhost", "localhost", proxied=False),
        Link("proxy", "localhost through the proxy"),
        Link("cloud", "same-region cloud: 2.5 Gbit/s, 1 ms", 2500, 1),
        Link("gigabit", "1 Gbit Ethernet", 1000),
        Link("wifi", "Wi-Fi: 200 Mbit/s, 4 ms", 200, 4, 2),
    )
}


def build() -> None:
    """Does nothing when the proxy is there."""
    done = subprocess.run([REPOSITORY / "scripts" / "build-toxiproxy"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LinkError(done.stderr.strip())


class Proxy:
    """One toxiproxy process in front of one server's port. Use as a context manager."""

    def __init__(self, links: list[Link], upstream_port: int):
        self.links, self.upstream_port = [link for link in links if link.proxied], upstream_port
        self._ports = {link.key: upstream_port for link in links if not link.proxied}
        (self._api_port,) = free_ports(1)
        self._running: RunningProgram | None = None

    def __enter__(self) -> Proxy:
        if self.links:
            build()
            self._running = RunningProgram([str(PROGRAM), "-host", "127.0.0.1", "-port", str(self._api_port)], {"LOG_LEVEL": "error"})
            try:
                self._wait_until_ready(self._running)
                for link in self.links:
                    self._ports[link.key] = self._add(link)
            except BaseException:
                self._running.stop()
                raise
        return self

    def __exit__(self, *_exc) -> None:
        if self._running:
            self._running.stop()

    def port(self, link: str) -> int:
        return self._ports[link]

    def pids(self) -> set[int]:
        return {self._running.process.pid} if self._running else set()

    def version(self) -> str | None:
        return f"toxiproxy {json.loads(self._call('GET', '/version'))['version']}" if self._running else None

    def _wait_until_ready(self, running: RunningProgram) -> None:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while True:
            try:
                self._call("GET", "/version")
                return
            except OSError:
                if running.process.poll() is not None or time.monotonic() > deadline:
                    raise LinkError("toxiproxy did not start") from None
                time.sleep(0.05)

    def _add(self, link: Link) -> int:
        wanted = {"name": link.key, "listen": "127.0.0.1:0", "upstream": f"127.0.0.1:{self.upstream_port}", "enabled": True}
        made = json.loads(self._call("POST", "/proxies", wanted))
        for toxic in link.toxics():
            self._call("POST", f"/proxies/{link.key}/toxics", toxic)
        return int(made["listen"].rsplit(":", 1)[1])

    def _call(self, method: str, path: str, body: dict | None = None) -> str:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self._api_port}{path}", data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()


def probe(links: list[Link], seconds: float = 1.0) -> list[dict]:
    """What each link really gives: bytes per second of one connection, and the time of a one-byte question and answer."""
    with _ProbeServer() as server, Proxy(links, server.port) as proxy:
        return [{**asdict(link), **_probe_port(proxy.port(link.key), seconds), "by": proxy.version() if link.proxied else None} for link in links]


class _ProbeServer:
    """Answers a byte with a byte ('p'), or sends until the other side closes ('s')."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> _ProbeServer:
        self._thread.start()
        return self

    def __exit__(self, *_exc) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        block = bytes(_PROBE_BYTES)
        try:
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while question := connection.recv(1):
                    if question == b"p":
                        connection.sendall(b"p")
                    else:
                        while True:
                            connection.sendall(block)
        except OSError:
            return  # the other side has what it wanted


def _probe_port(port: int, seconds: float) -> dict:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        trips = []
        for _ in range(_PINGS):
            started = time.monotonic()
            connection.sendall(b"p")
            connection.recv(1)
            trips.append(time.monotonic() - started)
        connection.sendall(b"s")
        connection.recv(_PROBE_BYTES)  # the first bytes are on their way
        received, started = 0, time.monotonic()
        while time.monotonic() - started < seconds:
            received += len(connection.recv(1 << 20))
        elapsed = time.monotonic() - started
    return {"measured_bytes_per_second": received / elapsed, "measured_round_trip_ms": stats.summarize(trips).median * 1000}
