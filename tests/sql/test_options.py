"""Options, comments and variables: what is accepted, what QUARRY_COLUMNS says of it, what is refused and how."""

import os

import pymysql
import pytest

from harness.values import payload

pytestmark = pytest.mark.quarry_only

NDB_PART_SIZE_BYTES = 13948
DEFAULT = {"inline": 4096, "prefix": 0, "part": 65536, "codec": "none"}


@pytest.fixture
def schema(server):
    server.query("CREATE OR REPLACE DATABASE o")
    yield server
    server.query("DROP DATABASE o")


def columns(server, table):
    """What QUARRY_COLUMNS says of a table: {column: row as a dict with lower-case names}."""
    connection = server.connect(cursorclass=pymysql.cursors.DictCursor)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM information_schema.quarry_columns WHERE table_schema = 'o' AND table_name = %s", (table,)
        )
        rows = [{name.lower(): value for name, value in row.items()} for row in cursor.fetchall()]
    connection.close()
    return {row["column_name"]: row for row in rows}


def expect(row, inline, prefix, part=DEFAULT["part"], codec="none"):
    assert (row["inline_size"], row["prefix_size"], row["part_size"], row["codec"]) == (
        inline,
        prefix,
        part,
        codec,
    ), row
    assert row["managed"] == "YES", row


# --- the five forms of experiment E1, verbatim but for the engine's name ---------------------------------------------
E1_FORMS = {
    "4K default": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data BLOB) ENGINE=QUARRY",
        (4096, 0),
        4096,
    ),
    "4K inline": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data BLOB COMMENT "
        '"NDB_COLUMN=BLOB_INLINE_SIZE=4096") ENGINE=QUARRY',
        (4096, 4096),
        4096,
    ),
    "4K varbinary": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data VARBINARY(4096)) ENGINE=QUARRY",
        None,
        4096,
    ),
    "24K default": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data MEDIUMBLOB) ENGINE=QUARRY",
        (4096, 0),
        24576,
    ),
    "24K inline": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data MEDIUMBLOB COMMENT "
        '"NDB_COLUMN=BLOB_INLINE_SIZE=24576") ENGINE=QUARRY',
        (24576, 24576),
        24576,
    ),
    "24K varbinary": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data VARBINARY(24576)) ENGINE=QUARRY",
        None,
        24576,
    ),
    "64K default": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB) ENGINE=QUARRY",
        (4096, 0),
        65536,
    ),
    "64K inline": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB COMMENT "
        '"NDB_COLUMN=BLOB_INLINE_SIZE=29736") ENGINE=QUARRY',
        (29736, 29736),
        65536,
    ),
    "448K default": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB) ENGINE=QUARRY",
        (4096, 0),
        458752,
    ),
    "448K inline": (
        "CREATE TABLE sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB COMMENT "
        '"NDB_COLUMN=BLOB_INLINE_SIZE=29736") ENGINE=QUARRY',
        (29736, 29736),
        458752,
    ),
}


@pytest.mark.parametrize("form", E1_FORMS)
def test_e1_forms(schema, form):
    statement, expected, size = E1_FORMS[form]
    schema.query(statement, database="o")
    said = columns(schema, "sbtest1")
    if expected is None:
        assert "data" not in said, "a VARBINARY is no column of Quarry's"
    else:
        expect(said["data"], *expected)
    for row in range(5):
        schema.query("INSERT INTO o.sbtest1 (data) VALUES (%s)", (payload((form, row), size),))
    for row, (value,) in enumerate(schema.query("SELECT data FROM o.sbtest1 ORDER BY id")):
        assert value == payload((form, row), size)
    text = schema.query("SHOW CREATE TABLE o.sbtest1")[0][1]
    assert "ENGINE=QUARRY" in text
    assert statement.partition('COMMENT "')[2].partition('"')[0] in text


