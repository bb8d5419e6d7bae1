"""E4 engine by engine: its plan, what its rules say of made-up rounds in all directions, the table, and the bench. No server runs here."""

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.design.plan import Block, Point
from quarry_lab.design.request import Address, LabError
from quarry_lab.design.results import RunDirectory
from quarry_lab.experiments.e4 import bench as e4_bench
from quarry_lab.experiments.e4 import space
from quarry_lab.experiments.e4.bench import ReaderBench
from quarry_lab.experiments.e4.engines import Group
from quarry_lab.experiments.e4.findings import QUESTIONS
from quarry_lab.experiments.e4.report import sql_text_of, twin_of
from quarry_lab.experiments.e4.ways import WAYS, engine_of
from quarry_lab.load import value_reader
from quarry_lab.servers import ndb_cluster, target
from quarry_lab.servers.ndb_cluster import NdbCluster
from quarry_lab.servers.target import TargetServer
from plans import columns, lets_in_the_users_of_one_sql_node, names_what_ndb_lacks, takes_between, with_ndb
from worlds import Run, points, spread

E4 = EXPERIMENTS["e4"]
ENGINES = [("", ""), ("innodb-", "-innodb"), ("target-ndb-", "-ndb")]  # prefix of the ways, suffix of the findings


def fetches(size=100, threads=8, **rates):
    return [p for name, rate in rates.items() for p in points("fetch", size, threads, name.replace("_", "-"), rate)]


def busy(variant, threads, server, client, **changes):
    """Rounds with so many processors of server and client; two are there."""
    made = points("fetch", 100, threads, variant, 1000, **changes)
    for point, s, c in zip(made, spread(server), spread(client), strict=True):
        point["cpu"] |= {"server_cpus": s, "client_cpus": c}
    return made


def disk(variant, short, full, rounds=3):
    """Bytes of disk for each byte of short values, and of values as long as their column may be."""
    made = []
    for size, ratios in zip(space.SIZES, (short, full), strict=True):
        for point, ratio in list(zip(points("disk", size, 1, variant, 500, seconds=0.7), spread(ratios), strict=True))[:rounds]:
            made.append(point | {"disk": {"payload_bytes": 1000, "disk_bytes": 1000 * ratio}})
    return made


def verdicts(rounds, count=3):
    return {verdict.id: verdict for verdict in E4.verdicts(Run(rounds, count))}


def states(rounds, count=3):
    return {name: verdict.state for name, verdict in verdicts(rounds, count).items()}


# --- the rules, every way ---
@pytest.mark.parametrize("prefix, suffix", ENGINES)
@pytest.mark.parametrize("plain, wanted", [(46_000, "reproduced"), (45_990, "reproduced"), (38_000, "weaker"), (35_000, "weaker"),
                                           (70_000, "stronger"), (30_000, "opposite"), ((46_000, 34_000, 46_000), "mixed")])
def test_the_compressed_protocol_is_judged_on_each_engine(prefix, suffix, plain, wanted):
    rounds = points("fetch", 100, 8, f"{prefix}text", plain) + points("fetch", 100, 8, f"{prefix}text-compressed", 35_000)
    assert states(rounds)[f"e4-compress{suffix}"] == wanted


@pytest.mark.parametrize("prefix, suffix", ENGINES)
def test_what_compression_costs_a_request_stands_next_to_its_verdict(prefix, suffix):
    rounds = points("fetch", 100, 8, f"{prefix}text", 50_000) + points("fetch", 100, 8, f"{prefix}text-compressed", 25_000)
    said = "x8 38 µs of processor time a request, +38 with compression"
    found = verdicts(rounds + points("fetch", 100, 8, "target-ndb-api", 90_000))
    assert found[f"e4-compress{suffix}"].reason == f"x8: +100% (+100% to +100%); {said}"
    assert "of processor time a request" not in found["e4-native-ndb" if prefix == "target-ndb-" else "e4-native"].reason


def test_larger_values_and_other_engines_have_no_say():
    rounds = fetches(text=46_000, text_compressed=35_000) + fetches(65536, text=100, text_compressed=200)
    rounds += fetches(innodb_text=10, innodb_text_compressed=20)
    found = states(rounds)
    assert (found["e4-compress"], found["e4-compress-innodb"], found["e4-compress-large"]) == ("reproduced", "opposite", "answered")
    assert "e4-compress-ndb" not in found and "e4-compress-large-innodb" not in found


