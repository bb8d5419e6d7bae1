#!/usr/bin/env python3
"""Shows when a Galera cluster stands still after it lost a node, with any engine: docs/operate/replication.md, 'Large write-sets'.

Clients of two nodes commit one large value after the other; the third node is killed. The two must form a cluster of two
and go on. What they do is told; a cluster that stands still is told to bootstrap (which does nothing), and then gets its
lost node back (which ends it).

The cause, in Galera 26.4.23: the message that begins a group is refused (EAGAIN) when 1 MiB or more of what the node sends is
still queued (gcomm/src/evs_proto.cpp:2683). The sender logs it and does not try again before the next change of members
(gcs/src/gcs_core.cpp:883). Until then nothing can be sent: commits sleep in wsrep_certify (core_msg_send_retry,
gcs_core.cpp:338). pc.bootstrap does nothing, because the group is primary (gcomm/src/pc_proto.cpp:1700).

    QUARRY_TEST_ENGINE=InnoDB tests/galera/large_write_sets.py --rounds 5
    tests/galera/large_write_sets.py --value-mib 0.25 --provider "evs.send_window=1024;evs.user_send_window=512"

Exit code 0 when no round stood still; 1 otherwise; 77 when a cluster cannot run here.
"""

import argparse
import pathlib
import sys
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

import pymysql  # noqa: E402

from quarry_cluster.galera import why_no_galera  # noqa: E402

from harness.cluster import LOST_STATE_UUID, Galera  # noqa: E402
from harness.server import ENGINE  # noqa: E402
from harness.waiting import wait_for  # noqa: E402

STALL_S = 30  # a node that is gone is given up after 5 s (evs.suspect_timeout)
GOES_ON_S = 60


class Client(threading.Thread):
    """Commits rows of `size_bytes`, whatever becomes of them."""

    def __init__(self, node, table, size_bytes):
        super().__init__()
        self.node, self.stop, self.commits = node, threading.Event(), 0
        self.statement = f"REPLACE INTO v.{table} VALUES (%s, REPEAT('x', {size_bytes}))"

    def run(self):
        while not self.stop.is_set():
            try:
                connection = self.node.connect(read_timeout=STALL_S + GOES_ON_S)
                with connection.cursor() as cursor:
                    while not self.stop.is_set():
                        cursor.execute(self.statement, (self.commits % 5,))
                        self.commits += 1
            except pymysql.err.Error:
                time.sleep(0.1)

    def end(self):
        self.stop.set()
        self.join()


def begin(cluster, provider):
    first = cluster.start(0, "--wsrep-new-cluster")
    first.query("CREATE DATABASE v")
    for node in (0, 1):
        first.query(f"CREATE TABLE v.t{node} (id INT PRIMARY KEY, b LONGBLOB) ENGINE={ENGINE}")
    for node in (1, 2):
        cluster.start(node)
    if provider:
        for node in cluster.nodes[:2]:
            node.query("SET GLOBAL wsrep_provider_options = %s", (provider,))


def within(limit_s, condition):
    """Whether it came true in time."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def one_round(cluster, clients):
    """What happened, in words, and whether the cluster stood still."""
    stay, lost = cluster.nodes[:2], cluster.nodes[2]

    def commits():
        return sum(client.commits for client in clients)

    def are_two():
        return all(node.status("wsrep_%")["wsrep_cluster_size"] == "2" for node in stay)

    failures = sum(node.error_log().count(LOST_STATE_UUID) for node in stay)
    wait_for("commits", lambda: all(client.commits > 2 for client in clients))
    lost.kill()
    began, before = time.monotonic(), commits()
    if within(STALL_S, lambda: are_two() and commits() > before):
        seconds = time.monotonic() - began
        cluster.restart_killed(2)
        return f"went on {seconds:.1f} s after the loss", False
    said = sum(node.error_log().count(LOST_STATE_UUID) for node in stay) - failures
    status = stay[0].status("wsrep_%")
    seen = {name: status[f"wsrep_{name}"] for name in ("cluster_size", "cluster_status", "evs_state", "ready")}
    for node in stay:
        node.query("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'")
    bootstrapped = within(10, are_two)
    cluster.restart_killed(2)
    stuck = commits()
    wait_for("commits after the node's return", lambda: commits() > stuck, GOES_ON_S)
    return (
        f"stood still for {STALL_S} s, {seen}; {said} x '{LOST_STATE_UUID}'; pc.bootstrap {'ended' if bootstrapped else 'changed'} "
        f"{'it' if bootstrapped else 'nothing'}; the return of the lost node ended it"
    ), True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="how many (default %(default)s)")
    parser.add_argument("--clients", type=int, default=3, help="of each of the two nodes (default %(default)s)")
    parser.add_argument("--value-mib", type=float, default=4, help="size of each value (default %(default)s)")
    parser.add_argument("--provider", default="", help="wsrep_provider_options to set on the nodes that stay")
    arguments = parser.parse_args()
    if reason := why_no_galera():
        print(f"large-write-sets: skipped: {reason}")
        return 77
    cluster, still = Galera(3, "large-write-sets"), 0
    try:
        begin(cluster, arguments.provider)
        for number in range(1, arguments.rounds + 1):
            size_bytes = int(arguments.value_mib * (1 << 20))
            clients = [
                Client(node, f"t{i}", size_bytes)
                for i, node in enumerate(cluster.nodes[:2])
                for _ in range(arguments.clients)
            ]
            for client in clients:
                client.start()
            try:
                told, stood = one_round(cluster, clients)
            finally:
                for client in clients:
                    client.end()
            still += stood
            print(f"[{number:3}/{arguments.rounds}] {told}", flush=True)
    finally:
        cluster.remove()
    print(f"large-write-sets: {ENGINE}, {arguments.value_mib} MiB: {still} of {arguments.rounds} rounds stood still")
    return 1 if still else 0


if __name__ == "__main__":
    sys.exit(main())
