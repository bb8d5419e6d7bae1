"""
The statements that carry the advice out: valid Quarry DDL, as docs/use/options.md ('Options of columns and tables') has it.

What the columns have in common is said once for the table; a column that differs gets options of its own, behind its definition as SHOW
CREATE TABLE has it (definition.py says whether that may be relied upon). Under PARTITION BY the server refuses those, so there the table's
options count for all. Pure functions; errors: AdvisorError where no statement can be made for certain.
"""

from __future__ import annotations

from . import constants as c
from .definition import check_statement, options_of, sql, tokens, without_options
from .errors import AdvisorError
from .profile import Column, Profile, Table
from .rules import Advice, Batches, ColumnAdvice
from .shown import shown_lines
from .target import quoted


def alter_statement(profile: Profile, advice: Advice, table_name: str | None = None) -> str:
    """`table_name`: of a copy in the same database."""
    table = profile.table
    common = _heaviest(profile, advice)
    explicit = table.engine.upper() == "QUARRY"  # older options must not stay in force
    clauses = ["ENGINE=QUARRY" + _options(common, explicit)]
    for mine in advice.columns if not table.partitions else ():
        column = table.column(mine.column)
        if _settings(mine) != _settings(common) or _has_own_options(column):
            clauses.append(f"MODIFY {quoted(column.name)} {with_options(_certain(column), column_options(mine))}")
    if explicit:
        clauses.append("FORCE")  # values that are there are written anew
    statement = f"ALTER TABLE {_name(table, table_name)}\n  " + ",\n  ".join(clauses)
    check_statement(statement, len(clauses))
    return statement


def varbinary_statement(table: Table, column: Column, definition: str) -> str:
    """The same column as VARBINARY or VARCHAR, whatever engine it stays in."""
    rest = sql(without_options(tokens(_certain(column)))[1:])
    statement = f"ALTER TABLE {_name(table)} MODIFY {quoted(column.name)} {definition}{' ' + rest if rest else ''}"
    check_statement(statement, 1)
    return statement


def batch_statements(batches: Batches) -> list[str]:
    pairs = (("quarry_read_batch_bytes", batches.read_bytes, c.READ_BATCH_DEFAULT), ("quarry_write_batch_bytes", batches.write_bytes, c.WRITE_BATCH_DEFAULT))
    return [f"SET GLOBAL {name} = {value}" for name, value, default in pairs if value != default]


def with_options(definition: str, options: str) -> str:
    """A column's definition with Quarry's options: behind its attributes and before its CHECK."""
    found = without_options(tokens(definition))
    check = next((at for at, token in enumerate(found) if token.is_word("CHECK")), len(found))
    behind = sql(found[check:])
    return sql(found[:check]) + options + (" " + behind if behind else "")


def runnable(statement: str) -> str:
    """What can be shown on a terminal and pasted from it. A name or a comment may hold what a terminal would obey: then as hexadecimal digits."""
    if all(token.text.isprintable() for token in tokens(statement)):
        return statement + ";"
    return ("-- there are characters in it that a terminal would obey; the same, readable, but not to be run:\n-- "
            + shown_lines(statement).replace("\n", "\n-- ") + f"\nEXECUTE IMMEDIATE CONVERT(X'{statement.encode().hex()}' USING utf8mb4);")


def _certain(column: Column) -> str:
    if column.doubt:
        raise AdvisorError(column.doubt)
    return column.definition


def _has_own_options(column: Column) -> bool:
    return any(True for _ in options_of(tokens(column.definition))) or "NDB_COLUMN=" in column.definition


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


def _name(table: Table, name: str | None = None) -> str:
    return f"{quoted(table.schema)}.{quoted(name or table.name)}"
