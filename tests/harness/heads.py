"""Finds trailers of heads where no head may ever be: binary logs, relay logs, results, dumps.

By the letter of docs/internals/format.md, sharing no code with the core: any 64 bytes that end in the magic and whose checksum
holds are a trailer. A test that stores such bytes as a value of its own makes them with `make_trailer`, of a store
that was never given out, and lists them; every other one is a head that got out. Thread-safety: a HeadSearch is
externally synchronised.
"""

import errno
import os
import pathlib
import struct

from harness.segments import TRAILER_MAGIC, TRAILER_SIZE_BYTES

# Store, offset, identity, value size, segment, extent size / 8, prefix tag, version, prefix size, value checksum, tag.
TRAILER = struct.Struct("<QQQIIIIHHIQ")
NO_PREFIX_TAG = 0x38D394C2  # of no bytes
CHECKSUMMED_BYTES = 48
# No directory ever comes to give out this one.
FOREIGN_STORE = 0x7E57_0000_0000_0001
MASK = (1 << 64) - 1
# The first 64 bytes of XXH3's default secret: all that an input of 48 bytes meets.
SECRET = struct.unpack(
    "<8Q",
    bytes.fromhex(
        "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
        "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    ),
)
PRIME = 0x9E3779B185EBCA87


def checksum(data):
    """XXH3 with 64 bits and seed 0 of exactly 48 bytes."""
    assert len(data) == CHECKSUMMED_BYTES
    words = struct.unpack("<6Q", data)
    total = CHECKSUMMED_BYTES * PRIME
    # 16 bytes each: from the start, from behind those, and from the end, with the secret that belongs to the place.
    for first, secret in ((0, 0), (4, 2), (2, 4), (2, 6)):
        product = (words[first] ^ SECRET[secret]) * (words[first + 1] ^ SECRET[secret + 1])
        total += (product & MASK) ^ (product >> 64)
    total &= MASK
    total = ((total ^ (total >> 37)) * 0x165667919E3779F9) & MASK
    return total ^ (total >> 32)


def make_trailer(store=FOREIGN_STORE, offset=4096, value_size=9000, segment=1, extent_size=None, identity=0x5EED):
    """The 64 bytes of a trailer without a prefix whose tag holds, of whatever place."""
    head = TRAILER.pack(
        store,
        offset,
        identity,
        value_size,
        segment,
        ((extent_size or value_size + 92) + 7) // 8,
        NO_PREFIX_TAG,
        *(1, 0, 0xC0FFEE, 0),
    )[:CHECKSUMMED_BYTES]
    return head + struct.pack("<Q", checksum(head)) + TRAILER_MAGIC


def is_trailer(raw):
    """Whether these 64 bytes are one that some Quarry may have written."""
    if len(raw) != TRAILER_SIZE_BYTES or raw[-len(TRAILER_MAGIC) :] != TRAILER_MAGIC:
        return False
    fields = TRAILER.unpack(raw[: TRAILER.size])
    version, stated = fields[7], fields[10]
    return version == 1 and stated == checksum(raw[:CHECKSUMMED_BYTES])


def find_trailers(data):
    """(offset, the 64 bytes) of each trailer in `data`."""
    position = data.find(TRAILER_MAGIC)
    while position != -1:
        end = position + len(TRAILER_MAGIC)
        if end >= TRAILER_SIZE_BYTES and is_trailer(raw := bytes(data[end - TRAILER_SIZE_BYTES : end])):
            yield end - TRAILER_SIZE_BYTES, raw
        position = data.find(TRAILER_MAGIC, position + 1)


def written_ranges(descriptor, size):
    """(start, end) of what was ever written of a file: no holes, no space that is only reserved."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as failure:
            if failure.errno == errno.ENXIO:  # nothing behind `end`
                return
            raise
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


class HeadSearch:
    """Searches for heads that got out; counts what it searched. `own`: trailers that the test itself stores as values."""

    def __init__(self, own=()):
        self.own = {bytes(raw) for raw in own}
        assert all(is_trailer(raw) for raw in self.own)
        self.bytes_searched = 0
        self.own_found = 0

    def heads(self, data):
        """(offset, the 64 bytes) of each trailer that is not the test's own."""
        self.bytes_searched += len(data)
        found = []
        for offset, raw in find_trailers(data):
            if raw in self.own:
                self.own_found += 1
            else:
                found.append((offset, raw))
        return found

    def check(self, data, where):
        """AssertionError, with the places, if there is a head in `data`."""
        found = self.heads(data)
        shown = ", ".join(f"at {offset}, of store {TRAILER.unpack(raw[:56])[0]}" for offset, raw in found[:5])
        assert not found, f"{where}: {len(found)} raw heads: {shown}"

    def check_rows(self, rows, where):
        for row in rows or ():
            for cell in row:
                if isinstance(cell, (bytes, bytearray)):
                    self.check(cell, where)
                elif isinstance(cell, str):  # of a character set with one byte a character, as the client decodes it
                    self.check(cell.encode("latin1", errors="replace"), where)

    def check_file(self, path):
        path = pathlib.Path(path)
        with path.open("rb") as stream:
            for start, end in written_ranges(stream.fileno(), path.stat().st_size):
                self.check(os.pread(stream.fileno(), end - start, start), f"{path.name} from {start}")

    def check_logs(self, server, *, first=None, stem="binlog"):
        """Every binary log of a server whose name starts with `stem` (relay logs: theirs), from `first` on. Their
        number."""
        paths = sorted(path for path in server.datadir.glob(f"{stem}.[0-9]*") if first is None or path.name >= first)
        for path in paths:
            self.check_file(path)
        return len(paths)