@pytest.mark.parametrize("prefix, suffix", ENGINES)
@pytest.mark.parametrize("full, alone, wanted", [
    ((1.3, 0.65), (0.6, 0.3), "reproduced"),
    # A closed loop fills two processors whatever the cause; a lone client shows that its request is made of something else.
    ((1.3, 0.65), (0.2, 0.1), "mixed"),
    ((1.3, 0.65), (0.3, 0.5), "mixed"),
    ((0.4, 0.2), (0.2, 0.1), "weaker"),
    ((0.7, 1.25), (0.3, 0.5), "opposite"),
    ((0.7, 1.25), (0.6, 0.3), "mixed"),
    (((1.3, 0.7, 1.3), 0.65), (0.6, 0.3), "mixed"),
    ((1.3, 0.65), ((0.6, 0.4, 0.6), 0.3), "mixed")])
def test_whose_processors_are_the_limit_is_judged_on_each_engine(prefix, suffix, full, alone, wanted):
    rounds = busy(f"{prefix}text", 8, *full) + busy(f"{prefix}text", 1, *alone)
    assert states(rounds)[f"e4-processors{suffix}"] == wanted


@pytest.mark.parametrize("rounds", [busy("text", 8, 1.3, 0.65), busy("text", 1, 0.6, 0.3)], ids=["no lone client", "only one client"])
def test_full_processors_alone_are_no_verdict(rounds):
    assert states(rounds)["e4-processors"] == "not measured"


def test_the_processors_verdict_names_what_it_saw():
    found = verdicts(busy("text", 8, 1.3, 0.65) + busy("text", 1, 0.2, 0.1))["e4-processors"]
    assert "x8: 98%" in found.reason and "reproduced" in found.reason and "server 1.30 and client 0.65 processors" in found.reason
    assert "x1: 20%" in found.reason and "of a request's wall time" in found.reason


@pytest.mark.parametrize("full, alone, wanted", [(1.1, 0.55, "reproduced"), (0.7, 0.3, "weaker"), (1.1, 0.3, "mixed"), (0.1, 0.01, "opposite")])
def test_of_ndb_the_sql_node_is_the_server_and_not_the_data_nodes(full, alone, wanted):
    many, one = busy("target-ndb-text", 8, 1.7, 0.2), busy("target-ndb-text", 1, 0.7, 0.05)
    for rounds, daemon in ((many, full), (one, alone)):
        for point in rounds:
            point["cpu"]["daemon_cpus"] = daemon
    found = verdicts(many + one)["e4-processors-ndb"]
    assert found.state == wanted and f"server {full:.2f}, data nodes {1.7 - full:.2f} and client 0.20 processors" in found.reason


@pytest.mark.parametrize("prefix, suffix", ENGINES)
@pytest.mark.parametrize("server, client, wanted", [(1.3, 0.65, "reproduced"), (0.8, 0.6, "mixed"), (0.7, 1.25, "mixed")])
def test_the_server_is_watched_with_the_compressed_protocol_which_was_on_there(prefix, suffix, server, client, wanted):
    rounds = busy(f"{prefix}text", 8, 1.3, 0.65) + busy(f"{prefix}text", 1, 0.6, 0.3) + busy(f"{prefix}text-compressed", 8, server, client)
    found = verdicts(rounds)[f"e4-processors{suffix}"]
    assert found.state == wanted and "x8, compressed: " in found.reason


def test_a_disturbed_level_is_not_judged():
    assert states(busy("text", 8, 1.3, 0.65) + busy("text", 1, 0.2, 0.1, noisy=(1, 2)))["e4-processors"] == "reproduced"
    assert states(busy("text", 8, 1.3, 0.65, noisy=(1, 2)) + busy("text", 1, 0.2, 0.1, noisy=(1, 2)))["e4-processors"] == "not judged"


