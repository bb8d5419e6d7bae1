"""Results as data: a run becomes one file without a path of its machine, and docs/results/lab.md is what the files give."""

import json
import re

import pytest
from quarry_lab import lab_results, results_tables
from quarry_lab.design.request import LabError
from quarry_lab.design.results import RunDirectory
from quarry_lab.catalogue import EXPERIMENTS, PUBLISHED
from quarry_lab.report.verdicts import ANSWERED, MEANINGS, PUBLISHED_STATES, FindingRow
from quarry_server.server import REPOSITORY
from worlds import DOCUMENT_BYTES, fetched, mix, points, ycsb

MACHINE = {"cpu": "a processor", "processors": 2, "memory_bytes": 1, "file_system": "ext4 rw", "device": "/dev/vda", "commit": "abc1234"}


def made_run(path, name, points, rounds=3, finished=True, commit="abc1234", started=1.0):
    run = RunDirectory(path, {"name": name, "rounds": rounds, "payload": "random", "profile": "bare", "settings": {"seconds": 10}, "target": "/home/someone/mysqld.sock"})
    run.add_session({"started": started, "machine": {**MACHINE, "commit": commit}, "command": ["quarry_lab", "bench", "--plugin", "/home/someone/ha_quarry.so"], "json_value": {},
                     "device_probes": [], "servers": {"main": {"version": "10.11", "command": ["/usr/sbin/mariadbd"], "pinned": {"a": "1"}, "plugin": "/x/y.so",
                                                               "environment": {"MALLOC_ARENA_MAX": "2"}, "plugin_sha256": "0" * 64}}})
    for point in points:
        run.add_point(point)
    if finished:
        run.finish()
    return run


def test_a_file_gives_the_verdicts_of_its_run(tmp_path):
    levels = mix(4, 8, quarry_head=100, quarry_inline=116) + mix(4, 32, quarry_head=100, quarry_inline=70)
    ids = [point for variant in ("target-ndb-prefetch-1", "quarry-prefetch-1") for point in points("insert", 1024, 8, variant, 1000)]
    for name, rounds in (("e1", levels), ("e2", ids), ("e5", ycsb("published", 1000))):
        run = made_run(tmp_path / name, name, rounds)
        result = lab_results.read(lab_results.add(run, tmp_path / "results"))
        verdicts = EXPERIMENTS[name].verdicts(result)
        assert verdicts == EXPERIMENTS[name].verdicts(run) and {v.state for v in verdicts} > {"not measured"}
        assert lab_results.newest(name, tmp_path / "results").points == result.points


def of_ndb(threads, daemon):
    """E4: processors of NDB, of its SQL node alone, and of a client that takes more than that."""
    made = points("fetch", 100, threads, "target-ndb-text", 1000)
    for point in made:
        point["cpu"] |= {"server_cpus": 1.2, "client_cpus": 0.7, "daemon_cpus": daemon}
    return made


def by_proxy(proxy):
    """E3: inflating in the application or in the server, with a proxy that takes processors for the one of them."""
    made = fetched("real", DOCUMENT_BYTES, "localhost", {"uncompress": 1.0, "app_mysql": 1.2}, {"uncompress": 0.4, "app_mysql": 1.5}, uncompress=100, app_mysql=100)
    for point in made:
        point["cpu"]["proxy_cpus"] = proxy if point["variant"] == "app-mysql" else 0.0
    return made


@pytest.mark.parametrize("name, rounds, finding, state", [
    ("e3", by_proxy(0.9), "e3-moves-work", "reproduced"),
    ("e3", by_proxy(0.0), "e3-moves-work", "mixed"),
    ("e3", fetched("stub-2", DOCUMENT_BYTES, "localhost", stored=6.2, app_mysql=100), "e3-ratios", "reproduced"),
    ("e4", of_ndb(8, 0.5) + of_ndb(1, 0.05), "e4-processors-ndb", "opposite")])
def test_a_file_has_what_only_one_rule_reads(tmp_path, name, rounds, finding, state):
    """What the client sent to store a value; what the SQL node alone, or a proxy, took of the processors."""
    run = made_run(tmp_path / name, name, rounds)
    result = lab_results.read(lab_results.add(run, tmp_path / "results"))
    for judged in (run, result):
        assert {verdict.id: verdict.state for verdict in EXPERIMENTS[name].verdicts(judged)}[finding] == state


def test_a_file_has_what_scripts_performance_reads_of_memory():
    read = {"memory": {"cached_bytes": {"buffer_pool": 7}}, "server_memory": {"peak_bytes": 9, "buffer_pool_bytes": 8}}
    kept = lab_results._point(points("memory-insert", 448, 32, "quarry-default", 100)[0] | read)
    assert {name: kept[name] for name in read} == read


