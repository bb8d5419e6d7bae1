"""E3 without a server: its plan, JMH's report, the links as toxiproxy is told of them, and the rules of its findings."""

import json
import re
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from quarry_lab.design.methods import METHODS
from quarry_lab.design.plan import Block, Cell, Point, interleave
from quarry_lab.design.repeats import blocks_to_repeat
from quarry_lab.design.request import Address, LabError
from quarry_lab.design.results import RunDirectory
from quarry_lab.experiments.e3 import bench as e3_bench, figures as e3_figures
from quarry_lab.experiments.e3.bench import FetchBench, rows_of
from quarry_lab.experiments.e3.experiment import FetchCompressed
from quarry_lab.experiments.e3.findings import (
    CLOUD,
    DOCUMENT,
    DOCUMENT_BYTES,
    ENGINES,
    LOCAL,
    MEDIUM_BYTES,
    RANDOM,
    REAL,
    THREADS,
    as_published,
    has,
    verdicts,
)
from quarry_lab.experiments.e3.grid import APPLICATION, SIZES
from quarry_lab.load import java
from quarry_lab.load.sysbench import LateReport
from quarry_lab.design.published import Figure
from quarry_lab.probes import device, noise
from quarry_lab.report import charts
from quarry_lab.report.stats import Summary
from quarry_lab.report.verdicts import MIXED, NOT_JUDGED, NOT_MEASURED, OPPOSITE, REPRODUCED, STRONGER, WEAKER
from quarry_lab.servers import links, ndb_cluster, processor_cgroup, routed
from quarry_lab.servers.lab_server import LabServer
from quarry_lab.servers.links import LINKS, Link
from quarry_lab.servers.namespaces import queues

PARAMETERS = {"name": "e3", "rounds": 3}


def point(variant, megabytes, round_number, kind=REAL, size=DOCUMENT_BYTES, link=LOCAL):
    rate = megabytes * 1e6
    return {
        "round": round_number, "operation": kind, "size_bytes": size, "threads": THREADS, "variant": variant, "setting": link,
        "result": {"events_per_second": rate / size, "interval_seconds": 10, "uncompressed_bytes_per_second": rate, "received_bytes_per_second": rate / 4},
        "cpu": {"noisy": False, "server_cpus": 0.5, "client_cpus": 0.5}, "loaded": {"uncompressed_bytes": 4, "sent_bytes": 1},
    }


@pytest.fixture(autouse=True)
def ndb_is_not_built(monkeypatch):
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: False)


@pytest.fixture
def ndb_is_built(monkeypatch, ndb_is_not_built):
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: True)


class Run:
    """What the findings and figures read of a RunDirectory."""

    def __init__(self, points, json_value=None):
        self.points = points
        self.run = {"parameters": PARAMETERS, "sessions": [{"json_value": json_value or {}, "links": []}]}


def states(run):
    return {verdict.id: verdict.state for verdict in verdicts(run)}


def rounds(rates, **where):
    """rates: variant -> MB/s of each round."""
    return [point(variant, rate, number, **where) for variant, found in rates.items() for number, rate in enumerate(found, 1)]


PUBLISHED = {"app-none": (253, 250, 256), "app-lz4-17": (1060, 1000, 1100), "app-zstd": (523, 500, 550), "uncompress": (142, 140, 150)}


def test_what_was_charted_is_reproduced_by_its_own_rules():
    found = states(Run(rounds(PUBLISHED, link=CLOUD)))
    assert {found[f"e3-cloud-{name}"] for name in ("lz4", "zstd", "uncompress", "lz4-first", "lz4-ahead-of-none")} == {REPRODUCED}
    assert found["e3-local-lz4-first"] == NOT_MEASURED
    assert found["e3-weak-server"] == NOT_MEASURED


def test_a_round_that_points_the_other_way_is_not_reproduced():
    wavering = {**PUBLISHED, "app-lz4-17": (1060, 200, 1100)}
    assert states(Run(rounds(wavering, link=CLOUD)))["e3-cloud-lz4"] == MIXED


def test_two_rounds_are_not_judged():
    run = Run(rounds({k: v[:2] for k, v in PUBLISHED.items()}, link=CLOUD))
    run.run["parameters"] = {"name": "e3", "rounds": 2}
    assert states(run)["e3-cloud-lz4"] == NOT_JUDGED


UUID = "2e37598d-d17a-9330-cd87-594ba18cfc87"


@pytest.mark.parametrize("changed, state", [({}, REPRODUCED), ({"zstd": None}, MIXED), ({"codec": UUID}, OPPOSITE), ({"none": "x", "lz4": "x", "zstd": "x"}, MIXED)])
@pytest.mark.parametrize("ways, suffix", [({"none": "quarry", "codec": "quarry-app-lz4-17", "lz4": "quarry-lz4", "zstd": "quarry-zstd"}, "-quarry"),
                                          ({"none": "app-none", "codec": "app-zstd", "lz4": "row-compressed", "zstd": "column-compressed"}, "")])
def test_only_what_the_server_compresses_can_be_used_inside(ways, suffix, changed, state):
    value = {"none": UUID, "codec": None, "lz4": UUID, "zstd": UUID, **changed}
    run = Run(rounds({ways["none"]: (1, 1, 1)}), {str(DOCUMENT_BYTES): {ways[name]: said for name, said in value.items()} | {"uncompress": None}})
    assert states(run)[f"e3-usable-inside{suffix}"] == state
    assert {v.id for v in verdicts(run) if v.id.startswith("e3-usable-inside") and v.state != NOT_MEASURED} == {f"e3-usable-inside{suffix}"}


