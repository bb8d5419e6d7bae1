"""The published figures: each in its data file with its place, and nowhere else in the lab; each claim has a verdict."""

import ast
import re
from pathlib import Path

import pytest
from quarry_lab.design import published
from quarry_lab.design.published import Figure
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.report.verdicts import ANSWERED, NOT_MEASURED, PUBLISHED_STATES
from worlds import Run

LAB = Path(published.__file__).resolve().parents[2]
# Numbers that a document has, too, but that mean something else in the code: where, which, what it is there.
COINCIDENCES = {
    ("experiments/e4/bench.py", 200_000): "rows of a table at most",
    ("experiments/e4/findings.py", 0.5): "our threshold of a lone request's time",
    ("experiments/e1/findings.py", 0.05): "our threshold of a batch's harm",
    ("experiments/e1/beside.py", 0.5): "our threshold of a floor's share",
    ("experiments/e3/figures.py", 0.3): "the height of a bar",
    ("servers/lab_server.py", 200_000): "what InnoDB may write a second",
    ("experiments/e3/findings.py", 0.25): "our reading of 'slightly'",
}
_NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?![\w])")
_PERCENT = re.compile(r"(\d+)(?:\s?(?:-|to)\s?(\d+))?\s?%")


def figures():
    return [(name, figure) for name in published.NAMES for figure in published.document(name).figures.values()]


def distinct():
    """Numbers so particular that none stands in code by chance: from a thousand on; multiples of 1,024 are sizes of anything."""
    found = {end for _name, figure in figures() for end in (figure.low, figure.high) if figure.unit not in ("gain", "share", "users")}
    return {number for number in found if number >= 1000 and number % 1024}


def shares():
    return {abs(round(end, 4)) for _name, figure in figures() if figure.unit in ("gain", "share") for end in (figure.low, figure.high) if 0 < abs(end) < 1}