@pytest.mark.parametrize(
    "column_and_table, expected",
    [
        ("b LONGBLOB", {}),
        ("b LONGBLOB INLINE_SIZE=0", {"inline": 0}),
        ("b LONGBLOB INLINE_SIZE=65535 PREFIX_SIZE=65535", {"inline": 65535, "prefix": 65535}),
        (
            "b LONGBLOB INLINE_SIZE=1000 PREFIX_SIZE=10 PART_SIZE=512 CODEC=lz4",
            {"inline": 1000, "prefix": 10, "part": 512, "codec": "lz4"},
        ),
        ("b LONGBLOB PART_SIZE=16777216 CODEC='ZSTD'", {"part": 16777216, "codec": "zstd"}),
        ("b LONGBLOB CODEC=none", {}),
        ("b LONGTEXT CODEC=lz4", {"codec": "lz4"}),
        ("b JSON CODEC=zstd", {"codec": "zstd"}),
        ("b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=4096'", {"inline": 4096, "prefix": 4096}),
        (
            "b LONGBLOB COMMENT 'words NDB_COLUMN=BLOB_INLINE_SIZE=3000,MAX_BLOB_PART_SIZE more words'",
            {"inline": 3000, "prefix": 3000, "part": NDB_PART_SIZE_BYTES},
        ),
        ("b LONGBLOB COMMENT 'NDB_COLUMN=MAX_BLOB_PART_SIZE=1'", {"part": NDB_PART_SIZE_BYTES}),
        ("b LONGBLOB COMMENT 'NDB_COLUMN=MAX_BLOB_PART_SIZE=0'", {}),
        (
            "b LONGBLOB COMMENT 'NDB_COLUMN=MAX_BLOB_PART_SIZE,BLOB_INLINE_SIZE=29980'",
            {"inline": 29980, "prefix": 29980, "part": NDB_PART_SIZE_BYTES},
        ),
        ("b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=0'", {}),
        ("b LONGBLOB COMMENT 'an ordinary comment'", {}),
        ("b LONGBLOB | INLINE_SIZE=100 CODEC=lz4", {"inline": 100, "codec": "lz4"}),
        (
            "b LONGBLOB INLINE_SIZE=200 | INLINE_SIZE=100 PART_SIZE=4096 CODEC=lz4",
            {"inline": 200, "part": 4096, "codec": "lz4"},
        ),
        (
            "b LONGBLOB INLINE_SIZE=200 PREFIX_SIZE=50 COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=4000'",
            {"inline": 200, "prefix": 50},
        ),
        ("b LONGBLOB, KEY (b(700))", {"prefix": 700}),
        ("b LONGBLOB INLINE_SIZE=100, KEY (b(700))", {"inline": 700, "prefix": 700}),
        ("b LONGTEXT CHARACTER SET utf8mb4, KEY (b(100))", {"prefix": 400}),
    ],
)
def test_accepted(schema, column_and_table, expected):
    column, _, table = column_and_table.partition(" | ")
    schema.query(f"CREATE TABLE t (id INT PRIMARY KEY, {column}) ENGINE=QUARRY {table}", database="o")
    wanted = {**DEFAULT, **expected}
    expect(columns(schema, "t")["b"], wanted["inline"], wanted["prefix"], wanted["part"], wanted["codec"])
    for row, size in enumerate((10, wanted["inline"], wanted["inline"] + 1, 100000)):
        value = '"' + "j" * max(size - 2, 0) + '"' if "JSON" in column else "x" * size
        schema.query("INSERT INTO o.t VALUES (%s, %s)", (row, value))
        assert schema.query("SELECT LENGTH(b), MD5(b) = MD5(%s) FROM o.t WHERE id = %s", (value, row)) == (
            (len(value), 1),
        )
    copy = schema.query("SHOW CREATE TABLE o.t")[0][1]
    schema.query("DROP TABLE o.t")
    schema.query(copy, database="o")
    expect(columns(schema, "t")["b"], wanted["inline"], wanted["prefix"], wanted["part"], wanted["codec"])


@pytest.mark.parametrize(
    "column, reason",
    [
        ("b TINYBLOB", "TINY"),
        ("b TINYTEXT", "TINY"),
        ("b GEOMETRY", "spatial|geometry"),
        ("b LONGBLOB COMPRESSED", "compressed"),
        ("b LONGTEXT, FULLTEXT (b)", "fulltext"),
        ("b LONGBLOB, UNIQUE (b)", "unique|hash"),
        ("b GEOMETRY NOT NULL, SPATIAL KEY (b)", "spatial|geometry"),
        ("b LONGTEXT, g INT AS (LENGTH(b)) VIRTUAL, KEY (g)", "virtual"),
    ],
)
def test_unmanaged_columns_say_why(schema, column, reason):
    schema.query(f"CREATE TABLE t (id INT PRIMARY KEY, {column}) ENGINE=QUARRY", database="o")
    row = columns(schema, "t")["b"]
    assert row["managed"] == "NO", row
    assert any(word in str(row["reason"]).lower() for word in reason.lower().split("|")), row


