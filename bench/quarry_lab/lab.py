"""`lab`: runs every experiment that is built, in order, and writes one self-contained report (build/bench/lab/index.html)."""

from __future__ import annotations

import argparse
import html
import io
import time
from pathlib import Path

from rich.console import Console

from . import charts
from .cli import apply_options, run_and_report
from .experiments.catalogue import EXPERIMENTS
from .request import BENCH_OUTPUT
from .results import RunDirectory

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Quarry lab</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }}
h1, h2 {{ font-weight: 600; }} pre {{ font-size: 12px; overflow-x: auto; line-height: 1.25; }}
svg {{ max-width: 100%; height: auto; display: block; margin: 1rem 0; }} .dim {{ color: #777; }}
</style></head><body>
<h1>Quarry lab</h1><p class="dim">{when}; scale {scale}. Figures are medians over rounds; bars show the range. Raw rounds lie beside each run.</p>
{sections}
</body></html>
"""


def section_html(experiment, run: RunDirectory, title: str) -> str:
    """The experiment's own tables as text, its charts as inline SVG."""
    recording = Console(record=True, width=170, file=io.StringIO())
    experiment.report(recording, run)
    text = recording.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
    pictures = "".join(charts.svg(figure) for figure in experiment.figures(run).values())
    machine = run.run["sessions"][-1]["machine"]
    about = f"{machine['cpu']}, {machine['processors']} processors, {machine['file_system']}, {machine['sysbench']}, commit {machine['commit']}"
    return f"<h2>{html.escape(title)}</h2><p class='dim'>{html.escape(about)}</p>{text}{pictures}"


def run(arguments: argparse.Namespace, console: Console) -> Path:
    sections = []
    payloads = ["random", "text3"] if arguments.scale == "full" and not arguments.payload else [arguments.payload or "random"]
    for experiment in EXPERIMENTS.values():
        for payload in payloads:
            # The scale first: what the command line says in so many words stays.
            request = apply_options(experiment.request(arguments.scale), arguments)
            request.payload = payload
            base = arguments.output or BENCH_OUTPUT / "lab"
            request.output = base / (request.name if payload == "random" else f"{request.name}-{payload}")
            done = run_and_report(request, experiment, console)
            sections.append(section_html(experiment, done, f"{experiment.title} ({payload})"))
    target = (arguments.output or BENCH_OUTPUT / "lab") / "index.html"
    target.write_text(_PAGE.format(when=time.strftime("%Y-%m-%d %H:%M"), scale=arguments.scale, sections="\n".join(sections)))
    console.print(f"report: {target}", highlight=False)
    return target
