#!/usr/bin/env python3
"""A transaction over two shards, with kill -9 of the front or of a shard's primary at each step of its two-phase commit.

A proxy between the front and its shards knows the step: before a statement is passed on, or after it was answered, on
either shard. Then the node is started again, the keeper resolves what is in doubt, and both rows must have the new value or
both the old one; the new one if the client heard that it was committed; and no row may stay locked.

    tests/cluster/kill_in_commit.py [--only prepare]

Exit code 0 when all cases held; 1 otherwise.
"""

import argparse
import itertools
import pathlib
import sys
import threading

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

import pymysql  # noqa: E402
from quarry_cluster.ddl import ShardedTables  # noqa: E402
from quarry_cluster.in_doubt import prepared  # noqa: E402
from quarry_cluster.keeper import run  # noqa: E402

from harness.scale_out import DATABASE, ScaleOut  # noqa: E402
from harness.step_proxy import Breakpoint, StepProxy  # noqa: E402
from harness.waiting import wait_for  # noqa: E402

STEPS = ("update", "xa end", "xa prepare", "xa commit")
TABLE = "CREATE TABLE pair (id INT PRIMARY KEY, v INT NOT NULL, b LONGBLOB) ENGINE=QUARRY"
BYTES = 64 << 10
SAME_NAME = "error 1440"  # XAER_DUPID
STEP_TIMEOUT_S = 60


class Commits:
    """One cluster whose first front reaches its shards through proxies."""

    def __init__(self):
        self.scale_out = ScaleOut("commits", tls=False).start()  # the proxies read what passes
        self.cluster = self.scale_out.cluster
        self.front = self.cluster.role("front")[0]
        tables = ShardedTables(self.cluster)
        tables.create(DATABASE, TABLE, "id")
        run(self.front, f"INSERT INTO {DATABASE}.pair VALUES (0, 0, ''), (1, 0, '')")
        self.proxies = {
            shard: StepProxy(f"127.0.0.{30 + i}", route.port, (route.host, route.port))
            for i, (shard, route) in enumerate(self.cluster.plan.routes.items())
        }
        self.number, self.last = 0, 0

    def lead_through_proxies(self):
        for shard, proxy in self.proxies.items():
            proxy.breakpoint = None
            host, port = proxy.listener.getsockname()
            run(self.front, f"ALTER SERVER {shard} OPTIONS (HOST '{host}', PORT {port})", "FLUSH TABLES")

    def client(self, value, heard):
        """What the client heard last. A front's sessions are numbered anew when it starts, and Spider names transactions by
        these numbers: one that a shard has not yet noticed to be dead makes the next of its name fail, and be tried again."""
        while not heard or heard[0] == SAME_NAME:
            heard[:] = [self.transaction(value)]

    def transaction(self, value):
        try:
            connection = self.scale_out.connects()[0]()
            with connection.cursor() as cursor:
                cursor.execute("SET spider_internal_xa = ON")
                cursor.execute("BEGIN")
                for row in (0, 1):
                    cursor.execute("UPDATE pair SET v = %s, b = REPEAT('x', %s) WHERE id = %s", (value, BYTES, row))
                connection.commit()
            return "committed"
        except pymysql.err.Error as failure:
            return f"error {failure.args[0]}"

    def case(self, step, when, shard, victim):
        """One line about what happened; AssertionError when half of the transaction is there."""
        self.lead_through_proxies()
        member = self.front if victim == "front" else self.cluster.primary(shard)
        point = Breakpoint(step, when, member.server.kill)
        self.proxies[shard].breakpoint = point
        self.number += 1
        value, heard = self.number, []
        client = threading.Thread(target=self.client, args=(value, heard), daemon=True)
        client.start()
        client.join(STEP_TIMEOUT_S)
        assert heard and point.done.wait(STEP_TIMEOUT_S), f"the step was not reached, or the client hangs: {heard}"
        self.cluster.start_node(member.name)
        self.cluster.wait_in_sync()
        in_doubt, seen = [part.shard for part in prepared(self.cluster)], self.values()
        wait_for(lambda: f"what is in doubt: {prepared(self.cluster)}", lambda: not prepared(self.cluster), STEP_TIMEOUT_S)
        rows = self.values()
        assert rows in ([value] * 2, [self.last] * 2), f"half of it is there: {rows}, before {self.last}, new {value}"
        assert heard != ["committed"] or rows == [value] * 2, f"the client heard 'committed', and finds {rows}"
        outcome = "new" if rows[0] == value else "old"
        self.last = rows[0]
        run(self.front, f"UPDATE {DATABASE}.pair SET b = 'not locked'")
        return f"client: {heard[0]:<12} seen first: {self.describe(seen, value)}, in doubt on {in_doubt or 'none'}; then both {outcome}"

    def describe(self, seen, value):
        return "/".join("new" if one == value else "old" for one in seen)

    def values(self):
        query = f"SELECT v FROM {DATABASE}.pair WHERE id = %s"
        return [self.cluster.primary(shard).value(query, (row,)) for row, shard in enumerate(self.cluster.plan.routes)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="steps whose name contains this")
    arguments = parser.parse_args()
    commits, failed = Commits(), 0
    steps = [step for step in STEPS if arguments.only in step]
    for step, when, shard, victim in itertools.product(steps, ("before", "after"), commits.proxies, ("front", "primary")):
        try:
            told = commits.case(step, when, shard, victim)
        except Exception as failure:  # noqa: BLE001 - all cases are told of
            told, failed = f"FAILED: {failure!r}", failed + 1
            commits.last = commits.values()[0]
        print(f"[{commits.number:2}] {when:<6} {step:<10} on {shard}, kill {victim:<7}: {told}", flush=True)
    print(f"{commits.number} kills in a two-phase commit: {failed} failed")
    if failed:
        commits.cluster.stop()
        return 1
    commits.scale_out.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