def test_a_size_that_was_stored_in_few_ways_hides_no_other():
    """Sizes are loaded in random order: that the smallest came last, without a column that the server compresses, is no lack."""
    whole, few = {"app-none": UUID, "app-zstd": None, "row-compressed": UUID}, {"app-none": UUID, "app-lz4-17": None}
    points = rounds({"app-none": (1, 1, 1)})
    for asked, state in (({DOCUMENT_BYTES: whole, SIZES[1]: few}, REPRODUCED), ({SIZES[1]: few, DOCUMENT_BYTES: whole}, REPRODUCED),
                         ({SIZES[1]: few}, NOT_MEASURED), ({DOCUMENT_BYTES: whole, MEDIUM_BYTES: {**whole, "app-zstd": "x"}}, MIXED)):
        found = {v.id: v for v in verdicts(Run(points, {str(size): found for size, found in asked.items()}))}["e3-usable-inside"]
        assert found.state == state, asked
    assert "94 KB: " in found.reason and "; something else from: zstd 3" in found.reason


# --- the engines next to each other ---
ENGINES_RATES = {"app-none": (500, 510, 520), "app-lz4-17": (1000, 1010, 1020), "quarry": (600, 610, 620), "quarry-app-lz4-17": (590, 580, 570),
                 "quarry-lz4": (900, 910, 920), "ndb-app-none": (200, 210, 220), "ndb-app-lz4-17": (800, 810, 820)}


def test_each_engine_has_a_verdict_of_its_own():
    found = states(Run(rounds(ENGINES_RATES)))
    assert {suffix: found[f"e3-local-lz4-ahead-of-none{suffix}"] for suffix in ("", "-quarry", "-ndb")} == {"": REPRODUCED, "-quarry": OPPOSITE, "-ndb": REPRODUCED}
    assert {suffix: found[f"e3-local-lz4{suffix}"] for suffix in ("", "-quarry", "-ndb")} == {"": REPRODUCED, "-quarry": OPPOSITE, "-ndb": STRONGER}
    assert found["e3-local-row-format-quarry"] == OPPOSITE, "a CODEC is Quarry's table that compresses"
    assert "e3-local-row-format-ndb" not in found and "e3-local-lz4-first-quarry" not in found
    (quarry,) = (v for v in verdicts(Run(rounds(ENGINES_RATES))) if v.id == "e3-local-lz4-quarry")
    assert quarry.statement.startswith("Quarry: ") and "QUARRY, lz4 17 / QUARRY" in quarry.reason
    assert quarry.reason.endswith("(4.29 MB uncompressed on localhost 610 MB/s here, 210 MB/s on NDB)")
    alike = {**ENGINES_RATES, "quarry-app-lz4-17": (1590, 1580, 1570)}
    assert not any("not as on NDB" in v.reason for v in verdicts(Run(rounds(alike))) if v.id == "e3-local-lz4-quarry")


def test_a_way_from_data_nodes_explains_a_gain_that_ndbs_own_rate_shows_and_no_loss():
    """Of 94 KB a loss was published; and where uncompressed values come as fast from NDB, their way is no reason."""
    medium = {"quarry": (100,) * 3, "quarry-app-lz4-17": (120,) * 3, "ndb-app-none": (100,) * 3, "ndb-app-lz4-17": (97.5,) * 3}
    loss = {v.id: v for v in verdicts(Run(rounds(ENGINES_RATES) + rounds(medium, size=MEDIUM_BYTES)))}
    assert (loss["e3-medium-quarry"].state, loss["e3-medium-ndb"].state) == (OPPOSITE, REPRODUCED)
    assert "not as on NDB" not in loss["e3-medium-quarry"].reason
    as_fast = {**ENGINES_RATES, "ndb-app-none": (620,) * 3, "ndb-app-lz4-17": (1300,) * 3}
    (quarry,) = (v for v in verdicts(Run(rounds(as_fast))) if v.id == "e3-local-lz4-quarry")
    assert quarry.state == OPPOSITE and "not as on NDB" not in quarry.reason


def test_the_table_has_a_column_for_each_engine_and_says_why_one_is_empty():
    experiment = FetchCompressed()
    by_statement = {row.statement: row.cells for row in experiment.finding_rows(Run(rounds(ENGINES_RATES)))}
    said, ndb, quarry, innodb = by_statement["on localhost lz4 is ahead of no compression"]
    assert said == [("", "no figure")], "a size is no figure of it"
    assert [cell[0][0] for cell in (ndb, quarry, innodb)] == [REPRODUCED, OPPOSITE, REPRODUCED]
    _published, ndb, quarry, innodb = by_statement["on localhost lz4 outperforms every other codec"]
    assert ndb == quarry == [("", "not asked: only some of the ways were fetched from this engine's tables")] and innodb[0][0] == NOT_MEASURED
    only_innodb = {row.statement: row.cells for row in experiment.finding_rows(Run(rounds({k: v for k, v in ENGINES_RATES.items() if k.startswith("app")})))}
    assert "make ndb" in only_innodb["on localhost lz4 is ahead of no compression"][1][0][1]
    assert set(v.id for v in experiment.quarrys_own(experiment.verdicts(Run(rounds(ENGINES_RATES))))) == set(DOCUMENT.claims)


def test_what_grid_measures_of_other_engines_is_what_their_findings_take(ndb_is_built):
    """No finding is said to have an engine whose ways its cells lack."""
    experiment = FetchCompressed()
    cells = experiment.cells(experiment.request("normal"))
    made = [p for c in cells for n in (1, 2, 3) for p in [point(c.variant, 100 + n, n, c.operation, c.size_bytes, c.setting)]]
    value = {key: UUID if METHODS[key].codec == "none" else None for key in METHODS}
    found = {v.id: v.state for v in verdicts(Run(made, {str(DOCUMENT_BYTES): value}))}
    for claim in DOCUMENT.claims.values():
        for engine in ENGINES:
            assert (claim.id + engine.suffix in found) == has(claim, engine), (claim.id, engine.name)
    assert NOT_MEASURED not in found.values()
    assert not [v.id for v in verdicts(Run(made)) if "not measured: " in v.reason], "a part of a claim has no cells"


