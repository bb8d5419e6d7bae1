"""Medians, ratios, verdicts and charts: figures from raw rounds."""

import io

import matplotlib.pyplot as plt
import pytest
from quarry_lab.design.cells import CellKey, Cells, bytes_written_ratio, payload_rate, throughput
from quarry_lab.design.profile import TEXTS
from quarry_lab.design.variants import KIB
from quarry_lab.experiments.e1 import experiment as e1
from quarry_lab.experiments.e2 import findings as e2
from quarry_lab.report import charts, stats, verdicts
from quarry_lab.run.runner import line
from quarry_lab.run.tables import comparison_table
from rich.console import Console

from overlaps import overlaps
from plain import Plain
from worlds import spread


class Run:
    """What a report sees of a run."""

    def __init__(self, points, **parameters):
        self.points, self.run = points, run_json(**parameters)


def run_json(rounds=3, seconds=10, rate=1e9):
    return {"parameters": {"name": "plain", "rounds": rounds, "settings": {"seconds": seconds}, "payload": "random", "profile": "bare"},
            "sessions": [{"device_probes": [{"round": 1, "sequential_write_bytes_per_second": rate}]}]}


def test_summary_is_median_and_range():
    summary = stats.summarize([3.0, 1.0, 2.0])
    assert (summary.median, summary.low, summary.high, summary.rounds) == (2.0, 1.0, 3.0, 3)
    with pytest.raises(ValueError):
        stats.summarize([])


def test_ratio_pairs_rounds_and_leaves_out_what_one_side_lacks():
    ratio = stats.paired_ratio({1: 10.0, 2: 30.0, 3: 99.0}, {1: 10.0, 2: 10.0})
    assert (ratio.median, ratio.low, ratio.high, ratio.rounds) == (2.0, 1.0, 3.0, 2)
    assert stats.paired_ratio({1: 1.0}, {2: 1.0}) is None


def test_percentile_is_nearest_rank():
    assert stats.percentile([float(x) for x in range(1, 101)], 95) == 95.0
    assert stats.percentile([5.0], 95) == 5.0


@pytest.mark.parametrize("value, text", [(12.44, "12.4"), (5210, "5,210"), (96700, "96.7k"), (123456, "123k")])
def test_human_count(value, text):
    assert stats.human_count(value) == text


def test_cells_group_points_and_count_noise(make_point):
    cells = Cells([make_point(round_number=r, rate=rate, noisy=r == 2) for r, rate in ((1, 10.0), (2, 30.0), (3, 20.0))])
    key = CellKey("insert", 65536, 8)
    assert cells.summary(key, "innodb", throughput).median == 20.0
    assert cells.noisy_rounds(key, "innodb") == 1
    assert cells.summary(key, "quarry", throughput) is None
    assert cells.summary(key, "innodb", bytes_written_ratio).median == 2.0


def test_payload_rate_counts_rows_of_batches(make_point):
    assert payload_rate(make_point(rate=10.0, batch_rows=16, size_bytes=1024)) == 10 * 16 * 1024
    assert payload_rate(make_point(operation="read")) == 0


def test_a_disturbed_run_gets_no_verdict(make_point):
    finding = verdicts.Finding("x", "a finding", "a rule")

    def state(noisy_points):
        points = [make_point(round_number=r, noisy=r <= noisy_points) for r in (1, 2, 3)]
        return verdicts.judge(finding, True, "found", {}, points, {"rounds": 3}, ("met", "not met"))

    assert state(0).state == "met"
    assert state(1).state == "met" and "1 of 3 points noisy" in state(1).reason
    assert state(2).state == "not judged" and "not quiet in 2 of 3" in state(2).reason


def e1_points(make_point, inline_rate, seconds=10.0, memory=(4.0, 1.5)):
    cached = dict(zip(("quarry-head", "quarry-inline"), memory, strict=True))
    return [{**make_point(variant=v, operation="mix", size_bytes=4 * KIB, threads=8, round_number=r, rate=rate, seconds=seconds),
             "memory": {"payload_bytes": 1000, "cached_bytes": {"buffer_pool": 1000 * cached[v], "quarry_cache": 0}}}
            for r in (1, 2, 3) for v, rate in (("quarry-head", 100.0), ("quarry-inline", inline_rate))]


def verdict_of(experiment, run, finding):
    return next(v for v in experiment.verdicts(run) if v.id == finding)


@pytest.mark.parametrize("inline_rate, parameters, state", [
    (116.0, {}, "reproduced"), (110.0, {}, "weaker"), (90.0, {}, "opposite"),
    (116.0, {"rounds": 1}, "not judged"), (116.0, {"seconds": 3}, "not judged")])
