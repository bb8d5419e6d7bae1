"""Seed inputs for the fuzzers, cut from the golden files (docs/internals/format.md), so that a short run starts at what is valid.

A fuzzer that is not listed here starts from nothing.
"""

import struct
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / "v1"
TRAILER_SIZE = 64
HEADER_SIZE = 80
CIPHER_SIZE = 32
ENTRY = struct.Struct("<IQ")
RAW_BIT = 1 << 31


def _heads(pattern="*head-*.bin"):
    return [path.read_bytes() for path in sorted(GOLDEN.glob(pattern))]


def _small_file(name):
    """A whole file, and its body, which the fuzzers put into an envelope of their own."""
    contents = (GOLDEN / name).read_bytes()
    return [contents, contents[16:-8]]


def _extents(name, heads):
    segment = (GOLDEN / name).read_bytes()
    for head in _heads(heads):
        (offset,) = struct.unpack_from("<Q", head, len(head) - TRAILER_SIZE + 8)
        (units,) = struct.unpack_from("<I", head, len(head) - TRAILER_SIZE + 32)
        yield segment[offset : offset + 8 * units]


def _plain():
    return _extents("segment.qseg", "head-*.bin")


def _fronts():
    """Header and index of every extent."""
    for extents, before_index in (
        (_plain(), HEADER_SIZE),
        (_extents("encrypted.qseg", "encrypted-head-*.bin"), HEADER_SIZE + CIPHER_SIZE),
    ):
        for extent in extents:
            (part_count,) = struct.unpack_from("<I", extent, 60)
            yield extent[: before_index + ENTRY.size * part_count]


def _parts(codec):
    """Every part that `codec` compressed, behind the size of what it gives."""
    for extent in _plain():
        (content_size,) = struct.unpack_from("<I", extent, 40)
        part_size, part_count = struct.unpack_from("<II", extent, 56)
        at = HEADER_SIZE + ENTRY.size * part_count
        for part in range(part_count):
            size, _ = ENTRY.unpack_from(extent, HEADER_SIZE + ENTRY.size * part)
            stored = extent[at : at + (size & ~RAW_BIT)]
            at += len(stored)
            if extent[10] == codec and not size & RAW_BIT:
                yield struct.pack("<I", min(part_size, content_size - part * part_size)) + stored


def _segment_headers():
    block = (GOLDEN / "segment.qseg").read_bytes()[:4096]
    return [block, block[8:-8]]


SEEDS = {
    "locator_fuzz": _heads,
    "catalogue_fuzz": lambda: [(GOLDEN / "CATALOGUE").read_bytes()],
    "path_marker_fuzz": lambda: _small_file("PATH"),
    "segment_header_fuzz": _segment_headers,
    "extent_fuzz": _fronts,
    "lz4_fuzz": lambda: _parts(1),
    "zstd_fuzz": lambda: _parts(2),
}


def write_seeds(fuzzer, directory):
    """Puts the seeds of `fuzzer` into `directory` and returns how many there are."""
    seeds = list(SEEDS[fuzzer]()) if fuzzer in SEEDS else []
    if fuzzer in SEEDS and not seeds:
        raise ValueError(f"the golden files hold no seed for {fuzzer}")
    for number, seed in enumerate(seeds):
        (directory / f"golden-{number}").write_bytes(seed)
    return len(seeds)
