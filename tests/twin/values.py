"""Values as the programs name them: (kind, seed, size) stands for the same bytes everywhere.

kinds: null, bytes (incompressible), pattern (compressible, made by the server), text (ASCII), wide (characters of one
to three bytes; size counts characters), json, magic (bytes that end as a head ends).
"""

import functools
import random
from typing import NamedTuple

from harness.segments import TRAILER_MAGIC

ASCII = "abcdefghijklmnopqrstuvwxyz     ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
WIDE = "abc xyz 0123 äöüß éàç ñ øå λμπω Ωψ жщю ДФЯ 漢字仮名交 ―…"
HEX_MAX_BYTES = 40_000  # a longer incompressible value repeats a piece, lest the programs weigh megabytes
PIECE_BYTES = 33_333


class Value(NamedTuple):
    kind: str
    seed: int = 0
    size: int = 0

    def data(self):
        """The bytes as a client sends them (text in UTF-8); None for NULL."""
        return _data(self)

    def sql(self):
        """An SQL expression for it."""
        if self.kind == "null":
            return "NULL"
        if self.size == 0:
            return "''"
        if self.kind == "pattern":
            return f"RPAD('', {self.size}, '{_pattern(self.seed)}')"
        data = self.data()
        if self.kind in ("text", "wide", "json"):
            return "'" + data.decode() + "'"
        if len(data) <= HEX_MAX_BYTES:
            return "x'" + data.hex() + "'"
        pieces, rest = divmod(self.size, PIECE_BYTES)
        piece = data[:PIECE_BYTES].hex()
        tail = f", x'{data[-rest:].hex()}'" if rest else ""
        return f"CONCAT(REPEAT(x'{piece}', {pieces}){tail})"


NULL = Value("null")


@functools.lru_cache(maxsize=16)
def _data(value):
    chooser = random.Random(f"value-{value.kind}-{value.seed}")
    size = value.size
    if value.kind == "null":
        return None
    if value.kind == "bytes":
        if size <= HEX_MAX_BYTES:
            return chooser.randbytes(size)
        pieces, rest = divmod(size, PIECE_BYTES)
        return chooser.randbytes(PIECE_BYTES) * pieces + chooser.randbytes(rest)
    if value.kind == "magic":
        return chooser.randbytes(max(size - len(TRAILER_MAGIC), 0)) + TRAILER_MAGIC
    if value.kind == "pattern":
        piece = _pattern(value.seed)
        return (piece * (size // len(piece) + 1))[:size].encode()
    if value.kind == "json":
        filling = "".join(chooser.choices(ASCII, k=max(size - 30, 0)))
        return f'{{"k": {chooser.randrange(50)}, "t": "{filling}"}}'.encode()
    # Of a long text the same letters come again: what matters of it is its length.
    letters = "".join(chooser.choices(WIDE if value.kind == "wide" else ASCII, k=min(size, 5000)))
    return (letters * (size // max(len(letters), 1) + 1))[:size].encode()


def _pattern(seed):
    return f"{seed}-" + "abcdefgh"[: seed % 7 + 1]


def edge_sizes(inline, prefix, part):
    """Sizes on both sides of every limit that a column with these options has."""
    limits = {0, 64, prefix, prefix + 64, inline, inline + 64, part, part + prefix, 2 * part, 65535}
    return sorted({limit + step for limit in limits for step in (-1, 0, 1) if 0 <= limit + step <= 300_000})


def pick_size(chooser, edges, large=False):
    """`large`: now and then megabytes."""
    luck = chooser.random()
    if large and luck < 0.004:
        return chooser.randrange(1 << 20, 8 << 20)
    if luck < 0.25:
        return chooser.randrange(65)
    if luck < 0.65:
        return chooser.choice(edges)
    if luck < 0.9:
        return chooser.randrange(12_000)
    return chooser.randrange(150_000 if luck > 0.97 else 40_000)
