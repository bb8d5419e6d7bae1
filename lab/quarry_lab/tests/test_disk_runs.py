"""E5's runs: a target, the cluster of `make ndb` by a fake, drives, a limited network, and what a run that is broken off leaves."""

import io
import itertools
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pymysql
import pytest
from rich.console import Console

from quarry_lab.design.request import Address, LabError, Settings
from quarry_lab.design.results import RunDirectory
from quarry_lab.experiments.e5 import bench as disk_bench, engines
from quarry_lab.experiments.e5.engines import LIMITED_NETWORK
from quarry_lab.experiments.e5.experiment import DiskData
from quarry_lab.experiments.e5.usage import NETWORK, used
from quarry_lab.load import java
from quarry_lab.load.ycsb import PAYLOAD_BYTES, Latency, YcsbReport
from quarry_lab.run import limited_bench, session as sessions
from quarry_lab.run.kept_settings import same_memory_limit
from quarry_lab.servers import drives, memory_cgroup, ndb_cluster, target
from quarry_lab.servers.lab_server import GC_INTERVAL, ConfigurationError, LabServer
from quarry_server.ports import free_ports


# --- a target ---
class FakeCluster(SimpleNamespace):
    """The cluster of `make ndb`, as DiskBench uses it: what it was told, in order."""

    told: list[str] = []
    address, process_ids, login = Address(socket="ndb.sock"), set(), {"password": ""}

    def __init__(self, _key):
        super().__init__(last_statements=[])

    def start(self):
        self.told.append("start")
        return self

    def execute(self, statement):
        if statement.startswith(f"CREATE TABLE {REFUSED}"):
            raise pymysql.err.OperationalError(1528, "no room")
        self.told.append(" ".join(statement.split()[:2]))

    def describe(self):
        return {}

    def settle_disk(self):
        self.told.append("settle_disk")
        return {"settled": True}

    def counters(self):
        return None

    def verify_pinned(self):
        return {}

    def ended(self):
        return ""

    def close(self):
        self.told.append("close")


REFUSED = "nothing"


def fake_bench(monkeypatch):
    FakeCluster.told = []
    monkeypatch.setattr(disk_bench, "NdbCluster", FakeCluster)
    monkeypatch.setattr(disk_bench, "over_tcp", lambda _address: Address(host="127.0.0.1", port=1))
    run = SimpleNamespace(run={"sessions": [{"device_probes": [{"round": 1}]}]}, records=[], update_session=lambda *_any: None)
    request = replace(DiskData().request("normal"), variants=["target-ndb"], target=ndb_cluster.address())
    context = SimpleNamespace(run=run, request=request, progress=SimpleNamespace(step=lambda _text: None))
    return disk_bench.DiskBench(context), DiskData().plan(request)[0]


class NoTimeline(nullcontext):
    samples, started = [], 0.0


def measuring(monkeypatch):
    """The same, begun; and the workloads that it runs then."""
    bench, block = fake_bench(monkeypatch)
    latencies, ran = dict.fromkeys(("READ", "UPDATE"), Latency(100, 1.0, 1.0, 1.0, 1.0)), []

    def run(load, _client, _export_file):
        ran.append(load.workload.key)
        return YcsbReport(0.0, 10.0, 100.0, [], latencies)

    monkeypatch.setattr(disk_bench.ycsb, "run", run)
    monkeypatch.setattr(bench, "_timeline", NoTimeline)
    monkeypatch.setattr(bench, "_check_load", lambda: None)
    bench.run.path = Path("run")
    bench.begin(block)
    return bench, block, ran


def test_the_cluster_of_make_ndb_runs_for_its_own_block_alone(monkeypatch):
    bench, block = fake_bench(monkeypatch)
    bench.begin(block)
    assert FakeCluster.told == ["start", "CREATE DATABASE", "CREATE LOGFILE", "CREATE TABLESPACE", "CREATE TABLE"]
    assert bench._settle() == {"settled": True} and FakeCluster.told[-1] == "settle_disk"
    bench.end(block)
    assert FakeCluster.told[-1] == "close"


