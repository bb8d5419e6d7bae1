"""
Noisy points measured again (--repeat-noisy), as long as a budget of time lasts.

What is repeated is a whole comparison: all variants of one cell in one round, when any of them was disturbed. So the choice rests on what other programs or the
hypervisor took (noise.py) and not on a result, and what is compared was measured together. The last record of a point counts; the earlier ones stay in
points.jsonl. A comparison is repeated TIMES_MAX times at most: what disturbs every time is no accident.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from .plan import Block, Point

TIMES_MAX = 4


def comparison_of(point: Point) -> tuple:
    """The same for all that is compared with each other: variants, and settings, of a cell in a round."""
    return (point.round, point.operation, point.size_bytes, point.threads)


def noisy_comparisons(blocks: list[Block], records: dict[tuple, dict]) -> set[tuple]:
    """records: the last of each point, by its key."""
    return {comparison_of(point) for block in blocks for point in block.points
            if (record := records.get(point.key)) and record["cpu"]["noisy"] and record.get("repeat", 0) < TIMES_MAX}


def blocks_to_repeat(blocks: list[Block], records: dict[tuple, dict], seed: int) -> Iterator[Block]:
    """
    One pass over what is noisy now: groups in random order, so that a server is started once for all blocks of its group, and these in random order; in a
    block comparison after comparison in its own order, each in random order.
    """
    noisy, rng = noisy_comparisons(blocks, records), random.Random(seed)
    order = rng.sample(blocks, len(blocks))
    groups = list(dict.fromkeys(block.group for block in order))
    for block in sorted(order, key=lambda block: groups.index(block.group)):
        wanted: dict[tuple, list[Point]] = {}
        for point in block.points:
            if comparison_of(point) in noisy:
                wanted.setdefault(comparison_of(point), []).append(point)
        points = [point for together in wanted.values() for point in rng.sample(together, len(together))]
        if points:
            yield Block(block.round, block.group, tuple(points))