@pytest.mark.parametrize("native, wanted", [(300, "reproduced"), (150, "weaker"), (900, "stronger"), (50, "opposite"), ((90, 300, 300), "mixed")])
def test_the_ndb_api_is_judged_on_ndb(native, wanted):
    found = states(points("fetch", 100, 8, "target-ndb-api", native) + fetches(target_ndb_text=100))
    assert (found["e4-native-ndb"], found["e4-native"]) == (wanted, "not measured") and "e4-native-innodb" not in found


@pytest.mark.parametrize("variant, suffix", [("quarry-disk", ""), ("innodb-disk", "-innodb"), ("target-ndb-disk", "-ndb")])
@pytest.mark.parametrize("short, full, wanted", [
    (5.3, 1.3, "reproduced"), (1.4, 1.3, "weaker"), (1.0, 1.0, "weaker"), (1.25, 1.3, "weaker"), (0.9, 1.3, "opposite"), ((5.3, 1.3, 5.3), 1.3, "mixed")])
def test_disk_of_short_values_is_judged_on_each_engine(variant, suffix, short, full, wanted):
    assert states(disk(variant, short, full))[f"e4-disk{suffix}"] == wanted


def test_space_takes_three_rounds_and_no_ten_seconds():
    rounds = disk("quarry-disk", 5.3, 1.3, rounds=2)
    assert states(rounds, 2)["e4-disk"] == "not judged" and states(disk("quarry-disk", 5.3, 1.3))["e4-disk"] == "reproduced"
    assert "6 KB 5.30, 24 KB 1.30; one over the other 4.08" in verdicts(rounds, 2)["e4-disk"].reason


def test_innodb_stands_next_to_a_published_figure_where_it_was_measured():
    plain, _compressed, gain = E4.published
    here = fetches(text=40_000, text_compressed=30_000)
    there = fetches(innodb_text=39_000, innodb_text_compressed=30_000)
    assert E4.beside(Run(here), plain) == "40,000/s (40,000 to 40,000)"
    assert E4.beside(Run(here + there), plain) == "Quarry 40,000/s (40,000 to 40,000); InnoDB 39,000/s (39,000 to 39,000)"
    assert E4.beside(Run(here + there), gain).endswith("; InnoDB x8: +30% (+30% to +30%)")


# --- what was left open ---
def test_each_question_is_answered_for_each_engine_that_has_it():
    rounds = fetches(text=100, prepared=120, connect=10, handlersocket=130, innodb_text=100, innodb_prepared=90, innodb_connect=20,
                     innodb_embedded=180, target_ndb_text=100, target_ndb_prepared=110, target_ndb_connect=30)
    found = verdicts(rounds)
    answered = {name for name, verdict in found.items() if verdict.state == "answered"}
    assert answered == {"e4-prepared", "e4-prepared-innodb", "e4-prepared-ndb", "e4-connect", "e4-connect-innodb", "e4-connect-ndb",
                        "e4-handlersocket", "e4-embedded-innodb"}
    assert "+100%" in found["e4-embedded-innodb"].reason and "cannot load" in found["e4-embedded"].reason and "-70%" in found["e4-connect-ndb"].reason


def test_a_question_says_what_is_compared_with_what():
    """A gain alone does not tell what it is over."""
    assert not [question.finding.statement for question in QUESTIONS if " over " not in question.finding.statement]


# --- the table ---
def test_the_table_has_each_engine_and_says_what_was_lacking():
    rounds = fetches(text=46_000, text_compressed=35_000, innodb_text=100, innodb_text_compressed=100, innodb_prepared=90, innodb_embedded=180)
    made = columns(E4, rounds)
    (row,) = [row for statement, row in made.items() if statement.startswith("small rows: +25%")]
    assert (row["Quarry here"][0][0], row["InnoDB here"][0][0]) == ("reproduced", "weaker")
    assert row["NDB here"] == [("not measured", "this run has no such point of NDB, which `make ndb` builds")]
    (native,) = [row for statement, row in made.items() if statement.startswith("the NDB API")]
    assert native["published"] == [("", "no figure")], "three times was MongoDB"
    assert native["Quarry here"] == [("not measured", "the NDB API reaches NDB alone")]
    assert native["InnoDB here"] == [("", "the NDB API reaches NDB alone")]
    (mongodb,) = [row for statement, row in made.items() if statement.startswith("MongoDB")]
    assert mongodb["published"] == [("", "about +200%")]
    assert all(cell[0][0] == "not measured" and "no MongoDB server" in cell[0][1] for name, cell in mongodb.items() if name != "published")
    (embedded,) = [row for statement, row in made.items() if "embedded server" in statement]
    assert embedded["InnoDB here"][0][0] == "answered" and embedded["Quarry here"][0][0] == "not measured"
    assert embedded["NDB here"] == [("", "MySQL 9 has no embedded server")]
    (large,) = [row for statement, row in made.items() if "4, 64 and 448 KB" in statement]
    assert large["NDB here"] == row["NDB here"] and large["InnoDB here"] == [("not measured", "this run lacks its ways")]


