"""scripts/nightly: what counts as passed and as failed, what a bound ends, which steps there are."""

import importlib.machinery
import importlib.util
import sys

import pytest

from harness.server import REPOSITORY


@pytest.fixture
def nightly(monkeypatch, tmp_path):
    loader = importlib.machinery.SourceFileLoader("nightly", str(REPOSITORY / "scripts" / "nightly"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("nightly", loader))
    monkeypatch.setitem(sys.modules, "nightly", module)
    loader.exec_module(module)
    for name in ("BUILD", "NIGHT"):
        monkeypatch.setattr(module, name, tmp_path)
    monkeypatch.setattr(module, "SERVERS", tmp_path / "servers")
    monkeypatch.setattr(module, "MTR", tmp_path / "mtr")
    monkeypatch.setattr(module, "END_TIMEOUT_S", 1)  # a signal to a process that has hardly begun may be lost
    return module


def shell(nightly, name, script, minutes=10, **settings):
    return nightly.Step(name, ["/bin/sh", "-c", script, "sh"], minutes, **settings)


def run(nightly, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["nightly", "--seed", "7", *arguments])
    return nightly.main()


def test_each_step_has_a_line_and_counts_end_the_summary(nightly, monkeypatch, capfd):
    steps = [
        shell(nightly, "good", "echo 12 passed"),
        shell(nightly, "bad", "echo 3 rows differ; exit 1"),
        shell(nightly, "unable", "echo no strace here; exit 77"),
        shell(nightly, "endless", "while :; do sleep 1000; done", minutes=0),
        shell(nightly, "surroundings", 'echo "$LENGTH in $QUARRY_TEST_SCRATCH"', environment={"LENGTH": "long"}),
    ]
    monkeypatch.setattr(nightly, "PARTS", {"some": lambda _night: steps, "other": None})
    assert run(nightly, monkeypatch, "some") == 1
    output = capfd.readouterr().out
    summary = (nightly.NIGHT / "summary.txt").read_text(encoding="utf-8")
    assert output.endswith(summary) and summary.endswith("\n2 passed, 2 failed\n")
    lines = {line.split()[1]: line.split(maxsplit=4)[2:] for line in summary.splitlines() if line.startswith("some")}
    assert lines["good"][::2] == ["passed", "12 passed"]
    assert lines["bad"][::2] == ["failed", "3 rows differ"]
    assert lines["unable"][::2] == ["skipped", "no strace here"]
    assert lines["endless"][::2] == ["failed", "still running after 0 minutes"]
    assert lines["surroundings"][2] == f"long in {nightly.SERVERS}"


@pytest.mark.parametrize(
    "script, ended, state, runs",
    [
        ("exit 0", 4, "passed", 4),
        ('[ "$1" != 7200000 ]', None, "failed", 3),
        ("exit 0", 1, "failed", 1),
    ],
    ids=["until-its-bound", "until-it-fails", "never-once"],
)
def test_a_repeated_step_takes_new_seeds(nightly, monkeypatch, script, ended, state, runs):
    """The bound ends run number `ended`, which is a failure only if it was the first."""
    seeds, real = [], nightly.run_command

    def run_command(command, *rest):
        seeds.append(int(command[-1]))
        if len(seeds) == ended:
            return None
        return real(command, *rest)

    monkeypatch.setattr(nightly, "run_command", run_command)
    assert nightly.run_step("part", shell(nightly, "again", script, repeat=True), 7).state == state
    assert seeds == [7_000_000 + 100_000 * number for number in range(runs)]


def test_every_part_names_programs_that_are_there(nightly):
    night = nightly.Night(seed=1, scale=1)
    for part in nightly.PARTS.values():
        for step in part(night):
            assert step.minutes > 0
            for word in map(str, step.command):
                if word.startswith(str(REPOSITORY / "tests")) or word.startswith("tests/"):
                    assert (REPOSITORY / word).exists(), word


def test_an_unknown_part_is_named(nightly, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(nightly, monkeypatch, "twins")
    assert "unknown part twins (allowed: slow, simulation, twin, mtr" in capsys.readouterr().err
