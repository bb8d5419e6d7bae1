"""Three nodes on the loopback interface for all tests; skipped, with the reason, where a cluster cannot run."""

import pytest
from quarry_cluster.galera import why_no_galera

from harness.cluster import Galera
from harness.values import payload
from harness.workload import create_tables

SEED_ROWS = 60


@pytest.fixture(scope="session")
def new_cluster():
    """The first node, with data on it; the tests of state transfer start the others."""
    reason = why_no_galera()
    if reason:
        pytest.skip(reason)
    made = Galera(3)
    try:
        first = made.start(0, "--wsrep-new-cluster")
        create_tables(first, "g", "QUARRY")
        first.query("CREATE TABLE g.seed (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        for row in range(SEED_ROWS):
            size = (8 << 20) if row == 7 else row * 1500
            first.query("INSERT INTO g.seed VALUES (%s, %s)", (row, payload(row, size)))
        yield made
    finally:
        made.remove()


@pytest.fixture
def cluster(new_cluster):
    """All three nodes; whichever is down is started again, from wherever its data say."""
    for i, node in enumerate(new_cluster.nodes):
        if not node.alive():
            new_cluster.start(i)
    yield new_cluster
    for node in new_cluster.nodes:
        node.assert_alive()
