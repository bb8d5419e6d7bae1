"""
The experiments that the lab can run; only what is built is listed.

Each is a module with NAME, TITLE, default_request(), quick(request), report(console, run) and figures(run).
"""

from . import core, e1, e2

EXPERIMENTS = {module.NAME: module for module in (core, e1, e2)}
