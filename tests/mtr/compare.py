"""Compares what a test gave under InnoDB with what it gave under QUARRY, and knows which differences are meant.

Only names are made equal: QUARRY and InnoDB, in any spelling, the paths of one run, and what MADE_EQUAL has. expected.toml
lists the tests that differ by design. A listed test must differ, and each differing line must be one that its entry
allows: so a new difference shows in a listed test too, and a difference that is gone (a 'new pass') shows as well.
"""

import re
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ENGINE_NAME = re.compile(r"quarry|innodb", re.IGNORECASE)
WORKER_FOLDER = r"(?:/\d+\b)?"  # mtr gives each of several workers a folder
# What differs from run to run, and what stands for it.
MADE_EQUAL = (
    (re.compile(r"/tmp/quarry-mtr\w+/tmp" + WORKER_FOLDER), "<run>"),
    # The option that CREATE TABLE writes down when the variable is not at its default: run.py --inline-size.
    (re.compile(r" /\* `INLINE_SIZE`='?\d+'? \*/| ?([`\"]?)INLINE_SIZE\1='?\d+'?", re.IGNORECASE), ""),
    # The id of a query, of which the server counts those of Quarry's own threads too.
    (re.compile(r"(\bXid = |/\* xid=)\d+"), r"\1N"),
    # SHOW PROCESSLIST: for how many seconds each session has been at it.
    (re.compile(r"^(\d+\t[^\t\n]*\t[^\t\n]*\t[^\t\n]*\t(?:Sleep|Query)\t)\d+(?=\t)", re.MULTILINE), r"\1N"),
    # mariadb-binlog: when an event was written.
    (re.compile(r"^#\d{6} +\d+:\d\d:\d\d(?= server id )", re.MULTILINE), "#N"),
    # mariadb-test's file of a --perl block.
    (re.compile(r"(?<=/tmp)\w{6}(?= line \d)"), "N"),
)
LAST_LINES = 40

# What a judgement can be. The first three are good.
EQUAL = "equal"
BY_DESIGN = "by design"
SKIPPED = "skipped"
BOTH_FAIL = "both fail"
DIFFERS = "differs"
NEW_PASS = "new pass"
NOT_RUN = "not run"
KINDS = [EQUAL, BY_DESIGN, BOTH_FAIL, SKIPPED, DIFFERS, NEW_PASS, NOT_RUN]
FAILURES = {DIFFERS, NEW_PASS, NOT_RUN}


class ListError(Exception):
    """expected.toml says something that it must not."""


@dataclass
class Judgement:
    key: str
    kind: str
    reason: str = ""
    changes: list = field(default_factory=list)  # lines of the diff that begin with + or -
    diff: str = ""


@dataclass
class Entry:
    """One listed difference."""

    test: str
    reason: str
    code: str
    lines: list
    fails: re.Pattern | None
    innodb_fails: re.Pattern | None
    skipped: re.Pattern | None
    unsteady: bool


@dataclass
class Run:
    """A test under one engine: its record (None: not run), its texts normalised, and what it said when it stopped."""

    record: object
    output: list
    message: str = ""
    said: str = ""


def normalise(text, folders=()):
    for folder in folders:
        text = re.sub(re.escape(str(folder)) + WORKER_FOLDER, "<run>", text)
    for pattern, stand_in in MADE_EQUAL:
        text = pattern.sub(stand_in, text)
    return ENGINE_NAME.sub("InnoDB", text)


def lines_of(text):
    """The lines of an output; the newline at its end makes no line."""
    return text.removesuffix("\n").split("\n")


def make_run(record, output, message, folders=()):
    """A Run of the texts as they are."""
    if record is None:
        return Run(None, [])
    # mtr's detail has more: its reason for skipping, warnings of the server's log, a crash.
    said = f"{message}\n{record.detail}"
    return Run(record, lines_of(normalise(output, folders)), message_of(record, message, folders), said)


