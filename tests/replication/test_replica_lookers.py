"""Appliers look at rows, too: triggers, columns and keys of the replica, and the log that it keeps itself.

A primary and two replicas, one of which logs what it applies; random rounds of statements under each row image, with
one applier and with four. After each round every table of every server equals its InnoDB twin there, and binary logs
and relay logs are searched for heads. QUARRY_REPLICATION_SCALE makes the rounds longer.
"""

import re

import pytest

from harness.cluster import LOG_SLAVE_UPDATES, Fan
from harness.lookers import IMAGES, LoggedPair
from harness.rounds import Rounds, compare_everywhere, create
from harness.server import has_failed
from harness.values import SEED
from harness.workload import SCALE

REPLICAS = {
    "silent": ["--slave-run-triggers-for-rbr=YES"],
    "logging": ["--slave-run-triggers-for-rbr=YES", *LOG_SLAVE_UPDATES],
}
STATEMENTS = 25


@pytest.fixture(scope="module")
def shared_fan():
    made = Fan("lookers", REPLICAS).start()
    yield made
    made.remove()


@pytest.fixture
def fan(shared_fan, request):
    """`fan(image, threads)`: a pair of schemas on the primary, its tables on all servers, and the fan."""
    made = []

    def make(image, threads):
        pair = LoggedPair(shared_fan.primary, None, re.sub(r"\W", "_", request.node.name)[:44], image)
        made.append(pair)
        shared_fan.configure(
            {
                "slave_parallel_threads": threads,
                "slave_parallel_mode": "'optimistic'",
                "binlog_row_image": f"'{image}'",
            }
        )
        for server in shared_fan.servers:
            create(server, pair.engines, replica=server is not shared_fan.primary)
        return pair, shared_fan

    yield make
    for pair in made:
        pair.close(drop=not has_failed(request))
    for server in shared_fan.servers:
        server.assert_alive()
    recover(shared_fan)


def recover(fan):
    """An applier that a failed test has stopped goes on behind all that is logged; no log is searched again."""
    for replica in fan.replicas:
        replica.query("STOP SLAVE")
    fan.primary.query("RESET MASTER")
    for replica in fan.replicas:
        replica.query("RESET SLAVE")
        if "--log-slave-updates" in replica.options:
            replica.query("RESET MASTER")
        replica.query("SET GLOBAL gtid_slave_pos = ''")
        replica.query("START SLAVE")


def logs_of(fan):
    logs = {server: [] if server is fan.primary else ["relay"] for server in fan.servers}
    for server in fan.servers:
        if server is fan.primary or "--log-slave-updates" in server.options:
            logs[server].append("binlog")
    return logs


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.nightly)], ids=["short", "long"])
@pytest.mark.parametrize("threads", [1, 4], ids=["one-applier", "four-appliers"])
@pytest.mark.parametrize("image", IMAGES)
def test_rounds(fan, image, threads, count):
    pair, servers = fan(image, threads)
    rounds = Rounds(pair, f"{SEED}-{image}-{threads}")
    for _ in range(count * SCALE):
        rounds.run(STATEMENTS)
        servers.wait()
        compare_everywhere(pair, servers.servers, logs_of(servers))
    assert pair.search.bytes_searched > 1_000_000
    print(f"{pair.search.bytes_searched} bytes of logs searched, {pair.search.own_found} values that end like a head")


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_columns_of_the_replica_alone(fan, image):
    """A STORED column over a value, of the primary beside a UNIQUE over a whole TEXT, and of the replica alone."""
    pair, servers = fan(image, 0)
    pair.run("INSERT INTO uniq (id, n, b, u) VALUES (1, 0, REPEAT('a', 9000), 'x')")
    pair.run("INSERT INTO keyed (id, n, b) VALUES (1, 0, REPEAT('a', 9000))")
    pair.run("UPDATE uniq SET n = n + 1")
    pair.run("UPDATE keyed SET n = n + 1")
    servers.wait()
    for replica in servers.replicas:
        for schema in pair.engines:
            assert replica.query(f"SELECT len, LENGTH(b) FROM {schema}.uniq") == (
                (9000, 9000),
            ), f"{replica.name} {schema}"
            found = replica.query(f"SELECT len, h = MD5(b) FROM {schema}.keyed")
            assert found == ((9000, 1),), f"{replica.name} {schema}"


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_triggers_of_the_replica_alone(fan, image):
    pair, servers = fan(image, 0)
    for table in ("plain", "hist"):
        pair.run(
            f"INSERT INTO {table} (id, n, b, v) VALUES (1, 0, REPEAT('a', 9000), 'v'), (2, 0, REPEAT('b', 8000), NULL)"
        )
        pair.run(f"UPDATE {table} SET n = n + 1")
        pair.run(f"DELETE FROM {table}")
    servers.wait()
    for replica in servers.replicas:
        copies = [
            replica.query(f"SELECT what, id, LENGTH(b), v, h FROM {schema}.copy ORDER BY 1, 2, 3, 4")
            for schema in pair.engines
        ]
        assert copies[0] == copies[1] and len(copies[0]) == 14, f"{replica.name}: {copies}"
        # Of a BLOB that the event leaves out, the history row's trigger sees NULL, with every engine.
        assert {size for _, _, size, _, _ in copies[0]} <= {9000, 8000, None}, f"{replica.name}: {copies[0]}"
