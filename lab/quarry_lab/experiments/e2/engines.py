"""E2's engines, and the order of its blocks: one engine after the other, which then runs alone, all rounds of it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...design.plan import Block, Cell, Point
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
    rng, groups = random.Random(request.seed), {}
    for cell in cells:
        groups.setdefault(Group.of(cell), []).append(cell)
    made = []
    for group in rng.sample(list(groups), len(groups)):
        for number in range(1, request.rounds + 1):
            points = [Point(number, c.operation, c.size_bytes, c.threads, c.variant, c.setting) for c in groups[group]]
            made.append(Block(number, group, tuple(rng.sample(points, len(points)))))
    return made
