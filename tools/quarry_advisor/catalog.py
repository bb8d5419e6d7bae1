"""
The table's definition, from information_schema and SHOW CREATE TABLE: which of its columns Quarry would manage, and what can be dived into.

What Quarry leaves alone, and why, is the plugin's rule (docs/use/options.md, 'Columns that are left alone'); QUARRY_COLUMNS says the same
after the ALTER.
"""

from __future__ import annotations

from .definition import Facts, column_definitions, doubt
from .errors import AdvisorError
from .profile import Column, KeyColumn, Partition, Table
from .target import Target, quoted

TYPE_BYTES_MAX = {"tinyblob": 255, "blob": 65535, "mediumblob": (1 << 24) - 1, "longblob": (1 << 32) - 1}
TYPE_BYTES_MAX |= {name.replace("blob", "text"): size for name, size in TYPE_BYTES_MAX.items()}
SPATIAL_TYPES = {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection"}
FIXED_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8, "float": 4, "double": 8, "year": 1, "date": 3, "time": 3,
               "datetime": 5, "timestamp": 4, "enum": 2, "set": 8, "bit": 8, "uuid": 16, "inet6": 16, "inet4": 4, "decimal": 8}
KEY_KINDS = {**dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year"), "number"),
             **dict.fromkeys(("datetime", "timestamp"), "time"), "date": "date",
             **dict.fromkeys(("binary", "varbinary"), "bytes"), **dict.fromkeys(("char", "varchar"), "text")}
ORDERED_KEYS = ("BTREE", "LSMTREE")  # InnoDB and others; MyRocks
_NO_TABLE = {"VIEW": "is a view: name the table whose values it shows", "SEQUENCE": "is a sequence, and holds no values",
             "SYSTEM VIEW": "is a table of the server itself"}
_OWN_SCHEMAS = ("information_schema", "performance_schema", "mysql", "sys")
_ON_TABLE = "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"


def read_table(target: Target, schema: str, name: str, wanted: list[str]) -> Table:
    """`wanted`: columns to look at; empty: all that can hold large values."""
    target.check_readable(schema, name)
    found = target.rows(f"SELECT TABLE_TYPE, ENGINE, TABLE_ROWS, DATA_LENGTH, ROW_FORMAT FROM information_schema.TABLES {_ON_TABLE}", (schema, name))
    kind, engine, rows, data_bytes, row_format = found[0]
    if kind in _NO_TABLE or schema.lower() in _OWN_SCHEMAS:
        raise AdvisorError(f"{schema}.{name} {_NO_TABLE.get(kind, _NO_TABLE['SYSTEM VIEW'])}")
    if target.value(f"SELECT 1 FROM {quoted(schema)}.{quoted(name)} LIMIT 1") is None:
        raise AdvisorError(f"{schema}.{name} has no rows: there is nothing to sample. Load some, and ask again")
    rows_of = target.rows("SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, GENERATION_EXPRESSION, EXTRA "
                          f"FROM information_schema.COLUMNS {_ON_TABLE} ORDER BY ORDINAL_POSITION", (schema, name))
    keys = target.rows("SELECT INDEX_NAME, COLUMN_NAME, SUB_PART, INDEX_TYPE, NON_UNIQUE, NULLABLE "
                       f"FROM information_schema.STATISTICS {_ON_TABLE} ORDER BY INDEX_NAME, SEQ_IN_INDEX", (schema, name))
    create_table = target.show_create(schema, name)
    definitions = column_definitions(create_table)
    if list(definitions) != [row[0] for row in rows_of]:
        raise AdvisorError(f"SHOW CREATE TABLE of {schema}.{name} does not list the columns that information_schema lists: was it altered just now? Ask again")
    columns = value_columns(rows_of, keys, definitions, read_facts(target, schema, name))
    _check_columns(schema, name, columns, wanted)
    key_name, key = diving_key(rows_of, keys)
    others = [(column, data_type) for column, data_type, *_ in rows_of if column not in {c.name for c in columns}]
    return Table(schema, name, engine, int(rows or 0), int(data_bytes or 0),
                 tuple(c for c in columns if not wanted or c.name in wanted), key, key_name, read_partitions(target, schema, name),
                 sum(FIXED_BYTES.get(data_type, 0) for _, data_type in others),
                 tuple(column for column, data_type in others if data_type not in FIXED_BYTES),
                 kind == "SYSTEM VERSIONED", row_format or "", read_foreign_keys(target, schema, name), create_table)


def _check_columns(schema: str, name: str, columns: list[Column], wanted: list[str]) -> None:
    names = [column.name for column in columns]
    if not names:
        raise AdvisorError(f"{schema}.{name} has no BLOB, TEXT or JSON column: Quarry would change nothing about it")
    for column in wanted:
        if column not in names:
            raise AdvisorError(f"{schema}.{name} has no BLOB, TEXT or JSON column '{column}' (it has: {', '.join(names)})")
    managed = [column for column in columns if column.left_alone is None]
    if not managed:
        reasons = "; ".join(f"{column.name}: {column.left_alone}" for column in columns)
        raise AdvisorError(f"Quarry would leave every large column of {schema}.{name} whole in InnoDB ({reasons})")


