"""Fixtures of the security tests: accounts with few rights, and the servers of tests/conftest.py."""

import pymysql
import pytest


@pytest.fixture
def session_of():
    """`session_of(server, "low")`: a cursor of that account, by the socket."""
    opened = []

    def open_session(server, user, **settings):
        connection = pymysql.connect(
            unix_socket=server.socket, user=user, charset="utf8mb4", autocommit=True, ssl_disabled=True, **settings
        )
        opened.append(connection)
        return connection.cursor()

    yield open_session
    for connection in opened:
        connection.close()