def test_a_file_has_what_was_run_and_no_path_of_the_machine(tmp_path):
    path = lab_results.add(made_run(tmp_path / "e1", "e1", mix(4, 8, quarry_head=100)), tmp_path / "results")
    assert re.fullmatch(r"e1-\d{4}-\d\d-\d\d-abc1234\.json", path.name)
    text = path.read_text()
    assert not re.search(r'(?<![\w.])/\w', text) and "someone" not in text and "mysqld.sock" in text
    found = json.loads(text)
    assert found["sessions"][0]["command"] == ["quarry_lab", "bench", "--plugin", "ha_quarry.so"]
    assert found["sessions"][0]["servers"] == {"main": {"version": "10.11", "pinned": {"a": "1"}, "environment": {"MALLOC_ARENA_MAX": "2"},
                                                        "plugin_sha256": "0" * 64}}
    assert (found["experiment"], found["commit"], len(found["points"])) == ("e1", "abc1234", 3)


def test_a_copied_plugin_has_the_commit_that_it_was_built_from(tmp_path):
    """The tree may go on while a copy is measured."""
    path = lab_results.add(made_run(tmp_path / "e1", "e1", mix(4, 8, quarry_head=100)), tmp_path / "results", "0123abc")
    result = lab_results.read(path)
    assert path.name.endswith("-0123abc.json") and result.commits == ["0123abc"] and result.session["machine"]["lab_commit"] == "abc1234"
    assert "at commit 0123abc; a processor" in lab_results.page(tmp_path / "results")


@pytest.mark.parametrize("changes, said", [({"finished": False}, "not finished"), ({"rounds": 2}, "2 rounds of 10 s; a result takes 3 of 10 s")])
def test_what_bears_no_verdict_is_no_result(tmp_path, changes, said):
    with pytest.raises(LabError, match=said):
        lab_results.add(made_run(tmp_path / "e1", "e1", mix(4, 8, quarry_head=100), **changes), tmp_path / "results")


def test_another_run_of_that_day_takes_no_results_place(tmp_path):
    """Else one with another setting of the server would pass for the table that was there."""
    results, levels = tmp_path / "results", mix(4, 8, quarry_head=100)
    path = lab_results.add(made_run(tmp_path / "e1", "e1", levels), results)
    kept = path.read_text()
    with pytest.raises(LabError, match=f"{path.name} is there"):
        lab_results.add(made_run(tmp_path / "other", "e1", levels, rounds=4), results)
    assert path.read_text() == kept
    assert lab_results.add(made_run(tmp_path / "again", "e1", mix(4, 8, quarry_head=110)), results) == path and path.read_text() != kept


def test_the_page_has_each_experiment_with_its_newest_result(tmp_path):
    lab_results.add(made_run(tmp_path / "e1", "e1", mix(4, 8, quarry_head=100, quarry_inline=116)), tmp_path / "results")
    made = lab_results.page(tmp_path / "results")
    assert "| 1 | 4 KB: inline about +15% to +20% over the default head | about +15% to +20% | not measured | reproduced | - |" in made
    assert "| 1 | Quarry | **reproduced**<br>x8: +16% (+16% to +16%) |" in made
    rules = {verdict.rule for verdict in EXPERIMENTS["e1"].verdicts(lab_results.newest("e1", tmp_path / "results"))}
    assert made.count("How each is judged:") == 1 and all(f" | {rule} |\n" in made for rule in rules)
    assert "at commit abc1234; a processor" in made and "servers 10.11. Profile bare" in made and [e.title in made for e in PUBLISHED] == [True] * len(PUBLISHED)
    assert made.count("No result of this experiment") == len(PUBLISHED) - 1


def test_the_page_has_what_each_link_gave(tmp_path):
    run = made_run(tmp_path / "e3", "e3", fetched("real", DOCUMENT_BYTES, "cloud", app_none=217))
    run.update_session("links", [{"label": "cloud: 2,299 Mbit/s, 4 ms", "by": "a proxy", "megabits_per_second": 2299, "delay_ms": 4, "jitter_ms": 0,
                                  "weak_server": False, "measured_bytes_per_second": 227.25e6, "measured_round_trip_ms": 4.32}])
    lab_results.add(run, tmp_path / "results")
    made = lab_results.page(tmp_path / "results")
    assert "The links: asked for and measured on one plain connection.\n\n| link | made by |" in made
    assert "| cloud: 2,299 Mbit/s, 4 ms | a proxy | 2299 | 1,818 | 4 +- 0 | 4.32 |" in made


def test_of_two_results_of_one_day_the_later_one_counts(tmp_path):
    for commit, started, rate in (("abc1234", 200.0, 116), ("fed4321", 100.0, 150)):
        lab_results.add(made_run(tmp_path / commit, "e1", mix(4, 8, quarry_head=100, quarry_inline=rate), commit=commit, started=started), tmp_path / "results")
    assert lab_results.newest("e1", tmp_path / "results").commits == ["abc1234"]


