"""The layer between a private server and its files (io_layer.c): kills at a chosen call, failing calls, a log of all calls.

    layer = IoLayer(directory of the server)
    server = Server(name, [*OPTIONS, ...], environment=layer.environment)
    layer.arm(KILL, call="fdatasync", kind="segment", after=2)     # dies at the third
    layer.events()                                                 # what was called since reset_events(), in order

It needs no rights and no ptrace, and sees every thread. What it cannot see must not be used: OPTIONS turns off InnoDB's
io_uring. Thread-safety: externally synchronised, but `sequence` may be read by any thread.
"""

import mmap
import pathlib
import shutil
import struct
from typing import NamedTuple

from harness.server import SCRATCH
from harness.waiting import wait_for
from quarry_server.run import run_or_raise
from quarry_server.server import HOME_NAME

SOURCE = pathlib.Path(__file__).with_name("io_layer.c")
OPTIONS = ("--innodb-use-native-aio=0",)
CALLS = (
    *("create", "write", "fsync", "fdatasync", "truncate", "allocate", "punch"),
    *("rename", "unlink", "mkdir", "rmdir"),
)
OFF, KILL, TORN_KILL, FAIL_ONCE, FAIL_FROM_THEN_ON, LATE_KILL, WAIT = range(7)

# Of struct control in io_layer.c.
MAGIC = 0x31594C4F49
HEAD = struct.Struct("<QQiiqiiiiIIii")
KINDS_OFFSET, KIND_NAME_BYTES = 64, 24
EVENTS_OFFSET, EVENT, EVENTS_MAX = 4096, struct.Struct("<ihh"), 1 << 17
SIZE_BYTES = EVENTS_OFFSET + EVENT.size * EVENTS_MAX
RECORD = struct.Struct("<QQiiQqqiiii")


class CannotBuild(Exception):
    """There is no compiler, with the words that say so."""


class Event(NamedTuple):
    """One call that changes a file. `thread`: the kernel's id; `kind`: of the file, by kKinds."""

    thread: int
    call: str
    kind: str

    def __str__(self):
        return f"{self.call} of {self.kind}"


class Record(NamedTuple):
    """One call in the log. It took place between `begin` and `end` of the layer's sequence."""

    begin: int
    end: int
    call: str
    kind: str
    inode: int
    offset: int
    length: int
    is_durable: bool
    path: str
    second_path: str
    data: bytes


def build():
    """Path of the layer, compiled now if its source is newer. Raises CannotBuild."""
    library = SCRATCH / "io_layer.so"
    if library.exists() and library.stat().st_mtime > SOURCE.stat().st_mtime:
        return library
    if shutil.which("gcc") is None:
        raise CannotBuild("gcc is not installed (scripts/packages.txt lists g++)")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-lpthread"]
    command += [f'-DHOME_NAME="{HOME_NAME}"', SOURCE, "-o"]
    fresh = SCRATCH / f"io_layer.{id(command)}.so"
    run_or_raise([*command, fresh])
    fresh.rename(library)
    return library


class IoLayer:
    """Of one server directory; with `log`, every call is written down there."""

    def __init__(self, directory, log=None):
        directory = pathlib.Path(directory).resolve()
        self.control = directory.with_name(directory.name + ".io_layer")
        directory.parent.mkdir(parents=True, exist_ok=True)
        self.control.write_bytes(struct.pack("<Q", MAGIC).ljust(SIZE_BYTES, b"\0"))
        with self.control.open("r+b") as stream:
            self.memory = mmap.mmap(stream.fileno(), SIZE_BYTES)
        self.environment = {
            "LD_PRELOAD": str(build()),
            "QUARRY_IO_LAYER_ROOT": str(directory / "data"),
            "QUARRY_IO_LAYER_CONTROL": str(self.control),
            "QUARRY_IO_LAYER_LOG": str(log or ""),
        }

    def remove(self):
        self.memory.close()
        self.control.unlink(missing_ok=True)

    # --- what the next calls meet -----------------------------------------------------------------
    def arm(self, mode, call=None, kind=None, after=0, thread=0, error=0):
        """From now on: `after` matching calls pass, the next one meets `mode`. None matches any call, any kind of file."""
        self._put(16, "<i", OFF)
        self._put(20, "<i", error)
        self._put(24, "<q", after)
        self._put(32, "<iii", -1 if call is None else CALLS.index(call), self._kind_number(kind), thread)
        self._put(44, "<i", 0)
        self._put(16, "<i", mode)

    def disarm(self):
        self._put(16, "<i", OFF)

    def hold(self):
        """No call begins any more, and none is under way: the files and the log stay as they are, and agree."""
        self._put(56, "<i", 1)
        wait_for("calls that are under way", lambda: self._head()[12] == 0, every_s=0.01)

    @property
    def fired(self):
        """How many calls have met the mode since arm()."""
        return self._head()[8]

    @property
    def sequence(self):
        """What happens from now on gets this number or a later one."""
        return self._head()[1]

    # --- what was called --------------------------------------------------------------------------
    def reset_events(self):
        self._put(48, "<I", 0)

    def events(self):
        count = min(self._head()[9], EVENTS_MAX)
        data = self.memory[EVENTS_OFFSET : EVENTS_OFFSET + count * EVENT.size]
        kinds = self.kinds()
        return [Event(thread, CALLS[call], kinds[kind]) for thread, call, kind in EVENT.iter_unpack(data)]

    # --- within -----------------------------------------------------------------------------------
    def _head(self):
        return HEAD.unpack_from(self.memory, 0)

    def _put(self, offset, form, *values):
        struct.pack_into(form, self.memory, offset, *values)

    def kinds(self):
        count = self._head()[10]
        assert count, "the server did not load the layer"
        names = [
            self.memory[KINDS_OFFSET + i * KIND_NAME_BYTES : KINDS_OFFSET + (i + 1) * KIND_NAME_BYTES]
            for i in range(count)
        ]
        return [name.split(b"\0")[0].decode() for name in names]

    def _kind_number(self, kind):
        return -1 if kind is None else self.kinds().index(kind)


def read_log(path, kinds):
    """Every record of a log, in the order in which the calls ended. A half written last one is left out."""
    data, position, records = pathlib.Path(path).read_bytes(), 0, []
    while position + RECORD.size <= len(data):
        begin, end, call, kind, inode, offset, length, durable, *sizes = RECORD.unpack_from(data, position)
        position += RECORD.size
        if position + sum(sizes) > len(data):
            break
        pieces = []
        for size in sizes:
            pieces.append(data[position : position + size])
            position += size
        records.append(
            Record(
                begin, end, CALLS[call], kinds[kind], inode, offset, length, bool(durable),
                pieces[0].decode(), pieces[1].decode(), pieces[2],
            )
        )  # fmt: skip
    return records
