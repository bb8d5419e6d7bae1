"""
The lab's report: one self-contained HTML page from the runs of its experiments. render() only reads; every figure comes from raw rounds
by way of the experiments' own figures(), tables() and verdicts().
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from .design.results import RunDirectory
from .lab_results import is_older_than_the_engine
from .probes.noise import NOISE_CPUS_MAX
from .report import charts, stats, verdicts
from .report.html_table import html_table
from .report.verdicts import ANSWERED, FAIR_ROUNDS, FAIR_SECONDS, MIXED, NOT_JUDGED, NOT_MEASURED, OPPOSITE, REPRODUCED, STRONGER, WEAKER, Verdict
from .run.experiment import Experiment

_TEMPLATE = Path(__file__).parent / "lab_page.html"
_STYLE = Path(__file__).parent / "page.css"
_CHIPS = {REPRODUCED: "yes", STRONGER: "yes", WEAKER: "no", OPPOSITE: "no", MIXED: "question", ANSWERED: "question"}


@dataclass(frozen=True)
class Chapter:
    """One experiment with one payload."""

    experiment: Experiment
    run: RunDirectory

    @property
    def anchor(self) -> str:
        return self.run.path.name

    @property
    def title(self) -> str:
        payload = self.run.run["parameters"]["payload"]
        return self.experiment.title + ("" if payload == "random" else f" (payload {payload})")

    @property
    def last_session(self) -> dict:
        return self.run.run["sessions"][-1]

    def verdicts(self) -> list[Verdict]:
        return self.experiment.verdicts(self.run)


def render(chapters: list[Chapter], lab: dict) -> str:
    """lab: scale, started, finished (None while unfinished), commit, planned_seconds. At least one chapter has points."""
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        style=_STYLE.read_text(encoding="utf-8"), commit=escape(chapters[0].last_session["machine"]["commit"] or "unversioned"),
        date=time.strftime("%e %B %Y, %H:%M", time.localtime(lab["started"])).strip(),
        headline=_headline(chapters), lead=_lead(chapters, lab), cards=_cards(chapters), alarms=_alarms(chapters, lab), contents=_contents(chapters),
        verdicts=_verdict_rows(chapters), sections="".join(_section(chapter) for chapter in chapters),
        noise=NOISE_CPUS_MAX, fair_rounds=FAIR_ROUNDS, fair_seconds=FAIR_SECONDS, configuration=_configuration(chapters), footer=_footer(lab))


# --- the top ---
def _headline(chapters: list[Chapter]) -> str:
    published = len({c.experiment.name for c in chapters if c.experiment.source})
    words = ("No", "One", "Two", "Three", "Four", "Five")
    return f"{words[published] if published < len(words) else published} published BLOB benchmark{'s' * (published != 1)}, run again here"


def _lead(chapters: list[Chapter], lab: dict) -> str:
    machine = chapters[0].last_session["machine"]
    points = sum(len(c.run.points) for c in chapters)
    return escape(f"{machine['cpu']}, {machine['processors']} processors, {stats.human_bytes(machine['memory_bytes'])} of memory, "
                  f"{(machine['file_system'].split() or ['?'])[0]}. {points:,} points at scale '{lab['scale']}', private servers, every commit durable.")


def _states(chapters: list[Chapter]) -> Counter:
    return Counter(v.state for chapter in chapters for v in chapter.verdicts())


def _card(figure: str, text: str, small: str = "") -> str:
    return f'<div class="figure"><b>{escape(figure)}</b><span>{escape(text)}</span><small>{escape(small)}</small></div>'


def _noisy(points: list[dict]) -> int:
    return sum(bool(p["cpu"]["noisy"]) for p in points)


def _cards(chapters: list[Chapter]) -> str:
    states = _states(chapters)
    points = [p for c in chapters for p in c.run.points]
    taken = sum(p["cpu"]["seconds"] for p in points)
    return "".join((
        _card(str(states[REPRODUCED]), "findings reproduced"),
        _card(str(states[STRONGER]), "stronger", "the same way, and more"),
        _card(str(states[WEAKER]), "weaker", "less than published, or nothing"),
        _card(str(states[OPPOSITE]), "opposite", "in every round"),
        _card(str(states[MIXED]), "mixed", "not at all client levels"),
        _card(str(states[ANSWERED]), "open questions answered"),
        _card(str(states[NOT_JUDGED]), "not judged", "too short, or disturbed"),
        _card(str(states[NOT_MEASURED]), "not measured", "and what was lacking"),
        _card(f"{taken / 60:,.0f} min", "of measured time", f"{_noisy(points)} of {len(points)} points noisy"),
    ))


def _alarms(chapters: list[Chapter], lab: dict) -> str:
    points = [p for c in chapters for p in c.run.points]
    found = []
    if any(c.run.run["finished"] is None for c in chapters) or lab["finished"] is None:
        found.append("This report is of an unfinished run: some points are missing.")
    if _noisy(points) > len(points) * verdicts.NOISY_SHARE_MAX:
        found.append(f"The machine was not quiet: other work disturbed {_noisy(points)} of {len(points)} points. Figures are shown, conclusions are not drawn.")
    if old := [c.experiment.name.upper() for c in chapters if is_older_than_the_engine(c.last_session["machine"]["commit"])]:
        found.append(f"Older than the code: the engine's sources changed since {', '.join(dict.fromkeys(old))} ran.")
    short = [c for c in chapters if c.run.run["parameters"]["rounds"] < FAIR_ROUNDS or c.run.run["parameters"]["settings"]["seconds"] < FAIR_SECONDS]
    if short:
        names = ", ".join(dict.fromkeys(c.experiment.name.upper() for c in short))
        found.append(f"A look, not a measurement: {names} ran fewer than {FAIR_ROUNDS} rounds of {FAIR_SECONDS} s and get no verdicts.")
    return "".join(f'<p class="alarm">{escape(text)}</p>' for text in found)


def _contents(chapters: list[Chapter]) -> str:
    links = [("verdicts", "Verdicts"), *((c.anchor, c.title) for c in chapters), ("method", "Method and machine")]
    return "".join(f'<a href="#{escape(anchor)}">{escape(title)}</a>' for anchor, title in links)


# --- verdicts ---
def _chip(state: str) -> str:
    return f'<span class="chip {_CHIPS.get(state, "none")}">{escape(state)}</span>'


def _verdict_rows(chapters: list[Chapter]) -> str:
    rows = []
    for chapter in chapters:
        rows.append(f'<tr class="group"><td colspan="3">{escape(chapter.title)}</td></tr>')
        rows += [f"<tr><td>{escape(v.statement)}</td><td>{_chip(v.state)}</td><td>{escape(v.reason)}</td></tr>" for v in chapter.verdicts()]
    return "".join(rows)


# --- one experiment ---
def _section(chapter: Chapter) -> str:
    experiment, run = chapter.experiment, chapter.run
    head, _, rest = chapter.title.partition(": ")
    title = f'<span class="eyebrow">{escape(head)}</span>{escape(rest[:1].upper() + rest[1:])}' if rest else escape(chapter.title)
    pictures = "".join(f'<div class="chart">{charts.svg(figure)}</div>' for figure in experiment.figures(run).values()) if run.points else ""
    tables = "".join(html_table(table) for table in experiment.tables(run)) if run.points else "<p>Nothing was measured.</p>"
    rules = "".join(f"<tr><td>{escape(v.statement)}</td><td>{escape(v.rule)}</td><td><code>{escape(v.id)}</code></td></tr>" for v in chapter.verdicts())
    return (
        f'<section id="{escape(chapter.anchor)}"><h2>{title}</h2>{_sides(chapter)}{_published(chapter)}{pictures}'
        f"<details><summary>All figures as tables</summary>{tables}</details>"
        f'<details><summary>The rules of the verdicts</summary><div class="scroll"><table class="verdicts"><tr><th>finding</th><th>rule</th><th>id</th></tr>'
        f"{rules}</table></div></details></section>"
    )


def _sides(chapter: Chapter) -> str:
    source = chapter.experiment.source
    if not source:
        return f"<p>{escape(_ran(chapter))}</p>"
    return (f'<div class="sides"><div class="card"><h3>What was published</h3><p><b>{escape(source.text)}</b>. {escape(source.setup)}</p></div>'
            f'<div class="card"><h3>What ran here</h3><p>{escape(source.here)} {escape(_ran(chapter))}</p></div></div>')


def _ran(chapter: Chapter) -> str:
    parameters, points = chapter.run.run["parameters"], chapter.run.points
    sizes = ", ".join(stats.human_bytes(s) for s in sorted({p["size_bytes"] for p in points}))
    threads = ", ".join(map(str, sorted({p["threads"] for p in points})))
    settings = parameters["settings"]
    return (f"{parameters['rounds']} round(s) of {settings['seconds']} s after {settings['warmup_seconds']} s of warm-up; values of {sizes}; "
            f"client threads: {threads}; {len(points)} points, {_noisy(points)} of them noisy.")


def _published(chapter: Chapter) -> str:
    experiment = chapter.experiment
    rows = "".join(f"<tr><td>{escape(f.what)}<br><small>{escape(f.figure.place)}</small></td><td>{escape(f.value)}</td>"
                   f"<td>{escape(experiment.beside(chapter.run, f))}</td></tr>" for f in experiment.published)
    return (f'<div class="scroll"><table class="verdicts"><tr><th>published</th><th>there</th><th>here (range of the rounds)</th></tr>{rows}</table></div>'
            if rows else "")


# --- machine ---
def _configuration(chapters: list[Chapter]) -> str:
    rows = []
    machine = chapters[0].last_session["machine"]
    rows.append(("machine", ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items() if value)))
    for chapter in chapters:
        for key, server in chapter.last_session.get("servers", {}).items():
            pinned = ", ".join(f"{name}={value}" for name, value in server["pinned"].items())
            plugin = f"; plugin {server['plugin_sha256'][:12]}" if server.get("plugin_sha256") else ""
            rows.append((f"{chapter.experiment.name}, server {key}", f"{server['version']}{plugin}; {pinned}"))
        if payload := chapter.last_session.get("payload"):
            ratios = ", ".join(f"{codec} {ratio}" for codec, ratio in payload["compression_ratio_of_64KB"].items())
            rows.append((f"{chapter.experiment.name}, payload", f"{payload['kind']}; a 64 KB value compresses: {ratios}"))
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)


def _footer(lab: dict) -> str:
    wall = f"Wall time {stats.human_seconds(lab['finished'] - lab['started'])}, planned {stats.human_seconds(lab['planned_seconds'])}. " if lab["finished"] else ""
    return escape(f"{wall}Raw rounds (points.jsonl, points.csv), verdicts.json and PNG charts lie in a directory per experiment beside this page; "
                  "lab.json and lab.csv hold all verdicts and medians.")
