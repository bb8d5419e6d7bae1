"""
`--apply`: the one statement that writes to the user's server, in a session of its own, after a yes.

Nothing else of the advisor opens a session that may write.
"""

from __future__ import annotations

import sys
import time

import pymysql
from rich.console import Console

from .errors import AdvisorError
from .profile import Profile
from .target import Address, connect, error_of


def apply(address: Address, profile: Profile, statement: str, is_confirmed: bool, messages: Console) -> None:
    """Errors: AdvisorError, with nothing changed."""
    name = f"{profile.table.schema}.{profile.table.name}"
    if not profile.server.has_quarry:
        raise AdvisorError(f"not applied: {address} has no engine QUARRY. Load the plugin first (INSTALL SONAME 'ha_quarry')")
    if profile.table.alter_is_refused:
        raise AdvisorError(f"not applied to {name}: {profile.table.alter_is_refused}")
    messages.print(f"about to run on {address}:\n{statement};", highlight=False, markup=False, soft_wrap=True)
    if not is_confirmed and not _confirmed(name):
        raise AdvisorError("not applied: it was not confirmed (--yes, or the table's name at the prompt)")
    started = time.monotonic()
    connection = connect(address)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    except pymysql.MySQLError as error:
        raise AdvisorError(f"the server refused, and nothing changed: {error_of(error)[1]}") from None
    finally:
        connection.close()
    messages.print(f"done in {time.monotonic() - started:.1f} s", highlight=False)


def _confirmed(name: str) -> bool:
    if not sys.stdin.isatty():
        return False
    return input(f"type {name} to confirm: ").strip() == name
