"""Pytest's marker `nightly`, for the tests of the lab and of the engine alike: what .ci/run leaves out is named at the end of its output.

A conftest.py registers it: `config.pluginmanager.register(nightly_marker)`. The workers of pytest-xdist hand what they
left out to the process that writes the summary; each of them looks at every test.
"""

import pytest

left_out = []


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: too long for each change, and seldom new: .ci/run leaves it to `make nightly`")


def pytest_deselected(items):
    left_out.extend(item.nodeid for item in items if item.get_closest_marker("nightly"))


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = left_out


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    left_out[:] = getattr(node, "workeroutput", {}).get("left_out", left_out)


def pytest_terminal_summary(terminalreporter):
    if left_out and terminalreporter.config.option.markexpr == "not nightly":
        terminalreporter.write_line(f"left to `make nightly`: {', '.join(left_out)}")
