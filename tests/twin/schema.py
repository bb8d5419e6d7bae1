"""Random tables: what the generator believes them to be.

The model follows DDL as if it always succeeded. Where it did not, later statements fail on both engines alike, and a
program is short enough that this does not matter.
"""

from dataclasses import dataclass, field

from twin.values import NULL, Value, edge_sizes, pick_size

TEXT_CHARSETS = [
    ("utf8mb4", "utf8mb4_general_ci", 4),
    ("utf8mb4", "utf8mb4_bin", 4),
    ("utf8mb4", "utf8mb4_uca1400_ai_ci", 4),
    ("utf8mb3", "utf8mb3_unicode_ci", 3),
    ("latin1", "latin1_swedish_ci", 1),
    ("latin1", "latin1_bin", 1),
    ("cp1251", "cp1251_general_ci", 1),
    ("ucs2", "ucs2_general_ci", 2),
    ("utf16", "utf16_bin", 4),
    ("utf32", "utf32_general_ci", 4),
]
LOB_TYPES = ["LONGBLOB", "MEDIUMBLOB", "BLOB", "TINYBLOB", "LONGTEXT", "MEDIUMTEXT", "TEXT", "TINYTEXT", "JSON"]
LOB_WEIGHTS = [10, 5, 6, 1, 8, 4, 5, 1, 4]
CAPACITY = {"TINY": 255, "MEDIUM": (1 << 24) - 1, "LONG": (1 << 32) - 1}
INLINE_SIZES = [0, 1, 63, 64, 65, 100, 255, 1000, 3000, 4096, 8000]
PART_SIZES = [512, 1000, 4096, 16384, 65536, 262144]
INDEX_PREFIX_MAX_BYTES = 3072
PERIOD_COLUMNS = [
    "x DATE NOT NULL DEFAULT '2000-01-01'",
    "y DATE NOT NULL DEFAULT '2010-01-01'",
    "PERIOD FOR p (x, y)",
]
# Functions of what both engines see alike; the shorter ones for columns that are added.
SHORT_DEFAULTS = ["CONCAT('d', n)", "MD5(n)", "CURRENT_USER()", "CONCAT(LEFT(VERSION(), 3), COALESCE(n, 'null'))"]
LONG_DEFAULTS = ["REPEAT('d', 5000)", "RPAD('', n * 1000, 'de')", "REPEAT(CURRENT_USER(), 900)"]

# Type and the SQL expressions of values for it, some of them at its limits; none that only warns.
SCALARS = {
    "INT": ["0", "7", "-5", "2147483647"],
    "BIGINT UNSIGNED": ["0", "18446744073709551615", "12"],
    "TINYINT": ["-128", "127", "3"],
    "SMALLINT ZEROFILL": ["0", "17"],
    "DECIMAL(20,6)": ["0", "-1.5", "12345678901234.123456"],
    "FLOAT": ["0", "1.5", "-2.25"],
    "DOUBLE": ["0", "1e300", "-0.125"],
    "BIT(13)": ["b'1'", "b'1111111111111'", "0"],
    "DATE": ["'2020-02-29'", "'1000-01-01'"],
    "DATETIME(6)": ["'2020-02-29 12:00:00.123456'", "'9999-12-31 23:59:59'"],
    "TIMESTAMP NULL": ["'2021-01-01 00:00:00'", "'2001-09-09 01:46:40'"],
    "TIME(3)": ["'12:34:56.789'", "'-838:59:59'"],
    "YEAR": ["1999", "2024"],
    "CHAR(30)": ["'abc'", "''", "'Zed  '"],
    "VARCHAR(300)": ["'abc'", "''", "REPEAT('v', 300)"],
    "VARCHAR(4000) CHARACTER SET latin1": ["'abc'", "REPEAT('w', 3999)"],
    "BINARY(16)": ["x'00ff'", "'0123456789abcdef'"],
    "VARBINARY(600)": ["x''", "REPEAT(x'fe', 600)"],
    "VARCHAR(2000) COMPRESSED": ["'abc'", "REPEAT('c', 2000)"],
    "ENUM('a','b','c')": ["'a'", "'c'"],
    "SET('x','y','z')": ["'x,z'", "''"],
    "UUID": ["'123e4567-e89b-12d3-a456-426655440000'"],
    "INET6": ["'::1'", "'2001:db8::ff00:42:8329'"],
    "POINT": ["POINT(1, 2)", "POINT(-3, 0.5)"],
}