def numbers_in(source: str) -> list[float]:
    """Of code and of its strings; comments and what f-strings compute are left out."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            found.append(float(node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [float(text.replace(",", "").replace("_", "")) for text in _NUMBER.findall(node.value)]
            found += [int(part) / 100 for match in _PERCENT.findall(node.value) for part in match if part]
    return found


def strays(name: str, source: str, is_experiment: bool) -> set[float]:
    forbidden = distinct() | (shares() if is_experiment else set())
    return {number for number in numbers_in(source) if number in forbidden and (name, number) not in COINCIDENCES}


def lab_sources():
    for path in sorted(LAB.rglob("*.py")):
        name = path.relative_to(LAB).as_posix()
        if not name.startswith(("tests/", "design/published/")):
            yield name, path


@pytest.mark.parametrize("name, path", [pytest.param(name, path, id=name) for name, path in lab_sources()])
def test_no_published_number_stands_in_the_lab(name, path):
    is_experiment = re.fullmatch(r"experiments/e\d.*\.py|demo/report_e1\.py", name) is not None
    assert strays(name, path.read_text(encoding="utf-8"), is_experiment) == set()


@pytest.mark.parametrize("planted, number", [("RATE = 1211.91", 1211.91), ("text = 'about 46,000 requests/s'", 46_000), ("load = 44_500", 44_500),
                                             ("says = '4 KB: inline 15-20% over the head'", 0.15), ("GAIN_MIN = 0.33", 0.33)])
def test_a_planted_number_is_found(planted, number):
    assert number in strays("experiments/e1/experiment.py", planted, True)


@pytest.mark.parametrize("name", published.NAMES)
def test_every_figure_says_what_it_is_of_and_where_it_stands(name):
    document = published.document(name)
    assert document.text and document.setup
    for figure in document.figures.values():
        assert figure.says and figure.unit and figure.place and figure.low <= figure.high, figure.id
        assert figure.judged[0] <= figure.low and figure.judged[1] >= figure.high, figure.id


@pytest.mark.parametrize("name", published.NAMES)
def test_every_claim_has_a_verdict_and_nothing_else_claims_to_be_published(name):
    document = published.document(name)
    found = EXPERIMENTS[name].verdicts(Run([]))
    ids = [verdict.id for verdict in found]
    assert len(set(ids)) == len(ids)
    assert set(document.claims) <= set(ids)
    assert all("not published" in v.statement or "left open" in v.statement for v in found if v.id not in document.claims)
    assert all(v.state == NOT_MEASURED and v.reason for v in found), "nothing was measured"


@pytest.mark.parametrize("name", [name for name in published.NAMES if EXPERIMENTS[name].finding_columns])
def test_every_cell_of_a_table_of_findings_has_a_verdict_or_says_why_not(name):
    rows = EXPERIMENTS[name].finding_rows(Run([]))
    assert rows and not [row.statement for row in rows if not all(cell and all(text for _state, text in cell) for cell in row.cells)]


def test_the_claims_that_had_no_finding_have_one():
    judged = {claim.item for claim in published.document("e1").claims.values()}
    assert {46, 48, *range(50, 54), 55, *range(57, 62), *range(63, 67)} <= judged


def test_not_applicable_is_no_verdict():
    assert "not applicable" not in PUBLISHED_STATES and ANSWERED not in PUBLISHED_STATES
    assert not [name for name, path in lab_sources() if "not applicable" in path.read_text(encoding="utf-8").lower()]


def figure(low, high=None, unit="gain", bound=""):
    return Figure("x", "x", unit, "x", low, low if high is None else high, bound)


@pytest.mark.parametrize("made, judged", [
    (figure(0.5), (0.375, 0.625)), (figure(0.05), (0.03, 0.07)), (figure(-0.72), (-0.90, -0.54)), (figure(0.15, 0.2), (0.15, 0.2)),
    (figure(0.5, bound="more than"), (0.5, float("inf"))), (figure(0.2, unit="share", bound="at most"), (float("-inf"), 0.2)),
    (figure(70_000, unit="tps", bound="almost"), (52_500, 87_500))])
def test_what_counts_as_a_figure(made, judged):
    assert made.judged == pytest.approx(judged)


@pytest.mark.parametrize("made, text", [
    (figure(0.15, 0.2, bound="about"), "about +15% to +20%"), (figure(0.5, bound="more than"), "more than +50%"), (figure(1211.91, unit="tps"), "1,211.91 tps"),
    (figure(44_500, unit="rows/s"), "44,500 rows/s"), (figure(500, unit="/s"), "500/s"), (figure(0.2, unit="share", bound="at most"), "at most 20%"),
    (figure(1.25, unit="GB/s"), "1.25 GB/s"), (figure(4, 5, unit="ms"), "4 ms to 5 ms"), (figure(33.2, unit="MB/s", bound="about"), "about 33.2 MB/s"),
    (figure(0, unit="ms"), "0 ms"), (figure(4_287_156, unit="bytes"), "4,287,156 bytes")])
def test_how_a_figure_reads(made, text):
    assert made.text == text


@pytest.mark.parametrize("value, text", [(1262.43, "1,262 tps"), (2114.51, "2,115 tps"), (99.5, "99.50 tps"), (4.0, "4.00 tps")])
def test_how_a_value_of_ours_reads_next_to_a_figure(value, text):
    assert figure(1211.91, unit="tps").measured(value) == text


def test_a_published_figure_says_whether_the_text_has_it():
    e2, e3, e4 = (published.document(name) for name in ("e2", "e3", "e4"))
    assert published.quoted([e2.figure("two-blobs")]) == "5,844 tps", "the text has it"
    assert published.quoted(e2.claim("varbinary").figures) == "+229% (computed)"
    assert published.quoted([e3.figure("cloud-zstd")]) == "about 523 MB/s (read off a chart)"
    assert published.quoted(e4.claim("compress").figures) == "+25% to +30%; +31% (computed)"
    assert published.quoted(e3.claim("cloud-zstd").figures) == "+107%; -51% (computed, read off a chart)", "a mark of all stands once"


ROWS = """[document]
text = "x"
setup = "x"
[figure.plain]
each = { a = 10, b = 20 }
unit = "MB/s"
place = "chart"
says = "plain"
[figure.other]
each = { a = 15, b = 10 }
names = { b = "B()" }
unit = "MB/s"
place = "chart"
says = "other"
[figure.alone]
value = 5
unit = "MB/s"
place = "chart"
says = "alone"
[figure.gain]
from = "other / plain"
[figure.over-one]
from = "plain / alone"
[claim.of-a-row]
item = 1
says = "{plain_a}"
rule = "{} and {}"
aside = "as {alone}"
figures = ["gain"]
"""


def test_rows_of_figures_and_their_quotients(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_DIRECTORY", tmp_path)
    published.document.cache_clear()
    (tmp_path / "e9.toml").write_text(ROWS)
    found = published.document("e9")
    assert {name: figure.value for name, figure in found.figures.items()} == {
        "plain.a": 10, "plain.b": 20, "other.a": 15, "other.b": 10, "alone": 5, "gain.a": 0.5, "gain.b": -0.5, "over-one.a": 1, "over-one.b": 3}
    assert (found.figure("gain.a").unit, found.figure("gain.a").says) == ("gain", "other, a, over plain, a")
    assert [figure.id for figure in found.claim("of-a-row").figures] == ["gain.a", "gain.b"]
    assert found.figure("other.b").says == "other, B()", "a key that does not say what it is"
    assert published.quoted(found.claim("of-a-row").figures) == "a: +50%; B(): -50% (computed)"
    assert [found.figure(name).part for name in ("gain.b", "alone")] == ["b", ""]
    assert (found.finding("of-a-row").statement, found.finding("of-a-row").rule) == ("10 MB/s", "+50% and -50%")
    assert found.claim("of-a-row").aside == "as 5 MB/s"
    published.document.cache_clear()


@pytest.mark.parametrize("lines, said", [('figures = ["c"]', "claim e9-b: no figure 'c'"),
                                         ('figures = ["a"]\nborrowed = ["c"]', r"claim e9-b: borrows 'c', which is none of its figures \(a\)")])
def test_a_claim_without_its_figure_is_an_error(tmp_path, monkeypatch, lines, said):
    monkeypatch.setattr(published, "_DIRECTORY", tmp_path)
    published.document.cache_clear()
    (tmp_path / "e9.toml").write_text('[document]\ntext = "x"\nsetup = "x"\n[figure.a]\nvalue = 1\nunit = "ms"\nplace = "x"\nsays = "x"\n'
                                      f'[claim.b]\nitem = 1\nsays = "x"\nrule = "x"\n{lines}\n')
    with pytest.raises(published.PublishedError, match=said):
        published.document("e9")
    published.document.cache_clear()
