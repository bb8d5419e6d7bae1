"""Fixtures of tests that search logs and results for heads (tests/harness/lookers.py)."""

import re

import pytest

from harness.lookers import LOG_OPTIONS, LoggedPair
from harness.server import Server, has_failed


@pytest.fixture(scope="session")
def logged_server():
    made = Server("logged", LOG_OPTIONS).start()
    yield made
    made.remove()


@pytest.fixture(scope="session")
def restored_server():
    """What is restored from the logs; it keeps none of its own, so nothing makes it decode what it applies but need."""
    made = Server("restored").start()
    yield made
    made.remove()


@pytest.fixture
def make_pair(logged_server, restored_server, request):
    """Makes pairs of schemas, `make_pair(image)`, that are compared with their restored copies when the test is over."""
    made = []

    def make(image="FULL"):
        for server in (logged_server, restored_server):
            if not server.alive():
                server.start()
        name = re.sub(r"\W", "_", request.node.name)[:44]
        made.append(LoggedPair(logged_server, restored_server, name, image))
        return made[-1]

    yield make
    for pair in made:
        pair.close(drop=not has_failed(request))
    for server in (logged_server, restored_server):
        server.assert_alive()


@pytest.fixture(params=["FULL", "MINIMAL", "NOBLOB"])
def pair(make_pair, request):
    """One for each row image."""
    return make_pair(request.param)
