"""scripts/performance: what it takes from results of the lab, and how it shows figures."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
MACHINE = {"cpu": "a processor", "processors": 2, "file_system": "ext4"}


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
            "result": {"events_per_second": rate},
            "cpu": {"noisy": False},
            "written": {"server_bytes_per_payload_byte": 1 + number / 100},
        }
        for number, rate in enumerate(rates, 1)
    ]


def result(found, commit="abc1234", profile="bare", experiment="targets", **machine):
    """machine: what of it differs."""
    parameters, sessions = {"profile": profile}, [{"machine": MACHINE | {"commit": commit} | machine}]
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
    lines = list(performance.tables(data))
    assert lines[0] == "Commit abc1234, 2026-11-28. a processor, 2 processors shared by server and clients, ext4, profile bare of the lab."
    assert "| work | 64 KB | 448 KB |" in lines
    assert "| durable insert, 8 clients | 1.50 (1.10-2.00) |  |" in lines
    assert "| cold read, data four times the memory, 1 client |  | 4.2 (4.2-4.2) |" in lines


def test_every_size_and_every_number_of_clients_that_targets_measures_has_its_place(performance):
    """Small values, too, which the engine does not gain on: a table without them would hide it."""
    sizes = (2, 4, 8, 24, 64, 448)
    found = [p for n in (1, 8, 32) for kib in sizes for p in points("innodb", [100], kib, threads=n) + points("quarry", [100 + n], kib, threads=n)]
    for operation, threads in (("read", 1), ("read", 8), ("read", 32), ("mix", 1)):
        found += points("innodb", [100], 4, operation, threads) + points("quarry", [97], 4, operation, threads)
    data = performance.taken([result(found)])
    lines = list(performance.tables(data))
    assert "| work | 2 KB | 4 KB | 8 KB | 24 KB | 64 KB | 448 KB |" in lines
    assert "| durable insert, 1 client | " + " | ".join(["1.01 (1.01-1.01)"] * 6) + " |" in lines
    reads = [f"read from memory, {who}" for who in ("1 client", "8 clients", "32 clients")]
    for work in (*reads, "90 % reads and 10 % updates, 1 client"):
        assert f"| {work} |  | 0.97 (0.97-0.97) |  |  |  |  |" in lines
    assert [line for line in performance.readme_table(data) if line.startswith("| insert 2 KB |")] == ["| insert 2 KB | 1.01 | 1.08 | **1.32** |"]


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
    lines = list(performance.tables(data))
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


def test_results_that_differ_in_what_the_table_is_of_make_none(performance):
    both = points("innodb", [1]) + points("quarry", [1])
    gone_on_with = result(both)
    gone_on_with["sessions"] += result(both, commit="def5678")["sessions"]
    for found, said in (
        ([result(both), result(both, profile="production", experiment="cold")], "results of 2 profiles: bare, production"),
        ([result(both), result(both, commit="def5678", experiment="cold")], "results of 2 commits: abc1234, def5678"),
        ([gone_on_with], "results of 2 commits: abc1234, def5678"),
        ([result(both), result(both, processors=4, experiment="cold")], "2 machines: a processor, 2 processors, a processor, 4 processors"),
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
        assert list(performance.tables(performance.taken([result(found)])))[1] == f"Other work disturbed {number} of 6 points{said}"


def test_cold_reads_of_data_that_nearly_fit_make_no_table(performance):
    """The rows say four times the memory; a run may be asked for less."""
    cold = result(points("innodb", [10], 448, "cold-read", 1) + points(performance.COLD, [42], 448, "cold-read", 1), experiment="cold")
    cold["parameters"]["options"] = {"memory_bytes": 100, "dataset_bytes": 400}
    assert performance.taken([cold])["rows"]
    cold["parameters"]["options"]["dataset_bytes"] = 399
    with pytest.raises(performance.PerformanceError, match="less than 4 times the memory: 399 bytes"):
        performance.taken([cold])


def test_a_page_without_the_place_for_tables_is_an_error(performance):
    data = performance.taken([result(points("innodb", [1]) + points("quarry", [1]))])
    page = f"head\n{performance.BEGIN}\nold\n{performance.END}\ntail\n"
    made = performance.filled(page, performance.tables(data))
    assert made.startswith("head\n") and made.endswith("\ntail\n") and "old" not in made
    assert performance.filled(made, performance.tables(data)) == made
    with pytest.raises(performance.PerformanceError, match="lacks"):
        performance.filled("nothing", [])


def test_the_readme_has_medians_and_one_bold_figure(performance):
    rates = points("innodb", [100, 100, 100]) + points("quarry", [150, 170, 160]) + points("innodb", [10], 4) + points("quarry", [9], 4)
    lines = list(performance.readme_table(performance.taken([result(rates)])))
    assert "| insert 4 KB (in the row) |  | 0.90 |  |" in lines
    assert "| insert 64 KB |  | **1.60** |  |" in lines
    assert sum(line.count("**") for line in lines) == 2
