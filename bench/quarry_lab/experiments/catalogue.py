"""Every experiment that is built, by name, in the order in which the lab runs them."""

from __future__ import annotations

from .base import Experiment
from .core import Core
from .e1 import InlinePartsBatches
from .e2 import AutoIncrement
from .e3 import FetchCompressed
from .e4 import Protocols
from .e5 import DiskData

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (Core(), InlinePartsBatches(), AutoIncrement(), FetchCompressed(), Protocols(), DiskData())}
# What the lab runs; `core` is the project's own comparison, not a published experiment.
PUBLISHED = tuple(e for e in EXPERIMENTS.values() if e.source)
