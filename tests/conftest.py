"""Fixtures of every test that starts a server. The engine under test: QUARRY_TEST_ENGINE (default QUARRY);
with InnoDB the twin tests run InnoDB against InnoDB, which checks the tests themselves."""

import pathlib
import re
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

from harness.server import ENGINE, Server, has_failed  # noqa: E402
from harness.twin import Twin  # noqa: E402
from harness.values import SEED  # noqa: E402
from quarry_lab import nightly_marker  # noqa: E402


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    setattr(item, f"report_{call.when}", outcome.get_result())


@pytest.fixture(scope="session")
def shared_server():
    """One server for every test that neither restarts nor breaks it."""
    server = Server("shared").start()
    yield server
    server.remove()


@pytest.fixture
def server(shared_server):
    """The shared server, started anew should a test before have brought it down."""
    if not shared_server.alive():
        shared_server.start()
    yield shared_server
    shared_server.assert_alive()
    shared_server.assert_no_head_was_caught()


@pytest.fixture
def twin(server, request):
    """A fresh pair of schemas named after the test; kept for a look when the test fails."""
    name = re.sub(r"\W", "_", request.node.name)[:50]
    pair = Twin(server, name)
    yield pair
    pair.close(drop=not has_failed(request))


@pytest.fixture
def own_server(request):
    """Makes servers that belong to one test: `own_server("name", "--option=1", ...)`."""
    made = []

    def make(name, *options, start=True, environment=None):
        server = Server(name, options, environment)
        made.append(server)
        return server.start() if start else server

    yield make
    for server in made:
        server.remove()


def pytest_collection_modifyitems(items):
    """What only Quarry has cannot run in the control run."""
    if ENGINE.upper() == "QUARRY":
        return
    for item in items:
        marker = item.get_closest_marker("quarry_only")
        if marker and marker.args != (False,):
            item.add_marker(
                pytest.mark.skip(reason=f"the engine under test is {ENGINE}, this tests what only Quarry has")
            )


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "quarry_only: tests something that only Quarry has; (False): not this one of a file that is marked"
    )
    config.pluginmanager.register(nightly_marker)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(
        f"engine under test: {ENGINE}; twin: InnoDB; random statements: QUARRY_TEST_SEED={SEED}"
    )