def test_a_verdict_names_the_parts_of_its_claim_that_were_not_measured():
    points = rounds({"app-none": (329,) * 3, "app-lz4-17": (321,) * 3}, size=MEDIUM_BYTES)
    points += rounds({"app-none": (100,) * 3, "app-lz4-9": (95,) * 3}, kind="stub-62")
    found = {v.id: v for v in verdicts(Run(points))}
    assert (found["e3-medium"].state, found["e3-poor-ratio"].state) == (REPRODUCED, REPRODUCED)
    assert found["e3-medium"].reason.endswith("; not measured: cloud") and found["e3-poor-ratio"].reason.endswith("; not measured: cloud")
    assert found["e3-local-random"].reason.endswith("; not measured: 10 symbols, 4 symbols, 2 symbols")


def test_what_is_lacking_is_what_a_claim_takes():
    reasons = {verdict.id: verdict.reason for verdict in verdicts(Run([]))}
    assert reasons["e3-ratios"] == "takes deflate with length, of random data of 4.29 MB, on localhost"
    assert reasons["e3-more-effort"] == "takes no compression and a codec in the application, of real data of 4.29 MB, on localhost"
    assert reasons["e3-local-lz4-ahead-of-none"] == "takes no compression and an lz4 in the application, of real data from 608 KB on, on localhost"
    assert reasons["e3-medium"] == f"takes lz4 17, none, of real data of 94 KB, on localhost or {LINKS[CLOUD].label}"
    assert reasons["e3-weak-brotli"] == f"takes brotli 11, none, of real data of 4.29 MB, on {LINKS['weak'].label}"


def test_a_ratio_is_said_as_a_number():
    found = {v.id: v for v in verdicts(Run(rounds({"app-mysql": (100,) * 3}, kind="stub-2")))}["e3-ratios"]
    assert found.reason == "2 symbols: 4.00 (4.00 to 4.00); not measured: 62 symbols, 10 symbols, 4 symbols"


def test_a_row_of_published_figures_names_each():
    published = {row.statement: row.cells[0] for row in FetchCompressed().finding_rows(Run([]))}
    ((_state, inside),), ((_state, weak),), ((_state, alone),) = (published[DOCUMENT.claim(name).says] for name in ("local-inside", "weak-lz4", "cloud-lz4"))
    assert inside == "62 symbols: +4%; 10 symbols: +5%; 4 symbols: +6%; 2 symbols: +10% (computed, read off a chart)"
    assert (weak, alone) == ("lz4 17: +228%; zstd: +219% (computed, read off a chart)", "+319% (computed, read off a chart)")


def test_a_verdict_on_a_weak_server_says_what_it_took_of_its_processors():
    """Where it took few of them the link was the limit, and no loss could show."""
    run = Run(rounds({"app-none": (29,) * 3, "uncompress": (28.9,) * 3, "row-compressed": (29,) * 3}, link="weak"))
    for p in run.points:
        p["cpu"]["server_cpus"] = 0.02 if p["variant"] == "app-none" else 0.11
    run.run["sessions"][0]["weak_server_processors"] = 0.33
    (found,) = (v for v in verdicts(run) if v.id == "e3-weak-server")
    assert found.state == WEAKER
    assert found.reason.endswith("; of its 0.33 processors the server used: InnoDB, UNCOMPRESS() 0.11, none 0.02, InnoDB ROW_FORMAT=COMPRESSED 0.11")


def test_where_the_authors_charts_deny_each_other_a_verdict_says_so():
    denied, shown = ({v.id: v for v in verdicts(Run(rounds(rates, link=CLOUD)))}["e3-cloud-none-next"] for rates in (
        PUBLISHED, {"app-none": (600,) * 3, "app-zstd": (500,) * 3}))
    assert denied.state == OPPOSITE
    assert denied.reason.endswith("; in the author's own chart of large values none is behind zstd, too: about 253 MB/s and about 523 MB/s")
    assert shown.state == REPRODUCED and "the author" not in shown.reason
    medium = Run(rounds({"app-none": (40,) * 3, "app-lz4-17": (45,) * 3}, size=MEDIUM_BYTES, link=CLOUD))
    (found,) = (v for v in verdicts(medium) if v.id == "e3-medium")
    assert found.state == OPPOSITE
    assert "about 88.5 MB/s at 94 KB in this one, about 43 MB/s at 100 KB in another" in found.reason


def test_ndb_is_a_part_where_it_is_built_and_comes_last(monkeypatch, ndb_is_built):
    experiment = FetchCompressed()
    request = experiment.request("normal")
    blocks = experiment.plan(request)
    on_ndb = [METHODS[block.points[0].variant].on_ndb for block in blocks]
    assert on_ndb == sorted(on_ndb) and sum(on_ndb) == request.rounds
    assert {point.setting for block in blocks[-request.rounds:] for point in block.points} == {LOCAL, CLOUD}
    assert all(METHODS[point.variant].on_ndb for block in blocks[-request.rounds:] for point in block.points)
    monkeypatch.setattr(ndb_cluster, "needs", lambda: ["NDB Cluster, which `make ndb` builds"])
    assert "NDB Cluster, which `make ndb` builds" in experiment.needs(request)
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: False)
    assert not any(METHODS[key].on_ndb for key in experiment.request("normal").variants)


