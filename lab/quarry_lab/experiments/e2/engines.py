"""E2's engines, and the order of its blocks: one engine after the other, which then runs alone, all rounds of it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...design.plan import Block, Cell, Point, grouped, in_a_row
from ...design.request import Request
from ...design.variants import ALL, BASELINE_SUFFIX, TARGET, TARGET_PREFIX
from .bench import WAYS

FRONTS, NDB = "Spider fronts", "NDB"


def engine_of(key: str) -> str:
    """Who runs while this variant, or way to an id, is measured."""
    if key in WAYS:
        return FRONTS
    if key.startswith(TARGET_PREFIX):
        return NDB if ALL[key].engine == "NDBCLUSTER" else TARGET
    return "baseline" if key.endswith(BASELINE_SUFFIX) else ALL[key].engine


@dataclass(frozen=True)
class Group:
    """What shares a server and its tables."""

    engine: str

    @classmethod
    def of(cls, cell: Cell | Point) -> Group:
        return cls(engine_of(cell.variant))


def blocks(request: Request, cells: list[Cell]) -> list[Block]:
    """Engines in random order, rounds in theirs; the points of a round in random order."""
    rng, groups = random.Random(request.seed), grouped(cells, Group.of)
    return [block for group in rng.sample(list(groups), len(groups)) for block in in_a_row(group, groups[group], request.rounds, rng)]
