"""The experiments that the lab can run: run/experiment.py says what one must give, quarry_lab/catalogue.py lists them."""

from ..report import matplotlib_home  # noqa: F401  (before any of them imports matplotlib)
