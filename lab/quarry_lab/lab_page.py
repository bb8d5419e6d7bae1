"""
The lab's report: one self-contained HTML page from the runs of its experiments. render() only reads; every figure comes from raw rounds
by way of the experiments' own figures(), tables() and verdicts().
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape

from .design.profile import TEXTS
from .design.results import RunDirectory
from .design.variants import TARGET_PREFIX
from .lab_results import commits_of, is_older_than_the_engine
from .probes.noise import NOISE_CPUS_MAX
from .report import page, stats, verdicts
from .report.html_table import html_table
from .report.stats import counted
from .report.verdicts import ANSWERED, FAIR_ROUNDS, FAIR_SECONDS, MIXED, NOT_JUDGED, NOT_MEASURED, OPPOSITE, REPRODUCED, STRONGER, WEAKER, Verdict
from .run.experiment import Experiment

_ON_NDB = f"{TARGET_PREFIX}ndb"  # how the variants of NDB begin
_CHIPS = {REPRODUCED: "yes", STRONGER: "yes", WEAKER: "no", OPPOSITE: "no", MIXED: "question", ANSWERED: "question"}

_RULES = (
    "<p>Each verdict is computed from the raw rounds of this run by the rule given in its experiment. "
    "In brackets are the lowest and the highest round. x8: with 8 client threads. Sooner: a gain in the 95th percentile of latency.</p><p>"
    + " ".join(f"<b>{state.capitalize()}</b>: {text}." for state, text in verdicts.MEANINGS.items()) + "</p>")
_METHOD = f"""<ul>
<li>Rounds are interleaved: within a round all variants and thread counts that share a server come in random order. A figure is the median over
the rounds; bars and ranges go from the lowest to the highest round. Ratios are taken round by round.</li>
<li>A private server's configuration is verified before each point; NDB has that of <code>scripts/ndb</code>. In E1, E2, E4 and E5 each engine has a
server of its own, and runs alone. Between points the device settles: nothing that one variant left behind is written in another's time.</li>
<li>Payloads differ from write to write; neither a cache nor deduplication finds anything. <code>SET NAMES binary</code> always.</li>
<li>Noise: a point in which other processes or the hypervisor used more than {NOISE_CPUS_MAX} processor is marked noisy. A verdict needs
{FAIR_ROUNDS} rounds of {FAIR_SECONDS} s, and not more than a third of its points noisy.</li>
</ul>"""


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

    @property
    def servers(self) -> dict[str, dict]:
        """Of all sessions: the last one of a run that was gone on with started those of what was left."""
        return {name: server for session in self.run.run["sessions"] for name, server in session.get("servers", {}).items()}

    def verdicts(self) -> list[Verdict]:
        return self.experiment.verdicts(self.run)


def render(chapters: list[Chapter], lab: dict) -> str:
    """lab: scale, started, finished (None while unfinished), commit, planned_seconds. At least one chapter has points."""
    return page.render(
        title="Quarry lab", commit=chapters[0].last_session["machine"]["commit"], started=lab["started"], headline=_headline(chapters),
        lead_html=_lead(chapters, lab), alarms=_alarms(chapters, lab), tiles_html=_tiles(chapters), contents=_contents(chapters),
        sections=[page.section("Every finding, and what became of it here", _RULES, _verdicts(chapters), anchor="verdicts"), *map(_section, chapters),
                  page.section("How it was measured", _METHOD, page.definitions(_configuration(chapters)), anchor="method")],
        footer_html=_footer(lab))


# --- the top ---
def _headline(chapters: list[Chapter]) -> str:
    published = len({c.experiment.name for c in chapters if c.experiment.source})
    words = ("No", "One", "Two", "Three", "Four", "Five")
    return f"{words[published] if published < len(words) else published} published BLOB benchmark{'s' * (published != 1)}, run again here"


def _lead(chapters: list[Chapter], lab: dict) -> str:
    machine = chapters[0].last_session["machine"]
    points = sum(len(c.run.points) for c in chapters)
    has_ndb = any(p["variant"].startswith(_ON_NDB) for c in chapters for p in c.run.points)
    ndb = ", except those of NDB, which wait for the memory of its data nodes" if has_ndb else ""
    return escape(f"{machine['cpu']}, {machine['processors']} processors, {stats.human_bytes(machine['memory_bytes'])} of memory, "
                  f"{(machine['file_system'].split() or ['?'])[0]}. {points:,} points at scale '{lab['scale']}', private servers, every commit durable{ndb}.")


def _states(chapters: list[Chapter]) -> Counter:
    """Of each finding once, as the table of all of them has it: of one with a verdict for each engine that of Experiment.whose."""
    return Counter(v.state for chapter in chapters for v in chapter.experiment.quarrys_own(chapter.verdicts()))


def _noisy(points: list[dict]) -> int:
    return sum(bool(p["cpu"]["noisy"]) for p in points)


def _judged(chapters: list[Chapter]) -> int:
    """Verdicts on any engine."""
    return sum(v.state not in (NOT_JUDGED, NOT_MEASURED) for chapter in chapters for v in chapter.verdicts())


def _tiles(chapters: list[Chapter]) -> list[str]:
    states = _states(chapters)
    points = [p for c in chapters for p in c.run.points]
    taken = sum(p["cpu"]["seconds"] for p in points)
    tiles = [
        (REPRODUCED, "findings reproduced", ""), (STRONGER, "stronger", "the same way, and more"),
        (WEAKER, "weaker", "less than published, or nothing"), (OPPOSITE, "opposite", "in every round"),
        (MIXED, "mixed", "not at all client levels"), (ANSWERED, "open questions answered", ""),
        (NOT_JUDGED, "not judged", "too short, or disturbed"), (NOT_MEASURED, "not measured", "and what was lacking")]
    shown = tiles if _judged(chapters) else tiles[-2:]
    return [*(page.tile(str(states[state]), text, small) for state, text, small in shown),
            page.tile(f"{taken / 60:,.0f} min", "of measured time", f"{_noisy(points)} of {counted(len(points), 'point')} noisy")]


def _alarms(chapters: list[Chapter], lab: dict) -> list[str]:
    points = [p for c in chapters for p in c.run.points]
    found = []
    if not _judged(chapters):
        found.append(f"This {'quick ' * (lab['scale'] == 'quick')}run judges nothing: figures are shown, and no finding has a verdict.")
    if any(c.run.run["finished"] is None for c in chapters) or lab["finished"] is None:
        found.append("This report is of an unfinished run: some points are missing.")
    if _noisy(points) > len(points) * verdicts.NOISY_SHARE_MAX:
        found.append(f"The machine was not quiet: other work disturbed {_noisy(points)} of {len(points)} points. Figures are shown, conclusions are not drawn.")
    if old := [c.experiment.name.upper() for c in chapters if any(map(is_older_than_the_engine, commits_of(c.run.run)))]:
        found.append(f"Older than the code: the engine's sources changed since {', '.join(dict.fromkeys(old))} ran.")
    short = [c for c in chapters if c.run.run["parameters"]["rounds"] < FAIR_ROUNDS or c.run.run["parameters"]["settings"]["seconds"] < FAIR_SECONDS]
    if short:
        names = ", ".join(dict.fromkeys(c.experiment.name.upper() for c in short))
        found.append(f"A look, not a measurement: {names} ran fewer than {FAIR_ROUNDS} rounds of {FAIR_SECONDS} s and get no verdicts.")
    return found


def _contents(chapters: list[Chapter]) -> list[tuple[str, str]]:
    return [("verdicts", "Verdicts"), *((c.anchor, c.title) for c in chapters), ("method", "Method and machine")]


# --- verdicts ---
def _chip(state: str) -> str:
    return f'<span class="chip {_CHIPS.get(state, "none")}">{escape(state)}</span>'


def _verdicts(chapters: list[Chapter]) -> str:
    """Of an experiment with a verdict for each engine, one engine's here, which its heading names; the table of its section has them all."""
    rows: list[tuple[str, ...]] = []
    for chapter in chapters:
        whose = chapter.experiment.whose
        rows.append((escape(chapter.title + (f" (verdicts on {whose})" if whose else "")),))
        rows += [(escape(v.statement), _chip(v.state), _lines(v.reason)) for v in chapter.experiment.quarrys_own(chapter.verdicts())]
    return page.words_table(("finding", "verdict", "here"), rows)


