"""
The processors of a run, and `--apart`: the servers on all of them but the last, the clients on that one.

Where both share all of them the scheduler decides which threads of a connection run beside each other, and for statements of some tens of
microseconds it decides more than an engine does (docs/performance.md): rounds of one point differ by half. Apart a
point tells what a statement costs the server, and less of what a user sees.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

AVAILABLE = frozenset(os.sched_getaffinity(0))  # to the lab as it was started
CLIENTS = frozenset(sorted(AVAILABLE)[-1:])
SERVERS = AVAILABLE - CLIENTS


def reason_against() -> str | None:
    """Why this machine cannot keep them apart; None if it can."""
    return None if SERVERS else "at least 2 processors, to keep servers and clients apart"


def place(pid: int, processors: frozenset[int]) -> None:
    """Puts all threads of a process there, and with them whatever they start. Raises OSError when it is gone."""
    placed: set[int] = set()
    while threads := {int(name) for name in os.listdir(f"/proc/{pid}/task")} - placed:  # one that was not placed yet may have started more
        for thread in threads:
            try:
                os.sched_setaffinity(thread, processors)
            except ProcessLookupError:
                os.kill(pid, 0)  # the thread has ended, not the process
        placed |= threads


@contextmanager
def clients_apart(wanted: bool) -> Iterator[None]:
    """This process, and so the clients that it starts, on the clients' processor, if `wanted`. Not thread-safe."""
    if not wanted:
        yield
        return
    before = os.sched_getaffinity(0)
    place(os.getpid(), CLIENTS)
    try:
        yield
    finally:
        place(os.getpid(), frozenset(before))
