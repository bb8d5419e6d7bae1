"""scripts/tables: a page for each file of measured tables, and one that differs is found."""

import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SECTION = {"title": "Inserts", "about": ["8 clients."], "columns": ["batch", "rows/s"], "rows": [["0", "10"], ["1", "20"]]}


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("tables", str(SCRIPTS / "tables"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tables", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "DIRECTORY", tmp_path / "tables")
    monkeypatch.setattr(module.result_page, "RESULTS", tmp_path)
    (tmp_path / "tables").mkdir()

    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["tables", *arguments])
        return module.main()

    return called


def test_a_page_is_what_its_file_gives_and_another_one_is_found(call, tmp_path, capsys):
    file, page = tmp_path / "tables" / "tried.json", tmp_path / "tried.md"
    file.write_text(json.dumps({"title": "Tried", "about": ["By hand."], "sections": [SECTION]}))
    assert call("--check") == 1 and not page.exists(), "a page that is missing differs"
    assert call() == 0 and call("--check") == 0
    text = page.read_text()
    assert text.startswith("# Tried\n")
    assert "\n\nBy hand.\n\n## Inserts\n\n8 clients.\n\n| batch | rows/s |\n|---|---|\n| 0 | 10 |\n| 1 | 20 |\n" in text
    page.write_text(text.replace("20", "30"))
    assert call("--check") == 1
    assert "tried.md" in capsys.readouterr().out and "| 1 | 30 |" in page.read_text(), "--check writes nothing"


def test_a_row_that_lacks_a_cell_makes_no_page(call, tmp_path, capsys):
    """Its figures would stand below the wrong heads."""
    short = {**SECTION, "rows": [["0", "10"], ["1"]]}
    (tmp_path / "tables" / "tried.json").write_text(json.dumps({"title": "Tried", "about": [], "sections": [short]}))
    assert call() == 1 and not (tmp_path / "tried.md").exists()
    assert capsys.readouterr().out == "tables: tried.json, 'Inserts': 1 cells for 2 columns: 1\n"
