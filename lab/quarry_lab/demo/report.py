"""
build/report/index.html: one file, nothing fetched from anywhere, readable in light and dark.

render() is a pure function from the result dictionary (demo.json) to the page; every figure in it comes from the raw
rounds by way of summary.py. Sentences that judge a figure are chosen by that figure.
"""

from __future__ import annotations

import time
from html import escape
from pathlib import Path
from string import Template

from ..report import stats
from . import report_e1, report_space, summary, svg
from .tables import DATA_SETS, NDB_INLINE_BYTES, VARBINARY_BYTES_MAX, VARIANTS

_TEMPLATE = Path(__file__).parent / "templates" / "page.html"
_STYLE = Path(__file__).parent.parent / "page.css"


def render(result: dict) -> str:
    page = Page(result)
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(page.pieces())


def _capital(text: str) -> str:
    return escape(text[:1].upper() + text[1:])


class Page:
    """Holds the result while its pieces are made. Immutable after construction."""

    def __init__(self, result: dict):
        self.result = result
        self.measures = {m.key: m for m in summary.measures(result["settings"])}
        self.many = result["settings"]["many_clients"]
        self.rounds = result["settings"]["rounds"]
        self.variants = result["settings"]["variants"]
        self.wrong = summary.mismatches(result)

    def pieces(self) -> dict[str, str]:
        corpus = self.result["corpus"]
        return {
            "style": _STYLE.read_text(encoding="utf-8"),
            "commit": escape(self.result["machine"]["commit"] or "unversioned"),
            "date": time.strftime("%e %B %Y, %H:%M", time.localtime(self.result["started"])).strip(),
            "headline": escape(self._headline()),
            "lead": self._lead(),
            "figures": "".join(self._figures()),
            "alarm": self._alarm(),
            "side_by_side_text": self._side_by_side_text(),
            "tables": "".join(self._table(d) for d in DATA_SETS if self._keys(d)),
            "table_note": self._table_note(),
            "speed_text": self._speed_text(),
            "speed_charts": self._charts(("load_1", f"load_{self.many}", "reads", "updates")),
            "space_text": self._space_text(),
            "space_charts": self._charts(("written_many", "written_updates", "disk", "pages")),
            "files_text": self._files_text(),
            "histogram": svg.histogram(
                "Files and megabytes by size",
                corpus["octaves"],
                "; the lighter part of a column was generated" if corpus["generated_files"] else "",
            ),
            "kinds_text": self._kinds_text(),
            "overwrite_section": report_space.section(self.result["overwrite"]) if "overwrite" in self.result else "",
            "curve_section": (
                report_e1.section(self.result["e1"], self.result["machine"]) if "e1" in self.result else ""
            ),
            "crash_section": self._crash_section(),
            "configuration": self._configuration(),
            "create_tables": escape("\n".join(statement + ";" for statement in self.result["create_table"].values())),
            "not_measured": self._not_measured(),
            "footer": self._footer(),
        }

    # --- figures ---
    def _keys(self, data_set) -> list[str]:
        return [key for key in data_set.variants if key in self.variants]

    def _summary(self, data_set: str, key: str, measure: str) -> stats.Summary | None:
        return summary.summarize(self.result, data_set, key, self.measures[measure])

    def _ratio(self, measure: str, data_set: str = "all") -> stats.Summary | None:
        return summary.ratio(self.result, data_set, "quarry", "innodb", self.measures[measure])

    def _form(self, data_set: str, key: str, measure: str) -> str:
        return summary.form(self._summary(data_set, key, measure), self.measures[measure])[0]

    @property
    def _both(self) -> bool:
        return "quarry" in self.variants and "innodb" in self.variants

    # --- top ---
    def _headline(self) -> str:
        corpus = self.result["corpus"]
        what = summary.counted(corpus["files"], "file") + (
            "" if corpus["generated_files"] * 2 > corpus["files"] else " of this machine"
        )
        if not self._both:
            return what + ", stored and read back"
        return f"{what}, in InnoDB and in Quarry"

    def _lead(self) -> str:
        corpus, crash = self.result["corpus"], self.result.get("crash")
        text = (
            f"{corpus['bytes'] / 1e6:,.0f} MB, from {corpus['smallest_bytes']:,} bytes to"
            f" {corpus['largest_bytes'] / 1e6:.0f} MB, were loaded into the same table in each engine of one server,"
            f" {self.rounds} times over, by 1 client and by {self.many}, one durable commit a file. Every file was read"
            f" back through an ordinary client and compared by SHA-256: {self.result['verified_rows']:,} values, "
            + (f'<span class="bad strong">{len(self.wrong)} of them wrong</span>.' if self.wrong else "all equal.")
        )
        if crash:
            totals = summary.crash_totals(crash)
            text += f" Then the server was killed {totals['kills']} times in mid-load."
        return text

    def _figures(self) -> list[str]:
        cards = []
        if self._both:
            for measure, text in (
                (f"load_{self.many}", f"MB/s loaded by {self.many} clients"),
                ("reads", "random reads per second"),
                ("written_many", "bytes written per payload byte"),
                ("pages", "buffer-pool pages for the same files"),
            ):
                ratio = self._ratio(measure)
                cards.append(
                    self._card(
                        self._form("all", "quarry", measure),
                        text,
                        f"InnoDB: {self._form('all', 'innodb', measure)}"
                        + (f" ({ratio.median:.2f}×)" if ratio else ""),
                    )
                )
        if crash := self.result.get("crash"):
            totals = summary.crash_totals(crash)
            css = "bad" if totals["lost_or_wrong"] else "good"
            cards.append(
                f'<div class="figure"><b class="{css}">{totals["lost_or_wrong"]}</b><span>rows lost or torn by'
                f' {totals["kills"]} × kill -9</span><small>{totals["acknowledged"]:,} acknowledged'
                " commits</small></div>"
            )
        return cards

    @staticmethod
    def _card(figure: str, text: str, small: str) -> str:
        return f'<div class="figure"><b>{figure}</b><span>{escape(text)}</span><small>{escape(small)}</small></div>'

    def _alarm(self) -> str:
        if not self.wrong:
            return ""
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.wrong[:50])
        return f'<div class="card wide"><h3 class="bad">{len(self.wrong)} mismatches</h3><ul>{lines}</ul></div>'

    # --- tables ---
    def _side_by_side_text(self) -> str:
        text = (
            f"Median of {self.rounds} rounds, with the range below it. The rounds were interleaved in random order and"
            " the server settled between them, so that no engine pays for what another left behind. VARBINARY takes"
            f" part where a file fits a row: up to {VARBINARY_BYTES_MAX:,} bytes."
        )
        usage = self.result["processor_usage"]
        if usage["noisy"]:
            text += (
                f' <span class="bad strong">The machine was not quiet</span>: other programs used'
                f" {usage['other_cpus']:.2f} of its {self.result['machine']['processors']} processors, and the"
                f" hypervisor took {usage['steal_cpus']:.2f}. Take the figures with care, or run it again when it is."
            )
        return text

    def _table(self, data_set) -> str:
        keys, described = self._keys(data_set), self.result["data_sets"][data_set.key]
        compares = "quarry" in keys and "innodb" in keys
        head = "".join(
            f'<th><span class="swatch" style="background:var(--{key})"></span>{escape(VARIANTS[key].label)}</th>'
            for key in keys
        )
        rows = []
        for measure in self.measures.values():
            cells = []
            for key in keys:
                median, spread = summary.form(summary.summarize(self.result, data_set.key, key, measure), measure)
                cells.append(f'<td><span class="strong">{median}</span><small>{spread}</small></td>')
            if compares:
                cells.append(self._ratio_cell(data_set.key, measure))
            unit = f' <span class="muted">{escape(measure.unit)}</span>' if measure.unit else ""
            rows.append(f"<tr><td>{escape(measure.label)}{unit}</td>{''.join(cells)}</tr>")
        title = (
            f"{data_set.label[0].upper()}{data_set.label[1:]}: {summary.counted(described['files'], 'file')},"
            f" {described['bytes'] / 1e6:,.0f} MB"
        )
        last = "<th>Quarry ÷ LONGBLOB</th>" if compares else ""
        return (
            f'<h3 style="margin-top:26px">{escape(title)}</h3><div'
            f' class="scroll"><table class="sides"><tr><th></th>{head}{last}</tr>{"".join(rows)}</table></div>'
        )

    def _ratio_cell(self, data_set: str, measure: summary.Measure) -> str:
        ratio = summary.ratio(self.result, data_set, "quarry", "innodb", measure)
        if not ratio:
            return "<td></td>"
        css = {1: "good", -1: "bad", 0: ""}[summary.verdict(ratio, measure)]
        spread = f"{ratio.low:.2f} – {ratio.high:.2f}" if ratio.rounds > 1 else ""
        return f'<td><span class="strong {css}">{ratio.median:.2f}×</span><small>{spread}</small></td>'

    def _table_note(self) -> str:
        ceiling = self.result["client_ceiling"]
        return (
            "The client itself, measured by the same load into BLACKHOLE, which throws every row away:"
            f" {ceiling['load_1']['bytes_per_second'] / 1e6:,.0f} MB/s with 1 client,"
            f" {ceiling[f'load_{self.many}']['bytes_per_second'] / 1e6:,.0f} MB/s with {self.many}; client and server"
            f" share {self.result['machine']['processors']} processors. Bytes written are those that the server's"
            " process made the device write from the first statement until everything had settled; the file system's"
            " journal is not among them. The ratio is the median of the rounds' own ratios; green and red mark what"
            " was more than 2% in Quarry's favour, or against it, in every round."
        )

    # --- charts ---
    def _charts(self, keys: tuple[str, ...]) -> str:
        charts = []
        for data_set in DATA_SETS:
            variants = self._keys(data_set)
            cards = "".join(self._chart(data_set.key, variants, key) for key in keys)
            described = self.result["data_sets"][data_set.key]
            charts.append(
                f'<h3 style="margin-top:26px">{_capital(data_set.label)}'
                f' ({described["bytes"] / 1e6:,.0f} MB)</h3><div class="grid two">{cards}</div>'
            )
        return "".join(charts)

    def _chart(self, data_set: str, variants: list[str], key: str) -> str:
        measure = self.measures[key]
        rows = [
            svg.Bar(v, VARIANTS[v].label, s)
            for v in variants
            if (s := summary.summarize(self.result, data_set, v, measure))
        ]
        reference, label = None, ""
        if key == "disk":
            reference, label = self.result["data_sets"][data_set]["bytes"] / 1e6, "the files themselves"
        elif key.startswith("written"):
            reference, label = 1.0, "1 byte per byte"
        unit = f' <span class="muted">{escape(measure.unit)}</span>' if measure.unit else ""
        hint = "" if measure.better > 0 else ' <span class="muted">(less is better)</span>'
        chart = svg.bars(measure.label, rows, measure.form, reference, label)
        return f'<figure class="card"><h3>{_capital(measure.label)}{unit}{hint}</h3>{chart}</figure>'

    def _speed_text(self) -> str:
        settings = self.result["settings"]
        stride = settings["one_client_stride"]
        slow = (
            f" A flush takes so long on this device that one client loaded every {summary.ordinal(stride)} file only,"
            " by size."
        )
        return (
            f"A load is one INSERT and one durable commit for each file.{slow if stride > 1 else ''} Random reads fetch"
            f" whole files by primary key, {settings['read_clients']} clients for {settings['read_seconds']:g} s,"
            " everything in memory; updates give random rows the content of other random files,"
            f" {settings['update_clients']} clients, {settings['update_seconds']:g} s. Whiskers show the range over the"
            " rounds."
        )

    def _space_text(self) -> str:
        return (
            "InnoDB writes a large value twice, through its redo log and into the table's pages; Quarry appends it once"
            f" to a segment and keeps a locator in the row.{self._zeroed_text()} The buffer pool then holds rows, not"
            " payloads. Quarry's payloads are read through the system's page cache, which is memory too. By default a"
            " value of up to 4 KB stays whole in the row, of a longer one nothing but the locator; with the NDB comment"
            f" {NDB_INLINE_BYTES} bytes of every value do."
        )

    def _zeroed_text(self) -> str:
        """Said only when it was so: how much of what a lone committer wrote were zeros."""
        cells = summary.cells_of(self.result, "all", "quarry")
        zeros = sum(c["load_1"]["quarry_status"].get("quarry_zero_bytes_written", 0) for c in cells)
        payload = sum(c["load_1"]["payload_bytes"] for c in cells)
        if not payload or zeros < 0.1 * payload:
            return ""
        return (
            " A lone committer writes into space filled with zeros ahead of it, which makes its flush cheaper and its"
            f" bytes more ({zeros / payload:.2f} bytes of zeros per payload byte in the 1-client load); committers that"
            " share a flush need none."
        )

    # --- the files ---
    def _files_text(self) -> str:
        corpus = self.result["corpus"]
        text = (
            f"A seeded sample of {summary.counted(corpus['scanned_files'], 'file')} between 1 KB and 20 MB found under"
            f" <code>{escape(' '.join(corpus['roots']))}</code>, with a share of the bytes for every octave of sizes."
            f" zlib at its fastest makes them {corpus['zlib1_ratio']:.1f} times smaller; no codec was used here."
        )
        if corpus["generated_files"]:
            text += (
                f" The machine had too few: {summary.counted(corpus['generated_files'], 'file')} ({corpus['generated_bytes'] / 1e6:,.0f}"
                " MB) are generated JSON documents, HTML pages, logs, serialized objects and image-like data."
            )
        return text

    def _kinds_text(self) -> str:
        kinds = sorted(self.result["corpus"]["kinds"].items(), key=lambda item: -item[1]["bytes"])
        return (
            "By kind: "
            + "; ".join(
                f"{escape(kind)}{' (generated)' if entry['generated'] else ''} {entry['files']:,}"
                f" ({entry['bytes'] / 1e6:,.1f} MB)"
                for kind, entry in kinds
            )
            + "."
        )

    # --- kill -9 ---
    def _crash_section(self) -> str:
        crash = self.result.get("crash")
        if not crash:
            return ""
        totals, rows = summary.crash_totals(crash), []
        for cycle in crash["cycles"]:
            wrong = len(cycle["wrong"])
            cells = (cycle["acknowledged"], cycle["acknowledged_rows"], cycle["intact"])
            rows.append(
                f"<tr><td>{cycle['cycle']}</td>" + "".join(f"<td>{v:,}</td>" for v in cells) + '<td><span class="strong'
                f' {"bad" if wrong else "good"}">{wrong}</span></td><td>{cycle["in_flight_there"]} /'
                f' {cycle["in_flight_absent"]}</td>'
                f"<td>{cycle['rolled_back']:,}</td><td>{cycle['times']['ready'] - cycle['times']['restart']:.1f}"
                " s</td></tr>"
            )
        head = (
            "kill",
            "commits acknowledged before it",
            "rows checked",
            "intact",
            "lost or torn",
            "under way: there / absent",
            "rolled back, absent",
            "back after",
        )
        story = (
            f"{crash['clients']} clients insert and update rows of {escape(VARIANTS[crash['variant']].label)}, alone"
            " and in transactions of two rows, and now and then roll back; each notes the SHA-256 of what was"
            " acknowledged. In the middle of it the server gets SIGKILL, is started again, and every row is read and"
            " compared. "
            + (
                "Nothing acknowledged was lost, nothing was torn, nothing rolled back came back."
                if not totals["lost_or_wrong"]
                else f'<span class="bad strong">{totals["lost_or_wrong"]} rows were lost or wrong.</span>'
            )
        )
        return (
            f'<section><h2>kill -9 in mid-load</h2><p>{story}</p><figure class="card'
            f" wide\">{svg.timeline('Commits of each client over time, with the kills', crash['cycles'])}</figure>"
            f'<div class="scroll"><table><tr>{"".join(f"<th>{h}</th>" for h in head)}</tr>{"".join(rows)}</table></div>'
            '<p class="note">A transaction under way when the server died may be there or not, but only as a whole: its'
            " client never heard. "
            "SIGKILL ends the process, not the machine: what the kernel held in its page cache was not lost. Power cuts"
            " are simulated by the core's own tests.</p></section>"
        )

    # --- below ---
    def _configuration(self) -> str:
        result, machine, server = self.result, self.result["machine"], self.result["server"]
        probe = result["device"]
        rows = [
            (
                "processors",
                f"{machine['cpu']}, {machine['processors']} (server, clients and this report's program share them)",
            ),
            (
                "memory",
                (
                    f"{stats.human_bytes(machine['memory_bytes'])},"
                    f" {stats.human_bytes(result['memory']['MemAvailable'])} available at the start"
                ),
            ),
            (
                "kernel, file system",
                f"{machine['kernel']}; {machine['device'] or 'no block device'}: {machine['file_system']}",
            ),
            (
                "device",
                (
                    f"{probe['sequential_write_bytes_per_second'] / 1e6:,.0f} MB/s sequential (4 writers, direct I/O);"
                    f" a durable 64 KB write: {probe['durable_64KB_growing_us_median']:,.0f} µs into a growing file,"
                    f" {probe['durable_64KB_overwriting_us_median']:,.0f} µs into written space"
                ),
            ),
            (
                "server",
                f"MariaDB {server['version']}"
                + (f", plugin sha256 {server['plugin_sha256'][:16]}" if server["plugin_sha256"] else ""),
            ),
            ("settings", ", ".join(f"{k}={v}" for k, v in server["pinned"].items())),
        ]
        if server["quarry_variables"]:
            rows.append(
                ("Quarry's settings", ", ".join(f"{k}={v}" for k, v in server["quarry_variables"].items() if v != ""))
            )
        rows.append(
            (
                "client",
                (
                    "MariaDB's connector, prepared statements, binary parameters, SET NAMES binary; one process and one"
                    " connection a client, over a Unix socket"
                ),
            )
        )
        usage = result["processor_usage"]
        rows.append(
            (
                "processors used",
                f"on average over the comparison: server {usage['server_cpus']:.2f}, clients"
                f" {usage['client_cpus']:.2f}, kernel threads {usage['kernel_cpus']:.2f}, other programs"
                f" {usage['other_cpus']:.2f}, taken by the hypervisor {usage['steal_cpus']:.2f}",
            )
        )
        rows.append(("seed", str(result["corpus"]["seed"])))
        return "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in rows)

    def _not_measured(self) -> str:
        settings = self.result["settings"]
        items = [
            (
                f"Long runs. A phase here lasts seconds ({settings['read_seconds']:g} s for reads and updates);"
                " throughput over hours, with the buffer pool and the redo log under pressure, is another matter."
            ),
            (
                "Cold reads. Everything was read from memory: InnoDB's from its buffer pool, Quarry's payloads from the"
                " page cache."
            ),
            "Short memory. The machine had memory to spare, which favours engines that write through the page cache.",
            "Compression. No CODEC was set, and no page compression.",
            "Replication, the binary log, networks: one server, its clients on the same machine, binary log off.",
            "Power cuts. kill -9 takes the process only.",
        ]
        return "".join(f"<li>{escape(item)}</li>" for item in items)

    def _footer(self) -> str:
        minutes, seconds = divmod(int(self.result["seconds"]), 60)
        return (
            f"Measured in {minutes} min {seconds} s by <code>make demo</code>. The raw rounds are in <a"
            ' href="demo.json" style="color:inherit">demo.json</a> beside this page.'
        )
