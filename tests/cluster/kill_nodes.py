#!/usr/bin/env python3
"""kill -9 of one node after the other under a 90/10 load of 64 KB values: no acknowledged write is lost.

In each cycle clients run, a node is killed, the clients go on by themselves, the node is started again and joins; then all
copies are compared with each other and with every write that was acknowledged since the cluster was made. Victims take
turns: a shard's primary, its replica, a front; or each Galera node.

    tests/cluster/kill_nodes.py --kind spider --cycles 30        also --kind 4 and --kind galera

Figures and charts go to build/report/cluster. Exit code 0 when every cycle held; 1, with what differed, otherwise.
"""

import argparse
import json
import pathlib
import random
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

from quarry_lab.cluster.outage import Kill, draw, table  # noqa: E402
from quarry_cluster.plan import KINDS  # noqa: E402
from quarry_server.server import BUILD  # noqa: E402
from rich.console import Console  # noqa: E402

from harness.scale_out import ScaleOut  # noqa: E402
from harness.values import SEED  # noqa: E402
from harness.waiting import wait_for  # noqa: E402

BEFORE_S, DOWN_S, AFTER_S = 5, 6, 5
REJOIN_TIMEOUT_S = 180


def choose_victim(scale_out, number, choices):
    """(what it is, member, shard that is affected or None)"""
    cluster = scale_out.cluster
    if not cluster.plan.routes:
        return "galera", cluster.role("galera")[number % 3], None
    what = ("primary", "replica", "front")[number % 3]
    if what == "front":
        return what, choices.choice(cluster.role("front")), None
    shard = choices.choice(list(cluster.plan.routes))
    return what, cluster.primary(shard) if what == "primary" else cluster.replica(shard), shard


def wait_until_joined(cluster, member):
    if member.node.shard:
        cluster.wait_in_sync(REJOIN_TIMEOUT_S)
    else:
        wait_for(f"{member.name} to answer", lambda: member.value("SELECT 1") == 1, REJOIN_TIMEOUT_S)


def events_of(scale_out, events, shard):
    """Those of the rows on one shard: the integer id modulo the number of shards chooses it."""
    if shard is None:
        return events
    shards = list(scale_out.cluster.plan.routes)
    return [event for event in events if event.row % len(shards) == shards.index(shard)]


def cycle(scale_out, number, clients, choices):
    what, member, shard = choose_victim(scale_out, number, choices)
    load = scale_out.load(clients)
    began = time.monotonic()
    load.begin()
    try:
        time.sleep(BEFORE_S + choices.random())
        killed = time.monotonic()
        member.server.kill()
        time.sleep(DOWN_S)
        started = time.monotonic()
        scale_out.cluster.start_node(member.name)
        wait_until_joined(scale_out.cluster, member)
        rejoined = time.monotonic()
        time.sleep(AFTER_S)
        ended = time.monotonic()
    finally:
        load.end()
    scale_out.check()
    kill = Kill(what, began, killed, started, rejoined, ended, load.acknowledged(), load.errors())
    events = load.events()
    return kill.figures(events, events_of(scale_out, events, shard))


def shown(kill):
    return ", ".join(
        f"{key} {value if isinstance(value, (str, int)) else f'{value:.2f}'}" for key, value in kill.items() if key != "curve"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="spider")
    parser.add_argument("--cycles", type=int, default=9)
    parser.add_argument("--clients", type=int, default=6)
    arguments = parser.parse_args()
    name = f"kills-{arguments.kind}"
    report, choices = BUILD / "report" / "cluster", random.Random(SEED)
    report.mkdir(parents=True, exist_ok=True)
    scale_out, kills = ScaleOut(name, arguments.kind), []
    try:
        scale_out.start()
        for number in range(arguments.cycles):
            kills.append(cycle(scale_out, number, arguments.clients, choices))
            print(f"[{number + 1:3}/{arguments.cycles}] {shown(kills[-1])}", flush=True)
    except Exception as failure:  # noqa: BLE001 - everything must end in the summary
        print(f"FAILED in cycle {len(kills) + 1}: {failure!r}\nseed {SEED}; files are kept in {scale_out.directory}")
        scale_out.stop()
        return 1
    scale_out.remove()
    (report / f"{name}.json").write_text(json.dumps(kills, indent=1), encoding="utf-8")
    Console(width=120).print(table(f"{name}: {len(kills)} kills, 0 acknowledged writes lost; seed {SEED}", kills))
    print(*draw(kills, report, name), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