def test_what_shows_on_ndb_and_not_on_quarry_has_its_reason_with_figures():
    rounds = fetches(text=30_000, text_compressed=29_500, target_ndb_text=4600, target_ndb_text_compressed=3500)
    reason = verdicts(rounds)["e4-compress"].reason
    assert "not as on NDB: what a request costs" in reason
    assert reason.endswith("(here x8 63 µs of processor time a request, +1 with compression; "
                           "on NDB x8 413 µs of processor time a request, +130 with compression)")
    space_alone = verdicts(disk("quarry-disk", 1.0, 1.0) + disk("target-ndb-disk", 5.3, 1.3))["e4-disk"].reason
    assert space_alone.endswith("not as on NDB: a value takes its own length in a segment "
                                "(here 1.00 bytes of disk for each payload byte of values of 6 KB; "
                                "on NDB 5.30 bytes of disk for each payload byte of values of 6 KB)")
    rounds = busy("target-ndb-text", 8, 1.6, 0.3) + busy("target-ndb-text", 1, 0.6, 0.1) + busy("text", 8, 1.0, 0.9) + busy("text", 1, 0.3, 0.2)
    assert verdicts(rounds)["e4-processors"].reason.endswith(
        "not as on NDB: server and client have other parts of a request "
        "(here x1 server 0.30 and client 0.20 processors; x8 server 1.00 and client 0.90 processors; "
        "on NDB x1 server 0.60 and client 0.10 processors; x8 server 1.60 and client 0.30 processors)")


def test_ndbs_gain_stands_next_to_the_published_one():
    (figure,) = [each for each in E4.published if each.over]
    rounds = fetches(text=46_000, text_compressed=35_000, target_ndb_text=4600, target_ndb_text_compressed=4400)
    assert E4.beside(Run(rounds), figure) == "Quarry x8: +31% (+31% to +31%); NDB x8: +5% (+5% to +5%)"


def test_a_way_is_compared_with_sql_text_of_its_own_engine():
    assert {sql_text_of(key) for key in WAYS} == {"text", "innodb-text", "target-innodb-text", "target-quarry-text", "target-ndb-text"}
    assert (sql_text_of("innodb-embedded"), sql_text_of("target-ndb-api"), sql_text_of("handlersocket")) == ("innodb-text", "target-ndb-text", "text")


def test_charts_have_an_engine_a_panel_of_the_same_scale_and_a_way_a_row():
    rounds = fetches(text=100, prepared=120, handlersocket=130, innodb_text=100, innodb_embedded=180, target_ndb_text=90, target_ndb_api=300)
    made = E4.figures(Run(rounds + fetches(threads=1, text=50)))
    assert set(made) == {"ways-100-x8", "ways-100-x1"}
    panels = made["ways-100-x8"].axes
    assert [axes.get_title() for axes in panels] == ["QUARRY", "InnoDB", "NDB"] and len({axes.get_xlim() for axes in panels}) == 1
    rows = [text.get_text() for text in panels[0].get_yticklabels()]  # of all panels, which share them
    assert rows == ["SQL text", "prepared statement", "HandlerSocket", "InnoDB, embedded server", "NDB API"]
    assert [[round(bar.get_y() + bar.get_height() / 2) for bar in axes.patches] for axes in panels] == [[0, 1, 2], [0, 3], [0, 4]]
    assert [twin_of(key) for key in ("target-ndb-text", "innodb-connect", "text", "innodb-embedded", "target-ndb-api")] == [
        "text", "connect", "text", "innodb-embedded", "target-ndb-api"]


