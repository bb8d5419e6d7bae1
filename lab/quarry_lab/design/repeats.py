"""
Noisy points measured again (--repeat-noisy), as long as a budget of time lasts.

What is repeated is a whole comparison, when any point of it was disturbed: what the experiment compares with each other in one round. So the choice rests
on what other programs or the hypervisor took (noise.py) and not on a result, and what is compared was measured together. The last record of a point counts;
the earlier ones stay in points.jsonl. A comparison is repeated TIMES_MAX times at most: what disturbs every time is no accident.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator

from .plan import Block, Point

TIMES_MAX = 4
Comparison = Callable[[Point], Hashable]  # the same for all points that are compared with each other


def comparison_of(point: Point) -> tuple:
    """Of most experiments: variants, and settings, of a cell in a round."""
    return (point.round, point.operation, point.size_bytes, point.threads)


def noisy_comparisons(blocks: list[Block], records: dict[tuple, dict], comparison: Comparison) -> set[Hashable]:
    """records: the last of each point, by its key."""
    return {comparison(point) for block in blocks for point in block.points
            if (record := records.get(point.key)) and record["cpu"]["noisy"] and record.get("repeat", 0) < TIMES_MAX}


def blocks_to_repeat(blocks: list[Block], records: dict[tuple, dict], seed: int, comparison: Comparison = comparison_of) -> Iterator[Block]:
    """
    One pass over what is noisy now: groups in random order, so that a server is started once for all blocks of its group, and these in random order; in a
    block comparison after comparison in its own order, each in random order.
    """
    noisy, rng = noisy_comparisons(blocks, records, comparison), random.Random(seed)
    order = rng.sample(blocks, len(blocks))
    groups = list(dict.fromkeys(block.group for block in order))
    for block in sorted(order, key=lambda block: groups.index(block.group)):
        wanted: dict[Hashable, list[Point]] = {}
        for point in block.points:
            if comparison(point) in noisy:
                wanted.setdefault(comparison(point), []).append(point)
        points = [point for together in wanted.values() for point in rng.sample(together, len(together))]
        if points:
            yield Block(block.round, block.group, tuple(points))
