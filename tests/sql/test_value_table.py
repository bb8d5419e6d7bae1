"""INFORMATION_SCHEMA.QUARRY_VALUES: where the values of each column are."""

import re

import pymysql
import pytest

from harness.values import payload, text

pytestmark = pytest.mark.quarry_only

COLUMNS = "sampled_rows, all_rows, inline_values, inline_bytes, stored_values, prefix_bytes, parts, part_bytes"
SAMPLE_ROWS_MAX = 1024


@pytest.fixture
def schema(server):
    server.query("CREATE OR REPLACE DATABASE v")
    yield server
    server.query("DROP DATABASE v")


def values(server, table, columns=COLUMNS):
    """{column: what QUARRY_VALUES says of it}"""
    rows = server.query(
        f"SELECT column_name, {columns} FROM information_schema.quarry_values WHERE table_schema = 'v' AND table_name = %s",
        (table,),
    )
    return {name: tuple(figures) for name, *figures in rows}


def test_a_small_table_is_told_exactly(schema):
    schema.query(
        "CREATE TABLE v.t (id INT PRIMARY KEY, a LONGBLOB INLINE_SIZE=1000 PREFIX_SIZE=100 PART_SIZE=4000, "
        "b MEDIUMTEXT, n VARCHAR(50)) ENGINE=QUARRY"
    )
    assert values(schema, "t")["a"] == (0, "YES", 0, 0, 0, 0, 0, 0)
    for row, (a, b) in enumerate([(900, 10), (1000, None), (12100, 4096), (None, 70000)]):
        schema.query(
            "INSERT INTO v.t VALUES (%s, %s, %s, 'x')",
            (row, a and payload(row, a), b and text(row, b).encode()[:b]),
        )
    assert values(schema, "t") == {
        "a": (4, "YES", 2, 1900, 1, 100, 3, 12000),
        "b": (4, "YES", 2, 4106, 1, 0, 2, 70000),
    }
    stored = values(schema, "t", "stored_bytes")
    assert stored == {"a": (12_120,), "b": (70_104,)}  # header of 80, 12 for each part, up to 8
    live = schema.query("SELECT live_bytes FROM information_schema.quarry_tables WHERE table_schema = 'v'")
    assert sum(figure for (figure,) in stored.values()) == live[0][0]


def test_old_values_keep_the_shape_they_were_written_in(schema):
    schema.query("CREATE TABLE v.t (id INT PRIMARY KEY, b LONGTEXT PART_SIZE=10000) ENGINE=QUARRY")
    schema.query("INSERT INTO v.t VALUES (1, REPEAT('a', 100000))")
    schema.query("ALTER TABLE v.t MODIFY b LONGTEXT PART_SIZE=50000 CODEC=zstd")
    schema.query("INSERT INTO v.t VALUES (2, REPEAT('a', 100000))")
    assert values(schema, "t", "stored_values, parts, part_bytes") == {"b": (2, 12, 200_000)}
    ((stored,),) = values(schema, "t", "stored_bytes").values()
    assert 100_200 < stored < 101_000


@pytest.mark.parametrize(
    "key, options",
    [
        ("id BIGINT UNSIGNED PRIMARY KEY", ""),
        ("id INT, PRIMARY KEY (id DESC)", ""),
        ("id CHAR(20) PRIMARY KEY", ""),
        ("id INT PRIMARY KEY", "PARTITION BY HASH (id) PARTITIONS 5"),
    ],
)
def test_a_long_table_is_sampled_from_all_over(schema, key, options):
    """The earlier half of the rows has its values inline, the later half has them in segments."""
    schema.query(f"CREATE TABLE v.t ({key}, b LONGBLOB) ENGINE=QUARRY INLINE_SIZE=100 {options}")
    schema.query(
        "INSERT INTO t SELECT 1000000 + seq * 3, REPEAT('i', IF(seq <= 2000, 100, 300)) FROM seq_1_to_4000", database="v"
    )
    ((sampled, whole, inline, _, stored, _, parts, _),) = values(schema, "t").values()
    assert whole == "NO" and 0.9 * SAMPLE_ROWS_MAX <= sampled <= SAMPLE_ROWS_MAX
    assert inline + stored == sampled and parts == stored
    assert 0.4 * sampled < stored < 0.6 * sampled


