"""What E1 says next to its verdicts, engine by engine, from made-up rounds: the client's floor, why Quarry differs, and the table of findings."""

import pytest
from quarry_lab import lab_page, lab_results
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.experiments.e1.beside import SHOWN_BY
from quarry_lab.experiments.e1.findings import DOCUMENT, LIMITED_LINKS, link_loads, of_transaction, share_of_busiest, thread_loads
from quarry_lab.lab_page import Chapter
from plans import columns
from worlds import Run, mix, points

E1 = EXPERIMENTS["e1"]
NDB_ALONE_GAINS = mix(4, 32, quarry_head=100, quarry_inline=100, target_ndb_head=20, target_ndb_inline=23.6, floor=120)


def verdicts(rounds):
    return {verdict.id: verdict for verdict in E1.verdicts(Run(rounds))}


def test_what_shows_on_ndb_and_not_on_quarry_has_its_reason_with_figures():
    reason = verdicts(NDB_ALONE_GAINS)["e1-4kb-inline"].reason
    assert "not as on NDB: a part is in the server's own memory" in reason
    assert "(4 KB x32: 100/s here, 20/s on NDB, 120/s for the client alone)" in reason


@pytest.mark.parametrize("rounds", [
    mix(4, 32, target_ndb_head=20, target_ndb_inline=23.6)
    + [p for variant in ("quarry-head", "quarry-inline") for p in points("mix", 4096, 32, variant, 100, noisy=(1, 2))],
    mix(4, 32, quarry_head=100, quarry_inline=118, target_ndb_head=20, target_ndb_inline=23.6),
    mix(4, 32, quarry_head=100, quarry_inline=100, target_ndb_head=20, target_ndb_inline=20),
    mix(4, 32, quarry_head=100, quarry_inline=100)], ids=["Quarry not judged", "shown on both", "shown on none", "without NDB"])
def test_no_reason_where_there_is_nothing_to_explain(rounds):
    assert "not as on NDB" not in verdicts(rounds)["e1-4kb-inline"].reason


def test_the_trips_that_ndb_saves_stand_next_to_the_reason():
    rounds = mix(4, 32, quarry_head=100, quarry_inline=100, target_ndb_head=20, target_ndb_inline=23.6)
    for point in rounds:
        if point["variant"].startswith("target-"):
            point["result"] |= {"total_reads": 100, "total_rows_written": 100}
            point["nodes"] = {"trips": {"4": 150, "5": 50 if point["variant"] == "target-ndb-inline" else 250}}
    assert "waits for the data nodes in a transaction: NDB, inline 1.00, NDB default 2.00)" in verdicts(rounds)["e1-4kb-inline"].reason


def test_what_processors_or_memory_show_has_these_figures_at_the_claims_own_level():
    """Quarry's throughput does not fall with 512 users, nor does inline take more memory of it."""
    rounds = mix(24, 32, quarry_head=9, target_ndb_head=9)
    rounds += mix(24, 256, quarry_head=100, target_ndb_head=50) + mix(24, 512, quarry_head=110, target_ndb_head=40)
    reason = verdicts(rounds)["e1-24kb-reduced"].reason
    assert "(24 KB x512: of 2 processors 1.90 are busy here, 1.90 with NDB)" in reason and "two processors" not in reason
    sizes = {"quarry-head": 120, "quarry-inline": 110, "target-ndb-head": 100, "target-ndb-inline": 150}
    memory = [point | {"memory": {"payload_bytes": 100, "cached_bytes": {"x": size}}}
              for key, size in sizes.items() for point in points("mix", 4096, 32, key, 1)]
    assert ("bytes of memory for each of payload: QUARRY DEFAULTS=NDB, inline 1.10, QUARRY DEFAULTS=NDB 1.20, NDB, inline 1.50, NDB default 1.00"
            in verdicts(memory)["e1-memory"].reason)