# --- what is measured ---
@pytest.fixture
def whole(monkeypatch):
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: True)
    monkeypatch.setattr(value_reader, "has_ndb_api", lambda: True)
    return with_ndb(E4)


def test_every_claim_has_its_cells_on_every_engine(whole):
    made = [p | ({"disk": {"payload_bytes": 1, "disk_bytes": 2}} if cell.operation == "disk" else {}) for cell in E4.cells(whole)
            for p in points(cell.operation, cell.size_bytes, cell.threads, cell.variant, 100.0)]
    found = states(made)
    names = ("compress", "processors", "disk", "compress-large", "connect", "prepared")
    assert {f"e4-{name}{suffix}" for name in names for _prefix, suffix in ENGINES} <= set(found)
    lacking = {name for name, state in found.items() if state == "not measured"}
    assert lacking == {"e4-native", "e4-mongodb", "e4-embedded"}


def test_one_engine_after_the_other_and_each_size_with_all_its_rounds(whole):
    groups = [block.group for block in E4.plan(whole)]
    starts = [group.engine for n, group in enumerate(groups) if n == 0 or groups[n - 1].engine != group.engine]
    assert sorted(starts) == ["InnoDB", "NDB", "QUARRY"]
    loads = [group for n, group in enumerate(groups) if n == 0 or groups[n - 1] != group]
    assert len(loads) == len(set(loads)) == 3 * 5
    assert all(engine_of(point.variant) == block.group.engine for block in E4.plan(whole) for point in block.points)
    assert E4.plan(whole) == E4.plan(whole)


@pytest.mark.parametrize("scale, most", [("normal", 50), ("quick", 10)])
def test_measuring_takes_less_than_an_hour_and_a_look_ten_minutes(whole, scale, most):
    takes_between(E4, with_ndb(E4, scale), 60, most * 60)


def test_the_ndb_api_is_for_our_cluster_alone(monkeypatch):
    monkeypatch.setattr(value_reader, "has_ndb_api", lambda: True)
    monkeypatch.setattr(target, "local_cluster", lambda: None)
    keys = E4.request().variants
    assert "target-ndb-api" in E4.on_target(keys, {"NDBCLUSTER"}) and "target-ndb-api" not in E4.on_target(keys, {"NDBCLUSTER", "INNODB"})
    assert "target-ndb-disk" not in E4.on_target(["text"], {"NDBCLUSTER"})


def test_what_ndb_lacks_is_named_before(whole, monkeypatch):
    names_what_ndb_lacks(E4, whole, monkeypatch)


@pytest.mark.parametrize("variant", ["text", "quarry-disk"])
def test_all_that_quarrys_server_loads_is_named_before(variant, tmp_path, monkeypatch):
    """HandlerSocket is in it whichever way is asked for."""
    monkeypatch.setattr("quarry_lab.experiments.e4.experiment.MARIADB", tmp_path)
    request = replace(E4.request(), variants=[variant], plugin=tmp_path / "none.so")
    missing = E4.needs(request)
    assert sum("a plugin at" in what for what in missing) == 1 and sum("handlersocket.so" in what for what in missing) == 1


def test_innodb_alone_needs_no_plugin(tmp_path, monkeypatch):
    monkeypatch.setattr("quarry_lab.experiments.e4.experiment.MARIADB", tmp_path)
    request = replace(E4.request(), variants=["innodb-text"], plugin=tmp_path / "none.so")
    assert not [what for what in E4.needs(request) if "plugin" in what or "handlersocket" in what]
    assert E4.identity(request)["plugin_sha256"] is None


def test_others_are_left_free_disk():
    request = E4.request()
    larger = replace(request, settings=replace(request.settings, disk_reserve_bytes=request.settings.disk_reserve_bytes + 1))
    assert E4.disk_bytes(larger) == E4.disk_bytes(request) + 1


def test_the_users_of_one_sql_node_are_let_in(whole, monkeypatch):
    lets_in_the_users_of_one_sql_node(E4, whole, monkeypatch)


# --- the bench ---
class Server:
    """A server that notes what it is told."""

    def __init__(self, engine, seen):
        self.engine, self.seen, self.process_ids = engine, seen, set()

    def start(self):
        self.seen.append(f"start {self.engine}")

    def close(self):
        self.seen.append(f"stop {self.engine}")

    def describe(self):
        return {"version": self.engine}

    def execute(self, statement):
        self.seen.append(statement)

    def rows(self, _statement):
        return []

    def settle(self):
        return {}

    def verify_pinned(self):
        return {}


