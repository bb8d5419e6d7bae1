"""
Client processes: one connection each, forked after the corpus is in memory, started together, watched by the parent.

A job is a function job(client: Client) -> picklable result. It runs in each process; the parent polls what they have
done (for the progress bar) and gathers their results. The interval measured is from the first client's start to the
last one's end, connections already open.

Invariants: no client outlives run(): on an error, on Ctrl-C and at the end they are ended by their own process handles.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import pickle
import random
import signal
import time
import traceback
from array import array
from dataclasses import dataclass
from typing import Any, Callable

import mariadb

from . import client as connections

_context = multiprocessing.get_context("fork")
START_TIMEOUT_S = 60


class WorkerError(Exception):
    """A client failed; the message is its own."""


@dataclass
class Client:
    """What a job gets. `latencies` and `count` are kept by the job through done()."""

    number: int
    of: int
    connection: mariadb.Connection
    random: random.Random
    deadline: float  # time.monotonic(); infinite for jobs that end by themselves
    _progress: Any
    _next: Any
    latencies: array

    def done(self, seconds: float, payload_bytes: int) -> None:
        self.latencies.append(seconds)
        self._progress[2 * self.number] += 1
        self._progress[2 * self.number + 1] += payload_bytes

    def next_number(self) -> int:
        """0, 1, 2, ...: each number goes to one client only."""
        with self._next.get_lock():
            number = self._next.value
            self._next.value = number + 1
        return number


@dataclass
class Outcome:
    """What the clients did together. Latencies in seconds, one per operation, in no order."""

    seconds: float
    operations: int
    payload_bytes: int
    latencies: array
    results: list
    client_cpu_seconds: float


def _child(
    job: Callable,
    number: int,
    of: int,
    socket: str,
    database: str,
    seed: str,
    seconds: float | None,
    progress: Any,
    next_number: Any,
    gate: Any,
    pipe: Any,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        connection = connections.connect(socket, database)
        gate.wait(START_TIMEOUT_S)
        started = time.monotonic()
        deadline = started + seconds if seconds is not None else float("inf")
        me = Client(
            number, of, connection, random.Random(f"{seed}/{number}"), deadline, progress, next_number, array("d")
        )
        cpu_before = time.process_time()
        result = job(me)
        ended = time.monotonic()
        message = {
            "started": started,
            "ended": ended,
            "latencies": me.latencies,
            "result": result,
            "cpu": time.process_time() - cpu_before,
        }
    except BaseException as error:
        message = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        gate.abort()
    pipe.send_bytes(pickle.dumps(message))
    pipe.close()
    os._exit(0)  # no clean-up of what belongs to the parent (its server, its progress bar)


def run(
    job: Callable[[Client], Any],
    clients: int,
    socket: str,
    database: str,
    seed: str,
    seconds: float | None = None,
    on_progress: Callable[[int, int], None] = lambda operations, payload_bytes: None,
) -> Outcome:
    """
    Runs `job` in `clients` processes. on_progress(operations, payload bytes) about ten times a second. Errors:
    WorkerError.
    """
    progress = _context.RawArray("q", 2 * clients)
    next_number = _context.Value("q", 0)
    gate = _context.Barrier(clients)
    processes, pipes = [], []
    try:
        for number in range(clients):
            receiver, sender = _context.Pipe(duplex=False)
            process = _context.Process(
                target=_child,
                daemon=True,
                args=(job, number, clients, socket, database, seed, seconds, progress, next_number, gate, sender),
            )
            process.start()
            sender.close()
            processes.append(process)
            pipes.append(receiver)
        messages = _gather(processes, pipes, lambda: on_progress(sum(progress[0::2]), sum(progress[1::2])))
    except BaseException:
        for process in processes:
            process.kill()
        raise
    finally:
        for process in processes:
            process.join()
    failed = [m for m in messages if "error" in m]
    if failed:
        # A broken gate is only the echo of the client that failed first.
        first = next((m for m in failed if "BrokenBarrier" not in m["error"]), failed[0])
        raise WorkerError(f"{len(failed)} of {clients} clients failed; the first: {first['error']}\n{first['trace']}")
    latencies = array("d")
    for message in messages:
        latencies.extend(message["latencies"])
    seconds_taken = max(m["ended"] for m in messages) - min(m["started"] for m in messages)
    return Outcome(
        seconds_taken,
        sum(progress[0::2]),
        sum(progress[1::2]),
        latencies,
        [m["result"] for m in messages],
        sum(m["cpu"] for m in messages),
    )


def _gather(processes: list, pipes: list, on_progress: Callable[[], None]) -> list[dict]:
    messages: list[dict | None] = [None] * len(pipes)
    waiting = {pipe: number for number, pipe in enumerate(pipes)}
    while waiting:
        for pipe in multiprocessing.connection.wait(list(waiting), timeout=0.1):
            number = waiting.pop(pipe)
            try:
                messages[number] = pickle.loads(pipe.recv_bytes())
            except EOFError:
                processes[number].join(5)
                messages[number] = {
                    "error": f"client {number} ended with exit code {processes[number].exitcode} and no result",
                    "trace": "",
                }
        on_progress()
    return [message for message in messages if message is not None]
