"""A few of the kills of kill_in_ddl.py (by hand: all of them): one of a third of the kinds, as QUARRY_TEST_SEED has it;
QUARRY_TEST_KILLS=n: n of every kind."""

import os
import random

import kill_at
import pytest
from ddl_kinds import KINDS
from harness.values import SEED
from kill_in_ddl import Hunt, ServerFault

KILLS = int(os.environ.get("QUARRY_TEST_KILLS", "0"))
CHOSEN = KINDS if KILLS else random.Random(f"{SEED}-kinds").sample(KINDS, len(KINDS) // 3)


@pytest.fixture(scope="module")
def hunt():
    hunt = Hunt("kill-in-ddl-test", seed=SEED)
    yield hunt
    hunt.finish()
    hunt.server.remove()


@pytest.mark.parametrize("kind", CHOSEN, ids=[kind.name for kind in CHOSEN])
def test_kill_in_ddl(hunt, kind):
    if not hunt.server.alive():
        hunt.give_up(kind.name)  # a test before this one failed
    try:
        worlds = hunt.worlds(kind)
        points = hunt.choose(hunt.record(kind, worlds), max(1, KILLS))
    except kill_at.CannotTrace as reason:
        pytest.skip(str(reason))
    assert points, "a DDL that changes no file was not observed"
    for point in points:
        try:
            print(hunt.cut(kind, worlds, point))
        except ServerFault as fault:
            hunt.give_up()
            pytest.xfail(f"as with InnoDB: {fault}")
