"""E1's grid and its order, what it asks for before it starts, and what its bench says of a level that cannot be measured. No server runs here."""

import contextlib
import io
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from quarry_lab import cli, lab
from quarry_lab.design.plan import Block, Point, all_points
from quarry_lab.design.profile import BARE, PRODUCTION
from quarry_lab.design.request import Address, LabError
from quarry_lab.design.results import RunDirectory
from quarry_lab.design.variants import ALL, KIB
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.experiments.e1 import bench as e1_bench
from quarry_lab.experiments.e1 import experiment as e1_experiment
from quarry_lab.experiments.e1.bench import EngineBench
from quarry_lab.experiments.e1.engines import MORE_DATA, MORE_DATA_MEMORY_BYTES, Group, engine_of
from quarry_lab.experiments.e1.findings import LIMITED_LINKS
from quarry_lab.load.sysbench import LateReport, SysbenchError
from quarry_lab.run import session
from quarry_lab.run.runner import TableBench
from quarry_lab.servers import ndb_cluster
from quarry_lab.servers.lab_server import LabServer
from quarry_lab.servers.ndb_cluster import NdbCluster
from plans import takes_between, with_ndb
from rich.console import Console

E1 = EXPERIMENTS["e1"]
FULL_LADDER = {8, 32, 64, 128, 256, 512}


@pytest.fixture
def ndb_is_built(monkeypatch):
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: True)
    monkeypatch.setattr(ndb_cluster, "reason_against_limits", lambda: "")


@pytest.fixture
def whole(ndb_is_built):
    return with_ndb(E1)


def users(made, kib, variant, setting=""):
    return {cell.threads for cell in E1.cells(made) if (cell.size_bytes, cell.variant, cell.setting) == (kib * KIB, variant, setting)}


def test_every_variant_of_every_engine_has_the_ladder(whole):
    four = {"4": ("head", "inline", "varbinary"), "24": ("head", "inline", "varbinary"), "64": ("head", "inline", "head-4m", "inline-4m")}
    for kib, names in {**four, "448": four["64"]}.items():
        for name in names:
            for variant in (f"quarry-{name}", f"target-ndb-{name}"):
                assert users(whole, int(kib), variant) >= {32, 128, 512}, (kib, variant)
        for variant in ("quarry-default", "quarry-default-inline", "innodb", "floor"):
            assert users(whole, int(kib), variant) >= {32, 128, 512}, (kib, variant)
    assert not users(whole, 64, "quarry-varbinary") and not users(whole, 4, "quarry-head-4m")


def test_the_full_ladder_is_for_64_kb_and_one_pair_of_24_kb(whole):
    for variant in ("target-ndb-head", "target-ndb-inline-4m", "quarry-inline", "quarry-default-4m", "innodb", "floor"):
        assert users(whole, 64, variant) == FULL_LADDER
    for variant in ("quarry-head", "quarry-inline", "target-ndb-head", "target-ndb-inline", "floor"):
        assert users(whole, 24, variant) == FULL_LADDER
    assert users(whole, 24, "quarry-default") == users(whole, 448, "quarry-head") == {32, 128, 512}
    # What is said of 512 users is compared with half as many.
    assert 256 in users(whole, 4, "target-ndb-varbinary") and 256 in users(whole, 24, "target-ndb-varbinary")


def test_every_claim_on_ndb_and_quarry_has_its_levels_in_the_plan(whole):
    """A run of the whole plan, whatever came out, leaves no claim without a level but those that it says it cannot have."""
    from worlds import Run, points

    rounds = [p for cell in E1.cells(whole)
              for p in points("mix", cell.size_bytes, cell.threads, cell.variant, 100.0, p95=12.0, setting=cell.setting)]
    for point in rounds:
        point["result"]["total_reads"] = 900
        point["memory"] = {"payload_bytes": 1, "cached_bytes": {"x": 1}}
        if point["variant"].startswith("target-"):
            point["nodes"] = {"sent_bytes": {"2 to 4": 5}, "thread_us": {"2 ldm 1": 5}}
    states = {verdict.id: verdict.state for verdict in E1.verdicts(Run(rounds))}
    lacking = {name for name, state in states.items() if state == "not measured"}
    # 20 to 100 ms were nowhere in these rounds; parts are spread over nodes on NDB alone; nodes cannot be added here.
    assert lacking == {"e1-strained-latency", "e1-parts-spread", "e1-more-nodes"}
    assert states["e1-parts-spread-ndb"] != "not measured" and states["e1-excessive-batch-ndb"] != "not measured"


