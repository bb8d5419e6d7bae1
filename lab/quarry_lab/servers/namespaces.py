"""
A link made by the kernel: the client in a network namespace of its own, joined to the server's by a pair of virtual interfaces, and `tc` on
the server's end. A delay takes the kernel's netem queue, which many kernels lack; a rate alone can be had from tbf, too.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
import subprocess

from quarry_server.run import run_or_raise

_numbers = itertools.count()


class NamespaceError(Exception):
    """A namespace, an interface or a queue could not be made."""


def _run(*command: str) -> None:
    run_or_raise(command, NamespaceError)


def queues(megabits_per_second: int, delay_ms: int, jitter_ms: int) -> list[list[str]]:
    """The queues that would do, the best one first."""
    delay = ["delay", f"{delay_ms}ms", f"{jitter_ms}ms"] if delay_ms else []
    rate = ["rate", f"{megabits_per_second}mbit"] if megabits_per_second else []
    found = [["netem", *delay, *rate, "limit", "100000"]] if delay or rate else []
    if rate and not delay:
        found.append(["tbf", *rate, "burst", "256kb", "latency", "50ms"])
    return found


def remove_leftovers() -> None:
    """Namespaces of runs that were killed."""
    listed = subprocess.run(["ip", "netns", "list"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    for name in re.findall(r"(?m)^quarry-lab-\d+-\w+", listed.stdout):
        if not os.path.exists(f"/proc/{name.split('-')[2]}"):
            _run("ip", "netns", "del", name)


@functools.lru_cache
def usable_queue(megabits_per_second: int, delay_ms: int, jitter_ms: int) -> tuple[str, ...] | None:
    """Tried in a namespace that is thrown away; None where this kernel, or this user, cannot."""
    if not shutil.which("ip") or not shutil.which("tc"):
        return None
    name = f"quarry-lab-{os.getpid()}-probe"
    try:
        remove_leftovers()
        _run("ip", "netns", "add", name)
    except NamespaceError:
        return None
    try:
        for queue in queues(megabits_per_second, delay_ms, jitter_ms):
            try:
                _run("tc", "-n", name, "qdisc", "add", "dev", "lo", "root", *queue)
                return tuple(queue)
            except NamespaceError:
                continue
        return None
    finally:
        _run("ip", "netns", "del", name)


class ClientNamespace:
    """A namespace for clients of this machine's servers at `address`. Use as a context manager."""

    def __init__(self, queue: tuple[str, ...], both_ways: bool = False):
        """queue: of what the server sends; both_ways: of what the clients send, too."""
        self.queue, self.both_ways = queue, both_ways
        number = next(_numbers)
        self.name = f"quarry-lab-{os.getpid()}-{number}"
        self._near, self._far = f"ql{os.getpid()}n{number}", f"ql{os.getpid()}f{number}"  # an interface's name has at most 15 bytes
        # Four addresses for each, in a place of its own for each process.
        third, fourth = divmod((os.getpid() * 8 + number) % (256 * 64), 64)
        self.address, self._client_address = f"10.203.{third}.{4 * fourth + 1}", f"10.203.{third}.{4 * fourth + 2}"

    def __enter__(self) -> ClientNamespace:
        _run("ip", "netns", "add", self.name)
        try:
            _run("ip", "link", "add", self._near, "type", "veth", "peer", "name", self._far, "netns", self.name)
            _run("ip", "address", "add", f"{self.address}/30", "dev", self._near)
            _run("ip", "-n", self.name, "address", "add", f"{self._client_address}/30", "dev", self._far)
            _run("ip", "link", "set", self._near, "up")
            for interface in (self._far, "lo"):  # JMH's processes talk to each other
                _run("ip", "-n", self.name, "link", "set", interface, "up")
            _run("tc", "qdisc", "add", "dev", self._near, "root", *self.queue)
            if self.both_ways:
                _run("tc", "-n", self.name, "qdisc", "add", "dev", self._far, "root", *self.queue)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc) -> None:
        """The pair of interfaces goes with the namespace that one end is in."""
        _run("ip", "netns", "del", self.name)

    @property
    def interface(self) -> str:
        """The servers' end: its counters are in their namespace."""
        return self._near

    @property
    def prefix(self) -> list[str]:
        """What runs a command in here."""
        return ["ip", "netns", "exec", self.name]
