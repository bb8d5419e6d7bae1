"""The plan's order, the statements of the variants, the files of a run, and what the command line refuses."""

import json
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
from quarry_lab import cli
from quarry_lab.design.plan import OPERATIONS, all_points, interleave, table_cells
from quarry_lab.design.request import SCALES, LabError, parse_options
from quarry_lab.design.results import RunDirectory, flatten, open_run
from quarry_lab.design.variants import ALL, KIB, create_table
from quarry_lab.catalogue import EXPERIMENTS
from quarry_lab.load import sysbench
from quarry_lab.probes import noise
from quarry_lab.run import session
from quarry_lab.servers import lab_server
from quarry_lab.servers.lab_server import ConfigurationError, parse_mycnf

THE_CELLS = table_cells(list(OPERATIONS), [4096, 65536, 458752], [1, 8, 32], [ALL[key] for key in ("innodb", "innodb-varbinary", "quarry")])


def test_plan_is_complete_interleaved_and_repeatable():
    blocks = interleave(THE_CELLS, rounds=3, seed=7)
    points = all_points(blocks)
    # VARBINARY applies to 4 KB alone.
    assert len(points) == 3 * 3 * 3 * (3 + 2 + 2) and len(set(points)) == len(points)
    assert [b.round for b in blocks] == sorted(b.round for b in blocks)
    assert all(p.round == b.round and p.size_bytes == b.group for b in blocks for p in b.points)
    assert points == all_points(interleave(THE_CELLS, rounds=3, seed=7))
    assert points != all_points(interleave(THE_CELLS, rounds=3, seed=8))
    # Within a block neither operations nor variants stand together in runs.
    assert all(len({p.variant for p in b.points[: len(b.points) // 2]}) > 1 for b in blocks)


@pytest.mark.parametrize("variant, size_kib, statement", [
    ("innodb", 4, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data BLOB) ENGINE=InnoDB"),
    ("quarry", 4, 'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data BLOB COMMENT "NDB_COLUMN=BLOB_INLINE_SIZE=4096") ENGINE=QUARRY'),
    ("quarry-inline", 24,
     'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data MEDIUMBLOB COMMENT "NDB_COLUMN=BLOB_INLINE_SIZE=24576") ENGINE=QUARRY DEFAULTS=NDB'),
    ("quarry-inline", 448,
     'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB COMMENT "NDB_COLUMN=BLOB_INLINE_SIZE=29736") ENGINE=QUARRY DEFAULTS=NDB'),
    ("quarry-default-inline", 24,
     'CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data MEDIUMBLOB COMMENT "NDB_COLUMN=BLOB_INLINE_SIZE=24576") ENGINE=QUARRY'),
    ("quarry-head", 64, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data LONGBLOB) ENGINE=QUARRY DEFAULTS=NDB"),
    ("innodb-varbinary", 24, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, data VARBINARY(24576)) ENGINE=InnoDB")])
def test_create_table(variant, size_kib, statement):
    assert create_table(ALL[variant], size_kib * KIB, "t") == statement


def test_varbinary_does_not_apply_beyond_a_row():
    assert not ALL["innodb-varbinary"].applies_to(64 * KIB)
    with pytest.raises(ValueError, match="65536"):
        create_table(ALL["innodb-varbinary"], 64 * KIB, "t")


POINT = {"round": 1, "operation": "insert", "size_bytes": 4096, "threads": 1, "variant": "innodb", "result": {"events_per_second": 1.5}}


def test_interrupted_run_is_resumed_and_a_torn_line_forgotten(tmp_path: Path):
    run = RunDirectory(tmp_path / "r", {"a": 1})
    run.add_point(POINT)
    with open(tmp_path / "r" / "points.jsonl", "a") as file:
        file.write('{"round": 2, "oper')
    again = RunDirectory(tmp_path / "r", {"a": 1})
    assert again.resumed and again.points == [POINT] and again.done_keys() == {(1, "insert", 4096, 1, "innodb", "")}
    again.add_point({**POINT, "round": 2})
    assert [p["round"] for p in open_run(tmp_path / "r").points] == [1, 2]


@pytest.mark.parametrize("change", ["other parameters", "finished", "fresh"])
def test_another_run_moves_the_old_one_aside(tmp_path: Path, change):
    run = RunDirectory(tmp_path / "r", {"a": 1})
    run.add_point(POINT)
    if change == "finished":
        run.finish()
    new = RunDirectory(tmp_path / "r", {"a": 2 if change == "other parameters" else 1}, fresh=change == "fresh")
    assert not new.points and new.moved_to and json.loads((new.moved_to / "points.jsonl").read_text()) == POINT


def test_csv_has_a_column_for_every_figure(tmp_path: Path):
    run = RunDirectory(tmp_path / "r", {})
    run.add_point(POINT)
    header, row = run.write_csv().read_text().splitlines()
    assert "result.events_per_second" in header.split(",") and "1.5" in row.split(",")
    assert flatten({"a": {"b": [1, 2]}, "timeline": [{"second": 1}]}) == {"a.b": "1; 2"}


def test_mycnf_cannot_take_durability_away():
    assert parse_mycnf(["innodb-buffer-pool-size=4G", "innodb_doublewrite=1"][:1]) == {"innodb_buffer_pool_size": "4G"}
    for pair in ("innodb_flush_log_at_trx_commit=2", "innodb-doublewrite=OFF", "nonsense"):
        with pytest.raises(ConfigurationError, match=pair.split("=")[0].replace("-", "_")):
            parse_mycnf([pair])


@pytest.mark.parametrize("left, right", [("2G", 2 << 30), ("on", "ON"), ("TRUE", "ON"), (1073741824, "1G")])
def test_settings_are_compared_in_one_form(left, right):
    assert lab_server.normal(left) == lab_server.normal(right)


def test_sysbench_reports_are_combined():
    def report(events, writes, seconds):
        return {"events": events, "reads": events - writes, "writes": writes, "errors": 0, "interval_seconds": seconds,
                "latency_avg_ms": 1, "latency_max_ms": 2, "latency_p95_ms": 1.5}

    result = sysbench.combine([report(50, 20, 1.0), report(400, 100, 4.0)], batch_rows=16, client_cpu_seconds=0.5)
    assert result.events_per_second == 100.0 and result.total_rows_written == 120 * 16
    with pytest.raises(sysbench.SysbenchError):
        sysbench.combine([report(0, 0, 1.0)], 1, 0)


def test_noise_is_what_neither_server_client_nor_kernel_used():
    def snapshot(time, busy, steal, ticks):
        return noise.Snapshot(time, busy, steal, {pid: noise._Process(name, t, kernel) for pid, name, t, kernel in ticks})

    before = snapshot(0.0, 1000, 0, [(1, "mariadbd", 100, False), (2, "kworker", 10, True), (3, "cc1plus", 50, False)])
    after = snapshot(10.0, 3000, 5, [(1, "mariadbd", 1100, False), (2, "kworker", 110, True), (3, "cc1plus", 450, False)])
    ticks = noise._TICKS_PER_SECOND
    usage = noise.usage(before, after, {1}, children_cpu_seconds=300 / ticks, parts={"daemon": {1}, "gone": {9}})
    assert (usage["daemon_cpus"], usage["gone_cpus"]) == (usage["server_cpus"], 0) and usage["server_cpus"] > 0
    assert usage["other_cpus"] == pytest.approx((2000 - 1000 - 100 - 300) / ticks / 10, abs=0.001)
    assert usage["noisy"] and usage["top_others"][0].startswith("cc1plus")


@pytest.mark.parametrize("arguments", [["bench", "--exp", "e9"], ["bench", "--sizes", "0"], ["bench", "--threads", "a"]])
def test_command_line_refuses_what_it_does_not_know(arguments, capsys):
    with pytest.raises(SystemExit) as refused:
        cli.build_parser().parse_args(arguments)
    assert refused.value.code == 2 and arguments[-1].strip("a") in capsys.readouterr().err


def test_without_a_name_the_experiments_are_listed_one_a_line(capsys):
    assert cli.main(["bench"]) == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line[:1].strip()}
    assert set(listed) == {*EXPERIMENTS, *cli.COMPARISONS}
    assert all(e.title in listed[name] for name, e in EXPERIMENTS.items())


@pytest.mark.parametrize("error", [pymysql.OperationalError(2013, "Lost connection"), LabError("last lines of [/path/error.log]: [Note] ready")])
def test_an_error_of_a_run_is_said_as_it_is(monkeypatch, capsys, error):
    """Brackets are no markup."""
    def fail(_arguments, _console):
        raise error

    monkeypatch.setattr(cli, "run_bench", fail)
    assert cli.main(["bench", "--exp", "e1"]) == 1
    assert f"error: {error}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--engines", "oracle"], ["--ops", "delete"], ["--rounds", "0"], ["--seconds", "0"]])
def test_an_experiment_refuses_what_it_does_not_know(arguments):
    with pytest.raises(LabError, match=arguments[-1]):
        cli.bench_request(EXPERIMENTS["targets"], cli.build_parser().parse_args(["bench", "--exp", "targets", *arguments]))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_listed_experiment_is_planned_at_every_scale(name):
    experiment = EXPERIMENTS[name]
    points = {scale: all_points(experiment.plan(experiment.request(scale))) for scale in SCALES}
    assert 0 < len(points["quick"]) < len(points["normal"]) < len(points["full"])
    assert all(p.variant in experiment.labels and p.operation in experiment.operations for found in points.values() for p in found)
    seconds = {scale: experiment.planned_seconds(experiment.request(scale), points[scale]) for scale in SCALES}
    assert 0 < seconds["quick"] < seconds["normal"] < seconds["full"]
    # Fair: what a verdict takes.
    assert experiment.request().rounds >= 3 and experiment.request().settings.seconds >= 10


def test_the_normal_grid_of_e4_leaves_out_what_only_a_whole_grid_needs():
    e4 = EXPERIMENTS["e4"]
    protocol = {f"{engine}{way}" for engine in ("", "innodb-") for way in ("text", "text-compressed", "prepared")}
    ways = {size: {c.variant for c in e4.cells(e4.request("normal")) if (c.operation, c.size_bytes) == ("fetch", size)}
            for size in (100, 4 * KIB, 64 * KIB, 448 * KIB)}
    assert ways[100] == ways[64 * KIB] > protocol and ways[4 * KIB] == ways[448 * KIB] == protocol
    # Whole when asked for, and at full scale.
    asked = replace(e4.request("normal"), sizes_bytes=[4 * KIB], operations=["fetch"])
    assert {c.variant for c in e4.cells(asked)} == ways[100]
    assert {c.variant for c in e4.cells(e4.request("full")) if c.size_bytes == 448 * KIB} == ways[100]


def test_too_little_disk_is_said_before_any_work_starts(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(session.device, "free_bytes", lambda _path: 5 << 30)
    request = replace(EXPERIMENTS["targets"].request(), output=tmp_path, plugin=tmp_path / "none.so")
    with pytest.raises(LabError, match="targets needs .*a plugin at .*none.so .*; and .*GiB of free disk .*5.0 GiB are free"):
        session.check(EXPERIMENTS["targets"], request)


def test_disk_is_asked_for_where_the_servers_data_are(tmp_path: Path, monkeypatch):
    """--output has the results alone, and may be on another device."""
    data, output = tmp_path / "tree" / "data", tmp_path / "results"
    for directory in (data.parent, output):
        directory.mkdir()
    monkeypatch.setattr(session, "DATA", data)
    monkeypatch.setattr(session.device, "free_bytes", lambda path: 5 << 30 if path == data.parent else 1 << 50)
    with pytest.raises(LabError, match=f"GiB of free disk under {data.parent} "):
        session.check(EXPERIMENTS["targets"], replace(EXPERIMENTS["targets"].request(), output=output))


def test_disk_that_a_killed_run_holds_counts_as_free(tmp_path: Path):
    """It is swept away before the next one begins, which would be refused for it else."""
    data = tmp_path / "data"
    (data / "main").mkdir(parents=True)
    (tmp_path / "drives" / "data1").mkdir(parents=True)
    held = [data / "main" / "ibdata1", tmp_path / "data.ext4", tmp_path / "drives" / "data1.ext4"]
    for path in held:
        path.write_bytes(bytes(1 << 16))
    (tmp_path / "e5").write_bytes(bytes(1 << 20))  # of results
    assert session._left_bytes(data) == sum(path.stat().st_blocks * 512 for path in held) >= 3 << 16
    session.sweep(data)
    assert session._left_bytes(data) == 0


def test_options_of_an_experiment_keep_the_type_of_their_default():
    defaults = {"paths": [1, 2], "links": ["localhost"], "memory_bytes": 5, "redo_path": ""}
    assert parse_options(defaults, ["paths=1,4", "memory_bytes=7", "redo_path=/log"]) == {**defaults, "paths": [1, 4], "memory_bytes": 7, "redo_path": "/log"}
    for wrong in ("paths=one", "nothing=1", "paths"):
        with pytest.raises(LabError):
            parse_options(defaults, [wrong])
