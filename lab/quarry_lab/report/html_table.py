"""A rich table as an HTML table: the same figures on the page as in the terminal, bold, dim and coloured as there."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from quarry_advisor.shown import shown_lines

_CONSOLE = Console()
_COLOURS = {"green": "good", "red": "bad"}


def _text(cell) -> Text:
    """A Text is taken as it is; a string may hold markup of ours. Other people's text belongs into a Text."""
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell))


def _plain(cell) -> str:
    return escape(shown_lines(_text(cell).plain))


def _classes(style: Style | None) -> str:
    if style is None:
        return ""
    colour = _COLOURS.get(style.color.name, "") if style.color else ""
    return " ".join(name for name in ("strong" * bool(style.bold), "dim" * bool(style.dim), colour) if name)


def _html(cell) -> str:
    text = _text(cell).copy()
    text.end = ""
    pieces = []
    for part in text.render(_CONSOLE):
        shown = escape(shown_lines(part.text)).replace("\n", "<br>")
        css = _classes(part.style)
        pieces.append(f'<span class="{css}">{shown}</span>' if css and part.text.strip() else shown)
    return "".join(pieces)


def _row(tag: str, css: Iterable[str], cells_html: Iterable[str], attributes: str = "") -> str:
    cells = (f'<{tag} class="{name}">{cell}</{tag}>' for name, cell in zip(css, cells_html, strict=True))
    return f"<tr{attributes}>{''.join(cells)}</tr>"


def html_table(table: Table, kept: str = "") -> str:
    """
    kept: the heading of a column that stays in sight where the table is wider than the screen, as the names of the rows do (page.css): the last
    of the leading columns of words.
    """
    columns = table.columns
    words = [column.justify != "right" for column in columns]
    names = (words.index(False) if False in words else 1) - 1
    css = ["word" if word else "number" for word in words]
    if names >= 0:
        css[names] += " name"
    css = [name + " kept" * bool(kept and _text(column.header).plain == kept) for name, column in zip(css, columns, strict=True)]
    rows = [_row("th", css, [_plain(column.header) for column in columns])]
    for row in zip(*(list(column.cells) for column in columns), strict=True):
        # A row that names its cell begins a section; those below it belong to it.
        rows.append(_row("td", css, map(_html, row), ' class="section"' if _plain(row[0]) else ""))
    title = f"<h3>{_plain(table.title)}</h3>" if table.title else ""
    caption = f'<p class="note">{_plain(table.caption).replace(chr(10), "<br>")}</p>' if table.caption else ""
    return f'{title}<div class="scroll"><table class="figures">{"".join(rows)}</table></div>{caption}'
