"""
The figures that the advice is computed with, each with its source. A test compares those of README.md with README.md.

The speeds were measured on one machine, with incompressible values: as ratios they are a guide, not a promise, and `--trial` measures
instead. Sizes in bytes.
"""

from __future__ import annotations

KIB = 1024

# docs/operations.md, 'Options of columns and tables' and 'System variables': what counts when nothing is said.
INLINE_SIZE_DEFAULT = 4096
INLINE_SIZE_MAX = 65535
PART_SIZE_DEFAULT = 65536
PART_SIZES = (PART_SIZE_DEFAULT, 4 * PART_SIZE_DEFAULT, 16 * PART_SIZE_DEFAULT)  # those that are tried and advised
READ_BATCH_DEFAULT = 1 << 20
WRITE_BATCH_DEFAULT = 512 * KIB
SPACE_AMPLIFICATION_MAX = 1.5

# docs/format.md, 'Heads' and 'Extents'.
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

# README.md, 'Measured'. Durable inserts: (value KB, clients) -> rows/s and bytes written per payload byte, InnoDB and Quarry.
# 4 KB: the value in the row, with both engines.
CLIENTS = (1, 8, 32)
INSERT = {
    (4, 1): (4585, 4593, 3.44, 3.41), (4, 8): (13993, 13517, 2.98, 2.96), (4, 32): (14898, 15122, 2.88, 2.91),
    (24, 1): (3273, 2751, 2.53, 2.55), (24, 8): (7235, 7469, 2.41, 1.18), (24, 32): (7329, 13414, 2.38, 1.09),
    (64, 1): (2454, 2303, 2.33, 2.21), (64, 8): (4812, 5895, 2.29, 1.07), (64, 32): (4053, 8993, 2.28, 1.04),
    (448, 1): (770, 1025, 2.06, 1.02), (448, 8): (1133, 1773, 2.05, 1.01), (448, 32): (940, 1676, 2.05, 1.01),
}
# Quarry / InnoDB of hot point reads by 8 clients, and of 90 such reads to 10 updates by 16 (4 KB: by 8): by value KB.
READ_CLIENTS, MIX_CLIENTS = 8, 16
HOT_READ = {4: 0.94, 24: 0.95, 64: 1.18, 448: 1.38}
MIX = {4: 0.98, 24: 0.84, 64: 1.28, 448: 1.74}
OUT_OF_LINE_KB_MIN = 24  # the smallest value measured out of the row

SOURCES = {
    "defaults": "docs/operations.md, 'Options of columns and tables', 'System variables'",
    "heads and extents": "docs/format.md",
    "InnoDB's rows and pages": "MariaDB's source, ROW_FORMAT=DYNAMIC",
    "speeds and bytes written": "README.md, 'Measured': incompressible values, one machine, 2 cores shared with the client",
    "compression": "lz4 and zstd (level 1) over the sampled values, part by part, on the machine where the advisor ran",
}
