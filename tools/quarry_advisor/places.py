"""
Random places in a key: values between its least and its greatest, one in each of equal pieces of that range.

A place need not be a value that a row has: what is read are the rows from there on.
"""

from __future__ import annotations

import datetime
import random
import string

_PREFIX_UNITS = 6  # units of a string behind the common prefix that tell places apart
_HEX_LETTERS = 6


def spread(kind: str, least, greatest, count: int, rng: random.Random) -> list:
    """`count` places of a kind of column (profile.KeyColumn)."""
    low, high, back = _RULERS[kind](least, greatest)
    piece = (high - low) / count
    return [back(min(high, low + piece * (number + rng.random()))) for number in range(count)]


def _number(least, greatest):
    return float(least), float(greatest), int if isinstance(least, int) else float


_FIRST_DAY = datetime.datetime(1, 1, 1)


def _time(least, greatest):
    def seconds(value) -> float:
        return (value - _FIRST_DAY).total_seconds() if isinstance(value, datetime.datetime) else 0.0  # a zero date comes as text

    return seconds(least), seconds(greatest), lambda place: _FIRST_DAY + datetime.timedelta(seconds=int(place))


def _date(least, greatest):
    def day(value) -> float:
        return float(value.toordinal()) if isinstance(value, datetime.date) else 1.0

    return day(least), day(greatest), lambda place: datetime.date.fromordinal(int(place))


def _common(least, greatest) -> int:
    return next((i for i, (a, b) in enumerate(zip(least, greatest)) if a != b), min(len(least), len(greatest)))


def _bytes(least: bytes, greatest: bytes):
    common = _common(least, greatest)

    def number(value: bytes) -> int:
        return int.from_bytes(value[common : common + _PREFIX_UNITS].ljust(_PREFIX_UNITS, b"\0"), "big")

    return (float(number(least)), float(number(greatest)),
            lambda place: least[:common] + int(place).to_bytes(_PREFIX_UNITS, "big"))


def _alphabet(text: str) -> str:
    """Of strings like `text`: digits alone, hexadecimal, or with the letters of the case that is met."""
    units = string.digits if any(unit.isdigit() for unit in text) else ""
    lower, upper = ({unit for unit in text if unit in letters} for letters in (string.ascii_lowercase, string.ascii_uppercase))
    letters, met = (string.ascii_lowercase, lower) if lower or not upper else (string.ascii_uppercase, upper)
    if met or not units:
        units += letters[: _HEX_LETTERS if units and max(met) <= letters[_HEX_LETTERS - 1] else None]
    return units


def _text(least: str, greatest: str):
    """In digits and letters: any string is a place, whatever the collation makes of it."""
    common = _common(least, greatest)
    alphabet = _alphabet(least[common:] + greatest[common:])
    base = len(alphabet)

    def number(value: str, fill: str) -> int:
        units = value[common : common + _PREFIX_UNITS].ljust(_PREFIX_UNITS, fill)
        return sum(max(alphabet.find(unit), 0) * base ** (_PREFIX_UNITS - 1 - i) for i, unit in enumerate(units))

    def back(place: float) -> str:
        units, left = [], int(place)
        for _ in range(_PREFIX_UNITS):
            left, unit = divmod(left, base)
            units.append(alphabet[unit])
        return least[:common] + "".join(reversed(units))

    ends = number(least, alphabet[0]), number(greatest, alphabet[-1] if common < len(greatest) else alphabet[0])
    return float(min(ends)), float(max(ends)), back


_RULERS = {"number": _number, "time": _time, "date": _date, "bytes": _bytes, "text": _text}
