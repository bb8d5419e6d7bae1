"""Every experiment that is built, by name, in the order in which the lab runs them."""

from __future__ import annotations

from ..run.experiment import Experiment
from .cold.experiment import Cold
from .e1.experiment import InlinePartsBatches
from .e2.experiment import AutoIncrement
from .e3.experiment import FetchCompressed
from .e4.experiment import Protocols
from .e5.experiment import DiskData
from .targets.experiment import Targets

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (InlinePartsBatches(), AutoIncrement(), FetchCompressed(), Protocols(), DiskData(), Targets(), Cold())}
# What the lab runs; the others are the project's own comparisons, not published experiments.
PUBLISHED = tuple(e for e in EXPERIMENTS.values() if e.source)