def message_of(record, message, folders):
    """Why a test failed, without what differs from run to run."""
    if record.detail.startswith("timeout after"):
        return "timeout"  # the rest is mtr's search for what hangs
    text = normalise(message if message.strip() else record.detail, folders)
    lines = [line for line in text.splitlines() if line.strip() and "Test ended at" not in line]
    kept = []
    for line in lines:
        if line.startswith(("The result from queries just", "More results from queries", " - ", "***")):
            break  # the output, compared by itself; what mtr does with its files
        kept.append(re.sub(r"\d+", "N", line))
    return "\n".join(kept)


def difference(left, right):
    """A unified diff of two lists of lines; '' when they are equal."""
    if left == right:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("InnoDB", "QUARRY")]
        for path, lines in zip(paths, (left, right)):
            path.write_text("\n".join(lines) + "\n", encoding="latin-1", newline="")
        command = ["diff", "-a", "-U3", "--label=InnoDB", "--label=QUARRY", *map(str, paths)]
        done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout.decode("latin-1")


def changes_of(diff):
    """The lines that a unified diff takes away or adds."""
    body = diff.split("\n")[2:]
    return [line for line in body if line.startswith(("+", "-"))]


def without_missing_tail(left, right):
    """The left lines less those after the last line of the right one: a test that stopped early misses the rest."""
    diff = difference(left, right)
    missing = 0
    for line in reversed(diff.rstrip("\n").split("\n")):
        if not line.startswith("-"):
            break
        missing += 1
    return left[: len(left) - missing] if missing else left


def judge(key, innodb, quarry, entry=None, may_be_equal=False):
    """The judgement of one test (see KINDS). `may_be_equal`: with other options a listed difference need not show."""
    raw = judge_unlisted(key, innodb, quarry)
    if entry is None or raw.kind in (SKIPPED, BOTH_FAIL, NOT_RUN):
        return raw
    if raw.kind == EQUAL:
        if entry.unsteady:
            return Judgement(key, EQUAL, f"listed as unsteady: {entry.reason}")
        if may_be_equal:
            return Judgement(key, EQUAL, f"listed, and equal with these options: {entry.reason}")
        return Judgement(key, NEW_PASS, f"listed, but equal now; listed because: {entry.reason}")
    unexplained = unexplained_changes(innodb, quarry, entry)
    if unexplained:
        first = "\n".join(unexplained[:LAST_LINES])
        return Judgement(key, DIFFERS, f"listed, but this is not what the list allows:\n{first}", raw.changes, raw.diff)
    return Judgement(key, BY_DESIGN, entry.reason, raw.changes, raw.diff)


def judge_unlisted(key, innodb, quarry):
    verdicts = [run.record.verdict if run.record else None for run in (innodb, quarry)]
    if None in verdicts:
        missing = [name for name, verdict in zip(("InnoDB", "QUARRY"), verdicts) if verdict is None]
        return Judgement(key, NOT_RUN, f"mtr gave no verdict under {' and '.join(missing)}")
    idle = ("skipped", "disabled")
    if verdicts[0] in idle and verdicts[1] in idle:
        return Judgement(key, SKIPPED, one_line(quarry.record.detail) or "mtr gave no reason")
    diff = difference(innodb.output, quarry.output)
    changes = changes_of(diff)
    if verdicts[0] != verdicts[1]:
        said = quarry if quarry.record.verdict != "pass" else innodb
        words = said.message or one_line(said.record.detail)
        reason = f"{verdicts[0]} under InnoDB, {verdicts[1]} under QUARRY: {words}"
        return Judgement(key, DIFFERS, reason, changes, diff)
    if verdicts[0] == "fail":
        if innodb.message == quarry.message and not diff:
            return Judgement(key, BOTH_FAIL, innodb.message)
        reason = f"fails under both, otherwise:\nInnoDB: {innodb.message}\nQUARRY: {quarry.message}"
        return Judgement(key, DIFFERS, reason, changes, diff)
    if diff:
        return Judgement(key, DIFFERS, "the outputs differ", changes, diff)
    return Judgement(key, EQUAL)


def one_line(text):
    return " ".join(text.split())


