"""
Payload bytes for the load generator: one anonymous memory file that every client thread maps.

A write sends a slice at a random byte offset with 16 fresh random bytes stamped over its start (lab/sysbench/blob_common.lua), so
neither a cache nor deduplication of pages or whole values finds anything to exploit. What a stamp covered is put back behind it, so
the buffer compresses as well at the end of a run as at its start. Two kinds:
- random: incompressible;
- text3: compresses about 3:1 with lz4 and better with zstd, at every size from 4 KB up, because all repeats lie within 1 KB.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import random
import zlib

KINDS = ("random", "text3")
DEFAULT_BYTES = {"random": 64 << 20, "text3": 32 << 20}


def random_bytes(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def text3_bytes(size: int, seed: int) -> bytes:
    """Runs of fresh bytes (8-24) and of bytes copied from at most 1 KB back (32-80), alternating."""
    rng = random.Random(seed)
    out = bytearray(rng.randbytes(1024))
    while len(out) < size:
        out += rng.randbytes(rng.randint(8, 24))
        length = rng.randint(32, 80)
        distance = rng.randint(length, 1024)
        start = len(out) - distance
        out += out[start : start + length]
    return bytes(out[:size])


class Payload:
    """Owns the memory file. Externally synchronised. Use as a context manager."""

    def __init__(self, kind: str, size: int | None = None, seed: int = 1):
        if kind not in KINDS:
            raise ValueError(f"unknown payload kind '{kind}' (allowed: {', '.join(KINDS)})")
        self.kind, self.size, self.seed = kind, size or DEFAULT_BYTES[kind], seed
        data = (random_bytes if kind == "random" else text3_bytes)(self.size, seed)
        self.ratios = measured_ratios(data)
        self.fd = os.memfd_create(f"quarry-payload-{kind}")
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]

    @property
    def path(self) -> str:
        """Valid in a child process that inherits `fd` (subprocess pass_fds)."""
        return f"/proc/self/fd/{self.fd}"

    def describe(self) -> dict:
        return {"kind": self.kind, "buffer_bytes": self.size, "seed": self.seed, "compression_ratio_of_64KB": self.ratios}

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Payload:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()


def measured_ratios(data: bytes, value_bytes: int = 65536) -> dict[str, float]:
    """What a 64 KB value of this payload really compresses to: by zlib, and by lz4 where its library is installed."""
    value = data[:value_bytes]
    ratios = {"zlib": round(len(value) / len(zlib.compress(value, 6)), 2)}
    name = ctypes.util.find_library("lz4")
    if name:
        lz4 = ctypes.CDLL(name)
        bound = lz4.LZ4_compressBound(len(value))
        target = ctypes.create_string_buffer(bound)
        stored = lz4.LZ4_compress_default(value, target, len(value), bound)
        if stored > 0:
            ratios["lz4"] = round(len(value) / stored, 2)
    return ratios