def test_unmanaged_and_back(schema):
    schema.query("CREATE TABLE t (id INT PRIMARY KEY, b LONGTEXT) ENGINE=QUARRY", database="o")
    schema.query("INSERT INTO o.t VALUES (1, REPEAT('granite ', 2000))")
    schema.query("ALTER TABLE o.t ADD FULLTEXT (b)")
    assert columns(schema, "t")["b"]["managed"] == "NO"
    assert schema.query("SELECT id FROM o.t WHERE MATCH (b) AGAINST ('granite' IN BOOLEAN MODE)") == ((1,),)
    schema.query("ALTER TABLE o.t DROP KEY b")
    assert columns(schema, "t")["b"]["managed"] == "YES"
    assert schema.query("SELECT LENGTH(b) FROM o.t") == ((16000,),)


def test_variables_give_the_defaults(schema):
    connection = schema.connect("o")
    with connection.cursor() as cursor:
        cursor.execute(
            "SET quarry_inline_size = 300, quarry_prefix_size = 30, quarry_part_size = 1024, quarry_codec = 'zstd'"
        )
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, c LONGBLOB INLINE_SIZE=50 PREFIX_SIZE=0) ENGINE=QUARRY"
        )
        cursor.execute(
            "CREATE TABLE p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 2"
        )
    connection.close()
    expect(columns(schema, "t")["b"], 300, 30, 1024, "zstd")
    expect(columns(schema, "t")["c"], 50, 0, 1024, "zstd")
    for row in range(4):
        schema.query("INSERT INTO o.p VALUES (%s, %s)", (row, payload(row, 5000)))
        assert schema.query("SELECT b FROM o.p WHERE id = %s", (row,))[0][0] == payload(row, 5000)


def test_options_of_partitioned_tables(schema):
    """The server refuses column options under PARTITION BY; the table's and the comment's must carry everything."""
    schema.query(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB COMMENT "
        "'NDB_COLUMN=BLOB_INLINE_SIZE=500,MAX_BLOB_PART_SIZE', c LONGBLOB) "
        "ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 2",
        database="o",
    )
    expect(columns(schema, "t")["b"], 500, 500, NDB_PART_SIZE_BYTES)
    for row in range(6):
        schema.query("INSERT INTO o.t VALUES (%s, %s, %s)", (row, payload(row, 30000), payload(-row, 499 + row)))
    for row, b, c in schema.query("SELECT * FROM o.t"):
        assert (b, c) == (payload(row, 30000), payload(-row, 499 + row))


NDB_COLUMNS = "t TEXT, m MEDIUMBLOB, l LONGBLOB, j JSON, c LONGTEXT COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=1000', s TINYBLOB"


@pytest.mark.parametrize("by", ["", " PARTITION BY HASH (id) PARTITIONS 2"])
@pytest.mark.parametrize("way", ["table option", "variable"])
def test_defaults_of_ndb(schema, by, way):
    """Sizes by type as NDB has them; the definition shows it, and says it again when it is run again."""
    option = " DEFAULTS=NDB" if way == "table option" else ""
    connection = schema.connect("o")
    with connection.cursor() as cursor:
        cursor.execute(f"SET quarry_defaults = '{'ndb' if way == 'variable' else 'quarry'}'")
        cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {NDB_COLUMNS}) ENGINE=QUARRY{option}{by}")
    connection.close()
    for _ in range(2):
        found = columns(schema, "t")
        expect(found["t"], 256, 256, 2000)
        expect(found["m"], 256, 256, 4000)
        expect(found["l"], 256, 256, NDB_PART_SIZE_BYTES)
        expect(found["j"], 4000, 4000, 8100)
        expect(found["c"], 1000, 1000, NDB_PART_SIZE_BYTES)
        assert found["l"]["inline_size_from"] == "DEFAULTS=NDB" and found["s"]["managed"] == "NO"
        definition = schema.query("SHOW CREATE TABLE o.t")[0][1]
        assert "DEFAULTS" in definition.upper(), definition
        schema.query("DROP TABLE o.t")
        schema.query(definition, database="o")
    for row in range(4):
        values = (row, payload(row, 5000).hex(), payload(row, 9000), payload(row, 30000))
        schema.query("INSERT INTO o.t (id, t, m, l) VALUES (%s, %s, %s, %s)", values)
        assert schema.query("SELECT id, t, m, l FROM o.t WHERE id = %s", (row,))[0] == values
    # Rows that are there keep what they have; those to come follow.
    schema.query("ALTER TABLE o.t DEFAULTS=quarry")
    expect(columns(schema, "t")["l"], 4096, 0)
    assert schema.query("SELECT COUNT(*) FROM o.t WHERE LENGTH(l) = 30000") == ((4,),)