def read_facts(target: Target, schema: str, name: str) -> dict[str, Facts]:
    """By column: what a definition is compared with before it is put into a statement."""
    checks = dict(target.rows("SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS "
                              "WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s AND LEVEL = 'Column'", (schema, name)))
    rows = target.rows("SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE = 'YES', COLUMN_DEFAULT, CHARACTER_SET_NAME, COLLATION_NAME, EXTRA, COLUMN_COMMENT, "
                       f"GENERATION_EXPRESSION FROM information_schema.COLUMNS {_ON_TABLE}", (schema, name))
    return {column: Facts(kind, bool(nullable), default, character_set, collation, extra or "", comment or "", generated or None, checks.get(column))
            for column, kind, nullable, default, character_set, collation, extra, comment, generated in rows}


def value_columns(rows_of: list[tuple], keys: list[tuple], definitions: dict[str, str], facts: dict[str, Facts]) -> list[Column]:
    columns = []
    for name, data_type, column_type, _, extra in rows_of:
        if data_type in TYPE_BYTES_MAX or data_type in SPATIAL_TYPES:
            mine = [key for key in keys if key[1] == name]
            definition = definitions[name]
            columns.append(Column(name, data_type, definition, TYPE_BYTES_MAX.get(data_type, (1 << 32) - 1), "json_valid(" in definition.lower(),
                                  _left_alone(name, data_type, column_type, extra, mine, rows_of, keys), max((key[2] or 0 for key in mine), default=0),
                                  doubt(name, definition, facts[name])))
    return columns


def _left_alone(name: str, data_type: str, column_type: str, extra: str, keys: list[tuple], rows_of: list[tuple], all_keys: list[tuple]) -> str | None:
    indexed = {key[1] for key in all_keys}
    bases = [other for other, _, _, expression, other_extra in rows_of
             if expression and "VIRTUAL" in other_extra.upper() and other in indexed and quoted(name) in expression]
    checks = (
        (data_type.startswith("tiny"), "TINYBLOB or TINYTEXT"),
        (data_type in SPATIAL_TYPES, "a spatial type"),
        ("COMPRESSED" in column_type.upper(), "column attribute COMPRESSED"),
        ("VIRTUAL" in extra.upper(), "a VIRTUAL column has no bytes"),
        (any(key[3] == "FULLTEXT" for key in keys), "part of a FULLTEXT key"),
        (any(not key[4] and key[2] is None for key in keys), "part of a UNIQUE key over whole values"),
        (bool(bases), f"the indexed VIRTUAL column {bases[0] if bases else ''} is computed from it"),
    )
    return next((reason for applies, reason in checks if applies), None)


def diving_key(rows_of: list[tuple], keys: list[tuple]) -> tuple[str, tuple[KeyColumn, ...]]:
    """The primary key, or else a unique one without NULLs, of whole columns; ('', ()) when there is none whose first column can be dived into."""
    types = {name: data_type for name, data_type, *_ in rows_of}
    for name in sorted({key[0] for key in keys}, key=lambda name: (name != "PRIMARY", name)):
        mine = [key for key in keys if key[0] == name]
        if any(key[4] or key[2] is not None or key[5] == "YES" or key[3] not in ORDERED_KEYS for key in mine):
            continue
        found = tuple(KeyColumn(key[1], KEY_KINDS.get(types[key[1]])) for key in mine)
        if found[0].kind:
            return name, found
    return "", ()


def read_foreign_keys(target: Target, schema: str, name: str) -> tuple[str, ...]:
    """The table's own, and those of other tables that refer to it, as far as this account may see them."""
    rows = target.rows("SELECT CONSTRAINT_NAME, CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS "
                       "WHERE (CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s) OR (UNIQUE_CONSTRAINT_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s) "
                       "ORDER BY CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME", (schema, name, schema, name))
    return tuple(f"{constraint} of {of_schema}.{table}" for constraint, of_schema, table in rows)


def read_partitions(target: Target, schema: str, name: str) -> tuple[Partition, ...]:
    """With their rows, as the engine estimates them; empty for a table without PARTITION BY."""
    rows = target.rows(f"SELECT PARTITION_NAME, SUM(TABLE_ROWS) FROM information_schema.PARTITIONS {_ON_TABLE} "
                       "AND PARTITION_NAME IS NOT NULL GROUP BY PARTITION_NAME ORDER BY MIN(PARTITION_ORDINAL_POSITION)", (schema, name))
    return tuple(Partition(partition, int(count or 0)) for partition, count in rows)