def _by_engine(chapter: Chapter) -> str:
    """Every finding with a column for each engine; empty where an experiment has none."""
    experiment = chapter.experiment
    if not experiment.finding_columns:
        return ""
    rows = [(escape(row.statement), *map(_engine_cell, row.cells)) for row in experiment.finding_rows(chapter.run)]
    return f"<h3>Every finding, engine by engine</h3>{page.words_table(('finding', *experiment.finding_columns), rows)}"


def _lines(reason: str) -> str:
    """A level a line: a cell of many levels is read by them."""
    return "<br>".join(map(escape, verdicts.parts_of(reason)))


def _engine_cell(said: list[tuple[str, str]]) -> str:
    return "<br>".join(f"{_chip(state)} {_lines(text)}" if state else _lines(text) for state, text in said)


# --- one experiment ---
def _section(chapter: Chapter) -> str:
    experiment, run = chapter.experiment, chapter.run
    head, _, rest = chapter.title.partition(": ")
    title = f'<span class="eyebrow">{escape(head)}</span>{escape(rest[:1].upper() + rest[1:])}' if rest else escape(chapter.title)
    drawn = experiment.figures(run).values() if run.points else ()
    pictures = "".join(map(page.picture, drawn)) + (f'<p class="note">{escape(experiment.chart_note(run))}</p>' if drawn else "")
    tables = "".join(map(html_table, experiment.tables(run))) if run.points else "<p>Nothing was measured.</p>"
    rules = [(escape(v.statement), escape(v.rule), f"<code>{escape(v.id)}</code>") for v in chapter.verdicts()]
    return page.section(
        title, _sides(chapter), _by_engine(chapter), _published(chapter), pictures, f"<details><summary>All figures as tables</summary>{tables}</details>",
        f"<details><summary>The rules of the verdicts</summary>{page.words_table(('finding', 'rule', 'id'), rules)}</details>", anchor=chapter.anchor)


