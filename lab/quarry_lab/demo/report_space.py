"""The report's section on space while live data is overwritten again and again. Every figure is of this run."""

from __future__ import annotations

from html import escape

from . import svg
from .overwrite import VALUE_BYTES_MAX, VALUE_BYTES_MIN


def section(overwrite: dict) -> str:
    live, bound = overwrite["live_bytes"], overwrite["bound"]
    peaks = [taken / live for taken in overwrite["peak_bytes"]]
    chart = svg.sawtooth(
        f"Megabytes on disk while {live / 1e6:.0f} MB are overwritten {overwrite['times']} times",
        overwrite["samples"],
        [
            svg.Level("live", f"live: {live / 1e6:.1f} MB", live),
            svg.Level("bound", f"bound: {bound:g} × live", bound * live),
        ],
        [svg.Steps("innodb", "InnoDB", overwrite["innodb_bytes"])] if overwrite["innodb_bytes"] else [],
        "Quarry",
        [f"{taken:.2f}" for taken in peaks],
    )
    late = "".join(f'<p class="bad strong">{escape(line)}</p>' for line in overwrite["late"])
    return (
        "<section><h2>Overwritten again and again</h2>"
        f"<p>{overwrite['rows']:,} of the files, {VALUE_BYTES_MIN >> 10} KB to {VALUE_BYTES_MAX >> 20} MB each and"
        f" {overwrite['payload_bytes'] / 1e6:.1f} MB in all, overwritten {overwrite['times']} times over without a pause, at"
        f" {overwrite['written_bytes_per_second'] / 1e6:.0f} MB/s, with GC at work by itself. A pass begins when a table would"
        " else take more than <code>quarry_space_amplification_max</code>"
        f" ({bound:g}) times what lives in it before the pass has ended: a pass waits for transactions that may still need an old"
        f" value, and what is overwritten meanwhile is there beside the new one. {_peaks(peaks, bound)} When writing had ended it"
        f" came to {overwrite['settled_bytes'] / live:.2f} times."
        f" {_work(overwrite['gc'])}{_innodb(overwrite)}</p>{late}"
        f'<figure class="card wide"><h3>Megabytes on disk, over overwrites of everything</h3>{chart}</figure>'
        '<p class="note">On disk: the blocks that the file system has allocated to segments; the rows with the locators are'
        f" in a file of InnoDB's beside them ({overwrite['rows_file_bytes'] / 1e6:.1f} MB). Live: the values with the headers"
        " and checksums of their extents. GC runs with its default options. A table of which more than about a quarter is"
        " overwritten in a second outruns it: docs/operate/space.md, 'Space'.</p></section>"
    )


def _peaks(peaks: list[float], bound: float) -> str:
    text = f"It took {max(peaks):.2f} times at the most"
    if max(peaks) <= bound:
        return f"{text}, within the bound all the time."
    return f'{text}: <span class="strong">in {sum(p > bound for p in peaks)} of {len(peaks)} overwrites more than the bound.</span>'


def _work(gc: dict) -> str:
    return (
        f"{gc['passes']} passes gave {gc['reclaimed_bytes'] / 1e6:,.0f} MB back, by holes, {gc['segments_unlinked']}"
        f" segments unlinked and {gc['segments_rewritten']} rewritten."
    )


def _innodb(overwrite: dict) -> str:
    if not overwrite["innodb_bytes"]:
        return ""
    return (
        " InnoDB, given the same, frees an old value's pages for the next one when it has purged it; its file takes"
        f" {overwrite['innodb_bytes'][-1] / overwrite['live_bytes']:.2f} times what lives in it at the end, and does not"
        " get smaller by itself."
    )
