#!/usr/bin/env python3
"""Random SQL on QUARRY tables and on their InnoDB twins, until a time or a number of statements is over.

    tests/twin/run.py --minutes 60                    a random seed, printed
    tests/twin/run.py --seed 7 --statements 20000     the same statements every time
    tests/twin/run.py --seed 7 --program 31           one program of that run
    tests/twin/run.py --seed 7 --replay build/twin/failures/7-31/minimal.sql     (the seed chooses the server's options)
    tests/twin/run.py --seed 7 --program 31 --print   what would be run
    QUARRY_TEST_ENGINE=InnoDB tests/twin/run.py ...   the control run: InnoDB against InnoDB

A failure is written to build/twin/failures/<seed>-<program>/: program.sql (all of it), minimal.sql (shrunk, what
--replay takes), minimal-quarry.sql and minimal-innodb.sql (for the mariadb client), difference.txt, server-log.txt (the
end of the server's error log). Exit code 1 when there was one.
"""

import argparse
import collections
import pathlib
import random
import secrets
import signal
import sys
import time
from dataclasses import dataclass, field

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

from harness.server import ENGINE, REPOSITORY, Server  # noqa: E402
from twin.engine_pair import Difference, EnginePair  # noqa: E402
from twin.generator import Generator  # noqa: E402
from twin.program import read_program, write_plain_sql, write_program  # noqa: E402
from twin.shrink import shrink  # noqa: E402

FAILURES = REPOSITORY / "build" / "twin" / "failures"
SERVER_OPTIONS = (
    # What the statistics say, and when, would differ from run to run.
    "--innodb-stats-auto-recalc=OFF",
    "--lock-wait-timeout=1",
    # A kill leaves what was written to the kernel.
    "--innodb-flush-log-at-trx-commit=2",
)
# Each seed takes some of these.
SERVER_VARIANTS = (
    ("--loose-quarry-segment-size=1M",),
    ("--loose-quarry-recent-cache-bytes=0",),
    ("--loose-quarry-zeroed-pool-bytes=0",),
    # A mark pass over every table, again and again.
    ("--loose-quarry-gc-interval=1", "--loose-quarry-gc-full-interval=1", "--loose-quarry-space-amplification-max=1.05"),
    ("--log-bin=binlog", "--server-id=1", "--binlog-format=ROW"),
)
PROGRAM_LENGTH = 400
SHRINK_SECONDS = 180
LOG_END_CHARACTERS = 100_000


@dataclass
class Summary:
    """What a run came to."""

    statements: int = 0
    programs: int = 0
    seconds: float = 0.0
    failures: list = field(default_factory=list)  # directories
    counts: collections.Counter = field(default_factory=collections.Counter)
    allowed: collections.Counter = field(default_factory=collections.Counter)

    def text(self):
        verbs = collections.defaultdict(lambda: [0, 0])
        for (verb, outcome), count in self.counts.items():
            verbs[verb][outcome == "error"] += count
        lines = [
            f"{self.statements} statements on each engine in {self.programs} programs, "
            f"{self.seconds / 60:.1f} minutes; "
            f"{len(self.failures)} failures",
            "allowed: " + (", ".join(f"{count} {what}" for what, count in sorted(self.allowed.items())) or "nothing"),
            "done/refused: "
            + ", ".join(f"{verb} {ok}/{no}" for verb, (ok, no) in sorted(verbs.items(), key=lambda v: -sum(v[1]))),
        ]
        return "\n".join([*lines, *(f"failure: {directory}" for directory in self.failures)])


def server_options(seed):
    """Options of the server for this seed: small segments, no cache, the binary log or not."""
    chooser = random.Random(f"{seed}-server")
    return [*SERVER_OPTIONS, *(option for variant in SERVER_VARIANTS if chooser.random() < 0.4 for option in variant)]


