"""
Who used the processors during a measurement: the server, the client, kernel threads, others, and time stolen by the hypervisor.

A point is noted as noisy when others, or the hypervisor, took more than NOISE_CPUS_MAX processors on average. Kernel threads (writeback,
journal, block completion) work for the server and are not noise. Figures come from clock ticks, so they are good to a few percent.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import processors

NOISE_CPUS_MAX = 0.10
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PF_KTHREAD = 0x00200000


@dataclass(frozen=True)
class _Process:
    name: str
    ticks: int
    kernel: bool
    session: int = 0  # as setsid() made it: a program of the lab and all that it starts have one


@dataclass(frozen=True)
class Snapshot:
    time: float
    busy_ticks: int  # user + nice + system, of all processes
    steal_ticks: int
    processes: dict[int, _Process]


def _read_process(pid: int) -> _Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None  # it ended meanwhile
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    return _Process(name, int(fields[11]) + int(fields[12]), bool(int(fields[6]) & _PF_KTHREAD), int(fields[3]))


def take_snapshot() -> Snapshot:
    processes = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            process = _read_process(int(entry))
            if process:
                processes[int(entry)] = process
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return Snapshot(time.monotonic(), fields[0] + fields[1] + fields[2], fields[7], processes)


def usage(before: Snapshot, after: Snapshot, own_pids: set[int], children_cpu_seconds: float, parts: Mapping[str, set[int]] | None = None,
          client_session: int | None = None) -> dict:
    """
    Processors used on average between two snapshots. own_pids: the servers and this process; children_cpu_seconds: what children reaped
    meanwhile (the load generator, a server that was restarted) used, since each began. parts: some of own_pids under a name, as <name>_cpus too.
    client_session: of a client that is still alive at the second snapshot.
    """
    seconds = after.time - before.time

    def ticks_of(pid: int) -> int:
        earlier = before.processes.get(pid)
        return after.processes[pid].ticks - (earlier.ticks if earlier else 0)

    own = sum(ticks_of(pid) for pid in own_pids if pid in after.processes)
    kernel = sum(ticks_of(pid) for pid, process in after.processes.items() if process.kernel)
    client = {pid for pid, process in after.processes.items() if process.session == client_session}
    others = {pid: ticks_of(pid) for pid, process in after.processes.items() if not process.kernel and pid not in own_pids | client}
    used_before = sum(before.processes[pid].ticks for pid in own_pids if pid in before.processes and pid not in after.processes)
    children = children_cpu_seconds * _TICKS_PER_SECOND - used_before + sum(map(ticks_of, client))
    foreign = max(0.0, after.busy_ticks - before.busy_ticks - own - kernel - children)
    top = sorted(((t, after.processes[pid].name) for pid, t in others.items() if t > 0), reverse=True)[:3]

    def cpus(ticks: float) -> float:
        return round(ticks / _TICKS_PER_SECOND / seconds, 3)

    result = {
        "seconds": round(seconds, 3),
        "processors": len(processors.AVAILABLE),
        "server_cpus": cpus(own),
        "client_cpus": cpus(children),
        "kernel_cpus": cpus(kernel),
        "other_cpus": cpus(foreign),
        "steal_cpus": cpus(after.steal_ticks - before.steal_ticks),
        "top_others": [f"{name} {cpus(t):.2f}" for t, name in top],
        **{f"{name}_cpus": cpus(sum(ticks_of(pid) for pid in pids if pid in after.processes)) for name, pids in (parts or {}).items()},
    }
    result["noisy"] = result["other_cpus"] > NOISE_CPUS_MAX or result["steal_cpus"] > NOISE_CPUS_MAX
    return result


def wait_for_quiet(own_pids: set[int], seconds_max: float, sample_seconds: float = 1.0) -> float:
    """Waits until one sample shows no noise, at most `seconds_max`; seconds waited. The point is measured either way, and noted."""
    started = time.monotonic()
    while time.monotonic() - started < seconds_max:
        before = take_snapshot()
        time.sleep(sample_seconds)
        if not usage(before, take_snapshot(), own_pids, 0.0)["noisy"]:
            break
    return time.monotonic() - started


def children_cpu_seconds() -> float:
    """Used by all children that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Meter:
    """
    `with Meter(pids) as meter: ...`, then meter.usage: what usage() returns for that time. pids: servers, and whatever else of ours is
    alive at one end at least (own_pids takes what starts within); this process and children that end within are counted anyway. parts: of usage().
    """

    def __init__(self, own_pids: set[int], parts: Mapping[str, set[int]] | None = None):
        self.own_pids, self.parts = {os.getpid(), *own_pids}, parts
        self.usage: dict = {}

    def __enter__(self) -> Meter:
        self._children, self._before = children_cpu_seconds(), take_snapshot()
        return self

    def __exit__(self, *_exc) -> None:
        self.usage = usage(self._before, take_snapshot(), self.own_pids, children_cpu_seconds() - self._children, self.parts)


class PhaseMeter:
    """
    Of a phase in a client's life, which is alive at both of its ends: the client's start and its warm-up are no part of it. own_pids, parts: as Meter
    has them. `begin` and `end` may be called in other threads.
    """

    def __init__(self, own_pids: set[int], parts: Mapping[str, set[int]] | None = None):
        self.own_pids, self.parts = {os.getpid(), *own_pids}, parts
        self._before: Snapshot | None = None
        self._after: Snapshot | None = None

    def begin(self) -> None:
        self._before = take_snapshot()

    def end(self) -> None:
        self._after = take_snapshot()

    @property
    def has_begun(self) -> bool:
        return self._before is not None

    def usage(self, client_session: int) -> dict | None:
        """What usage() returns for the phase; None where a process of the client had ended before `end`, or `end` was not called."""
        if self._before is None or self._after is None:
            return None
        began = {pid for pid, process in self._before.processes.items() if process.session == client_session}
        if not began or not began <= self._after.processes.keys():
            return None
        return usage(self._before, self._after, self.own_pids, 0.0, self.parts, client_session)
