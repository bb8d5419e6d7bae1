"""The bugs that simulations plant still have a place in the code: one that cannot be planted guards nothing."""

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "simulation"))

import planted  # noqa: E402


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.name)
def test_the_text_of_a_planted_bug_is_there_once(bug):
    for file, old, new in bug.edits():
        assert (REPOSITORY / file).read_text(encoding="utf-8").count(old) == 1, file
        assert old != new
    if bug.define:
        sources = [*(REPOSITORY / "src").rglob("*.cc"), *(REPOSITORY / "src").rglob("*.h")]
        assert any(bug.define in source.read_text(encoding="utf-8") for source in sources)
