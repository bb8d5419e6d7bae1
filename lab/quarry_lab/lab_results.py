"""
Results as data: `python -m quarry_lab results`.

    results                      writes docs/results/lab.md from the newest file of each experiment in lab/results (`make results`)
    results --check              says whether it is what those files give; exit 1 when not. Also says which result is older than the engine's code.
    results --add DIRECTORY ...  first puts the runs in these directories (build/bench/lab/e1) there: one JSON per run
            --commit HASH        of a plugin that was copied (--plugin): the commit it was built from, not the tree's while it was measured

A file has what the rules read and nothing that belongs to a machine's tree: command, commit, date, machine, configuration, the raw rounds; no absolute path.
Verdicts are not in it: they are computed from the rounds, by the rules and the published figures as they are now.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .design import published
from .design.profile import TEXTS
from .design.request import LabError
from .design.results import RunDirectory, open_run
from .catalogue import EXPERIMENTS, PUBLISHED
from .run.experiment import Experiment, Source
from quarry_server.server import REPOSITORY
from .report.stats import human_bytes
from .report.verdicts import FAIR_ROUNDS, FAIR_SECONDS, MEANINGS
from .results_tables import counts, figure_table, in_lines, meanings, rule_table, table_head, table_row, verdict_table
from .run.verb import exit_code_of

DIRECTORY, PAGE = REPOSITORY / "lab" / "results", REPOSITORY / "docs" / "results" / "lab.md"
# Figures without their rounds: shown, and not judged, until an experiment has a result.
EARLIER = "earlier.json"
ENGINE_SOURCES = ("src", "include", "plugin")
# Of a point what rules, tables and the figures beside the published ones read.
_POINT = ("round", "operation", "size_bytes", "threads", "variant", "setting", "repeat", "batch_rows", "result", "latencies", "payload_read_bytes_per_second",
          "payload_written_bytes_per_second", "timeline_started", "operations_timeline", "measured_until", "drive_bytes_per_second",
          "link_bytes_per_second", "link_by_proxy", "unseen", "memory", "server_memory", "nodes", "disk", "loaded")
_CPU = ("noisy", "seconds", "server_cpus", "client_cpus", "proxy_cpus", "daemon_cpus", "processors")
_SAMPLE = ("second", "device_busy_share", "device_read_bytes", "device_write_bytes", "machine_busy_share", "server_cpus", "drives", "work")
_SESSION = ("started", "command", "machine", "payload", "device_probes", "json_value", "links", "weak_server_processors", "memory_limit",
            "payload_bytes")
_SERVER = ("version", "pinned", "environment", "plugin_sha256", "data_nodes")
_DATE_CHARACTERS = len("2026-01-31")
_PATH = re.compile(r"(?<![\w.:])/(?:[\w.+@-]+/)*([\w.+@-]*)")
_INTRODUCTION = """# The published experiments: results

Made by `make results` from the files of `lab/results`; `make results ARGS=--check` compares.

Five published documents measured BLOBs in MySQL. This page has what each of them says, and what the same load gives on one machine here.
[parameters.md](../use/parameters.md), 'Advice', says what follows for your tables. [lab.md](../internals/lab.md) says how a verdict is made, and
[benchmarks.md](../internals/benchmarks.md) what each experiment does.

## How to read it

- **Compare ratios first.** The documents measured other machines, most of them several. Here servers and clients share one machine's processors.
  A rate is judged as it is, so a 'stronger' or 'weaker' rate may be the hardware's.
- **NDB commits in another way.** Its commit waits for the memory of both data nodes. A commit of the other engines waits for a flush.
- **Figures** are medians of the rounds; in brackets are the lowest and the highest round. `x32` means 32 client threads.
- **A gain** of +50% is half as much again. 'Sooner' is that gain in the 95th percentile of latency: +50% is two thirds of the time.
- **Published figures** are marked where the text does not have them: 'computed' from figures of the document, or 'read off a chart'. 'No figure'
  means that the document says it in words alone.
