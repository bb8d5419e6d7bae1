"""E4's grid, and the order of its blocks: one engine after the other, which then runs alone; of each size all rounds, with one load of its tables."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...design.plan import Block, Cell, Point, grouped, in_a_row
from ...design.request import Request
from . import space
from .ways import ALONE, EVERY_WAY_SIZES, SIZES, SMALL, WAYS, engine_of

FETCH = "fetch"
OPERATIONS = (FETCH, space.OPERATION)


@dataclass(frozen=True, order=True)
class Group:
    """What shares a server and the tables of a size. size_bytes: 0 where each point has a table of its own."""

    engine: str
    operation: str
    size_bytes: int

    @classmethod
    def of(cls, cell: Cell | Point) -> Group:
        return cls(engine_of(cell.variant), cell.operation, cell.size_bytes if cell.operation == FETCH else 0)


def grid(request: Request) -> list[Cell]:
    ways = [key for key in request.variants if key in WAYS]
    made = []
    if FETCH in request.operations:
        is_whole = request.scale == "full" or request.sizes_bytes != list(SIZES)
        made += [Cell(FETCH, key, size, count) for size in request.sizes_bytes for key in ways for count in request.threads
                 if is_whole or size in EVERY_WAY_SIZES or WAYS[key].is_protocol]
        if SMALL in request.sizes_bytes and 1 not in request.threads:
            made += [Cell(FETCH, key, SMALL, 1) for key in ways if key in ALONE]
    if space.OPERATION in request.operations:
        made += [Cell(space.OPERATION, key, size, 1) for key in request.variants if key in space.TABLES for size in space.SIZES]
    return made


def blocks(request: Request, cells: list[Cell]) -> list[Block]:
    """Engines in random order; of each the groups in random order, rounds in theirs, points of a round in random order."""
    rng, groups = random.Random(request.seed), grouped(cells, Group.of)
    engines = list(dict.fromkeys(group.engine for group in groups))
    made = []
    for engine in rng.sample(engines, len(engines)):
        mine = [group for group in groups if group.engine == engine]
        for group in rng.sample(mine, len(mine)):
            made += in_a_row(group, groups[group], request.rounds, rng)
    return made
