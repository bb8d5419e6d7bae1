"""E1's engines, its grid, and the order of its blocks: one size after the other, within a size one engine after the other, which then runs alone."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...design.plan import Block, Cell, Point, grouped
from ...design.request import Request
from ...design.variants import ALL, BASELINE_SUFFIX, KIB, TARGET, TARGET_PREFIX, Variant
from .beside import FLOOR
from .findings import HEAD, INLINE, LIMITED_LINKS, OWN, OWN_INLINE, VARBINARY

LADDER = (32, 128, 512)  # of users: every variant
CURVE = (8, 32, 64, 128, 256, 512)  # values of 64 KB, and one pair of 24 KB
BEYOND_LADDER = (8,)  # no claim speaks of it: two rounds, which are shown and not judged
BEYOND_ROUNDS = 2
HALF_OF_MOST = 256  # claims about 512 users compare them with half as many
MORE_DATA = "data four times the memory"  # a cell's setting
MORE_DATA_VARIANTS, MORE_DATA_KIB = ("innodb", HEAD, OWN), 64
MORE_DATA_MEMORY_BYTES = 1536 << 20  # of the whole server, page cache included
MORE_DATA_TIMES = 4
MORE_DATA_USERS_MAX = 128  # what 512 need for themselves would be half of that memory
MORE_DATA_LOG_CACHE = "512K"  # for each user: two images of a value, and not the 4 MB of a server with more memory
LINKED_VARIANTS, LINKED_KIB = ("target-ndb-head", "target-ndb-inline"), 24
_PAIR = (HEAD, INLINE, "target-ndb-head", "target-ndb-inline", FLOOR)
_NDB, _OWN_DEFAULTS, _INNODB = "NDB", "QUARRY", "InnoDB"
_LIKE_NDB = "QUARRY DEFAULTS=NDB"


def engine_of(key: str) -> str:
    """Whose server a variant lives on; one runs at a time."""
    variant = ALL[key]
    if key == FLOOR:
        return "floor"
    if key.startswith(TARGET_PREFIX):
        return _NDB if variant.engine == "NDBCLUSTER" else TARGET
    if key.endswith(BASELINE_SUFFIX):
        return "baseline"
    if variant.engine == "QUARRY":
        return _OWN_DEFAULTS if key in (OWN, OWN_INLINE) or variant.data_of in (OWN, OWN_INLINE) else _LIKE_NDB
    return variant.engine or _INNODB


@dataclass(frozen=True, order=True)
class Group:
    """What shares one server and its tables."""

    size_bytes: int
    engine: str
    setting: str = ""

    @classmethod
    def of(cls, cell: Cell | Point) -> Group:
        # With more data than memory each variant has all of the memory.
        engine = cell.variant if cell.setting == MORE_DATA else engine_of(cell.variant)
        return cls(cell.size_bytes, engine, cell.setting)


def users_of(request: Request, variant: Variant, size_bytes: int) -> list[int]:
    """The published ladder as far as two processors and five hours go; other users when these are asked for."""
    if request.scale == "quick" and size_bytes != 64 * KIB:
        return request.threads[:1]
    if tuple(request.threads) != LADDER:
        return request.threads
    if size_bytes == 64 * KIB or (size_bytes == 24 * KIB and variant.key in _PAIR):
        return list(CURVE)
    if size_bytes == 4 * KIB or (size_bytes == 24 * KIB and variant.key in (VARBINARY, "target-ndb-varbinary")):
        return sorted({*LADDER, HALF_OF_MOST})
    return list(LADDER)


def grid(request: Request, variants: list[Variant], has_limited_links: bool) -> list[Cell]:
    cells = [Cell("mix", variant.key, size, users) for size in request.sizes_bytes for variant in variants if variant.applies_to(size)
             for users in users_of(request, variant, size)]
    if request.options["more_data"] and MORE_DATA_KIB * KIB in request.sizes_bytes:
        cells += [Cell("mix", key, MORE_DATA_KIB * KIB, users, MORE_DATA) for key in MORE_DATA_VARIANTS if key in request.variants
                  for users in request.threads if users <= MORE_DATA_USERS_MAX]
    if has_limited_links and LINKED_KIB * KIB in request.sizes_bytes:
        cells += [Cell("mix", key, LINKED_KIB * KIB, users, LIMITED_LINKS) for key in LINKED_VARIANTS if key in request.variants for users in request.threads]
    return cells


def blocks(request: Request, cells: list[Cell]) -> list[Block]:
    """Sizes and rounds in their order; engines of a size, and points of a round, in random order. Users who were asked for have all rounds."""
    rng, groups = random.Random(request.seed), grouped(cells, Group.of)
    beyond = BEYOND_LADDER if tuple(request.threads) == LADDER else ()
    made = []
    for size in sorted({group.size_bytes for group in groups}):
        mine = [group for group in groups if group.size_bytes == size]
        for group in rng.sample(mine, len(mine)):
            for number in range(1, request.rounds + 1):
                made.append(Block(number, group, tuple(_points(groups[group], number, beyond, rng))))
    return [block for block in made if block.points]


def _points(cells: list[Cell], number: int, beyond: tuple[int, ...], rng: random.Random) -> list[Point]:
    points = [Point.of(number, cell) for cell in cells if cell.threads not in beyond or number <= BEYOND_ROUNDS]
    return rng.sample(points, len(points))