def test_e1_verdict(make_point, inline_rate, parameters, state):
    points = e1_points(make_point, inline_rate, seconds=parameters.get("seconds", 10.0))
    verdict = verdict_of(e1.InlinePartsBatches(), Run(points, **parameters), "e1-4kb-inline")
    assert verdict.state == state and verdict.figures["x8"]["median"] == pytest.approx(inline_rate / 100 - 1)


def test_e1_memory_is_judged_per_payload_byte(make_point):
    experiment = e1.InlinePartsBatches()
    assert verdict_of(experiment, Run(e1_points(make_point, 100.0)), "e1-memory").state == "opposite"
    assert verdict_of(experiment, Run(e1_points(make_point, 100.0, memory=(1.1, 1.2))), "e1-memory").state == "reproduced"


def sweep_points(make_point, largest_rate):
    """largest_rate: of all rounds, or of each."""
    rates = {"quarry-head": 100.0, "quarry-head-4m": 160.0}
    return [make_point(variant=v, operation="mix", size_bytes=448 * KIB, threads=32, round_number=r, rate=rate)
            for r in (1, 2, 3) for v, rate in {**rates, "quarry-batch-32768k": spread(largest_rate)[r - 1]}.items()]


@pytest.mark.parametrize("largest_rate, state", [
    (120.0, "reproduced"), (158.0, "weaker"), (200.0, "opposite"), ((150.0, 158.0, 150.0), "mixed"), ((161.0, 159.0, 161.0), "weaker")])
def test_e1_too_large_a_batch(make_point, largest_rate, state):
    run = Run(sweep_points(make_point, largest_rate))
    assert verdict_of(e1.InlinePartsBatches(), run, "e1-excessive-batch").state == state
    assert "sweep" in e1.InlinePartsBatches().figures(run)


def test_e2_reservations_come_from_the_servers_counter(make_point):
    point = make_point(rate=10.0, seconds=10.0, batch_rows=16, status={"quarry_autoincrement_reservations": 160})
    assert e2.reservations_per_1000_rows(point) == 100.0
    assert e2.reservations_per_1000_rows(make_point()) is None


def test_e2_trips_are_those_of_all_sql_nodes_with_clients(make_point):
    point = make_point(rate=10.0, seconds=10.0, batch_rows=16)
    assert e2.trips_per_1000_rows(point) is None
    assert e2.trips_per_1000_rows({**point, "nodes": {"trips": {"4": 1600, "5": 1600}}}) == 2000.0


def test_table_shows_ratio_noise_and_cold_reads(make_point):
    cold = make_point(variant="quarry", operation="read", rate=300.0)
    cold["written"]["server_read_bytes_during_run"] = 10**9
    points = [make_point(rate=100.0), make_point(variant="quarry", rate=250.0, noisy=True), cold]
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(*comparison_table(Cells(points), run_json(rounds=1), "innodb"))
    text = console.export_text()
    assert "2.50x" in text and "noisy 1/1" in text and "read from the device 1/1" in text
    assert "plain: 1 round of 10 s, profile bare, payload random" in text


@pytest.mark.parametrize("profile", TEXTS)
def test_a_report_says_its_profile_before_its_tables(profile, monkeypatch):
    monkeypatch.setattr(Plain, "tables", lambda _self, _run: ["a table"])
    console = Console(width=200, file=io.StringIO(), record=True)
    run = Run([])
    run.run["parameters"]["profile"] = profile
    Plain().report(console, run)
    text = console.export_text()
    assert text.index(TEXTS[profile]) < text.index("a table")


def test_a_points_line_counts_statements_that_were_repeated(make_point):
    point = make_point()
    assert "repeated" not in line(point)
    point["result"]["errors"] = 2
    assert "2 statements repeated" in line(point)


@pytest.mark.parametrize("count, noun, text", [(1, "file", "1 file"), (0, "file", "0 files"), (2000, "file", "2,000 files"), (2, "pass", "2 passes")])
def test_counted(count, noun, text):
    assert stats.counted(count, noun) == text


