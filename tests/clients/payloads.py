"""What every client stores and fetches, and the judgement on it.

A client gets values as files, named by their ids, and (when it is a program of its own) gives back files of the same
names. Right is what has the SHA-256 of what was put in, seen twice: by the client, and by the server's own SHA2().
"""

import hashlib
import pathlib
import random
from typing import NamedTuple

from harness.server import ENGINE
from harness.values import INLINE_SIZE_DEFAULT_BYTES, PART_SIZE_DEFAULT_BYTES, TRAILER_SIZE_BYTES

# Edges of the format: the trailer, what stays in the row, the parts; and of the protocol: one byte and two of a length.
SMALL_SIZES_BYTES = (
    *(0, 1, 2, 250, 251, 252, 255, 256),
    *(size + step for size in (TRAILER_SIZE_BYTES, INLINE_SIZE_DEFAULT_BYTES) for step in (-1, 0, 1)),
    INLINE_SIZE_DEFAULT_BYTES + TRAILER_SIZE_BYTES,
    *(PART_SIZE_DEFAULT_BYTES + step for step in (-1, 0, 1)),
    INLINE_SIZE_DEFAULT_BYTES + PART_SIZE_DEFAULT_BYTES,
)
# A packet of the protocol ends at 16 MiB - 1: with the bytes before it this value fills one to the last byte, so that
# an empty packet must follow.
FULL_PACKET_BYTES = (1 << 24) - 1 - 4
LARGE_SIZES_BYTES = (1 << 20, FULL_PACKET_BYTES, 1 << 24, 64 << 20)


class Value(NamedTuple):
    """One value; size_bytes None is NULL, which has no file."""

    id: int
    size_bytes: int | None
    sha256: str | None
    path: pathlib.Path

    def read(self):
        return None if self.size_bytes is None else self.path.read_bytes()

    def line(self):
        """As programs read it: id and size, -1 for NULL."""
        return f"{self.id} {-1 if self.size_bytes is None else self.size_bytes}\n"


def sha256(data):
    return None if data is None else hashlib.sha256(data).hexdigest()


def make_values(directory, sizes_bytes):
    """Incompressible values, each other than all before it, with a NULL in the middle and one at the end."""
    directory.mkdir(parents=True, exist_ok=True)
    values, middle = [], len(sizes_bytes) // 2
    for number, size_bytes in enumerate([*sizes_bytes[:middle], None, *sizes_bytes[middle:], None]):
        path = directory / f"{number}.bin"
        data = None if size_bytes is None else random.Random(f"client-{number}").randbytes(size_bytes)
        if data is not None:
            path.write_bytes(data)
        values.append(Value(number, size_bytes, sha256(data), path))
    return values


def digests(values):
    return {value.id: (value.size_bytes, value.sha256) for value in values}


def check_in_server(server, table, values):
    """The server's own view: every value with its length and SHA-256, in a table of the engine under test, and what is
    long enough out of line."""
    rows = server.query(f"SELECT id, LENGTH(b), SHA2(b, 256) FROM {table}")
    assert {row[0]: (row[1], row[2]) for row in rows} == digests(values)
    schema, name = table.split(".")
    ((engine,),) = server.query(
        "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s", (schema, name)
    )
    assert engine.upper() == ENGINE.upper()
    if engine.upper() != "QUARRY":
        return
    ((live_bytes,),) = server.query(
        "SELECT SUM(live_bytes) FROM information_schema.quarry_tables WHERE table_schema = %s AND table_name = %s",
        (schema, name),
    )
    out_of_line = sum(value.size_bytes or 0 for value in values if (value.size_bytes or 0) > INLINE_SIZE_DEFAULT_BYTES)
    assert live_bytes >= out_of_line, f"{out_of_line} bytes should be out of line, {live_bytes} are"


def check_fetched(fetched, values):
    """`fetched`: {id: bytes or None} as the client got them."""
    found = {key: (None if data is None else len(data), sha256(data)) for key, data in fetched.items()}
    assert found == digests(values)


def check_files(directory, values):
    """What a program wrote: one file for each value, none for a NULL."""
    found = {int(path.stem): path.read_bytes() for path in directory.glob("*.bin")}
    check_fetched({value.id: found.pop(value.id, None) for value in values}, values)
    assert not found, f"files of values that nobody stored: {sorted(found)}"
