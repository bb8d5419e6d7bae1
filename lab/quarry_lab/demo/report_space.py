"""The report's section on space while live data is overwritten again and again. Every figure is of this run."""

from __future__ import annotations

from html import escape

from ..report import page
from ..report.stats import counted
from . import figures
from .overwrite import VALUE_BYTES_MAX, VALUE_BYTES_MIN


def section(overwrite: dict) -> str:
    live, bound = overwrite["live_bytes"], overwrite["bound"]
    late = "".join(f'<p class="bad strong">{escape(line)}</p>' for line in overwrite["late"])
    return page.section(
        "Overwritten again and again",
        f"<p>{overwrite['rows']:,} of the files, {VALUE_BYTES_MIN >> 10} KB to {VALUE_BYTES_MAX >> 20} MB each and"
        f" {overwrite['payload_bytes'] / 1e6:.1f} MB in all, were overwritten {counted(overwrite['times'], 'time')} without a pause, at"
        f" {overwrite['written_bytes_per_second'] / 1e6:.0f} MB/s. GC worked by itself. It begins a pass early enough for a table to stay"
        f" below <code>quarry_space_amplification_max</code> ({bound:g}) times what lives in it. A pass waits for transactions that may"
        " still need an old value, and what is overwritten meanwhile takes space next to the new one."
        f" {_peaks([taken / live for taken in overwrite['peak_bytes']], bound)} When writing had ended it came to"
        f" {overwrite['settled_bytes'] / live:.2f} times. {_work(overwrite['gc'])}{_innodb(overwrite)}</p>{late}",
        page.picture(figures.space(overwrite)),
        '<p class="note">On disk: the blocks that the file system has allocated to segments; the rows with the locators are'
        f" in a file of InnoDB's next to them ({overwrite['rows_file_bytes'] / 1e6:.1f} MB). Live: the values with the headers"
        " and checksums of their extents. GC runs with its default options. A table of which more than about a quarter is"
        " overwritten in a second outruns it: docs/operate/space.md, 'Space'.</p>",
    )


def _peaks(peaks: list[float], bound: float) -> str:
    text = f"It took {max(peaks):.2f} times at the most"
    if max(peaks) <= bound:
        return f"{text}, within the bound all the time."
    return f'{text}: <span class="strong">in {sum(p > bound for p in peaks)} of {counted(len(peaks), "overwrite")} more than the bound.</span>'


def _work(gc: dict) -> str:
    return (
        f"{counted(gc['passes'], 'pass')} gave {gc['reclaimed_bytes'] / 1e6:,.0f} MB back, by holes, {counted(gc['segments_unlinked'], 'segment')}"
        f" unlinked and {gc['segments_rewritten']:,} rewritten."
    )


def _innodb(overwrite: dict) -> str:
    if not overwrite["innodb_bytes"]:
        return ""
    return (
        " InnoDB, given the same, reuses an old value's pages when it has purged it. Its file takes"
        f" {overwrite['innodb_bytes'][-1] / overwrite['live_bytes']:.2f} times what lives in it at the end, and does not"
        " get smaller by itself."
    )
