"""The experiments that the lab can run: base.py says what one must give, catalogue.py lists them."""

from .. import matplotlib_home  # noqa: F401  (before any of them imports matplotlib)