def test_the_level_beyond_the_ladder_has_two_rounds_and_the_others_all(whole):
    rounds = {}
    for point in all_points(E1.plan(whole)):
        rounds.setdefault(point.threads, set()).add(point.round)
    assert rounds.pop(8) == {1, 2} and set(map(tuple, rounds.values())) == {(1, 2, 3)}


def test_users_that_are_asked_for_have_all_rounds(whole):
    assert {point.round for point in all_points(E1.plan(replace(whole, threads=[8])))} == {1, 2, 3}


def test_one_size_after_the_other_and_in_it_one_engine_after_the_other(whole):
    groups = [block.group for block in E1.plan(whole)]
    runs = [group for n, group in enumerate(groups) if n == 0 or groups[n - 1] != group]
    assert len(runs) == len(set(runs)), "a server is started once for a size"
    sizes = [group.size_bytes for group in runs]
    assert sizes == sorted(sizes)
    assert {group.engine for group in runs} >= {"NDB", "QUARRY", "QUARRY DEFAULTS=NDB", "InnoDB", "floor"}
    for block in E1.plan(whole):
        assert len({ALL[point.variant].server for point in block.points}) == 1
    assert E1.plan(whole) == E1.plan(whole)


def test_the_tables_of_an_engine_fit_its_memory(whole):
    """Each variant has about a quarter; variants whose sessions alone differ share their tables."""
    memory = 4 << 30
    assert 0.2 < whole.settings.dataset_bytes / memory < 0.25
    assert all(len(tables) <= 3 for tables in E1._groups(whole).values())
    assert len(E1._groups(whole)[next(g for g in E1._groups(whole) if g.engine == "NDB" and g.size_bytes == 64 * KIB)]) == 2


def test_quarry_and_innodb_have_more_data_than_memory_each_alone(whole):
    groups = [group for group in E1._groups(whole) if group.setting == MORE_DATA]
    assert {group.engine for group in groups} == {"innodb", "quarry-head", "quarry-default"}
    assert users(whole, 64, "innodb", MORE_DATA) == {32, 128}
    assert not [c for c in E1.cells(replace(whole, options={"sweep": 1, "more_data": 0})) if c.setting == MORE_DATA]


@pytest.mark.parametrize("profile, log_cache", [(PRODUCTION, {"binlog_cache_size": "512K"}), (BARE, {})])
def test_caches_and_what_the_users_need_fit_the_memory(bench, monkeypatch, profile, log_cache):
    """A server that the kernel ends for its memory ends the run."""
    monkeypatch.setattr(e1_bench, "MemoryCgroup", lambda _bytes: contextlib.nullcontext(SimpleNamespace(path=None)))
    bench.request = replace(bench.request, profile=profile)
    for key in ("innodb", "quarry-default"):
        (server,) = bench._made(Group(64 * KIB, key, MORE_DATA), [ALL[key]]).values()
        assert {name: value for name, value in server.extra.items() if name.startswith("binlog_cache")} == log_cache
        caches = sum(int(server.extra.get(name, 0)) for name in ("innodb_buffer_pool_size", "quarry_cache_size"))
        assert caches + e1_bench.users_bytes(128, 64 * KIB) + 128 * (512 << 10) <= MORE_DATA_MEMORY_BYTES


def test_a_server_says_which_environment_it_runs_in(bench, monkeypatch):
    """With more data than memory another one than without."""
    monkeypatch.setattr(e1_bench, "MemoryCgroup", lambda _bytes: contextlib.nullcontext(SimpleNamespace(path=None)))
    monkeypatch.setattr(LabServer, "variables", lambda _self: {"version": "10.11"})
    monkeypatch.setattr(LabServer, "verify_pinned", lambda _self: {})
    for setting, environment in ((MORE_DATA, {"MALLOC_ARENA_MAX": "2"}), ("", None)):
        (server,) = bench._made(Group(64 * KIB, "innodb", setting), [ALL["innodb"]]).values()
        assert server.describe().get("environment") == environment


