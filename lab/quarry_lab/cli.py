"""The command line: `python -m quarry_lab bench ...` and `lab ...`; every other verb belongs to a module of its own."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from pathlib import Path

from quarry_server.server import PLUGIN
from rich.console import Console

from . import lab
from .design import profile, variants
from .design.request import SCALES, LabError, Request, parse_options
from .design.variants import BASELINE_SUFFIX, KIB
from .catalogue import EXPERIMENTS
from .load.payload import KINDS
from .run.command import apply_options, chosen, run_and_report, with_target
from .run.experiment import Experiment
from .run.verb import exit_code_of, numbers
from .servers.target import PASSWORD_VARIABLE

# Verbs of other parts of the package, each with a main(arguments) of its own.
OTHER_VERBS = {"builds": "quarry_lab.builds", "demo": "quarry_lab.demo", "results": "quarry_lab.lab_results", "turns": "quarry_lab.turns"}

# What `make bench EXP=` takes beside the experiments.
COMPARISONS = {"builds": "two builds of the plugin: the processor time of one connection (BASE=OLD.so)",
               "turns": "engines within one load, each the only one for a quarter of a second at a time"}


def _words(text: str) -> list[str]:
    return text.split(",")


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="quarry_lab", description="Measures Quarry against other engines on private servers.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    bench = verbs.add_parser("bench", help="run one experiment", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    bench.add_argument("--exp", choices=sorted(EXPERIMENTS), help="which one; without it they are listed")
    bench.add_argument("--scale", choices=SCALES, default="normal", help="quick: one short round of a small grid, for a look; full: five rounds or a larger grid")
    bench.add_argument("--sizes", type=numbers, metavar="KB,...", help="value sizes in KB (default: the experiment's)")
    bench.add_argument("--threads", type=numbers, metavar="N,...", help="client threads (default: the experiment's)")
    bench.add_argument("--ops", type=_words, metavar="OP,...", help="operations (default: the experiment's)")
    bench.add_argument("--engines", type=_words, metavar="NAME,...", help="variants (default: the experiment's, and those of the target)")
    _add_run_options(bench)
    bench.add_argument("--apart", action="store_true",
                       help="clients on the last processor, servers on the others: what a statement costs the server, with less of the scheduler's chance")
    lab_verb = verbs.add_parser("lab", help="run the published experiments and write one report",
                                formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    lab_verb.add_argument("--scale", choices=(*SCALES, lab.GUARD), default="normal",
                          help="quick: one short round of everything, for a look; normal: fair rounds (--dry-run says how long); full: a larger grid, "
                               "five rounds, both payloads; guard: a quarter of an hour, the build in --plugin against that in --baseline-plugin")
    lab_verb.add_argument("--only", type=_words, metavar="NAME,...", help="these experiments (default: all that are published)")
    lab_verb.add_argument("--dry-run", action="store_true", help="say what would be measured, how long it takes and what is missing; measure nothing")
    _add_run_options(lab_verb)
    for verb in OTHER_VERBS:
        verbs.add_parser(verb, add_help=False, help=f"see `{verb} --help`")
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=int, metavar="S", help="measured seconds of a point (default: the experiment's; fair: at least 10)")
    parser.add_argument("--warmup", type=int, metavar="S", help="warm-up seconds of a point (default: the experiment's)")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds (default: the experiment's; fair: at least 3)")
    parser.add_argument("--seed", type=int, help="seed of the order of the points")
    parser.add_argument("--tables", type=int, metavar="N", help="tables per variant")
    parser.add_argument("--wait-quiet", type=int, metavar="S", help="wait up to S seconds before a point while other processes use the processors")
    parser.add_argument("--repeat-noisy", type=int, metavar="MINUTES", help="at the end measure again what was disturbed, for so long at most; also of a run that is finished")
    parser.add_argument("--payload", choices=KINDS, help="random: incompressible; text3: about 3:1")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an experiment's own option (docs/internals/benchmarks.md); repeatable")
    parser.add_argument("--mycnf", action="append", default=[], metavar="KEY=VALUE", help="server setting, the same for all engines; repeatable")
    parser.add_argument("--plugin", type=Path, default=PLUGIN, metavar="SO", help="the plugin to measure")
    parser.add_argument("--baseline-plugin", type=Path, metavar="SO",
                        help="bench: also measure this build of the plugin, in a second server; of the lab's scale guard: the older build")
    parser.add_argument("--target", metavar="HOST:PORT|SOCKET", help="also measure this server, with every engine that it offers (default: the NDB Cluster of `make ndb`, if it runs)")
    parser.add_argument("--target-user", default="root", metavar="NAME", help=f"who to be there; the password is taken from ${PASSWORD_VARIABLE}")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the results go (default: build/bench/<experiment>)")
    parser.add_argument("--fresh", action="store_true", help="start anew even when an interrupted run could be resumed")
    parser.add_argument("--profile", choices=sorted(profile.SETTINGS), default=profile.PRODUCTION,
                        help="; ".join(profile.TEXTS.values()))


def bench_request(experiment: Experiment, arguments: argparse.Namespace) -> Request:
    request = apply_options(experiment.request(arguments.scale), arguments)
    request.options = parse_options(request.options, arguments.option)
    if arguments.sizes:
        request.sizes_bytes = [s * KIB for s in arguments.sizes]
    if arguments.threads:
        request.threads = arguments.threads
    if arguments.ops:
        request.operations = chosen("--ops", arguments.ops, list(experiment.operations))
    request = with_target(experiment, request, arguments)
    if arguments.engines:
        request.variants = chosen("--engines", arguments.engines, list(experiment.labels))
    if arguments.apart:
        if not experiment.takes_apart:
            raise LabError(f"{experiment.name} takes no --apart (those that do: {', '.join(k for k, e in sorted(EXPERIMENTS.items()) if e.takes_apart)})")
        request.apart = True
    if arguments.baseline_plugin:
        request.baseline_plugin = arguments.baseline_plugin
        if not any(variant.endswith(BASELINE_SUFFIX) for variant in request.variants):
            request.variants = [*request.variants, "quarry-baseline"]
    return request


def list_experiments(console: Console) -> None:
    """One a line."""
    for name, title in ({name: e.title for name, e in EXPERIMENTS.items()} | COMPARISONS).items():
        console.print(f"{name:<10} {title}", highlight=False, soft_wrap=True)


def run_bench(arguments: argparse.Namespace, console: Console) -> None:
    if not arguments.exp:
        list_experiments(console)
        return
    experiment = EXPERIMENTS[arguments.exp]
    run_and_report(bench_request(experiment, arguments), experiment, console)


def _interrupt(_signal_number, _frame) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)  # one way to end early: points kept, servers stopped, data removed
    if arguments and arguments[0] in OTHER_VERBS:
        return importlib.import_module(OTHER_VERBS[arguments[0]]).main(arguments[1:]) or 0
    parsed = build_parser().parse_args(arguments)
    run = run_bench if parsed.verb == "bench" else lab.run
    return exit_code_of(lambda console: run(parsed, console))
