"""Makes a failing program small: drops statements, in ever smaller blocks, as long as the rest still fails alike."""

import time

from twin.engine_pair import Difference
from twin.program import Statement

CHECK = Statement("#", "check")


def fails_with(pair, statements):
    """The Difference that a program shows, or None."""
    try:
        pair.run(statements)
    except Difference as difference:
        return difference
    return None


def shrink(pair, statements, difference, seconds, report=print):
    """(smaller program, its difference). Every candidate runs on fresh schemas. None, None: it did not fail again."""
    counts, allowed = pair.counts, pair.allowed
    pair.counts, pair.allowed = counts.copy(), allowed.copy()  # what is run here is nobody's test
    try:
        return _shrink(pair, statements, difference, seconds, report)
    finally:
        pair.counts, pair.allowed = counts, allowed


def _shrink(pair, statements, difference, seconds, report):
    deadline = time.monotonic() + seconds
    current, shown, runs = statements[: difference.number + 1], None, 0

    def try_out(candidate):
        nonlocal current, shown, runs
        runs += 1
        found = fails_with(pair, candidate)
        if found is None or found.kind != difference.kind:
            return False
        current, shown = candidate[: found.number + 1], found
        return True

    if not try_out(current):
        return None, None
    block = max(len(current) // 2, 1)
    while time.monotonic() < deadline:
        changed, start = False, 0
        while start < len(current) and time.monotonic() < deadline:
            candidate = current[:start] + current[start + block :]
            if candidate and try_out(candidate):
                changed = True
            else:
                start += block
        if block == 1 and not changed:
            break
        block = max(block // 2, 1)
    report(f"shrunk from {difference.number + 1} to {len(current)} statements in {runs} runs")
    return current, shown
