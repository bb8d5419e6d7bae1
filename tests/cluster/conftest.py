"""Two Spider fronts over two shards, each with its replica, for all tests of this directory."""

import pytest

from harness.scale_out import ScaleOut


@pytest.fixture(scope="session")
def spider():
    made = ScaleOut("cluster").start()
    yield made
    made.remove()


@pytest.fixture
def cluster(spider):
    """All nodes run, every replica is in sync."""
    spider.cluster.start()
    return spider
