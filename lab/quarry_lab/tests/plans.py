"""What the tests of several experiments ask of a plan with NDB, and of a table of findings. No server runs here."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

import pytest
from quarry_lab.design.plan import all_points
from quarry_lab.experiments.by_engine import HEADINGS
from quarry_lab.run import command
from quarry_lab.servers import ndb_cluster
from worlds import Run


def with_ndb(experiment, scale="normal"):
    """Its request where the cluster of `make ndb` is built, which a test says before."""
    return command.with_target(experiment, experiment.request(scale), Namespace(target=None))


def takes_between(experiment, request, least, most):
    """Seconds; the parts that a dry run shows add up to them."""
    planned = all_points(experiment.plan(request))
    seconds, rows = experiment.planned_seconds(request, planned), experiment.plan_rows(request, planned)
    assert least < seconds < most
    assert sum(row.seconds for row in rows) == pytest.approx(seconds)
    assert sum(row.points for row in rows) == len(planned)


def names_what_ndb_lacks(experiment, request, monkeypatch):
    monkeypatch.setattr(ndb_cluster, "needs", lambda: ["room for the cluster"])
    assert "room for the cluster" in experiment.needs(request)
    here = [key for key in request.variants if not key.startswith("target")]
    assert "room for the cluster" not in experiment.needs(replace(request, variants=here))


def lets_in_the_users_of_one_sql_node(experiment, request, monkeypatch):
    monkeypatch.setattr(ndb_cluster, "needs", lambda: [])
    said = {users: " / ".join(experiment.needs(replace(request, threads=[users]))) for users in (600, 601)}
    assert "users: NDB's SQL nodes" not in said[600] and "at most 600 users: NDB's SQL nodes" in said[601]


def columns(experiment, rounds):
    """What each column says, by a finding's statement."""
    return {row.statement: dict(zip(HEADINGS, row.cells, strict=True)) for row in experiment.finding_rows(Run(rounds))}
