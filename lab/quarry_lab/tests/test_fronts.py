"""E2 through two Spider fronts, on a real cluster: what is counted is what the shards have, and ids are nobody's twice."""

import io
from dataclasses import replace
from types import SimpleNamespace

import pymysql
import pytest
from quarry_lab.design.plan import Block, Point
from quarry_lab.design.request import LabError
from quarry_lab.design.results import RunDirectory
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.experiments.e2 import bench as fronts_bench
from quarry_lab.experiments.e2.bench import Client, FrontsBench, Way
from quarry_lab.experiments.e2.experiment import IdsBench
from quarry_lab.experiments.e2.report import deadlocks_per_1000
from quarry_lab.run.experiment import Context
from quarry_lab.run.progress import RunProgress
from rich.console import Console

E2 = EXPERIMENTS["e2"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    assert fronts_bench.needs() == []
    request = E2.request("quick")
    request = replace(request, settings=replace(request.settings, seconds=1, warmup_seconds=0))
    run = RunDirectory(tmp_path_factory.mktemp("fronts") / "run", {})
    made = FrontsBench(Context(request, run, RunProgress(Console(file=io.StringIO()), "", [], 1)))
    made.directory = tmp_path_factory.mktemp("cluster") / "fronts"
    made.begin(None)
    yield made
    made.close()
    assert made.cluster is None


def point(variant):
    return Point(1, fronts_bench.OPERATION, 1024, 3, variant)


@pytest.mark.parametrize("variant", ["fronts-counting", "fronts-sequence-256", "fronts-shard-256"])
def test_a_point_counts_what_the_shards_have(bench, variant, monkeypatch):
    seen = {}

    def look(clients):
        primaries = bench.cluster.primaries()
        seen["rows"] = sum(primary.value("SELECT COUNT(*) FROM lab_ids.t") for primary in primaries)
        seen["shards"] = [primary.value("SELECT COUNT(*) > 0 AND MIN(LENGTH(data)) = 1024 FROM lab_ids.t") for primary in primaries]
        seen["fronts"] = {client.front.name for client in clients}
        FrontsBench._check(bench, clients)

    monkeypatch.setattr(bench, "_check", look)
    record = bench.measure(point(variant))
    result = record["result"]
    assert seen["rows"] == result["total_rows_written"] >= result["events"] * 16 > 0
    assert seen["shards"] == [1, 1] and seen["fronts"] == {"f1", "f2"}
    assert result["events_per_second"] == result["events"] / result["interval_seconds"]
    assert deadlocks_per_1000({**record, "batch_rows": 16}) >= 0 and record["cpu"]["client_cpus"] > 0
    assert "SEQUENCE" in E2.line({**point("fronts-shard-1").as_dict(), **record}) and "B/B" not in E2.line({**point(variant).as_dict(), **record})


def test_rows_that_are_not_there_fail_the_point(bench, monkeypatch):
    acknowledged = fronts_bench.Client._insert

    def lie(client, *arguments):
        acknowledged(client, *arguments)
        client.took.append((0.0, 0.0))

    monkeypatch.setattr(fronts_bench.Client, "_insert", lie)
    with pytest.raises(LabError, match="were acknowledged"):
        bench.measure(point("fronts-counting"))
    monkeypatch.undo()
    assert bench.measure(point("fronts-counting"))["result"]["events"] > 0  # what the failed one left is dropped


class Cursor:
    """Fails so many times with an error number."""

    def __init__(self, number, times):
        self.number, self.times = number, times

    def execute(self, _statement, _arguments):
        if self.times:
            self.times -= 1
            raise pymysql.err.OperationalError(self.number, "told to")


def test_a_deadlock_is_sent_again_and_counted_and_nothing_else_is():
    client = Client(None, None, Way("a"), 2, 10, 1)
    client._insert(Cursor(1213, 3), None, [b"x", b"y"])
    assert client.deadlocks == 3
    with pytest.raises(pymysql.err.OperationalError, match="told to"):
        client._insert(Cursor(1159, 1), None, [b"x", b"y"])


class Recorder:
    def __init__(self):
        self.seen = []

    def begin(self, block):
        self.seen.append(("begin", block.points[0].operation))

    def end(self, block):
        self.seen.append(("end", block.points[0].operation))

    def measure(self, measured):
        self.seen.append(("measure", measured.operation))
        return {}

    def stop(self):
        self.seen.append("stop")

    close = stop

    def ended(self):
        return "\nended" if "stop" in self.seen else ""


def test_points_go_to_the_bench_of_their_operation_and_the_other_one_is_ended():
    tables, fronts = Recorder(), Recorder()
    both = IdsBench(tables, fronts)
    for block in E2.plan(E2.request()):
        assert len({p.operation == fronts_bench.OPERATION for p in block.points}) == 1, "a block has one bench"
    for operation in ("insert", fronts_bench.OPERATION):
        one = Point(1, operation, 1024, 8, "any")
        both.begin(Block(1, "any", (one,)))
        both.measure(one)
        both.end(Block(1, "any", (one,)))
    assert both.ended() == "\nended" * 2
    assert tables.seen == [*((step, "insert") for step in ("begin", "measure", "end")), "stop"]
    assert fronts.seen == ["stop", *((step, fronts_bench.OPERATION) for step in ("begin", "measure", "end"))]


def test_a_replica_that_ended_is_told_though_its_primary_goes_on():
    """Alone, and faster: it waits for none any more."""
    made = FrontsBench(SimpleNamespace(request=E2.request(), progress=None))
    assert made.ended() == ""
    made.cluster = SimpleNamespace(members={name: SimpleNamespace(alive=lambda runs=runs: runs) for name, runs in (("s1a", True), ("s1b", False))})
    assert "s1b" in made.ended() and "s1a" not in made.ended()


def test_what_the_fronts_need_is_asked_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(fronts_bench, "SPIDER", tmp_path / "ha_spider.so")
    request = E2.request()
    assert any("ha_spider.so" in missing for missing in E2.needs(request))
    request.operations = ["insert"]
    assert not any("ha_spider.so" in missing for missing in E2.needs(request))
