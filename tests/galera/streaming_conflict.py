#!/usr/bin/env python3
"""Repeats one conflict of a streaming transaction: it has sent fragments when an older commit takes one of its rows.

The loser must hear of it, roll back and have its fragments removed on every node: docs/operate/replication.md, 'A streaming
transaction that loses a conflict'. What a node does that has not come that far in time is told.

    tests/galera/streaming_conflict.py --rounds 100
    QUARRY_TEST_ENGINE=InnoDB tests/galera/streaming_conflict.py --rounds 100

Exit code 0 when every round ended; 1 otherwise; 77 when a cluster cannot run here.
"""

import argparse
import pathlib
import sys
import threading

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

import pymysql  # noqa: E402

from quarry_cluster.galera import why_no_galera  # noqa: E402

from harness.cluster import Galera  # noqa: E402
from harness.server import ENGINE  # noqa: E402
from harness.values import payload  # noqa: E402
from harness.waiting import wait_for  # noqa: E402

ROUND_S = 30
DEADLOCK = 1213
FRAGMENT_BYTES = 65536
ROWS, FIRST_ID = 6, 3000
LOSER = 2


def begin(cluster):
    first = cluster.start(0, "--wsrep-new-cluster")
    first.query("CREATE DATABASE g")
    first.query(f"CREATE TABLE g.seed (id INT PRIMARY KEY, b LONGBLOB) ENGINE={ENGINE}")
    for row in range(20):
        first.query("INSERT INTO g.seed VALUES (%s, %s)", (row, payload(row, row * 1500)))
    for node in (1, 2):
        cluster.start(node)


def fragments(node):
    return node.query("SELECT COUNT(*) FROM mysql.wsrep_streaming_log")[0][0]


class Conflict(threading.Thread):
    """One round; `step` says how far it came, `failure` what else went wrong."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.cluster, self.number, self.step, self.failure = cluster, number, "begins", None

    def run(self):
        try:
            self.conflict()
        except BaseException as failure:
            self.failure = failure

    def conflict(self):
        winner, loser = self.cluster.nodes[0], self.cluster.nodes[LOSER]
        kept = payload((self.number, "winner"), 15000)
        connection = loser.connect("g", autocommit=False)
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION wsrep_trx_fragment_unit = 'bytes', wsrep_trx_fragment_size = {FRAGMENT_BYTES}")
            for row in range(ROWS):
                cursor.execute("INSERT INTO seed VALUES (%s, %s)", (FIRST_ID + row, payload(row, 60000)))
            self.step = "waits for its fragments"
            wait_for("fragments on another node", lambda: fragments(winner), ROUND_S)
            cursor.execute("UPDATE seed SET b = 'loser' WHERE id = 6")
            self.step = "the older commit"
            winner.query("UPDATE g.seed SET b = %s WHERE id = 6", (kept,))
            self.step = "the loser's next statements"
            try:
                for row in range(ROWS, 2 * ROWS):
                    cursor.execute("INSERT INTO seed VALUES (%s, %s)", (FIRST_ID + row, payload(row, 60000)))
                connection.commit()
                raise AssertionError("the loser committed")
            except pymysql.err.OperationalError as failure:
                if failure.args[0] != DEADLOCK:
                    raise
            self.step = "the loser's ROLLBACK"
            connection.rollback()
        connection.close()
        for node in self.cluster.nodes:
            self.step = f"the end on {node.name}"
            query = "SELECT (SELECT COUNT(*) FROM g.seed WHERE id >= %s), (SELECT b = %s FROM g.seed WHERE id = 6)"
            wait_for(
                f"the winner's row alone on {node.name}",
                lambda node=node: (*node.query(query, (FIRST_ID, kept))[0], fragments(node)) == (0, 1, 0),
                ROUND_S,
            )
        self.step = "done"


def told(cluster):
    """What the nodes' threads do, and the ends of their logs."""
    for node in cluster.nodes:
        try:
            threads = node.query("SELECT id, command, time, state, LEFT(info, 80) FROM information_schema.processlist")
        except pymysql.err.Error as failure:
            threads = [repr(failure)]
        yield f"{node.name}:"
        yield from (f"    {thread}" for thread in threads)
        yield from (f"    log: {line[:200]}" for line in node.error_log().splitlines()[-5:])


def end_loser(cluster, conflict):
    """The way out."""
    cluster.nodes[LOSER].kill()
    conflict.join()
    cluster.restart_killed(LOSER)
    cluster.agree("g")
    wait_for("the fragments to be gone everywhere", lambda: not any(fragments(node) for node in cluster.nodes), ROUND_S)
    ids = f"SELECT COUNT(*) FROM g.seed WHERE id >= {FIRST_ID}"
    assert not any(node.query(ids)[0][0] for node in cluster.nodes), "rows of the loser are there"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="how many (default %(default)s)")
    arguments = parser.parse_args()
    if reason := why_no_galera():
        print(f"streaming-conflict: skipped: {reason}")
        return 77
    cluster, stood = Galera(3, "streaming-conflict"), 0
    try:
        begin(cluster)
        for number in range(1, arguments.rounds + 1):
            conflict = Conflict(cluster, number)
            conflict.start()
            conflict.join(3 * ROUND_S)
            if conflict.step == "done":
                continue
            stood += 1
            print(f"[{number:3}/{arguments.rounds}] not ended: {conflict.step}; {conflict.failure}", flush=True)
            print("\n".join(told(cluster)), flush=True)
            end_loser(cluster, conflict)
            print("    killed and started again, the loser's node has what the others have", flush=True)
    finally:
        cluster.remove()
    print(f"streaming-conflict: {ENGINE}: {stood} of {arguments.rounds} rounds did not end")
    return 1 if stood else 0


if __name__ == "__main__":
    sys.exit(main())