def test_the_clusters_page_buffers_are_written_before_the_next_point(monkeypatch):
    """Settled is what wrote nothing in three polls in a row; the time is bounded."""
    server, pages = ndb_cluster.NdbCluster("target"), iter([10, 20, 20, 20, 30, 30, 30, 30, 99])
    monkeypatch.setattr(ndb_cluster.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(server, "rows", lambda _statement: [(next(pages),)])
    assert server.settle_disk()["settled"] and next(pages) == 99
    monkeypatch.setattr(ndb_cluster, "_PAGES_SECONDS_MAX", 0.05)
    ever = itertools.count()
    monkeypatch.setattr(server, "rows", lambda _statement: [(next(ever),)])
    assert not server.settle_disk()["settled"] and next(ever) > 1


def test_an_error_of_the_cluster_says_which_of_its_nodes_run(monkeypatch):
    bench, _block = fake_bench(monkeypatch)
    bench._server = server = ndb_cluster.NdbCluster("target")
    monkeypatch.setattr(server, "ended", lambda: "\nthe cluster: data2: does not run")
    said = str(bench._failed("published", java.JavaError("Lost connection")))
    assert "published" in said and "Lost connection" in said and "data2: does not run" in said


def test_a_node_of_the_cluster_that_ended_is_told_though_the_others_answer(monkeypatch):
    """One data node serves the rest of the load, at another rate."""
    bench, block = fake_bench(monkeypatch)
    assert bench.ended() == ""
    bench.begin(block)
    assert bench.ended() == ""
    monkeypatch.setattr(FakeCluster, "ended", lambda _self: "\nthe cluster: data2: runs (pid 1); data3: does not run")
    assert "data3: does not run" in bench.ended()


def test_a_server_that_does_not_run_as_pinned_any_more_is_not_measured(monkeypatch):
    """Settling sets what is pinned, and sets it back."""

    def differs(_self):
        raise ConfigurationError("innodb_io_capacity is 100000, expected 10000")

    bench, block, ran = measuring(monkeypatch)
    assert bench.measure(block.points[0])["configuration"] == {}
    monkeypatch.setattr(FakeCluster, "verify_pinned", differs)
    with pytest.raises(ConfigurationError, match="innodb_io_capacity"):
        bench.measure(block.points[1])
    assert ran == ["load"]


def test_what_is_left_of_a_block_meets_rows_as_in_one_that_was_not_interrupted(monkeypatch):
    """What the plan has between the load and the point that is left runs, too: once."""
    bench, block, ran = measuring(monkeypatch)
    bench.request = replace(bench.request, operations=["published", "a", "b", "c"])
    for operation in ("b", "c"):
        assert bench.measure(replace(block.points[0], operation=operation))["rows"] == bench.rows
    assert ran == ["load", "published", "a", "b", "c"]
    bench.begin(block)
    bench.measure(block.points[1])
    assert ran[5:] == ["load", "published"]


def test_a_quiet_machine_is_waited_for_before_a_point(monkeypatch):
    """As --wait-quiet says of every experiment; the servers' own processes are no noise."""
    bench, block = fake_bench(monkeypatch)

    def waited(own_pids, seconds):
        raise LabError(f"{own_pids} for {seconds} s")

    monkeypatch.setattr(limited_bench.noise, "wait_for_quiet", waited)
    monkeypatch.setattr(FakeCluster, "process_ids", {4711})
    bench.request = replace(bench.request, apart=False, settings=replace(bench.request.settings, quiet_wait_seconds_max=30))
    bench.begin(block)
    with pytest.raises(LabError, match=r"\{4711\} for 30 s"):
        bench.measure(block.points[0])


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_server_of_the_users_stays_on_its_processors(monkeypatch, is_ours):
    """It is left as it was found; the cluster of `make ndb` is started for the run."""
    bench, block = fake_bench(monkeypatch)
    placed = []
    monkeypatch.setattr(FakeCluster, "process_ids", {4711})
    monkeypatch.setattr(disk_bench, "TargetServer", lambda key, *_addresses: FakeCluster(key))
    monkeypatch.setattr(disk_bench.processors, "place", lambda pid, _processors: placed.append(pid))
    bench.request = replace(bench.request, apart=True, target=bench.request.target if is_ours else Address(host="db", port=1))
    bench.begin(block)
    assert placed == ([4711] if is_ours else [])


def test_a_cluster_without_room_for_the_table_is_ended_at_once(monkeypatch):
    monkeypatch.setitem(globals(), "REFUSED", "quarry_lab_e5")
    bench, block = fake_bench(monkeypatch)
    with pytest.raises(pymysql.err.OperationalError):
        bench.begin(block)
    assert FakeCluster.told[-1] == "close"


@pytest.mark.nightly
def test_ycsb_runs_on_a_target_and_leaves_it_as_it_was(tmp_path, monkeypatch):
    if missing := java.missing_tools():
        pytest.skip("; ".join(missing))
    monkeypatch.setattr(sessions, "BENCH_OUTPUT", tmp_path)
    monkeypatch.setattr(disk_bench, "DATA", tmp_path / "data")
    monkeypatch.setenv(target.PASSWORD_VARIABLE, "open&sesame")
    (port,) = free_ports(1)
    small = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "64M", "port": port, "bind_address": "127.0.0.1"}
    other = LabServer("main", tmp_path / "target", None, False, small).start()
    try:
        other.execute("CREATE USER visitor IDENTIFIED BY 'open&sesame'")
        other.execute("GRANT ALL ON *.* TO visitor")
        schemas = other.rows("SHOW DATABASES")
        settings = Settings(seconds=2, warmup_seconds=0, dataset_bytes=4000 * PAYLOAD_BYTES, disk_reserve_bytes=0, device_probe_seconds=0.1)
        request = replace(DiskData().request("quick"), operations=["published"], variants=["target-innodb"], threads=[2], settings=settings,
                          target=Address(socket=other.socket, user="visitor"), output=tmp_path / "e5")
        run = sessions.execute(DiskData(), request, Console(file=io.StringIO()))
        assert [(p["operation"], p["rows"]) for p in run.points] == [("load", 4000), ("published", 4000)]
        assert run.points[1]["latencies"].keys() >= {"READ", "UPDATE"}
        assert any(sample["server_cpus"] > 0 for sample in run.points[1]["timeline"])
        assert other.rows("SHOW DATABASES") == schemas
    finally:
        other.close()


