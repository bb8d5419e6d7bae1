"""What the verbs of the command line have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import pymysql
from quarry_server.server import ServerError
from rich.console import Console
from rich.markup import escape

from ..design.request import LabError
from ..servers.lab_server import ConfigurationError
from ..servers.program import ProgramError

EXIT_INTERRUPTED = 130


def numbers(text: str) -> list[int]:
    """A list of an option, e.g. 4,64,448."""
    try:
        found = [int(x) for x in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers such as 4,64,448") from None
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': every number must be at least 1")
    return found


def chosen(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    """A list of an option, each word one of those."""
    def parse_words(text: str) -> list[str]:
        words = text.split(",")
        if unknown := [word for word in words if word not in allowed]:
            raise argparse.ArgumentTypeError(f"unknown word '{unknown[0]}' (allowed: {', '.join(allowed)})")
        return words
    return parse_words


def exit_code_of(run: Callable[[Console], None]) -> int:
    """Of a verb without state of its own: runs it, and says what went wrong."""
    console = Console(width=None if sys.stdout.isatty() else 200)
    try:
        run(console)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (LabError, ConfigurationError, ProgramError, ServerError, pymysql.MySQLError, OSError) as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", highlight=False)
        return 1
    return 0
