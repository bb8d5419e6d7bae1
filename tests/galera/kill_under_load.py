#!/usr/bin/env python3
"""Nodes of a Galera cluster killed, stopped or robbed of their data under load, again and again: nobody loses a row.

Clients on all three nodes write rows of their own and rows that all fight for; one more client alters their table. A
node goes, by kill -9, by a clean stop, or by kill -9 and the loss of its data directory; it comes back by an
incremental or by a whole state transfer while the others are written to. Then every row must be equal on all nodes and
as its client was told.

    tests/galera/kill_under_load.py --cycles 20        (QUARRY_TEST_SEED repeats a run's choices, printed at the end)
    QUARRY_TEST_ENGINE=InnoDB tests/galera/kill_under_load.py ...       the control run: the same with InnoDB's tables

Exit code 0 when every cycle held; 1, with what differed, otherwise; 77 when a cluster cannot run here.
"""

import pathlib
import shutil
import sys
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

import pymysql  # noqa: E402
from quarry_cluster.galera import why_no_galera  # noqa: E402

from harness.cluster import Galera, GaleraLoad  # noqa: E402
from harness.cycles import run_cycles  # noqa: E402
from harness.server import ENGINE  # noqa: E402
from harness.workload import CONFLICTS, create_tables, is_between_groups  # noqa: E402

# An option of the table that is changed without a copy.
OPTION = "PART_SIZE" if ENGINE.upper() == "QUARRY" else "STATS_SAMPLE_PAGES"
ALTERS = (
    f"ALTER TABLE g.doc {OPTION}=32768",
    "ALTER TABLE g.doc FORCE, ALGORITHM=COPY",
    "ALTER TABLE g.doc ADD COLUMN extra LONGBLOB",
    f"ALTER TABLE g.doc DROP COLUMN extra, {OPTION}=8192",
    f"CREATE OR REPLACE TABLE g.made (PRIMARY KEY (id)) ENGINE={ENGINE} SELECT id, body FROM g.doc",
)


class Alterer(threading.Thread):
    """DDL on a node that stays."""

    def __init__(self, cluster, node):
        super().__init__()
        self.cluster, self.node = cluster, node
        self.stop, self.failure, self.done = threading.Event(), None, 0

    def run(self):
        try:
            connection = self.cluster.connect(self.node)
            with connection.cursor() as cursor:
                while not self.stop.is_set():
                    for statement in ALTERS:
                        self.alter(cursor, statement)
                        time.sleep(0.2)
            connection.close()
        except pymysql.err.Error as failure:
            self.failure = repr(failure)

    def alter(self, cursor, statement):
        """Until it is done: whatever loses a conflict is repeated."""
        while True:
            try:
                cursor.execute(statement)
                self.done += 1
                return
            except pymysql.err.OperationalError as failure:
                if failure.args[0] not in CONFLICTS and not is_between_groups(failure):
                    raise

    def end(self):
        self.stop.set()
        self.join()
        assert self.failure is None, f"DDL: {self.failure}"


def leave(cluster, victim, way):
    node = cluster.nodes[victim]
    if way == "stop":
        node.stop()
    else:
        node.kill()
    if way == "wipe":
        shutil.rmtree(node.datadir)


def come_back(cluster, victim, way):
    if way == "kill":
        cluster.restart_killed(victim)
    else:
        cluster.start(victim)


def cycle(cluster, _number, choices):
    victim, way = choices.randrange(3), choices.choice(("kill", "kill", "stop", "wipe"))
    stays = cluster.nodes[(victim + 1) % 3]
    load, alterer = GaleraLoad(cluster, cluster.nodes, "g"), Alterer(cluster, stays)
    load.begin()
    alterer.start()
    try:
        time.sleep(0.5 + choices.random() * 3)
        leave(cluster, victim, way)
        cluster.wait_for_size(stays, 2)
        time.sleep(choices.random() * 3)
        began = time.monotonic()
        come_back(cluster, victim, way)
        seconds = time.monotonic() - began
    finally:
        alterer.end()
        load.end()
    rows = cluster.agree("g")
    load.check()
    counts = {**load.counts(), "DDL": alterer.done}
    return f"node {victim}, {way}: back in {seconds:.1f} s; {rows} rows equal; {counts}"


def start(cluster):
    create_tables(cluster.start(0, "--wsrep-new-cluster"), "g", ENGINE)
    for i in (1, 2):
        cluster.start(i)


def main():
    if reason := why_no_galera():
        print(f"galera-kills: skipped: {reason}")
        return 77
    return run_cycles(__doc__, "galera-kills", Galera(3, "galera-kills"), start, cycle)


if __name__ == "__main__":
    sys.exit(main())
