"""
The files that the demo loads: a seeded sample of what this machine has under /usr, with a spread of sizes, topped up
by generated documents.

Sizes run from 1 KB to 20 MB. Each octave of sizes gets its share of the bytes (SHARES: smaller octaves less, else
they would be tens of thousands of rows); what the machine can't give for an octave is generated. Everything is held
in memory, so that the measured load reads no file, and client processes inherit it without copying.

Invariants: the same seed on the same files gives the same corpus; every item's SHA-256 was computed from the bytes
held here.
"""

from __future__ import annotations

import hashlib
import os
import random
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from .documents import DocumentGenerator

KIB = 1024
SIZE_BYTES_MIN = 1 * KIB
SIZE_BYTES_MAX = 20 << 20
# Weight of each octave, from [1 KB, 2 KB) on; the last one is [16 MB, 20 MB].
SHARES = (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 7, 6, 5)
SCAN_FILES_MAX = 400_000
_PROBE_BYTES = 64 * KIB  # of each of the sampled files whose compressibility is told

_KIND_OF_SUFFIX = {
    "font": "ttf otf pfb pfm afm woff woff2 pcf t1 enc",
    "archive": "gz xz bz2 zst zip jar whl deb tar tgz 7z lz4",
    "image": "png jpg jpeg gif svg svgz ico webp xpm icc tif",
    "documentation": "html htm txt md rst pdf ps 1 2 3 4 5 6 7 8 info tex dvi changelog copyright css",
    "source": "c h hpp cc cpp py pyi pl pm tcl js ts lua go rs java rb sh cmake m4 el",
    "data": "json xml yaml yml csv dat db sqlite mo po bin tbl conf ini list types",
}
_KIND = {suffix: kind for kind, suffixes in _KIND_OF_SUFFIX.items() for suffix in suffixes.split()}


@dataclass(frozen=True)
class Item:
    """One file of the corpus."""

    name: str
    kind: str
    generated: bool
    data: bytes
    sha256: bytes

    @property
    def size(self) -> int:
        return len(self.data)


def octave_of(size_bytes: int) -> int:
    """0 for [1 KB, 2 KB), 1 for [2 KB, 4 KB), ..."""
    return min(size_bytes.bit_length() - SIZE_BYTES_MIN.bit_length(), len(SHARES) - 1)


class Corpus:
    """Immutable after construction."""

    def __init__(self, items: list[Item], roots: list[str], scanned_files: int, seed: int):
        self.items = items
        self.roots, self.scanned_files, self.seed = roots, scanned_files, seed
        self.bytes = sum(item.size for item in items)

    def subset(self, size_bytes_max: int) -> list[int]:
        """Numbers of the items that are not larger."""
        return [i for i, item in enumerate(self.items) if item.size <= size_bytes_max]

    def describe(self) -> dict:
        octaves = [
            {"from_bytes": SIZE_BYTES_MIN << o, "files": 0, "bytes": 0, "generated_files": 0}
            for o in range(len(SHARES))
        ]
        kinds: dict[str, dict] = {}
        for item in self.items:
            octave = octaves[octave_of(item.size)]
            kind = kinds.setdefault(item.kind, {"files": 0, "bytes": 0, "generated": item.generated})
            for entry in (octave, kind):
                entry["files"] += 1
                entry["bytes"] += item.size
            octave["generated_files"] += item.generated
        return {
            "files": len(self.items),
            "bytes": self.bytes,
            "seed": self.seed,
            "roots": self.roots,
            "scanned_files": self.scanned_files,
            "generated_files": sum(item.generated for item in self.items),
            "generated_bytes": sum(item.size for item in self.items if item.generated),
            "largest_bytes": max(item.size for item in self.items),
            "smallest_bytes": min(item.size for item in self.items),
            "octaves": octaves,
            "kinds": kinds,
            "zlib1_ratio": self._compressibility(),
        }

    def _compressibility(self) -> float:
        """Raw bytes per byte after zlib level 1, over samples spread through the corpus by bytes."""
        rng, raw, packed = random.Random(self.seed), 0, 0
        for item in rng.choices(self.items, weights=[item.size for item in self.items], k=100):
            offset = rng.randrange(max(1, item.size - _PROBE_BYTES))
            piece = item.data[offset : offset + _PROBE_BYTES]
            raw += len(piece)
            packed += len(zlib.compress(piece, 1))
        return raw / packed


