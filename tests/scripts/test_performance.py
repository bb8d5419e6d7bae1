"""scripts/performance: what it takes from results of the lab, and how it shows figures."""

import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
MACHINE = {"cpu": "a processor", "processors": 2, "file_system": "ext4   rw,relatime", "journal": False}
LOG = {"log_bin": "binlog", "binlog_format": "ROW", "sync_binlog": "1", "binlog_cache_size": "4M"}


@pytest.fixture
def performance(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("performance", str(SCRIPTS / "performance"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("performance", loader))
    monkeypatch.setitem(sys.modules, "performance", module)
    loader.exec_module(module)
    return module


def points(variant, rates, kib=64, operation="insert", threads=8):
    return [
        {
            "round": number,
            "operation": operation,
            "size_bytes": kib * 1024,
            "threads": threads,
            "variant": variant,
            "setting": "",
            "result": {"events_per_second": rate, "interval_seconds": 10.0},
            "cpu": {"noisy": False},
            "written": {"server_bytes_per_payload_byte": 1 + number / 100},
        }
        for number, rate in enumerate(rates, 1)
    ]


def result(found, commit="abc1234", profile="bare", experiment="targets", plugin="0" * 64, **machine):
    """machine: what of it differs."""
    mycnf = {"innodb_compression_algorithm": "zlib"} | (LOG if profile == "production" else {})
    parameters = {"profile": profile, "rounds": 3, "settings": {"seconds": 10}, "mycnf": mycnf, "main_plugin_sha256": plugin}
    sessions = [{"machine": MACHINE | {"commit": commit} | machine}]
    return {"experiment": experiment, "commit": commit, "date": "2026-11-28", "parameters": parameters, "sessions": sessions, "points": found}


def test_ratios_are_taken_round_by_round_and_what_was_not_measured_is_left_out(performance):
    inserts = points("innodb", [100, 200, 100]) + points("quarry", [150, 400, 110])
    cold = points("innodb", [10], 448, "cold-read", 1) + points("quarry-default", [42], 448, "cold-read", 1)
    data = performance.taken([result(inserts), result(cold, experiment="cold")])
    assert {row["work"]: row["kib"] for row in data["rows"]} == {
        "durable insert, 8 clients": {"64": [1.5, 1.1, 2.0]},
        "cold read, data four times the memory, 1 client": {"448": [4.2, 4.2, 4.2]},
        "bytes written per byte of payload, insert, 8 clients": {"64": [1.02, 1.01, 1.03]},
        "bytes written by InnoDB, insert, 8 clients": {"64": [1.02, 1.01, 1.03]},
    }
    lines = list(performance.tables({"bare": data}))
    machine = "a processor, 2 processors shared by server and clients; ext4 without a journal; no binary log; 3 rounds of 10 s"
    said = f"Commit abc1234, 2026-11-28. {machine}."
    assert lines[:2] == ["### Without a binary log", ""] and " ".join(lines[2 : lines.index("", 2)]) == said
    assert "| work | 64 KB | 448 KB |" in lines
    assert "| durable insert, 8 clients | 1.50 (1.10-2.00) |  |" in lines
    assert "| cold read, data four times the memory, 1 client |  | 4.2 (4.2-4.2) |" in lines


def test_every_size_and_every_number_of_clients_that_targets_measures_has_its_place(performance):
    """Small values, too, which the engine does not gain on: a table without them would hide it."""
    sizes = (2, 4, 8, 24, 64, 448)
    found = [p for n in (1, 8, 32) for kib in sizes for p in points("innodb", [100], kib, threads=n) + points("quarry", [100 + n], kib, threads=n)]
    for operation, threads in (("read", 1), ("read", 8), ("read", 32), ("mix", 1)):
        found += points("innodb", [100], 4, operation, threads) + points("quarry", [97], 4, operation, threads)
    data = {"bare": performance.taken([result(found)])}
    lines = list(performance.tables(data))
    assert "| work | 2 KB | 4 KB | 8 KB | 24 KB | 64 KB | 448 KB |" in lines
    assert "| durable insert, 1 client | " + " | ".join(["1.01 (1.01-1.01)"] * 6) + " |" in lines
    reads = [f"read from memory, {who}" for who in ("1 client", "8 clients", "32 clients")]
    for work in (*reads, "90 % reads and 10 % updates, 1 client"):
        assert f"| {work} |  | 0.97 (0.97-0.97) |  |  |  |  |" in lines
    assert [line for line in performance.readme_tables(data) if line.startswith("| insert 2 KB |")] == ["| insert 2 KB | 1.01 | 1.08 | **1.32** |"]


def test_other_work_of_cold_is_taken_from_its_rounds(performance):
    """It was typed by hand, and gone from the page once the rates were measured anew."""
    found, quarry = [], "quarry-default"
    for variant, rate, pool, peak in (("innodb", 10, 100, 1000 << 20), (quarry, 12, 150, 1003 << 20)):
        found += [p | {"memory": {"cached_bytes": {"buffer_pool": pool}}} for p in points(variant, [rate], 64, "columns", 1)]
        found += points(variant, [rate * rate], 65536, "range", 1)
        found += [p | {"server_memory": {"peak_bytes": peak, "buffer_pool_bytes": 900 << 20}} for p in points(variant, [1], 448, "memory-insert", 32)]
    found += points(quarry, [30], 64, "scan", 1) + points("quarry-one-by-one", [10], 64, "scan", 1)
    data = performance.taken([result(found, experiment="cold")])
    assert [row["measured"] for row in data["others"]] == [[[1.2] * 3], [[3.0] * 3], [[1.44] * 3], [[1.5] * 3], ["3 MiB (3 to 3) inserting"]]
    lines = list(performance.tables({"bare": data}))
    assert "| SELECT of the columns next to a 64 KB value, cold | 1.20 (1.20-1.20) |" in lines
    assert f"| {performance.MEMORY} | 3 MiB (3 to 3) inserting |" in lines
    for point in found:
        point["cpu"] = {"noisy": point["operation"] == "memory-insert"}
    note = performance.taken([result(found, experiment="cold")])["note"]
    assert note == "Other work disturbed 2 of 8 points, and too many behind: memory beyond the pool, inserting, 448 KB."


def test_the_production_profiles_cells_have_rows(performance):
    found = points("innodb", [100], threads=32) + points("quarry", [130], threads=32) + points("discarded", [143], threads=32)
    for n in (1, 8, 32):
        found += points("innodb", [100], operation="mix", threads=n) + points("quarry", [100 + n], operation="mix", threads=n)
        found += points("innodb-counter", [100], operation="counter", threads=n) + points("quarry-counter", [90], operation="counter", threads=n)
    works = {row["work"]: row["kib"].get("64", [])[:1] for row in performance.taken([result(found, profile="production")])["rows"]}
    assert works["durable insert, 32 clients, to BLACKHOLE, which stores nothing"] == [0.9091] and works["durable insert, 32 clients"] == [1.3]
    assert [works[f"90 % reads and 10 % updates, {who}"] for who in ("1 client", "8 clients", "32 clients")] == [[1.01], [1.08], [1.32]]
    counters = [f"update of an INT next to the value, {who}, `binlog_row_image=MINIMAL`" for who in ("1 client", "8 clients", "32 clients")]
    assert [works[work] for work in counters] == [[0.9]] * 3
    names = list(works)
    assert names.index("durable insert, 32 clients, to BLACKHOLE, which stores nothing") == names.index("durable insert, 32 clients") + 1


def all_clients(rates_of):
    """Inserts of 64 KB. rates_of: clients -> rates of three rounds, where InnoDB has 100 and BLACKHOLE 140."""
    found = []
    for n, rates in rates_of.items():
        for variant, of in (("innodb", [100] * 3), ("quarry", rates), ("discarded", [140] * 3)):
            found += points(variant, of, threads=n)
    return found


def test_each_target_of_the_production_profile_is_shown_with_what_was_measured(performance):
    found = all_clients({1: [101, 99, 100], 8: [110, 130, 120], 32: [130, 124, 124]})
    data = {"production": performance.taken([in_production(found)])}
    lines = list(performance.tables(data))
    counts = "The profile `production` has 17 targets: 3 met, 2 missed, 12 not measured. The median decides."
    assert [line for line in lines if line.startswith(counts)]
    start = lines.index("| load | clients | target | ratio to InnoDB | verdict | share of BLACKHOLE's rate |")
    assert lines.index("### With a binary log") < start < lines.index("| work | 64 KB |")
    assert lines[start + 5 : start + 8] == [
        "| durable insert of 64 KB | 1 | 1.00 | 1.00 (0.99-1.01) | met | 0.71 (0.71-0.72) |",
        "| durable insert of 64 KB | 8 | 1.00 | 1.20 (1.10-1.30) | met | 0.86 (0.79-0.93), target 0.85: met |",
        "| durable insert of 64 KB | 32 | 1.25 | 1.24 (1.24-1.30) | **missed** | 0.89 (0.89-0.93), target 0.90: **missed** |",
    ]
    assert lines[start + 2] == "| durable insert of 24 KB | 1 | 1.00 |  | not measured |  |"
    assert lines[start + 11] == "| 90 % reads and 10 % updates of 64 KB | 1 | 1.00 |  | not measured |  |"
    assert lines[start + 16] == "| update of an INT next to 64 KB, `binlog_row_image=MINIMAL` | 32 | 1.10 |  | not measured |  |"
    assert lines[start + 18].startswith("Where a target is missed: [durability.md](internals/durability.md), ")
    assert "targets" not in performance.taken([result(found)]), "they are those of the production profile"
    reads = points("innodb", [1], operation="read") + points("quarry", [1], operation="read")
    assert "targets" not in performance.taken([in_production(reads)]), "none was measured"


@pytest.mark.parametrize(
    "rates, ratio",
    [([998] * 3, "0.9980 (1.00-1.00) | **missed**"), ([1002] * 3, "1.00 (1.00-1.00) | met"), ([980] * 3, "0.98 (0.98-0.98) | **missed**")],
)
def test_a_missed_target_is_not_shown_as_if_it_were_reached(performance, rates, ratio):
    data = {"production": performance.taken([in_production(points("innodb", [1000] * 3) + points("quarry", rates))])}
    text = "\n".join(performance.tables(data))
    assert f"| durable insert of 64 KB | 8 | 1.00 | {ratio} |" in text
    assert ("1 missed" in text) == ("Where a target is missed" in text) == ("missed" in ratio)


def test_a_target_whose_rounds_bear_no_verdict_is_not_judged(performance):
    def line(found):
        lines = performance.tables({"production": performance.taken([in_production(found)])})
        return next(line for line in lines if line.startswith("| durable insert of 64 KB | 8 |"))

    def pair(number=3):
        return points("innodb", [100] * number) + points("quarry", [120] * number)

    few, short, noisy = pair(2), pair(), pair()
    short[0]["result"]["interval_seconds"] = 9.4
    for point in noisy[:3]:
        point["cpu"] = {"noisy": True}
    verdicts = [line(found).split(" | ")[4] for found in (pair(), few, pair()[:-1], short, noisy)]
    assert verdicts == ["met", *["not judged"] * 4]
    noisy[0]["cpu"] = {"noisy": False}
    assert line(noisy).split(" | ")[4] == "met", "a third may be"


def test_results_that_differ_in_what_the_table_is_of_make_none(performance):
    both = points("innodb", [1]) + points("quarry", [1])
    gone_on_with = result(both)
    gone_on_with["sessions"] += result(both, commit="def5678")["sessions"]
    for found, said in (
        ([result(both), result(both, profile="production", experiment="cold")], "results of 2 profiles: bare, production"),
        ([result(both), result(both, commit="def5678", experiment="cold")], "results of 2 commits: abc1234, def5678"),
        ([gone_on_with], "results of 2 commits: abc1234, def5678"),
        ([result(both), result(both, processors=4, experiment="cold")], "2 machines: a processor, 2 processors, a processor, 4 processors"),
        ([result(both), result(both, journal=True, experiment="cold")], "2 file systems: ext4 with a journal, ext4 without a journal"),
        ([result(both), result(both, plugin="f" * 64, experiment="cold")], "2 builds of the plugin: 000000000000, ffffffffffff"),
        ([result(both), result(both)], "two results of one experiment"),
        ([result(points("rocksdb", [1]), experiment="e5")], "no row of the table is in results of e5"),
    ):
        with pytest.raises(performance.PerformanceError, match=said):
            performance.taken(found)


def test_bytes_written_say_that_the_binary_log_is_in_them(performance):
    found = [result(points("quarry", [1]), profile=profile) for profile in ("bare", "production")]
    works = [[row["work"] for row in performance.taken([each])["rows"]] for each in found]
    plain = "bytes written per byte of payload, insert, 8 clients"
    assert works == [[plain], [f"{plain}, its binary log included"]]


def test_disturbed_rounds_are_told_and_figures_that_rest_on_too_many(performance):
    """As verdicts have it: beyond a third of the points behind a figure nothing is judged."""
    found = points("innodb", [1, 1, 1]) + points("quarry", [1, 1, 1])
    assert "note" not in performance.taken([result(found)])
    shaky = ", and too many behind: durable insert, 8 clients, 64 KB; bytes written by InnoDB, insert, 8 clients, 64 KB."
    for number, (disturbed, said) in enumerate(((1, "."), (3, "."), (2, shaky)), 1):
        found[disturbed]["cpu"] = {"noisy": True}
        assert performance.taken([result(found)])["note"] == f"Other work disturbed {number} of 6 points{said}"
        assert f"Other work disturbed {number} of 6 points" in "\n".join(performance.tables({"bare": performance.taken([result(found)])}))


def test_cold_reads_of_data_that_nearly_fit_make_no_table(performance):
    """The rows say four times the memory; a run may be asked for less."""
    cold = result(points("innodb", [10], 448, "cold-read", 1) + points(performance.COLD, [42], 448, "cold-read", 1), experiment="cold")
    cold["parameters"]["options"] = {"memory_bytes": 100, "dataset_bytes": 400}
    assert performance.taken([cold])["rows"]
    cold["parameters"]["options"]["dataset_bytes"] = 399
    with pytest.raises(performance.PerformanceError, match="less than 4 times the memory: 399 bytes"):
        performance.taken([cold])


def test_a_page_without_the_place_for_tables_is_an_error(performance):
    data = {"bare": performance.taken([result(points("innodb", [1]) + points("quarry", [1]))])}
    page = f"head\n{performance.BEGIN}\nold\n{performance.END}\ntail\n"
    made = performance.filled(page, performance.tables(data))
    assert made.startswith("head\n") and made.endswith("\ntail\n") and "old" not in made
    assert performance.filled(made, performance.tables(data)) == made
    with pytest.raises(performance.PerformanceError, match="lacks"):
        performance.filled("nothing", [])


def in_production(found, commit="def5678"):
    return result(found, commit, "production", journal=True)


def test_the_readme_has_medians_and_one_bold_figure(performance):
    rates = points("innodb", [100, 100, 100]) + points("quarry", [150, 170, 160]) + points("innodb", [10], 4) + points("quarry", [9], 4)
    lines = list(performance.readme_tables({"bare": performance.taken([result(rates)])}))
    assert lines[0] == "Without a binary log:"
    assert "| insert 4 KB (in the row) |  | 0.90 |  |" in lines
    assert "| insert 64 KB |  | **1.60** |  |" in lines
    assert sum(line.count("**") for line in lines) == 2


def test_the_readme_has_a_table_for_each_profile_and_no_line_without_a_figure(performance):
    logged = points("innodb", [100], threads=32) + points("quarry", [130], threads=32)
    logged += points("innodb", [100], operation="mix") + points("quarry", [110], operation="mix")
    logged += points("innodb-counter", [100], operation="counter") + points("quarry-counter", [105], operation="counter")
    plain = points("innodb", [100], operation="read") + points("quarry", [270], operation="read")
    data = {"production": performance.taken([in_production(logged)]), "bare": performance.taken([result(plain)])}
    lines = list(performance.readme_tables(data))
    head = ["", "|  | 1 client | 8 clients | 32 clients |", "|---|---|---|---|"]
    counter = "| update of an INT next to 64 KB, `binlog_row_image=MINIMAL` |  | 1.05 |  |"
    figures = ["| insert 64 KB |  |  | **1.30** |", "| 90 % reads and 10 % updates, 64 KB |  | 1.10 |  |", counter]
    assert lines[: len(head) + len(figures) + 2] == ["With a binary log:", *head, *figures, ""]
    second = lines.index("Without a binary log:")
    assert lines[second : second + 6] == ["Without a binary log:", *head, "| read 64 KB from memory |  | 2.70 |  |", ""]
    cold = points("innodb", [10], 64, "columns", 1) + points(performance.COLD, [12], 64, "columns", 1)
    data["production"] = performance.taken([in_production(cold)])
    assert next(performance.readme_tables(data)) == "Without a binary log:", "no table without a line"


def test_a_table_says_what_binary_log_and_file_system_it_is_of(performance):
    found = performance.taken([in_production(points("innodb", [1]) + points("quarry", [1]))])
    settings = "a binary log with `binlog_format=ROW`, `sync_binlog=1`, `binlog_cache_size=4M`"
    assert found["machine"] == f"a processor, 2 processors shared by server and clients; ext4 with a journal; {settings}; 3 rounds of 10 s"


def test_generated_prose_fits_a_line_of_a_document(performance):
    found = []
    for kib in (24, 64, 448):
        for n in (1, 8, 32):
            found += points("innodb", [1], kib, threads=n) + points("quarry", [1], kib, threads=n)
    for point in found:
        point["cpu"] = {"noisy": True}
    data = {"production": performance.taken([in_production(found)])}
    note = data["production"]["note"]
    assert len(note) > 2 * performance.LINE_MAX and "BLACKHOLE" not in note, "there is no such figure"
    for made in (performance.tables(data), performance.readme_tables(data)):
        assert all(len(line) <= performance.LINE_MAX for line in made if not line.startswith("|"))


def test_the_commit_of_a_plugin_that_was_copied_is_named(performance):
    """The tree may go on while a copy of the plugin is measured, but not to another build."""
    both = result(points("innodb", [1]) + points("quarry", [1]))
    both["sessions"] += result([], commit="def5678")["sessions"]
    assert performance.taken([both], "0123abc")["commit"] == "0123abc"
    with pytest.raises(performance.PerformanceError, match="--commit names the plugin's"):
        performance.taken([both])
    both["sessions"] = [session | {"command": ["quarry_lab", "bench", "--plugin", "copy.so"]} for session in both["sessions"][:1]]
    with pytest.raises(performance.PerformanceError, match="copied plugin"):
        performance.taken([both])
    assert performance.taken([both], "0123abc")["commit"] == "0123abc"
    both["sessions"][0]["machine"] = both["sessions"][0]["machine"] | {"commit": "0123abc", "lab_commit": "abc1234"}
    assert performance.taken([both])["commit"] == "0123abc", "`results --add` had it named"
    with pytest.raises(performance.PerformanceError, match="2 builds"):
        performance.taken([both, result([], plugin="f" * 64, experiment="cold")], "0123abc")


@pytest.fixture
def call(performance, monkeypatch, tmp_path):
    """scripts/performance on a tree of two empty pages, with figures of the profile `bare`."""
    monkeypatch.setattr(performance.result_page, "REPOSITORY", tmp_path)
    monkeypatch.setattr(performance, "DATA", tmp_path / "performance.json")
    (tmp_path / "docs").mkdir()
    for name in performance.PAGES:
        (tmp_path / name).write_text(f"above\n{performance.BEGIN}\n{performance.END}\nbelow\n")
    plain = points("innodb", [100]) + points("quarry", [200]) + points("innodb", [100], operation="read") + points("quarry", [101], operation="read")
    performance.DATA.write_text(json.dumps({"bare": performance.taken([result(plain)])}))

    def called(*arguments, of=None):
        """of: results to take."""
        files = []
        for number, each in enumerate(of or []):
            files.append(tmp_path / f"{number}.json")
            files[-1].write_text(json.dumps(each))
        monkeypatch.setattr(sys, "argv", ["performance", *(["--from", *map(str, files)] if files else []), *arguments])
        return performance.main()

    return called


def test_figures_of_one_profile_leave_those_of_the_other_where_they_are(performance, call, tmp_path, capsys):
    assert call() == 0 and call("--check") == 0
    before = json.loads(performance.DATA.read_text())
    new = in_production(points("innodb", [100]) + points("quarry", [120]))
    assert call("--commit", "0123abc", of=[new]) == 0 and call("--check") == 0
    assert capsys.readouterr().out == ""
    data = json.loads(performance.DATA.read_text())
    assert list(data) == ["production", "bare"] and data["bare"] == before["bare"] and data["production"]["commit"] == "0123abc"
    for name, figures in (("docs/performance.md", ("1.20 (1.20-1.20)", "2.00 (2.00-2.00)")), ("README.md", ("**1.20**", "2.00"))):
        page = (tmp_path / name).read_text()
        places = [page.index(text) for text in ("above", "With a binary log", figures[0], "Without a binary log", figures[1], "\nbelow\n")]
        assert places == sorted(places)


def test_rows_that_new_figures_lack_are_named(performance, call, capsys):
    assert call(of=[result(points("innodb", [100]) + points("quarry", [150]))]) == 0
    assert capsys.readouterr().out == "performance: 'Without a binary log' has no longer: read from memory, 8 clients\n"
    assert "read from memory" not in performance.DATA.read_text()


def test_a_page_that_is_not_what_the_file_gives_is_found(call, tmp_path, capsys):
    assert call("--check") == 1 and "README.md is not what" in capsys.readouterr().out
    assert (tmp_path / "README.md").read_text().count("\n") == 4, "--check writes nothing"
