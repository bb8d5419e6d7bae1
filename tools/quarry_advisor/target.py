"""
The user's server: one read-only session with bounded statements.

Invariants: the session is READ ONLY from its first statement on, no statement runs longer than `statement_seconds`, none waits for a
lock longer than LOCK_WAIT_SECONDS. Every refusal is an AdvisorError that says what is needed.
Thread-safety: externally synchronised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymysql
from pymysql.constants import ER
from pymysql.cursors import SSCursor

from .definition import sql_name as quoted
from .errors import AdvisorError
from .profile import Server

LOCK_WAIT_SECONDS = 5
CONNECT_SECONDS = 10
STATEMENT_TIMED_OUT = 1969  # ER_STATEMENT_TIMEOUT
# Modes that change how a definition is written, or a statement read.
_MODES_OF_TEXT = {"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "IGNORE_SPACE", "HIGH_NOT_PRECEDENCE", "REAL_AS_FLOAT", "IGNORE_BAD_TABLE_OPTIONS",
                  "NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "ANSI", "DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "ORACLE", "POSTGRESQL",
                  "NO_ENGINE_SUBSTITUTION"}
_ACCESS_ERRORS = {ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, 1698}  # the last: of an account that logs in by its socket alone
_PRIVILEGE_ERRORS = {ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR}


@dataclass(frozen=True)
class Address:
    """Where the server is, and who asks."""

    host: str = "localhost"
    port: int = 3306
    socket: str | None = None
    user: str | None = None
    password: str = ""
    defaults_file: Path | None = None
    ssl_ca: Path | None = None

    def __str__(self) -> str:
        return self.socket or f"{self.host}:{self.port}"

    def arguments(self) -> dict:
        """For pymysql.connect; what an option file says counts where nothing else was given."""
        given = {"host": self.host, "port": self.port, "password": self.password}
        for name, value in (("unix_socket", self.socket), ("user", self.user)):
            if value is not None:
                given[name] = value
        if self.defaults_file:
            given["read_default_file"] = str(self.defaults_file)
            if not self.password:
                del given["password"]
        if self.ssl_ca:
            given["ssl"] = {"ca": str(self.ssl_ca)}
        return given


def connect(address: Address) -> pymysql.Connection:
    try:
        connection = pymysql.connect(**address.arguments(), charset="utf8mb4", autocommit=True, connect_timeout=CONNECT_SECONDS,
                                     program_name="quarry-advisor")
        _agree_on_quotes(connection)
        return connection
    except pymysql.MySQLError as error:
        number, text = error_of(error)
        if number in _ACCESS_ERRORS:
            raise AdvisorError(f"{address} refuses this user: {text}. Needed: an account with SELECT on the table (--user, --password)") from None
        raise AdvisorError(f"{address} cannot be reached: {text}. Needed: a running server (--host, --port or --socket)") from None
    except OSError as error:
        raise AdvisorError(f"{address}: {error}") from None


def _agree_on_quotes(connection: pymysql.Connection) -> None:
    """Definitions come, and statements are read, as definition.py understands them, whatever sql_mode the server has."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@sql_mode")
        kept = [mode for mode in cursor.fetchone()[0].split(",") if mode and mode not in _MODES_OF_TEXT]
        cursor.execute("SET SESSION sql_quote_show_create = 1, sql_mode = %s", (",".join([*kept, "NO_ENGINE_SUBSTITUTION"]),))


def show_create(cursor: pymysql.cursors.Cursor, schema: str, table: str) -> str:
    cursor.execute(f"SHOW CREATE TABLE {quoted(schema)}.{quoted(table)}")
    return cursor.fetchone()[1]


def error_of(error: pymysql.MySQLError) -> tuple[int, str]:
    return (error.args[0], str(error.args[1])) if len(error.args) > 1 else (0, str(error))


class Target:
    """Use as a context manager."""

    def __init__(self, address: Address, statement_seconds: float):
        self.address, self.statement_seconds = address, statement_seconds
        self._open()

    def _open(self) -> None:
        self.connection = connect(self.address)
        self.execute("SET SESSION TRANSACTION READ ONLY")
        version = self.value("SELECT VERSION()")
        if "mariadb" not in version.lower():
            self.connection.close()
            raise AdvisorError(f"{self.address} runs {version}, which is no MariaDB: Quarry is a storage engine for MariaDB. "
                               "Load a part of the table into a MariaDB server, and look at it there")
        self.limit_statements(self.statement_seconds)
        self.execute(f"SET SESSION lock_wait_timeout = {LOCK_WAIT_SECONDS}")

    def renew(self) -> None:
        """Another session like this one: the way to leave a result that is not read to its end."""
        self.connection.close()
        self._open()

    def limit_statements(self, seconds: float) -> None:
        self.execute(f"SET SESSION max_statement_time = {max(seconds, 0.1):.3f}")

    def execute(self, sql: str, arguments: tuple = ()) -> None:
        self.rows(sql, arguments)

    def rows(self, sql: str, arguments: tuple = ()) -> list[tuple]:
        """Errors: pymysql.MySQLError."""
        with self.connection.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return list(cursor.fetchall())

    def stream(self, sql: str) -> Iterator[tuple]:
        """Rows as they come. Whoever stops before the last one must renew()."""
        with SSCursor(self.connection) as cursor:
            cursor.execute(sql)
            while (row := cursor.fetchone()) is not None:
                yield row

    def value(self, sql: str, arguments: tuple = ()):
        rows = self.rows(sql, arguments)
        return rows[0][0] if rows else None

    def show_create(self, schema: str, table: str) -> str:
        with self.connection.cursor() as cursor:
            return show_create(cursor, schema, table)

    def check_readable(self, schema: str, table: str) -> None:
        """That the table is there and this account may read all of it."""
        try:
            self.rows(f"SELECT * FROM {quoted(schema)}.{quoted(table)} LIMIT 0")
        except pymysql.MySQLError as error:
            number, text = error_of(error)
            if number in _PRIVILEGE_ERRORS | _ACCESS_ERRORS:
                raise AdvisorError(f"{text}. Needed: GRANT SELECT ON {quoted(schema)}.{quoted(table)} TO this account") from None
            raise AdvisorError(f"{schema}.{table} cannot be read: {text}") from None

    def server(self) -> Server:
        """Who this server is, as far as it bears on the advice."""
        engines = {name.upper() for name, support, *_ in self.rows("SHOW ENGINES") if support in ("YES", "DEFAULT")}
        return Server(self.value("SELECT VERSION()"), "QUARRY" in engines, int(self.value("SELECT @@innodb_buffer_pool_size")),
                      int(self.value("SELECT @@innodb_page_size")))

    def close(self) -> None:
        if self.connection.open:
            self.connection.close()

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()