def test_a_run_is_not_gone_on_with_on_another_cluster_or_with_another_memory(tmp_path, monkeypatch):
    """scripts/ndb has its own configuration, and whether there is a memory cgroup no parameter of a run says. A port is another one at each start."""
    bench, block = fake_bench(monkeypatch)
    bench.run = run = RunDirectory(tmp_path / "e5", {})
    described = {"version": "9.7", "pinned": {"port": "4000"}, "data_nodes": {"DiskPageBufferMemory": "384M"}}
    monkeypatch.setattr(FakeCluster, "describe", lambda _self: described)
    limit = {"how": "memory cgroup", "limit_bytes": 1 << 29, "path": "of a process"}

    def session(started, memory_limit):
        run.add_session({"started": started, "device_probes": [{"round": 1}], "memory_limit": same_memory_limit(run, memory_limit)})

    session(100.0, limit)
    bench.begin(block)
    run.add_point({**block.points[0].as_dict(), "started": 150.0})
    session(200.0, limit | {"path": "of another process"})
    described = {**described, "pinned": {"port": "4001"}}
    bench.begin(block)
    described = {**described, "data_nodes": {"DiskPageBufferMemory": "1G"}}
    with pytest.raises(LabError, match="target-ndb 1 path ran otherwise in .*: data_nodes.DiskPageBufferMemory 384M, now 1G; .*--fresh"):
        bench.begin(block)
    with pytest.raises(LabError, match="another limit of memory: memory cgroup, 536870912, now small caches, 268435456; .*--fresh"):
        session(300.0, {"how": "small caches", "cache_bytes": 1 << 28})


# --- private servers ---
def test_a_row_that_another_client_holds_is_waited_for_as_in_innodb(monkeypatch):
    bench, _block = fake_bench(monkeypatch)
    layout = engines.Layout.of(bench.request.options, 1)
    assert bench._private_server(engines.ENGINES["rocksdb"], layout, {}).extra["rocksdb_lock_wait_timeout"] == "50"
    assert "rocksdb_lock_wait_timeout" not in bench._private_server(engines.ENGINES["innodb"], layout, {}).extra


def test_a_server_that_ends_under_the_mix_is_what_is_said(monkeypatch, tmp_path):
    """Not that it takes no statement any more: the message has the end of its log."""
    server, told = LabServer("main", tmp_path / "main", tmp_path / "ha_quarry.so", False, {}), []

    def execute(statement):
        if told:
            raise pymysql.err.OperationalError(2013, "Lost connection to server during query")
        told.append(statement)

    monkeypatch.setattr(server, "variables", lambda: {GC_INTERVAL: "60"})
    monkeypatch.setattr(server, "execute", execute)
    with pytest.raises(LabError, match="the server ended"), server.steady_gc():
        raise LabError("the server ended during 'published'")
    assert told == [f"SET GLOBAL {GC_INTERVAL}=1"]
    told.clear()
    with pytest.raises(pymysql.err.OperationalError), server.steady_gc():
        pass


