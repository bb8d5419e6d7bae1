"""What a run of tests/mtr/run.py tells: progress while it goes, a table per suite and the differences at its end.

build/mtr/report.json has everything; build/mtr/diff/<key>.diff has each difference whole.
"""

import json
import sys
import time
from collections import Counter

import compare

SHOWN_LINES = 12
SAID_EVERY_S = 15


class Progress:
    """A live line in a terminal, a line now and then elsewhere."""

    def __init__(self, total):
        self.total, self.done = total, 0
        self._terminal = sys.stdout.isatty()
        self._started = time.monotonic()
        self._said = self._started

    def step(self, engine, key, verdict):
        if self._terminal:
            print(f"\r\033[K{self._head()} {engine}: {key} {verdict}", end="", flush=True)
        elif time.monotonic() - self._said > SAID_EVERY_S:
            self._said = time.monotonic()
            print(f"{self._head()} {engine}: {key} {verdict}", flush=True)

    def compared(self, count, judgements):
        self.done += count
        counts = Counter(judgement.kind for judgement in judgements)
        text = ", ".join(f"{counts[kind]} {kind}" for kind in compare.KINDS if counts[kind])
        self.say(f"{self._head()} {text or 'nothing compared'}")

    def say(self, text):
        if self._terminal:
            print("\r\033[K", end="")
        print(text, flush=True)
        self._said = time.monotonic()

    def _head(self):
        seconds = time.monotonic() - self._started
        left = f", {human(seconds / self.done * (self.total - self.done))} left" if 0 < self.done < self.total else ""
        return f"[{self.done}/{self.total} tests, {human(seconds)}{left}]"


def human(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}h{minutes % 60:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"


def suite_of(key):
    return key.partition(",")[0].partition(".")[0]


def table(judgements):
    """Lines: one per suite, and the sum."""
    suites = {}
    for judgement in judgements:
        suites.setdefault(suite_of(judgement.key), Counter())[judgement.kind] += 1
    head = f"{'suite':<24}{'run':>6}" + "".join(f"{kind:>11}" for kind in compare.KINDS)
    lines = [head]
    for suite, counts in [*sorted(suites.items()), ("all", sum(suites.values(), Counter()))]:
        run = sum(counts.values()) - counts[compare.SKIPPED] - counts[compare.NOT_RUN]
        lines.append(f"{suite:<24}{run:>6}" + "".join(f"{counts[kind]:>11}" for kind in compare.KINDS))
    return lines


def write(directory, judgements, facts):
    """report.json and the diffs."""
    folder = directory / "diff"
    for judgement in judgements:
        path = folder / f"{judgement.key}.diff"
        path.unlink(missing_ok=True)
        if judgement.diff:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(judgement.diff, encoding="latin-1", newline="")
    counts = Counter(judgement.kind for judgement in judgements)
    data = {
        **facts,
        "counts": {kind: counts[kind] for kind in compare.KINDS},
        "tests": {
            judgement.key: {"kind": judgement.kind, "reason": judgement.reason, "changed_lines": len(judgement.changes)}
            for judgement in judgements
        },
    }
    (directory / "report.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def show(judgements, directory):
    """The human side: reasons of what is not equal, then the table."""
    by_kind = {kind: [j for j in judgements if j.kind == kind] for kind in compare.KINDS}
    for judgement in by_kind[compare.SKIPPED]:
        print(f"skipped: {judgement.key}: {judgement.reason}")
    for judgement in by_kind[compare.BOTH_FAIL]:
        print(f"fails alike under InnoDB: {judgement.key}: {first_words(judgement.reason)}")
    for judgement in by_kind[compare.BY_DESIGN]:
        print(f"differs by design: {judgement.key}: {judgement.reason}")
    retried = [j.key for j in by_kind[compare.EQUAL] if j.reason]
    for judgement in by_kind[compare.EQUAL]:
        if judgement.reason:
            print(f"equal: {judgement.key}: {judgement.reason}")
    for kind in sorted(compare.FAILURES):
        for judgement in by_kind[kind]:
            print(f"\n{kind.upper()}: {judgement.key}: {judgement.reason}")
            for line in judgement.changes[:SHOWN_LINES]:
                print(f"    {line[:200]}")
            if len(judgement.changes) > SHOWN_LINES:
                print(f"    ... {len(judgement.changes) - SHOWN_LINES} more changed lines")
            if judgement.diff:
                print(f"    whole: {directory / 'diff'}/{judgement.key}.diff")
    print("\n" + "\n".join(table(judgements)))
    if retried:
        print(f"{len(retried)} of the equal ones only after a second run, or listed as unsteady (see above)")


def first_words(text):
    lines = [line for line in text.splitlines() if "mysqltest:" in line] or text.splitlines() or [""]
    return lines[0][:160]
