#!/usr/bin/env python3
"""MariaDB's own tests, run with InnoDB as default engine and with QUARRY, and their outputs compared (make mtr).

Each test runs twice out of private copies of the unpacked server's test tree: as it is with InnoDB, then with QUARRY
(where a test names InnoDB as a table's engine, its copy names QUARRY). What it prints must be the same but for the
engine's name. QUARRY's side runs with quarry_inline_size=0, so that even the short values of these tests go out of
line. expected.toml lists what differs by design and why; an unlisted difference is a failure, and so is a listed test
that is equal now. The storage_engine suite runs with InnoDB's own overlay and with ours.

Results are kept per test under build/mtr/results: an interrupted run goes on where it was, and InnoDB's side is run
once per server. Exit code 0: no failure; 1: failures; 2: bad arguments; 130: interrupted.
"""

import argparse
import fcntl
import fnmatch
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import compare
import report
import trees
from runner import OPTIONS, SUITE_OPTIONS, MtrRun, Results

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
WORK = REPOSITORY / "build" / "mtr"
SERVER = Path(os.environ.get("QUARRY_MARIADB_SERVER", REPOSITORY / "build" / "mariadb" / "server"))
PLUGIN = Path(os.environ.get("QUARRY_PLUGIN") or REPOSITORY / "build" / "release" / "plugin" / "ha_quarry.so")
SUITES = [
    "storage_engine",
    "storage_engine/parts",
    "storage_engine/trx",
    "json",
    "vcol",
    "gcol",
    "period",
    "sql_sequence",
    "versioning",
    "parts",
    "engines/funcs",
    "engines/iuds",
    "innodb",
    "main",
    "binlog",
    "rpl",
]
CHUNK_TESTS = 120  # tests per mtr invocation: InnoDB and QUARRY take turns, so that results come early


class Lab:
    """What one run works with. Externally synchronised."""

    def __init__(self, arguments, temporary):
        self.arguments, self.work = arguments, arguments.work
        self.deadline = time.monotonic() + (arguments.time_limit * 60 if arguments.time_limit else 10**7)
        self.plugin = self._own_plugin()
        self.trees = {
            engine: trees.make(self.work / "tree", engine, SERVER, self.plugin) for engine in ("innodb", "quarry")
        }
        self.temporary = temporary
        # InnoDB's side depends on nothing of ours but the way it is kept.
        kept = f"{digest(HERE / 'keep_output.sh')} {digest_text(str((OPTIONS, SUITE_OPTIONS, *arguments.mysqld)))}"
        ours = digest_text(f"{trees.stamp_of('quarry', SERVER)}{digest(self.plugin)}")
        self.identities = {"innodb": f"{trees.server_stamp(SERVER)} {kept}", "quarry": f"{ours} {kept}"}
        self.entries = compare.load_list(HERE / "expected.toml")

    def _own_plugin(self):
        """A copy: the build may relink its file while we run."""
        own = self.work / "ha_quarry.so"
        new = self.work / "ha_quarry.so.new"
        shutil.copy2(PLUGIN, new)
        new.replace(own)
        return own

    def results(self, engine, attempt=1):
        name = engine if engine == "innodb" else f"quarry-inline-{self.arguments.inline_size}"
        if self.arguments.mysqld:
            name += f"-{digest_text(str(self.arguments.mysqld))}"
        return Results(self.work / "results" / (name if attempt == 1 else f"{name}.{attempt}"), self.identities[engine])

    def mtr(self, engine):
        return MtrRun(self.work, self.temporary, engine, self.trees[engine], SERVER, self.arguments)

    def folders(self):
        return [self.work / "var", *self.trees.values()]


def digest(path):
    return digest_text(path.read_bytes())


