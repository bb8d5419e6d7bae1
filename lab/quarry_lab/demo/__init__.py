"""
The demo: real files of this machine in InnoDB and in Quarry, side by side, read back, compared, killed and drawn.

`python -m quarry_lab demo` (what `make demo` runs after its set-up). The parts, in the order they are used:
cli (arguments, order of steps)  space (is there room)  corpus, documents (the files)  tables (the variants)
workers (client processes)  measure (the rounds)  curve (small E1)  crash (kill -9)  summary, console, report (what
people see).
"""

from __future__ import annotations


def main(arguments: list[str]) -> int:
    """Runs the demo; its exit code. Imported late: `python -m quarry_lab --help` needs none of it."""
    from .cli import main as run

    return run(arguments)
