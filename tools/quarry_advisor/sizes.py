"""What rows come to, in bytes: in InnoDB's pages and in Quarry's segments. Pure functions; every constant has its source in constants.py."""

from __future__ import annotations

import math
from collections.abc import Iterable

from . import constants as c


def half_page(page_bytes: int) -> int:
    """The longest row that InnoDB keeps in the page: 8126 bytes of 16 KiB."""
    return min((page_bytes - c.EMPTY_PAGE_BYTES_USED) // 2, c.ROW_BYTES_MAX)


def head_bytes(value_bytes: int, inline_bytes: int, prefix_bytes: int = 0) -> int:
    """What InnoDB gets for a value."""
    return value_bytes if value_bytes <= inline_bytes else min(prefix_bytes, value_bytes) + c.TRAILER_BYTES


def innodb_bytes(fields: Iterable[int | None], other_bytes: int, page_bytes: int) -> float:
    """Bytes of pages for a row whose long fields are `fields`: the longest move to overflow pages until the rest fits half a page."""
    fields = sorted((field for field in fields if field is not None), reverse=True)
    in_page = c.ROW_BYTES + other_bytes + sum(field + c.FIELD_LENGTH_BYTES for field in fields)
    overflow = 0
    for field in fields:
        if in_page <= half_page(page_bytes) or field <= 2 * c.REFERENCE_BYTES:
            break
        in_page -= field - c.REFERENCE_BYTES
        overflow += math.ceil(field / (page_bytes - c.OVERFLOW_PAGE_BYTES_USED)) * page_bytes
    return in_page / c.PAGE_FILL + overflow


def extent_bytes(value_bytes: int, stored_bytes: float, part_bytes: int) -> float:
    """A value out of the row, without the padding of its last block: that is shared by all who commit together."""
    return c.EXTENT_BYTES + c.EXTENT_BYTES_PER_PART * math.ceil(value_bytes / part_bytes) + stored_bytes


def interpolated(points: dict[int, float], value_bytes: float) -> float:
    """Between measured sizes (KB) on a logarithmic scale; beyond them the nearest one's."""
    sizes = sorted(points)
    at = min(max(value_bytes / c.KIB, sizes[0]), sizes[-1])
    above = next(i for i, size in enumerate(sizes) if size >= at)
    if above == 0:
        return points[sizes[0]]
    low, high = sizes[above - 1], sizes[above]
    share = math.log(at / low) / math.log(high / low)
    return points[low] + share * (points[high] - points[low])


def round_up(value: float, step: int) -> int:
    return math.ceil(value / step) * step


def power_of_two(value: float) -> int:
    """The least one that is not smaller."""
    return 1 << max(0, math.ceil(value) - 1).bit_length()
