"""A rich table as an HTML table: the same figures on the page as in the terminal. Colours and dimming are left to the page's style."""

from __future__ import annotations

from html import escape

from rich.table import Table
from rich.text import Text

from quarry_advisor.shown import shown_lines


def _plain(cell) -> str:
    """A Text is taken as it is; a string may hold markup of ours. Other people's text belongs into a Text."""
    text = cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain
    return escape(shown_lines(text))


def _cell(tag: str, text: str, justify: str) -> str:
    return f'<{tag} class="{"number" if justify == "right" else "word"}">{text}</{tag}>'


def html_table(table: Table) -> str:
    heads = "".join(_cell("th", _plain(column.header), column.justify) for column in table.columns)
    rows = []
    for row in zip(*(list(column.cells) for column in table.columns), strict=True):
        # A row that names its cell begins a section; those below it belong to it.
        css = ' class="section"' if _plain(row[0]) else ""
        cells = "".join(_cell("td", _plain(cell), column.justify) for cell, column in zip(row, table.columns, strict=True))
        rows.append(f"<tr{css}>{cells}</tr>")
    title = f"<h3>{_plain(table.title)}</h3>" if table.title else ""
    caption = f'<p class="note">{_plain(table.caption).replace(chr(10), "<br>")}</p>' if table.caption else ""
    return f'{title}<div class="scroll"><table class="figures-table"><tr>{heads}</tr>{"".join(rows)}</table></div>{caption}'