@dataclass
class Column:
    name: str
    type: str  # with character set, without options
    kind: str  # blob, text, json, or scalar
    nullable: bool = True
    mbmaxlen: int = 1
    capacity: int = 0
    charset: str = ""
    options: str = ""  # Quarry's, and the comment
    compressed: bool = False
    default: str = ""  # an expression

    @property
    def is_lob(self):
        return self.kind != "scalar"

    def definition(self):
        null = "" if self.nullable else " NOT NULL"
        default = f" DEFAULT ({self.default})" if self.default else ""
        return f"{self.name} {self.type}{null}{default}{self.options}"


@dataclass
class Table:
    name: str
    columns: list
    primary: str = "id"  # what stands between the parentheses; empty: no primary key
    auto_increment: bool = False
    generated: dict = field(default_factory=dict)  # name -> (definition, what an index on it names)
    indexes: dict = field(default_factory=dict)  # name -> definition
    constraints: dict = field(default_factory=dict)
    partition: str = ""
    partitions: list = field(default_factory=list)
    options: str = ""
    row_format: str = ""
    versioned: bool = False
    period: bool = False  # application time: x and y, as period p
    temporary_of: str = ""  # the session that has it
    parent: str = ""  # of a foreign key
    referenced: bool = False
    fulltext: str = ""
    inline: int = 4096
    prefix: int = 4096
    part: int = 65536

    @property
    def lobs(self):
        return [column for column in self.columns if column.is_lob]

    @property
    def scalars(self):
        return [column for column in self.columns if not column.is_lob]

    @property
    def order(self):
        """A total order of the rows; what it leaves equal is equal in every column."""
        if self.primary in ("id", "id, n"):
            return "id, n"  # whichever of the two an ALTER left
        period = ["x", "y"] if self.period else []
        return ", ".join(["id", "n", *period, *(f"MD5({c.name})" if c.is_lob else c.name for c in self.columns)])

    def edges(self):
        return edge_sizes(self.inline, self.prefix, self.part)

    def create(self):
        lines = [f"id INT NOT NULL{' AUTO_INCREMENT' if self.auto_increment else ''}", "n INT"]
        if self.parent:
            lines.append("pid INT")
        if self.period:
            lines += PERIOD_COLUMNS
        lines += [column.definition() for column in self.columns]
        lines += [f"{name} {definition}" for name, (definition, _) in self.generated.items()]
        if self.primary:
            lines.append(f"PRIMARY KEY ({self.primary})")
        lines += list(self.indexes.values())
        lines += [f"CONSTRAINT {name} {definition}" for name, definition in self.constraints.items()]
        temporary = "TEMPORARY " if self.temporary_of else ""
        sql = f"CREATE {temporary}TABLE {self.name} ({', '.join(lines)}) ENGINE={{e}}"
        if self.row_format:
            sql += f" ROW_FORMAT={self.row_format}"
        sql += self.options
        if self.versioned:
            sql += " WITH SYSTEM VERSIONING"
        return sql + (f" {self.partition}" if self.partition else "")