def test_a_run_that_was_gone_on_with_names_all_of_its_commits(tmp_path):
    run = made_run(tmp_path / "e1", "e1", mix(4, 8, quarry_head=100), finished=False)
    run.add_session({**run.run["sessions"][0], "machine": {**MACHINE, "commit": "fed4321"}})
    run.finish()
    lab_results.add(run, tmp_path / "results")
    assert "at commits abc1234 and fed4321; a processor" in lab_results.page(tmp_path / "results")


@pytest.mark.parametrize("names, text", [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")])
def test_names_are_listed_as_people_do(names, text):
    assert lab_results._listed(names) == text


COLUMNS = ("published", "NDB here", "Quarry here", "InnoDB here")
FOUND = [
    FindingRow("one", "at least 2%", ([("", "+5%")], [("weaker", "x8: +1% (0% to 2%), weaker; x32: +2%; a note (with this; and that)")],
                       [("reproduced", "x8: +5%"), ("mixed", "with Quarry's own defaults: x8: +3%")], [("", "it has none")])),
    FindingRow("two", "above 1", ([("", "no figure")], [("not measured", "no such server")], [("not measured", "no such server")], [("", "it has none")]))]


def test_a_finding_has_a_verdict_in_a_word_for_each_engine_and_its_figures_below():
    assert results_tables.verdict_table(COLUMNS, FOUND)[2:] == [
        "| 1 | one | +5% | weaker | reproduced<br>mixed (own defaults) | - |", "| 2 | two | no figure | not measured | not measured | - |"]
    assert results_tables.figure_table(COLUMNS, FOUND)[2:] == [
        "| 1 | NDB | **weaker**<br>x8: +1% (0% to 2%), weaker<br>x32: +2%<br>a note (with this; and that) |",
        "| 1 | Quarry | **reproduced**<br>x8: +5% |", "| 1 | Quarry | **mixed**<br>with Quarry's own defaults: x8: +3% |",
        "| 2 | NDB, Quarry | **not measured**<br>no such server |", "| 1, 2 | InnoDB | it has none |"]


def test_findings_of_one_rule_share_its_line():
    three = [*FOUND, FindingRow("three", "at least 2%", ())]
    assert results_tables.rule_table(three)[2:] == ["| 1, 3 | at least 2% |", "| 2 | above 1 |"]


def test_verdicts_are_counted_by_engine_with_quarrys_own_defaults_left_out():
    lines = list(results_tables.counts("E9", COLUMNS, FOUND))
    numbers = {line.split(" | ")[1]: dict(zip(MEANINGS, [cell.strip() for cell in line.strip("|").split("|")[2:]], strict=True)) for line in lines}
    assert {engine: {state: n for state, n in row.items() if n} for engine, row in numbers.items()} == {
        "NDB": {"weaker": "1", "not measured": "1"}, "Quarry": {"reproduced": "1", "not measured": "1"}}


def test_every_verdict_that_a_page_may_show_is_explained_on_it_and_as_the_lab_explains_it():
    assert set(MEANINGS) == {*PUBLISHED_STATES, ANSWERED}
    made, document = lab_results.page(), (REPOSITORY / "docs" / "internals" / "lab.md").read_text(encoding="utf-8")
    for state, text in MEANINGS.items():
        assert f"| {state} | {text} |" in made and f"| {state} | {text} |" in document


def test_earlier_figures_stand_in_until_there_is_a_result(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    rows = [{"experiment": name, "finding": f"what {name} found", "here": "+7%"} for name in ("e1", "e4")]
    (results / lab_results.EARLIER).write_text(json.dumps({"date": "2026-11-23", "about": "an older build", "findings": rows}))
    made = lab_results.page(results)
    assert made.count("Figures of 2026-11-23, without a verdict, of an older build.") == 2
    assert "| what e1 found | +7% |" in made and "| what e4 found | +7% |" in made
    lab_results.add(made_run(tmp_path / "e1", "e1", mix(4, 8, quarry_head=100, quarry_inline=116)), results)
    made = lab_results.page(results)
    assert "what e1 found" not in made and "| what e4 found | +7% |" in made


def test_the_page_of_results_is_what_the_results_give():
    assert lab_results.PAGE.read_text(encoding="utf-8") == lab_results.page(), "`make results` writes it"


def test_an_unknown_commit_is_not_said_to_be_older():
    assert lab_results.is_older_than_the_engine("") is None and lab_results.is_older_than_the_engine("no-such-commit") is None
    assert lab_results.is_older_than_the_engine("HEAD") is False
