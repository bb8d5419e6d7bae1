"""E5's tables and charts: throughput and latency per workload, and second by second what device, processors and network did."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from ...design.cells import CellKey, Cells, bytes_written_ratio, throughput
from ...design.results import RunDirectory
from ...load.ycsb import WORKLOADS
from ...probes.timeline import GC_AT_WORK, NDB_CHECKPOINTS
from ...report import charts, stats
from ...run.tables import add_sections, median_text, notes_on
from .engines import LIMITED_NETWORK, ONE_PATH, Setting
from .findings import device_share, payload_rate, read_latency_ms, write_latency_ms

_MB = 1e6  # as the document has rates
_TIMELINES = ("load", "published")  # the workloads whose last round is drawn over time
_CAPTION = """Medians over the rounds. range: lowest to highest; / InnoDB: round by round; ms: means of the whole run, warm-up included;
device: the part of each second that the device would need for the payload, at its raw rates;
B/B: bytes that the server's process wrote per payload byte, until settled"""
_BESIDE_LOAD = {GC_AT_WORK: "Quarry's GC", NDB_CHECKPOINTS: "NDB's local checkpoint"}


def conditions(run: dict) -> str:
    """The sizes and limits that figures of a run depend on."""
    session, options = run["sessions"][-1], run["parameters"]["options"]
    limit = session["memory_limit"]
    bound = limit.get("limit_bytes") or limit["cache_bytes"]
    said = [f"{stats.human_bytes(session['payload_bytes'])} of payload", f"memory of the private servers: {limit['how']}, {stats.human_bytes(bound)}"]
    said += _page_buffers(run)
    if options["drives"]:
        said.append(f"drives of {options['drive_mbytes']} MiB/s for reads and as much for writes, the log's without a quota")
    if options["link_mbits"]:
        said.append(f"a limited network of {options['link_mbits']} Mbit/s each way{''.join(map(_given, session['links']))}")
    return "; ".join(said)


def _page_buffers(run: dict) -> list[str]:
    """Of tables on disk, next to the private servers' limit; empty where no cluster of `make ndb` ran."""
    nodes = [server["data_nodes"] for session in run["sessions"] for server in session.get("servers", {}).values() if "data_nodes" in server]
    return [f"page buffer of each data node of NDB: {nodes[-1]['DiskPageBufferMemory']}"] if nodes else []


def _given(link: dict) -> str:
    """What stands behind what was asked of a link."""
    return f" (by {link['by'].split()[0]}; one connection got {stats.human_bytes(link['measured_bytes_per_second'])}/s)"


