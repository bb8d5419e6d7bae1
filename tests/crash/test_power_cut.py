"""A few of the cuts of power_cut.py (by hand: hundreds), and that it notices flushes that are not made."""

import pytest
from harness import io_layer
from harness.values import SEED
from power_cut import BINLOG_OPTIONS, PLANTED, PowerCuts

CUTS = 6
PLANTED_CUTS_MAX = 40
HISTORIES = {
    "binlog off": ((), False),
    "binlog on": (BINLOG_OPTIONS, False),
    "log not flushed at commit": (("--innodb-flush-log-at-trx-commit=0",), True),
}


@pytest.fixture
def power_cuts():
    made = []

    def make(name, *arguments, **settings):
        try:
            made.append(PowerCuts(name, *arguments, **settings))
        except io_layer.CannotBuild as reason:
            pytest.skip(str(reason))
        return made[-1]

    yield make
    for cuts in made:
        cuts.remove()


@pytest.mark.parametrize(
    "history",
    [pytest.param(name, marks=[pytest.mark.nightly] if may_lose else []) for name, (_, may_lose) in HISTORIES.items()],
)
def test_acknowledged_commits_survive(power_cuts, history):
    options, may_lose_commits = HISTORIES[history]
    cuts = power_cuts("power-cut", options, SEED, rounds=8, may_lose_commits=may_lose_commits)
    for _ in range(CUTS):
        print(cuts.cut())
    print(dict(cuts.counts))


@pytest.mark.quarry_only
@pytest.mark.parametrize("planted", PLANTED)
def test_a_flush_that_is_not_made_is_noticed(power_cuts, planted):
    cuts = power_cuts("power-cut-planted", (), SEED, rounds=5)
    cuts.plant(planted)
    for _ in range(PLANTED_CUTS_MAX):
        try:
            cuts.cut()
        except AssertionError as found:
            print(str(found)[:1000])
            return
    pytest.fail(f"{PLANTED_CUTS_MAX} power cuts, and nothing was lost though flushes ({planted}) were not made")
