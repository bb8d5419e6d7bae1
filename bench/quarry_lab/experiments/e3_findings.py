"""What was published for E3, and the rule by which this lab judges each finding from its own raw rounds."""

from __future__ import annotations

import re

from .. import stats
from ..cells import CellKey, Cells
from ..methods import LABELS
from ..results import RunDirectory
from ..stats import Summary
from ..variants import KIB
from ..verdicts import Finding, Verdict, figures_of, judge, not_applicable, not_measured

REAL = "real"
DOCUMENT_BYTES = 4_498_391  # 4.29 MB, the largest of the published user data
STUB_BYTES = 64 * KIB
LOCAL, CLOUD = "localhost", "cloud"
_LOCAL_DOCUMENT, _CLOUD_DOCUMENT = CellKey(REAL, DOCUMENT_BYTES, 1, LOCAL), CellKey(REAL, DOCUMENT_BYTES, 1, CLOUD)
_POOR_RATIO = CellKey("stub-62", STUB_BYTES, 1, LOCAL)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

LOCAL_WINNER = Finding("e3-local-winner", "on localhost lz4 and no compression win",
                       "the fastest application codec of the 4.29 MB document, by median, is none or lz4")
CLOUD_WINNER = Finding("e3-cloud-winner", "in a same-region cloud lz4 and no compression win",
                       "the fastest application codec of the 4.29 MB document, by median, is none or lz4")
POOR_RATIO = Finding("e3-poor-ratio", "when the ratio is poor lz4 loses slightly",
                     "62 symbols, 64 KB, localhost: lz4 17 / none between 0.75 and 1 by median, below 1 in every round")
CLOUD_LZ4 = Finding("e3-cloud-lz4", "cloud, 4.29 MB: lz4-17 about 1,060 MB/s against 253 raw",
                    "lz4 17 / none at least 2 by median, above 1 in every round")
CLOUD_ZSTD = Finding("e3-cloud-zstd", "cloud, 4.29 MB: zstd about 523 MB/s, between raw and lz4-17",
                     "zstd / none above 1 and zstd / lz4 17 below 1, in every round")
CLOUD_UNCOMPRESS = Finding("e3-cloud-uncompress", "cloud, 4.29 MB: UNCOMPRESS() about 142 MB/s, far below lz4-17 and below raw",
                           "UNCOMPRESS() / lz4 17 at most 0.5 by median, and UNCOMPRESS() / none below 1 in every round")
LOCAL_ROW_FORMAT = Finding("e3-local-row-format", "localhost: ROW_FORMAT=COMPRESSED 72-153 MB/s, far below raw",
                           "ROW_FORMAT=COMPRESSED / none at most 0.5 by median, below 1 in every round")
USABLE = Finding("e3-usable-inside", "data compressed by the application cannot be used inside the database",
                 "JSON_VALUE gives nothing for application codecs; with CODEC=lz4 and CODEC=zstd it gives the same as for uncompressed data")
WEAK_SERVER = Finding("e3-weak-server", "a weak server, and a proxy in front of a primary with replicas, shift the balance to the application",
                      "needs another machine")


def bytes_rate(point: dict) -> float:
    """Uncompressed bytes per second, the metric of this experiment."""
    return point["result"]["uncompressed_bytes_per_second"]


def _winner(cells: Cells, finding: Finding, key: CellKey, parameters: dict) -> Verdict:
    rates = {v: rate for v in cells.variants() if v.startswith("app-") and (rate := cells.summary(key, v, bytes_rate))}
    if "app-none" not in rates or not any(v.startswith("app-lz4") for v in rates) or len(rates) < 3:
        return not_measured(finding, "takes no compression, an lz4 and another codec in the application")
    order = sorted(rates, key=lambda v: rates[v].median, reverse=True)
    text = ", ".join(f"{LABELS[v]} {stats.human_bytes(rates[v].median)}/s" for v in order[:4])
    holds = order[0] == "app-none" or order[0].startswith("app-lz4")
    return judge(finding, holds, f"fastest first: {text}", {v: figures_of(rates[v]) for v in order}, cells.rounds_of([key], order), parameters)


