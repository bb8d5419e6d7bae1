"""A few of the kills of kill_in_dml.py (by hand: thousands): of each kind of transaction, with the binary log off or on, as
QUARRY_TEST_SEED has it; QUARRY_TEST_KILLS=n: n of every kind, with both."""

import collections
import os
import random

import pytest
from dml_kinds import KINDS
from harness import io_layer
from harness.values import SEED
from kill_in_dml import Hunt, places
from kill_points import report

KILLS = int(os.environ.get("QUARRY_TEST_KILLS", "0"))
# The trash is swept every few seconds: only by hand. Mark passes take their time too: one place of theirs.
SLOW = ("trash-", "gc-")
GC_KINDS = [kind for kind in KINDS if kind.name.startswith("gc-")]
CHOSEN = [kind for kind in KINDS if KILLS or not kind.name.startswith(SLOW)]
CHOSEN += [] if KILLS else [random.Random(f"{SEED}-gc").choice(GC_KINDS)]


class Hunts:
    """The hunt in use; after a failure a new one takes its place, for the model is not what the server has any more."""

    def __init__(self, with_binlog):
        self.with_binlog, self.hunt = with_binlog, None

    def get(self):
        if self.hunt is None:
            try:
                self.hunt = Hunt("kill-in-dml-test", self.with_binlog, SEED)
            except io_layer.CannotBuild as reason:
                pytest.skip(str(reason))
        return self.hunt

    def give_up(self):
        hunt, self.hunt = self.hunt, None
        if hunt is not None:
            hunt.remove()


@pytest.fixture(scope="module", params=[False, True], ids=["binlog-off", "binlog-on"])
def hunts(request):
    hunts = Hunts(request.param)
    yield hunts
    hunts.give_up()


@pytest.mark.parametrize("kind", CHOSEN, ids=[kind.name for kind in CHOSEN])
def test_kill_in_dml(hunts, kind):
    hunt = hunts.get()
    try:
        chosen = places(hunt, kind, KILLS or 1)
        names = collections.Counter(hunt.cut(*place) for place in chosen)
    except Exception:
        print(hunt.server.error_log()[-4000:])
        hunts.give_up()
        raise
    print(dict(names))
    assert sum(names.values()) == len(chosen) > 0


def test_what_kills_leave_is_given_back(hunts):
    """After all of them: the last write is there, and when everything is deleted a mark pass leaves no segment."""
    hunt = hunts.get()
    hunt.finish()
    report(hunt.points)
    assert not hunt.left()
