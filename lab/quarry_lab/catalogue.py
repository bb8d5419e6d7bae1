"""Every experiment that is built, by name, in the order in which the lab runs them."""

from __future__ import annotations

from .experiments.cold.experiment import Cold
from .experiments.e1.experiment import InlinePartsBatches
from .experiments.e2.experiment import AutoIncrement
from .experiments.e3.experiment import FetchCompressed
from .experiments.e4.experiment import Protocols
from .experiments.e5.experiment import DiskData
from .experiments.targets.experiment import Targets
from .limits.cold import LimitsOfColdReads
from .limits.experiment import Limits
from .run.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in (
        InlinePartsBatches(), AutoIncrement(), FetchCompressed(), Protocols(), DiskData(), Targets(), Cold(), Limits(), LimitsOfColdReads())}
# What the lab runs; the others are the project's own comparisons, not published experiments.
PUBLISHED = tuple(e for e in EXPERIMENTS.values() if e.source)