def test_every_claim_that_ndb_may_show_alone_has_a_reason_in_its_data():
    assert {claim.judging["shown_by"] for claim in DOCUMENT.claims.values() if "on_quarry" in claim.judging} == set(SHOWN_BY)
    without = {claim.id for claim in DOCUMENT.claims.values() if "on_quarry" not in claim.judging}
    assert without == {"e1-parts-spread", "e1-more-nodes"}  # of these Quarry's verdict itself says why


def test_a_level_whose_latency_is_the_clients_is_named():
    late = {"quarry_head": 100, "quarry_inline": 90, "floor": 60}
    rounds = mix(4, 512, late, quarry_head=100, quarry_inline=116, floor=150)
    rounds += mix(4, 32, {**late, "floor": 5}, quarry_head=100, quarry_inline=116, floor=900)
    reason = verdicts(rounds)["e1-4kb-inline"].reason
    assert "by the floor's p95, at 4 KB x512 60 ms of 90 ms" in reason and "4 KB x32 5 ms" not in reason
    assert "floor" not in verdicts([p for p in rounds if p["variant"] != "floor"])["e1-4kb-inline"].reason


def test_a_level_with_limited_links_has_its_own_latency_next_to_the_floors():
    rounds = mix(24, 32, {"target_ndb_head": 12, "target_ndb_inline": 12, "floor": 10}, target_ndb_head=100, target_ndb_inline=110, floor=900)
    for variant, rate in (("target-ndb-head", 50), ("target-ndb-inline", 45)):
        rounds += points("mix", 24 * 1024, 32, variant, rate, 70, LIMITED_LINKS)
    reason = verdicts(rounds)["e1-strained-latency-ndb"].reason
    assert "at p95 70 ms" in reason and "floor" not in reason


def test_own_defaults_and_innodb_have_verdicts_of_their_own():
    rounds = mix(4, 32, quarry_default=100, quarry_default_inline=118) + mix(4, 32, innodb=100, innodb_varbinary=90)
    found = verdicts(rounds)
    assert found["e1-4kb-inline"].state == "not measured" and found["e1-4kb-inline-own"].state == "reproduced"
    assert found["e1-varbinary-always-innodb"].state == "opposite" and "e1-4kb-inline-innodb" not in found


