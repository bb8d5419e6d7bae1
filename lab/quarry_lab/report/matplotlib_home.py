"""Imported before matplotlib: keeps its cache under build/, out of the user's own directories."""

import os

from quarry_server.server import BUILD

os.environ.setdefault("MPLCONFIGDIR", str(BUILD / "matplotlib"))
