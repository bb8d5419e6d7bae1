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

Call = collections.namedtuple("Call", "began ended thread name path text result")

LINE = re.compile(r"^(\d+) +[\d.]+ (.*)$")
COMPLETE = re.compile(r"^(\w+)\((.*)\) += (-?\d+|\?)")
UNFINISHED = re.compile(r"^(\w+)\((.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)\) += (-?\d+|\?)")
DESCRIPTOR = re.compile(r"^(?:-?\d+|AT_FDCWD)<([^>]*)>")


class Trace:
    """`with Trace(server, READS + FLUSHES) as trace: ...; trace.calls`."""

    def __init__(self, server, calls):
        self.server = server
        self.wanted = calls
        self.output = pathlib.Path(server.directory) / "strace.txt"
        self.calls = []

    def __enter__(self):
        if shutil.which("strace") is None:
            pytest.skip("strace is not installed (scripts/packages.txt lists it)")
        self.errors = (self.output.parent / "strace.err").open("wb+")
        command = [
            "strace",
            "-f",
            "-ttt",
            "-y",
            "-s",
            "0",
            "-e",
            "trace=" + ",".join(self.wanted),
            "-e",
            "signal=none",
            "-o",
            str(self.output),
            "-p",
            str(self.server.pid),
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors
        )
        deadline = time.monotonic() + 30
        while b"attached" not in self._said():
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self._said().decode(errors="replace").strip()
                if "not permitted" in said or "PTRACE" in said:
                    pytest.skip(f"strace cannot attach to the server here: {said}")
                raise AssertionError(f"strace did not attach: {said}")
            time.sleep(0.01)
        return self

    def _said(self):
        return pathlib.Path(self.errors.name).read_bytes()

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self.errors.close()
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
