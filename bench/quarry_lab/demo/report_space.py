"""The report's section on space while live data is overwritten again and again. Every figure is of this run."""

from __future__ import annotations

from html import escape

from . import svg
from .overwrite import OPTIONS, VALUE_BYTES_MAX, VALUE_BYTES_MIN


def section(overwrite: dict) -> str:
    live, bound = overwrite["live_bytes"], overwrite["bound"]
    peak = max(taken for _at, taken in overwrite["samples"]) / live
    settled = [taken / live for taken in overwrite["settled_bytes"]]
    chart = svg.sawtooth(
        f"Megabytes on disk while {live / 1e6:.0f} MB are overwritten {overwrite['times']} times",
        overwrite["samples"],
        [
            svg.Level("live", f"live: {live / 1e6:.1f} MB", live),
            svg.Level("bound", f"bound: {bound:g} × live", bound * live),
        ],
        [svg.Steps("innodb", "InnoDB", overwrite["innodb_bytes"])] if overwrite["innodb_bytes"] else [],
        "Quarry",
        [f"{taken:.2f}" for taken in settled],
    )
    late = "".join(f'<p class="bad strong">{escape(line)}</p>' for line in overwrite["late"])
    return (
        "<section><h2>Overwritten again and again</h2>"
        f"<p>{overwrite['rows']:,} of the files, {VALUE_BYTES_MIN >> 10} KB to {VALUE_BYTES_MAX >> 20} MB each and"
        f" {overwrite['payload_bytes'] / 1e6:.1f} MB in all, overwritten {overwrite['times']} times over as fast as one client can, with GC at"
        " work by itself. A pass begins when a table takes more than <code>quarry_space_amplification_max</code>"
        f" ({bound:g}) times what lives in it; it waits for transactions that may still need an old value, so what is"
        f" overwritten meanwhile comes on top: {peak:.2f} times at the most here. {_settled(settled, bound)}"
        f" {_work(overwrite['gc'])}{_innodb(overwrite)}</p>{late}"
        f'<figure class="card wide"><h3>Megabytes on disk, over overwrites of everything</h3>{chart}</figure>'
        '<p class="note">On disk: the blocks that the file system has allocated to segments; the rows with the locators are'
        f" in a file of InnoDB's beside them ({overwrite['rows_file_bytes'] / 1e6:.1f} MB). Live: the values with the headers"
        " and checksums of their extents. Where the line falls, nothing is written: the next overwrite begins when the table is within the bound."
        f" GC looks once a second here (<code>{escape(' '.join(OPTIONS))}</code>; by default once a minute).</p></section>"
    )


def _settled(settled: list[float], bound: float) -> str:
    if max(settled) > bound:
        return f'<span class="bad strong">After {sum(s > bound for s in settled)} overwrites it stayed above the bound.</span>'
    return f"After each overwrite it came back within the bound, to between {min(settled):.2f} and {max(settled):.2f} times."


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
