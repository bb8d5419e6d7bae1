"""
What the device alone gives to commits that may not be found without their values: the value durable, then, after it, the log, both shared by whoever
commits at the same time (bench/clients/ordered_commits.cc). The bound for an engine that keeps values outside of its log.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from . import clients, stats
from .program import RunningProgram

SOURCE = clients.SOURCES / "ordered_commits.cc"
SECONDS = 0.5
WRITTEN, GROWING = FILES = ("written", "growing")  # space that was written before, or a file that grows


@dataclass(frozen=True)
class Commits:
    """One measurement. gather: a group waits for all threads; otherwise for nobody."""

    threads: int
    value_bytes: int
    file: str
    gather: bool
    commits_per_second: float


def measure(directory: Path, threads: int, value_bytes: int, file: str = WRITTEN, gather: bool = False, seconds: float = SECONDS) -> Commits:
    """value_bytes: a multiple of 4096. Takes up to 4 GiB of space meanwhile. ProgramError when the device or the file system refuses."""
    command = [str(clients.compiled("ordered_commits", [SOURCE])), f"--directory={directory}", f"--threads={threads}", f"--value-bytes={value_bytes}",
               f"--seconds={seconds}", *(["--growing"] if file == GROWING else []), *(["--gather"] if gather else [])]
    found = json.loads(RunningProgram(command).wait(seconds + 60).splitlines()[-1])
    return Commits(threads, value_bytes, file, gather, found["commits_per_second"])


def probe(directory: Path, loads: Iterable[tuple[int, int]], seconds: float = SECONDS) -> list[dict]:
    """For each pair of threads and bytes of a value what every kind of file gives with every way to form groups, as the results record it."""
    return [asdict(measure(directory, threads, size, file, gather, seconds))
            for (threads, size), file in itertools.product(loads, FILES) for gather in ((False, True) if threads > 1 else (False,))]


def rates(run: dict) -> dict[tuple[int, int, str], stats.Summary]:
    """By threads, bytes of a value and kind of file: commits a second with the better way to form groups, over all probes of the run. Older runs have none."""
    best: dict[tuple[int, int, str], list[float]] = {}
    for probes in (p for session in run["sessions"] for p in session.get("device_probes", [])):
        found = probes.get("ordered_commits", [])
        for key in {(each["threads"], each["value_bytes"], each["file"]) for each in found}:
            best.setdefault(key, []).append(max(c["commits_per_second"] for c in found if (c["threads"], c["value_bytes"], c["file"]) == key))
    return {key: stats.summarize(values) for key, values in best.items()}