def digest_text(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()[:16]


# --- choosing ---------------------------------------------------------------------------------------------------------


def chosen_tests(arguments, tree):
    """[(suite, [test, ...])], in a fixed order."""
    patterns = list(arguments.tests)
    if arguments.list:
        lines = arguments.list.read_text(encoding="utf-8").splitlines()
        patterns += [line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip()]
    suites = arguments.suites or (list(dict.fromkeys(p.partition(".")[0] for p in patterns)) if patterns else SUITES)
    chosen, unmatched = [], set(patterns)
    for suite in suites:
        names = trees.suites_tests(tree, suite)
        if patterns:
            matched = [p for p in patterns if fnmatch.filter((f"{suite}.{name}" for name in names), p)]
            unmatched -= set(matched)
            names = [name for name in names if any(fnmatch.fnmatchcase(f"{suite}.{name}", p) for p in patterns)]
        if arguments.sample:
            generator = random.Random(f"{arguments.seed} {suite}")
            names = sorted(generator.sample(names, min(arguments.sample, len(names))))
        if names:
            chosen.append((suite, names))
    if unmatched:
        raise FileNotFoundError(f"no test matches {', '.join(sorted(unmatched))} in {', '.join(suites)}")
    return chosen


def chunks(names):
    return [names[start : start + CHUNK_TESTS] for start in range(0, len(names), CHUNK_TESTS)]


# --- running ----------------------------------------------------------------------------------------------------------


def run_missing(lab, engine, suite, names, attempt, progress, again=False):
    """Runs what has no record yet. False when time ran out."""
    results = lab.results(engine, attempt)
    missing = []
    for name in names:
        if again:
            results.forget(f"{suite}.{name}")
        if not results.of_test(f"{suite}.{name}"):
            missing.append(name)
    if not missing:
        return True

    def on_record(record):
        progress.step(engine, record.key, record.verdict)

    return lab.mtr(engine).run(suite, missing, results, lab.deadline, on_record)


def compare_tests(lab, suite, names, attempts=(1, 1)):
    """Judgements of every combination of the tests; `attempts`: of which run of InnoDB's side, and of QUARRY's."""
    sides = {engine: lab.results(engine, number) for engine, number in zip(("innodb", "quarry"), attempts)}
    judgements = []
    for name in names:
        test = f"{suite}.{name}"
        keys = {key for side in sides.values() for key in side.of_test(test)}
        for key in sorted(keys) or [test]:
            runs = [load_run(lab, side, key) for side in sides.values()]
            entry = compare.entry_for(lab.entries, key)
            judgements.append(compare.judge(key, *runs, entry, may_be_equal=bool(lab.arguments.mysqld)))
    return judgements


def load_run(lab, side, key):
    return compare.make_run(side.load(key), side.text(key, "output"), side.text(key, "message"), lab.folders())


def second_chance(lab, suite, judgements, progress):
    """Runs what differs once more under both engines: a test that is equal then only varies from run to run."""
    doubtful = [j for j in judgements if j.kind in (compare.DIFFERS, compare.NEW_PASS)]
    names = sorted({j.key.partition(",")[0].partition(".")[2] for j in doubtful})
    if not names or lab.arguments.once:
        return judgements
    for engine in ("innodb", "quarry"):
        if not run_missing(lab, engine, suite, names, 2, progress, again=True):
            return judgements
    better = {}
    for attempts in ((2, 2), (1, 2), (2, 1)):
        for judgement in compare_tests(lab, suite, names, attempts):
            first = next((j for j in doubtful if j.key == judgement.key), None)
            good = judgement.kind in (compare.EQUAL, compare.BY_DESIGN, compare.BOTH_FAIL)
            if good and first and first.kind == compare.DIFFERS and first.key not in better:
                said = "InnoDB's and QUARRY's runs {} and {} agree; the first two did not".format(*attempts)
                judgement.reason = judgement.reason or said
                better[judgement.key] = judgement
    return [better.get(j.key, j) for j in judgements]


def run_chunk(lab, suite, names, progress):
    """Judgements of some tests of a suite, [] when time ran out before both engines had them."""
    for engine in ("innodb", "quarry"):
        again = lab.arguments.fresh in (engine, "all")
        if not run_missing(lab, engine, suite, names, 1, progress, again):
            return []
    judgements = compare_tests(lab, suite, names)
    return second_chance(lab, suite, judgements, progress)


def run_all(lab, chosen, progress):
    judgements, left = [], 0
    for suite, names in chosen:
        for chunk in chunks(names):
            if time.monotonic() > lab.deadline:
                left += len(chunk)
                continue
            got = run_chunk(lab, suite, chunk, progress)
            if not got:
                left += len(chunk)
            judgements += got
            progress.compared(len(chunk), judgements)
    return judgements, left


def parse_arguments():
    parser = argparse.ArgumentParser(prog="make mtr", description=__doc__.splitlines()[0])
    parser.add_argument("--suites", type=lambda text: text.split(","), help=f"of {','.join(SUITES)} (default: all)")
    parser.add_argument("--tests", type=lambda t: t.split(","), default=[], help="suite.test, wildcards allowed")
    parser.add_argument("--list", type=Path, help="a file with one test (or pattern) per line")
    parser.add_argument("--sample", type=int, help="so many tests of each suite, chosen by --seed")
    parser.add_argument("--seed", type=int, default=1, help="of --sample (default: %(default)s)")
    workers = min(4, os.cpu_count())
    parser.add_argument("--parallel", type=int, default=workers, help="mtr workers (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, help="stop after so many minutes; the next run goes on there")
    parser.add_argument("--test-minutes", type=int, default=10, help="limit for one test (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=WORK, help="for trees and results (default: build/mtr)")
    parser.add_argument("--fresh", choices=["quarry", "all"], help="run again what has results already on this side")
    parser.add_argument(
        "--inline-size",
        type=int,
        default=0,
        help="quarry_inline_size of QUARRY's side (default: %(default)s: the tests' short values go out of line too)",
    )
    parser.add_argument(
        "--mysqld",
        action="append",
        default=[],
        metavar="OPTION",
        help="an option for the servers of both sides, e.g. --mysqld=--binlog-row-image=MINIMAL (may be repeated); their "
        "results are kept apart, and a listed difference need not show",
    )
    parser.add_argument("--once", action="store_true", help="no second run of what differs")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    missing = [path for path in (SERVER / "usr" / trees.TEST_TREE, PLUGIN) if not path.exists()]
    if missing:
        sys.exit(f"mtr: {missing[0]} is missing: run 'make plugin'")
    arguments.work = arguments.work.resolve()
    arguments.work.mkdir(parents=True, exist_ok=True)
    arguments.work.chmod(0o700)
    lock = open(arguments.work / ".lock", "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"mtr: another run is under way in {arguments.work}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    temporary = Path(tempfile.mkdtemp(prefix="quarry-mtr", dir="/tmp"))
    try:
        return run(arguments, temporary)
    except KeyboardInterrupt:
        print("\ninterrupted; results so far are kept, the next run goes on from there")
        return 130
    except (FileNotFoundError, compare.ListError) as error:
        print(f"mtr: {error}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(arguments.work / "var", ignore_errors=True)
        shutil.rmtree(arguments.work / "raw", ignore_errors=True)


def run(arguments, temporary):
    started = time.monotonic()
    lab = Lab(arguments, temporary)
    chosen = chosen_tests(arguments, lab.trees["innodb"])
    total = sum(len(names) for _, names in chosen)
    progress = report.Progress(total)
    progress.say(f"{total} tests of {len(chosen)} suites, {arguments.parallel} at a time; results in {lab.work}")
    judgements, left = run_all(lab, chosen, progress)
    facts = {"seconds": round(time.monotonic() - started), "tests_left": left, "parallel": arguments.parallel}
    report.write(lab.work, judgements, facts)
    report.show(judgements, lab.work)
    if left:
        print(f"time limit reached: {left} tests left; run again to go on")
    failing = sum(judgement.kind in compare.FAILURES for judgement in judgements)
    print(f"{len(judgements)} tests and combinations in {report.human(facts['seconds'])}, {failing} failing")
    return 1 if failing or not judgements else 0


if __name__ == "__main__":
    sys.exit(main())
