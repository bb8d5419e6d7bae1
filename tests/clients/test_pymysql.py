"""PyMySQL: values as literals in the text of the statement, results in the text protocol."""

import pymysql
import pytest
from harness.server import ENGINE
from payloads import check_fetched, check_in_server


def store(server, table, values):
    connection = server.connect()
    with connection.cursor() as cursor:
        for value in values:
            cursor.execute(f"INSERT INTO {table} VALUES (%s, %s)", (value.id, value.read()))
            assert cursor.rowcount == 1
    connection.close()


def test_all_sizes(client_server, table, all_values):
    store(client_server, table, all_values)
    check_in_server(client_server, table, all_values)
    connection = client_server.connect()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, b FROM {table}")
        check_fetched(dict(cursor.fetchall()), all_values)
    connection.close()


@pytest.mark.nightly
def test_unbuffered(client_server, table, all_values):
    """A result read row by row while the server still produces it, also by key, from the last to the first."""
    store(client_server, table, all_values)
    connection = client_server.connect(cursorclass=pymysql.cursors.SSCursor)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, b FROM {table} ORDER BY id DESC")
        fetched = {}
        while (row := cursor.fetchone()) is not None:
            fetched[row[0]] = row[1]
        check_fetched(fetched, all_values)
        fetched = {}
        for value in reversed(all_values):
            cursor.execute(f"SELECT b FROM {table} WHERE id = %s", (value.id,))
            ((fetched[value.id],),) = cursor.fetchall()
        check_fetched(fetched, all_values)
    connection.close()


def test_many_rows_in_a_statement(client_server, table, small_values):
    """executemany makes one INSERT of many rows; an update of all, and back by ON DUPLICATE KEY UPDATE."""
    connection = client_server.connect()
    rows = [(value.id, value.read()) for value in small_values]
    with connection.cursor() as cursor:
        assert cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", rows) == len(rows)
        check_in_server(client_server, table, small_values)
        cursor.execute(f"UPDATE {table} SET b = CONCAT(%s, COALESCE(b, ''))", (b"\x00'\\\xff",))
        assert cursor.rowcount == len(rows)
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s) ON DUPLICATE KEY UPDATE b = VALUES(b)", rows)
        cursor.execute(f"SELECT id, b FROM {table}")
        check_fetched(dict(cursor.fetchall()), small_values)
    check_in_server(client_server, table, small_values)
    connection.close()


@pytest.mark.parametrize("length", [0, 1, 1500, 4096, 30000, 1 << 20])
def test_text_of_many_bytes_a_character(client_server, length):
    """LONGTEXT in utf8mb4, characters of one to four bytes; and the same through a latin1 column."""
    server = client_server
    server.query(
        "CREATE OR REPLACE TABLE clients.texts (id INT PRIMARY KEY, t LONGTEXT CHARACTER SET utf8mb4, "
        f"l LONGTEXT CHARACTER SET latin1) ENGINE={ENGINE}"
    )
    text = ("a\u00e9\u20ac\U0001f600\u0000'\\" * (length // 7 + 1))[:length]
    latin = ("a\u00e9\u00ff'\\" * (length // 5 + 1))[:length]
    server.query("INSERT INTO clients.texts VALUES (1, %s, %s), (2, NULL, NULL)", (text, latin))
    assert server.query("SELECT * FROM clients.texts ORDER BY id") == ((1, text, latin), (2, None, None))
    lengths = server.query("SELECT LENGTH(t), CHAR_LENGTH(t) FROM clients.texts WHERE id = 1")
    assert lengths == ((len(text.encode()), length),)
    server.query("DROP TABLE clients.texts")
