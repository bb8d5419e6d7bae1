"""
`--apply`: the one part that writes to the user's server, in a session of its own, after a yes.

First an empty copy of the table is made beside it and altered: that shows that the server takes the statement, and that nothing but the
engine and Quarry's options differs afterwards. An account that may not make one goes by the comparison of definitions (definition.py) alone.
"""

from __future__ import annotations

import secrets
import sys
import time

import pymysql
from pymysql.constants import ER
from rich.console import Console

from .definition import essence
from .errors import AdvisorError
from .profile import Profile, Table
from .rules import Advice
from .shown import plain, shown, shown_lines
from .statements import alter_statement, runnable
from .target import Address, connect, error_of, quoted, show_create

_CONNECTION_LOST = {0, 2006, 2013}  # pymysql's own, CR_SERVER_GONE_ERROR, CR_SERVER_LOST
_NOT_ALLOWED = {ER.TABLEACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR, ER.SPECIFIC_ACCESS_DENIED_ERROR}


def apply(address: Address, profile: Profile, advice: Advice, is_confirmed: bool, messages: Console) -> None:
    """Errors: AdvisorError, with nothing changed unless it says otherwise; KeyboardInterrupt, of which it has said the same."""
    table = profile.table
    name = f"{table.schema}.{table.name}"
    if not profile.server.has_quarry:
        raise AdvisorError(f"not applied: {address} has no engine QUARRY. Load the plugin first (INSTALL SONAME 'ha_quarry')")
    if table.alter_is_refused:
        raise AdvisorError(f"not applied to {name}: {table.alter_is_refused}")
    statement = alter_statement(profile, advice)
    messages.print(shown_lines(f"about to run on {address}:\n{runnable(statement)}"), soft_wrap=True)
    if not is_confirmed and not _confirmed(name):
        raise AdvisorError("not applied: it was not confirmed (--yes, or the table's name at the prompt)")
    connection = connect(address)
    try:
        with connection.cursor() as cursor:
            messages.print(plain(prove(cursor, profile, advice)), soft_wrap=True)
            started = time.monotonic()
            _check_unchanged(cursor, table)
            _alter(address, connection, cursor, table, statement, messages)
    except pymysql.MySQLError as error:
        raise AdvisorError(f"the server refused, and nothing changed: {error_of(error)[1]}") from None
    finally:
        connection.close()
    messages.print(f"done in {time.monotonic() - started:.1f} s")


def _alter(address: Address, connection: pymysql.Connection, cursor: pymysql.cursors.Cursor, table: Table, statement: str, messages: Console) -> None:
    """The server goes on with an ALTER TABLE whose client is gone. Errors: AdvisorError, KeyboardInterrupt; MySQLError: the server refused."""
    look = f"SHOW CREATE TABLE {quoted(table.schema)}.{quoted(table.name)} tells"
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        if error_of(error)[0] in _CONNECTION_LOST:
            raise AdvisorError(f"the connection was lost, and the server may go on: whether the table is altered, {look}. {error_of(error)[1]}") from None
        raise
    except KeyboardInterrupt:
        session = connection.thread_id()
        try:
            with connect(address) as other, other.cursor() as ending:
                ending.execute(f"KILL {session}")
            said = f"session {session} was ended on the server"
        except (AdvisorError, pymysql.MySQLError) as error:
            said = f"session {session} could not be ended on the server ({error})"
        messages.print(plain(f"interrupted; {said}: whether the table is altered, {look}"), soft_wrap=True)
        raise


def prove(cursor: pymysql.cursors.Cursor, profile: Profile, advice: Advice) -> str:
    """How it is known that the statement changes the engine and Quarry's options, and nothing else. Errors: AdvisorError, MySQLError."""
    table = profile.table
    copy = f"quarry_advisor_{secrets.token_hex(8)}"
    named = f"{quoted(table.schema)}.{quoted(copy)}"
    _check_unchanged(cursor, table)
    try:
        cursor.execute(f"CREATE TABLE {named} LIKE {quoted(table.schema)}.{quoted(table.name)}")
    except pymysql.MySQLError as error:
        if error_of(error)[0] not in _NOT_ALLOWED:
            raise
        return "this account may not make an empty copy to try it on: each column's definition was compared with information_schema instead"
    try:
        before = essence(show_create(cursor, table.schema, copy))
        cursor.execute(alter_statement(profile, advice, copy))
        after = essence(show_create(cursor, table.schema, copy))
    except pymysql.MySQLError as error:
        raise AdvisorError(f"tried on an empty copy, the server refused it, and nothing changed: {error_of(error)[1]}") from None
    finally:
        _drop(cursor, named)
    if before != after:
        raise AdvisorError(f"not applied to {table.schema}.{table.name}: tried on an empty copy, it changed more than the engine and Quarry's options")
    return "tried on an empty copy, which was dropped again: nothing but the engine and Quarry's options changes"


def _drop(cursor: pymysql.cursors.Cursor, named: str) -> None:
    """After an interrupt in the middle of a statement the connection is of no use any more."""
    try:
        cursor.execute(f"DROP TABLE IF EXISTS {named}")
    except pymysql.MySQLError as error:
        reason = error_of(error)[1] or "the connection was lost"
        raise AdvisorError(f"nothing changed, but the empty copy could not be dropped ({reason}): DROP TABLE IF EXISTS {named}") from None


def _check_unchanged(cursor: pymysql.cursors.Cursor, table: Table) -> None:
    """AUTO_INCREMENT goes on meanwhile, which is part of the text."""
    if essence(show_create(cursor, table.schema, table.name)) != essence(table.create_table):
        raise AdvisorError(f"not applied: {table.schema}.{table.name} was altered since its sample was taken: ask again")


def _confirmed(name: str) -> bool:
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"type {shown(name)} to confirm: ").strip() in (name, shown(name))
    except EOFError:
        return False