@pytest.fixture
def bench(whole, tmp_path, monkeypatch):
    run, seen, fills, prepared = RunDirectory(tmp_path / "run", {}), [], [], []
    run.add_session({})
    monkeypatch.setattr(e4_bench, "DATA", tmp_path / "data")
    monkeypatch.setattr(e4_bench.value_reader, "fill", lambda reading, _payload: fills.append(reading))
    monkeypatch.setattr(e4_bench.value_reader, "prepare", prepared.append)
    monkeypatch.setattr(e4_bench.value_reader, "measure",
                        lambda reading: {"reading": reading, "events_per_second": 1.0, "is_prepared": prepared[-1:] == [reading]})
    made = ReaderBench(SimpleNamespace(request=whole, run=run, progress=SimpleNamespace(step=lambda _text: None)), SimpleNamespace(kind="random"))
    monkeypatch.setattr(made, "_made", lambda engine: Server(engine, seen))
    made.seen, made.fills = seen, fills
    return made


def block(engine, number, size, *ways):
    return Block(number, Group(engine, "fetch", size), tuple(Point(number, "fetch", size, 8, way) for way in ways))


def test_an_engine_that_is_not_measured_is_stopped_and_a_table_is_loaded_once_for_all_rounds(bench):
    with bench:
        for made in (block("QUARRY", 1, 100, "text", "prepared"), block("QUARRY", 2, 100, "text"), block("QUARRY", 1, 4096, "text"),
                     block("InnoDB", 1, 4096, "innodb-text")):
            bench.begin(made)
            for point in made.points:
                bench.measure(point)
            bench.end(made)
    kept = [text for text in bench.seen if not text.startswith("CREATE DATABASE")]
    assert [text.split(" (")[0] for text in kept] == [
        "start QUARRY", "CREATE TABLE lab_quarry.values_100", "DROP TABLE lab_quarry.values_100", "CREATE TABLE lab_quarry.values_4096",
        "stop QUARRY", "start InnoDB", "CREATE TABLE lab_innodb.values_4096", "stop InnoDB"]
    assert [(reading.database, reading.value_bytes) for reading in bench.fills] == [("lab_quarry", 100), ("lab_quarry", 4096), ("lab_innodb", 4096)]
    assert set(bench.run.run["sessions"][-1]["servers"]) == {"QUARRY", "InnoDB"}


