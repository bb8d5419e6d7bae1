"""
build/report/index.html: one file, nothing fetched from anywhere.

render() is a pure function from the result dictionary (demo.json) to the page; every figure in it comes from the raw
rounds by way of summary.py. Sentences that judge a figure are chosen by that figure.
"""

from __future__ import annotations

from html import escape

from matplotlib.figure import Figure

from ..report import charts, page, stats
from ..report.html_table import html_table
from ..report.stats import counted
from ..report.verdicts import FAIR_ROUNDS
from ..run.tables import size_label
from . import console, figures, report_e1, report_space, summary
from .tables import DATA_SETS, NDB_INLINE_BYTES, VARBINARY_BYTES_MAX, VARIANTS


def render(result: dict) -> str:
    return Page(result).html()


class Page:
    """Holds the result while its pieces are made. Immutable after construction."""

    def __init__(self, result: dict):
        self.result = result
        self.measures = {m.key: m for m in summary.measures(result["settings"])}
        self.many = result["settings"]["many_clients"]
        self.rounds = result["settings"]["rounds"]
        self.variants = result["settings"]["variants"]
        self.wrong = summary.mismatches(result)

    def html(self) -> str:
        return page.render(
            title="Quarry on this machine", commit=self.result["machine"]["commit"], started=self.result["started"], headline=self._headline(),
            lead_html=self._lead(), alarms=self._alarms(), tiles_html=self._tiles(), sections=self._sections(), footer_html=self._footer())

    def _sections(self) -> list[str]:
        result = self.result
        made = [
            page.section("Side by side", *self._tables()),
            page.section("Loading, reading, updating", self._speed_text(), *self._charts(("load_1", f"load_{self.many}", "reads", "updates"))),
            page.section("Bytes written, space, memory", self._space_text(), *self._charts(("written_many", "written_updates", "disk", "pages"))),
            page.section("The files", self._files_text(), page.gallery(self._histograms()), self._kinds_text()),
        ]
        if "overwrite" in result:
            made.append(report_space.section(result["overwrite"]))
        if "e1" in result:
            made.append(report_e1.section(result["e1"], result["machine"]))
        if "crash" in result:
            made.append(self._crash_section(result["crash"]))
        statements = escape("\n".join(statement + ";" for statement in result["create_table"].values()))
        made.append(page.section("Machine and server", page.definitions(self._configuration()), f"<h3>The tables</h3><pre>{statements}</pre>"))
        made.append(page.section("What was not measured", f"<ul>{self._not_measured()}</ul>"))
        return made

    # --- top ---
    def _headline(self) -> str:
        corpus = self.result["corpus"]
        what = counted(corpus["files"], "file") + ("" if corpus["generated_files"] * 2 > corpus["files"] else " of this machine")
        both = {"quarry", "innodb"} <= set(self.variants)
        return f"{what}, in InnoDB and in Quarry" if both else f"{what}, stored and read back"

    def _lead(self) -> str:
        corpus, crash = self.result["corpus"], self.result.get("crash")
        text = (
            f"{corpus['bytes'] / 1e6:,.0f} MB, from {corpus['smallest_bytes']:,} bytes to"
            f" {corpus['largest_bytes'] / 1e6:.0f} MB, were loaded into the same table in each engine of one server,"
            f" in {counted(self.rounds, 'round')}, by 1 client and by {self.many}, one durable commit a file. Every file was read"
            f" back through an ordinary client and compared by SHA-256: {counted(self.result['verified_rows'], 'value')}, "
            + (f'<span class="bad strong">{len(self.wrong)} of them wrong</span>.' if self.wrong else "all equal.")
        )
        if crash:
            text += f" Then the server was killed {counted(summary.crash_totals(crash)['kills'], 'time')} in mid-load."
        return text

    def _alarms(self) -> list[str]:
        found = [f"{counted(len(self.wrong), 'value')} wrong: {'; '.join(self.wrong[:50])}"] if self.wrong else []
        usage = self.result["processor_usage"]
        if self.rounds < FAIR_ROUNDS:
            found.append(f"A quick run that judges nothing: {counted(self.rounds, 'round')}, and a judgement takes {FAIR_ROUNDS}."
                         " Figures are shown, no conclusion is drawn.")
        if usage["noisy"]:
            found.append(f"The machine was not quiet: other programs used {usage['other_cpus']:.2f} of its"
                         f" {counted(self.result['machine']['processors'], 'processor')}, and the hypervisor took {usage['steal_cpus']:.2f}. Take the"
                         " figures with care, or run it again when it is.")
        return found

    def _tiles(self) -> list[str]:
        tiles = [self._tile(measure, text) for measure, text in (
            (f"load_{self.many}", f"MB/s loaded by {self.many} clients"), ("reads", "random reads per second"),
            ("written_many", "bytes written per payload byte"), ("pages", "buffer-pool pages for the same files"),
        )] if {"quarry", "innodb"} <= set(self.variants) else []
        if crash := self.result.get("crash"):
            totals = summary.crash_totals(crash)
            tiles.append(page.tile(
                str(totals["lost_or_wrong"]), f"rows lost or torn by {totals['kills']} × kill -9",
                f"{counted(totals['acknowledged'], 'acknowledged commit')}", "bad" if totals["lost_or_wrong"] else "good"))
        return tiles

    def _tile(self, key: str, text: str) -> str:
        measure = self.measures[key]
        ours, theirs = (summary.form(summary.summarize(self.result, "all", variant, measure), measure)[0] for variant in ("quarry", "innodb"))
        ratio = summary.quotient(ours, theirs)
        return page.tile(ours, text, f"InnoDB: {theirs}" if ratio is None else f"{ratio:.2f} × InnoDB's {theirs}")

    # --- tables ---
    def _tables(self) -> list[str]:
        ceiling = self.result["client_ceiling"]
        return [
            f"<p>Median of {counted(self.rounds, 'round')}, with the range below it. The rounds were interleaved in random order and"
            " the server settled between them, so that no engine pays for what another left behind. VARBINARY takes"
            f" part where a file fits a row: up to {VARBINARY_BYTES_MAX:,} bytes.</p>",
            *(html_table(table, kept=VARIANTS["quarry"].label) for table in console.comparison_tables(self.result)),
            '<p class="note">The client itself, measured by the same load into BLACKHOLE, which throws every row away:'
            f" {ceiling['load_1']['bytes_per_second'] / 1e6:,.0f} MB/s with 1 client,"
            f" {ceiling[f'load_{self.many}']['bytes_per_second'] / 1e6:,.0f} MB/s with {self.many}; client and server"
            f" share {counted(self.result['machine']['processors'], 'processor')}. Bytes written are those that the server's"
            " process made the device write from the first statement until everything had settled; the file system's"
            f" journal is not among them. ‘{console.RATIO}’ is the median of the rounds' own ratios. Green and red mark what was more than"
            f" {summary.CLEAR:.0%} in Quarry's favour, or against it, in every one of at least {FAIR_ROUNDS} rounds.</p>",
        ]

    # --- charts ---
    def _charts(self, keys: tuple[str, ...]) -> list[str]:
        made = []
        for data_set in DATA_SETS:
            size = self.result["data_sets"][data_set.key]["bytes"] / 1e6
            shown = [self._chart(data_set.key, [v for v in data_set.variants if v in self.variants], key) for key in keys]
            title = f"{data_set.label[:1].upper()}{data_set.label[1:]} ({size:,.0f} MB)"
            made.append(f"<h3>{escape(title)}</h3>{page.gallery(figure for figure in shown if figure)}")
        return made

    def _chart(self, data_set: str, variants: list[str], key: str) -> Figure | None:
        measure = self.measures[key]
        medians = {v: s for v in variants if (s := summary.summarize(self.result, data_set, v, measure))}
        if not medians:
            return None
        reference = None
        if key == "disk":
            reference = (self.result["data_sets"][data_set]["bytes"] / 1e6, "dashed: the files themselves")
        elif key.startswith("written"):
            reference = (1.0, "dashed: 1 byte per byte")
        title = measure.label + (f", {measure.unit}" if measure.unit else "") + ("" if measure.better > 0 else " (less is better)")
        series = [charts.Series(v, VARIANTS[v].label, [s]) for v, s in medians.items()]
        return charts.bar_panels(title, [charts.Panel("", [""], series, reference)])

    def _histograms(self) -> list[Figure]:
        """Files and bytes by octave of size."""
        octaves = self.result["corpus"]["octaves"]

        def drawn(title: str, unit: str, *series: tuple[str, str, list[float]]) -> Figure:
            points = [charts.Series(key, label, [stats.summarize([value]) if value else None for value in values]) for key, label, values in series]
            return charts.bars(title, unit, "size, from this to twice this", [size_label(o["from_bytes"]) for o in octaves], points, width=4.6)

        found = ("quarry", "found", [o["files"] - o["generated_files"] for o in octaves])
        generated = ("quarry-head", "generated", [o["generated_files"] for o in octaves])
        return [drawn("Files by size", "files", *([found, generated] if any(generated[2]) else [found])),
                drawn("Megabytes by size", "megabytes", ("quarry", "megabytes", [o["bytes"] / 1e6 for o in octaves]))]

    def _speed_text(self) -> str:
        settings = self.result["settings"]
        stride = settings["one_client_stride"]
        slow = f" A flush takes so long on this device that one client loaded every {summary.ordinal(stride)} file only, by size."
        return (
            f"<p>A load is one INSERT and one durable commit for each file.{slow if stride > 1 else ''} Random reads fetch"
            f" whole files by primary key, {counted(settings['read_clients'], 'client')} for {settings['read_seconds']:g} s,"
            " everything in memory. Updates give random rows the content of other random files,"
            f" {counted(settings['update_clients'], 'client')}, {settings['update_seconds']:g} s. Whiskers show the range over the"
            " rounds.</p>"
        )

    def _space_text(self) -> str:
        return (
            "<p>InnoDB writes a large value twice, through its redo log and into the table's pages. Quarry appends it once"
            f" to a segment and keeps a locator in the row.{self._zeroed_text()} The buffer pool then holds rows, not"
            " payloads. Quarry's payloads are read through the system's page cache, which is memory too. By default a"
            " value of up to 4 KB stays whole in the row, of a longer one only the locator; with the NDB comment"
            f" {NDB_INLINE_BYTES} bytes of every value do.</p>"
        )

    def _zeroed_text(self) -> str:
        """Said only when it was so: how much of what a lone committer wrote were zeros."""
        cells = summary.cells_of(self.result, "all", "quarry")
        zeros = sum(c["load_1"]["quarry_status"].get("quarry_zero_bytes_written", 0) for c in cells)
        payload = sum(c["load_1"]["payload_bytes"] for c in cells)
        if not payload or zeros < 0.1 * payload:
            return ""
        return (
            " A lone committer writes into space that Quarry filled with zeros before. That makes its flush cheaper and its"
            f" bytes more ({zeros / payload:.2f} bytes of zeros per payload byte in the 1-client load); committers that"
            " share a flush need none."
        )

    # --- the files ---
    def _files_text(self) -> str:
        corpus = self.result["corpus"]
        text = (
            f"A seeded sample of {counted(corpus['scanned_files'], 'file')} between 1 KB and 20 MB found under"
            f" <code>{escape(' '.join(corpus['roots']))}</code>, with a share of the bytes for every octave of sizes."
            f" zlib at its fastest makes them {corpus['zlib1_ratio']:.1f} times smaller; no codec was used here."
        )
        if corpus["generated_files"]:
            text += (
                f" The machine had too few, so the demo generated {counted(corpus['generated_files'], 'file')}"
                f" ({corpus['generated_bytes'] / 1e6:,.0f} MB) like JSON documents, HTML pages, logs, serialized objects and images."
            )
        return f"<p>{text}</p>"

    def _kinds_text(self) -> str:
        kinds = sorted(self.result["corpus"]["kinds"].items(), key=lambda item: -item[1]["bytes"])
        texts = (f"{kind}{' (generated)' if entry['generated'] else ''} {entry['files']:,} ({entry['bytes'] / 1e6:,.1f} MB)" for kind, entry in kinds)
        return f'<p class="note">By kind: {escape("; ".join(texts))}.</p>'

    # --- kill -9 ---
    def _crash_section(self, crash: dict) -> str:
        totals = summary.crash_totals(crash)
        story = (
            f"{counted(crash['clients'], 'client')} insert and update rows of {escape(VARIANTS[crash['variant']].label)}, alone"
            " and in transactions of two rows, and now and then roll back; each notes the SHA-256 of what was"
            " acknowledged. In the middle of it the server gets SIGKILL, is started again, and every row is read and"
            " compared. "
            + (
                "Nothing acknowledged was lost, nothing was torn, nothing rolled back came back."
                if not totals["lost_or_wrong"]
                else f'<span class="bad strong">{counted(totals["lost_or_wrong"], "row")} lost or wrong.</span>'
            )
        )
        return page.section(
            "kill -9 in mid-load", f"<p>{story}</p>", page.picture(figures.kills(crash["cycles"])), html_table(console.crash_table(crash)),
            '<p class="note">A transaction under way when the server died may be there or not, but only as a whole: its client never heard.'
            " SIGKILL ends the process, not the machine: what the kernel held in its page cache was not lost. Power cuts"
            " are simulated by the core's own tests.</p>",
        )

    # --- below ---
    def _configuration(self) -> list[tuple[str, str]]:
        result, machine, server = self.result, self.result["machine"], self.result["server"]
        probe, usage = result["device"], result["processor_usage"]
        plugin = f", plugin sha256 {server['plugin_sha256'][:16]}" if server["plugin_sha256"] else ""
        rows = [
            ("processors", f"{machine['cpu']}, {machine['processors']} (server, clients and this report's program share them)"),
            ("memory", f"{stats.human_bytes(machine['memory_bytes'])}, {stats.human_bytes(result['memory']['MemAvailable'])} available at the start"),
            ("kernel, file system", f"{machine['kernel']}; {machine['device'] or 'no block device'}: {machine['file_system']}"),
            (
                "device",
                f"{probe['sequential_write_bytes_per_second'] / 1e6:,.0f} MB/s sequential (4 writers, direct I/O);"
                f" a durable 64 KB write: {probe['durable_64KB_growing_us_median']:,.0f} µs into a growing file,"
                f" {probe['durable_64KB_overwriting_us_median']:,.0f} µs into written space",
            ),
            ("server", f"MariaDB {server['version']}{plugin}"),
            ("settings", ", ".join(f"{k}={v}" for k, v in server["pinned"].items())),
        ]
        if server["quarry_variables"]:
            rows.append(("Quarry's settings", ", ".join(f"{k}={v}" for k, v in server["quarry_variables"].items() if v != "")))
        return rows + [
            (
                "client",
                "MariaDB's connector, prepared statements, binary parameters, SET NAMES binary; one process and one"
                " connection a client, over a Unix socket",
            ),
            (
                "processors used",
                f"on average over the comparison: server {usage['server_cpus']:.2f}, clients {usage['client_cpus']:.2f}, kernel threads"
                f" {usage['kernel_cpus']:.2f}, other programs {usage['other_cpus']:.2f}, taken by the hypervisor {usage['steal_cpus']:.2f}",
            ),
            ("seed", str(result["corpus"]["seed"])),
        ]

    def _not_measured(self) -> str:
        seconds = self.result["settings"]["read_seconds"]
        items = [
            f"Long runs. A phase here lasts seconds ({seconds:g} s for reads and updates);"
            " throughput over hours, with the buffer pool and the redo log under pressure, is another matter.",
            "Cold reads. Everything was read from memory: InnoDB's from its buffer pool, Quarry's payloads from the page cache.",
            "Short memory. The machine had memory to spare, which favours engines that write through the page cache.",
            "Compression. No CODEC was set, and no page compression.",
            "Replication, the binary log, networks: one server, its clients on the same machine, binary log off.",
            "Power cuts. kill -9 takes the process only.",
        ]
        return "".join(f"<li>{escape(item)}</li>" for item in items)

    def _footer(self) -> str:
        return (
            f"Measured in {stats.human_seconds(self.result['seconds'])} by <code>make demo</code>. The raw rounds are in"
            ' <a href="demo.json">demo.json</a> next to this page.'
        )
