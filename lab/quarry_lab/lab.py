"""
`lab`: runs the published experiments in order and writes one report (build/bench/lab/index.html), lab.json and lab.csv.

Everything that is missing for any of them is said before the first starts, and so is the planned wall time. An interrupted lab keeps
what it has and a report of it; the same command goes on: finished experiments are kept, the interrupted one is resumed.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import lab_page
from .design.cells import p95_ms, throughput
from .design.request import BENCH_OUTPUT, LabError, Request, parse_options
from .design.results import open_run
from .catalogue import PUBLISHED
from .experiments.guard import experiment as guard
from .lab_page import Chapter
from .report import stats
from .run import session
from .run.command import apply_options, chosen, run_and_report, with_target
from .run.experiment import Experiment


GUARD = "guard"  # a scale of the lab alone: two builds


@dataclass(frozen=True)
class Step:
    """One experiment with one payload, and what of it is still to be done."""

    experiment: Experiment
    request: Request
    points: int
    left: int
    seconds: float
    target_is_left_out: bool


class LabState:
    """lab.json: what was asked for, when it began and ended, and at the end every verdict. Externally synchronised."""

    def __init__(self, directory: Path, asked: dict, fresh: bool, reopen: bool = False):
        """reopen: a finished lab that asked for the same is gone on with, too."""
        self.path = directory / "lab.json"
        directory.mkdir(parents=True, exist_ok=True)
        before = json.loads(self.path.read_text()) if self.path.exists() else None
        self.resumed = bool(before and not fresh and (reopen or before["finished"] is None) and before["asked"] == json.loads(json.dumps(asked)))
        self.content = before if before and self.resumed else {
            "asked": asked, "scale": asked["scale"], "started": time.time(), "finished": None, "planned_seconds": 0}
        self.write()

    def write(self) -> None:
        temporary = self.path.with_suffix(".json.new")
        temporary.write_text(json.dumps(self.content, indent=1) + "\n")
        temporary.rename(self.path)


def requests_of(arguments: argparse.Namespace) -> list[tuple[Experiment, Request]]:
    names = [e.name for e in PUBLISHED]
    wanted = chosen("--only", arguments.only, names) if arguments.only else names
    base = arguments.output or BENCH_OUTPUT / "lab"
    experiments = [e for e in PUBLISHED if e.name in wanted]
    _check_options(experiments, arguments)
    made = []
    for experiment in experiments:
        # The scale first: what the command line says in so many words stays.
        request = apply_options(experiment.request(arguments.scale), arguments)
        request.options = parse_options(request.options, [pair for pair in arguments.option if pair.partition("=")[0] in request.options])
        request = with_target(experiment, request, arguments)
        payloads = experiment.payloads if arguments.scale == "full" and not arguments.payload else (request.payload,)
        for payload in payloads:
            name = experiment.name if payload == "random" else f"{experiment.name}-{payload}"
            made.append((experiment, replace(request, payload=payload, output=base / name)))
    return made


def _check_options(experiments: list[Experiment], arguments: argparse.Namespace) -> None:
    """Each is some experiment's: it goes to those that have it. Raises LabError."""
    known = {name: value for experiment in experiments for name, value in experiment.request(arguments.scale).options.items()}
    parse_options(known, arguments.option)


def _is_kept(experiment: Experiment, request: Request, state: LabState | None) -> bool:
    """Finished by the interrupted lab that is being resumed, with these parameters."""
    kept = open_run(request.output_directory)
    return bool(state and state.resumed and kept and kept.run["finished"] and kept.is_of(experiment.identity(request)))


def missing_of(wanted: list[tuple[Experiment, Request]]) -> list[str]:
    missing = []
    for experiment, request in wanted:
        try:
            session.check(experiment, request)
        except LabError as error:
            missing.append(str(error))
    return missing


def check_all(wanted: list[tuple[Experiment, Request]]) -> None:
    """What is missing for any of them, all at once. Raises LabError."""
    if missing := missing_of(wanted):
        raise LabError("before anything starts:\n  " + "\n  ".join(missing) + "\n(--only runs some of the experiments)")


def plan(wanted: list[tuple[Experiment, Request]], state: LabState | None, has_target: bool) -> list[Step]:
    """state: None where nothing is to be written, as of a plan that is only shown."""
    steps = []
    for experiment, request in wanted:
        points, left = session.left_to_do(experiment, request)
        left = [] if _is_kept(experiment, request, state) else left
        steps.append(Step(experiment, request, len(points), len(left), experiment.planned_seconds(request, left) if left else 0,
                          has_target and not experiment.takes_target))
    return steps