def test_of_our_cluster_one_sql_node_has_all_clients_and_the_api_goes_to_the_data_nodes(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(ndb_cluster, "NDB_RUN", tmp_path / "nodes")
    (tmp_path / "nodes" / "sql4").mkdir(parents=True)
    (tmp_path / "nodes" / "sql4" / "quarry.pid").write_text(f"{os.getpid()}\n")
    cluster = NdbCluster("target", ndb_cluster.ONE_SQL_NODE)
    assert cluster.daemon_ids == {os.getpid()}
    monkeypatch.setattr(target, "over_tcp", lambda address: Address(host="127.0.0.1", port=21187, user=address.user))
    for name in ("execute", "rows", "settle", "verify_pinned"):
        monkeypatch.setattr(cluster, name, lambda *_arguments: {})
    bench.server, bench._group = cluster, Group("NDB", "fetch", 100)
    record = bench.measure(Point(1, "fetch", 100, 8, "target-ndb-text-compressed"))
    assert "daemon_cpus" in record["cpu"], "the SQL node's processor time is known apart from the data nodes'"
    by_sql = record["result"]["reading"]
    assert (by_sql.port, by_sql.compress, by_sql.database, by_sql.path) == (21187, True, "quarry_lab_ndbcluster", "text")
    by_api = bench.measure(Point(1, "fetch", 100, 8, "target-ndb-api"))["result"]["reading"]
    assert (by_api.port, by_api.path) == (target.NDB_MANAGEMENT_PORT, "ndbapi") and len(bench.fills) == 1
    assert record["result"]["is_prepared"], "its program is compiled before processor time is counted"


def test_a_run_is_not_gone_on_with_on_other_settings(bench, monkeypatch):
    """scripts/ndb has its own configuration, which no parameter of a run names; a port is another one each time."""
    described = {"version": "9.7", "pinned": {"port": "1", "a": "1"}, "data_nodes": {"DataMemory": "3G"}}
    monkeypatch.setattr(Server, "describe", lambda _self: described)
    measured = block("NDB", 1, 100, "target-ndb-text")
    bench.run.run["sessions"] = [{"started": 100.0}]
    bench.begin(measured)
    bench.run.add_point({**measured.points[0].as_dict(), "started": 150.0})
    bench.run.add_session({"started": 200.0})
    bench.stop()
    described = {**described, "pinned": {"port": "2", "a": "1"}}
    bench.begin(measured)
    bench.stop()
    described = {**described, "data_nodes": {"DataMemory": "4G"}}
    with pytest.raises(LabError, match="NDB ran otherwise in .*: data_nodes.DataMemory 3G, now 4G; .*--fresh"):
        bench.begin(measured)
    bench.stop()
    bench.begin(block("InnoDB", 1, 100, "innodb-text"))  # nothing of it is there
    bench.stop()


def test_an_error_of_the_cluster_says_which_of_its_nodes_run(bench, monkeypatch):
    monkeypatch.setattr(ndb_cluster, "script", lambda verb: "ndb: data2: does not run\n" if verb == "status" else "")
    monkeypatch.setattr(bench, "_fetched", lambda _point: (_ for _ in ()).throw(value_reader.ReaderError("not ready")))
    bench.server = NdbCluster("target")
    with pytest.raises(LabError, match="(?s)NDB, SQL text, 100 B x 8: not ready.*the cluster: data2: does not run"):
        bench.measure(Point(1, "fetch", 100, 8, "target-ndb-text"))
    assert "data2: does not run" in bench.ended(), "also where no client met an error"


class Disk(TargetServer):
    """NDB with a tablespace whose extents in use are given one after the other."""

    def __init__(self, *used):
        super().__init__("target", Address(socket="/x"))
        self.used, self.seen, self.process_ids = list(used), [], set()

    def execute(self, statement):
        self.seen.append(statement)

    def rows(self, statement):
        assert "INFORMATION_SCHEMA.FILES" in statement
        return [(self.used.pop(0),)]

    def settle(self):
        return {}

    def verify_pinned(self):
        return {}


def test_disk_of_ndb_is_counted_by_the_extents_of_a_tablespace_that_is_made_once(bench, monkeypatch):
    monkeypatch.setattr(space.time, "sleep", lambda _seconds: None)
    bench.server = disk_server = Disk(7 << 20, 0, 250 << 20, 0, 60 << 20)
    made = [bench.measure(Point(1, "disk", size, 1, "target-ndb-disk")) for size in space.SIZES]
    assert [record["disk"]["disk_bytes"] for record in made] == [250 << 20, 60 << 20]
    assert [record["disk"]["payload_bytes"] for record in made] == [48 << 20, 48 << 20]
    assert [record["result"]["events"] for record in made] == [8192, 2048]
    assert sum("CREATE TABLESPACE" in statement for statement in disk_server.seen) == 1
    created = [statement for statement in disk_server.seen if statement.startswith("CREATE TABLE quarry")]
    assert "data VARBINARY(24576)) TABLESPACE quarry_lab_e4_space STORAGE DISK ENGINE=NDBCLUSTER" in created[0]
    assert [statement.split(" '")[0].split(" ENGINE")[0] for statement in disk_server.last_statements] == [
        "ALTER TABLESPACE quarry_lab_e4_space DROP DATAFILE", "DROP TABLESPACE quarry_lab_e4_space", "DROP LOGFILE GROUP quarry_lab_e4_log"]


def test_extents_that_are_never_freed_or_not_told_are_an_error(monkeypatch):
    clock = iter(range(0, 1000, 30))
    monkeypatch.setattr(space.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(space.time, "monotonic", lambda: next(clock))
    with pytest.raises(LabError, match="not free after 60 s"):
        space.wait_until_freed(Disk(*[1 << 20] * 9))
    with pytest.raises(LabError, match="tells nothing of the tablespace"):
        space.used_bytes(Disk(None), "", "")
