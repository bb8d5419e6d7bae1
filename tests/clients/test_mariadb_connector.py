"""MariaDB's connector for Python: prepared statements, binary parameters, server-side cursors. The C library below it
is the one of Connector/C."""

import mariadb
import pytest
from payloads import check_fetched, check_in_server

# mariadb.constants.CURSOR.READ_ONLY: rows stay in the server until they are fetched.
SERVER_SIDE_CURSOR = {"cursor_type": mariadb.constants.CURSOR.READ_ONLY, "prefetch_size": 3}


@pytest.fixture
def connection(client_server):
    connection = mariadb.connect(unix_socket=client_server.socket, user=client_server.account, autocommit=True)
    yield connection
    connection.close()


def store(connection, table, values):
    cursor = connection.cursor(prepared=True)
    for value in values:
        cursor.execute(f"INSERT INTO {table} VALUES (?, ?)", (value.id, value.read()))
        assert cursor.rowcount == 1
    cursor.close()


@pytest.mark.parametrize("protocol", ["text", "binary"])
def test_all_sizes(client_server, connection, table, all_values, protocol):
    store(connection, table, all_values)
    check_in_server(client_server, table, all_values)
    cursor = connection.cursor(binary=protocol == "binary", buffered=False)
    cursor.execute(f"SELECT id, b FROM {table}")
    fetched = {}
    for key, data in cursor:
        fetched[key] = data
    check_fetched(fetched, all_values)
    cursor.close()


def test_prepared_select(client_server, connection, table, all_values):
    """One statement, executed for each value: small ones after large ones."""
    store(connection, table, all_values)
    cursor = connection.cursor(prepared=True, buffered=True)
    fetched = {}
    for value in reversed(all_values):
        cursor.execute(f"SELECT b FROM {table} WHERE id = ?", (value.id,))
        ((fetched[value.id],),) = cursor.fetchall()
    check_fetched(fetched, all_values)
    cursor.close()


def test_server_side_cursor(connection, table, small_values):
    """The server keeps the rows of such a cursor in a temporary table; a change in between must not show."""
    store(connection, table, small_values)
    cursor = connection.cursor(buffered=False, **SERVER_SIDE_CURSOR)
    cursor.execute(f"SELECT id, b FROM {table} ORDER BY id")
    fetched = dict([cursor.fetchone()])
    other = connection.cursor()
    other.execute(f"UPDATE {table} SET b = REPEAT('x', 9000)")
    fetched.update(cursor.fetchall())
    check_fetched(fetched, small_values)
    cursor.close()


def test_bulk(client_server, connection, table, small_values):
    """executemany sends all rows in one COM_STMT_BULK_EXECUTE, NULLs by indicators."""
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(value.id, value.read()) for value in small_values])
    check_in_server(client_server, table, small_values)
    cursor.executemany(
        f"UPDATE {table} SET b = ? WHERE id = ?", [(b"other" * 2000, value.id) for value in small_values]
    )
    cursor.executemany(f"REPLACE INTO {table} VALUES (?, ?)", [(value.id, value.read()) for value in small_values])
    check_in_server(client_server, table, small_values)
    cursor.close()


def test_rollback(client_server, connection, table, small_values):
    store(connection, table, small_values)
    connection.autocommit = False
    cursor = connection.cursor()
    cursor.execute(f"UPDATE {table} SET b = ?", (b"lost" * 20000,))
    cursor.execute(f"DELETE FROM {table} WHERE id < ?", (10,))
    connection.rollback()
    check_in_server(client_server, table, small_values)
    cursor.close()