def test_ndb_is_on_no_link_of_private_servers(ndb_is_built):
    experiment = FetchCompressed()
    asked = replace(experiment.request("normal"), operations=["stub-2"], sizes_bytes=[1024], variants=["ndb-app-none"])
    assert {cell.setting for cell in experiment.cells(asked)} == {key for key, link in LINKS.items() if key not in ("weak", "routed")}


def test_the_normal_plan_has_every_way_on_localhost_and_every_link(ndb_is_built):
    experiment = FetchCompressed()
    cells = experiment.cells(experiment.request("normal"))
    assert {c.variant for c in cells if (c.operation, c.size_bytes, c.setting) == (REAL, DOCUMENT_BYTES, LOCAL)} == set(METHODS)
    assert {c.variant for c in cells if (c.operation, c.size_bytes, c.setting) == (REAL, DOCUMENT_BYTES, CLOUD)} >= {*APPLICATION, "uncompress"}
    assert {c.setting for c in cells} == set(LINKS)
    assert {c.threads for c in cells} == {2}
    assert {c.size_bytes for c in cells if c.operation == REAL} == set(SIZES[1:])
    assert len(cells) == len(set(cells))
    request = experiment.request("full")
    full = experiment.cells(request)
    assert set(cells) < set(full)
    assert sum(c.setting == LOCAL for c in full) == len(request.operations) * len(request.sizes_bytes) * len(METHODS)
    asked = experiment.cells(replace(experiment.request("normal"), operations=["stub-2"], sizes_bytes=[1024], variants=["quarry"]))
    assert [(c.operation, c.setting) for c in asked] == [("stub-2", link) for link in LINKS]


def test_none_and_an_lz4_are_measured_on_every_link_with_every_alphabet():
    experiment = FetchCompressed()
    found = {(c.operation, c.setting, c.variant) for c in experiment.cells(experiment.request("normal"))}
    for link in ("localhost", "cloud", "gigabit", "wifi"):
        assert all((kind, link, way) in found for kind in RANDOM for way in ("app-none", "app-lz4-9"))
    assert all((REAL, link, way) in found for link in LINKS if link != "proxy" for way in ("app-none", "app-lz4-17"))


def test_the_normal_plan_takes_two_hours_at_most_and_says_how_long_each_link_takes(ndb_is_built):
    experiment = FetchCompressed()
    request = experiment.request("normal")
    points = [point for block in experiment.plan(request) for point in block.points]
    assert 130 <= len(points) / request.rounds <= 160
    assert experiment.planned_seconds(request, points) <= 2 * 3600
    rows = experiment.plan_rows(request, points)
    assert [row.what for row in rows][:-1] == [link.label for link in LINKS.values()]
    assert sum(row.points for row in rows) == len(points)
    assert sum(row.seconds for row in rows) == pytest.approx(experiment.planned_seconds(request, points))
    assert sum(row.seconds for row in experiment.plan_rows(request, [])) == 0


def test_the_quick_plan_is_a_part_of_the_normal_one():
    experiment = FetchCompressed()
    quick = experiment.cells(experiment.request("quick"))
    assert set(quick) < set(experiment.cells(experiment.request("normal"))) and {c.setting for c in quick} == set(LINKS)


def test_links_whose_tools_are_missing_are_named_before(monkeypatch):
    experiment = FetchCompressed()
    request = experiment.request("normal")
    monkeypatch.setattr(processor_cgroup._HIERARCHIES, "places", ())
    monkeypatch.setattr(routed, "HAPROXY", Path("/nonexistent/haproxy"))
    missing = "; ".join(experiment.needs(request))
    assert "a processor cgroup for a weak server: no processor cgroup can be made here (--option links=localhost,proxy,cloud,routed,gigabit,wifi" in missing
    assert "HAProxy at /nonexistent/haproxy (scripts/fetch-mariadb gets it) for a proxy that routes" in missing
    without = replace(request, options={"links": [key for key in LINKS if key not in ("weak", "routed")]})
    assert not [what for what in experiment.needs(without) if "cgroup" in what or "HAProxy" in what]


def test_memory_that_is_lacking_is_named_before(monkeypatch):
    experiment = FetchCompressed()
    request = experiment.request("normal")
    monkeypatch.setattr(device, "memory_info", lambda: {"MemAvailable": (9 << 29) - 1})
    assert "5 GiB of available memory (4607 MiB are available)" in experiment.needs(request)
    without = replace(request, options={"links": ["localhost"]})
    assert not [what for what in experiment.needs(without) if "memory" in what]
    monkeypatch.setattr(device, "memory_info", lambda: {"MemAvailable": 1 << 30})
    assert "4 GiB of available memory (1024 MiB are available)" in experiment.needs(without)


def test_routed_values_are_loaded_where_the_proxy_finds_them():
    experiment = FetchCompressed()
    request = experiment.request("normal")
    behind, direct = experiment.methods_of(request, is_routed=True), experiment.methods_of(request)
    assert behind == {(REAL, DOCUMENT_BYTES): {"app-none", "app-lz4-17", "app-zstd", "uncompress"}}
    assert set(direct) == {(c.operation, c.size_bytes) for c in experiment.cells(request)}


def test_a_routing_proxy_listens_on_every_address_and_takes_the_servers_in_turn():
    text = routed.configuration([("127.0.0.1", 1), ("10.203.0.1", 1)], {"primary": 2, "replica": 3})
    assert [line.strip() for line in text.splitlines() if line.startswith("    bind")] == ["bind 127.0.0.1:1", "bind 10.203.0.1:1"]
    assert "balance roundrobin" in text
    assert [line.strip() for line in text.splitlines() if line.startswith("    server")] == ["server primary 127.0.0.1:2", "server replica 127.0.0.1:3"]