def test_batches_of_a_table_with_defaults_of_ndb(schema):
    """64 KiB, unless the session has set its own: by the calls that one value of 640 KiB takes."""
    schema.query("CREATE TABLE o.d (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY DEFAULTS=NDB")
    calls = {}
    for batch in ("DEFAULT", 262144):
        connection = schema.connect("o")
        with connection.cursor() as cursor:
            cursor.execute(f"SET quarry_write_batch_bytes = {batch}")
            before = int(schema.status("quarry_write_calls")["quarry_write_calls"])
            cursor.execute("REPLACE INTO d VALUES (1, %s)", (payload(1, 655360),))
            connection.commit()
        connection.close()
        calls[batch] = int(schema.status("quarry_write_calls")["quarry_write_calls"]) - before
    assert calls["DEFAULT"] >= 10 > calls[262144] >= 3, calls


UNKNOWN_OPTION = 1911


def test_column_options_under_partitions(schema):
    """The refusal is the server's; that it says why and what to do instead is ours. A mistyped name stays the server's."""
    by = "ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 2"
    schema.query(f"CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) {by}", database="o")
    for statement, column, option in (
        (f"CREATE TABLE u (id INT PRIMARY KEY, b LONGBLOB INLINE_SIZE=100) {by}", "b", "INLINE_SIZE"),
        ("ALTER TABLE t MODIFY b LONGBLOB part_size=4096", "b", "part_size"),
        ("ALTER TABLE t ADD COLUMN c LONGTEXT CODEC=zstd", "c", "CODEC"),
    ):
        with pytest.raises(pymysql.err.Error) as refused:
            schema.query(statement, database="o")
        code, text = refused.value.args
        assert code == UNKNOWN_OPTION and f"Column '{column}'" in text and option in text, text
        assert "under PARTITION BY" in text and "for the whole table" in text and "NDB_COLUMN=" in text, text
    with pytest.raises(pymysql.err.Error) as refused:
        schema.query(f"CREATE TABLE u (id INT PRIMARY KEY, b LONGBLOB INLINE=100) {by}", database="o")
    assert refused.value.args == (UNKNOWN_OPTION, "Unknown option 'INLINE'")
    # The ways out that are named, and the way back.
    schema.query("ALTER TABLE t INLINE_SIZE=100", database="o")
    schema.query("ALTER TABLE t MODIFY b LONGBLOB INLINE_SIZE=200 REMOVE PARTITIONING", database="o")
    assert columns(schema, "t")["b"]["inline_size"] == 200


def options_of(row):
    return {name: row[name] for name in ("inline_size", "prefix_size", "prefix_in_every_row", "part_size", "codec")}


def test_column_options_that_partitions_keep(schema):
    """A table with column options becomes partitioned and, partition by partition, plain again: they count throughout."""
    connection = schema.connect("o")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB INLINE_SIZE=300 PREFIX_SIZE=100 PART_SIZE=700 CODEC=zstd) "
            "ENGINE=QUARRY"
        )
        plain = options_of(columns(schema, "t")["b"])
        cursor.execute("ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), "
                       "PARTITION p1 VALUES LESS THAN MAXVALUE)")
        cursor.execute("SHOW WARNINGS")
        assert cursor.fetchall() == ()
        assert options_of(columns(schema, "t")["b"]) == plain
        # Statements about other things carry them along, and a definition that the server let pass says them anew.
        cursor.execute("ALTER TABLE t ADD COLUMN n INT")
        cursor.execute("SET sql_mode = 'IGNORE_BAD_TABLE_OPTIONS'")
        cursor.execute("ALTER TABLE t MODIFY b LONGBLOB PREFIX_SIZE=200")
        assert columns(schema, "t")["b"]["prefix_size"] == 200
        assert columns(schema, "t")["b"]["prefix_in_every_row"] == 100
        cursor.execute("ALTER TABLE t CONVERT PARTITION p0 TO TABLE q")
        assert columns(schema, "q")["b"]["prefix_in_every_row"] == 100
    connection.close()