def print_plan(console: Console, steps: list[Step], scale: str) -> None:
    table = Table(show_header=True, box=None, padding=(0, 2), header_style="bold")
    for heading, justify in (("experiment", "left"), ("points", "right"), ("planned", "right"), ("free disk", "right")):
        table.add_column(heading, justify=justify)
    disks = [step.experiment.disk_bytes(step.request) for step in steps]
    for step, disk in zip(steps, disks, strict=True):
        count = str(step.points) if step.left == step.points else f"{step.left} left of {step.points}"
        table.add_row(f"{step.experiment.title} ({step.request.payload})", count, stats.human_seconds(step.seconds), stats.human_bytes(disk))
    most = stats.human_bytes(max(disks, default=0))  # one runs after the other
    seconds = stats.human_seconds(sum(s.seconds for s in steps))
    table.add_row("[bold]together[/bold]", str(sum(s.left for s in steps)), f"[bold]{seconds}[/bold]", most)
    if left_out := [s.experiment.name for s in steps if s.target_is_left_out]:
        console.print(f"[yellow]--target is left out of[/yellow] {', '.join(dict.fromkeys(left_out))}: their clients know the private servers only", highlight=False)
    console.print(f"the lab at scale '{scale}'; Ctrl-C keeps what is done, the same command goes on", highlight=False)
    if scale == "quick":
        console.print("[yellow]a look, not a measurement[/yellow]: one short round of a small grid, and no verdicts", highlight=False)
    console.print(table, highlight=False)


def print_details(console: Console, steps: list[Step]) -> None:
    """Of --dry-run: what each experiment would measure, in its parts, and what it lacks."""
    table = Table(show_header=True, box=None, padding=(0, 2), header_style="bold")
    for heading, justify in (("part", "left"), ("what", "left"), ("points", "right"), ("planned", "right")):
        table.add_column(heading, justify=justify)
    for step in steps:
        _points, left = session.left_to_do(step.experiment, step.request)
        for row in step.experiment.plan_rows(step.request, left if step.left else []):
            table.add_row(f"{step.experiment.name}: {row.what}", row.cells, str(row.points), stats.human_seconds(row.seconds))
    console.print(table, highlight=False)
    for lacking in missing_of([(step.experiment, step.request) for step in steps]):
        console.print(f"[yellow]missing:[/yellow] {lacking}", highlight=False)


def write_report(directory: Path, steps: list[Step], state: LabState) -> Path | None:
    """From what is there; None when no point is."""
    chapters = [Chapter(step.experiment, run) for step in steps if (run := open_run(step.request.output_directory)) and run.points]
    if not chapters:
        return None
    target = directory / "index.html"
    target.write_text(lab_page.render(chapters, state.content), encoding="utf-8")
    state.content["verdicts"] = {c.anchor: [asdict(v) for v in c.verdicts()] for c in chapters}
    state.content["published"] = {c.anchor: [{"what": f.what, "there": f.value, "place": f.figure.place, "here": c.experiment.beside(c.run, f)}
                                             for f in c.experiment.published] for c in chapters}
    state.write()
    write_medians(directory / "lab.csv", chapters)
    return target


def write_medians(path: Path, chapters: list[Chapter]) -> None:
    """One row per cell and variant of every experiment."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "operation", "setting", "size_bytes", "threads", "variant", "rounds", "noisy_rounds", "events_per_second",
                         "events_per_second_low", "events_per_second_high", "latency_p95_ms"])
        for chapter in chapters:
            cells = chapter.experiment.cells_of(chapter.run)
            for key in cells.keys():
                for variant in cells.variants():
                    rate, late = cells.summary(key, variant, throughput), cells.summary(key, variant, p95_ms)
                    if rate:
                        writer.writerow([chapter.anchor, key.operation, key.setting, key.size_bytes, key.threads, variant, rate.rounds,
                                         cells.noisy_rounds(key, variant), rate.median, rate.low, rate.high, late.median if late else ""])


def run(arguments: argparse.Namespace, console: Console) -> None:
    if arguments.scale == GUARD:
        guard.run(arguments, console)
        return
    wanted = requests_of(arguments)
    if arguments.dry_run:
        steps = plan(wanted, None, bool(arguments.target))
        print_plan(console, steps, arguments.scale)
        print_details(console, steps)
        return
    check_all(wanted)
    directory = arguments.output or BENCH_OUTPUT / "lab"
    asked = {"scale": arguments.scale, "runs": [experiment.identity(request) for experiment, request in wanted]}
    state = LabState(directory, asked, arguments.fresh, arguments.repeat_noisy is not None)
    steps = plan(wanted, state, bool(arguments.target))
    print_plan(console, steps, arguments.scale)
    if not state.resumed:
        state.content["planned_seconds"] = sum(step.seconds for step in steps)
        state.write()
    try:
        for step in steps:
            if step.left or step.request.repeat_seconds_max:
                run_and_report(step.request, step.experiment, console)
                write_report(directory, steps, state)
        state.content["finished"] = time.time()
    finally:
        target = write_report(directory, steps, state)
        if target:
            console.print(f"report: {target}", highlight=False, soft_wrap=True)