def test_the_chart_and_the_tables_show_every_measured_way():
    run = Run(rounds(PUBLISHED, link=CLOUD))
    (figure,) = e3_figures.figures(run).values()
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert sorted(names) == sorted(METHODS[key].label for key in PUBLISHED)
    assert [bar.get_width() for bar in figure.axes[0].patches] == [142, 253, 523, 1060], "in MB/s, as published"
    assert figure.axes[0].get_title().replace("\n", " ") == f"real data, 4.29 MB, {LINKS[CLOUD].label}", "a size as the document has it"
    (table,) = e3_figures.tables(run)
    assert table.row_count == len(PUBLISHED)


def test_a_chart_says_what_is_not_compressed_and_has_the_documents_units():
    (figure,) = e3_figures.figures(Run(rounds(ENGINES_RATES))).values()
    assert figure.axes[0].get_title() == "real data, 4.29 MB, localhost"
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"nowhere", "in the application", "by QUARRY"}


def test_charts_are_of_real_data_first(monkeypatch):
    monkeypatch.setattr(e3_figures, "CHART_CELLS_MAX", 1)
    points = rounds(PUBLISHED, kind="stub-10") + rounds({"app-none": (1, 1, 1)}, link=CLOUD)
    assert list(e3_figures.figures(Run(points))) == [f"real-{DOCUMENT_BYTES}-{CLOUD}"]


def test_a_chart_shows_lz4_over_none_by_alphabet_and_link():
    rates = {"app-none": (100, 100, 100), "app-lz4-9": (200, 190, 210)}
    points = [p for kind in RANDOM[:2] for link in (LOCAL, CLOUD) for p in rounds(rates, kind=kind, link=link)]
    axes = e3_figures.figures(Run(points))["lz4-none"].axes[0]
    assert sorted(label.get_text() for label in axes.get_yticklabels()) == ["10 symbols", "62 symbols"]
    assert len({charts.color_of(link, n) for n, link in enumerate(LINKS)}) == len(LINKS), "each link has a colour of its own"
    assert set(axes.get_legend_handles_labels()[1]) == {LINKS[LOCAL].label, LINKS[CLOUD].label}
    assert "lz4-none" not in e3_figures.figures(Run(rounds(PUBLISHED, link=CLOUD)))


def test_published_rates_stand_beside_ours_in_their_unit():
    experiment, run = FetchCompressed(), Run(rounds(PUBLISHED, link=CLOUD))
    beside = {figure.what: experiment.beside(run, figure) for figure in experiment.published}
    assert beside["4.29 MB in the cloud, lz4 17"].startswith("InnoDB 1,060 MB/s")
    assert beside["4.29 MB on localhost, ROW_FORMAT=COMPRESSED"] == "not measured"
    slow = Run(rounds({"app-none": (29.5,) * 3}, link="weak") + rounds({"app-none": (34.1,) * 3}, size=MEDIUM_BYTES, link=CLOUD))
    slow_beside = {figure.what: experiment.beside(slow, figure).partition(" (")[0] for figure in experiment.published}
    assert slow_beside["4.29 MB over Ethernet from a weak server, uncompressed"] == "InnoDB 29.5 MB/s"
    assert slow_beside["94 KB, uncompressed, cloud"] == "InnoDB 34.1 MB/s"
    assert re.search(r"real +4\.29 MB +weak +none .* 29\.5 MB/s", experiment.line(slow.points[0])), "as progress has it"
    engines = experiment.beside(Run(rounds(ENGINES_RATES)), next(figure for figure in experiment.published if figure.what == "4.29 MB on localhost, uncompressed"))
    assert [part.split(" (")[0] for part in engines.split("; ")] == ["InnoDB 510 MB/s", "Quarry 610 MB/s", "NDB 210 MB/s"]


def test_the_tables_are_the_authors():
    plain = "(id INT NOT NULL PRIMARY KEY, data MEDIUMBLOB NOT NULL) ENGINE=InnoDB ROW_FORMAT"
    assert METHODS["app-none"].create_table("x") == f"CREATE TABLE `x`.uncompressed_blobs {plain}=DYNAMIC"
    assert METHODS["row-compressed"].create_table("x") == f"CREATE TABLE `x`.compressed_blobs {plain}=COMPRESSED"
    assert {METHODS[key].create_table("x") for key in APPLICATION} == {METHODS["app-none"].create_table("x")}


def test_a_jmh_report_gives_bytes_per_second():
    """JMH's counters have those fetches too with which its threads wait for each other: 11 for each 10 that it measured."""
    counted = {"fetches": {"score": 11.0}, "uncompressedBytes": {"score": 5.5e6}, "receivedBytes": {"score": 1.1e6}}
    metric = [{"primaryMetric": {"score": 10.0}, "secondaryMetrics": counted}]
    assert java.parse_jmh(json.dumps(metric)) == java.FetchResult(10.0, 5e6, 1e6)
    with pytest.raises(java.JavaError, match="0 benchmarks"):
        java.parse_jmh("[]")
    metric[0]["primaryMetric"]["score"] = 0
    with pytest.raises(java.JavaError, match="no fetch"):
        java.parse_jmh(json.dumps(metric))


# --- who used the processors ---
SERVER, JMH, FORKED = 10, 70, 71  # processes; the JVM that JMH forks is of its session
JMH_SAYS = ["# JMH version: 1.37\n", "# Warmup Iteration   1: 5 ops/s\n", "Iteration   1: 5 ops/s\n"]


def used(seconds, **processors):
    """A snapshot: processor seconds so far. A process that is not named is not there."""
    pids = {"server": (SERVER, SERVER), "jmh": (JMH, JMH), "forked": (FORKED, JMH)}
    ticks = {name: count * noise._TICKS_PER_SECOND for name, count in processors.items()}
    processes = {pids[name][0]: noise._Process(name, count, False, pids[name][1]) for name, count in ticks.items()}
    return noise.Snapshot(float(seconds), sum(ticks.values()), 0, processes)


