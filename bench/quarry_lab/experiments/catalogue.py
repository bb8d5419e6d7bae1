"""Every experiment that is built, by name, in the order in which the lab runs them."""

from __future__ import annotations

from .base import Experiment
from .cold import Cold
from .core import Core
from .e1 import InlinePartsBatches
from .e2 import AutoIncrement
from .e3 import FetchCompressed
from .e4 import Protocols
from .e5 import DiskData
from .pressure import Pressure
from .targets import Targets

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (Core(), InlinePartsBatches(), AutoIncrement(), FetchCompressed(), Protocols(), DiskData(), Targets(), Cold(), Pressure())}
# What the lab runs; the others are the project's own comparisons, not published experiments.
PUBLISHED = tuple(e for e in EXPERIMENTS.values() if e.source)
