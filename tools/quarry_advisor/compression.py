"""
What the sampled values come to under each codec and part size, and what the codecs cost here.

As Quarry stores a value (docs/internals/format.md): each part by itself, LZ4 as it comes, Zstandard at level 1, and a part that does not get
smaller as it is.
"""

from __future__ import annotations

import random
import time

import lz4.block
import zstandard

from .constants import PART_SIZES
from .profile import Compressed, Sample, Table

CODECS = ("lz4", "zstd")
ZSTD_LEVEL = 1  # src/codec/codec.cc
MEASURED_BYTES_MAX = 32 << 20  # of each column: enough for a ratio, a fraction of a second for each codec and part size
VALUE_BYTES_MAX = 1 << 20  # of one value, so that one of the longest does not stand for all
ORDER_SEED = 1


class _Codec:
    """One codec with the time and bytes that it took. Externally synchronised."""

    def __init__(self, name: str):
        self.name = name
        self.in_bytes = self.in_seconds = self.out_seconds = 0.0
        self._compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()

    def stored(self, part: bytes) -> int:
        started = time.perf_counter()
        packed = lz4.block.compress(part, store_size=False) if self.name == "lz4" else self._compressor.compress(part)
        packed_at = time.perf_counter()
        if self.name == "lz4":
            lz4.block.decompress(packed, uncompressed_size=len(part))
        else:
            self._decompressor.decompress(packed)
        self.out_seconds += time.perf_counter() - packed_at
        self.in_seconds += packed_at - started
        self.in_bytes += len(part)
        return min(len(part), len(packed))


def parts(value: bytes, part_bytes: int) -> list[bytes]:
    return [value[at : at + part_bytes] for at in range(0, len(value), part_bytes)]


def _compress(value: bytes, size_bytes: int, codecs: list[_Codec]) -> Compressed:
    """`value` may be the beginning of a longer one: its figures stand for the whole."""
    stored = {}
    for codec in codecs:
        for part_bytes in PART_SIZES:
            packed = sum(codec.stored(part) for part in parts(value, part_bytes))
            stored[codec.name, part_bytes] = packed * size_bytes / len(value)
    return Compressed(size_bytes, stored)


def measure(table: Table, sample: Sample) -> tuple[dict[str, list[Compressed]], dict[str, tuple[float, float]]]:
    """Figures of the sampled values of each managed column, and bytes per second of each codec: in and out, one processor."""
    codecs = [_Codec(name) for name in CODECS]
    found: dict[str, list[Compressed]] = {}
    for index, column in enumerate(table.columns):
        if column.left_alone is not None:
            continue
        found[column.name], left = [], MEASURED_BYTES_MAX
        for row in random.Random(ORDER_SEED).sample(range(len(sample.values)), len(sample.values)):
            value, size_bytes = sample.values[row][index], sample.value_sizes[row][index]
            if value and size_bytes and left > 0:
                beginning = value[:VALUE_BYTES_MAX]
                found[column.name].append(_compress(beginning, size_bytes, codecs))
                left -= len(beginning)
    rates = {codec.name: (codec.in_bytes / codec.in_seconds, codec.in_bytes / codec.out_seconds) for codec in codecs if codec.in_bytes}
    return found, rates
