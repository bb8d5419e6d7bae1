"""
What other people wrote (names, comments, the server's words) as a terminal may show it.

A name may hold line feeds, escape sequences, marks that turn the direction of writing, and what rich takes for markup. Here each becomes
visible, and none acts. Every text that a user of the server can choose passes through `shown` before it is printed.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment
from rich.text import Text


def _escaped(unit: str) -> str:
    code = ord(unit)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(text: str) -> str:
    """One line: what is not printable is written as an escape."""
    return text if text.isprintable() else "".join(unit if unit.isprintable() else _escaped(unit) for unit in text)


def shown_lines(text: str) -> str:
    """The same, and line feeds are kept: for words that are ours but for the names in them."""
    return "\n".join(shown(line) for line in text.split("\n"))


def plain(text: str, style: str = "") -> Text:
    return Text(shown(text), style)


def strong(text: str, rest: str = "") -> Text:
    """A value, and behind it the reason."""
    return Text.assemble((shown(text), "bold"), shown("  " + rest if rest else ""))


class SafeConsole(Console):
    """Takes no text for markup; whatever reaches it unescaped is escaped here, as the last one in the way."""

    def __init__(self, **settings):
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render(self, renderable, options=None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(shown_lines(segment.text), segment.style)