def metered(monkeypatch, said, snapshots):
    """What _metered() finds of a client that says this, and lives until its measured seconds were read."""
    meter, taken, is_read = noise.PhaseMeter({SERVER}), iter(snapshots), threading.Event()
    monkeypatch.setattr(noise, "take_snapshot", lambda: next(taken))
    end = meter.end
    monkeypatch.setattr(meter, "end", lambda: (end(), is_read.set()))

    def start(_main, _arguments, _client, on_line):
        def wait(_timeout_seconds):
            for line in said:
                on_line(line)
            assert not meter.has_begun or is_read.wait(60)

        return SimpleNamespace(process=SimpleNamespace(pid=JMH), wait=wait)

    monkeypatch.setattr(java, "start", start)
    return java._metered("a program", [], None, meter, java._BEFORE_THE_END_SECONDS, 60)


def test_processors_are_those_of_the_seconds_that_jmh_measures(monkeypatch):
    """The 4 and 6 seconds that starting and warming up took are nobody's."""
    found = metered(monkeypatch, JMH_SAYS, [used(0, server=6, jmh=1, forked=4), used(10, server=10, jmh=1, forked=19)])
    assert (found["server_cpus"], found["client_cpus"], found["other_cpus"], found["top_others"]) == (0.4, 1.5, 0.0, [])


def test_a_jvm_that_ended_before_it_was_read_is_run_again(monkeypatch):
    with pytest.raises(LateReport):
        metered(monkeypatch, JMH_SAYS, [used(0, server=6, jmh=1, forked=4), used(10, server=10, jmh=1)])


@pytest.mark.parametrize("said", [JMH_SAYS[:1], ["# Warmup Iteration   1: a library says hello\n", "5 ops/s\n"]])
def test_a_client_that_does_not_say_when_it_is_warm_is_an_error(monkeypatch, said):
    with pytest.raises(java.JavaError, match="did not say when its warm-up was over"):
        metered(monkeypatch, said, [])


def test_the_proxy_that_makes_a_link_is_no_part_of_the_server():
    with_proxy = rounds({"app-none": (100,) * 3}, link=CLOUD)
    for p in with_proxy:
        p["cpu"] |= {"server_cpus": 0.9, "proxy_cpus": 0.6, "client_cpus": 0.5}
    (table,) = e3_figures.tables(Run(with_proxy))
    shown = {str(column.header): list(column.cells) for column in table.columns}
    assert [shown[name] for name in ("server CPU", "proxy CPU", "client CPU")] == [["0.30"], ["0.60"], ["0.50"]]


# --- when something fails ---
PROXY_ENDED, SERVER_ENDED = "\nthe proxy that makes the links ended", "\nthe server 'main' ended:\nlast words"


@pytest.mark.parametrize("error, ended, raised, said", [
    (java.JavaError("java failed"), True, LabError, "none, real 4287156 bytes, cloud: java failed" + PROXY_ENDED + SERVER_ENDED),
    (java.JavaError("java failed"), False, LabError, "none, real 4287156 bytes, cloud: java failed"),
    (LateReport("too late"), False, LateReport, "too late")])
def test_an_error_says_at_which_cell_and_what_had_ended(monkeypatch, error, ended, raised, said):
    """But for a late report, after which the point is measured again."""
    def fetch(*_arguments):
        raise error

    monkeypatch.setattr(java, "fetch_blobs", fetch)
    context = SimpleNamespace(run=SimpleNamespace(path=Path("run")), request=FetchCompressed().request("normal"), progress=SimpleNamespace(step=lambda _text: None))
    server = LabServer("main", Path("main"), None, False, {})
    server.server = SimpleNamespace(pid=1, running=lambda: not ended, log_tail=lambda: "last words")
    monkeypatch.setattr(server, "execute", lambda _sql: None)
    network = SimpleNamespace(port=1, links=[LINKS[CLOUD]], endpoint=lambda _key: None, pids=set, ended=lambda: PROXY_ENDED if ended else "")
    bench = FetchBench(context, server, network, {})
    with pytest.raises(raised) as failed:
        bench.measure(Point.of(1, Cell(REAL, "app-none", DOCUMENT_BYTES, THREADS, CLOUD)))
    assert str(failed.value) == said and bench.ended() == (PROXY_ENDED + SERVER_ENDED if ended else "")


def test_a_cluster_that_lost_a_node_says_so(monkeypatch):
    """Its other data node answers."""
    states = {"ndb: data2: runs (pid 1)\nndb: data3: runs (pid 2)\n": "",
              "ndb: data2: runs (pid 1)\nndb: data3: does not run\n": "\nthe cluster: data2: runs (pid 1); data3: does not run"}
    for state, said in states.items():
        monkeypatch.setattr(ndb_cluster, "script", lambda _verb, state=state: state)
        assert ndb_cluster.NdbCluster("NDB").ended() == said


@pytest.mark.parametrize("disturbed, alone", [(("ndb-app-none", CLOUD), True), (("quarry", CLOUD), False), (("app-zstd", LOCAL), False)])
def test_what_was_disturbed_is_measured_again_on_its_link_and_ndb_alone(ndb_is_built, disturbed, alone):
    experiment = FetchCompressed()
    blocks = experiment.plan(experiment.request("normal"))
    of_round = [p for block in blocks for p in block.points if (p.round, p.operation, p.size_bytes) == (2, REAL, DOCUMENT_BYTES)]
    records = {p.key: {"cpu": {"noisy": (p.variant, p.setting) == disturbed}} for p in of_round}
    again = [p for block in blocks_to_repeat(blocks, records, 1, experiment.comparison) for p in block.points]
    assert set(again) == {p for p in of_round if p.setting == disturbed[1] and METHODS[p.variant].on_ndb == alone}