def fuzz(server, seed, statements=None, minutes=None, restarts=True, first_only=False, only=None, report=print):
    """Runs programs until one of the limits is reached (`only`: this one). `first_only`: or something failed."""
    pair, summary = EnginePair(server), Summary()
    summary.counts, summary.allowed = pair.counts, pair.allowed
    began = time.monotonic()

    def over():
        summary.seconds = time.monotonic() - began
        return (
            (only is not None and summary.programs == 1)
            or (statements is not None and summary.statements >= statements)
            or (minutes is not None and summary.seconds >= minutes * 60)
            or (first_only and summary.failures)
        )

    while not over():
        number = summary.programs if only is None else only
        program = Generator(f"{seed}-{number}", restarts).program(PROGRAM_LENGTH)
        try:
            summary.statements += pair.run(program)
        except Difference as difference:
            summary.statements += difference.number + 1
            summary.failures.append(save_failure(pair, seed, number, program, difference, report))
        except KeyboardInterrupt:
            report("interrupted")
            over()
            break
        summary.programs += 1
        if summary.programs % 25 == 0:
            report(f"{summary.programs} programs, {summary.statements} statements, {len(summary.failures)} failures")
    pair.close()
    return summary


def save_failure(pair, seed, number, program, difference, report):
    """Writes the whole program, shrinks it, writes what is left; returns the directory."""
    directory = FAILURES / f"{seed}-{number}"
    directory.mkdir(parents=True, exist_ok=True)
    shown = directory.relative_to(REPOSITORY)
    report(f"program {number} of seed {seed}, {difference.kind}: {difference.text[:3000]}")
    write_program(directory / "program.sql", program, f"seed {seed}, program {number}")
    # Before the program is run again: a server that crashed has said why.
    (directory / "server-log.txt").write_text(pair.server.error_log()[-LOG_END_CHARACTERS:], encoding="utf-8")
    smaller, found = shrink(pair, program, difference, SHRINK_SECONDS, report)
    text = difference.text
    if smaller is None:
        text += "\n\nThe program did not fail again."
        report("it did not fail again")
    else:
        text += f"\n\nthe minimal program:\n{found.text}"
        comment = (
            f"shrunk from seed {seed}, program {number}; server options: {' '.join(pair.server.options)}\n"
            f"replay: tests/twin/run.py --seed {seed} --replay {shown}/minimal.sql"
        )
        write_program(directory / "minimal.sql", smaller, comment)
        for engine in dict.fromkeys((ENGINE, "InnoDB")):
            write_plain_sql(directory / f"minimal-{engine.lower()}.sql", smaller, engine, comment)
    (directory / "difference.txt").write_text(text + "\n", encoding="utf-8")
    report(f"written: {shown}")
    return shown


def replay(server, path):
    try:
        count = EnginePair(server).run(read_program(path))
    except Difference as difference:
        print(f"{difference.kind}: {difference.text}")
        return 1
    print(f"{count} statements: no difference")
    return 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default=None, help="of everything (default: random, printed)")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so long")
    parser.add_argument("--statements", type=int, default=None, help="stop after so many on each engine")
    parser.add_argument("--program", type=int, default=None, help="only this program of the seed's")
    parser.add_argument("--replay", type=pathlib.Path, default=None, help="run this program file")
    parser.add_argument("--print", action="store_true", help="print the program instead of running it")
    parser.add_argument("--no-restarts", action="store_true", help="never restart or kill the server")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    parser.add_argument("--name", default="twin-fuzz", help="of the server's directory (default %(default)s)")
    return parser.parse_args()


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the summary comes after it too
    seed = options.seed or str(secrets.randbelow(10**9))
    if options.print:
        program = Generator(f"{seed}-{options.program or 0}", not options.no_restarts).program(PROGRAM_LENGTH)
        sys.stdout.writelines(statement.line() for statement in program)
        return 0
    server = Server(options.name, server_options(seed)).start()
    try:
        if options.replay:
            return replay(server, options.replay)
        if options.minutes is None and options.statements is None and options.program is None:
            options.minutes = 1
        print(f"twin fuzzer: {ENGINE} against InnoDB, --seed {seed}; {' '.join(server.options)}", flush=True)
        summary = fuzz(
            server,
            seed,
            options.statements,
            options.minutes,
            not options.no_restarts,
            options.first,
            options.program,
            lambda text: print(text, flush=True),
        )
        print(f"{summary.text()}\nseed {seed}")
        return 1 if summary.failures else 0
    finally:
        server.remove()


if __name__ == "__main__":
    sys.exit(main())
