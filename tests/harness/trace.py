"""System calls of a running server, by strace: the one witness of what really went to the operating system, and when.

A call carries the numbers of the lines on which it began and ended, so that 'A had finished before B began' can be
told even when threads overlap. Where ptrace is forbidden the test is skipped, with strace's own words as the reason.
"""

import collections
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

READS = ("pread64", "preadv", "preadv2", "read", "readv")
WRITES = ("pwrite64", "pwritev", "pwritev2", "write", "writev")
FLUSHES = ("fsync", "fdatasync", "sync_file_range")
RING = ("io_uring_enter",)
OPENS = ("openat",)
ATTACH_TIMEOUT_S = 30

Call = collections.namedtuple("Call", "began ended thread name path text result")

LINE = re.compile(r"^(\d+) +[\d.]+ (.*)$")
COMPLETE = re.compile(r"^(\w+)\((.*)\) += (-?\d+|\?)")
UNFINISHED = re.compile(r"^(\w+)\((.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)\) += (-?\d+|\?)")
DESCRIPTOR = re.compile(r"^(?:-?\d+|AT_FDCWD)<([^>]*)>")


class CannotTrace(Exception):
    """No strace, or ptrace is forbidden: strace's own words."""


def attach(options, calls, messages):
    """strace, attached to what `options` say (-p ...) and watching `calls` only; `messages`: a file for its own words.
    Raises CannotTrace."""
    if shutil.which("strace") is None:
        raise CannotTrace("strace is not installed (scripts/packages.txt lists it)")
    command = ["strace", "-y", "-s", "0", "-e", "trace=" + ",".join(calls), "-e", "signal=none", *map(str, options)]
    with messages.open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
    deadline = time.monotonic() + ATTACH_TIMEOUT_S
    while "attached" not in messages.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            said = messages.read_text(errors="replace").strip()
            detach(process)
            if "not permitted" in said or "PTRACE" in said:
                raise CannotTrace(f"strace cannot attach to the server here: {said}")
            raise AssertionError(f"strace did not attach: {said}")
        time.sleep(0.005)
    return process


def detach(process):
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(60)


class Trace:
    """`with Trace(server, READS + FLUSHES) as trace: ...; trace.calls`."""

    def __init__(self, server, calls):
        self.server = server
        self.wanted = calls
        self.output = pathlib.Path(server.directory) / "strace.txt"
        self.calls = []

    def __enter__(self):
        options = ["-f", "-ttt", "-o", self.output, "-p", self.server.pid]
        try:
            self.process = attach(options, self.wanted, self.output.parent / "strace.err")
        except CannotTrace as reason:
            pytest.skip(str(reason))
        return self

    def __exit__(self, *_):
        detach(self.process)
        self.calls = parse(self.output.read_text(errors="replace"))

    # --- questions --------------------------------------------------------------------------------
    def of(self, names, path="", thread=None):
        """Successful calls of these names on files whose path contains `path`, by order of their beginning."""
        return [
            call
            for call in self.calls
            if call.name in names and path in call.path and call.result >= 0 and thread in (None, call.thread)
        ]

    def show(self, calls=None):
        return "\n".join(
            f"{call.began}-{call.ended} [{call.thread}] {call.name} {call.path} -> {call.result}"
            for call in (self.calls if calls is None else calls)[:80]
        )


def parse(text):
    calls, open_calls = [], {}
    for number, line in enumerate(text.splitlines()):
        match = LINE.match(line)
        if not match:
            continue
        thread, rest = int(match.group(1)), match.group(2)
        if (done := COMPLETE.match(rest)) is not None:
            calls.append(make(number, number, thread, *done.groups()))
        elif (begun := UNFINISHED.match(rest)) is not None:
            open_calls[thread] = (number, begun.group(1), begun.group(2))
        elif (ended := RESUMED.match(rest)) is not None and thread in open_calls:
            began, name, arguments = open_calls.pop(thread)
            calls.append(make(began, number, thread, name, arguments + ended.group(2), ended.group(3)))
    return sorted(calls, key=lambda call: call.began)


def make(began, ended, thread, name, arguments, result):
    found = DESCRIPTOR.match(arguments)
    path = found.group(1) if found else ""
    if name == "openat":
        quoted = re.search(r'"([^"]*)"', arguments)
        path = quoted.group(1) if quoted else path
    return Call(began, ended, thread, name, path, arguments, -1 if result == "?" else int(result))


def thread_of(connection):
    """The kernel's id of the server thread that serves this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tid FROM information_schema.processlist WHERE id = CONNECTION_ID()")
        return cursor.fetchone()[0]