def test_a_long_table_without_a_key_has_its_first_rows_sampled(schema):
    schema.query("CREATE TABLE v.t (b LONGBLOB) ENGINE=QUARRY")
    schema.query("INSERT INTO t SELECT REPEAT('i', 5000) FROM seq_1_to_1100", database="v")
    assert values(schema, "t", "sampled_rows, all_rows, stored_values") == {"b": (SAMPLE_ROWS_MAX, "NO", SAMPLE_ROWS_MAX)}


def test_no_part_is_read_and_no_row_is_locked(schema):
    schema.query("CREATE TABLE v.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for row in range(20):
        schema.query("INSERT INTO v.t VALUES (%s, %s)", (row, payload(row, 200_000)))
    other = schema.connect("v", autocommit=False)
    with other.cursor() as cursor:
        cursor.execute("SELECT id FROM t FOR UPDATE")
        cursor.execute("UPDATE t SET b = 'short'")
        before = {name: int(schema.status(name)[name]) for name in ("quarry_extents_read", "quarry_file_bytes_read")}
        assert values(schema, "t", "all_rows, inline_values, stored_values") == {"b": ("YES", 0, 20)}
        after = {name: int(schema.status(name)[name]) for name in before}
        assert after["quarry_extents_read"] == before["quarry_extents_read"]
        assert after["quarry_file_bytes_read"] - before["quarry_file_bytes_read"] <= 20 * 80
        other.commit()
    other.close()
    assert values(schema, "t", "inline_values, stored_values") == {"b": (20, 0)}


def test_a_table_that_is_locked_is_said_to_be_incomplete(schema):
    schema.query("CREATE TABLE v.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    schema.query("INSERT INTO v.t VALUES (1, 'x')")
    connection = schema.connect("v")
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLES t WRITE")
        cursor.execute("SELECT sampled_rows, all_rows FROM information_schema.quarry_values WHERE table_schema = 'v'")
        assert cursor.fetchall() == ((0, "NO"),)
        cursor.execute("SHOW WARNINGS")
        ((_, _, message),) = cursor.fetchall()
        assert "`v`.`t` is incomplete" in message and re.search("Lock wait timeout|max_statement_time", message)
    connection.close()


def test_columns_are_shown_to_who_may_see_them(schema):
    schema.query("CREATE TABLE v.t (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB) ENGINE=QUARRY")
    schema.query("CREATE OR REPLACE USER limited@localhost")
    query = "SELECT column_name FROM information_schema.quarry_values WHERE table_schema = 'v'"
    for grant, seen in (("USAGE ON *.*", ()), ("SELECT (b) ON v.t", ("b",)), ("SELECT ON v.t", ("a", "b"))):
        schema.query(f"GRANT {grant} TO limited@localhost")
        connection = pymysql.connect(unix_socket=schema.socket, user="limited", autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute(query)
            assert tuple(name for (name,) in cursor.fetchall()) == seen
        connection.close()
    schema.query("DROP USER limited@localhost")


def test_history_and_odd_names_are_looked_at(schema):
    schema.query("CREATE TABLE v.`a``b#ü` (`i``d` INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY WITH SYSTEM VERSIONING")
    schema.query("INSERT INTO v.`a``b#ü` VALUES (1, REPEAT('x', 9000))")
    schema.query("DELETE FROM v.`a``b#ü`")
    assert values(schema, "a`b#ü", "all_rows, stored_values, parts") == {"b": ("YES", 1, 1)}