class Schema:
    """The tables of one program, and how they come about."""

    def __init__(self, chooser):
        self.chooser = chooser
        self.tables = {}
        self.serial = 0
        self.large_values = chooser.random() < 0.1

    def name(self, stem):
        self.serial += 1
        return f"{stem}{self.serial}"

    def chance(self, probability):
        return self.chooser.random() < probability

    # --- columns ------------------------------------------------------------------------------------
    def lob_column(self, column_options=True, kind=None):
        chooser = self.chooser
        base = kind or chooser.choices(LOB_TYPES, LOB_WEIGHTS)[0]
        column = Column(self.name("b"), base, "blob", nullable=self.chance(0.85))
        column.capacity = next((size for start, size in CAPACITY.items() if base.startswith(start)), 65535)
        if base == "JSON":
            column.kind, column.capacity, column.mbmaxlen, column.charset = "json", 1 << 30, 4, "utf8mb4"
        elif base.endswith("TEXT"):
            column.kind = "text"
            column.charset, collation, column.mbmaxlen = chooser.choice(TEXT_CHARSETS)
            column.type = f"{base} CHARACTER SET {column.charset} COLLATE {collation}"
        if base != "JSON" and self.chance(0.1):
            column.default = chooser.choice(SHORT_DEFAULTS + (LONG_DEFAULTS if column.capacity > 60_000 else []))
        if base != "JSON" and not column.default and self.chance(0.03):
            column.type = column.type.replace(base, f"{base} COMPRESSED")
            column.compressed = True
        if column_options and self.chance(0.3):
            column.options = f" /*q {self.quarry_options()[0]}*/"
        elif self.chance(0.2):
            part = chooser.choice(("", ",MAX_BLOB_PART_SIZE", ",MAX_BLOB_PART_SIZE=1", ",MAX_BLOB_PART_SIZE=0"))
            column.options = f" COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE={chooser.choice(INLINE_SIZES)}{part}'"
        return column

    def scalar_column(self):
        kind = self.chooser.choice(list(SCALARS))
        return Column(self.name("s"), kind, "scalar", nullable=kind.endswith("NULL") or self.chance(0.8))

    def quarry_options(self, changed=False):
        """Text of options, and what they come to: (text, inline, prefix, part); None where nothing is said.

        `changed`: with both sizes or none, for one alone may contradict the other one in force.
        """
        chooser, words, inline, prefix, part = self.chooser, [], None, None, None
        if self.chance(0.75):
            inline = chooser.choice(INLINE_SIZES)
            words.append(f"INLINE_SIZE={inline}")
            if changed or self.chance(0.6):
                prefix = chooser.choice([size for size in INLINE_SIZES if size <= inline])
                words.append(f"PREFIX_SIZE={prefix}")
        if self.chance(0.5):
            part = chooser.choice(PART_SIZES)
            words.append(f"PART_SIZE={part}")
        if self.chance(0.5) or not words:
            words.append(f"CODEC={chooser.choice(('none', 'lz4', 'zstd'))}")
        return " ".join(words), inline, prefix, part

    def generated_column(self, table):
        """A column computed from a BLOB, and what an index on it would name."""
        column = self.chooser.choice(table.lobs)
        kinds = [
            ("INT", f"LENGTH({column.name})", "{}"),
            ("INT UNSIGNED", f"CRC32({column.name})", "{}"),
            ("CHAR(32) CHARACTER SET latin1", f"MD5({column.name})", "{}"),
            ("LONGBLOB", f"CONCAT({column.name}, 'tail')", "{}(20)"),
        ]
        if column.kind == "blob":
            kinds.append(("VARBINARY(16)", f"LEFT({column.name}, 16)", "{}"))
        if column.kind == "json":
            kinds.append(("INT", f"JSON_VALUE({column.name}, '$.k')", "{}"))
        type_, expression, indexed = self.chooser.choice(kinds)
        name = self.name("g")
        stored = self.chooser.choice(("VIRTUAL", "VIRTUAL", "STORED"))
        if table.versioned and type_ == "LONGBLOB":
            # REPLACE gives a STORED one the right length and wrong bytes, in InnoDB too:
            #   CREATE TABLE t (id INT PRIMARY KEY, b LONGTEXT, g LONGBLOB AS (CONCAT(b, 'tail')) STORED)
            #     WITH SYSTEM VERSIONING;
            #   INSERT INTO t (id, b) VALUES (8, REPEAT('a', 9000));
            #   REPLACE INTO t (id, b) VALUES (8, REPEAT('b', 18036));
            stored = "VIRTUAL"
        table.generated[name] = (f"{type_} AS ({expression}) {stored}", indexed.format(name))
        return name

    # --- indexes --------------------------------------------------------------------------------------
    def prefix_part(self, table, column=None):
        """A LOB column with an index prefix, e.g. b3(20)."""
        column = column or self.chooser.choice(table.lobs)
        limit = min(INDEX_PREFIX_MAX_BYTES, column.capacity)
        if table.row_format in ("COMPACT", "REDUNDANT"):
            limit = min(limit, 767)
        length = self.chooser.choice((1, 5, 10, 20, 30, 63, 64, 65, 100, 255, 700, 767, 1500, 3072))
        return f"{column.name}({max(1, min(length, limit // column.mbmaxlen))})"

    def index(self, table):
        """Adds a random index to the model; returns its definition."""
        chooser, name = self.chooser, self.name("k")
        unpartitioned = not table.partition
        pick = chooser.random()
        if pick < 0.45 or not table.generated and pick < 0.6:
            parts = self.prefix_part(table)
            if self.chance(0.3):
                parts += chooser.choice((", n", ", id"))
            text = f"KEY {name} ({parts})"
        elif pick < 0.6:
            text = f"KEY {name} ({chooser.choice(list(table.generated.values()))[1]})"
        elif pick < 0.72:
            parts = self.prefix_part(table) + (", id" if self.chance(0.6) or not unpartitioned else "")
            text = f"UNIQUE KEY {name} ({parts})"
        elif pick < 0.78 and unpartitioned and not table.versioned:
            text = f"UNIQUE KEY {name} ({chooser.choice(table.lobs).name})"  # a hash over the whole value
        elif pick < 0.86 and unpartitioned and not table.temporary_of and self.fulltext_columns(table):
            column = chooser.choice(self.fulltext_columns(table))
            table.fulltext = column.name
            text = f"FULLTEXT KEY {name} ({column.name})"
        elif table.scalars and pick < 0.95:
            column = chooser.choice(table.scalars)
            long_text = column.type.startswith(("VARCHAR(2000)", "VARCHAR(4000)", "POINT"))
            text = f"KEY {name} (n)" if long_text else f"KEY {name} ({column.name}, n)"
        else:
            text = f"KEY {name} (n)"
        table.indexes[name] = text
        return text

    @staticmethod
    def fulltext_columns(table):
        """No binary collation: there InnoDB's index holds other words when it was built in place than when copied."""
        return [
            column
            for column in table.lobs
            if column.kind == "text" and column.charset in ("utf8mb4", "latin1") and not column.compressed
            if "_bin" not in column.type
        ]

    # --- tables -----------------------------------------------------------------------------------------
    def table(self, temporary_of="", plain=False):
        """A random table; `plain`: no foreign key, partition or versioning."""
        chooser = self.chooser
        partitioned = not plain and not temporary_of and self.chance(0.22)
        table = Table(self.name("t"), [], temporary_of=temporary_of)
        if self.chance(0.4):
            text, inline, prefix, part = self.quarry_options()
            table.options = f" /*q {text}*/"
            self.note_options(table, inline, prefix, part)
        if self.chance(0.2):
            table.row_format = chooser.choice(("DYNAMIC", "COMPACT", "REDUNDANT"))
        table.columns = [self.lob_column(not partitioned) for _ in range(chooser.choice((1, 2, 2, 3, 4)))]
        if all(column.capacity < 1000 for column in table.columns):
            table.columns.append(self.lob_column(not partitioned, "LONGBLOB"))
        table.columns += [self.scalar_column() for _ in range(chooser.choice((0, 0, 1, 2, 4)))]
        chooser.shuffle(table.columns)
        table.period = not plain and not partitioned and not temporary_of and self.chance(0.1)
        self.choose_key(table, partitioned)
        if not plain and not partitioned and not temporary_of and table.primary == "id":
            self.choose_parent(table)
        table.versioned = not plain and not temporary_of and not table.parent and self.chance(0.2)
        for _ in range(chooser.choice((0, 0, 0, 1, 2))):
            self.generated_column(table)
        for _ in range(chooser.choice((0, 1, 1, 2, 3))):
            self.index(table)
        if self.chance(0.2):
            table.constraints[self.name("c")] = chooser.choice(
                (f"CHECK (LENGTH({chooser.choice(table.lobs).name}) <> 77)", "CHECK (n IS NULL OR n < 1000)")
            )
        self.tables[table.name] = table
        return table

    def choose_key(self, table, partitioned):
        if partitioned:
            self.choose_partitions(table)
            return
        luck = self.chooser.random()
        if table.period:  # what is left of a row has the same id
            table.primary = "" if luck < 0.4 else "id, p WITHOUT OVERLAPS"
        elif luck < 0.1:
            table.primary = ""
        elif luck < 0.2:
            table.primary = "id, n"
        elif luck < 0.27:
            column = self.chooser.choice(table.lobs)
            column.nullable = False
            table.primary = f"{self.prefix_part(table, column)}, id"
        elif luck < 0.4:
            table.auto_increment = True

    def choose_partitions(self, table):
        kind = self.chooser.choice(("HASH", "KEY", "RANGE", "LIST"))
        if kind in ("HASH", "KEY"):
            count = self.chooser.choice((2, 3, 5))
            table.partition = f"PARTITION BY {kind} (id) PARTITIONS {count}"
            table.partitions = [f"p{number}" for number in range(count)]
        elif kind == "RANGE":
            table.partition = (
                "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (25), "
                "PARTITION p2 VALUES LESS THAN MAXVALUE)"
            )
            table.partitions = ["p0", "p1", "p2"]
        else:
            table.partition = (
                "PARTITION BY LIST (ABS(id % 3)) (PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (1), "
                "PARTITION p2 DEFAULT)"
            )
            table.partitions = ["p0", "p1", "p2"]

    def choose_parent(self, table):
        parents = [
            other
            for other in self.tables.values()
            if other.primary == "id" and not other.partition and not other.temporary_of and not other.versioned
        ]
        if not parents or not self.chance(0.35):
            return
        parent = self.chooser.choice(parents)
        parent.referenced = True
        table.parent = parent.name
        action = self.chooser.choice(("CASCADE", "SET NULL", "RESTRICT", "CASCADE"))
        table.constraints[self.name("f")] = (
            f"FOREIGN KEY (pid) REFERENCES {parent.name} (id) ON DELETE {action} ON UPDATE "
            f"{self.chooser.choice(('CASCADE', action))}"
        )

    @staticmethod
    def note_options(table, inline, prefix, part):
        """So that values come near the limits in force."""
        if inline is not None:
            table.inline = inline
        if prefix is not None or inline is not None:
            table.prefix = table.inline if prefix is None else prefix
        if part is not None:
            table.part = part

    # --- values -------------------------------------------------------------------------------------------
    def value(self, table, column):
        """A Value for a LOB column: of its kind mostly, within its capacity nearly always."""
        chooser = self.chooser
        if self.chance(0.08 if column.nullable else 0.01):
            return NULL
        size = pick_size(chooser, table.edges(), self.large_values)
        if not self.chance(0.01):
            size = min(size, column.capacity // column.mbmaxlen)
        seed = chooser.randrange(30)
        if column.kind == "json":
            return Value("json" if not self.chance(0.01) else "text", seed, max(size, 30))
        if column.kind == "text":
            kind = chooser.choice(("text", "text", "pattern", "wide"))
            if kind == "wide" and (size > 20_000 or column.charset in ("latin1", "cp1251") and not self.chance(0.1)):
                kind = "text"
            return Value(kind, seed, size)
        kind = chooser.choice(("bytes", "bytes", "pattern", "text", "magic"))
        # Shorter than a prefix, such a value is refused: tests/sql/test_heads.py shows that.
        if kind == "magic" and (size < 9000 or self.chance(0.7)):
            kind = "bytes"
        if size > 1 << 20 and self.chance(0.7):
            kind = "pattern"
        return Value(kind, seed, size)

    def scalar(self, column):
        if column.nullable and self.chance(0.15):
            return "NULL"
        return self.chooser.choice(SCALARS[column.type])
