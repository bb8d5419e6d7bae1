"""Three nodes on the loopback interface for all tests; skipped, with the reason, where a cluster cannot run.

A test that failed leaves its cluster behind: the next one, or the same once more (pytest's --reruns), gets a new one.
"""

import shutil

import pytest
from quarry_cluster.galera import why_no_galera

from harness.cluster import Galera
from harness.server import ENGINE, SCRATCH, has_failed
from harness.values import payload
from harness.workload import create_tables

SEED_ROWS = 60


class Clusters:
    """One cluster at a time, made when it is asked for."""

    def __init__(self):
        self.current, self.failed = None, 0

    def get(self):
        """A cluster whose first node has data; the tests of state transfer start the others."""
        if self.current is None:
            self.current = Galera(3)
            first = self.current.start(0, "--wsrep-new-cluster")
            create_tables(first, "g", ENGINE)
            first.query(f"CREATE TABLE g.seed (id INT PRIMARY KEY, b LONGBLOB) ENGINE={ENGINE}")
            for row in range(SEED_ROWS):
                size = (8 << 20) if row == 7 else row * 1500
                first.query("INSERT INTO g.seed VALUES (%s, %s)", (row, payload(row, size)))
        return self.current

    def discard(self):
        """After a failure; the error logs are kept."""
        if self.current is None:
            return
        self.failed += 1
        kept = SCRATCH / f"galera-failed-{self.failed}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for node in self.current.nodes:
            if node.private.error_log.exists():
                shutil.copy(node.private.error_log, kept / f"{node.name}.log")
        print(f"error logs: {kept}")
        self.remove()

    def remove(self):
        if self.current is not None:
            self.current.remove()
            self.current = None


@pytest.fixture(scope="session")
def clusters():
    made = Clusters()
    yield made
    made.remove()


@pytest.fixture
def new_cluster(clusters, request):
    """Its first node runs; what else does, the tests before decided."""
    reason = why_no_galera()
    if reason:
        pytest.skip(reason)
    try:
        made = clusters.get()
    except BaseException:
        clusters.discard()
        raise
    yield made
    if has_failed(request):
        clusters.discard()


@pytest.fixture
def cluster(new_cluster, clusters):
    """All three nodes; whichever is down is started again, from wherever its data say."""
    try:
        for i, node in enumerate(new_cluster.nodes):
            if not node.alive():
                new_cluster.start(i)
    except BaseException:
        clusters.discard()
        raise
    yield new_cluster
    for node in new_cluster.nodes:
        node.assert_alive()


class TellAtOnce:
    """Shows why a test is run once more: the report of the second run would be the only one otherwise."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        if report.outcome == "rerun":
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            reporter.write_line("")
            reporter.write_line(f"FAILED once, is run again on a new cluster: {report.nodeid}")
            reporter.write_line(report.longreprtext)


def pytest_configure(config):
    config.pluginmanager.register(TellAtOnce(config), "tell-at-once")
