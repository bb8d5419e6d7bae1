"""
What the five documents say: one data file for each, the only place in the lab where a published number stands.

A [figure.<id>] has
    value    one number, or the two ends of a range
    unit     gain (0.15 is 15 % more), share, /s, MB/s, ms, or a word that is read as it stands (users, bytes)
    bound    'more than', 'at least', 'at most', 'almost', 'about', 'a bit more than': as it was said; none: exactly so
    place    heading and paragraph of the text, or 'read off the author's chart'; 'computed: ...' where we made it of others
    says     what the figure is of
A figure with `from` is computed from others: 'a / b' is their quotient as a gain. Its unit, place and words are made of theirs unless it has its own.
A figure with `each` is a row of figures of one kind: each key of that table is one figure, <id>.<key>, and `names` has what people read for a key that
does not say it; a quotient of two rows is a row of quotients.
In a claim the name of a row stands for all its figures.
A [claim.<id>] has `item` (its number in the audit's list), `says`, `rule`, and the `figures` it is judged by; `borrowed` names those of them that the
document gives of something else, and that are but a threshold of the rule. `aside` is what a verdict adds where the claim does not show. What else
stands there belongs to the judging function. In `says`, `rule` and `aside` each '{}' is the text of the next of the claim's figures, '{1}' of its
second, '{id}' of the one so named.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ...report.verdicts import Finding

_DIRECTORY = Path(__file__).parent
NAMES = ("e1", "e2", "e3", "e4", "e5")
BOUNDS = ("", "about", "almost", "a bit more than", "more than", "at least", "at most")
# A single published value counts as itself and so much of it, either way; a gain at least so many hundredths.
TOLERANCE, GAIN_TOLERANCE_MIN = 0.25, 0.02
_WITHOUT_SPACE = ("/s",)


class PublishedError(Exception):
    """A data file says something that cannot be."""


@dataclass(frozen=True)
class Figure:
    id: str
    says: str
    unit: str
    place: str
    low: float
    high: float
    bound: str = ""
    computed: bool = False  # by us, from figures of the document
    name: str = ""  # of one of a row, as people read it

    @property
    def value(self) -> float:
        """Of a figure that is no range."""
        if self.low != self.high:
            raise PublishedError(f"{self.id} is a range")
        return self.low

    @property
    def judged(self) -> tuple[float, float]:
        """The range that counts as this figure."""
        if self.bound in ("more than", "at least"):
            return self.low, float("inf")
        if self.bound == "at most":
            return float("-inf"), self.high
        if self.low != self.high:
            return self.low, self.high
        slack = abs(self.low) * TOLERANCE
        slack = max(slack, GAIN_TOLERANCE_MIN) if self.unit == "gain" else slack
        return self.low - slack, self.high + slack

    @property
    def part(self) -> str:
        """Its key in a row of figures; empty for one that stands alone."""
        return self.id.partition(".")[2]

    @property
    def text(self) -> str:
        numbers = self.number(self.low) if self.low == self.high else f"{self.number(self.low)} to {self.number(self.high)}"
        return f"{self.bound} {numbers}".strip()

    @property
    def mark(self) -> str:
        """What a reader who looks for it in the document must know: empty where the text has it."""
        marks = ["computed"] * self.computed + ["read off a chart"] * ("read off" in self.place)
        return f" ({', '.join(marks)})" if marks else ""

    def measured(self, value: float) -> str:
        """A value of ours in this figure's unit. From a hundred on it has no decimals: rounds are further apart than those."""
        return self._in_unit(value, f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.2f}")

    def number(self, value: float) -> str:
        """A value in this figure's unit, with the digits that the document gives: 33.2, not 33.20."""
        return self._in_unit(value, f"{value:,.2f}".rstrip("0").rstrip("."))

    def _in_unit(self, value: float, digits: str) -> str:
        if self.unit == "gain":
            return f"{value:+.0%}"
        if self.unit == "share":
            return f"{value:.0%}"
        return f"{digits}{'' if self.unit in _WITHOUT_SPACE else ' '}{self.unit}"


def quoted(figures: Iterable[Figure], part_text: Callable[[str], str] = str) -> str:
    """Their texts with their marks, and in a row with their names; a mark that all of them share stands once, at the end."""
    shown = list(figures)
    marks = {figure.mark for figure in shown}
    shared = marks.pop() if len(marks) == 1 else ""
    names = (f"{part_text(figure.name)}: " if figure.part else "" for figure in shown)
    return "; ".join(name + figure.text + ("" if shared else figure.mark) for name, figure in zip(names, shown, strict=True)) + shared


