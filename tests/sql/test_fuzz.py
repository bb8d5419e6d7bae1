"""A short run of the twin fuzzer (tests/twin): random statements on both engines; the seed is printed and can be given.

QUARRY_TEST_SEED=<n> repeats a run; QUARRY_TEST_STATEMENTS=<n> makes it longer.
"""

import collections
import os
import types

import pytest

from harness.twin import Outcome
from harness.values import SEED
from twin import engine_pair
from twin.engine_pair import Difference, EnginePair
from twin.generator import Generator
from twin.program import Statement, parse_line, read_program, write_program
from twin.run import fuzz, server_options
from twin.shrink import shrink
from twin.values import Value

STATEMENTS = int(os.environ.get("QUARRY_TEST_STATEMENTS", "2500"))


def test_random_statements(own_server):
    server = own_server("twin-fuzz", *server_options(SEED))
    summary = fuzz(server, SEED, statements=STATEMENTS, first_only=True)
    print(summary.text())
    assert not summary.failures, f"QUARRY_TEST_SEED={SEED}: {summary.failures}"
    done = sum(count for (_, outcome), count in summary.counts.items() if outcome == "ok")
    assert done > summary.statements * 0.6, f"too few statements did anything: {summary.text()}"


def test_a_program_may_leave_transactions_prepared(own_server):
    """As a shrunk one does: the next begins without them, and needs no new server for that."""
    server = own_server("twin-prepared")
    pair = EnginePair(server)
    program = [Statement("a", "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")]
    program += [
        Statement("a", sql) for sql in ("XA START 'x1-{twin}'", "INSERT INTO t VALUES (1, REPEAT('x', 9000))", "XA END 'x1-{twin}'", "XA PREPARE 'x1-{twin}'")
    ]
    pair.run(program)
    pid = server.pid
    assert len(server.query("XA RECOVER")) == 2
    assert pair.run(program) == len(program)
    pair.reset()
    assert (server.query("XA RECOVER"), server.pid) == ((), pid)


def test_same_seed_same_program(tmp_path):
    programs = [Generator(f"{SEED}-{run}").program(300) for run in (1, 1, 2)]
    assert programs[0] == programs[1]
    assert programs[0] != programs[2]
    write_program(tmp_path / "program.sql", programs[0], "a comment\nof two lines")
    assert read_program(tmp_path / "program.sql") == programs[0]


def test_lines_that_are_no_statements():
    with pytest.raises(ValueError, match="not a line of a program"):
        parse_line("SELECT 1;\n")
    long = Statement("b", "UPDATE t SET b = ?", "long", (Value("bytes", 3, 70),))
    assert parse_line(long.line()) == long


class FailsOnPair:
    """As EnginePair, for the shrinker: a program fails when it holds all of `needed`."""

    def __init__(self, needed):
        self.needed = needed
        self.counts = self.allowed = collections.Counter()

    def run(self, statements):
        texts = [statement.sql for statement in statements]
        if all(text in texts for text in self.needed):
            raise Difference("rows", max(texts.index(text) for text in self.needed), "differ")
        return len(statements)


def test_shrinking_keeps_what_matters():
    program = [Statement("a", str(number)) for number in range(200)]
    pair = FailsOnPair(["17", "90", "133"])
    with pytest.raises(Difference, match="differ") as failure:
        pair.run(program)
    smaller, found = shrink(pair, program, failure.value, 60, report=lambda text: None)
    assert [statement.sql for statement in smaller] == ["17", "90", "133"]
    assert found.kind == "rows"


SEARCH = Statement("a", "SELECT id FROM t0 WHERE MATCH (b) AGAINST ('dc*' IN BOOLEAN MODE)")


def search_again(tmp_path, monkeypatch, rounds):
    """What settle_search makes of a search that finds `rounds`, [(QUARRY's ids, InnoDB's ids), ...], one after the other,
    the last of them for ever; and what it allowed."""
    monkeypatch.setattr(engine_pair, "SEARCH_PAUSE_S", 0)
    pair = EnginePair(types.SimpleNamespace(directory=tmp_path))
    left = {side: [Outcome(rows=[(n,) for n in ids]) for ids in found] for side, found in zip("qi", zip(*rounds))}

    def execute(side, _statement):
        return left[side].pop(0) if len(left[side]) > 1 else left[side][0]

    monkeypatch.setattr(pair, "execute", execute)
    mine, theirs = pair.settle_search(SEARCH, execute("q", SEARCH), execute("i", SEARCH))
    return mine.rows, theirs.rows, dict(pair.allowed)


def test_a_search_during_a_sync_is_asked_again(tmp_path, monkeypatch):
    assert engine_pair.SEARCH.search(SEARCH.sql)
    found = search_again(tmp_path, monkeypatch, [([], [1, 2]), ([1], [1, 2]), ([2, 1], [1, 2])])
    assert found == ([(2,), (1,)], [(1,), (2,)], {"FULLTEXT sync": 1})


def test_a_search_that_goes_on_differing_differs(tmp_path, monkeypatch):
    assert search_again(tmp_path, monkeypatch, [([], [1, 2])]) == ([], [(1,), (2,)], {})
    assert search_again(tmp_path, monkeypatch, [([1], [1])]) == ([(1,)], [(1,)], {})
