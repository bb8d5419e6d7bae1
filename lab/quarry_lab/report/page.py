"""
The frame of the lab's page and of the demo's, and the pieces that both are made of.

A page is one file: nothing is fetched, and it reads in light, in dark and on a telephone (page.css). Pure functions from texts to HTML. Names
that end in _html hold HTML; all other texts are escaped here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

from matplotlib.figure import Figure

from . import charts

_TEMPLATE = Path(__file__).parent / "page.html"
_STYLE = Path(__file__).parent / "page.css"


def render(*, title: str, commit: str, started: float, headline: str, lead_html: str, alarms: Iterable[str], tiles_html: Iterable[str],
           sections: Iterable[str], footer_html: str, contents: Iterable[tuple[str, str]] = ()) -> str:
    """alarms: what a reader must know before the first figure. contents: anchor and name of a section."""
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title), style=_STYLE.read_text(encoding="utf-8"), commit=escape(commit or "unversioned"),
        date=time.strftime("%e %B %Y, %H:%M", time.localtime(started)).strip(), headline=escape(headline), lead=lead_html,
        alarms="".join(f'<p class="alarm">{escape(text)}</p>' for text in alarms), tiles="".join(tiles_html),
        contents="".join(f'<a href="#{escape(anchor)}">{escape(name)}</a>' for anchor, name in contents),
        sections="".join(sections), footer=footer_html)


def section(title_html: str, *pieces: str, anchor: str = "") -> str:
    name = f' id="{escape(anchor)}"' if anchor else ""
    return f"<section{name}>\n<h2>{title_html}</h2>\n{''.join(pieces)}\n</section>\n"


def tile(figure: str, text: str, small: str = "", css: str = "") -> str:
    return f'<div class="tile"><b class="{css}">{escape(figure)}</b><span>{escape(text)}</span><small>{escape(small)}</small></div>'


def picture(figure: Figure) -> str:
    return f'<figure class="chart">{charts.svg(figure)}</figure>'


def gallery(figures: Iterable[Figure]) -> str:
    """Side by side where there is room."""
    return f'<div class="two">{"".join(map(picture, figures))}</div>'


def words_table(heads: Sequence[str], rows_html: Iterable[Sequence[str]]) -> str:
    """
    A table of sentences. On a narrow screen each row becomes a block, and each cell says what column it is of. A row of a single cell heads
    those below it.
    """
    body = []
    for row in rows_html:
        if len(row) == 1:
            body.append(f'<tr class="group"><td colspan="{len(heads)}">{row[0]}</td></tr>')
        else:
            cells = (f'<td data-head="{escape(head)}">{cell}</td>' for head, cell in zip(heads, row, strict=True))
            body.append(f"<tr>{''.join(cells)}</tr>")
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    return f'<div class="scroll"><table class="words"><tr>{top}</tr>{"".join(body)}</table></div>'


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    pairs = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return f'<div class="card"><dl>{pairs}</dl></div>'
