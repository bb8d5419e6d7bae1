"""E1's charts: throughput and p95 over users for each size, as the document has them, an engine a panel; memory; the sweep; more data than memory."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...design.cells import CellKey, Cells, memory_ratio, p95_ms, throughput
from ...report import charts
from ...run.tables import size_label
from .beside import FLOOR
from .engines import MORE_DATA, MORE_DATA_KIB
from .findings import ENGINES, NDB, QUARRY, SWEEP_SIZE, SWEEP_THREADS, Engine, Measure, sweep, word

_MEASURES: tuple[tuple[str, str, Measure], ...] = (
    ("throughput", "transactions per second", throughput), ("p95", "95th percentile, milliseconds", p95_ms))


def figures(cells: Cells) -> dict[str, Figure]:
    made: dict[str, Figure | None] = {}
    plain = [key for key in cells.keys() if key.operation == "mix" and not key.setting]
    for size in sorted({key.size_bytes for key in plain}):
        keys = [key for key in plain if key.size_bytes == size]
        for name, what, measure in _MEASURES:
            made[f"{name}-{size // 1024}kb"] = _over_users(cells, keys, f"{size_label(size)} values: {what}", measure)
    made |= {"memory": _memory(cells, plain), "sweep": _sweep(cells)}
    made |= {f"more-data-{name}": _more_data(cells, what, measure) for name, what, measure in _MEASURES}
    return {name: figure for name, figure in made.items() if figure is not None}


def _over_users(cells: Cells, keys: list[CellKey], title: str, measure: Measure) -> Figure | None:
    """Panels of one scale; a variant has the same colour in each, and the client's own floor stands in all."""
    floor = charts.Series("floor", "client's own floor", [cells.summary(key, FLOOR, measure) for key in keys])
    panels = []
    for engine in sorted(ENGINES, key=lambda engine: engine is not NDB):
        series = [charts.Series(QUARRY.roles[role], word(role), [cells.summary(key, variant, measure) for key in keys])
                  for role, variant in engine.roles.items() if any(cells.rounds(key, variant) for key in keys)]
        if series:
            panels.append(charts.Panel(_panel_title(engine), [key.threads for key in keys], [*series, *([floor] if any(floor.points) else [])]))
    if not panels:
        return None
    made = charts.line_panels(title, "users", title.partition(": ")[2], panels)
    highest = max(axes.get_ylim()[1] for axes in made.axes)
    for axes in made.axes:
        axes.set_ylim(0, highest)
    return made


def _panel_title(engine: Engine) -> str:
    return {QUARRY.suffix: "Quarry, DEFAULTS=NDB"}.get(engine.suffix, engine.name.replace(" with its", ","))


def _memory(cells: Cells, keys: list[CellKey]) -> Figure | None:
    sizes = sorted({key.size_bytes for key in keys})
    series = []
    for variant in cells.variants():
        found = [next((s for key in keys if key.size_bytes == size and (s := cells.summary(key, variant, memory_ratio))), None) for size in sizes]
        if any(found):
            series.append(charts.Series(variant, cells.label(variant), found))
    if not series:
        return None
    return charts.bars("memory per payload byte after every row was read (NDB: both copies)", "bytes of memory per byte", "value size",
                       [size_label(size) for size in sizes], series, 9.6)


def _sweep(cells: Cells) -> Figure | None:
    key, series, sizes = CellKey("mix", SWEEP_SIZE, SWEEP_THREADS), [], []
    for engine in ENGINES:
        by_size = sweep(cells, engine)
        if len(by_size) > 2:
            sizes = [size_label(size) for size in by_size]
            series.append(charts.Series(engine.roles["default"], _panel_title(engine), [cells.summary(key, v, throughput) for v in by_size.values()]))
    if not series:
        return None
    title = f"batch bytes, {size_label(SWEEP_SIZE)} values, {SWEEP_THREADS} users"
    return charts.lines(title, "batch bytes", "transactions per second", sizes, series)


def _more_data(cells: Cells, what: str, measure: Measure) -> Figure | None:
    keys = [key for key in cells.keys() if key.setting == MORE_DATA]
    series = [charts.Series(variant, cells.label(variant), [cells.summary(key, variant, measure) for key in keys])
              for variant in cells.variants() if any(cells.rounds(key, variant) for key in keys)]
    return charts.lines(f"{MORE_DATA}, {MORE_DATA_KIB} KB values", "users", what, [key.threads for key in keys], series) if series else None