def tables(run: RunDirectory, labels: dict[str, str]) -> list[Table]:
    cells = Cells(run.points, labels)
    table = Table(title=f"E5: {conditions(run.run)}", header_style="bold", box=box.SIMPLE_HEAD, caption=_CAPTION, caption_justify="left")
    for heading in ("workload", "engine"):
        table.add_column(heading, no_wrap=True)
    for heading in ("events/s", "range", "/ InnoDB", "read ms", "write ms", "payload MB/s", "device", "B/B"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("notes")
    sections = [(workload.label, [k for k in cells.keys() if k.operation == operation]) for operation, workload in WORKLOADS.items()]
    add_sections(table, cells, sections, lambda key, variant: _row(cells, key, variant, run.run))
    return [table]


def _row(cells: Cells, key: CellKey, variant: str, run: dict) -> list[str]:
    rate, payload = cells.summary(key, variant, throughput), cells.summary(key, variant, payload_rate)
    assert rate and payload
    innodb = stats.paired_ratio(cells.values(key, variant, throughput), cells.values(_innodb_beside(key), "innodb", throughput))
    share = cells.summary(key, variant, lambda p: device_share(p, run))
    written = cells.summary(key, variant, bytes_written_ratio)
    return [f"{cells.label(variant)}, {key.setting}{_level(cells, key.threads)}", f"[bold]{stats.human_count(rate.median)}[/bold]",
            f"[dim]{stats.human_count(rate.low)}-{stats.human_count(rate.high)}[/dim]", median_text(innodb, "{:.2f}x".format),
            median_text(cells.summary(key, variant, read_latency_ms), "{:.2f}".format), median_text(cells.summary(key, variant, write_latency_ms), "{:.2f}".format),
            f"{payload.median / 1e6:,.0f}", median_text(share, "{:.0%}".format), median_text(written, "{:.2f}".format),
            notes_on(cells, key, variant)]


def _level(cells: Cells, threads: int) -> str:
    """' x16' where more than one client level was measured."""
    return f" x{threads}" if len({key.threads for key in cells.keys()}) > 1 else ""


def _innodb_beside(key: CellKey) -> CellKey:
    """InnoDB on the same drives and network; on the machine's own device next to Quarry on several paths, which InnoDB does not have."""
    setting = Setting.of(key.setting)
    return key if setting.on_drives or setting.is_limited else replace(key, setting=ONE_PATH)


def figures(run: RunDirectory, labels: dict[str, str]) -> dict[str, Figure]:
    cells = Cells(run.points, labels)
    if not run.points:
        return {}
    plain = Cells([p for p in run.points if not Setting.of(p["setting"]).on_drives and p["setting"] != LIMITED_NETWORK], labels)
    made = {name: _bars(plain, title, unit, figure) for name, title, unit, figure in (
        ("throughput", "throughput", "operations per second", throughput),
        ("read-latency", "mean latency of reads", "milliseconds", read_latency_ms),
        ("write-latency", "mean latency of writes", "milliseconds", write_latency_ms)) if plain.keys()}
    made |= _over_drives(cells, run.run["parameters"]["options"])
    most = max((Setting.of(key.setting).paths for key in cells.keys() if Setting.of(key.setting).on_drives), default=0)
    for operation in _TIMELINES:
        for point in _last_rounds(run.points, operation):
            if Setting.of(point["setting"]).on_drives and Setting.of(point["setting"]).paths != most:
                continue
            where = f"{point['setting']}{_level(cells, point['threads'])}"
            name = f"timeline-{operation}-{point['variant']}-{where.replace(' ', '-')}"
            made[name] = timeline_figure(point, f"{WORKLOADS[operation].label}: {labels[point['variant']]}, {where}, round {point['round']}")
    return made


def _bars(cells: Cells, title: str, unit: str, figure) -> Figure:
    operations = [o for o in WORKLOADS if any(k.operation == o for k in cells.keys())]
    sides = sorted({(variant, key.setting, key.threads) for key in cells.keys() for variant in cells.variants() if cells.rounds(key, variant)},
                   key=lambda side: (cells.variants().index(side[0]), side[1:]))
    size = {key.operation: key.size_bytes for key in cells.keys()}
    series = [charts.Series(variant if setting == ONE_PATH else f"{variant}-head", f"{cells.label(variant)}, {setting}{_level(cells, threads)}",
                            [cells.summary(CellKey(o, size[o], threads, setting), variant, figure) for o in operations])
              for variant, setting, threads in sides]
    return charts.bars(title, unit, "workload", operations, series)


def _over_drives(cells: Cells, options: dict) -> dict[str, Figure]:
    """Throughput over the number of drives, a panel for the load and one for the mix; none without drives."""
    panels = []
    for operation in _TIMELINES:
        keys = [key for key in cells.keys() if key.operation == operation and Setting.of(key.setting).on_drives]
        for threads in sorted({key.threads for key in keys}):
            mine = sorted((key for key in keys if key.threads == threads), key=lambda key: Setting.of(key.setting).paths)
            series = [charts.Series(variant, cells.label(variant), [cells.summary(key, variant, throughput) for key in mine])
                      for variant in cells.variants() if any(cells.rounds(key, variant) for key in mine)]
            panels.append(charts.Panel(f"{WORKLOADS[operation].label}, x{threads}", [Setting.of(key.setting).paths for key in mine], series))
    title = f"throughput over drives of {options['drive_mbytes']} MiB/s each"
    return {"drives": charts.line_panels(title, "drives", "operations per second", panels)} if panels else {}


def _last_rounds(points: list[dict], operation: str) -> list[dict]:
    last: dict[tuple, dict] = {}
    for point in sorted((p for p in points if p["operation"] == operation), key=lambda p: p["round"]):
        last[point["variant"], point["setting"], point["threads"]] = point
    return list(last.values())


def timeline_figure(point: dict, title: str) -> Figure:
    """Throughput, device, processors and network above one time axis; ticks at the top where a checkpoint was written."""
    with plt.rc_context(charts.STYLE):
        figure, panels = plt.subplots(4, 1, figsize=(8, 7.2), sharex=True, layout="constrained")
        samples = point["timeline"]
        seconds = [s["second"] for s in samples]
        operations = [(when - point["timeline_started"], rate) for when, rate in point["operations_timeline"]]
        panels[0].plot([s for s, _r in operations], [r for _s, r in operations], color="#0072B2")
        panels[0].set(title=title, ylabel="operations/s")
        _draw_checkpoints(panels[0], samples)
        _draw_device(panels[1], seconds, samples)
        panels[2].plot(seconds, [100 * s["machine_busy_share"] for s in samples], color="#333333", label="all processors busy, %")
        panels[2].plot(seconds, [s["server_cpus"] * 100 for s in samples], color="#0072B2", label="server, % of one processor")
        panels[2].set(ylabel="processors")
        panels[2].legend(loc="upper right", fontsize=8)
        panels[3].plot(seconds, [s["network_bytes"] / _MB for s in samples], color="#009E73")
        panels[3].set(ylabel="network, MB/s", xlabel="seconds")
        for axes in panels:
            axes.set_ylim(bottom=0)
    return figure


def _beside_load(sample: dict) -> list[str]:
    """What was done in that second beside the load."""
    return [*sample["checkpoints"], *(name for key, name in _BESIDE_LOAD.items() if sample.get("work", {}).get(key))]


def _draw_checkpoints(axes: Axes, samples: list[dict]) -> None:
    names = sorted({name for sample in samples for name in _beside_load(sample)})
    top = axes.get_ylim()[1]
    for index, name in enumerate(names):
        at = [s["second"] for s in samples if name in _beside_load(s)]
        axes.plot(at, [top * (1.06 + 0.06 * index)] * len(at), linestyle="", marker="|", markersize=7, color=charts.color_of(name, index), label=name)
    if names:
        axes.legend(loc="lower right", fontsize=8, title="next to the load", title_fontsize=8)


def _draw_device(axes: Axes, seconds: list[float], samples: list[dict]) -> None:
    """The run's drives, or the device's own counters, or the server's where there is no block device."""
    if samples and "drives" in samples[0]:
        for index, name in enumerate(sorted(samples[0]["drives"])):
            axes.plot(seconds, [sum(s["drives"][name]) / _MB for s in samples], color=charts.color_of(name, index), label=name)
        axes.set(ylabel="drives, read and\nwritten, MB/s")
        axes.legend(loc="upper right", fontsize=8)
        return
    source = "device" if samples and "device_read_bytes" in samples[0] else "server"
    for direction, colour in (("read", "#009E73"), ("write", "#D55E00")):
        axes.plot(seconds, [s[f"{source}_{direction}_bytes"] / _MB for s in samples], color=colour, label=f"{source}, {direction}")
    axes.set(ylabel="MB/s")
    axes.legend(loc="upper right", fontsize=8)
    if source == "device":
        right = axes.twinx()
        right.plot(seconds, [100 * s["device_busy_share"] for s in samples], color="#999999", linestyle=":", linewidth=1)
        right.set(ylabel="busy, %", ylim=(0, 105))
        right.grid(visible=False)