def test_a_load_that_reports_too_few_tables_is_an_error():
    assert java.parse_loads('noise\n{"table": "a", "rows": 1}\n', 1) == [{"table": "a", "rows": 1}]
    with pytest.raises(java.JavaError, match="1 tables, 2 were expected"):
        java.parse_loads('{"table": "a"}\n', 2)


def test_rows_are_bounded_both_ways():
    assert (rows_of(298, 16 << 20), rows_of(DOCUMENT_BYTES, 16 << 20), rows_of(5 << 20, 16 << 20)) == (256, 4, 4)
    assert rows_of(1 << 20, 16 << 20) == 16


def test_a_resumed_run_loads_what_its_later_rounds_need(monkeypatch):
    """With one point left of the first round, every way to keep such a value still gets its table."""
    experiment = FetchCompressed()
    request = replace(experiment.request("normal"), operations=["stub-2"], sizes_bytes=[1024])
    cells = experiment.cells(request)
    (block, *_) = interleave(cells, request.rounds, request.seed, experiment.group)
    server = SimpleNamespace(execute=lambda _sql: None, settle=lambda: None, ended=str)
    context = SimpleNamespace(run=None, request=request, progress=SimpleNamespace(step=lambda _text: nullcontext()))
    loaded = []
    monkeypatch.setattr(java, "load_blobs", lambda _dataset, _payloads, targets, _client: loaded.extend(targets) or [{} for _ in targets])
    network = SimpleNamespace(port=1, links=[], endpoint=lambda _key: None, ended=str)
    bench = FetchBench(context, server, network, experiment.methods_of(request))
    bench.begin(replace(block, points=block.points[-1:]))
    assert len(loaded) == len({cell.variant for cell in cells if cell.setting != "routed"}) > 1


@pytest.mark.parametrize("variant, changed, said", [
    ("app-none", {"main": {"version": "10.12", "pinned": {"port": "1"}}}, "main ran otherwise in .*: version 10.11, now 10.12"),
    ("app-none", {"main": {"version": "10.11", "pinned": {"port": "2"}}}, None),
    ("ndb-app-none", {"main": {"version": "10.12", "pinned": {}}}, None)])
def test_a_run_is_not_gone_on_with_on_another_server(tmp_path, monkeypatch, variant, changed, said):
    """But for where it listens; and of NDB's points it was not the server."""
    run = RunDirectory(tmp_path / "run", {})
    run.add_session({"started": 100.0, "servers": {"main": {"version": "10.11", "pinned": {"port": "1"}}}})
    run.add_point({**point(variant, 100, 1), "started": 150.0})
    monkeypatch.setattr(links, "probe", lambda _links: [])
    monkeypatch.setattr(java, "version", lambda: "21")
    monkeypatch.setattr(java, "libraries", list)
    context = SimpleNamespace(run=run, request=FetchCompressed().request("normal"), progress=SimpleNamespace(step=lambda _text: None))
    server = SimpleNamespace(execute=lambda _sql: None, describe=lambda: changed["main"], ended=str)
    bench = FetchBench(context, server, SimpleNamespace(port=1, links=[], endpoint=lambda _key: None), {})
    with pytest.raises(LabError, match=said) if said else nullcontext():
        bench.describe()


def test_ndb_runs_for_its_own_blocks_alone(monkeypatch):
    events, cell = [], Cell(REAL, "ndb-app-none", DOCUMENT_BYTES, THREADS, LOCAL)

    class Cluster:
        process_ids, address, login = {1}, Address(socket="x"), {"password": ""}

        def __init__(self, *_args):
            pass

        def start(self):
            events.append("start")
            return self

        def close(self):
            events.append("stop")

        def describe(self):
            return {}

        def ended(self):
            return "" if events[-1] == "stop" else "\nthe cluster: data3: does not run"

        def execute(self, statement):
            events.append(statement.split("`")[1] if "DATABASE" in statement else "table")

    monkeypatch.setattr(e3_bench, "NdbCluster", Cluster)
    monkeypatch.setattr(e3_bench, "over_tcp", lambda _address: Address(host="127.0.0.1", port=1))
    monkeypatch.setattr(java, "load_blobs", lambda _dataset, _payloads, targets, _client: [{} for _ in targets])
    run = SimpleNamespace(run={"sessions": [{}]}, update_session=lambda _name, _value: None)
    context = SimpleNamespace(run=run, request=FetchCompressed().request("normal"), progress=SimpleNamespace(step=lambda _text: None))
    server = SimpleNamespace(execute=lambda _sql: None, settle=lambda: None, rows=lambda _sql: [(None,)], ended=str)
    network = SimpleNamespace(port=1, links=[], endpoint=lambda _key: None, ended=str)
    here = replace(cell, variant="app-none", operation="stub-2")
    bench = FetchBench(context, server, network, {("stub-2", DOCUMENT_BYTES): {"app-none"}}, None, ({(REAL, DOCUMENT_BYTES): {"ndb-app-none"}}, [LINKS[LOCAL]]))
    for asked, ended in ((cell, "\nthe cluster: data3: does not run"), (cell, "\nthe cluster: data3: does not run"), (here, "")):
        bench.begin(Block(1, "x", (Point.of(1, asked),)))
        assert bench.ended() == ended
    bench.close()
    payloads, values = (f"quarry_lab_e3_real_{DOCUMENT_BYTES}_{what}" for what in ("payloads", "ndb_app_none"))
    assert events == ["start", payloads, "table", values, "table", "stop"]


