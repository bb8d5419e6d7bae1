"""E2 engine by engine: its plan, what its rules say of made-up rounds in all directions, and the table of findings. No server runs here."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.design.plan import Block, Point
from quarry_lab.design.request import LabError
from quarry_lab.design.results import RunDirectory
from quarry_lab.design.variants import ALL, create_table
from quarry_lab.experiments.e2.bench import WAYS, clients_of_this_process
from quarry_lab.experiments.e2.engines import Group, engine_of
from quarry_lab.experiments.engine_bench import EngineBench
from quarry_lab.report import charts
from quarry_lab.servers import ndb_cluster
from quarry_lab.servers.ndb_cluster import ONE_SQL_NODE, NdbCluster
from plans import columns, lets_in_the_users_of_one_sql_node, names_what_ndb_lacks, takes_between, with_ndb
from worlds import Run, points

E2 = EXPERIMENTS["e2"]


def inserts(prefix, **rates):
    return [p for number, rate in rates.items() for p in points("insert", 1024, 8, f"{prefix}-prefetch-{number[1:]}", rate)]


def wide(load, **rates):
    return [p for name, rate in rates.items() for p in points(load, 2048, 8, name.replace("_", "-"), rate)]


def states(rounds):
    return {verdict.id: verdict.state for verdict in E2.verdicts(Run(rounds))}


def verdict(rounds, name):
    (found,) = [verdict for verdict in E2.verdicts(Run(rounds)) if verdict.id == name]
    return found


# --- the rules, every way ---
@pytest.mark.parametrize("prefix, suffix", [("quarry", ""), ("target-ndb", "-ndb")])
@pytest.mark.parametrize("rates, wanted", [
    ((1211.91, 3471.71, 3659.52), ("reproduced", "reproduced", "reproduced", "reproduced")),
    ((1211.91, 3471.71, 600), ("reproduced", "reproduced", "opposite", "opposite")),
    ((100, 110, 300), ("weaker", "weaker", "reproduced", "stronger")),
    ((9000, 90_000, 95_000), ("stronger", "stronger", "stronger", "reproduced")),
    ((1000, (900, 2900, 3000), 3020), ("reproduced", "mixed", "reproduced", "reproduced")),
    ((1000, 500, 500), ("reproduced", "opposite", "opposite", "weaker"))])
def test_each_prefetch_is_judged_by_itself_on_each_engine(prefix, suffix, rates, wanted):
    found = states(inserts(prefix, **dict(zip(("x1", "x256", "x1024"), rates, strict=True))))
    assert tuple(found[f"e2-{name}{suffix}"] for name in ("prefetch-1", "prefetch", "prefetch-1024", "prefetch-more")) == wanted


@pytest.mark.parametrize("blob, varbinary, suffix", [
    ("quarry-2blob", "quarry-2varbinary", ""), ("quarry-2blob-default", "quarry-2varbinary", "-own"),
    ("innodb-2blob", "innodb-2varbinary", "-innodb"), ("target-ndb-2blob", "target-ndb-2varbinary", "-ndb")])
@pytest.mark.parametrize("rates, wanted", [((5844, 19206), "reproduced"), ((100, 150), "weaker"), ((100, 900), "stronger"), ((100, 90), "opposite"),
                                           ((100, (90, 330, 330)), "mixed")])
def test_blob_against_varbinary_is_judged_on_each_engine(blob, varbinary, suffix, rates, wanted):
    assert states(points("read", 2048, 8, blob, rates[0]) + points("read", 2048, 8, varbinary, rates[1]))[f"e2-varbinary{suffix}"] == wanted


@pytest.mark.parametrize("prefix, suffix", [("quarry", ""), ("target-ndb", "-ndb"), ("innodb", "-innodb")])
@pytest.mark.parametrize("kept, wanted", [
    (50, "reproduced"), (90, "weaker"), ((95, 105, 100), "weaker"), ((70, 70, 90), "mixed"), ((80, 120, 110), "mixed"), (130, "opposite"),
    ((101, 130, 110), "weaker")])
def test_readers_beside_an_updater_are_judged_on_each_engine(prefix, suffix, kept, wanted):
    rounds = [p for kind, beside in (("2blob", kept), ("2varbinary", 100)) for p in points("few", 2048, 8, f"{prefix}-{kind}", 100)
              + points("updated", 2048, 8, f"{prefix}-{kind}", beside)]
    assert states(rounds)[f"e2-shared-locks{suffix}"] == wanted


def test_a_noisy_engine_is_not_judged_and_leaves_the_others_their_verdict():
    rounds = inserts("target-ndb", x1=1000, x256=2900) + [p for n, rate in ((1, 100), (256, 290))
                                                        for p in points("insert", 1024, 8, f"quarry-prefetch-{n}", rate, noisy=(1, 2))]
    found = states(rounds)
    assert (found["e2-prefetch"], found["e2-prefetch-ndb"]) == ("not judged", "reproduced")


# --- what stands next to a verdict ---
def test_what_shows_on_ndb_and_not_on_quarry_has_its_reason_with_figures():
    rounds = inserts("target-ndb", x1=500, x256=1450) + inserts("quarry", x1=4000, x256=4000)
    for point in rounds:
        if point["variant"].startswith("target"):
            point["nodes"] = {"trips": {"4": 300 if point["variant"].endswith("-1") else 100}}
        else:
            point["quarry_status"] = {"quarry_autoincrement_reservations": 6}
    here, there = verdict(rounds, "e2-prefetch").reason, verdict(rounds, "e2-prefetch-ndb").reason
    assert "not as on NDB: an id comes from the server's memory" in here and "(QUARRY prefetch 1: 4,000/s; NDB prefetch 1: 500/s)" in here
    assert "reservations per 1,000 rows: QUARRY prefetch 256 60.00" in here and "waits for the data nodes per 1,000 rows" not in here
    assert "waits for the data nodes per 1,000 rows: NDB prefetch 256 1000.00, NDB prefetch 1 3000.00 (one for each statement: 1000.00)" in there
    assert "not as on NDB" not in verdict(inserts("quarry", x1=4000, x256=4000), "e2-prefetch").reason


@pytest.mark.parametrize("here, there, explained", [
    (4000, 950, True), ((3900, 4000, 4100), (900, 950, 1000), True), (5000, 950, True), (10_000, 950, False), (4000, (480, 950, 950), False),
    (3000, 450, False)], ids=["none here", "ranges", "less here", "as much here", "not in every round", "a loss on both"])
def test_what_shows_less_on_quarry_than_on_ndb_has_its_reason_though_ndb_shows_less_than_was_published(here, there, explained):
    found = {v.id: v for v in E2.verdicts(Run(inserts("target-ndb", x1=500, x256=there) + inserts("quarry", x1=4000, x256=here)))}
    assert found["e2-prefetch-ndb"].state in ("weaker", "mixed", "opposite")
    assert ("not as on NDB: an id comes from the server's memory" in found["e2-prefetch"].reason) == explained


def test_of_reads_the_trips_are_the_reason_and_of_a_rate_none_is_known():
    rounds = wide("read", quarry_2blob=9000, quarry_2varbinary=9300, target_ndb_2blob=5844, target_ndb_2varbinary=19_206)
    for point in rounds:
        point["result"] |= {"total_reads": 100, "total_rows_written": 0}
        if point["variant"].startswith("target"):
            point["nodes"] = {"trips": {"4": 300 if point["variant"].endswith("2blob") else 100}}
    said = verdict(rounds, "e2-varbinary").reason
    assert said.endswith("(QUARRY DEFAULTS=NDB, two BLOBs: 9,000/s; NDB default, two BLOBs: 5,844/s; waits for the data nodes in a read: "
                         "NDB, two VARBINARYs 1.00, NDB default, two BLOBs 3.00)")
    slow = verdict(inserts("quarry", x1=500) + inserts("target-ndb", x1=1211.91), "e2-prefetch-1")
    assert slow.state == "weaker" and "not as on NDB" not in slow.reason


def test_of_a_quarry_that_was_not_judged_nothing_is_explained():
    noisy = [p for number in (1, 256) for p in points("insert", 1024, 8, f"quarry-prefetch-{number}", 4000, noisy=(1, 2))]
    found = verdict(inserts("target-ndb", x1=500, x256=1450) + noisy, "e2-prefetch")
    assert found.state == "not judged" and "not as on NDB" not in found.reason


def test_locks_that_ndb_alone_takes_are_shown_by_what_readers_keep():
    rounds = wide("few", quarry_2blob=100, quarry_2varbinary=100, target_ndb_2blob=50, target_ndb_2varbinary=50)
    rounds += wide("updated", quarry_2blob=99, quarry_2varbinary=100, target_ndb_2blob=30, target_ndb_2varbinary=50)
    said = "not as on NDB: a consistent read takes no lock (BLOB readers keep 99% here, 60% on NDB)"
    assert verdict(rounds, "e2-shared-locks").reason.endswith(said)


def test_ndbs_figure_stands_next_to_the_published_one():
    (figure,) = [each for each in E2.published if each.figure.id == "prefetch-1"]
    here = inserts("quarry", x1=4000)
    assert E2.beside(Run(here), figure) == "4,000/s (4,000 to 4,000)"
    assert E2.beside(Run(here + inserts("target-ndb", x1=1149)), figure) == "Quarry 4,000/s (4,000 to 4,000); NDB 1,149/s (1,149 to 1,149)"


def test_the_table_has_each_engine_and_says_what_was_lacking():
    rounds = wide("read", quarry_2blob=100, quarry_2varbinary=329, quarry_2blob_default=300, innodb_2blob=100, innodb_2varbinary=100)
    made = columns(E2, rounds)
    row = made["rows with two VARBINARYs are read faster than rows with two BLOBs: +229%"]
    assert [state for state, _text in row["Quarry here"]] == ["reproduced", "weaker"] and row["InnoDB here"][0][0] == "weaker"
    assert row["NDB here"] == [("not measured", "this run has no such point of NDB, which `make ndb` builds")]
    other = columns(E2, rounds + wide("read", target_ndb_2blob=1, target_ndb_2varbinary=2))["prefetch 256 gives +186% inserts over prefetch 1; the text says 3x"]
    assert "not part of this run" not in other["NDB here"][0][1], "NDB was part of it"
    prefetch = made["prefetch 256 gives +186% inserts over prefetch 1; the text says 3x"]
    assert prefetch["published"] == [("", "+186% (computed)")] and prefetch["Quarry here"][0][0] == "not measured"
    assert prefetch["InnoDB here"] == [("", "InnoDB has no such option: it counts ids in memory")]
    assert {verdict.id for verdict in E2.quarrys_own(E2.verdicts(Run(rounds)))}.isdisjoint({"e2-varbinary-own", "e2-varbinary-innodb"})


def test_the_threads_that_ask_the_fronts_are_clients_and_no_servers():
    """They are one process of Python, which may be what the fronts wait for: its processor time has a column."""
    found = clients_of_this_process({"server_cpus": 1.9, "client_cpus": 0.0, "processors": 2}, 0.8)
    assert found == {"server_cpus": 1.1, "client_cpus": 0.8, "processors": 2}
    rounds = [p | {"result": {**p["result"], "deadlocks": 0}, "cpu": {**p["cpu"], **found}} for p in points("fronts", 1024, 8, "fronts-shard-1", 500)]
    (table,) = [table for table in E2.tables(Run(rounds)) if "Spider" in table.title]
    cells = {column.header: list(column.cells) for column in table.columns}
    assert cells["CPU servers"] == ["1.10"] and cells["CPU clients, 1 at most"] == ["0.80"]


def test_charts_of_readers_have_one_scale_and_each_way_to_an_id_a_colour_of_its_own():
    """A panel of lower figures on a scale of its own showed what readers keep as if it were more."""
    rounds = wide("few", quarry_2blob=100, quarry_2varbinary=100) + wide("updated", quarry_2blob=50, quarry_2varbinary=60)
    (figure,) = E2.figures(Run(rounds)).values()
    alone, beside = figure.axes
    assert alone.get_xlim() == beside.get_xlim()
    assert [bar.get_width() for bar in beside.patches] == [50, 60]
    assert len({charts.color_of(way) for way in WAYS}) == len(WAYS)


# --- what is measured ---
@pytest.fixture
def whole(monkeypatch):
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: True)
    return with_ndb(E2)


def test_every_claim_has_its_cells_on_every_engine(whole):
    made = [p for cell in E2.cells(whole) for p in points(cell.operation, cell.size_bytes, cell.threads, cell.variant, 100.0)]
    found = states(made)
    assert "not measured" not in found.values()
    assert {f"e2-{name}{suffix}" for name in ("prefetch-1", "prefetch", "prefetch-1024", "prefetch-more") for suffix in ("", "-ndb")} <= set(found)
    assert {f"e2-{name}{suffix}" for name in ("varbinary", "shared-locks") for suffix in ("", "-own", "-ndb", "-innodb")} <= set(found)


def test_the_prefetch_is_ndbs_own_variable_there_and_the_value_has_no_part():
    assert ALL["target-ndb-prefetch-256"].session_sql == "SET ndb_autoincrement_prefetch_sz=256"
    assert create_table(ALL["target-ndb-prefetch-1"], 1024, "t") == (
        'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data BLOB COMMENT "NDB_COLUMN=BLOB_INLINE_SIZE=1024") ENGINE=NDBCLUSTER')


def test_two_blobs_are_those_of_the_document_on_ndb_and_have_its_defaults_on_quarry():
    there, here = (create_table(ALL[key], 2048, "t") for key in ("target-ndb-2blob", "quarry-2blob"))
    assert there == "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data1 BLOB, data2 BLOB) ENGINE=NDBCLUSTER"
    assert here == there.replace("NDBCLUSTER", "QUARRY DEFAULTS=NDB")


def test_one_engine_after_the_other_and_all_rounds_of_it(whole):
    groups = [block.group for block in E2.plan(whole)]
    starts = [group for n, group in enumerate(groups) if n == 0 or groups[n - 1] != group]
    assert sorted(group.engine for group in starts) == ["InnoDB", "NDB", "QUARRY", "Spider fronts"]
    assert all(engine_of(point.variant) == block.group.engine for block in E2.plan(whole) for point in block.points)
    assert E2.plan(whole) == E2.plan(whole)


@pytest.mark.parametrize("scale, most", [("normal", 50), ("quick", 10)])
def test_measuring_takes_less_than_an_hour_and_a_look_ten_minutes(monkeypatch, scale, most):
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: True)
    takes_between(E2, with_ndb(E2, scale), 60, most * 60)


def test_what_ndb_lacks_is_named_before(whole, monkeypatch):
    names_what_ndb_lacks(E2, whole, monkeypatch)


def test_fronts_alone_need_the_plugin_and_are_another_run_with_another_build(tmp_path):
    builds = [tmp_path / name for name in ("one.so", "other.so")]
    for build in builds:
        build.write_bytes(build.name.encode())
    asked = replace(E2.request(), variants=["fronts-counting"])
    one, other = (E2.identity(replace(asked, plugin=build)) for build in builds)
    assert one != other
    assert not [what for what in E2.needs(replace(asked, plugin=builds[0])) if "plugin" in what]
    for lacking in (None, tmp_path / "none.so"):
        assert sum("a plugin at" in what for what in E2.needs(replace(asked, plugin=lacking))) == 1
        assert sum("a plugin at" in what for what in E2.needs(replace(E2.request(), plugin=lacking))) == 1


def test_the_users_of_one_sql_node_are_let_in(whole, monkeypatch):
    lets_in_the_users_of_one_sql_node(E2, whole, monkeypatch)


# --- the bench ---
class Cluster:
    """The cluster as the bench sees it."""

    def __init__(self):
        self.seen = []

    def __call__(self, key, sql_nodes):
        self.seen.append((key, sql_nodes))
        return SimpleNamespace(start=lambda: None, close=lambda: self.seen.append("stopped"), describe=lambda: {"version": "NDB"})


def test_one_sql_node_of_the_cluster_has_all_clients_and_it_stops_before_another_engine(whole, tmp_path, monkeypatch):
    cluster, run = Cluster(), RunDirectory(tmp_path / "run", {})
    run.add_session({})
    monkeypatch.setattr("quarry_lab.experiments.engine_bench.NdbCluster", cluster)
    context = SimpleNamespace(request=whole, run=run, progress=SimpleNamespace(step=lambda _text: None))
    monkeypatch.setattr("quarry_lab.experiments.engine_bench.isinstance", lambda *_arguments: False, raising=False)
    with EngineBench(context, SimpleNamespace(kind="random"), ONE_SQL_NODE) as bench:
        bench.begin(Block(1, Group("NDB"), (Point(1, "insert", 1024, 8, "target-ndb-prefetch-1"),)))
        bench.begin(Block(2, Group("NDB"), (Point(2, "insert", 1024, 8, "target-ndb-prefetch-1"),)))
        assert cluster.seen == [("target", (4,))]
    assert cluster.seen == [("target", (4,)), "stopped"]
    socket = NdbCluster("target", ONE_SQL_NODE).login["socket"]
    assert socket.endswith("sql4/mysqld.sock") and "," not in socket


class Node:
    """A connection to a SQL node with these counters."""

    def __init__(self, **counters):
        self.counters = counters


def test_the_nodes_with_clients_are_counted(monkeypatch):
    def rows(connection, statement):
        name = statement.split("'")[1]
        return [(name, connection.counters[name])] if name in connection.counters else []

    monkeypatch.setattr(ndb_cluster, "rows", rows)
    for nodes, statements, trips in (((4,), {"4": 10}, {"4": 70}), ((4, 5), {"4": 10, "5": 20}, {"4": 70})):
        server = NdbCluster("target", nodes)
        server._connection = Node(Com_stmt_execute="10", Ndb_api_wait_exec_complete_count="70")
        server._second = Node(Com_stmt_execute="20")
        monkeypatch.setattr(server, "rows", lambda _statement: [])
        found = server.node_load()
        assert (found["statements"], found["trips"]) == (statements, trips)
        server._connection = None


def test_memory_is_that_of_a_dataset_and_not_of_inserts(whole, tmp_path, monkeypatch):
    context = SimpleNamespace(request=whole, run=RunDirectory(tmp_path / "run", {}), progress=None)
    bench, server = EngineBench(context, SimpleNamespace(kind="random"), ONE_SQL_NODE), NdbCluster("target", ONE_SQL_NODE)
    monkeypatch.setattr(server, "memory_bytes", lambda _schema: {"data_memory": 9})
    read, insert = Point(1, "read", 2048, 8, "target-ndb-2blob"), Point(1, "insert", 1024, 8, "target-ndb-prefetch-1")
    assert bench._memory(read, server, ALL[read.variant], "s") == {"payload_bytes": 200_000 * 2048, "cached_bytes": {"data_memory": 9}}
    assert bench._memory(insert, server, ALL[insert.variant], "s") is None


def test_a_sql_node_with_clients_but_no_statements_is_an_error(whole, tmp_path):
    context = SimpleNamespace(request=whole, run=RunDirectory(tmp_path / "run", {}), progress=None)
    server = SimpleNamespace(node_load=lambda: {"statements": {"4": 7}, "trips": {"4": 9}})
    bench = EngineBench(context, SimpleNamespace(kind="random"), ONE_SQL_NODE)
    assert bench._nodes(server, {"statements": {"4": 1}, "trips": {"4": 2}}) == {"nodes": {"statements": {"4": 6}, "trips": {"4": 7}}}
    with pytest.raises(LabError, match="SQL node 4 of the NDB Cluster had no statement"):
        bench._nodes(server, {"statements": {"4": 7}, "trips": {"4": 2}})
