"""The comparison of two builds: its arithmetic, and what it refuses."""

import io
import signal
from types import SimpleNamespace

import pytest
from quarry_lab import builds, cli
from quarry_lab.run import verb as verb_module
from quarry_server.server import PLUGIN
from rich.console import Console

CELL = builds.Cell("read", 64 * 1024)


def points(**micros):
    return [{"operation": "read", "size_bytes": 64 * 1024, "contestant": name, "round": number, "micros": value}
            for name, values in micros.items() for number, value in enumerate(values, 1)]


def test_ratios_are_taken_round_by_round():
    # The machine was twice as slow in the second round, for both.
    ratio = builds.compare(points(old=[30.0, 60.0, 33.0], new=[20.0, 40.0, 22.0]), CELL, "old", "new")
    assert (ratio.median, ratio.low, ratio.high) == (1.5, 1.5, 1.5)
    assert builds.compare(points(old=[30.0]), CELL, "old", "new") is None


def test_report_names_every_contestant():
    measured = points(innodb=[24.0, 26.0], old=[30.0, 31.0], new=[20.0, 20.0])
    stream = io.StringIO()
    Console(file=stream, width=200).print(builds.report(measured, [CELL], ["innodb", "old", "new"]))
    text = stream.getvalue()
    assert "profile bare" in text and "read 64 KB" in text and "1.25 (1.20-1.30)" in text and "1.52 (1.50-1.55)" in text


@pytest.mark.parametrize("arguments", [["--ops", "read,fly"], ["--rounds", "0"], ["--baseline", "/nowhere.so"]])
def test_nonsense_is_refused(arguments, tmp_path, capsys):
    plugin = tmp_path / "ha_quarry.so"
    plugin.write_bytes(b"")
    with pytest.raises(SystemExit):
        builds.parse(["--baseline", str(plugin), "--plugin", str(plugin), *arguments])
    assert "error:" in capsys.readouterr().err


def test_a_setting_that_is_none_is_said_in_a_line(tmp_path, capsys):
    plugin = tmp_path / "ha_quarry.so"
    plugin.write_bytes(b"")
    assert builds.main(["--baseline", str(plugin), "--plugin", str(plugin), "--mycnf", "nonsense", "--data", str(tmp_path)]) == 1
    assert "error: 'nonsense' is not key=value" in capsys.readouterr().out


@pytest.mark.parametrize("verb", cli.OTHER_VERBS)
def test_every_verb_ends_by_sigterm_as_by_ctrl_c(verb, monkeypatch):
    """Else a server and its data would be left behind."""
    def main(_arguments):
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            return verb_module.EXIT_INTERRUPTED

    monkeypatch.setattr(cli, "importlib", SimpleNamespace(import_module=lambda _name: SimpleNamespace(main=main)))
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        assert cli.main([verb]) == verb_module.EXIT_INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.skipif(PLUGIN is None or not PLUGIN.exists(), reason="the plugin is not built")
def test_two_builds_are_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(builds, "ROWS_BYTES", 1 << 20)
    monkeypatch.setattr(builds, "BUILD", tmp_path)
    small = ["--mycnf", "innodb_buffer_pool_size=64M", "--mycnf", "innodb_log_file_size=16M"]
    arguments = ["--baseline", str(PLUGIN), "--sizes", "24", "--ops", ",".join(builds.OPERATIONS), "--rounds", "2", "--statements", "8"]
    assert builds.main([*arguments, *small, "--data", str(tmp_path)]) == 0
    raw = (tmp_path / "bench" / "builds" / "points.jsonl").read_text().splitlines()
    assert len(raw) == len(builds.OPERATIONS) * 3 * 2
    assert "update 24 KB" in capsys.readouterr().out
