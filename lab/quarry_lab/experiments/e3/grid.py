"""
E3's cells at the normal scale: what together answers every chart and comparison of the document within two hours.

All ways to compress are measured on localhost at the largest value; in the cloud the application's, UNCOMPRESS() and a CODEC. At the largest medium
value come some of each codec, at the smallest of each what decides. None and lz4 are measured everywhere. The random data of four alphabets have the
size of the largest value. All of these are in InnoDB's tables, as the author's were. Where the engine could decide, none and lz4 17 are fetched from
Quarry's and NDB's, too.
"""

from __future__ import annotations

from ...design.methods import METHODS
from ...design.plan import Cell
from .findings import CLOUD, DOCUMENT, DOCUMENT_BYTES, LOCAL, LZ4_9, LZ4_17, MEDIUM_BYTES, MYSQL, NEAR, NONE, RANDOM, REAL, TABLE, THREADS

KINDS = (REAL, *RANDOM)
SMALLEST_MEDIUM, SMALLEST_LARGE = int(DOCUMENT.value("smallest-medium")), int(DOCUMENT.value("smallest-large"))
SIZES = (int(DOCUMENT.value("smallest-value")), SMALLEST_MEDIUM, MEDIUM_BYTES, SMALLEST_LARGE, DOCUMENT_BYTES)
ZSTD, INSIDE = "app-zstd", "uncompress"
APPLICATION = tuple(key for key in METHODS if key.startswith("app-"))
_SLOW_LINKS = ("gigabit", "wifi")
_FETCHED_WEAK = (NONE, LZ4_17, ZSTD, "app-brotli-11", INSIDE, TABLE)
_FETCHED_ROUTED = (NONE, LZ4_17, ZSTD, INSIDE)
_OTHER_ENGINES = ("quarry", "quarry-app-lz4-17", "ndb-app-none", "ndb-app-lz4-17")
_OF_EACH_CODEC = (NONE, LZ4_9, LZ4_17, "app-snappy", ZSTD, "app-gzip", "app-brotli-11")


def _cells(kind: str, size_bytes: int, link: str, ways) -> list[Cell]:
    return [Cell(kind, way, size_bytes, THREADS, link) for way in ways]


def _real() -> list[Cell]:
    return [
        *_cells(REAL, DOCUMENT_BYTES, LOCAL, METHODS), *_cells(REAL, MEDIUM_BYTES, LOCAL, (*_OF_EACH_CODEC, MYSQL, INSIDE)),
        *_cells(REAL, DOCUMENT_BYTES, CLOUD, (*APPLICATION, INSIDE, "quarry-lz4")), *_cells(REAL, MEDIUM_BYTES, CLOUD, _OF_EACH_CODEC),
        *(cell for size in (SMALLEST_MEDIUM, SMALLEST_LARGE) for link in NEAR for cell in _cells(REAL, size, link, (NONE, LZ4_17))),
        *_cells(REAL, DOCUMENT_BYTES, CLOUD, _OTHER_ENGINES), *(cell for link in NEAR for cell in _cells(REAL, MEDIUM_BYTES, link, _OTHER_ENGINES)),
        *(cell for size in (MEDIUM_BYTES, DOCUMENT_BYTES) for link in _SLOW_LINKS for cell in _cells(REAL, size, link, (NONE, LZ4_17))),
        *_cells(REAL, DOCUMENT_BYTES, "weak", _FETCHED_WEAK), *_cells(REAL, DOCUMENT_BYTES, "routed", _FETCHED_ROUTED),
        *_cells(REAL, DOCUMENT_BYTES, "proxy", (NONE,)),
    ]


def _random() -> list[Cell]:
    made = []
    for kind in RANDOM:
        made += _cells(kind, DOCUMENT_BYTES, LOCAL, (NONE, LZ4_9, TABLE, INSIDE, MYSQL))
        made += _cells(kind, DOCUMENT_BYTES, CLOUD, (NONE, LZ4_9, INSIDE, MYSQL))
        for link in _SLOW_LINKS:
            made += _cells(kind, DOCUMENT_BYTES, link, (NONE, LZ4_9))
    return made


def chosen() -> list[Cell]:
    return [*_real(), *_random()]


def is_in_full(cell: Cell) -> bool:
    return cell.setting == LOCAL or (cell.operation, cell.size_bytes) == (REAL, DOCUMENT_BYTES)