"""
_COUNTED = """How many findings have which verdict. Where Quarry was measured with NDB's default options and with its own, the first of these count.
"""


@dataclass(frozen=True)
class Result:
    """One file: what an experiment reads of a run."""

    path: Path
    run: dict
    points: list[dict]

    @property
    def session(self) -> dict:
        return self.run["sessions"][-1]

    @property
    def commits(self) -> list[str]:
        return commits_of(self.run)


def commits_of(run: dict) -> list[str]:
    """Of all its sessions, in their order: one that was broken off may have been gone on with at another commit."""
    return list(dict.fromkeys(session["machine"]["commit"] for session in run["sessions"]))


def without_paths(value):
    """The same with each absolute path cut to its last name."""
    if isinstance(value, dict):
        return {key: without_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_paths(item) for item in value]
    return _PATH.sub(r"\1", value) if isinstance(value, str) else value


def _picked(source: dict, names: tuple[str, ...]) -> dict:
    return {name: source[name] for name in names if name in source}


def _point(point: dict) -> dict:
    made = _picked(point, _POINT) | {"cpu": _picked(point["cpu"], _CPU)}
    if "written" in point:
        made["written"] = _picked(point["written"], ("server_bytes_per_payload_byte",))
    if "quarry_status" in point:
        made["quarry_status"] = {name: count for name, count in point["quarry_status"].items() if "reservation" in name}
    if "timeline" in point:
        made["timeline"] = [_picked(sample, _SAMPLE) for sample in point["timeline"]]
    return made


def content(run: RunDirectory, commit: str = "") -> dict:
    """What a file of this run holds. commit: the plugin's, if not the tree's. Raises LabError for a run that is not finished or was a look only."""
    parameters = run.run["parameters"]
    if run.run["finished"] is None:
        raise LabError(f"{run.path.name} is not finished: the command that began it goes on")
    if parameters["rounds"] < FAIR_ROUNDS or parameters["settings"]["seconds"] < FAIR_SECONDS:
        raise LabError(f"{run.path.name} has {parameters['rounds']} rounds of {parameters['settings']['seconds']} s; "
                       f"a result takes {FAIR_ROUNDS} of {FAIR_SECONDS} s")
    sessions = [_picked(session, _SESSION) | {"servers": {name: _picked(server, _SERVER) for name, server in session.get("servers", {}).items()}}
                for session in run.run["sessions"]]
    for session in sessions if commit else ():
        session["machine"] = session["machine"] | {"commit": commit, "lab_commit": session["machine"]["commit"]}
    head = {"experiment": parameters["name"], "commit": sessions[-1]["machine"]["commit"], "date": time.strftime("%Y-%m-%d", time.gmtime(run.run["finished"])),
            "parameters": parameters, "sessions": sessions}
    return without_paths(head) | {"points": [without_paths(_point(point)) for point in run.points]}


def add(run: RunDirectory, directory: Path = DIRECTORY, commit: str = "") -> Path:
    """The file that it writes. Raises LabError as content() does, and where another run of that day and commit has that name."""
    made = content(run, commit)
    directory.mkdir(parents=True, exist_ok=True)
    payload = made["parameters"]["payload"]
    kind = "" if payload == "random" else f"-{payload}"
    path = directory / f"{made['experiment']}{kind}-{made['date']}-{made['commit'] or 'unversioned'}.json"
    if path.exists() and read(path).run["parameters"] != json.loads(json.dumps(made["parameters"])):
        raise LabError(f"{path.name} is there, of a run with other parameters: remove it, if this run is to take its place")
    points = ",\n  ".join(json.dumps(point) for point in made.pop("points"))
    text = json.dumps(made, indent=1)
    path.write_text(f'{text[:-2]},\n "points": [\n  {points}\n ]\n}}\n', encoding="utf-8")
    return path


def read(path: Path) -> Result:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Result(path, {"parameters": found["parameters"], "sessions": found["sessions"], "date": found["date"]}, found["points"])


def newest(experiment: str, directory: Path = DIRECTORY) -> Result | None:
    """Of the usual payload; of one day the one whose last session began last, for names of commits have no order."""
    dates = {path: path.name.removeprefix(f"{experiment}-")[:_DATE_CHARACTERS] for path in sorted(directory.glob(f"{experiment}-[0-9]*.json"))}
    results = [read(path) for path, date in dates.items() if date == max(dates.values())]
    return max(results, key=lambda result: result.session.get("started", 0), default=None)


def is_older_than_the_engine(commit: str) -> bool | None:
    """Whether the engine's sources changed since; None where git does not know that commit."""
    command = ["git", "-C", str(REPOSITORY), "diff", "--quiet", commit, "HEAD", "--", *ENGINE_SOURCES]
    code = subprocess.run(command, capture_output=True, check=False).returncode if commit else 128
    return {0: False, 1: True}.get(code)


# --- the page ---
def block(experiment: Experiment, result: Result | None, directory: Path = DIRECTORY) -> str:
    """One experiment: what was published, what ran here, every finding, every published figure with ours, and under what."""
    if result is None:
        return "\n".join(_without_result(experiment, directory))
    assert experiment.source  # of every experiment on this page
    lines = [_document(experiment.source), "", f"**Here.** {experiment.source.here} {_ran(result)}{experiment.measured_with(result)}", ""]
    lines += [*_findings(experiment, result), "", *table_head("published", "there", "here (range of the rounds)")]
    lines += [table_row(f.what, f.value, in_lines(experiment.beside(result, f))) for f in experiment.published]
    return "\n".join([*lines, *(line for table in experiment.condition_tables(result) for line in _markdown(table))])


def _document(source: Source) -> str:
    return f"**Published.** {source.text}. {source.setup}"


