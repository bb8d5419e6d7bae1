"""SIGKILL at a chosen system call: the n-th fsync, rename, write ... of one thread of a running server.

strace attaches to the thread that serves one connection and delivers SIGKILL as it enters the call, which therefore is
not carried out. So a statement can be cut off at every place where it changes a file, one after the other. What the thread
does not do itself (page cleaners, the log's own writer) goes on by chance until then.

    points = run(server, connection, statement).points      # every call it made that changes a file
    run(server, connection, statement, points[7]).killed     # the same again, but cut off there: the server is dead

Where ptrace is forbidden Strace raises CannotTrace (harness.trace) with strace's own words.
"""

import collections
import pathlib
import re
from typing import NamedTuple

import pymysql

from harness.trace import CannotTrace, attach, detach, thread_of
from quarry_server.server import HOME_NAME

CHANGES = (
    *("fsync", "fdatasync", "sync_file_range", "write", "writev", "pwrite64", "pwritev", "pwritev2"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
    *("openat", "ftruncate", "fallocate", "io_submit", "io_uring_enter"),
)
CALL = re.compile(r"^(\w+)\((.*)$")
PATHS = re.compile(r'"([^"]*)"|<(/[^>]*)>')


class Point(NamedTuple):
    """A place in a statement: its `number`-th call of this name."""

    call: str
    number: int
    file: str = ""  # what it changed, by its kind: `t.ibd`, `#sql-alter.frm`, `ddl_log`

    def __str__(self):
        return f"{self.call} #{self.number} of {self.file}"


class Outcome(NamedTuple):
    """`killed`: no answer came, the server is dead. Else the statement is done. `points`: the calls that were made; if
    killed, the last one was not carried out."""

    killed: bool
    points: list


def run(server, connection, statement, point=None, thread=None):
    """Runs one statement with its thread under strace; with `point`, until there. `thread`: of the connection, where it
    cannot be asked for (a transaction that was ended by XA END)."""
    killed = False
    with Strace(server, thread or thread_of(connection), point) as strace:
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                cursor.fetchall()
        except pymysql.err.Error as failure:
            if not is_lost(failure):
                raise
            killed = strace.expect_death()
    if killed:
        # Until the process is gone, so that a new one can have its files.
        server.private.process.wait(60)
    return Outcome(killed, strace.points)


def is_lost(failure):
    """Whether an error says that the server went away."""
    return isinstance(failure, pymysql.err.InterfaceError) or failure.args[:1] in ((0,), (2006,), (2013,), (2014,))


class Strace:
    """Attached to one thread between enter and exit. `points` is there after the exit."""

    def __init__(self, server, thread, point=None):
        self.server, self.thread, self.point = server, thread, point
        self.output = pathlib.Path(server.directory) / "strace-kill.txt"
        self.messages = pathlib.Path(server.directory) / "strace-kill.err"
        self.points = []
        self.death_expected = False

    def expect_death(self):
        self.death_expected = True
        return True

    def __enter__(self):
        self.output.unlink(missing_ok=True)
        options = ["-o", self.output, "-p", self.thread]
        if self.point is not None:
            options += ["-e", f"inject={self.point.call}:signal=KILL:when={self.point.number}"]
        self.process = attach(options, CHANGES, self.messages)
        return self

    def __exit__(self, *_):
        if self.death_expected:
            self.process.wait(60)  # it ends with the thread that it watches
        else:
            detach(self.process)
        text = self.output.read_text(errors="replace")
        # The call that it was killed in has no result.
        if self.death_expected and not text.rstrip().endswith("= ?"):
            raise AssertionError(f"the server died, but not of strace:\n{self.server.error_log()[-4000:]}")
        self.points = points(text, self.server)


def points(text, server):
    """The calls in strace's output that change a file of the server."""
    counts, found = collections.Counter(), []
    for line in text.splitlines():
        match = CALL.match(line)
        if match is None or match.group(1) not in CHANGES:
            continue
        call, rest = match.groups()
        counts[call] += 1
        if call == "openat" and "O_CREAT" not in rest:
            continue
        file = changed_file(rest, server)
        if file is not None:
            found.append(Point(call, counts[call], file))
    return found


def changed_file(arguments, server):
    """The kind of the first file in a call's arguments; None for sockets and files that tell nothing (error log)."""
    for quoted, descriptor in PATHS.findall(arguments):
        path = quoted or descriptor
        is_elsewhere = path.startswith("/") and not path.startswith(str(server.directory))
        if path.endswith("error.log") or (is_elsewhere and path.startswith(("/proc/", "/dev/"))):
            return None
        if is_elsewhere:
            continue
        if path in (str(server.datadir), "."):
            return "data directory"
        return kind_of(pathlib.PurePath(path))
    return None


def kind_of(path):
    """A file's name without what differs from run to run: numbers of threads, stores, temporary names."""
    name = path.name
    if HOME_NAME in path.parts:
        return HOME_NAME + "/" + re.sub(r"^[0-9a-f]{8,16}(?=\.|$)", "*", name)
    name = re.sub(r"-[0-9a-f]+-[0-9a-f]+(?=[.#]|$)", "", name)
    name = re.sub(r"\.(\d{6})$", ".*", name)
    return re.sub(r"^(undo|ib_logfile)\d+$", r"\1*", name)