def ndb_point(variant, rate, sent, thread, even=True):
    """sent, thread: of the first data node; the second has as much, or half of it."""
    made, share = points("mix", 24 * 1024, 512, variant, rate), 1 if even else 2
    for point in made:
        point["result"] |= {"total_reads": 900, "total_rows_written": 100}
        point["nodes"] = {"sent_bytes": {"2 to 4": sent, "2 to 5": sent, "3 to 4": sent // share, "3 to 5": sent // share},
                          "thread_us": {"2 ldm 1": thread, "3 ldm 1": thread // share, "2 recv 2": 9e9}}
    return made


def test_parts_that_relieve_links_and_threads_are_seen():
    def spread(inline, default):
        return verdicts(ndb_point("target-ndb-inline", 90, *inline) + ndb_point("target-ndb-head", 100, *default))["e1-parts-spread-ndb"]

    relief = spread((2_000_000, 5000, False), (1_000_000, 4000))
    assert relief.state == "reproduced" and "links x512: 0.50x" in relief.reason and "ldm threads x512: 0.80x" in relief.reason
    assert spread((2_000_000, 4000, False), (1_000_000, 5000)).state == "mixed"
    assert spread((1_000_000, 4000), (2_000_000, 5000)).state == "opposite"
    less = spread((2_000_000, 5000), (1_000_000, 4000))
    assert less.state == "weaker" and less.reason.count("alike on all nodes") == 2, "a smaller load that is spread by nothing"


def test_the_busiest_node_and_the_busiest_ldm_thread_count():
    (point, *_rest) = ndb_point("target-ndb-head", 1, 1000, 500, even=False)
    assert of_transaction(link_loads(point), point) == 2 and of_transaction(thread_loads(point), point) == 0.5
    assert share_of_busiest(link_loads(point)) == 2 / 3
    without = {"nodes": {}, "result": {"total_reads": 1, "total_rows_written": 0}}
    assert of_transaction(link_loads(without), without) is None and share_of_busiest(thread_loads(without)) is None


def test_where_nodes_have_no_ldm_thread_the_busiest_is_named():
    rounds = ndb_point("target-ndb-inline", 90, 1000, 1) + ndb_point("target-ndb-head", 100, 1000, 1)
    for point in rounds:
        point["nodes"]["thread_us"] = {"2 main 0": 70, "3 main 0": 90 if point["variant"] == "target-ndb-head" else 80, "2 recv 2": 5}
    assert "main threads x512: 1.12x" in verdicts(rounds)["e1-parts-spread-ndb"].reason


def test_memory_is_judged_once_a_size_for_each_engine():
    def world(inline, default):
        made = []
        for variant, cached in (("target-ndb-inline", inline), ("target-ndb-head", default), ("quarry-inline", default), ("quarry-head", inline)):
            for point in points("mix", 4096, 32, variant, 1) + points("mix", 4096, 128, variant, 1):
                made.append(point | {"memory": {"payload_bytes": 100, "cached_bytes": {"x": cached}}})
        return verdicts(made)

    found = world(150, 100)
    assert (found["e1-memory-ndb"].state, found["e1-memory"].state) == ("reproduced", "opposite")
    assert found["e1-memory-ndb"].reason.startswith("4 KB inline / default: 1.50x")


def test_memory_is_judged_at_a_level_that_has_all_rounds():
    """With 8 users there are two rounds; what inline takes at 24 KB counts all the same."""
    made = [point | {"memory": {"payload_bytes": 100, "cached_bytes": {"x": size}}}
            for kib, inline in ((4, 120), (24, 90)) for variant, size in (("quarry-inline", inline), ("quarry-head", 100))
            for users, rounds in ((8, 2), (32, 3)) for point in points("mix", kib * 1024, users, variant, 1)[:rounds]]
    memory = verdicts(made)["e1-memory"]
    assert memory.state == "mixed" and "24 KB inline / default: 0.90x (0.90x to 0.90x), opposite" in memory.reason


def test_why_not_here_is_shown_at_a_level_that_has_both_variants():
    rounds = mix(24, 8, quarry_inline=100, target_ndb_inline=50)
    rounds += mix(24, 32, quarry_inline=200, quarry_varbinary=200, target_ndb_inline=60, target_ndb_varbinary=84)
    assert "(24 KB x32: 200/s here, 60/s on NDB)" in verdicts(rounds)["e1-24kb-varbinary"].reason


def test_a_cap_is_that_of_each_sql_server():
    """NDB's clients are spread over two; the published cap is of each of 16."""
    rounds = mix(448, 32, target_ndb_head=960) + mix(448, 128, target_ndb_head=1000)
    for point in rounds:
        point["nodes"] = {"statements": {"4": 500, "5": 500}}
    cap = verdicts(rounds)["e1-448kb-cap-ndb"]
    assert cap.state == "reproduced" and cap.reason.startswith("highest default x128: 500/s (500/s to 500/s), 32 to 128 users +4%")
    (figure,) = [figure for figure in E1.published if figure.figure.id == "448kb-cap-per-node"]
    there = mix(448, 32, target_ndb_head_4m=960)
    for point in there:
        point["nodes"] = {"statements": {"4": 500, "5": 500}}
    assert E1.beside(Run(there + mix(448, 32, quarry_head_4m=700)), figure) == "Quarry x32: 700/s (700 to 700); NDB x32: 480/s (480 to 480)"


# Throughput, and p95 in ms, by users, of a cluster that does what the document says; rates of 448 KB are those of two SQL nodes.
PUBLISHED_WORLD = {
    4: {"head": {32: (100, 3), 128: (160, 6), 256: (200, 9), 512: (204, 40)}, "inline": {32: (117, 3), 128: (187, 6), 256: (234, 9), 512: (239, 40)},
        "varbinary": {32: (175, 2), 128: (280, 5), 256: (351, 8), 512: (358, 30)}},
    24: {"head": {32: (100, 4), 64: (150, 8), 128: (190, 14), 256: (200, 40), 512: (192, 90)},
         "inline": {32: (120, 4), 64: (180, 7), 128: (228, 12), 256: (201, 40), 512: (186, 92)},
         "varbinary": {32: (168, 3), 64: (252, 6), 128: (319, 10), 256: (281, 30), 512: (277, 60)}},
    64: {"head": {32: (62.5, 16), 64: (100, 22), 128: (133, 32), 256: (139.6, 64), 512: (139.6, 130)},
         "inline": {32: (65, 16), 64: (103, 22), 128: (133.4, 32), 256: (140, 64), 512: (140, 130)},
         "head-4m": {32: (100, 10), 64: (160, 14), 128: (212.8, 20), 256: (223.4, 40), 512: (223.4, 80)},
         "inline-4m": {32: (105, 10), 64: (161, 14), 128: (214, 20), 256: (224.5, 40), 512: (224.5, 80)}},
    448: {"head": {32: (600, 60), 128: (960, 200), 512: (965, 500)}, "inline": {32: (620, 57), 128: (962, 200), 512: (967, 500)},
          "head-4m": {32: (800, 40), 128: (970, 200), 512: (975, 500)}, "inline-4m": {32: (830, 38), 128: (972, 200), 512: (977, 500)}},
}


def test_a_cluster_that_does_what_the_document_says_reproduces_every_claim():
    """No two rules exclude each other. Memory, a node's load, more nodes and the sweep need other figures than rates and latencies."""
    rounds = [point | {"nodes": {"statements": {"4": 1, "5": 1}}} for size, variants in PUBLISHED_WORLD.items() for name, levels in variants.items()
              for users, (rate, late) in levels.items() for point in points("mix", size * 1024, users, f"target-ndb-{name}", rate, late)]
    found = {name.removesuffix("-ndb"): verdict.state for name, verdict in verdicts(rounds).items() if name.endswith("-ndb")}
    assert {name: state for name, state in found.items() if state != "reproduced"} == {}
    assert set(DOCUMENT.claims) - set(found) == {"e1-parts-spread", "e1-more-nodes", "e1-excessive-batch", "e1-memory"}


def swept(rates):
    return [p for key, rate in rates.items() for p in points("mix", 448 * 1024, 32, key, rate)]


def test_ndb_has_a_sweep_of_its_own():
    found = verdicts(swept({"target-ndb-head": 100, "target-ndb-batch-1024k": 150, "target-ndb-batch-32768k": 90}))
    assert found["e1-excessive-batch-ndb"].state == "reproduced" and found["e1-excessive-batch"].state == "not measured"


def test_more_data_than_memory_is_answered_and_in_no_claim():
    setting = "data four times the memory"
    rounds = [p for variant, rate in (("innodb", 100), ("quarry-default", 150)) for p in points("mix", 64 * 1024, 32, variant, rate, setting=setting)]
    found = verdicts(rounds)
    assert found["e1-more-data"].state == "answered" and "+50%" in found["e1-more-data"].reason
    assert {verdict.state for name, verdict in found.items() if name != "e1-more-data"} == {"not measured"}


# --- the table ---
def test_each_finding_has_what_was_published_and_each_engines_verdict():
    made = columns(E1, NDB_ALONE_GAINS + mix(4, 32, quarry_default=100, quarry_default_inline=118))
    (row,) = [row for statement, row in made.items() if statement.startswith("4 KB: inline")]
    assert row["published"] == [("", "about +15% to +20%")]
    assert [state for state, _text in row["NDB here"]] == ["reproduced"]
    assert [state for state, _text in row["Quarry here"]] == ["weaker", "reproduced"] and "own defaults" in row["Quarry here"][1][1]
    assert row["InnoDB here"] == [("", "InnoDB has no inline size and no batches")]
    (other,) = [row for statement, row in made.items() if statement.startswith("24 KB: VARBINARY +30%")]
    assert other["NDB here"][0][0] == "not measured"


def test_a_figure_that_a_rule_borrows_is_not_shown_as_published():
    made = columns(E1, NDB_ALONE_GAINS)
    starts = ("64 KB: a slight gain", "64 KB: up to 128 users", "64 KB: with more pressure", "448 KB: from 64 users on throughput", "4 KB: throughput begins")
    shown = [next(row["published"] for statement, row in made.items() if statement.startswith(start)) for start in starts]
    assert shown == [[("", "no figure")]] * 4 + [[("", "512 users; about 10 ms")]]


def test_every_verdict_stands_in_the_table_once():
    found = verdicts(NDB_ALONE_GAINS)
    said = [text for row in E1.finding_rows(Run(NDB_ALONE_GAINS)) for cell in row.cells for state, text in cell if state and state != "not measured"]
    assert sorted(said) == sorted(verdict.reason for verdict in found.values() if verdict.state != "not measured")


def test_the_document_and_the_page_have_the_columns(tmp_path):
    run = Run(NDB_ALONE_GAINS)
    run.path = tmp_path / "e1"
    lines = lab_results._findings(E1, run)
    assert lines[:2] == ["| no. | finding | published | NDB | Quarry | InnoDB |", "|---|---|---|---|---|---|"]
    row = "| 1 | 4 KB: inline about +15% to +20% over the default head | about +15% to +20% | reproduced | weaker | - |"
    assert row in lines and any(line.startswith("| 1 | NDB | **reproduced**<br>x32: +18%") for line in lines)
    page = lab_page._by_engine(Chapter(E1, run))
    assert "<th>NDB here</th>" in page and page.count("<tr>") == 1 + len(E1.finding_rows(run))
    # The page's first table has one verdict for each finding, Quarry's.
    assert "NDB: 4 KB" not in lab_page._verdicts([Chapter(E1, run)])


def test_the_page_counts_a_finding_once_and_says_whose_commits_are_durable():
    """NDB's verdicts are no more findings; what Quarry does not show is not counted as shown."""
    chapter = Chapter(E1, Run(NDB_ALONE_GAINS, machine={"cpu": "x", "processors": 2, "memory_bytes": 1, "file_system": "ext4"}))
    states, findings = lab_page._states([chapter]), {verdict.id for verdict in E1.quarrys_own(chapter.verdicts())}
    assert sum(states.values()) == len(findings) and states["reproduced"] == 0 < lab_page._judged([chapter])
    assert "every commit durable, except those of NDB" in lab_page._lead([chapter], {"scale": "normal"})


def test_charts_of_throughput_and_p95_over_users_for_each_size_have_all_engines():
    rounds = [p for kib in (4, 64) for users in (32, 512)
              for p in mix(kib, users, quarry_head=100, quarry_inline=90, quarry_default=80, innodb=70, floor=200, target_ndb_head=20)]
    run = Run(rounds)
    made = E1.figures(run)
    assert {"throughput-4kb", "p95-4kb", "throughput-64kb", "p95-64kb"} <= set(made)
    panels = made["throughput-64kb"].axes
    assert [axes.get_title() for axes in panels] == ["NDB", "Quarry, DEFAULTS=NDB", "Quarry, own defaults", "InnoDB"]
    assert len({axes.get_ylim() for axes in panels}) == 1, "one scale"
    assert [label for label in panels[1].get_legend_handles_labels()[1]] == ["default", "inline", "client's own floor"]
    assert [text.get_text() for text in panels[0].get_xticklabels()] == ["32", "512"]
