"""
What an experiment measures, and in which order.

A cell is (operation, variant, size, threads, setting); a point is one round of one cell. Rounds are interleaved: within a round the
groups (by default: the sizes) come in random order, and within a group all points in random order, so that drift of the machine
falls on every variant alike. The order depends on the seed only, so a resumed run follows the same plan.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass
from typing import TypeVar

from .variants import Variant

OPERATIONS = ("insert", "read", "mix")
OPERATION_LABELS = {"insert": "durable insert", "read": "hot read", "mix": "90/10 mix", "few": "read of 64 rows",
                    "updated": "read of 64 rows beside an updater", "fronts": "inserts through two Spider fronts", "constant": "a constant, no table", "update": "update of the value",
                    "counter": "update of an INT beside the value",
                    "cold-read": "cold read", "columns": "cold scan beside values of", "scan": "cold scan of values of", "range": "cold 64 KB range of",
                    "memory-insert": "memory, inserts", "disk": "disk of a fill", "memory-read": "memory, reads"}
WITHOUT_DATASET = ("insert", "constant")
WITHOUT_PAYLOAD = ("counter",)  # what it writes is not the value
FEW_ROWS = 64  # of `few` and `updated`: so few that a reader meets the updater


@dataclass(frozen=True)
class Cell:
    """What is repeated in every round. `setting`: a network, a protocol, a number of data paths, a kind of payload; whatever else the experiment varies."""

    operation: str
    variant: str
    size_bytes: int = 0
    threads: int = 1
    setting: str = ""


@dataclass(frozen=True)
class Point:
    round: int
    operation: str
    size_bytes: int
    threads: int
    variant: str
    setting: str = ""

    @classmethod
    def of(cls, round_number: int, cell: Cell) -> Point:
        return cls(round_number, cell.operation, cell.size_bytes, cell.threads, cell.variant, cell.setting)

    @property
    def key(self) -> tuple:
        return (self.round, self.operation, self.size_bytes, self.threads, self.variant, self.setting)

    def as_dict(self) -> dict:
        return asdict(self)


@dataclass(frozen=True)
class Block:
    """Points of one group in one round: what they need is set up once for all of them, then removed."""

    round: int
    group: Hashable
    points: tuple[Point, ...]


def by_size(cell: Cell) -> int:
    return cell.size_bytes


Key = TypeVar("Key", bound=Hashable)


def grouped(cells: list[Cell], group: Callable[[Cell], Key]) -> dict[Key, list[Cell]]:
    found: dict[Key, list[Cell]] = {}
    for cell in cells:
        found.setdefault(group(cell), []).append(cell)
    return found


def in_a_row(group: Hashable, cells: list[Cell], rounds: int, rng: random.Random) -> list[Block]:
    """All rounds of one group, one behind the other: its points of a round in random order."""
    return [Block(number, group, tuple(rng.sample([Point.of(number, cell) for cell in cells], len(cells)))) for number in range(1, rounds + 1)]


def interleave(cells: list[Cell], rounds: int, seed: int, group: Callable[[Cell], Hashable] = by_size) -> list[Block]:
    rng, groups = random.Random(seed), grouped(cells, group)
    blocks = []
    for round_number in range(1, rounds + 1):
        order = list(groups)
        rng.shuffle(order)
        for key in order:
            points = [Point.of(round_number, cell) for cell in groups[key]]
            rng.shuffle(points)
            blocks.append(Block(round_number, key, tuple(points)))
    return blocks


def table_cells(operations: list[str], sizes_bytes: list[int], threads: list[int], variants: list[Variant]) -> list[Cell]:
    """Every combination that applies."""
    return [Cell(operation, variant.key, size, count) for size in sizes_bytes for operation in operations for count in threads
            for variant in variants if variant.applies_to(size)]


def all_points(blocks: list[Block]) -> list[Point]:
    return [point for block in blocks for point in block.points]
