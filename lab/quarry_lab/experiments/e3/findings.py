"""What was published for E3 (published/e3.toml), judged from the raw rounds."""

from __future__ import annotations

import re

from ...design import published, rules
from ...design.cells import CellKey, Cells
from ...design.methods import LABELS
from ...design.results import RunDirectory
from ...design.rules import Level, against, direction, gain, level
from ...design.variants import KIB
from ...report.verdicts import MIXED, OPPOSITE, REPRODUCED, Verdict, not_measured, stated

DOCUMENT = published.document("e3")
REAL = "real"
DOCUMENT_BYTES = int(DOCUMENT.value("largest-document"))
STUB_BYTES = 64 * KIB
LOCAL, CLOUD = "localhost", "cloud"
_SLIGHT_LOSS = (-0.25, -1e-9)  # what counts as losing slightly: our reading
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def bytes_rate(point: dict) -> float:
    """Uncompressed bytes per second, the metric of this experiment."""
    return point["result"]["uncompressed_bytes_per_second"]


def _compared(cells: Cells, key: CellKey, variant: str, over: str, state, parameters: dict) -> list[Level]:
    """One level, of a gain; none where a variant is missing."""
    ratio = cells.ratio(key, variant, over, bytes_rate)
    if not ratio:
        return []
    points = cells.rounds_of([key], (variant, over))
    return [level(f"{LABELS[variant]} / {LABELS[over]}", state(gain(ratio)), gain(ratio), points, parameters)]


def _winners(cells: Cells, link: str, parameters: dict) -> list[Verdict]:
    """lz4 against none, lz4 against every other codec, none against every codec but lz4: each pair of what was measured."""
    key = CellKey(REAL, DOCUMENT_BYTES, 1, link)
    here = [v for v in cells.variants() if v.startswith("app-") and cells.rounds(key, v)]
    lz4 = [v for v in here if v.startswith("app-lz4")]
    others = [v for v in here if v not in lz4 and v != "app-none"]
    place = "localhost" if link == LOCAL else link
    pairs = {"ahead-of-none": [(one, "app-none") for one in lz4], "first": [(one, other) for one in lz4 for other in others],
             "next": [("app-none", other) for other in others]}
    names = {"ahead-of-none": "lz4-ahead-of-none", "first": "lz4-first", "next": "none-next"}
    made = []
    for what, name in names.items():
        levels = [one for variant, over in pairs[what] for one in _compared(cells, key, variant, over, direction, parameters)]
        finding = DOCUMENT.finding(f"{'local' if link == LOCAL else 'cloud'}-{name}")
        made.append(rules.verdict(finding, levels, f"takes no compression, an lz4 and another codec in the application, on {place}"))
    return made


def _charted(cells: Cells, parameters: dict) -> list[Verdict]:
    """Ratios of rates that were read off the author's charts."""
    made = []
    for claim in DOCUMENT.claims.values():
        if "ratios" not in claim.judging:
            continue
        key = CellKey(REAL, DOCUMENT_BYTES, 1, claim.judging["link"])
        levels = [_compared(cells, key, variant, over, lambda found, figure=claim.figures[which]: against(found, figure.judged, 0.0), parameters)
                  for variant, over, which in claim.judging["ratios"]]
        is_whole = all(levels)
        variants = sorted({LABELS[v] for variant, over, _which in claim.judging["ratios"] for v in (variant, over)})
        made.append(rules.verdict(claim.finding, sum(levels, []) if is_whole else [], f"takes {', '.join(variants)} on {claim.judging['link']}"))
    return made


def _poor_ratio(cells: Cells, parameters: dict) -> Verdict:
    levels = _compared(cells, CellKey("stub-62", STUB_BYTES, 1, LOCAL), "app-lz4-17", "app-none", lambda found: against(found, _SLIGHT_LOSS, 0.0), parameters)
    return rules.verdict(DOCUMENT.finding("poor-ratio"), levels, "takes lz4 17 and no compression of 62 symbols, 64 KB, on localhost")


def _usable(run: RunDirectory, parameters: dict) -> Verdict:
    """What JSON_VALUE gave, of the last session that asked."""
    finding = DOCUMENT.finding("usable-inside")
    asked = [found for session in run.run["sessions"] for found in session.get("json_value", {}).values() if "app-none" in found]
    if not asked:
        return not_measured(finding, "no document was stored uncompressed in this run")
    found = asked[-1]
    plain = found["app-none"]
    codecs = {key: value for key, value in found.items() if key.startswith("app-") and key != "app-none"}
    inside = {key: value for key, value in found.items() if key in ("quarry-lz4", "quarry-zstd")}
    if not codecs or not inside:
        return not_measured(finding, "takes an application codec and a CODEC column")
    lost, kept = [v is None for v in codecs.values()], [v == plain for v in inside.values()]
    holds = bool(plain and _UUID.fullmatch(plain)) and all(lost) and all(kept)
    state = REPRODUCED if holds else MIXED if any(lost) else OPPOSITE
    given = [LABELS[key] for key, value in found.items() if value == plain]
    text = f"'{plain}' from: {', '.join(given)}; nothing from: {', '.join(LABELS[k] for k, v in found.items() if v is None) or '-'}"
    return stated(finding, state, text, {"json_value": found}, [p for p in run.points if p["operation"] == REAL], parameters)


def verdicts(run: RunDirectory) -> list[Verdict]:
    cells, parameters = Cells(run.points, LABELS), run.run["parameters"]
    weak = DOCUMENT.claim("weak-server")
    return [
        *_winners(cells, LOCAL, parameters), *_winners(cells, CLOUD, parameters), _poor_ratio(cells, parameters), *_charted(cells, parameters),
        _usable(run, parameters), not_measured(weak.finding, weak.judging["lacking"]),
    ]
