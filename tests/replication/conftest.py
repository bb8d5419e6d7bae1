"""One primary and one replica for all tests that restore what they change."""

import zlib

import pytest

from harness.cluster import Pair, PairLoad
from harness.server import has_failed

USUAL_PRIMARY = {
    "binlog_format": "'ROW'",
    "binlog_row_image": "'FULL'",
    "binlog_commit_wait_count": 0,
    "quarry_autoincrement_prefetch_sz": 16,
}
USUAL_REPLICA = {
    "slave_parallel_threads": 0,
    "slave_parallel_mode": "'optimistic'",
    "slave_exec_mode": "'STRICT'",
    "slave_run_triggers_for_rbr": "'NO'",
    "slave_type_conversions": "''",
}


@pytest.fixture(scope="session")
def shared_pair():
    made = Pair("replication").start()
    yield made
    made.remove()


@pytest.fixture
def pair(shared_pair):
    """Both run, the replica applies, and every variable that tests change is as usual."""
    for server in (shared_pair.primary, shared_pair.replica):
        if not server.alive():
            server.start()
    shared_pair.configure(USUAL_PRIMARY, USUAL_REPLICA)
    yield shared_pair
    for server in (shared_pair.primary, shared_pair.replica):
        server.assert_alive()


@pytest.fixture
def load(pair, request):
    """Makes loads in schemas that are dropped afterwards, unless the test failed."""
    made = []

    def make(**settings):
        made.append(PairLoad(pair, f"r{len(made)}_{zlib.crc32(request.node.name.encode())}", **settings))
        return made[-1]

    yield make
    for one in made:
        one.stop.set()
        if not has_failed(request):
            pair.primary.query(f"DROP DATABASE IF EXISTS {one.schema}")
