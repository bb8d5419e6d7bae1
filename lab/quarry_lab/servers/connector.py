"""MariaDB's Connector/C as scripts/fetch-connector unpacks it: what a compiler is told. Nothing of it is installed."""

from __future__ import annotations


from quarry_server.run import run_or_raise
from quarry_server.server import BUILD

ROOT = BUILD / "connector"
CONFIG = ROOT / "usr" / "bin" / "mariadb_config"  # finds its paths from its own place


def connector_flags(what: str) -> list[str]:
    """`--cflags` or `--libs`. A program finds the library by its run path."""
    words = run_or_raise([CONFIG, what]).split()
    return words + [f"-Wl,-rpath,{word[2:]}" for word in words if word.startswith("-L")]
