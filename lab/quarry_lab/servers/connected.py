"""Asking a server over a connection of its own: statements, rows, status, variables, engines."""

from __future__ import annotations

import pymysql


def rows(connection: pymysql.Connection, statement: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [tuple(x.decode("utf-8", "replace") if isinstance(x, bytes) else x for x in row) for row in cursor.fetchall()]


def engines(connection: pymysql.Connection) -> set[str]:
    """Names in capitals of the engines that the server offers."""
    return {row[0].upper() for row in rows(connection, "SHOW ENGINES") if row[1] in ("YES", "DEFAULT")}


class ConnectedServer:
    """A server that can be asked from its start to its end. Externally synchronised."""

    ignored_errors = "none"  # upon which a client is to repeat a statement (sysbench.Load)
    _connection: pymysql.Connection | None = None

    def execute(self, statement: str) -> None:
        assert self._connection
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def rows(self, statement: str) -> list[tuple]:
        assert self._connection
        return rows(self._connection, statement)

    def status(self, pattern: str) -> dict[str, str]:
        return {name.lower(): value for name, value in self.rows(f"SHOW GLOBAL STATUS LIKE '{pattern}'")}

    def variables(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.rows("SHOW GLOBAL VARIABLES")}

    def engines(self) -> set[str]:
        assert self._connection
        return engines(self._connection)

    def ended(self) -> str:
        """What of it runs no more, in lines of their own; empty where all runs, or where only its clients can tell."""
        return ""

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None
