#!/usr/bin/env python3
"""Shows that the twin fuzzer finds what it is for: builds the engine with a bug planted on purpose, three times, and
runs the fuzzer on each until it fails.

    tests/twin/planted.py [--minutes 20] [--seed n] [bug ...]

    stale_head           an UPDATE to another value of the same length keeps the old head
    missed_rollback      ROLLBACK commits what was written out of line
    prefix_over_trailer  heads are shorter than an index prefix, so the index holds bytes of the trailer

The engines are built in build/planted, apart from every other build; CMake refuses the bugs anywhere else. Exit code 0
when each was caught, and the engine without a bug was not.
"""

import argparse
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "planted"
BUGS = ("stale_head", "missed_rollback", "prefix_over_trailer")


def build(bug):
    """The engine's file with this bug in it."""
    configure = [
        "cmake",
        *("-S", str(REPOSITORY), "-B", str(BUILD), "-G", "Ninja"),
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DQUARRY_TESTS=OFF",
        f"-DQUARRY_MARIADB_ROOT={REPOSITORY / 'build' / 'mariadb'}",
        f"-DQUARRY_PLANTED_BUG={bug}",
    ]
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "build.log", "wb") as log:
        for command in (configure, ["cmake", "--build", str(BUILD), "--target", "ha_quarry"]):
            if subprocess.run(command, stdout=log, stderr=log, check=False).returncode != 0:
                sys.exit(f"{' '.join(command)} failed: see {log.name}")
    return shutil.copy(BUILD / "plugin" / "ha_quarry.so", BUILD / f"ha_quarry_{bug or 'sound'}.so")


def fuzz(plugin, bug, seed, minutes):
    """(failed?, statements, the last lines of what the fuzzer said)."""
    command = [sys.executable, str(REPOSITORY / "tests" / "twin" / "run.py"), "--first", "--seed", f"{seed}-{bug}"]
    command += ["--minutes", str(minutes), "--name", f"twin-planted-{bug}"]
    done = subprocess.run(
        command, env={**os.environ, "QUARRY_PLUGIN": str(plugin)}, capture_output=True, text=True, check=False
    )
    counted = re.search(r"^(\d+) statements on each engine", done.stdout, re.MULTILINE)
    if counted is None:
        sys.exit(f"the fuzzer did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.returncode == 1, int(counted[1]), done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bugs", nargs="*", metavar="bug", help=f"{', '.join(BUGS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=20, help="to catch one (default %(default)s)")
    parser.add_argument("--seed", default=None, help="default: random, printed")
    options = parser.parse_args()
    unknown = [bug for bug in options.bugs if bug not in BUGS]
    if unknown:
        parser.error(f"unknown bug {', '.join(unknown)} (allowed: {', '.join(BUGS)})")
    seed = options.seed or str(secrets.randbelow(10**9))
    print(f"planted bugs: seed {seed}", flush=True)
    missed, longest = [], 0.0
    for bug in options.bugs or BUGS:
        plugin = build(bug)
        began = time.monotonic()
        caught, statements, said = fuzz(plugin, bug, seed, options.minutes)
        minutes = (time.monotonic() - began) / 60
        longest = max(longest, minutes)
        verdict = f"caught after {statements} statements" if caught else f"NOT caught in {statements} statements"
        how = re.search(r"^program \d+ of seed .*?, (.*?):", said, re.MULTILINE)
        small = re.search(r"^shrunk from .*$", said, re.MULTILINE)
        print(
            f"{bug}: {verdict}, {minutes:.1f} minutes with shrinking; seen by: {how[1] if how else '-'}; "
            f"{small[0] if small else 'not shrunk'}",
            flush=True,
        )
        if not caught:
            missed.append(bug)
    # The same build without a bug: what caught the others must be the bugs.
    failed, statements, said = fuzz(build(""), "", seed, max(longest, 1))
    print(f"without a bug: {'FAILED' if failed else 'no failure'} in {statements} statements", flush=True)
    if failed:
        print(said[-3000:])
    return 1 if missed or failed else 0


if __name__ == "__main__":
    sys.exit(main())
