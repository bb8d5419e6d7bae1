"""
The targets of the production profile, each a finding: ratios to InnoDB in the same run, and the share of what the server can do at all.

BLACKHOLE stores nothing: its rate is that of the protocol, the SQL layer and the binary log, which every engine pays. A prepared statement's
parameters are written into its text for the binary log, byte by byte, so with large values that is most of the way. What each is to reach is
in design/production_targets.py.
"""

from __future__ import annotations

from dataclasses import replace

from ...design.cells import CellKey, Cells
from ...design.production_targets import COUNTER_FLOORS, COUNTER_KIB, INSERT_FLOORS, MIX_FLOORS, MIX_KIB, SHARE_FLOORS, SHARE_KIB
from ...design.variants import KIB
from ...report.stats import counted
from ...report.verdicts import NOT_MEASURED, Finding, Verdict, figures_of
from ..target_rules import judge_ratio, ratio_text
from .findings import COUNTER_VARIANTS

BLACKHOLE = "discarded"


def verdicts(cells: Cells, parameters: dict) -> list[Verdict]:
    found = [_insert(cells, size, threads, floor, parameters) for size, floors in INSERT_FLOORS.items() for threads, floor in floors.items()]
    found += [_judged(cells, f"mix-{MIX_KIB}kb", f"90/10 mix of {MIX_KIB} KB", "mix", MIX_KIB, threads, floor, parameters)
              for threads, floor in MIX_FLOORS.items()]
    found += [_judged(cells, "counter", f"update of an INT in rows with {COUNTER_KIB} KB values, binlog_row_image=MINIMAL", "counter", COUNTER_KIB,
                      threads, floor, parameters, *reversed(COUNTER_VARIANTS)) for threads, floor in COUNTER_FLOORS.items()]
    found += [_judged(cells, f"blackhole-{SHARE_KIB}kb", f"durable insert of {SHARE_KIB} KB", "insert", SHARE_KIB, threads, floor, parameters,
                      over=BLACKHOLE) for threads, floor in SHARE_FLOORS.items()]
    return found


def _insert(cells: Cells, size_kib: int, threads: int, floor: float, parameters: dict) -> Verdict:
    """With BLACKHOLE's share next to it, where that was measured."""
    verdict = _judged(cells, f"insert-{size_kib}kb", f"durable insert of {size_kib} KB", "insert", size_kib, threads, floor, parameters)
    share = cells.ratio(CellKey("insert", size_kib * KIB, threads), "quarry", BLACKHOLE)
    if not share or verdict.state == NOT_MEASURED:
        return verdict
    figures = {**verdict.figures, "share_of_blackhole": figures_of(share)}
    return replace(verdict, reason=f"{verdict.reason}; {ratio_text(share)} of BLACKHOLE", figures=figures)


def _judged(cells: Cells, name: str, what: str, operation: str, size_kib: int, threads: int, floor: float, parameters: dict,
            variant: str = "quarry", over: str = "innodb") -> Verdict:
    rival = "BLACKHOLE" if over == BLACKHOLE else "InnoDB"
    finding = Finding(f"targets-production-{name}-x{threads}", f"{what}, {counted(threads, 'thread')}: at least {floor}x {rival}",
                      f"median ratio >= {floor}")
    return judge_ratio(cells, finding, [CellKey(operation, size_kib * KIB, threads)], floor, parameters, variant, over)