@pytest.mark.parametrize(
    "options",
    [("", "PREFIX_SIZE=100"), ("DEFAULTS=NDB", "INLINE_SIZE=1000")],
    ids=["prefix", "inline size with NDB's defaults"],
)
def test_heads_of_a_partition_that_becomes_a_table(schema, options):
    """What its definition promises of every head is there: InnoDB builds an index from it."""
    of_table, of_column = options
    schema.query(f"CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB {of_column}) ENGINE=QUARRY {of_table}", database="o")
    schema.query("ALTER TABLE t PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (5000))", database="o")
    values = [payload(row, 9000 + row) for row in range(40)]
    for row, value in enumerate(values):
        schema.query("INSERT INTO o.t VALUES (%s, %s)", (row, value))
    # A partitioned table keeps its last partition.
    schema.query("ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN MAXVALUE)", database="o")
    schema.query("ALTER TABLE t CONVERT PARTITION p0 TO TABLE q", database="o")
    promised = columns(schema, "q")["b"]["prefix_in_every_row"]
    assert promised >= 100
    schema.query(f"ALTER TABLE q ADD KEY k (b({promised})), ALGORITHM=INPLACE", database="o")
    assert schema.query("CHECK TABLE o.q EXTENDED")[-1][3] == "OK"
    ordered = schema.query("SELECT id FROM o.q FORCE INDEX (k) WHERE b > '' ORDER BY b")
    assert [row for (row,) in ordered] == sorted(range(40), key=lambda row: values[row])
    for row, value in enumerate(values):
        found = schema.query("SELECT id FROM o.q FORCE INDEX (k) WHERE b = %s", (value,))
        assert found == ((row,),)


@pytest.mark.parametrize(
    "change",
    [
        "INLINE_SIZE=10",
        "INLINE_SIZE=20000 PREFIX_SIZE=3000",
        "PREFIX_SIZE=0 INLINE_SIZE=200",
        "CODEC=zstd",
        "PART_SIZE=700 CODEC=lz4",
        "COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=2000'",
    ],
)
def test_altered_options(schema, change):
    schema.query(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB INLINE_SIZE=1000 PREFIX_SIZE=100, KEY k (b(50))) ENGINE=QUARRY",
        database="o",
    )
    sizes = [0, 5, 150, 199, 201, 999, 1001, 2500, 9000, 25000, 70000]

    def fill(first):
        for row, size in enumerate(sizes):
            schema.query("INSERT INTO o.t VALUES (%s, %s)", (first + row, payload((first, row), size)))

    def check(*firsts):
        for first in firsts:
            for row, size in enumerate(sizes):
                assert schema.query("SELECT b FROM o.t WHERE id = %s", (first + row,))[0][0] == payload(
                    (first, row), size
                )
                assert (first + row,) in schema.query(
                    "SELECT id FROM o.t FORCE INDEX (k) WHERE b = %s", (payload((first, row), size),)
                )

    fill(0)
    schema.query(f"ALTER TABLE o.t MODIFY b LONGBLOB {change}")
    fill(100)
    check(0, 100)
    schema.query("ALTER TABLE o.t ADD KEY long_one (b(90)), ADD KEY longer (b(400))")
    fill(200)
    check(0, 100, 200)
    assert schema.query("SELECT COUNT(*) FROM o.t FORCE INDEX (longer) WHERE b > ''") == schema.query(
        "SELECT COUNT(*) FROM o.t WHERE LENGTH(b) > 0"
    )
    schema.query("ALTER TABLE o.t MODIFY b LONGBLOB")
    check(0, 100, 200)