def _sides(chapter: Chapter) -> str:
    source = chapter.experiment.source
    if not source:
        return f"<p>{escape(_ran(chapter))}</p>"
    return (f'<div class="two"><div class="card"><h3>What was published</h3><p><b>{escape(source.text)}</b>. {escape(source.setup)}</p></div>'
            f'<div class="card"><h3>What ran here</h3><p>{escape(source.here)} {escape(_ran(chapter))}</p></div></div>')


def _ran(chapter: Chapter) -> str:
    parameters, points = chapter.run.run["parameters"], chapter.run.points
    sizes = ", ".join(map(chapter.experiment.size_text, sorted({p["size_bytes"] for p in points})))
    threads = ", ".join(map(str, sorted({p["threads"] for p in points})))
    settings = parameters["settings"]
    rounds = counted(parameters["rounds"], "round")
    return (f"Profile {TEXTS[parameters['profile']]}. {rounds} of {settings['seconds']} s after {settings['warmup_seconds']} s of warm-up; values of {sizes}; "
            f"client threads: {threads}; {counted(len(points), 'point')}, {_noisy(points)} of them noisy.{chapter.experiment.measured_with(chapter.run) if points else ''}")


def _published(chapter: Chapter) -> str:
    experiment = chapter.experiment
    rows = [(f"{escape(f.what)}<br><small>{escape(f.figure.place)}</small>", escape(f.value), _lines(experiment.beside(chapter.run, f)))
            for f in experiment.published]
    return page.words_table(("published", "there", "here (range of the rounds)"), rows) if rows else ""


# --- machine ---
def _configuration(chapters: list[Chapter]) -> list[tuple[str, str]]:
    rows = []
    machine = chapters[0].last_session["machine"]
    rows.append(("machine", ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items() if value)))
    for chapter in chapters:
        for key, server in chapter.servers.items():
            pinned = ", ".join(f"{name}={value}" for name, value in server["pinned"].items())
            plugin = f"; plugin {server['plugin_sha256'][:12]}" if server.get("plugin_sha256") else ""
            rows.append((f"{chapter.experiment.name}, server {key}", f"{server['version']}{plugin}; {pinned}"))
        if payload := chapter.last_session.get("payload"):
            ratios = ", ".join(f"{codec} {ratio}" for codec, ratio in payload["compression_ratio_of_64KB"].items())
            rows.append((f"{chapter.experiment.name}, payload", f"{payload['kind']}; a 64 KB value compresses: {ratios}"))
    return rows


def _footer(lab: dict) -> str:
    wall = f"Wall time {stats.human_seconds(lab['finished'] - lab['started'])}, planned {stats.human_seconds(lab['planned_seconds'])}. " if lab["finished"] else ""
    return escape(f"{wall}Raw rounds (points.jsonl, points.csv), verdicts.json and PNG charts lie in a directory per experiment beside this page; "
                  "lab.json and lab.csv hold all verdicts and medians.")