def _compared(cells: Cells, finding: Finding, key: CellKey, variant: str, limits: dict[str, tuple[float, float, float]], parameters: dict) -> Verdict:
    """limits: other variant -> (least, largest) median of variant / other, and the bound (0: none) that every round must be on the same side of."""
    ratios = {other: ratio for other in limits if (ratio := cells.ratio(key, variant, other, bytes_rate))}
    if len(ratios) < len(limits):
        return not_measured(finding, f"this run lacks {LABELS[variant]} or what it is compared with there")
    holds = all(_within(ratios[other], *limit) for other, limit in limits.items())
    text = "; ".join(f"{LABELS[variant]} / {LABELS[o]} {r.median:.2f} (rounds {r.low:.2f}-{r.high:.2f})" for o, r in ratios.items())
    figures = {f"{variant}/{o}": figures_of(r) for o, r in ratios.items()}
    return judge(finding, holds, text, figures, cells.rounds_of([key], [variant, *limits]), parameters)


def _within(ratio: Summary, least: float, largest: float, side: float) -> bool:
    """side +1: every round above 1; -1: every round below 1."""
    return least <= ratio.median <= largest and (ratio.low > 1 if side > 0 else ratio.high < 1)


_ABOVE, _BELOW, _ANY = 1, -1, float("inf")
COMPARISONS = (
    (POOR_RATIO, _POOR_RATIO, "app-lz4-17", {"app-none": (0.75, 1.0, _BELOW)}),
    (CLOUD_LZ4, _CLOUD_DOCUMENT, "app-lz4-17", {"app-none": (2.0, _ANY, _ABOVE)}),
    (CLOUD_ZSTD, _CLOUD_DOCUMENT, "app-zstd", {"app-none": (1.0, _ANY, _ABOVE), "app-lz4-17": (0.0, 1.0, _BELOW)}),
    (CLOUD_UNCOMPRESS, _CLOUD_DOCUMENT, "uncompress", {"app-lz4-17": (0.0, 0.5, _BELOW), "app-none": (0.0, 1.0, _BELOW)}),
    (LOCAL_ROW_FORMAT, _LOCAL_DOCUMENT, "row-compressed", {"app-none": (0.0, 0.5, _BELOW)}),
)


def _usable(run: RunDirectory, parameters: dict) -> Verdict:
    """What JSON_VALUE gave, of the last session that asked."""
    asked = [found for session in run.run["sessions"] for found in session.get("json_value", {}).values() if "app-none" in found]
    if not asked:
        return not_measured(USABLE, "no document was stored uncompressed in this run")
    found = asked[-1]
    plain = found["app-none"]
    codecs = {key: value for key, value in found.items() if key.startswith("app-") and key != "app-none"}
    inside = {key: value for key, value in found.items() if key in ("quarry-lz4", "quarry-zstd")}
    if not codecs or not inside:
        return not_measured(USABLE, "takes an application codec and a CODEC column")
    holds = bool(plain and _UUID.fullmatch(plain)) and all(v is None for v in codecs.values()) and all(v == plain for v in inside.values())
    given = [LABELS[key] for key, value in found.items() if value == plain]
    text = f"'{plain}' from: {', '.join(given)}; nothing from: {', '.join(LABELS[k] for k, v in found.items() if v is None) or '-'}"
    return judge(USABLE, holds, text, {"json_value": found}, [p for p in run.points if p["operation"] == REAL], parameters)


def verdicts(run: RunDirectory) -> list[Verdict]:
    cells, parameters = Cells(run.points, LABELS), run.run["parameters"]
    return [
        _winner(cells, LOCAL_WINNER, _LOCAL_DOCUMENT, parameters),
        _winner(cells, CLOUD_WINNER, _CLOUD_DOCUMENT, parameters),
        *(_compared(cells, finding, key, variant, limits, parameters) for finding, key, variant, limits in COMPARISONS),
        _usable(run, parameters),
        not_applicable(WEAK_SERVER, "server and client share this machine"),
    ]