def test_a_drive_that_cannot_be_unmounted_leaves_no_cgroup(monkeypatch):
    bench, _block = fake_bench(monkeypatch)
    ended = []
    bench._stack.callback(ended.append, "cgroup")
    bench._of_block.callback(lambda: (_ for _ in ()).throw(LabError("target is busy")))
    with pytest.raises(LabError, match="busy"):
        bench.__exit__()
    assert ended == ["cgroup"]


# --- drives and a limited network ---
def small_run(tmp_path, variant, **options):
    """One round of the published load and mix, of 1,000 rows."""
    settings = Settings(seconds=3, warmup_seconds=1, dataset_bytes=1000 * PAYLOAD_BYTES, disk_reserve_bytes=0, device_probe_seconds=0.1)
    request = DiskData().request("quick")
    options = {**request.options, **options, "mix_seconds": 3}
    request = replace(request, variants=[variant], threads=[2], settings=settings, output=tmp_path / "e5", options=options)
    return sessions.execute(DiskData(), request, Console(file=io.StringIO()))


@pytest.fixture
def own_place(tmp_path, monkeypatch):
    if missing := [*java.missing_tools(), *filter(None, [drives.reason_against(), memory_cgroup.reason_against()])]:
        pytest.skip("; ".join(missing))
    for module in (sessions, disk_bench, engines):
        monkeypatch.setattr(module, "DATA", tmp_path / "data")
    monkeypatch.setattr(sessions, "BENCH_OUTPUT", tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_innodb_on_two_drives_has_a_partition_on_each_and_leaves_nothing(own_place):
    run = small_run(own_place, "innodb", drives=[2], link_mbits=0)
    points = [point for point in run.points if point["setting"] == "2 drives"]
    quotas = {"data1": 12 << 20, "data2": 12 << 20, "log": 0}
    assert [(p["operation"], p["drive_bytes_per_second"]) for p in points] == [("load", quotas), ("published", quotas)]
    written = {name: sum(sample["drives"][name][1] for p in points for sample in p["timeline"]) for name in ("data1", "data2", "log")}
    # Pages wait in the pool for a while; what a commit waits for does not.
    assert written["data2"] > 0 and written["log"] > 1000 * PAYLOAD_BYTES, written
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if str(own_place) in line]
    assert not (own_place / "drives").exists() and not (own_place / "data").exists()


@pytest.mark.nightly
def test_a_limited_network_is_measured_and_goes(own_place):
    run = small_run(own_place, "innodb", drives=[], link_mbits=80)
    points = [point for point in run.points if point["setting"] == LIMITED_NETWORK]
    assert [point["link_bytes_per_second"] for point in points] == [10e6, 10e6]
    assert all(used(point, run.run["parameters"])[NETWORK] <= 1.05 for point in points), "no more than the link lets through"
    assert any(sample["network_bytes"] > 0 for sample in points[0]["timeline"])
    assert run.run["sessions"][-1]["links"][0]["measured_bytes_per_second"] < 11e6


def test_a_limited_link_has_all_of_its_rate_for_the_clients_of_the_point(monkeypatch):
    """A proxy parts the rate among connections: one client of a run that has 16, too, would have a sixteenth."""
    bench, _block = fake_bench(monkeypatch)
    bench.request = replace(bench.request, variants=["innodb"], threads=[1, 16])
    parted = []

    def no_network(_links, _port, connections):
        parted.append(connections)
        raise LabError("it was asked for")

    monkeypatch.setattr(disk_bench, "Network", no_network)
    limited = [block for block in DiskData().plan(bench.request) if block.round == 1 and block.points[0].setting == LIMITED_NETWORK]
    for block in limited:
        with pytest.raises(LabError, match="asked for"):
            bench.begin(block)
    assert parted == [block.points[0].threads for block in limited] and set(parted) == {1, 16}


def test_a_run_that_is_broken_off_leaves_no_drive(own_place, monkeypatch):
    monkeypatch.setattr(disk_bench.DiskBench, "measure", lambda *_any: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        small_run(own_place, "innodb", drives=[1], link_mbits=0)
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if str(own_place) in line]
    assert not (own_place / "drives").exists() and not (own_place / "data").exists()