def test_ndb_is_measured_once_more_with_limited_links_where_they_can_be(whole, monkeypatch):
    for variant in ("target-ndb-head", "target-ndb-inline"):
        assert users(whole, 24, variant, LIMITED_LINKS) == {32, 128, 512}
    (group,) = {group for group in E1._groups(whole) if group.setting == LIMITED_LINKS}
    assert group.engine == "NDB" and {cell.setting for cell in E1.cells(replace(whole, sizes_bytes=[64 * KIB]))} == {"", MORE_DATA}
    context = SimpleNamespace(request=whole, progress=SimpleNamespace(console=Console(file=io.StringIO(), width=200)))
    assert not [row for row in E1.plan_rows(whole, []) if "left out" in row.cells]
    E1.say_what_is_left_out(context)
    assert context.progress.console.file.getvalue() == ""
    monkeypatch.setattr(ndb_cluster, "reason_against_limits", lambda: "links can't be limited here")
    assert not [cell for cell in E1.cells(whole) if cell.setting == LIMITED_LINKS]
    assert [row.what for row in E1.plan_rows(whole, []) if "left out: links can't be limited here" in row.cells] == [f"24 KB, NDB, {LIMITED_LINKS}"]
    E1.say_what_is_left_out(context)
    assert f"left out: NDB with {LIMITED_LINKS}: links can't be limited here" in context.progress.console.file.getvalue()


def test_the_cluster_is_started_with_its_limits(bench, monkeypatch):
    started = []
    monkeypatch.setattr(ndb_cluster, "script", lambda verb, *options: started.append((verb, *options)) or "")
    monkeypatch.setattr(ndb_cluster.TargetServer, "start", lambda self: self)
    monkeypatch.setattr(ndb_cluster, "connect", lambda _address: SimpleNamespace(close=lambda: None))
    (limited,) = bench._made(Group(24 * KIB, "NDB", LIMITED_LINKS), [ALL["target-ndb-head"]]).values()
    for server, options in ((NdbCluster("target"), ()), (limited, ("--link-mbits=150",))):
        server.start()
        assert started[-2:] == [("stop",), ("start", *options)]


def test_measuring_takes_at_most_five_hours_and_a_look_ten_minutes(ndb_is_built):
    for scale, most in (("normal", 5 * 3600), ("quick", 600)):
        takes_between(E1, with_ndb(E1, scale), most / 2, most)


def test_other_users_are_measured_everywhere(whole):
    made = replace(whole, threads=[2, 1024])
    assert {cell.threads for cell in E1.cells(made)} == {2, 1024}


def test_the_users_of_the_plan_are_let_in(whole, monkeypatch):
    """max_connections of the private servers; of NDB's two SQL nodes together."""
    monkeypatch.setattr(e1_experiment.device, "memory_info", lambda: {"MemAvailable": 64 << 30})
    monkeypatch.setattr(ndb_cluster, "needs", lambda: [])
    monkeypatch.setattr(e1_experiment, "server_needs", lambda *_arguments: [])
    monkeypatch.setattr(e1_experiment, "reason_against", lambda: None)
    monkeypatch.setattr(e1_experiment, "open_files_lacking", lambda _users: "")
    assert E1.needs(whole) == []
    many = replace(whole, threads=[1300])
    assert [text.split(" (")[0] for text in E1.needs(many)] == [
        "max_connections of at least 1302 for 1300 users", "at most 1200 users: NDB's SQL nodes take 600 each"]
    assert E1.needs(replace(many, mycnf={**many.mycnf, "max_connections": "1400"}))[0].startswith("at most 1200 users")


@pytest.mark.parametrize("name, key", [("e1", "target-ndb-head"), ("targets", "target-innodb"), ("e5", "target-ndb")])
def test_a_variant_of_a_target_without_one_is_named_before(name, key):
    """`--engines` takes every variant that there is."""
    made = cli.bench_request(EXPERIMENTS[name], cli.build_parser().parse_args(["bench", "--exp", name, "--engines", key]))
    assert "a server for variants that are named target-*: --target, or NDB Cluster, which `make ndb` builds" in EXPERIMENTS[name].needs(made)