def test_charts_come_as_svg_and_png(tmp_path):
    series = [charts.Series("innodb", "InnoDB BLOB", [stats.Summary(10, 9, 11, 3), None]),
              charts.Series("quarry", "QUARRY", [stats.Summary(20, 19, 21, 3), stats.Summary(5, 5, 5, 1)])]
    picture = charts.svg(charts.lines("title & more", "threads", "events/s", [1, 8], series))
    assert picture.startswith("<svg") and picture.rstrip().endswith("</svg>") and "QUARRY" in picture and "title &amp; more" in picture
    assert 'aria-label="title &amp; more"' in picture
    path = charts.save_png(charts.bars("b", "B/B", "size", ["4 KB", "64 KB"], series), tmp_path / "b.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_reason_is_taken_apart_at_its_levels_and_not_within_brackets():
    assert verdicts.parts_of("x8: +1% (-1% to +3%), weaker; x32: +2% (of two; of three)") == ["x8: +1% (-1% to +3%), weaker", "x32: +2% (of two; of three)"]
    assert verdicts.parts_of("x8: +1%; not as on NDB: a trip; no flush (4/s here; waits 3.10)") == [
        "x8: +1%", "not as on NDB: a trip; no flush (4/s here; waits 3.10)"]
    assert verdicts.parts_of("no such server") == ["no such server"]


@pytest.mark.parametrize("value, text", [(0.124, "+12%"), (-0.003, "+0%"), (0.0, "+0%"), (-0.006, "-1%"), (2.29, "+229%")])
def test_a_gain_of_nothing_has_one_sign(value, text):
    assert stats.human_gain(value) == text


@pytest.mark.parametrize("value, text", [(4.368, "4.37 ms"), (63.32, "63.3 ms"), (999.7, "1,000 ms"), (1452.2, "1,452 ms")])
def test_milliseconds_have_no_exponent(value, text):
    assert stats.human_ms(value) == text


@pytest.mark.parametrize("value, text", [(14_750_000, "14.8 MB"), (239e6, "239 MB"), (1_060_000_000, "1,060 MB")])
def test_megabytes_are_those_of_the_documents(value, text):
    assert stats.human_megabytes(value) == text


def test_a_chart_that_is_passed_on_says_its_rounds_and_its_profile(tmp_path):
    note = Plain().chart_note(Run([], rounds=3))
    assert "medians of 3 rounds" in note and TEXTS["bare"] in note
    series = [charts.Series("innodb", "InnoDB BLOB", [stats.Summary(10, 9, 11, 3)])]
    heights = []
    for said in ("", note):
        figure = charts.bars("b", "B/B", "size", ["4 KB"], series)
        content = charts.save_png(figure, tmp_path / "b.png", note=said).read_bytes()
        heights.append(int.from_bytes(content[20:24], "big"))
        assert [text.get_text().replace("\n", " ") for text in figure.texts] == ([note] if said else [])
    assert heights[1] > heights[0], "the note has room below the chart"


def test_the_note_below_a_chart_leaves_its_legend_alone(tmp_path):
    series = [charts.Series(name, name, [stats.Summary(10, 9, 11, 3)] * 2) for name in ("innodb", "quarry")]
    figure = charts.bars("b", "B/B", "size", ["4 KB", "64 KB"], series)
    drawn = {}
    save = figure.savefig

    def look(*arguments, **options):
        """Where things are while the picture is drawn: the tight box holds for so long."""
        draw = figure.legends[0].draw

        def draws(renderer):
            draw(renderer)
            drawn["legend"] = figure.legends[0].get_window_extent(renderer)
            drawn["note"] = figure.texts[0].get_window_extent(renderer)

        figure.legends[0].draw = draws
        save(*arguments, **options)

    figure.savefig = look
    charts.save_png(figure, tmp_path / "b.png", note="medians")
    assert drawn["note"].y1 <= drawn["legend"].y0


@pytest.mark.parametrize("sides, rates", [(1, (8000.0,)), (4, (8011.0, 2343.0, 8504.0, 8921.0)), (9, (12_345.0, 12_344.0, 999.0))])
def test_the_figures_behind_bars_do_not_overlap(sides, rates):
    """As E5 has them: seven workloads, with figures so close that they stood on each other when bars were narrow columns."""
    groups = ["load", "published", "a", "b", "c", "f", "d"]
    rounds = [stats.Summary(rate, rate * 0.8, rate * 1.2, 3) for rate in rates]
    series = [charts.Series(f"engine {n}", f"an engine of a long name, {n} paths", [rounds[n % len(rounds)]] * len(groups)) for n in range(sides)]
    figure = charts.bars("throughput", "operations per second", "workload", groups, series)
    assert overlaps(figure) == []
    plt.close(figure)


def test_two_builds_of_the_plugin_are_compared_with_each_other_too(make_point):
    points = [make_point(variant=v, rate=rate) for v, rate in (("innodb", 100.0), ("quarry", 150.0), ("quarry-baseline", 120.0))]
    console = Console(width=220, file=io.StringIO(), record=True)
    console.print(*comparison_table(Cells(points), run_json(rounds=1), "innodb"))
    row = next(line for line in console.export_text().splitlines() if "QUARRY " in line and "150" in line)
    assert "1.50x" in row and "1.25x" in row