# --- refused ---------------------------------------------------------------------------------------------------------
REFUSED = [
    ("b LONGBLOB INLINE_SIZE=65536", ["65536", "65535"]),
    ("b LONGBLOB INLINE_SIZE='-1'", ["-1", "65535"]),
    ("b LONGBLOB INLINE_SIZE='many'", ["many", "65535"]),
    ("b LONGBLOB INLINE_SIZE='99999999999999999999'", ["99999999999999999999", "65535"]),
    ("b LONGBLOB PREFIX_SIZE=70000", ["70000", "65535"]),
    ("b LONGBLOB INLINE_SIZE=100 PREFIX_SIZE=200", ["200", "100"]),
    ("b LONGBLOB PART_SIZE=511", ["511", "512", "16777216"]),
    ("b LONGBLOB PART_SIZE=16777217", ["16777217", "512", "16777216"]),
    ("b LONGBLOB PART_SIZE=0", ["'0'", "512", "16777216"]),
    ("b LONGBLOB CODEC=brotli", ["brotli", "none", "lz4", "zstd"]),
    ("b LONGBLOB CODEC=''", ["''", "none", "lz4", "zstd"]),
    ("b LONGBLOB | INLINE_SIZE=70000", ["70000", "65535"]),
    ("b LONGBLOB | CODEC=gzip", ["gzip", "none", "lz4", "zstd"]),
    ("b LONGBLOB | PART_SIZE=3", ["'3'", "512"]),
    ("b INT INLINE_SIZE=5", ["INLINE_SIZE", "BLOB"]),
    ("b VARCHAR(100) CODEC=lz4", ["CODEC", "BLOB"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=29981'", ["29981", "29980"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=lots'", ["lots", "29980"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE'", ["BLOB_INLINE_SIZE", "29980"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE='", ["BLOB_INLINE_SIZE", "29980"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN=INLINE=5'", ["INLINE=5", "BLOB_INLINE_SIZE"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN=MAX_BLOB_PART_SIZE=2'", ["'2'", "MAX_BLOB_PART_SIZE[=0|1]"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=5,BLOB_INLINE_SIZE=6'", ["BLOB_INLINE_SIZE", "twice"]),
    ("b LONGBLOB COMMENT 'NDB_COLUMN='", ["NDB_COLUMN=", "BLOB_INLINE_SIZE"]),
]


def expect_nothing_made(server, before, table="bad"):
    assert server.query(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'o' AND table_name = %s", (table,)
    ) == ((0,),)
    left = [
        path.name
        for path in (server.datadir / "o").iterdir()
        if path.name.startswith(table) or path.name.startswith("#sql")
    ]
    assert not left, f"left behind: {left}"
    assert (
        server.query(
            "SELECT name FROM information_schema.innodb_sys_tables WHERE name LIKE %s OR name LIKE 'o/#sql%%'",
            (f"o/{table}%",),
        )
        == ()
    )
    # Stores of tables dropped earlier may go to the trash meanwhile.
    assert not set(server.stores()) - set(before), "a store was made"


def refused(server, sql, words):
    with pytest.raises(pymysql.err.Error) as failure:
        server.query(sql, database="o")
    message = str(failure.value)
    for word in words:
        assert word in message, f"{word!r} is not in: {message}"


@pytest.mark.parametrize("column_and_table, words", REFUSED)
def test_refused_at_create(schema, column_and_table, words):
    column, _, table = column_and_table.partition(" | ")
    before = schema.stores()
    refused(schema, f"CREATE TABLE bad (id INT PRIMARY KEY, {column}) ENGINE=QUARRY {table}", words)
    expect_nothing_made(schema, before)


@pytest.mark.parametrize("column_and_table, words", REFUSED)
def test_refused_at_alter(schema, column_and_table, words):
    """The same values in ALTER, on a table that must stay as it was."""
    column, _, table = column_and_table.partition(" | ")
    schema.query("CREATE TABLE t (id INT PRIMARY KEY, x LONGBLOB) ENGINE=QUARRY", database="o")
    schema.query("INSERT INTO o.t VALUES (1, %s)", (payload(1, 9000),))
    before, definition = schema.stores(), schema.query("SHOW CREATE TABLE o.t")
    refused(schema, f"ALTER TABLE o.t ADD COLUMN {column} {',' + table if table else ''}", words)
    assert schema.query("SHOW CREATE TABLE o.t") == definition
    assert schema.query("SELECT * FROM o.t") == ((1, payload(1, 9000)),)
    expect_nothing_made(schema, before)


@pytest.mark.parametrize(
    "variable, value, words",
    [
        ("quarry_codec", "'brotli'", ["brotli"]),
        ("quarry_inline_size", "'x'", ["quarry_inline_size"]),
        ("GLOBAL quarry_data_paths", "'/tmp'", ["quarry_data_paths"]),
    ],
)
def test_refused_variables(schema, variable, value, words):
    refused(schema, f"SET {variable} = {value}", words)


@pytest.mark.parametrize(
    "variable, low, high",
    [
        ("quarry_inline_size", 0, 65535),
        ("quarry_prefix_size", 0, 65535),
        ("quarry_part_size", 512, 16777216),
        ("quarry_read_batch_bytes", 4096, 1 << 30),
        ("quarry_batch_size", 0, 64 << 20),
        ("quarry_write_batch_bytes", 4096, 1 << 30),
        ("quarry_autoincrement_prefetch_sz", 1, 65536),
    ],
)
def test_variables_out_of_range(schema, variable, low, high):
    """As of all numeric variables: strict mode refuses, otherwise the nearest value is taken, with a warning."""
    connection = schema.connect()
    with connection.cursor() as cursor:
        for value in (low - 1, high + 1):
            cursor.execute("SET sql_mode = 'STRICT_ALL_TABLES'")
            with pytest.raises(pymysql.err.Error) as failure:
                cursor.execute(f"SET {variable} = {value}")
            assert variable in str(failure.value) and str(value) in str(failure.value)
            cursor.execute("SET sql_mode = ''")
            cursor.execute(f"SET {variable} = {value}")
            assert cursor.warning_count == 1
            cursor.execute(f"SELECT @@{variable}")
            assert cursor.fetchone()[0] == (low if value < low else high)
    connection.close()


def test_discard_and_import_are_refused(schema):
    schema.query("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY", database="o")
    schema.query("INSERT INTO o.t VALUES (1, %s)", (payload(1, 9000),))
    for action in ("DISCARD", "IMPORT"):
        refused(schema, f"ALTER TABLE o.t {action} TABLESPACE", [action])
    assert schema.query("SELECT b FROM o.t") == ((payload(1, 9000),),)


def test_transaction_precise_versioning_is_refused(schema):
    before = schema.stores()
    refused(
        schema,
        "CREATE TABLE bad (id INT PRIMARY KEY, b LONGBLOB, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, e "
        "BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, "
        "PERIOD FOR SYSTEM_TIME (s, e)) ENGINE=QUARRY WITH SYSTEM VERSIONING",
        ["s"],
    )
    expect_nothing_made(schema, before)


# --- data paths ------------------------------------------------------------------------------------------------------
def cannot_start(server, *words):
    """Either the server does not start, or it starts without the engine; the error log says why."""
    try:
        server.start()
    except Exception:  # noqa: BLE001 - its text is the log's, which is looked at below
        started = False
    else:
        started = True
        with pytest.raises(pymysql.err.Error):
            server.query("CREATE DATABASE IF NOT EXISTS x")
            server.query("CREATE TABLE x.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
            server.query("INSERT INTO x.t VALUES (1, REPEAT('x', 9000))")
    log = server.error_log()
    for word in words:
        assert word in log, f"{word!r} is not in the error log:\n{log[-3000:]}"
    return started


@pytest.mark.parametrize("kind", ["missing", "relative", "file", "twice", "unwritable"])
def test_bad_data_paths(own_server, kind):
    server = own_server(f"path-{kind}", start=False)
    good, bad = server.directory / "good", server.directory / "bad"
    good.mkdir()
    value = f"{good};{bad}"
    if kind == "relative":
        value = f"{good};relative/path"
    elif kind == "file":
        bad.write_text("no directory")
    elif kind == "twice":
        value = f"{good};{good}/."
    elif kind == "unwritable":
        if os.geteuid() == 0:
            value = f"{good};/proc/self"
        else:
            bad.mkdir(mode=0o500)
    server.options += [f"--quarry-data-paths={value}"]
    server._new_private_server()
    cannot_start(
        server, "quarry_data_paths", {"relative": "relative/path", "twice": str(good)}.get(kind, value.split(";")[1])
    )
    assert not list(good.rglob("*.qseg")), "segments were made although the setting was refused"