def test_open_files_and_memory_cgroup_are_asked_before(whole, monkeypatch):
    monkeypatch.setattr(ndb_cluster, "needs", lambda: ["room for the cluster"])
    monkeypatch.setattr(e1_experiment, "server_needs", lambda *_arguments: [])
    monkeypatch.setattr(e1_experiment, "reason_against", lambda: "none here")
    monkeypatch.setattr(e1_bench.resource, "getrlimit", lambda _which: (1024, 1024))
    said = " / ".join(E1.needs(whole))
    assert "open files ('ulimit -Hn' says 1024) for 512 connections" in said
    assert "a memory cgroup for data four times the memory: none here" in said and said.endswith("room for the cluster")


def test_too_little_memory_for_the_users_is_named_before(whole, monkeypatch, tmp_path):
    """Pool, value cache, 512 users of 448 KB, and a server's own."""
    monkeypatch.setattr(ndb_cluster, "needs", lambda: [])
    monkeypatch.setattr(session.device, "memory_info", lambda: {"MemAvailable": 9 << 30, "MemTotal": 16 << 30})
    with pytest.raises(LabError, match=r"10.4 GiB of available memory for 512 users \(9.0 GiB are available\)"):
        session.check(E1, replace(whole, output=tmp_path, plugin=tmp_path / "none.so"))


def test_memory_of_a_cluster_that_keeps_running_does_not_count_as_free(whole, monkeypatch):
    """With a --target of the user's ours is neither measured nor stopped."""
    monkeypatch.setattr(ndb_cluster, "held_bytes", lambda: 64 << 30)
    monkeypatch.setattr(e1_experiment, "target_needs", lambda *_arguments: [])
    monkeypatch.setattr(e1_experiment.device, "memory_info", lambda: {"MemAvailable": 9 << 30})

    def lacks_memory(made):
        return any(text.endswith("(9.0 GiB are available)") for text in E1.needs(made))

    assert not lacks_memory(whole) and lacks_memory(replace(whole, target=Address(host="db", port=3306)))