def _ran(result: Result) -> str:
    parameters, machine = result.run["parameters"], result.session["machine"]
    versions = {server["version"].split(" at ")[0] for session in result.run["sessions"] for server in session.get("servers", {}).values()}
    noisy = sum(p["cpu"]["noisy"] for p in result.points)
    return (f"Measured on {result.run['date']} at {_commits(result)}; {machine['cpu']}, {machine['processors']} processors, "
            f"{human_bytes(machine['memory_bytes'])} of memory, {(machine['file_system'].split() or ['?'])[0]}; "
            f"servers {_listed(sorted(versions))}. Profile {TEXTS[parameters['profile']]}. "
            f"{parameters['rounds']} rounds of {parameters['settings']['seconds']} s; {len(result.points)} points, {noisy} of them noisy. "
            f"`lab/results/{result.path.name}` has every round.")


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _markdown(table: Table) -> list[str]:
    """A table without markup in its cells, below its title."""
    title, columns = str(table.title), [list(map(str, column.cells)) for column in table.columns]
    head = table_head(*(str(column.header) for column in table.columns))
    return ["", f"{title[:1].upper()}{title[1:]}.", "", *head, *(table_row(*cells) for cells in zip(*columns, strict=True))]


def _commits(result: Result) -> str:
    return ("commit " if len(result.commits) == 1 else "commits ") + _listed([commit or "unknown" for commit in result.commits])


def _without_result(experiment: Experiment, directory: Path) -> Iterator[str]:
    """What would be judged and how, and what an earlier run gave."""
    name = experiment.name
    assert experiment.source
    yield from (_document(experiment.source), "", "No result of this experiment is in `lab/results` yet.", "", *table_head("finding", "rule"))
    yield from (table_row(claim.says, claim.rule) for claim in published.document(name).claims.values())
    path = directory / EARLIER
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"findings": []}
    if rows := [table_row(row["finding"], row["here"]) for row in earlier["findings"] if row["experiment"] == name]:
        yield from ("", f"Figures of {earlier['date']}, without a verdict, of {earlier['about']}.", "")
        yield from (*table_head("finding", "here (range of the rounds)"), *rows)


def _findings(experiment: Experiment, result: Result) -> list[str]:
    """The verdicts in words, and the rules and figures behind them by the finding's number."""
    columns = experiment.finding_columns
    if not columns:
        found = (table_row(v.statement, v.state, in_lines(v.reason)) for v in experiment.verdicts(result))
        return [*table_head("finding", "verdict", "here (range of the rounds)"), *found]
    rows = experiment.finding_rows(result)
    return [*verdict_table(columns, rows), "", "How each is judged:", "", *rule_table(rows), "", "What each verdict rests on:", "",
            *figure_table(columns, rows)]


def _summary(results: dict[Experiment, Result | None]) -> list[str]:
    """How many findings of each experiment have which verdict, engine by engine."""
    lines = table_head("experiment", "engine", *MEANINGS)
    for experiment, result in results.items():
        if result and experiment.finding_columns:
            lines += counts(experiment.name.upper(), experiment.finding_columns, experiment.finding_rows(result))
        elif result is None:
            lines.append(table_row(experiment.name.upper(), "no result yet", *[""] * len(MEANINGS)))
    return lines


def page(directory: Path = DIRECTORY) -> str:
    """docs/results/lab.md, as the files give it."""
    results = {experiment: newest(experiment.name, directory) for experiment in PUBLISHED}
    parts = (f"## {experiment.title}\n\n{block(experiment, result, directory)}\n" for experiment, result in results.items())
    return "\n".join([_INTRODUCTION, *meanings(), "", _COUNTED, *_summary(results), "", *parts])


def _run(arguments: argparse.Namespace, console: Console) -> None:
    for directory in arguments.add:
        run = open_run(directory)
        if run is None or run.run["parameters"]["name"] not in EXPERIMENTS:
            raise LabError(f"{directory} holds no run of the lab")
        console.print(f"added {add(run, commit=arguments.commit).relative_to(REPOSITORY)}", highlight=False)
    found = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    made = page()
    for experiment in PUBLISHED:
        result = newest(experiment.name)
        if result and any(is_older_than_the_engine(commit) is not False for commit in result.commits):
            console.print(f"[yellow]{result.path.name}[/yellow] was measured at {_commits(result)}: the engine's code is another one now",
                          highlight=False)
    if arguments.check and made != found:
        raise LabError(f"{PAGE.relative_to(REPOSITORY)} is not what lab/results gives: `make results`")
    if made != found:
        PAGE.write_text(made, encoding="utf-8")
    console.print(f"{PAGE.relative_to(REPOSITORY)} is what lab/results gives", highlight=False)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="quarry_lab results", description="Makes docs/results/lab.md from lab/results.")
    parser.add_argument("--add", type=Path, nargs="+", default=[], metavar="DIRECTORY",
                        help="first put the finished runs in these directories into lab/results")
    parser.add_argument("--commit", default="", metavar="HASH", help="of the plugin in these runs, if it is a copy (--plugin)")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the page is not what the files give")
    parsed = parser.parse_args(arguments)
    return exit_code_of(lambda console: _run(parsed, console))
