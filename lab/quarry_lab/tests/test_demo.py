"""The demo's own judgement: what it loads is repeatable, what it calls survived has survived, what it draws is well-formed."""

import copy
import hashlib
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from html import unescape

import mariadb
import matplotlib.pyplot as plt
import pytest
from rich.console import Console

from quarry_lab.demo import client, console, corpus, crash, figures, measure, overwrite, report, space, summary
from quarry_lab.demo.documents import DocumentGenerator
from quarry_lab.demo.tables import VARIANTS
from quarry_lab.report.stats import Summary

MEGABYTE = 1_000_000


def sha(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


# --- the files ---
def make_corpus(tmp_path, megabytes=4, seed=3):
    tmp_path = tmp_path / "files"
    if tmp_path.exists():
        return corpus.gather([str(tmp_path)], megabytes * MEGABYTE, seed, lambda *_: None)
    tmp_path.mkdir()
    for number, size in enumerate((500, 1024, 1500, 5000, 70_000)):
        (tmp_path / f"file{number}.txt").write_bytes(bytes([65 + number]) * size)
    (tmp_path / "copy.txt").write_bytes(b"B" * 1024)
    (tmp_path / "link.txt").symlink_to(tmp_path / "file1.txt")
    return corpus.gather([str(tmp_path)], megabytes * MEGABYTE, seed, lambda *_: None)


def test_small_sample_is_topped_up_and_repeatable(tmp_path):
    first, second = make_corpus(tmp_path), make_corpus(tmp_path)
    assert [(i.name, i.sha256) for i in first.items] == [(i.name, i.sha256) for i in second.items]
    assert [i.sha256 for i in first.items] != [i.sha256 for i in make_corpus(tmp_path, seed=4).items]
    assert 0.6 * 4 * MEGABYTE < first.bytes  # the largest octaves get less than one file
    real = [i for i in first.items if not i.generated]
    assert sorted(i.size for i in real) == [1024, 1500, 5000, 70_000]  # 500 bytes: too small; copy and link: once only
    assert all(hashlib.sha256(i.data).digest() == i.sha256 for i in first.items)
    described = first.describe()
    assert sum(o["files"] for o in described["octaves"]) == len(first.items)
    assert described["generated_files"] == len(first.items) - 4


@pytest.mark.parametrize("size, octave", [(1024, 0), (2047, 0), (2048, 1), (1 << 20, 10), (20 << 20, 14)])
def test_octaves(size, octave):
    assert corpus.octave_of(size) == octave


@pytest.mark.parametrize("kind", DocumentGenerator.KINDS)
def test_documents_have_the_wanted_size(kind):
    generator, found = DocumentGenerator(5), set()
    for size in (1024, 1025, 40_000) * 20:
        made, data = generator.make(size)
        assert len(data) == size
        found.add(made)
    assert kind in found


@pytest.mark.parametrize(
    "path, data, kind",
    [
        ("/usr/bin/x", b"\x7fELF....", "binary"),
        ("/usr/share/man/man1/x.1.gz", b"\x1f\x8b", "documentation"),
        ("/usr/share/fonts/x.ttf", b"\0\1\0\0", "font"),
        ("/usr/lib/x.so.1.2.jar", b"PK", "archive"),
        ("/usr/lib/whatever", b"abc", "other"),
    ],
)
def test_kinds(path, data, kind):
    assert corpus.kind_of(path, data) == kind


def test_one_client_loads_all_files_unless_the_device_is_slow():
    assert measure.one_client_stride(9000, 150) == 1
    assert measure.one_client_stride(9000, 3000) == 12
    settings = measure.settings_record(measure.Settings(one_client_stride=12))
    assert summary.measures(settings)[0].label == "load, 1 client (every 12th file)"


# --- kill -9 ---
def make_log():
    log = crash.ClientLog(versions={1: sha("a"), 2: sha("b"), 3: sha("c")}, next_id=5)
    log.in_flight = [(4, None, sha("d")), (2, sha("b"), sha("b2"))]  # an insert and an update in one transaction
    return log


def content(text: str):
    return (sha(text), sha(text))


BEFORE = {1: content("a"), 2: content("b"), 3: content("c")}
AFTER = {1: content("a"), 2: content("b2"), 3: content("c"), 4: content("d")}


@pytest.mark.parametrize("found, there", [(BEFORE, 0), (AFTER, 1)])
def test_a_whole_or_an_absent_transaction_is_right(found, there):
    log = make_log()
    verdict = crash.judge([log], found)
    assert verdict["wrong"] == []
    assert (verdict["acknowledged_rows"], verdict["intact"]) == (2, 2)
    assert (verdict["in_flight_there"], verdict["in_flight_absent"]) == (there, 1 - there)
    assert (4 in log.versions) == bool(there)  # what is there counts from now on


@pytest.mark.parametrize(
    "change, message",
    [
        ({3: None}, "was acknowledged and is missing"),
        ({3: content("older")}, "not the version that was acknowledged last"),
        ({3: (sha("half"), sha("c"))}, "is torn"),
        ({3: "checksum mismatch in segment 1 at offset 4096"}, "can't be read: checksum mismatch"),
        ({4: content("d")}, "is there in part"),
        ({2: content("b2")}, "is there in part"),
        ({9: content("z")}, "was never committed"),
    ],
)
def test_every_kind_of_damage_is_noticed(change, message):
    found = {**BEFORE, **change}
    verdict = crash.judge([make_log()], {k: v for k, v in found.items() if v is not None})
    assert any(message in line for line in verdict["wrong"]), verdict


def test_a_dead_server_is_told_from_an_sql_error():
    def error(number):
        e = mariadb.OperationalError("x")
        e.errno = number
        return e

    assert all(client.is_lost(error(n)) for n in (2006, 2013, 5014, 1053))
    assert not any(client.is_lost(error(n)) for n in (1062, 1205, 1030))


# --- figures and page ---
def make_cell(round_number, data_set, variant, factor):
    phase = {"bytes_per_second": 1e8 * factor, "operations_per_second": 1000 * factor}
    written = {"server_bytes_per_payload_byte": 2 / factor, "device_bytes_per_payload_byte": 2 / factor}
    return {
        "round": round_number, "data_set": data_set, "variant": variant, "reads": phase, "load_1": {**phase, "written": written, "payload_bytes": 100, "quarry_status": {"quarry_zero_bytes_written": 80}},
        "load_32": {**phase, "written": written}, "updates": {**phase, "written": written}, "disk": {"bytes": 1e8},
        "buffer_pool": {"pages": 100},
    }  # fmt: skip


def make_overwrite(peak=1.4, settled=1.2):
    live = 20_000_000
    samples = [(0, live), (0.5, live * 1.5), (1, live * peak), (1, live * settled), (2, live * peak), (2, live * settled)]
    return {
        "times": 2, "rows": 50, "payload_bytes": live - 9000, "live_bytes": live, "rows_file_bytes": 600_000, "bound": 1.5, "seconds": 9.0, "samples": samples, "peak_bytes": [live * peak] * 2,
        "settled_bytes": live * settled, "written_bytes_per_second": 5e6,
        "innodb_bytes": [live * 1.1, live * 2.1, live * 2.4], "verified_rows": 100, "wrong": [], "late": [],
        "gc": {"passes": 3, "passes_dropped": 0, "reclaimed_bytes": 40_000_000, "segments_unlinked": 2, "segments_rewritten": 1},
    }  # fmt: skip


def make_result(tmp_path):
    files = make_corpus(tmp_path)
    lane = {"commits_by_50ms": [[1, 3], [2, 1]], "in_flight_since": 1.0, "in_flight_rows": 1, "last_acknowledged": 1.0}
    times = {"load": 0, "first": 0.1, "kill": 2, "restart": 2.1, "ready": 3, "verified": 4}
    cycle = {
        "cycle": 1, "times": times, "acknowledged": 4, "timeline": [lane, lane], "rows_found": 4, "acknowledged_rows": 3, "intact": 3,
        "in_flight": 1, "in_flight_there": 1, "in_flight_absent": 0, "rolled_back": 0, "wrong": [],
    }  # fmt: skip
    points = [
        {"round": r, "variant": v, "size_bytes": s, "threads": t, "events_per_second": 100.0 * t * (1 + (v == "quarry-inline"))}
        for r in (1, 2) for v in ("quarry-head", "quarry-inline") for s in (4096, 65536) for t in (1, 8)
    ]  # fmt: skip
    return {
        "corpus": files.describe(), "settings": measure.settings_record(measure.Settings(rounds=3)), "mismatches": [],
        "data_sets": {k: {"files": 3, "bytes": 4e6, "size_bytes_max": None} for k in ("all", "small")},
        "rounds": [make_cell(r, d, v, f * (1 + r / 10)) for r in (1, 2, 3) for d in ("all", "small")
                   for v, f in (("innodb", 1), ("varbinary", 1.5), ("quarry", 2))],
        "machine": {"commit": "abc", "cpu": "a <cpu>", "processors": 2, "memory_bytes": 1 << 33, "kernel": "6", "device": None, "file_system": "ext4"},
        "memory": {"MemAvailable": 1 << 32},
        "device": {"sequential_write_bytes_per_second": 1e9, "durable_64KB_growing_us_median": 200, "durable_64KB_overwriting_us_median": 100},
        "server": {"version": "10.11", "plugin_sha256": "0" * 64, "pinned": {"a": "1"}, "quarry_variables": {"quarry_codec": "none"}},
        "processor_usage": {"server_cpus": 1.0, "client_cpus": 0.5, "kernel_cpus": 0.1, "other_cpus": 0.0, "steal_cpus": 0.0, "noisy": False},
        "client_ceiling": {k: {"bytes_per_second": 1e9} for k in ("load_1", "load_32")}, "verified_rows": 10, "verified_bytes": 1e6,
        "create_table": {k: v.create_table() for k, v in VARIANTS.items()}, "started": 1.0, "seconds": 300.0,
        "crash": {"variant": "quarry", "clients": 2, "cycles": [cycle]}, "overwrite": make_overwrite(),
        "e1": {"points": points, "statements": {"a": "CREATE TABLE sbtest1 (id INT)"}, "read_percent": 90, "dataset_bytes_per_variant": 1 << 26,
               "seconds_per_point": 2},
    }  # fmt: skip


def test_ratios_are_taken_round_by_round(tmp_path):
    result = make_result(tmp_path)
    result["rounds"] = [c for c in result["rounds"] if not (c["variant"] == "innodb" and c["round"] == 2)]
    load, *_, written = summary.measures(result["settings"])[:5]
    assert summary.ratio(result, "all", "quarry", "innodb", load) == Summary(2.0, 2.0, 2.0, 2)
    assert summary.ratio(result, "all", "quarry", "innodb", written).median == pytest.approx(0.5)
    assert summary.summarize(result, "all", "quarry", load).median == pytest.approx(240)


@pytest.mark.parametrize(
    "low, high, better, found",
    [(1.1, 1.5, 1, 1), (0.5, 0.9, 1, -1), (0.9, 1.5, 1, 0), (1.01, 1.5, 1, 0), (0.5, 0.6, -1, 1), (1.2, 1.3, -1, -1)],
)
def test_better_and_worse_need_every_round(low, high, better, found):
    measure_ = summary.Measure("x", "x", "", better, lambda c: None, str)
    assert summary.verdict(Summary((low + high) / 2, low, high, 3), measure_) == found


def test_a_noisy_machine_is_named(tmp_path):
    result = make_result(tmp_path)
    assert "not quiet" not in report.render(result)
    result["processor_usage"].update(noisy=True, other_cpus=1.25)
    assert "other programs used 1.25 of its 2 processors" in report.render(result)


def test_the_page_is_self_contained_and_well_formed(tmp_path):
    result = make_result(tmp_path)
    page = report.render(json.loads(json.dumps(result)))
    assert "$" not in page.split("</style>")[1].replace("$commit", "")
    for forbidden in ("http://", "https://", "<script", "<img", "@import"):
        assert forbidden not in re.sub(r'xmlns(:xlink)?="http://www.w3.org/[0-9a-z/]+"', "", page)
    charts = page.split("<svg")[1:]
    assert len(charts) >= 19
    for chart in charts:
        assert ElementTree.fromstring("<svg" + chart.split("</svg>")[0] + "</svg>").get("role") == "img"
    assert "a &lt;cpu&gt;" in page and "2.00×" in page and "all equal" in page and "0.80 bytes of zeros" in page


def tiles(page):
    """The figure and the small print of each."""
    return re.findall(r'<div class="tile"><b class="[a-z]*">([^<]*)</b><span>[^<]*</span><small>([^<]*)</small>', page)


def test_a_tiles_ratio_is_the_quotient_of_the_numbers_on_it(tmp_path):
    result = make_result(tmp_path)
    rates = {("innodb", 1): 1.0, ("innodb", 2): 10.0, ("innodb", 3): 30.0, ("quarry", 1): 4.0, ("quarry", 2): 20.0, ("quarry", 3): 21.0}
    result["rounds"] = [make_cell(r, "all", v, rate) for (v, r), rate in rates.items()]
    reads = summary.measures(result["settings"])[2]
    assert summary.ratio(result, "all", "quarry", "innodb", reads).median == 2.0  # by round, median of 4, 2 and 0.7: the table's
    compared = [(ours, re.fullmatch(r"(.*) × InnoDB&#x27;s (.*)", small)) for ours, small in tiles(report.render(result))]
    found = {ours: (float(m[1]), float(m[2].replace(",", ""))) for ours, m in compared if m}
    assert found["20,000"] == (2.0, 10_000) and len(found) == 4
    assert all(ratio == round(float(ours.replace(",", "")) / theirs, 2) for ours, (ratio, theirs) in found.items())


@pytest.mark.parametrize(
    "ours, theirs, ratio", [("1,200", "600", 2.0), ("0.33", "1.00", 0.33), ("5", "0.00", None), ("5", "–", None), ("–", "5", None)]
)
def test_the_quotient_is_of_what_is_shown(ours, theirs, ratio):
    assert summary.quotient(ours, theirs) == ratio


def test_a_quick_run_says_at_the_top_that_it_judges_nothing_and_colours_nothing(tmp_path):
    result = make_result(tmp_path)
    assert "judges nothing" not in report.render(result) and 'class="strong good">2.00×' in report.render(result)
    result["settings"]["rounds"] = 1
    result["rounds"] = [cell for cell in result["rounds"] if cell["round"] == 1]
    page = report.render(result)
    assert "judges nothing: 1 round, and a judgement takes 3" in page[: page.index('class="tiles"')]
    assert 'class="strong">2.00×' in page and 'good">2.00×' not in page


def test_one_of_a_thing_has_no_s(tmp_path):
    result = make_result(tmp_path)
    result["corpus"]["files"] = result["verified_rows"] = result["settings"]["rounds"] = result["machine"]["processors"] = 1
    result["data_sets"]["all"]["files"] = result["overwrite"]["gc"]["passes"] = result["crash"]["cycles"][0]["acknowledged"] = 1
    text = unescape(re.sub(r"<[^>]*>", " ", report.render(result)))
    terminal = Console(width=200, file=io.StringIO(), record=True)
    console.print_all(terminal, result)
    for said in (text, terminal.export_text()):
        assert re.findall(r"(?<![\d,.])1 (?:files|values|rounds|clients|processors|passes|commits|rows|times|threads)\b", said) == []
    assert "1 file, in InnoDB and in Quarry" in text and "killed 1 time in" in text and "All files: 1 file," in text


def test_quarrys_column_stays_in_sight_on_a_narrow_screen(tmp_path):
    page = report.render(make_result(tmp_path))
    style, narrow = page.split("</style>")[0].split("@media (max-width: 640px)")
    assert re.search(r"\.figures \.kept \{[^}]*position: sticky", narrow.replace(".figures .name, .figures .kept", ".figures .kept"))
    assert "position: sticky" not in style
    table = page[page.index('<table class="figures">'):].split("</table>")[0]
    assert table.count('class="number kept">') == table.count("<tr") == 10 and '<th class="number kept">Quarry</th>' in table
    assert table.count('class="word name">') == 10 and '<td class="word name">random reads' in table


def test_a_wrong_row_is_shown_and_fails_the_run(tmp_path):
    result = make_result(tmp_path)
    damaged = copy.deepcopy(result)
    damaged["mismatches"] = ["Quarry, all files: row 7 is missing"]
    damaged["crash"]["cycles"][0]["wrong"] = ["row 3 is torn"]
    assert summary.mismatches(result) == []
    assert len(summary.mismatches(damaged)) == 2
    page = report.render(damaged)
    assert "row 7 is missing" in page and "after kill 1: row 3 is torn" in page and "all equal" not in page


def test_the_chart_of_space_shows_peaks_and_falls_straight_down():
    """Coordinates in the drawing are the figures; each line is named, and below each overwrite stands its peak."""
    made = make_overwrite(peak=2.0)
    figure = figures.space(made)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert [tuple(point) for point in lines["Quarry, on disk"].get_xydata()] == [(at, taken / 1e6) for at, taken in made["samples"]]
    assert set(lines["live: 20.0 MB"].get_ydata()) == {20.0} and set(lines["bound: 1.5 × live"].get_ydata()) == {30.0}
    assert list(lines["InnoDB"].get_ydata()) == [22.0, 42.0, 48.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1\n2.00", "2\n2.00"] and axes.get_ylim()[0] == 0
    plt.close(figure)


def test_the_chart_of_kills_has_a_lane_for_each_client_and_says_what_was_found(tmp_path):
    cycle = make_result(tmp_path)["crash"]["cycles"][0]
    figure = figures.kills([cycle, {**cycle, "cycle": 2, "acknowledged": 1, "wrong": ["row 3 is torn"]}])
    (axes,) = figure.axes
    said = [text.get_text() for text in axes.texts]
    assert {"kill -9, number 1", "4 commits acknowledged", "all 3 rows intact", "1 commit acknowledged", "1 row wrong"} <= set(said)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["client 1", "client 2"]
    marks = [path.get_extents() for collection in axes.collections for path in collection.get_paths()]
    assert min(mark.x0 for mark in marks) == pytest.approx(0.05) and max(mark.x1 for mark in marks) == pytest.approx(0.15)
    plt.close(figure)


def test_space_above_the_bound_is_said(tmp_path):
    result = make_result(tmp_path)
    page = report.render(result)
    assert "1.40 times at the most, within the bound all the time" in page and "2.40 times" in page
    result["overwrite"] = {**make_overwrite(peak=2.0), "late": ["34,000,000 bytes on disk 30 s after the last overwrite"]}
    page = report.render(result)
    assert "2.00 times at the most" in page and "in 2 of 2 overwrites more than the bound" in page
    assert "within the bound all the time" not in page and "34,000,000 bytes on disk" in page
    assert summary.mismatches(result) == [] and "all equal" in page
    result["overwrite"]["wrong"] = ["Quarry: row 3 is not what was written last"]
    assert summary.mismatches(result) == result["overwrite"]["wrong"]
    del result["overwrite"]
    assert "Overwritten again" not in report.render(result)


def test_the_overwritten_sample_fits_its_limits(tmp_path):
    files = make_corpus(tmp_path, megabytes=32)
    items = overwrite.sample(files, seed=1)
    assert items == overwrite.sample(make_corpus(tmp_path, megabytes=32), seed=1)
    assert all(overwrite.VALUE_BYTES_MIN <= item.size <= overwrite.VALUE_BYTES_MAX for item in items)
    assert min(overwrite.LIVE_BYTES, files.bytes) / 4 < sum(item.size for item in items) <= overwrite.LIVE_BYTES


def test_no_room_names_the_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(space.device, "free_bytes", lambda _path: 123_456)
    need = space.needed_bytes(100 << 20, 2.5)
    with pytest.raises(space.NoSpace, match=f"{need:,} bytes .* 123,456 bytes"):
        space.check(tmp_path, 100 << 20, 2.5)
