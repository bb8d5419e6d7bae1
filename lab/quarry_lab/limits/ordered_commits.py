"""
What the device alone gives to commits that need two durable writes, the value's and the log's, both begun at once and shared by whoever commits at the same
time (ordered_commits.cc --unordered). The bound for an engine that keeps values outside of its log. And what it gives to the values without
the log.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..load import clients
from ..report import stats
from ..servers.program import RunningProgram

HERE = Path(__file__).resolve().parent
SOURCES = [HERE / "ordered_commits.cc", HERE / "direct_file.h"]
SECONDS = 0.5
WRITTEN, GROWING = FILES = ("written", "growing")  # space that was written before, or a file that grows


@dataclass(frozen=True)
class Commits:
    """One measurement. gather: a group waits for all threads; otherwise for nobody. values_alone: no log is written."""

    threads: int
    value_bytes: int
    file: str
    gather: bool
    commits_per_second: float
    values_alone: bool = False


def measure(directory: Path, threads: int, value_bytes: int, file: str = WRITTEN, gather: bool = False, seconds: float = SECONDS,
            values_alone: bool = False) -> Commits:
    """value_bytes: a multiple of 4096. Takes up to 4 GiB of space meanwhile. ProgramError when the device or the file system refuses."""
    command = [str(clients.compiled("ordered_commits", SOURCES)), f"--directory={directory}", f"--threads={threads}", f"--value-bytes={value_bytes}",
               f"--seconds={seconds}", *(["--growing"] if file == GROWING else []), *(["--gather"] if gather else []),
               "--values-alone" if values_alone else "--unordered"]
    found = json.loads(RunningProgram(command).wait(seconds + 60).splitlines()[-1])
    return Commits(threads, value_bytes, file, gather, found["commits_per_second"], values_alone)


def probe(directory: Path, loads: Iterable[tuple[int, int]], seconds: float = SECONDS) -> list[dict]:
    """For each pair of threads and bytes of a value what every kind of file gives with every way to form groups, with a log and without, as the results record it."""
    return [asdict(measure(directory, threads, size, file, gather, seconds, values_alone))
            for (threads, size), file, values_alone in itertools.product(loads, FILES, (False, True)) for gather in ((False, True) if threads > 1 else (False,))]


def rates(run: dict, values_alone: bool = False) -> dict[tuple[int, int, str], stats.Summary]:
    """
    By threads, bytes of a value and kind of file: commits a second with the better way to form groups, over all probes of the run. values_alone: of the
    commits that write no log. Older runs have none of these, or none at all.
    """
    best: dict[tuple[int, int, str], list[float]] = {}
    for probes in (p for session in run["sessions"] for p in session.get("device_probes", [])):
        found = [c for c in probes.get("ordered_commits", []) if c.get("values_alone", False) == values_alone]
        for key in {(each["threads"], each["value_bytes"], each["file"]) for each in found}:
            best.setdefault(key, []).append(max(c["commits_per_second"] for c in found if (c["threads"], c["value_bytes"], c["file"]) == key))
    return {key: stats.summarize(values) for key, values in best.items()}
