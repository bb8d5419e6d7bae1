"""Fixtures of the security tests: accounts with few rights, a place for backups, and the servers of tests/conftest.py."""

import pathlib
import re
import sys

import pymysql
import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "backup"))

from drill import Drill  # noqa: E402


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


@pytest.fixture
def drill(request):
    """A place for backups, removed when the test is over."""
    made = Drill(re.sub(r"\W", "_", request.node.name)[:40])
    yield made
    made.remove()