@dataclass(frozen=True)
class Claim:
    """judging: what else the data file says of it, for the function that judges it. aside: what a verdict adds where the claim does not show."""

    id: str
    item: int
    says: str
    rule: str
    figures: tuple[Figure, ...]
    judging: dict = field(default_factory=dict)
    aside: str = ""

    @property
    def figure(self) -> Figure:
        return self.figures[0]

    @property
    def published(self) -> tuple[Figure, ...]:
        """Its own figures, without those that its rule borrows."""
        return tuple(figure for figure in self.figures if figure.id not in self.judging.get("borrowed", ()))

    @property
    def finding(self) -> Finding:
        return Finding(self.id, self.says, self.rule)


@dataclass(frozen=True)
class Document:
    name: str
    text: str  # author or vendor, subject, year
    setup: str
    figures: dict[str, Figure]
    claims: dict[str, Claim]

    def figure(self, name: str) -> Figure:
        return self.figures[name]

    def value(self, name: str) -> float:
        return self.figures[name].value

    def claim(self, name: str) -> Claim:
        return self.claims[f"{self.name}-{name}"]

    def finding(self, name: str) -> Finding:
        return self.claim(name).finding


@cache
def document(name: str) -> Document:
    """Of an experiment's name. Raises PublishedError."""
    data = tomllib.loads((_DIRECTORY / f"{name}.toml").read_text(encoding="utf-8"))
    figures: dict[str, Figure] = {}
    for key, entry in data["figure"].items():
        for part, one in _each(key, entry, figures):
            figures[part] = _figure(part, one, figures)
    claims = {f"{name}-{key}": _claim(f"{name}-{key}", entry, figures) for key, entry in data["claim"].items()}
    return Document(name, data["document"]["text"], data["document"]["setup"], figures, claims)


def _parts(quotient: str) -> tuple[str, str]:
    over, under = (part.strip() for part in quotient.split("/"))
    return over, under


def _row(name: str, known: Iterable[str]) -> list[str]:
    """The keys of a row of figures; none where `name` is no row."""
    return [other.removeprefix(f"{name}.") for other in known if other.startswith(f"{name}.")]


def _each(key: str, entry: dict, known: dict[str, Figure]) -> list[tuple[str, dict]]:
    """An entry of the data file as single figures."""
    if "each" in entry:
        names = {part: entry.get("names", {}).get(part, part) for part in entry["each"]}
        return [(f"{key}.{part}", {**entry, "value": value, "name": names[part], "says": f"{entry['says']}, {names[part]}"})
                for part, value in entry["each"].items()]
    if "from" in entry and (row := _row(_parts(entry["from"])[0], known)):
        ends = [(part, [f"{name}.{part}" if f"{name}.{part}" in known else name for name in _parts(entry["from"])]) for part in row]
        return [(f"{key}.{part}", {**entry, "from": " / ".join(names)}) for part, names in ends]
    return [(key, entry)]


def _figure(key: str, entry: dict, known: dict[str, Figure]) -> Figure:
    bound = entry.get("bound", "")
    if bound not in BOUNDS:
        raise PublishedError(f"figure {key}: unknown bound '{bound}' (allowed: {', '.join(filter(None, BOUNDS))})")
    if "from" in entry:
        over, under = (known[part] for part in _parts(entry["from"]))
        low = high = over.value / under.value - 1
        words = {"unit": "gain", "place": f"the quotient of two figures: {over.place}", "says": f"{over.says}, over {under.says}", "name": over.name}
        entry = {**words, **entry}
    else:
        value = entry["value"]
        low, high = value if isinstance(value, list) else (value, value)
    computed = "from" in entry or entry["place"].startswith("computed")
    return Figure(key, entry["says"], entry["unit"], entry["place"], low, high, bound, computed, entry.get("name", ""))


def _claim(key: str, entry: dict, figures: dict[str, Figure]) -> Claim:
    names = [one for name in entry["figures"] for one in ([f"{name}.{part}" for part in _row(name, figures)] or [name])]
    missing = [name for name in names if name not in figures]
    if missing:
        raise PublishedError(f"claim {key}: no figure '{missing[0]}' in this file")
    if unused := [name for name in entry.get("borrowed", ()) if name not in names]:
        raise PublishedError(f"claim {key}: borrows '{unused[0]}', which is none of its figures ({', '.join(names) or 'it has none'})")
    used = tuple(figures[name] for name in names)
    says, rule = (_filled(entry[part], used, figures) for part in ("says", "rule"))
    judging = {name: value for name, value in entry.items() if name not in ("item", "says", "rule", "aside", "figures")}
    return Claim(key, entry["item"], says, rule, used, judging, _filled(entry.get("aside", ""), used, figures))


def _filled(text: str, used: tuple[Figure, ...], figures: dict[str, Figure]) -> str:
    for figure in used:
        text = text.replace("{}", figure.text, 1)
    named = {name.replace("-", "_").replace(".", "_"): figure.text for name, figure in figures.items()}
    return text.format(*(figure.text for figure in used), **named)