def unexplained_changes(innodb, quarry, entry):
    """What an entry does not allow: [] when it explains the whole difference."""
    left = innodb.output
    innodb_verdict, quarry_verdict = innodb.record.verdict, quarry.record.verdict
    if innodb_verdict == quarry_verdict == "fail" and entry.innodb_fails is not None:
        stops = ((innodb.said, entry.innodb_fails), (quarry.said, entry.fails))  # in different places: no outputs to compare
        return [said for said, pattern in stops if pattern is None or not pattern.search(said)]
    if innodb_verdict != quarry_verdict or innodb_verdict == "fail":
        said = quarry.said
        if quarry_verdict in ("skipped", "disabled"):
            pattern = entry.skipped
        elif quarry_verdict == "fail":
            pattern = entry.fails
            left = without_missing_tail(innodb.output, quarry.output)
        else:
            said, pattern = innodb.said, entry.innodb_fails
        if pattern is None or not pattern.search(said):
            return [said]
        if quarry_verdict != "fail":
            return []  # there is nothing to compare with
    changes = changes_of(difference(left, quarry.output))
    return [line for line in changes if not any(pattern.search(line) for pattern in entry.lines)]


# --- expected.toml ----------------------------------------------------------------------------------------------------


def pattern(text, where):
    try:
        return re.compile(text)
    except re.error as error:
        raise ListError(f"{where}: '{text}' is no regular expression: {error}") from error


def load_list(path):
    """{test: Entry}. A test is suite.test (every combination), or suite.test,combination,... (that one). An entry names
    one, as `test`, or several that differ in the same lines for the same reason, as `tests`."""
    with open(path, "rb") as file:
        data = tomllib.load(file)
    classes = data.get("class", {})
    unknown = set(data) - {"class", "difference"}
    if unknown:
        raise ListError(f"{path.name}: unknown table {sorted(unknown)} (allowed: class, difference)")
    entries = {}
    for number, item in enumerate(data.get("difference", []), 1):
        where = f"{path.name}, difference {number} ({item.get('test') or item.get('tests')})"
        if ("test" in item) == ("tests" in item):
            raise ListError(f"{where}: one of 'test' and 'tests' must be there, not both")
        shared = {key: value for key, value in item.items() if key != "tests"}
        for test in item.get("tests", [item.get("test")]):
            entry = make_entry({**shared, "test": test}, classes, where)
            if entry.test in entries:
                raise ListError(f"{path.name}: {entry.test} is listed twice")
            entries[entry.test] = entry
    return entries


def make_entry(item, classes, where):
    allowed = {"test", "class", "reason", "code", "lines", "fails", "innodb_fails", "skipped", "unsteady"}
    if set(item) - allowed:
        raise ListError(f"{where}: unknown key {sorted(set(item) - allowed)} (allowed: {sorted(allowed)})")
    shared = classes.get(item.get("class"), {})
    if "class" in item and not shared:
        raise ListError(f"{where}: no class '{item['class']}' (there are: {sorted(classes)})")
    merged = {**shared, **item, "lines": shared.get("lines", []) + item.get("lines", [])}
    for key in ("test", "reason", "code"):
        if not merged.get(key):
            raise ListError(f"{where}: '{key}' is missing")
    return Entry(
        merged["test"],
        one_line(merged["reason"]),
        merged["code"],
        [pattern(text, where) for text in merged["lines"]],
        pattern(merged["fails"], where) if "fails" in merged else None,
        pattern(merged["innodb_fails"], where) if "innodb_fails" in merged else None,
        pattern(merged["skipped"], where) if "skipped" in merged else None,
        bool(merged.get("unsteady", False)),
    )


def entry_for(entries, key):
    return entries.get(key) or entries.get(key.partition(",")[0])


def first_line(text):
    """The line in which mtr or mariadb-test says what is wrong."""
    lines = [line for line in text.splitlines() if line.startswith(("mysqltest:", "mariadb-test:", "Server "))]
    return (lines or text.splitlines() or [""])[0]