def kind_of(path: str, data: bytes) -> str:
    if data[:4] == b"\x7fELF" or data[:8] == b"!<arch>\n":
        return "binary"
    if data[:2] == b"#!":
        return "source"
    if "/doc/" in path or "/man/" in path or "/info/" in path:
        return "documentation"  # compressed manual pages too
    name = os.path.basename(path).lower()
    for suffix in reversed(name.split(".")[1:]):
        # libfoo.so.1.2 and foo.1.gz: the last part that says something
        if suffix in _KIND:
            return _KIND[suffix]
    return "other"


def find_files(roots: list[str], on_progress: Callable[[int], None]) -> dict[int, list[str]]:
    """
    Regular files by octave of their size, each inode once, links and other file systems not followed. Sorted, so that
    sampling is repeatable.
    """
    octaves: dict[int, list[str]] = {o: [] for o in range(len(SHARES))}
    seen: set[tuple[int, int]] = set()
    scanned = 0
    pending = [(root, os.stat(root).st_dev) for root in roots if os.path.isdir(root)]
    while pending and scanned < SCAN_FILES_MAX:
        directory, device = pending.pop()
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except OSError:
            continue  # not readable for this user: other files will do
        for entry in entries:
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone meanwhile
            if entry.is_dir(follow_symlinks=False):
                if info.st_dev == device:
                    pending.append((entry.path, device))
                continue
            if not entry.is_file(follow_symlinks=False):
                continue
            scanned += 1
            if SIZE_BYTES_MIN <= info.st_size <= SIZE_BYTES_MAX and (info.st_dev, info.st_ino) not in seen:
                seen.add((info.st_dev, info.st_ino))
                octaves[octave_of(info.st_size)].append(entry.path)
        on_progress(scanned)
    return {octave: sorted(paths) for octave, paths in octaves.items()}


def _read_sample(paths: list[str], budget_bytes: int, rng: random.Random, hashes: set[bytes]) -> list[Item]:
    """Files in random order until the budget is used; copies of a file already taken are left out."""
    items, left = [], budget_bytes
    for path in rng.sample(paths, len(paths)):
        if left <= 0:
            break
        try:
            data = Path(path).read_bytes()
        except OSError:
            continue  # not readable for this user, or gone
        digest = hashlib.sha256(data).digest()
        if digest in hashes or not SIZE_BYTES_MIN <= len(data) <= SIZE_BYTES_MAX:
            continue
        hashes.add(digest)
        items.append(Item(path, kind_of(path, data), False, data, digest))
        left -= len(data)
    return items


def gather(roots: list[str], bytes_wanted: int, seed: int, on_progress: Callable[[str, int, int], None]) -> Corpus:
    """The corpus: about bytes_wanted in total. on_progress(step, done, total) is called as it grows."""
    found = find_files(roots, lambda scanned: on_progress("looking for files", scanned, 0))
    rng, generator = random.Random(seed), None
    items: list[Item] = []
    hashes: set[bytes] = set()
    total = 0
    for octave, share in enumerate(SHARES):
        budget = int(bytes_wanted * share / sum(SHARES))
        sample = _read_sample(found[octave], budget, rng, hashes)
        taken = sum(item.size for item in sample)
        low, high = SIZE_BYTES_MIN << octave, min((SIZE_BYTES_MIN << (octave + 1)) - 1, SIZE_BYTES_MAX)
        # Generate only when the missing bytes make up at least half a typical file, else the last octaves would always
        # overshoot.
        while budget - taken > (low + high) // 4:
            generator = generator or DocumentGenerator(seed)
            kind, data = generator.make(rng.randint(low, high))
            sample.append(
                Item(f"generated/{len(items) + len(sample):06}.{kind}", kind, True, data, hashlib.sha256(data).digest())
            )
            taken += len(data)
            on_progress("making documents", total + taken, bytes_wanted)
        items += sample
        total += taken
        on_progress("reading files", total, bytes_wanted)
    rng.shuffle(items)
    return Corpus(items, roots, sum(len(paths) for paths in found.values()), seed)
