#!/usr/bin/env python3
"""kill -9 of a primary or of its replica under load, again and again, in every format: the replica ends up equal.

    tests/replication/kill_under_load.py --cycles 30     (QUARRY_TEST_SEED repeats a run's choices, printed at the end)

Each cycle draws the binlog format, the row image, how the replica applies, and who is killed. Exit code 0 when every
cycle held; 1, with what differed, otherwise.
"""

import pathlib
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

from harness.cluster import Pair, PairLoad  # noqa: E402
from harness.cycles import run_cycles  # noqa: E402
from harness.waiting import wait_for  # noqa: E402

FORMATS = [("ROW", image) for image in ("FULL", "MINIMAL", "NOBLOB")] + [("MIXED", "FULL"), ("STATEMENT", "FULL")]
MODES = [(0, "optimistic"), (4, "conservative"), (4, "optimistic"), (4, "aggressive")]
ENGINES = [("QUARRY", "QUARRY"), ("QUARRY", "QUARRY"), ("InnoDB", "QUARRY"), ("QUARRY", "InnoDB")]


def cycle(pair, number, choices):
    (binlog_format, image), (threads, mode) = choices.choice(FORMATS), choices.choice(MODES)
    engines, victim = choices.choice(ENGINES), choices.choice(("primary", "replica"))
    primary = {"binlog_format": f"'{binlog_format}'", "binlog_row_image": f"'{image}'"}
    pair.configure(primary, {"slave_parallel_threads": threads, "slave_parallel_mode": f"'{mode}'"})
    again = {
        "primary": [f"--binlog-format={binlog_format}", f"--binlog-row-image={image}"],
        "replica": [f"--slave-parallel-threads={threads}", f"--slave-parallel-mode={mode}"],
    }
    load = PairLoad(pair, f"k{number}", engines=engines, workers=4, large_bytes=4 << 20)
    load.begin()
    try:
        time.sleep(0.5 + choices.random() * 3)
        server = getattr(pair, victim)
        server.kill()
        pair.start_again(server, *again[victim])
        wait_for("the replica's threads", lambda: pair.slave_status()["Slave_IO_Running"] == "Yes")
    finally:
        load.end()
    rows = load.check()
    pair.primary.query(f"DROP DATABASE k{number}")
    return (
        f"{victim} killed; {binlog_format} {image}, {threads} {mode}, {engines[0]} to {engines[1]}: {rows} rows equal; "
        f"{dict(load.counts())}"
    )


if __name__ == "__main__":
    sys.exit(run_cycles(__doc__, "replication-kills", Pair("replication-kills"), Pair.start, cycle))
