"""scripts/result_page.py: a page is drawn from its JSON alone, and one that differs is found."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import result_page  # noqa: E402


def lines(run):
    yield from result_page.table_head(["rows"])
    yield f"| {run['rows']} |"


@pytest.fixture
def call(monkeypatch, tmp_path):
    """The script `sizes` with these arguments, in a directory of results that is empty; what it measures is 3 rows."""
    monkeypatch.setattr(result_page, "RESULTS", tmp_path)

    def called(*arguments, measure=lambda: {"rows": 3}):
        monkeypatch.setattr(sys, "argv", ["sizes", *arguments])
        return result_page.main("sizes", "Sizes", "What sizes there are.", measure, lines)

    return called


def fail():
    raise AssertionError("nothing is to be measured")


def test_a_run_is_kept_with_its_commit_and_drawn(call, tmp_path):
    assert call() == 0
    kept = json.loads((tmp_path / "sizes.json").read_text())
    assert kept["rows"] == 3 and kept["commit"] and kept["command"] == "scripts/sizes"
    page = (tmp_path / "sizes.md").read_text()
    assert page.startswith("# Sizes\n") and page.endswith("| rows |\n|---|\n| 3 |\n") and kept["commit"] in page
    assert call("--check", measure=fail) == 0


def test_a_page_that_is_not_what_its_json_gives_is_found_and_drawn_again(call, tmp_path, capsys):
    call()
    data, page = tmp_path / "sizes.json", tmp_path / "sizes.md"
    data.write_text(data.read_text().replace('"rows": 3', '"rows": 4'))
    assert call("--check", measure=fail) == 1
    assert "sizes.md is not what sizes.json gives" in capsys.readouterr().out
    assert "| 3 |" in page.read_text(), "--check writes nothing"
    assert call("--draw", measure=fail) == 0
    assert "| 4 |" in page.read_text() and call("--check", measure=fail) == 0