def test_a_server_on_the_loopback_interface_is_reached_by_the_proxy_alone(monkeypatch):
    class Proxy:
        def __enter__(self):
            return self

        def __exit__(self, *_exc):
            pass

        def add(self, link, port, _connections):
            return port + len(link.key)

        def version(self):
            return "a proxy"

    monkeypatch.setattr(links, "Toxiproxy", Proxy)
    monkeypatch.setattr(Link, "queue", lambda _self: pytest.fail("the kernel was asked"))
    with links.Network([LINKS["localhost"], LINKS["cloud"]], 100, by_proxy=True) as network:
        assert [network.endpoint(key).port for key in ("localhost", "cloud")] == [100, 105] and network.addresses == ["127.0.0.1"]


def test_links_ask_the_proxy_for_their_rate_and_delay():
    assert LINKS["localhost"].toxics() == [] and LINKS["proxy"].toxics() == []
    (bandwidth,) = LINKS["gigabit"].toxics()
    assert bandwidth["attributes"] == {"rate": 125_000}  # KB/s
    assert [t["type"] for t in LINKS["wifi"].toxics()] == ["latency", "bandwidth"]
    (shared,) = LINKS["gigabit"].toxics(connections=2)
    assert shared["attributes"] == {"rate": 62_500}, "the proxy throttles each connection by itself"
    both = Link("x", "both ways", 8, both_ways=True).toxics()
    assert [(t["type"], t["stream"]) for t in both] == [("bandwidth", "downstream"), ("bandwidth", "upstream")] and both[0]["name"] != both[1]["name"]


@pytest.mark.parametrize("key, largest, smallest", [
    ("cloud", "cloud-none", "cloud-none-smallest"), ("routed", "cloud-none", "cloud-none-smallest"), ("wifi", "ethernet-none", "wifi-none-smallest")])
def test_rates_and_delays_are_those_of_the_authors_charts(key, largest, smallest):
    """A link lets values through as fast as they came there, the delay included."""
    for name, size in ((largest, DOCUMENT_BYTES), (smallest, DOCUMENT.value("smallest-charted"))):
        seconds = LINKS[key].delay_ms / 1000 + THREADS * size / (LINKS[key].megabits_per_second * 1e6 / 8)
        assert THREADS * size / seconds == pytest.approx(DOCUMENT.value(name) * 1e6, rel=0.03)  # delays are whole milliseconds


def test_a_weak_server_has_a_link_of_the_charted_rate():
    assert (LINKS["weak"].megabits_per_second, LINKS["weak"].delay_ms, LINKS["weak"].weak_server) == (DOCUMENT.value("ethernet-none") * 8, 0, True)
    assert all(link.source for link in LINKS.values() if link.megabits_per_second)


@pytest.mark.parametrize("published, low, high, state", [
    (-0.01, -0.02, -0.02, REPRODUCED), (-0.01, 0.005, 0.005, REPRODUCED), (-0.01, -0.02, 0.05, REPRODUCED), (-0.01, 0.1, 0.2, OPPOSITE),
    (-0.01, -0.2, -0.1, STRONGER), (0.01, -0.2, -0.1, OPPOSITE), (0.01, 0.1, 0.2, STRONGER), (0.0, -0.01, 0.02, REPRODUCED)])
def test_a_gain_next_to_nothing_is_met_on_either_side_and_beyond_it_by_its_sign(published, low, high, state):
    assert as_published(Summary((low + high) / 2, low, high, 3), Figure("x", "x", "gain", "x", published, published)) == state


@pytest.mark.parametrize("published, low, high, state", [
    (-0.23, 0.001, 0.003, WEAKER), (-0.23, 0.001, 0.03, OPPOSITE), (-0.12, 0.01, 0.02, OPPOSITE), (0.36, -0.01, -0.001, WEAKER), (0.36, -0.2, -0.1, OPPOSITE)])
def test_what_is_next_to_nothing_is_no_opposite(published, low, high, state):
    assert as_published(Summary((low + high) / 2, low, high, 3), Figure("x", "x", "gain", "x", published, published)) == state


@pytest.mark.parametrize("cloud, state", [(100.1, WEAKER), (99.9, REPRODUCED), (110, OPPOSITE)])
def test_lz4_that_loses_nothing_over_a_link_is_not_said_to_gain(cloud, state):
    assert states(Run(rounds({"app-none": (100,) * 3, "app-lz4-9": (cloud,) * 3}, kind="stub-62", link=CLOUD)))["e3-poor-ratio"] == state


@pytest.mark.parametrize("name", ["cloud-random", "ethernet-random", "wifi-random"])
def test_what_is_said_of_the_poorest_ratio_is_what_its_figure_says(name):
    claim = DOCUMENT.claim(name)
    assert bool(re.search("(but|except) (for |at )?the poorest", claim.says)) == (claim.figure.value <= 0)


@pytest.mark.parametrize("there, least, most", [(1, 0.1, 0.2), (2, 0.3, 0.4), (64, 0.3, 0.4)])
def test_a_weak_server_is_weak_on_a_large_machine_too(monkeypatch, there, least, most):
    """Two client threads keep no more than two processors of a server busy, on the author's machine and here."""
    monkeypatch.setattr(e3_bench.processors, "AVAILABLE", frozenset(range(there)))
    assert least < e3_bench.weak_processors() < most


def test_a_delay_takes_netem_and_a_rate_alone_can_be_had_from_tbf():
    assert queues(200, 4, 2) == [["netem", "delay", "4ms", "2ms", "rate", "200mbit", "limit", "100000"]]
    assert [queue[0] for queue in queues(1000, 0, 0)] == ["netem", "tbf"]
    assert queues(0, 0, 0) == []
