"""
The figures that the advice is computed with, each with its source. A test compares those measured with docs/performance.md.

The speeds were measured on one machine, without a binary log, with incompressible values: as ratios they are a guide, not a promise, and
`--trial` measures instead. Sizes in bytes.
"""

from __future__ import annotations

KIB = 1024

# docs/use/options.md, 'Options of columns and tables', and docs/operate/variables.md, 'System variables': what counts when nothing is said.
INLINE_SIZE_DEFAULT = 4096
INLINE_SIZE_MAX = 65535
PART_SIZE_DEFAULT = 65536
PART_SIZES = (PART_SIZE_DEFAULT, 4 * PART_SIZE_DEFAULT, 16 * PART_SIZE_DEFAULT)  # those that are tried and advised
READ_BATCH_DEFAULT = 1 << 20
WRITE_BATCH_DEFAULT = 512 * KIB
SPACE_AMPLIFICATION_MAX = 1.5

# docs/internals/format.md, 'Head and trailer' and 'Extent'.
TRAILER_BYTES = 64
EXTENT_BYTES = 80
EXTENT_BYTES_PER_PART = 12

# InnoDB, ROW_FORMAT=DYNAMIC: MariaDB's source. rem0rec.h: 5 bytes of record header; data0type.h: 6 of transaction id, 7 of roll pointer;
# btr0cur.h: 20 bytes of reference to a value moved out, which is longer than twice that; btr0types.h, fil0fil.h: 8 + 38 + 8 bytes of
# an overflow page are not payload; page0page.h: 132 bytes of an empty page are not free. innodb_fill_factor: pages filled in the order of
# the key keep a sixteenth free.
ROW_BYTES = 5 + 6 + 7
FIELD_LENGTH_BYTES = 2
REFERENCE_BYTES = 20
OVERFLOW_PAGE_BYTES_USED = 54
EMPTY_PAGE_BYTES_USED = 132
ROW_BYTES_MAX = 16383  # of a row in the page, with pages of 64 KB
PAGE_FILL = 15 / 16
# The server: a row's VARBINARYs and other columns together (docs of MariaDB, 'Data types', row size limit).
SERVER_ROW_BYTES_MAX = 65535

# docs/results/performance.json, 'bare', which docs/performance.md, 'How fast', shows (rates: that page at commit 13d4928). Durable inserts:
# (value KB, clients) -> rows/s and bytes written per payload byte, InnoDB and Quarry.
# 4 KB: the value in the row, with both engines.
CLIENTS = (1, 8, 32)
INSERT = {
    (4, 1): (4768, 4303, 3.43, 3.41), (4, 8): (14204, 13588, 2.95, 2.99), (4, 32): (13971, 14185, 2.93, 2.92),
    (24, 1): (3425, 2721, 2.53, 1.41), (24, 8): (7485, 10174, 2.41, 1.16), (24, 32): (7534, 15904, 2.38, 1.10),
    (64, 1): (2684, 2210, 2.33, 1.15), (64, 8): (4193, 8058, 2.29, 1.06), (64, 32): (4223, 11681, 2.28, 1.04),
    (448, 1): (919, 1062, 2.06, 1.02), (448, 8): (1166, 2418, 2.05, 1.01), (448, 32): (1100, 2201, 2.05, 1.01),
}
# Quarry / InnoDB of hot point reads by 8 clients, and of 90 such reads to 10 updates by 16 (4 KB: by 8): by value KB.
READ_CLIENTS, MIX_CLIENTS = 8, 16
HOT_READ = {4: 0.98, 24: 0.99, 64: 1.02, 448: 1.15}
MIX = {4: 0.98, 24: 1.16, 64: 1.19, 448: 1.67}
OUT_OF_LINE_KB_MIN = 24  # the smallest value measured out of the row

SOURCES = {
    "defaults": "docs/use/options.md, 'Options of columns and tables', and docs/operate/variables.md, 'System variables'",
    "heads and extents": "docs/internals/format.md",
    "InnoDB's rows and pages": "MariaDB's source, ROW_FORMAT=DYNAMIC",
    "speeds and bytes written": "docs/performance.md, 'How fast': incompressible values, one machine, 2 cores shared with the client, no binary log",
    "compression": "lz4 and zstd (level 1) over the sampled values, part by part, on the machine where the advisor ran",
}
