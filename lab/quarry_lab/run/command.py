"""A run as the command line asks for it: the experiment's own request, changed by options, carried out and reported."""

from __future__ import annotations

import argparse
from dataclasses import replace

from rich.console import Console

from ..design.profile import SETTINGS
from ..design.request import LabError, Request
from ..design.results import RunDirectory, open_run
from ..report import charts
from ..servers.lab_server import parse_mycnf
from ..servers.target import NDB_ALONE, engines_of, parse_address
from .experiment import Experiment
from .session import execute


def chosen(name: str, wanted: list[str], known: list[str]) -> list[str]:
    for word in wanted:
        if word not in known:
            raise LabError(f"{name}: unknown '{word}' (allowed: {', '.join(known)})")
    return wanted


def apply_options(request: Request, arguments: argparse.Namespace) -> Request:
    """The experiment's own request, with what the command line says instead."""
    changes: dict = {"settings": _settings(request, arguments), "mycnf": {**SETTINGS[arguments.profile], **request.mycnf, **parse_mycnf(arguments.mycnf)}, "plugin": arguments.plugin,
                     "fresh": arguments.fresh, "output": arguments.output, "profile": arguments.profile}
    if arguments.rounds is not None and arguments.rounds < 1:
        raise LabError(f"--rounds must be at least 1 (got {arguments.rounds})")
    if arguments.repeat_noisy is not None:
        if arguments.repeat_noisy < 1:
            raise LabError(f"--repeat-noisy takes minutes, at least 1 (got {arguments.repeat_noisy})")
        changes["repeat_seconds_max"] = 60.0 * arguments.repeat_noisy
    for name in ("rounds", "seed", "payload"):
        if getattr(arguments, name) is not None:
            changes[name] = getattr(arguments, name)
    return replace(request, **changes)


def _settings(request: Request, arguments: argparse.Namespace):
    changes = {}
    for option, name in (("seconds", "seconds"), ("warmup", "warmup_seconds"), ("tables", "tables"), ("wait_quiet", "quiet_wait_seconds_max")):
        value = getattr(arguments, option)
        if value is not None:
            least = 0 if option in ("warmup", "wait_quiet") else 1
            if value < least:
                raise LabError(f"--{option.replace('_', '-')} must be at least {least} (got {value})")
            changes[name] = value
    return replace(request.settings, **changes)


def with_target(experiment: Experiment, request: Request, arguments: argparse.Namespace) -> Request:
    """
    The request with the target's variants beside its own: --target's, with every engine there; else those of the NDB Cluster of scripts/ndb
    (Experiment.own_target), with NDB alone, for InnoDB is in the private servers. As it is when there is neither, or the experiment takes none.
    """
    if not experiment.takes_target:
        return request
    address = parse_address(arguments.target, arguments.target_user) if arguments.target else experiment.own_target()
    if not address:
        return request
    more = experiment.on_target(request.variants, engines_of(address) if arguments.target else NDB_ALONE)
    return replace(request, target=address, variants=[*request.variants, *more])


def run_and_report(request: Request, experiment: Experiment, console: Console) -> RunDirectory:
    """After an interruption, too, the table of what is there is printed."""
    try:
        run = execute(experiment, request, console)
    except KeyboardInterrupt:
        kept = open_run(request.output_directory)
        if kept and kept.points:
            experiment.report(console, kept)
        console.print(f"[yellow]interrupted[/yellow]: {len(kept.points) if kept else 0} points are kept in {request.output_directory}; "
                      "the same command resumes")
        raise
    experiment.report(console, run)
    note = experiment.chart_note(run)
    written = [charts.save_png(figure, run.path / f"{name}.png", note=note).name for name, figure in experiment.figures(run).items()]
    files = ["points.jsonl", "points.csv", "verdicts.json", "run.json", *written]
    console.print(f"raw rounds and charts in {run.path}: {', '.join(files)}", highlight=False)
    return run
