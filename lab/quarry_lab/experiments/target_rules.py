"""The rules by which the project's own targets are judged, from the raw rounds of a run."""

from __future__ import annotations

from ..design.cells import CellKey, Cells, bytes_written_ratio, payload_rate
from ..design.plan import OPERATION_LABELS
from ..report.stats import Summary, human_bytes
from ..report.verdicts import MET, NOT_MET, Finding, Verdict, figures_of, judge, not_measured

INNODB = "innodb"
WORDS = (MET, NOT_MET)
DEVICE_SHARE = 0.9  # of the device's raw sequential rate: then it is the limit


def ratio_text(ratio: Summary, floor: float = 0.0) -> str:
    """floor: what it is judged by; a median that two decimals would show on its other side has four."""
    digits = 2 if (round(ratio.median, 2) >= floor) == (ratio.median >= floor) else 4
    return f"{ratio.median:.{digits}f}x (rounds {ratio.low:.2f}-{ratio.high:.2f})"


def judge_ratio(cells: Cells, finding: Finding, keys: list[CellKey], floor: float, parameters: dict, variant: str = "quarry", over: str = INNODB) -> Verdict:
    """Every one of the measured cells must reach the floor by its median."""
    ratios = cells.ratios(keys, variant, over)
    if not ratios:
        return not_measured(finding, "no such cell with both engines in this run")
    key, worst = min(ratios.items(), key=lambda item: item[1].median)
    found = (f"{ratio_text(worst, floor)} at {OPERATION_LABELS[key.operation]} x{key.threads}"
             + (f", the lowest of {len(ratios)} cells" if len(ratios) > 1 else ""))
    return judge(finding, worst.median >= floor, found, {"ratio": figures_of(worst)}, cells.rounds_of([key], (variant, over)), parameters, WORDS)


def device_share(cells: Cells, key: CellKey, variant: str, rate: Summary | None) -> float | None:
    """The median payload rate over the median of the device's raw sequential rate."""
    written = cells.summary(key, variant, payload_rate)
    return written.median / rate.median if written and rate else None


def judge_ratio_or_device(cells: Cells, finding: Finding, key: CellKey, floor: float, rate: Summary | None, parameters: dict) -> Verdict:
    """rate: the device's raw sequential rate, of which DEVICE_SHARE will do as well."""
    ratio, share = cells.ratio(key, "quarry", INNODB), device_share(cells, key, "quarry", rate)
    if not ratio or share is None or not rate:
        return not_measured(finding, "no such cell with both engines in this run")
    found = f"{ratio_text(ratio, floor)}, {share:.0%} of the device's {human_bytes(rate.median)}/s"
    figures = {"ratio": figures_of(ratio), "share_of_device": share}
    points = cells.rounds_of([key], ("quarry", INNODB))
    return judge(finding, ratio.median >= floor or share >= DEVICE_SHARE, found, figures, points, parameters, WORDS)


def judge_bytes_written(cells: Cells, finding: Finding, keys: list[CellKey], most: float, parameters: dict) -> Verdict:
    """None of the measured cells may write more bytes per payload byte, by its median."""
    found = [(key, s) for key in keys if (s := cells.summary(key, "quarry", bytes_written_ratio))]
    if not found:
        return not_measured(finding, "no such cell in this run")
    key, worst = max(found, key=lambda item: item[1].median)
    text = f"{worst.median:.3f} (rounds {worst.low:.3f}-{worst.high:.3f}) at x{key.threads}"
    return judge(finding, worst.median <= most, text, {"bytes_per_byte": figures_of(worst)}, cells.rounds_of([key], ["quarry"]), parameters, WORDS)
