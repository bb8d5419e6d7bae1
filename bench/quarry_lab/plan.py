"""
What an experiment measures, and in which order.

A cell is (operation, size, threads); a point is one round of one cell with one variant. Rounds are interleaved: within a round the
sizes come in random order, and within a size all points (operations, threads, variants) in random order, so that drift of the machine
falls on every variant alike. The order depends on the seed only, so a resumed run follows the same plan.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from .variants import Variant

OPERATIONS = ("insert", "read", "mix")
OPERATION_LABELS = {"insert": "durable insert", "read": "hot read", "mix": "90/10 mix"}


@dataclass(frozen=True)
class Point:
    round: int
    operation: str
    size_bytes: int
    threads: int
    variant: str

    @property
    def key(self) -> tuple:
        return (self.round, self.operation, self.size_bytes, self.threads, self.variant)


@dataclass(frozen=True)
class Block:
    """Points of one size in one round: their datasets are loaded side by side, then dropped."""

    round: int
    size_bytes: int
    points: tuple[Point, ...]


def make_plan(operations: list[str], sizes_bytes: list[int], threads: list[int], variants: list[Variant], rounds: int, seed: int) -> list[Block]:
    rng = random.Random(seed)
    blocks = []
    for round_number in range(1, rounds + 1):
        sizes = list(sizes_bytes)
        rng.shuffle(sizes)
        for size in sizes:
            points = [Point(round_number, operation, size, count, variant.key)
                      for operation in operations for count in threads for variant in variants if variant.applies_to(size)]
            rng.shuffle(points)
            blocks.append(Block(round_number, size, tuple(points)))
    return blocks


def all_points(blocks: list[Block]) -> list[Point]:
    return [point for block in blocks for point in block.points]
