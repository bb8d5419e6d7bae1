"""A few of the kills of kill_in_ddl.py (by hand: all of them). Which, QUARRY_TEST_SEED decides; how many of each kind,
QUARRY_TEST_KILLS."""

import os

import kill_at
import pytest
from ddl_kinds import KINDS
from harness.values import SEED
from kill_in_ddl import Hunt, ServerFault

KILLS = int(os.environ.get("QUARRY_TEST_KILLS", "1"))


@pytest.fixture(scope="module")
def hunt():
    hunt = Hunt("kill-in-ddl-test", seed=SEED)
    yield hunt
    hunt.finish()
    hunt.server.remove()


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_kill_in_ddl(hunt, kind):
    if not hunt.server.alive():
        hunt.give_up(kind.name)  # a test before this one failed
    try:
        worlds = hunt.worlds(kind)
        points = hunt.choose(hunt.record(kind, worlds), KILLS)
    except kill_at.CannotTrace as reason:
        pytest.skip(str(reason))
    assert points, "a DDL that changes no file was not observed"
    for point in points:
        try:
            print(hunt.cut(kind, worlds, point))
        except ServerFault as fault:
            hunt.give_up()
            pytest.xfail(f"as with InnoDB: {fault}")
