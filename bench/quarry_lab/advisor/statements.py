"""
The statements that carry the advice out: valid Quarry DDL, as docs/operations.md ('Options of columns and tables') has it.

What the columns have in common is said once for the table; a column that differs gets options of its own, behind its definition as SHOW
CREATE TABLE has it. Under PARTITION BY the server refuses those, so there the table's options count for all. Pure functions.
"""

from __future__ import annotations

import re

from . import constants as c
from .profile import Column, Profile, Table
from .rules import Advice, Batches, ColumnAdvice
from .target import quoted

_OWN_OPTION = re.compile(r" `?(?:INLINE_SIZE|PREFIX_SIZE|PART_SIZE|CODEC)`?='?\w+'?", re.IGNORECASE)
_STRING = r"'(?:[^'\\]|''|\\.)*'"


def alter_statement(profile: Profile, advice: Advice) -> str:
    table = profile.table
    common = _heaviest(profile, advice)
    explicit = table.engine.upper() == "QUARRY"  # older options must not stay in force
    clauses = ["ENGINE=QUARRY" + _options(common, explicit)]
    for mine in advice.columns if not table.partitions else ():
        column = table.column(mine.column)
        if _settings(mine) != _settings(common) or _has_own_options(column):
            clauses.append(f"MODIFY {quoted(column.name)} {with_options(column.definition, column_options(mine))}")
    if explicit:
        clauses.append("FORCE")  # values that are there are written anew
    return f"ALTER TABLE {_name(table)}\n  " + ",\n  ".join(clauses)


def varbinary_statement(table: Table, column: Column, definition: str) -> str:
    """The same column as VARBINARY or VARCHAR, whatever engine it stays in."""
    rest = _OWN_OPTION.sub("", column.definition).partition(" ")[2]
    return f"ALTER TABLE {_name(table)} MODIFY {quoted(column.name)} {definition}{' ' + rest if rest else ''}"


def batch_statements(batches: Batches) -> list[str]:
    pairs = (("quarry_read_batch_bytes", batches.read_bytes, c.READ_BATCH_DEFAULT), ("quarry_write_batch_bytes", batches.write_bytes, c.WRITE_BATCH_DEFAULT))
    return [f"SET GLOBAL {name} = {value}" for name, value, default in pairs if value != default]


def with_options(definition: str, options: str) -> str:
    """A column's definition with Quarry's options: behind its attributes and before its CHECK."""
    bare = _OWN_OPTION.sub("", definition)
    check = _check_at(bare)
    return bare[:check] + options + bare[check:]


def _check_at(definition: str) -> int:
    """Where the column's CHECK constraint begins, not one that a comment speaks of; the end when it has none."""
    masked = re.sub(_STRING, lambda string: "'" * len(string[0]), definition)
    found = masked.upper().find(" CHECK (")
    return len(definition) if found < 0 else found


def _has_own_options(column: Column) -> bool:
    return bool(_OWN_OPTION.search(column.definition)) or "NDB_COLUMN=" in column.definition


def _heaviest(profile: Profile, advice: Advice) -> ColumnAdvice:
    return max(advice.columns, key=lambda mine: (sum(profile.sizes(mine.column)), mine.column))


def _settings(mine: ColumnAdvice) -> tuple[int, int, str]:
    return mine.inline_size, mine.part_size, mine.codec


def _options(mine: ColumnAdvice, explicit: bool) -> str:
    defaults = (c.INLINE_SIZE_DEFAULT, c.PART_SIZE_DEFAULT, "none")
    pairs = zip(("INLINE_SIZE", "PART_SIZE", "CODEC"), _settings(mine), defaults)
    return "".join(f" {name}={value}" for name, value, default in pairs if explicit or value != default)


def column_options(mine: ColumnAdvice) -> str:
    """All of them, for a column's definition."""
    return _options(mine, True)


def _name(table: Table) -> str:
    return f"{quoted(table.schema)}.{quoted(table.name)}"
