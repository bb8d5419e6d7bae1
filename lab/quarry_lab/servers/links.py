"""
The networks of E3: the loopback interface, and links with a rate and a round trip of their own.

A shaped link is made by the kernel where it can (namespaces.py), else by toxiproxy, a proxy on the loopback interface that delays and
throttles (scripts/build-toxiproxy). What the proxy costs itself is measured on the link `proxy`, which does neither. Every link is probed:
what was asked for stands beside what it gives.

Rates and delays are those that the author's charts show (design/published/e3.toml): by both of them together uncompressed values of the largest size
and of the smallest one in the chart come as fast as there. But `gigabit` has the rate of its name, of which his charts, with a weak server, show a
quarter.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from quarry_server.run import run_or_raise
from quarry_server.server import BUILD, REPOSITORY

from ..design import published
from ..probes.link_probe import ProbeServer
from .namespaces import ClientNamespace, NamespaceError, usable_queue
from quarry_server.ports import free_ports
from .program import ProgramError, RunningProgram

PROGRAM = BUILD / "toxiproxy-server"
LOOPBACK = "127.0.0.1"
_START_SECONDS_MAX = 20


class LinkError(ProgramError):
    """A link could not be made."""


@dataclass(frozen=True)
class Link:
    """
    megabits_per_second 0: not throttled. Rate and delay fall on what the server sends, the direction of the values; both_ways: on what the client
    sends, too. source: where the rate is from.
    routed: clients meet a proxy that routes, in front of a primary and a replica. weak_server: the server has but a part of its processor time.
    """

    key: str
    label: str
    megabits_per_second: int = 0
    delay_ms: int = 0
    jitter_ms: int = 0
    shaped: bool = True
    both_ways: bool = False
    source: str = ""
    routed: bool = False
    weak_server: bool = False

    def toxics(self, connections: int = 1) -> list[dict]:
        """As toxiproxy's API wants them: latency in ms, rate in KB/s. It throttles each connection by itself, so each has its share of the rate."""
        found = []
        for stream in ("downstream", "upstream") if self.both_ways else ("downstream",):
            if self.delay_ms:
                found.append({"name": f"latency_{stream}", "type": "latency", "stream": stream,
                              "attributes": {"latency": self.delay_ms, "jitter": self.jitter_ms}})
            if self.megabits_per_second:
                found.append({"name": f"bandwidth_{stream}", "type": "bandwidth", "stream": stream,
                              "attributes": {"rate": self.megabits_per_second * 1000 // 8 // connections}})
        return found

    def queue(self) -> tuple[str, ...] | None:
        """What the kernel can do it with, if it can."""
        return usable_queue(self.megabits_per_second, self.delay_ms, self.jitter_ms) if self.shaped else None


_E3 = published.document("e3")


def _megabits(rate: str) -> int:
    """Of a published rate in MB/s."""
    return round(_E3.value(rate) * 8)


def _megabits_and_delay_ms(largest: str, smallest: str) -> tuple[int, int]:
    """
    By two figures in MB/s, of the largest and of the smallest value: a fetch of one of the author's threads takes the delay, and the time of its bytes
    at this thread's share of the rate.
    """
    small, large = (_E3.value("client-threads") * _E3.value(size) / 1e6 for size in ("smallest-charted", "largest-document"))
    short, long = small / _E3.value(smallest), large / _E3.value(largest)
    seconds_per_megabyte = (long - short) / (large - small)
    return round(8 / seconds_per_megabyte), round(1000 * (short - small * seconds_per_megabyte))


def _from_chart(key: str, label: str, rate: str, smallest: str = "", jitter_ms: int = 0, **more) -> Link:
    """A link of the rate, and where `smallest` is named of the delay, that the author's charts show."""
    megabits, delay = _megabits_and_delay_ms(rate, smallest) if smallest else (_megabits(rate), 0)
    source = " and ".join(f"{_E3.figure(name).text} ({_E3.figure(name).says})" for name in filter(None, (rate, smallest)))
    text = f"{label}: {megabits:,} Mbit/s" + (f", {delay} ms" if delay else "")
    return Link(key, text, megabits, delay, jitter_ms, source=source, **more)


LINKS = {
    link.key: link
    for link in (
        Link("localhost", "localhost", shaped=False),
        Link("proxy", "localhost through the proxy"),
        _from_chart("cloud", "same-region cloud", "cloud-none", "cloud-none-smallest"),
        _from_chart("routed", "cloud, a routing proxy before a primary and a replica", "cloud-none", "cloud-none-smallest", routed=True),
        Link("gigabit", "1 Gbit Ethernet", 1000 * int(_E3.value("ethernet")), source=_E3.figure("ethernet").says),
        _from_chart("wifi", "Wi-Fi", "ethernet-none", "wifi-none-smallest"),
        _from_chart("weak", "Ethernet, weak server", "ethernet-none", weak_server=True),
    )
}


@dataclass(frozen=True)
class Endpoint:
    """Where a client finds the server over a link: `prefix` runs its command in the right network."""

    host: str
    port: int
    prefix: tuple[str, ...] = ()
    by: str = "the kernel's loopback"
    interface: str = "lo"  # whose counters see the traffic


class Network:
    """
    All links of a run to one port of a server, which listens on `addresses` once this has been entered. Use as a context manager.
    Externally synchronised. connections: how many share a link, once clients use it. by_proxy: all of them, for a server that listens on the loopback
    interface alone.
    """

    def __init__(self, links: list[Link], port: int, connections: int = 1, by_proxy: bool = False):
        self.links, self.port, self._connections, self._by_proxy = links, port, connections, by_proxy
        self.addresses = [LOOPBACK]
        self._stack = ExitStack()
        self._endpoints: dict[str, Endpoint] = {}
        self._proxy: Toxiproxy | None = None

    def __enter__(self) -> Network:
        with ExitStack() as stack:
            for link in self.links:
                self._endpoints[link.key] = self._make(stack, link)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exc) -> None:
        self._stack.close()

    def _make(self, stack: ExitStack, link: Link) -> Endpoint:
        if not link.shaped:
            return Endpoint(LOOPBACK, self.port)
        if not self._by_proxy and (queue := link.queue()):
            try:
                namespace = stack.enter_context(ClientNamespace(queue, link.both_ways))
            except NamespaceError as error:
                raise LinkError(str(error)) from error
            self.addresses.append(namespace.address)
            return Endpoint(namespace.address, self.port, tuple(namespace.prefix), "tc " + " ".join(queue), namespace.interface)
        if self._proxy is None:
            self._proxy = stack.enter_context(Toxiproxy())
        return Endpoint(LOOPBACK, self._proxy.add(link, self.port, self._connections), by=self._proxy.version())

    def endpoint(self, link: str) -> Endpoint:
        return self._endpoints[link]

    def pids(self) -> set[int]:
        """Of the proxy that makes links, where there is one."""
        return {self._proxy.pid} if self._proxy else set()

    def ended(self) -> str:
        """That the proxy runs no more, in a line; else empty."""
        return "\nthe proxy that makes the links ended" if self._proxy and not self._proxy.running() else ""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP through a unix socket."""

    def __init__(self, path: Path):
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Toxiproxy:
    """One proxy process, told what to do through a socket in a directory that nobody else can enter. Use as a context manager."""

    def __init__(self) -> None:
        _build()
        self._directory = tempfile.TemporaryDirectory(prefix="quarry-links-")  # mode 0700
        self.socket = Path(self._directory.name) / "api.sock"
        self._running = RunningProgram([str(PROGRAM), str(self.socket)])

    def __enter__(self) -> Toxiproxy:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while True:
            try:
                self.version()
                return self
            except OSError:
                if not self.running() or time.monotonic() > deadline:
                    self.__exit__()
                    raise LinkError("toxiproxy did not start") from None
                time.sleep(0.05)

    def __exit__(self, *_exc) -> None:
        self._running.stop()
        self._directory.cleanup()

    @property
    def pid(self) -> int:
        return self._running.process.pid

    def running(self) -> bool:
        return self._running.process.poll() is None

    def version(self) -> str:
        return f"toxiproxy {json.loads(self._call('GET', '/version'))['version']}"

    def add(self, link: Link, upstream_port: int, connections: int = 1) -> int:
        """The port on which the link can be reached."""
        wanted = {"name": link.key, "listen": f"{LOOPBACK}:0", "upstream": f"{LOOPBACK}:{upstream_port}", "enabled": True}
        made = json.loads(self._call("POST", "/proxies", wanted))
        for toxic in link.toxics(connections):
            self._call("POST", f"/proxies/{link.key}/toxics", toxic)
        return int(made["listen"].rsplit(":", 1)[1])

    def _call(self, method: str, path: str, body: dict | None = None) -> str:
        connection = _UnixConnection(self.socket)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise LinkError(f"toxiproxy refused {method} {path}: {text.strip()}")
        return text


def _build() -> None:
    """Does nothing when the proxy is there."""
    run_or_raise([REPOSITORY / "scripts" / "build-toxiproxy"], LinkError)


def probe(links: list[Link], seconds: float = 1.0) -> list[dict]:
    """What each link really gives (link_probe.py), and what makes it."""
    (port,) = free_ports(1)
    with Network(links, port) as network, ProbeServer(network.addresses, port):
        return [{**asdict(link), "by": network.endpoint(link.key).by, **_probe(network.endpoint(link.key), seconds)} for link in links]


def _probe(endpoint: Endpoint, seconds: float) -> dict:
    client = [*endpoint.prefix, sys.executable, "-m", "quarry_lab.probes.link_probe", endpoint.host, str(endpoint.port), str(seconds)]
    environment = {"PYTHONPATH": str(REPOSITORY / "lab")}
    return json.loads(RunningProgram(client, environment).wait(seconds + 90))
