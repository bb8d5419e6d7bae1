"""scripts/items: what an entry has to have, which names it finds, and when the page is out of date."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ENTRIES = """
[[document]]
title = "First"
first = 1
last = 2

[[document.item]]
number = 1
what = "an option | a default"
state = "yes"
place = ["options.cc", "use/guide.md, 'Sizes'"]
test = ["options_test.cc::TakesSizes"]

[[document.item]]
number = 2
what = "a claim"
state = "no"
note = "no finding"

[[document]]
title = "Second"
first = 3
last = 3

[[document.item]]
number = 3
what = "a data node"
state = "elsewhere"
place = ["guide.md, 'Sizes'"]
note = "one server"
"""


@pytest.fixture
def items(monkeypatch, tmp_path):
    loader = importlib.machinery.SourceFileLoader("items", str(REPOSITORY / "scripts" / "items"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("items", loader))
    monkeypatch.setitem(sys.modules, "items", module)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    for name, text in {
        "plugin/columns/options.cc": "",
        "plugin/columns/options_test.cc": "TEST(Options, TakesSizes) {}\n",
        "docs/use/guide.md": "# Guide\n\n## Sizes: how large\n",
        "docs/operate/notes.md": "",
        "docs/internals/notes.md": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return module


def found(items, tmp_path, entries):
    path = tmp_path / "items.toml"
    path.write_text(entries, encoding="utf-8")
    check_docs = items.check_docs()
    check_docs.REPOSITORY = tmp_path
    return list(items.problems(items.load(path), items.Tree(tmp_path), check_docs.guard_exists))


def test_the_page_is_what_the_entries_give():
    done = subprocess.run([REPOSITORY / "scripts" / "items", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "163 items" in done.stdout


def test_files_are_found_wherever_they_lie(items, tmp_path):
    assert found(items, tmp_path, ENTRIES) == []
    (tmp_path / "plugin/elsewhere").mkdir()
    (tmp_path / "plugin/columns/options.cc").rename(tmp_path / "plugin/elsewhere/options.cc")
    assert found(items, tmp_path, ENTRIES) == []


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("number = 2", "number = 1", ["item 1 of 'First' is there 2 times", "item 2 of 'First' is there 0 times"]),
        ("number = 3", "number = 4", ["item 3 of 'Second' is there 0 times", "'Second' has no item 4 (allowed: 3 to 3)"]),
        ("first = 3", "first = 4", ["its first one should be 3"]),
        ("options.cc", "option.cc", ["item 1: 'option.cc' does not exist"]),
        ("use/guide.md", "operate/guide.md", ["item 1: 'operate/guide.md' does not exist"]),
        ("options.cc", "notes.md", ["'notes.md' is 2 files: docs/internals/notes.md, docs/operate/notes.md"]),
        ("'Sizes'", "'Size'", ["guide.md has no section 'Size'"]),
        ("TakesSizes", "TakesSize", ["plugin/columns/options_test.cc has no test 'TakesSize'"]),
        ("::TakesSizes", "", ["is neither file::test nor page.md, 'Section'"]),
        ('state = "yes"', 'state = "done"', ["state 'done' (allowed: yes, partly, no, elsewhere)"]),
        ('note = "no finding"', "", ["item 2: an item that is 'no' has to have 'note'"]),
        ('note = "no finding"', 'why = "no finding"', ["item 2: unknown key 'why'"]),
        ('test = ["options_test.cc::TakesSizes"]', "", ["item 1: an item that is 'yes' has to have 'test'"]),
        ('note = "no finding"', 'note = "none"\nresult = "e6"', ["item 2: no experiment 'e6' (allowed: e1, e2, e3, e4, e5)"]),
    ],
)
def test_what_is_wrong_is_named(items, tmp_path, old, new, said):
    assert old in ENTRIES
    problems = "\n".join(found(items, tmp_path, ENTRIES.replace(old, new, 1)))
    assert all(words in problems for words in said), problems


def test_entries_that_cannot_be_read_are_named(items, tmp_path):
    with pytest.raises(items.ItemsError, match="items.toml"):
        found(items, tmp_path, "[[document]")
    assert found(items, tmp_path, "") == ["no document is in it"]


def test_the_page_has_counts_on_top_and_a_table_for_each_document(items, tmp_path):
    assert found(items, tmp_path, ENTRIES) == []
    text = items.page(items.load(tmp_path / "items.toml"), set())
    assert text.index("| First | 2 | 1 | 0 | 0 | 1 | 0 |") < text.index("| all | 3 | 1 | 0 | 0 | 1 | 1 |") < text.index("## First")
    assert "| 1 | an option \\| a default | yes | `options.cc`; use/guide.md, 'Sizes' | `options_test.cc::TakesSizes` |  |" in text
    assert text.index("## First") < text.index("## Second")


@pytest.mark.parametrize(
    "state, note, shown, lacking",
    [
        ("yes", "", "unmeasured", "e2 has no result yet"),
        ("partly", "one size", "partly", "one size; e2 has no result yet"),
    ],
)
def test_an_item_that_a_result_answers_waits_for_it(items, tmp_path, state, note, shown, lacking):
    entries = ENTRIES.replace('state = "yes"', f'state = "{state}"\nresult = "e2"\nnote = "{note}"')
    assert found(items, tmp_path, entries) == []
    results = tmp_path / "lab" / "results"
    results.mkdir(parents=True)
    (results / "e1-2026-01-02-abc1234.json").touch()
    documents = items.load(tmp_path / "items.toml")

    def row():
        return next(line for line in items.page(documents, items.measured(tmp_path)).splitlines() if line.startswith("| 1 |"))

    assert f" | {shown} | " in row() and row().endswith(f"| {lacking} |")
    (results / "e2-2026-01-02-abc1234.json").touch()
    assert f" | {state} | " in row() and row().endswith(f"| {note} |")


def test_a_page_that_is_out_of_date_is_refused_and_made_anew(items, tmp_path, monkeypatch, capsys):
    assert found(items, tmp_path, ENTRIES) == []
    (tmp_path / "items.toml").rename(tmp_path / "docs/items.toml")
    check_docs = items.check_docs()
    check_docs.REPOSITORY = tmp_path
    monkeypatch.setattr(items, "check_docs", lambda: check_docs)
    monkeypatch.setattr(items, "REPOSITORY", tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["items", *arguments])
        return items.main()

    assert run("--check") == 1 and "run scripts/items" in capsys.readouterr().out
    assert run() == 0 and run("--check") == 0
    page = tmp_path / items.PAGE
    page.write_text(page.read_text(encoding="utf-8") + "a line\n", encoding="utf-8")
    assert run("--check") == 1