def test_memory_of_a_running_cluster_counts_as_free(tmp_path, monkeypatch):
    """It is stopped before another engine starts; a process id of one that has ended counts nothing."""
    for name, text in (("data2", str(os.getpid())), ("data3", "999999999"), ("sql4", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "quarry.pid").write_text(text)
    monkeypatch.setattr(ndb_cluster, "NDB_RUN", tmp_path)
    assert 10 << 20 < ndb_cluster.held_bytes() < 8 << 30


# --- the bench ---
@pytest.fixture
def bench(tmp_path):
    made = replace(E1.request(), output=tmp_path)
    run = RunDirectory(tmp_path / "run", {})
    run.add_session({})
    progress = SimpleNamespace(step=lambda _text: None)
    return EngineBench(SimpleNamespace(request=made, run=run, progress=progress), SimpleNamespace(kind="random"))


def point(variant="quarry-head", threads=512, kib=448, setting=""):
    return Point(1, "mix", kib * KIB, threads, variant, setting)


def test_a_level_without_memory_is_named_at_once(bench, monkeypatch):
    monkeypatch.setattr(e1_bench.device, "memory_info", lambda: {"MemAvailable": 1 << 30})
    with pytest.raises(LabError, match="1.0 GiB of memory are available; 448 KiB values with 512 users may take 1.4 GiB"):
        bench.measure(point())


def failing(bench, monkeypatch, text, error=SysbenchError):
    """A bench whose load meets this error."""
    def load(*_arguments):
        raise error(text)

    monkeypatch.setattr(e1_bench.device, "memory_info", lambda: {"MemAvailable": 64 << 30})
    monkeypatch.setattr(TableBench, "measure", load)
    return bench


def test_refused_connections_name_the_level_and_what_to_raise(bench, monkeypatch):
    failing(bench, monkeypatch, "FATAL: error 1040: Too many connections").servers = {"main": SimpleNamespace()}
    said = r"(?s)QUARRY DEFAULTS=NDB, 448 KiB values with 512 users: .*1040.*the server refuses connections.*max_connections"
    with pytest.raises(LabError, match=said):
        bench.measure(point())


def test_an_error_with_such_a_number_in_it_is_no_refused_connection(bench, monkeypatch):
    failing(bench, monkeypatch, "FATAL: error 1114 behind 104012 rows: the table is full").servers = {"main": SimpleNamespace(ended=str)}
    with pytest.raises(LabError, match="1114 behind 104012 rows") as raised:
        bench.measure(point())
    assert "refuses connections" not in str(raised.value)


def test_a_report_that_came_too_late_is_told_apart_from_an_error(bench, monkeypatch):
    failing(bench, monkeypatch, "sysbench printed 1 reports, 2 were expected", LateReport).servers = {"main": SimpleNamespace()}
    with pytest.raises(LateReport):
        bench.measure(point())


def test_an_error_of_the_cluster_says_which_of_its_nodes_run(bench, monkeypatch):
    monkeypatch.setattr(ndb_cluster, "script", lambda verb: "ndb: data2: does not run\nndb: data3: runs (pid 7)\n" if verb == "status" else "")
    failing(bench, monkeypatch, "error 1297: cluster failure").servers = {"target": NdbCluster("target")}
    with pytest.raises(LabError, match="(?s)NDB default.*1297.*the cluster: data2: does not run; data3: runs"):
        bench.measure(point("target-ndb-head"))
    assert "data2: does not run" in bench.ended(), "also where no client met an error"


def test_a_sql_node_without_statements_is_an_error(bench, monkeypatch):
    server = NdbCluster("target")
    monkeypatch.setattr(server, "node_load", lambda: {"statements": {"4": 500, "5": 7}, "sent_bytes": {}})
    assert bench._nodes(server, {"statements": {"4": 1, "5": 2}, "sent_bytes": {}}) == {"nodes": {"statements": {"4": 499, "5": 5}, "sent_bytes": {}}}
    with pytest.raises(LabError, match="SQL node 5 of the NDB Cluster had no statement"):
        bench._nodes(server, {"statements": {"4": 1, "5": 7}, "sent_bytes": {}})


class Engine:
    """A server that notes what becomes of it."""

    def __init__(self, name, events):
        self.name, self.events, self.key = name, events, "main"

    def start(self):
        self.events.append(f"start {self.name}")

    def close(self):
        self.events.append(f"stop {self.name}")

    def describe(self):
        return {"version": self.name}


def test_an_engine_that_is_not_measured_is_stopped(bench, monkeypatch):
    events = []
    monkeypatch.setattr(bench, "_made", lambda group, _variants: {"main": Engine(f"{group.engine} {group.size_bytes // KIB}", events)})
    made = replace(E1.request(), sizes_bytes=[4 * KIB, 24 * KIB], variants=["innodb", "quarry-head"], options={"sweep": 0, "more_data": 0})
    with bench:
        for block in E1.plan(made):
            bench.begin(block)
            assert len(bench.servers) == 1
            bench.end(block)
    starts, stops = events[::2], events[1::2]
    assert [text.split(" ", 1)[1] for text in starts] == [text.split(" ", 1)[1] for text in stops]
    assert len(starts) == 4 and all(text.startswith("start") for text in starts)
    assert set(bench.directory.run["sessions"][-1]["servers"]) == {"InnoDB", "QUARRY DEFAULTS=NDB"}


def test_a_run_is_not_gone_on_with_on_other_settings(bench):
    """scripts/ndb has its own configuration, which no parameter of a run names."""
    def server(memory):
        return SimpleNamespace(describe=lambda: {"version": "9.7", "pinned": {"a": "1"}, "data_nodes": {"DataMemory": memory}})

    measured, another = (Block(1, Group(4 * KIB, "NDB"), (point(key, 32, 4),)) for key in ("target-ndb-head", "target-ndb-inline"))
    bench.directory.run["sessions"] = [{"started": 100.0}]
    bench._note(measured, server("3G"))
    bench.directory.add_point({**measured.points[0].as_dict(), "started": 150.0})
    bench.directory.add_session({"started": 200.0})
    bench._note(measured, server("3G"))
    with pytest.raises(LabError, match="NDB ran otherwise in .*: data_nodes.DataMemory 3G, now 4G; .*--fresh"):
        bench._note(measured, server("4G"))
    bench._note(another, server("4G"))  # nothing of it is there


def test_a_node_that_does_not_start_leaves_no_cluster_and_is_named(monkeypatch):
    verbs = []

    def script(verb):
        verbs.append(verb)
        if verb == "start":
            raise LabError("NDB Cluster, scripts/ndb start: data3 ended by itself: see output.log")
        return ""

    monkeypatch.setattr(ndb_cluster, "script", script)
    with pytest.raises(LabError, match="data3 ended by itself"):
        NdbCluster("target").start()
    assert verbs == ["stop", "start", "stop"]


def test_the_cluster_is_left_as_it_was_found(monkeypatch):
    verbs = []
    monkeypatch.setattr(ndb_cluster, "script", verbs.append)
    monkeypatch.setattr(ndb_cluster, "connect", lambda _address: SimpleNamespace(close=lambda: None))
    of_a_killed_run = [("mysql",), ("quarry_lab_target_ndb_head_4096",)]
    for running, schemas, expected in ((Address(socket="/x"), [("mysql",)], ["stop", "start"]), (None, [], []),
                                       (Address(socket="/x"), of_a_killed_run, ["stop"])):
        monkeypatch.setattr(ndb_cluster, "local_cluster", lambda running=running: running)
        monkeypatch.setattr(ndb_cluster, "rows", lambda *_arguments, schemas=schemas: schemas)
        verbs.clear()
        with contextlib.suppress(KeyboardInterrupt), ndb_cluster.as_found(True):
            raise KeyboardInterrupt
        assert verbs == expected


def test_a_cluster_with_data_of_the_users_is_not_stopped(monkeypatch):
    """Nor where private servers alone are measured: a stopped one has no data any more."""
    monkeypatch.setattr(ndb_cluster, "script", lambda verb: pytest.fail(f"scripts/ndb {verb}"))
    monkeypatch.setattr(ndb_cluster, "connect", lambda _address: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(ndb_cluster, "local_cluster", lambda: Address(socket="/x"))
    monkeypatch.setattr(ndb_cluster, "rows", lambda *_arguments: [("mysql",), ("mine",)])
    with pytest.raises(LabError, match=r"no databases of yours in the running NDB Cluster \(mine\)"), ndb_cluster.as_found(True):
        pass


def test_a_cluster_without_room_or_with_data_of_the_users_is_not_started(monkeypatch):
    monkeypatch.setattr(ndb_cluster, "is_built", lambda: True)
    monkeypatch.setattr(ndb_cluster, "local_cluster", lambda: None)

    def script(verb):
        raise LabError(f"NDB Cluster, scripts/ndb {verb}: the cluster needs 40 GiB of disk (3 GiB are free)")

    monkeypatch.setattr(ndb_cluster, "script", script)
    assert ndb_cluster.needs() == ["NDB Cluster, scripts/ndb room: the cluster needs 40 GiB of disk (3 GiB are free)"]
    monkeypatch.setattr(ndb_cluster, "local_cluster", lambda: Address(socket="/x"))
    monkeypatch.setattr(ndb_cluster, "connect", lambda _address: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(ndb_cluster, "rows", lambda *_arguments: [("mysql",), ("ndbinfo",), ("shop",), ("quarry_lab_left",)])
    (said,) = ndb_cluster.needs()
    assert "(shop)" in said


def test_the_load_is_spread_over_both_sql_nodes():
    assert NdbCluster("target").login["socket"].count(",") == 1
    assert NdbCluster("target").ignored_errors == "1205,1297" and engine_of("target-ndb-head") == "NDB"


def test_a_run_that_was_broken_off_goes_on_with_what_is_left(tmp_path, monkeypatch):
    (tmp_path / "plugin.so").write_bytes(b"x")
    made = replace(E1.request(), output=tmp_path / "e1", plugin=tmp_path / "plugin.so")
    run = RunDirectory(made.output, E1.identity(made))
    points = all_points(E1.plan(made))
    for done in points[:100]:
        run.add_point({**done.as_dict(), "result": {}})
    kept, left = session.left_to_do(E1, made)
    assert (len(kept), left) == (len(points), points[100:])


def test_a_plan_is_shown_and_nothing_is_written(tmp_path, monkeypatch, capsys):
    arguments = cli.build_parser().parse_args(["lab", "--only", "e1", "--dry-run", "--scale", "quick", "--output", str(tmp_path / "out"),
                                               "--plugin", str(tmp_path / "none.so")])
    lab.run(arguments, Console(width=200))
    said = capsys.readouterr().out
    assert "a look, not a measurement" in said and "e1: 64 KB, QUARRY DEFAULTS=NDB" in said and "missing: e1 needs" in said
    assert not (tmp_path / "out").exists()
