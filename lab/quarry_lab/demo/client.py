"""
Connections for the client processes: MariaDB's own connector, prepared statements, binary protocol, SET NAMES binary.

A value passes as bytes, unescaped; what such a client can do at most is measured against BLACKHOLE and printed beside
the figures.
"""

from __future__ import annotations

import mariadb

from quarry_server import private

_SERVER_GOES_DOWN = (1053, 1927)  # ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED
_CLIENT_ERRORS = (range(2000, 3000), range(5000, 6000))  # CR_*: raised by the client library, not by the server


def connect(socket: str, database: str = "") -> mariadb.Connection:
    """Autocommit on. Errors: mariadb.Error."""
    connection = mariadb.connect(unix_socket=socket, user=private.account(), database=database, autocommit=True)
    with connection.cursor() as cursor:
        # The connector refuses the character set 'binary' when the server tells it of the change, so the server is
        # asked not to.
        cursor.execute("SET SESSION session_track_system_variables=''")
        cursor.execute("SET NAMES binary")
    return connection


def is_lost(error: mariadb.Error) -> bool:
    """Whether the server went away, so that the fate of the statement is unknown."""
    number = getattr(error, "errno", None) or 0
    return number in _SERVER_GOES_DOWN or any(number in numbers for numbers in _CLIENT_ERRORS)
