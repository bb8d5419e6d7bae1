"""Engines within one load: whose turn an event is counted in, what is compared and what is refused; real loads."""

import io
import json
import os
from dataclasses import replace

import pytest
from quarry_lab import turns
from quarry_lab.load import sysbench
from quarry_lab.load.payload import Payload
from quarry_lab.servers.lab_server import DATABASE, LabServer
from quarry_server.server import PLUGIN
from quarry_lab.load.sysbench import SysbenchError
from rich.console import Console

SMALL = {"innodb_buffer_pool_size": "128M", "innodb_log_file_size": "64M"}
LOAD = sysbench.Load("insert", DATABASE, 4096, threads=2, socket="/nowhere", tables=2, seconds=2, turn_ms=250)


def told(*threads, complete=True):
    return "".join(json.dumps({"quarry_turns": list(counts), "complete": complete}) + "\n" for counts in threads)


def test_events_are_summed_over_the_threads_by_table():
    assert LOAD.turn_rounds == 4
    assert sysbench.events_by_turn("running\n" + told([100, 40], [20, 60]), LOAD) == [120, 100]  # in one second each
    assert replace(LOAD, turn_ms=0).turn_rounds == 0


def test_a_load_that_ended_early_is_no_result():
    with pytest.raises(SysbenchError, match="1 threads told"):
        sysbench.events_by_turn(told([100, 40]), LOAD)
    with pytest.raises(SysbenchError, match="before every table had its 4 turns"):
        sysbench.events_by_turn(told([100, 40]) + told([100, 40], complete=False), LOAD)


def test_tables_are_read_before_they_are_written():
    parsed = turns.parse(["--ops", "insert,mix,read", "--threads", "8", "--rounds", "2"])
    assert turns.loads_of(parsed) == [(name, 4096, 8, number) for number in (1, 2) for name in ("read", "mix", "insert")]


def test_the_report_compares_round_by_round():
    points = [{"operation": "mix", "size_bytes": 4096, "threads": 8, "events_per_second": rates, "cpu": {"noisy": noisy}}
              for rates, noisy in (([1000.0, 900.0], False), ([500.0, 500.0], True), ([800.0, 760.0], False))]
    stream = io.StringIO()
    Console(file=stream, width=200).print(turns.report(points, ["innodb", "quarry"]))
    text = stream.getvalue()
    assert "profile bare" in text and "mix 4 KB x8" in text and "0.950 (0.900-1.000)" in text and "800" in text and "760" in text


@pytest.mark.parametrize(("arguments", "why"), [
    (["--ops", "read,fly"], "unknown word 'fly'"),
    (["--engines", "innodb,rocksdb"], "unknown word 'rocksdb'"),
    (["--engines", "innodb"], "at least two"),
    (["--engines", "innodb,heads-and-memory"], "unknown word 'heads-and-memory'"),
    (["--sizes", "24"], "leave work behind"),
    (["--sizes", "4,x"], "not a list of numbers"),
    (["--threads", "0"], "every number must be at least 1"),
    (["--rounds", "0"], "--rounds must be"),
    (["--seconds", "0"], "--seconds must be"),
])
def test_nonsense_is_refused(arguments, why, capsys):
    with pytest.raises(SystemExit):
        turns.parse(arguments)
    assert why in capsys.readouterr().err


def test_each_table_has_its_turns_and_no_event_is_lost(tmp_path):
    server = LabServer("turns", tmp_path / "server", None, False, SMALL)
    try:
        server.start()
        with Payload("random", size=1 << 20) as payload:
            point = turns.Turns(server, payload, ["innodb", "innodb"], seconds=2).measure("insert", 4096, 3, round_number=1)
        rates = point["events_per_second"]
        counted_seconds = 4 * turns.TURN_MS / 1000  # 2 s are four turns of each
        for number, rate in enumerate(rates, 1):
            rows = server.rows(f"SELECT COUNT(*) FROM sbtest{number}")[0][0]
            # The rest fell into the warm-up of 2 s, the turns begun before the first that counts and those behind the last.
            assert 0 < rate * counted_seconds < rows
        # The same engine twice: far from equal only where one has had the other's turns.
        assert 0.2 < rates[0] / rates[1] < 5
        assert point["cpu"]["seconds"] > 4
    finally:
        server.close()


def test_rates_are_of_the_engine_whichever_table_it_has(monkeypatch):
    made = []

    class Server:
        login, pid = {}, os.getpid()

        def execute(self, statement):
            made.append(statement)

    monkeypatch.setattr(turns.sysbench, "run_in_turns", lambda load, payload: [1.0, 2.0, 3.0])
    loads = turns.Turns(Server(), None, ["innodb", "quarry", "quarry-default"], seconds=1)
    rates = [loads.measure("insert", 4096, 1, number)["events_per_second"] for number in (1, 2, 3)]
    assert rates == [[3.0, 1.0, 2.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0]]
    engines = [statement.rpartition("ENGINE=")[2].split()[0] for statement in made if "ENGINE=" in statement]
    assert engines == ["QUARRY", "QUARRY", "InnoDB", "QUARRY", "InnoDB", "QUARRY", "InnoDB", "QUARRY", "QUARRY"]


@pytest.mark.nightly
@pytest.mark.skipif(PLUGIN is None or not PLUGIN.exists(), reason="the plugin is not built")
def test_engines_are_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(turns, "ROWS_BYTES", 1 << 20)
    monkeypatch.setattr(turns, "SERVER", SMALL)
    assert turns.main(["--threads", "2", "--seconds", "1", "--rounds", "2", "--output", str(tmp_path)]) == 0, capsys.readouterr().out
    raw = [json.loads(line) for line in (tmp_path / "points.jsonl").read_text().splitlines()]
    assert [(point["operation"], point["round"]) for point in raw] == [(name, number) for number in (1, 2) for name in ("read", "mix", "insert")]
    assert all(rate > 0 for point in raw for rate in point["events_per_second"])
    assert "insert 4 KB x2" in capsys.readouterr().out
