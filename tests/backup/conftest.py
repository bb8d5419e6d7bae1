"""Fixtures of the backup tests."""

import re

import pytest

from drill import Drill


@pytest.fixture
def drill(request):
    """A place for backups, removed when the test is over."""
    made = Drill(re.sub(r"\W", "_", request.node.name)[:40])
    yield made
    made.remove()
