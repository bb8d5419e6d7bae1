"""Values whose sizes and last bytes stand at the edges of the format.

The sizes are the defaults of docs/operate/variables.md and docs/internals/format.md.
"""

import os
import random
import secrets

TRAILER_SIZE_BYTES = 64
PART_SIZE_DEFAULT_BYTES = 64 << 10
INLINE_SIZE_DEFAULT_BYTES = 4096

# Of the random statements; printed at the end of every run. Workers of pytest-xdist have that of who started them.
SEED = os.environ.get("QUARRY_TEST_SEED") or str(secrets.randbelow(10**9))
os.environ["QUARRY_TEST_SEED"] = SEED


def payload(seed, size):
    """`size` incompressible bytes that depend on `seed` alone."""
    return random.Random(f"quarry-{seed}").randbytes(size)


def text(seed, size):
    """`size` ASCII letters that depend on `seed` alone (one byte a character)."""
    words = random.Random(f"quarry-{seed}")
    alphabet = "abcdefghijklmnopqrstuvwxyz     ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "".join(words.choices(alphabet, k=size))


def edge_sizes(inline=INLINE_SIZE_DEFAULT_BYTES, part=PART_SIZE_DEFAULT_BYTES):
    """Sizes on both sides of every limit that a value of up to a few parts can meet."""
    limits = {0, 1, TRAILER_SIZE_BYTES, inline, inline + TRAILER_SIZE_BYTES, part, 2 * part, inline + part, 3 * part}
    sizes = {limit + step for limit in limits for step in (-1, 0, 1)}
    return sorted(size for size in sizes if size >= 0)
