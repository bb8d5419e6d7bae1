"""A page of docs/results that a script makes from a JSON file next to it: measured once, drawn at any time, compared by --check."""

import argparse
import json
import subprocess
from datetime import date
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
RESULTS = REPOSITORY / "docs" / "results"


def table_head(columns):
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"


def page(name, title, run, lines):
    """The text of the page `name`; `lines`: what `run` gives, below the title."""
    head = [
        f"# {title}",
        "",
        f"Made by `scripts/{name}` from `{name}.json`; `scripts/{name} --check` compares the two.",
        f"Commit {run['commit']}, {run['date']}.",
        "",
    ]
    return "\n".join([*head, *lines(run)]) + "\n"


def _commit():
    command = ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main(name, title, purpose, measure, lines):
    """`measure()` gives what is kept as JSON; `lines(run)` the page's lines, from nothing else. Returns an exit code."""
    parser = argparse.ArgumentParser(prog=f"scripts/{name}", description=purpose.splitlines()[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare the page with its JSON; exit 1 when they differ")
    what.add_argument("--draw", action="store_true", help="make the page from the JSON that is there")
    arguments = parser.parse_args()
    data, shown = RESULTS / f"{name}.json", RESULTS / f"{name}.md"
    if arguments.check or arguments.draw:
        run = json.loads(data.read_text(encoding="utf-8"))
    else:
        run = {"command": f"scripts/{name}", "commit": _commit(), "date": date.today().isoformat()} | measure()
        data.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    text = page(name, title, run, lines)
    if arguments.check and shown.read_text(encoding="utf-8") != text:
        print(f"{name}: docs/results/{name}.md is not what {name}.json gives: run scripts/{name} --draw")
        return 1
    if not arguments.check:
        shown.write_text(text, encoding="utf-8")
        print(text)
    return 0
