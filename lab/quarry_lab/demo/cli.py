"""
`python -m quarry_lab demo`: the order of steps, the arguments, the exit code.

Exit codes: 0 all compared well; 1 a value was wrong, or a step failed; 2 bad arguments or no room; 130 interrupted.
Invariant: what was started is stopped and what was written for measuring is removed, on success, error and Ctrl-C;
the report and demo.json stay.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import mariadb
import pymysql
from quarry_server.server import BUILD, PLUGIN, PrivateServer, ServerError, SqlError
from rich.console import Console

from ..design.request import LabError
from ..probes import device, noise
from ..report.stats import counted
from ..run import session
from ..servers.lab_server import ConfigurationError, LabServer
from ..servers.program import ProgramError
from . import (
    console as tables_console, corpus as corpus_module, crash as crash_module, curve as curve_module, measure, overwrite, report, space, summary, workers)
from .screen import Screen
from .tables import DATA_SETS, VARIANTS

EXIT_WRONG, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130
WORK = BUILD / "demo"
REPORT = BUILD / "report"
BUFFER_POOL_BYTES = 1 << 30
FAILURES = (
    LabError,
    ConfigurationError,
    ServerError,
    SqlError,
    ProgramError,
    workers.WorkerError,
    mariadb.Error,
    pymysql.Error,
    OSError,
)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m quarry_lab demo",
        description="Real files of this machine in InnoDB and in Quarry, side by side.",
    )
    parser.add_argument("--megabytes", type=_positive, default=256, help="files to load, in MB (default 256)")
    parser.add_argument("--rounds", type=_positive, default=3, help="rounds of the comparison (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each random-read and update phase (default 2)")
    parser.add_argument("--clients", type=_positive, default=32, help="of the many-client load (default 32)")
    parser.add_argument("--kills", type=int, default=3, help="times the server is killed (default 3; 0: never)")
    parser.add_argument(
        "--overwrites", type=int, default=20, help="of live data, with GC at work (default 20; 0: none)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the sample, the order and the generated documents (default 1)"
    )
    parser.add_argument(
        "--roots", default="/usr", help="directories to take files from, separated by commas (default /usr)"
    )
    parser.add_argument("--variants", default=",".join(VARIANTS), help=f"of {', '.join(VARIANTS)} (default all)")
    parser.add_argument("--without-e1", action="store_true", help="leave out the small E1 curve")
    parser.add_argument(
        "--output", type=Path, default=REPORT, help="directory of index.html and demo.json (default build/report)"
    )
    options = parser.parse_args(arguments)
    unknown = [key for key in options.variants.split(",") if key not in VARIANTS]
    if unknown:
        parser.error(f"unknown variant '{unknown[0]}' (allowed: {', '.join(VARIANTS)})")
    if options.clients < 2:
        parser.error(f"--clients {options.clients}: at least 2, beside the load from 1 client")
    if options.seconds < 0.5:
        parser.error(f"--seconds {options.seconds}: at least 0.5")
    if options.megabytes < 32:
        parser.error(f"--megabytes {options.megabytes}: at least 32, else the larger sizes are empty")
    return options


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: at least 1")
    return value


class Demo:
    """One run. Externally synchronised."""

    def __init__(self, options: argparse.Namespace, console: Console):
        self.options, self.console = options, console
        self.variants = tuple(options.variants.split(","))
        self.quarry = any(VARIANTS[key].is_quarry for key in self.variants)
        self.settings = measure.Settings(
            rounds=options.rounds,
            many_clients=options.clients,
            read_seconds=options.seconds,
            update_seconds=options.seconds,
            seed=options.seed,
            variants=self.variants,
        )
        plugin = PLUGIN if self.quarry else None
        pool = min(BUFFER_POOL_BYTES, device.memory_info()["MemTotal"] // 4 >> 20 << 20)
        self.server = LabServer("demo", WORK / "server", plugin, False, {"innodb_buffer_pool_size": pool})
        self.crash_server = PrivateServer(WORK / "crash", self.server.options(), plugin=plugin, drop=())
        self.overwrite_server = PrivateServer(WORK / "overwrite", self.server.options(), plugin=plugin, drop=())
        self.result: dict = {}

    def run(self) -> int:
        self.result["started"] = started = time.time()
        with session.exclusive(), Screen(self.console) as screen:
            self._remove_leftovers()
            space.check(WORK, self.options.megabytes * 1_000_000, self.options.seconds)
            try:
                corpus = self._gather(screen)
                self._start(screen)
                self._compare(screen, corpus)
                if not self.options.without_e1:
                    self._curve(screen)
                self.server.close()
                if self.options.overwrites and self.quarry:
                    self._overwrite(screen, corpus)
                if self.options.kills:
                    self._crash(screen, corpus)
            except (*FAILURES, AssertionError):
                self._show_dead_servers()
                raise
            finally:
                self._clean()
            self.result["seconds"] = round(time.time() - started, 1)
        return self._finish()

    def _remove_leftovers(self) -> None:
        """Of a run that was cut off so that it could not clean up: its servers first, then their data."""
        for directory in (WORK / "server", WORK / "overwrite", WORK / "crash"):
            leftover = PrivateServer(directory, plugin=None)
            if directory.exists() and leftover.adopt():
                leftover.kill()
        shutil.rmtree(WORK, ignore_errors=True)

    def _show_dead_servers(self) -> None:
        """The error log is removed with the data: what a server said last is shown before that."""
        for server in (self.server.server, self.overwrite_server, self.crash_server):
            if server and server.pid and not server.running():
                print(f"demo: the server ended by itself; {server.log_tail()}", file=sys.stderr)

    def _clean(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not leave a server behind
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.server.close()
        for server in (self.overwrite_server, self.crash_server):
            if server.running():
                server.kill()
        shutil.rmtree(WORK, ignore_errors=True)

    def _gather(self, screen: Screen) -> corpus_module.Corpus:
        screen.title("Files of this machine")
        with screen.phase("gathering", self.options.megabytes * 1e6) as on_progress:
            corpus = corpus_module.gather(
                self.options.roots.split(","),
                self.options.megabytes * 1_000_000,
                self.options.seed,
                lambda step, done, total: on_progress(0, done) if total else None,
            )
        described = corpus.describe()
        self.result["corpus"] = described
        self.result["data_sets"] = {d.key: self._data_set_record(corpus, d.size_bytes_max) for d in DATA_SETS}
        screen.line(
            f"{counted(described['files'], 'file')}, {described['bytes'] / 1e6:,.0f} MB, {described['smallest_bytes']:,} bytes"
            f" to {described['largest_bytes'] / 1e6:.1f} MB, of {described['scanned_files']:,} under"
            f" {' '.join(described['roots'])}; zlib -1 makes them {described['zlib1_ratio']:.1f} times smaller"
        )
        if described["generated_files"]:
            screen.line(
                f"this machine has too few: {counted(described['generated_files'], 'file')} of them"
                f" ({described['generated_bytes'] / 1e6:,.0f} MB) generated"
            )
        return corpus

    @staticmethod
    def _data_set_record(corpus: corpus_module.Corpus, size_bytes_max: int | None) -> dict:
        numbers = corpus.subset(size_bytes_max or 1 << 62)
        return {
            "files": len(numbers),
            "bytes": sum(corpus.items[i].size for i in numbers),
            "size_bytes_max": size_bytes_max,
        }

    def _start(self, screen: Screen) -> None:
        screen.title("A private server")
        WORK.mkdir(parents=True, exist_ok=True)
        with screen.phase("starting MariaDB, measuring the device"):
            probe = device.probe(WORK, 2.0)
            self.server.start()
        described = self.server.describe()
        stride = measure.one_client_stride(self.result["corpus"]["files"], probe["durable_64KB_growing_us_median"])
        self.settings = replace(self.settings, one_client_stride=stride)
        self.result.update(
            {
                "machine": session.machine(),
                "memory": device.memory_info(),
                "device": probe,
                "server": described,
                "settings": measure.settings_record(self.settings),
                "create_table": {key: VARIANTS[key].create_table() for key in self.variants},
            }
        )
        pinned = described["pinned"]
        screen.line(
            f"MariaDB {described['version']}, buffer pool {int(pinned['innodb_buffer_pool_size']) >> 20} MB, redo log"
            f" {int(pinned['innodb_log_file_size']) >> 20} MB,"
            f" flush_log_at_trx_commit={pinned['innodb_flush_log_at_trx_commit']}, doublewrite"
            f" {pinned['innodb_doublewrite']}"
        )
        screen.line(
            f"the device: {probe['sequential_write_bytes_per_second'] / 1e6:,.0f} MB/s sequential, "
            f"{probe['durable_64KB_growing_us_median']:,.0f} us for a durable 64 KB write into a growing file"
        )
        if stride > 1:
            screen.line(f"a flush takes so long here that one client loads every {summary.ordinal(stride)} file only")

    def _compare(self, screen: Screen, corpus: corpus_module.Corpus) -> None:
        comparison = measure.Comparison(self.server, corpus, self.settings, screen)
        screen.title("What the client can do at most (BLACKHOLE throws the rows away)")
        self.result["client_ceiling"] = ceiling = comparison.client_ceiling()
        for clients in (1, self.settings.many_clients):
            screen.line(
                f"{counted(clients, 'client'):>10}: {ceiling[f'load_{clients}']['bytes_per_second'] / 1e6:,.0f}"
                " MB/s"
            )
        self.result["rounds"] = rounds = []
        before, children_before = noise.take_snapshot(), noise.children_cpu_seconds()
        cells, current = measure.plan(self.settings), 0
        for cell in cells:
            if cell.round != current:
                current = cell.round
                screen.title(
                    f"Round {current} of {self.settings.rounds}: load, read back and compare, random reads, updates"
                )
            record = comparison.run_cell(cell)
            rounds.append(record)
            screen.line(self._cell_line(cell, record))
        own = {os.getpid(), self.server.pid}
        children = noise.children_cpu_seconds() - children_before
        self.result["processor_usage"] = noise.usage(before, noise.take_snapshot(), own, children)
        self.result.update(
            {
                "mismatches": comparison.mismatches,
                "verified_rows": comparison.verified_rows,
                "verified_bytes": comparison.verified_bytes,
            }
        )

    def _cell_line(self, cell: measure.Cell, record: dict) -> str:
        many = f"load_{self.settings.many_clients}"
        return (
            f"{cell.variant.label:<17} [dim]{cell.data_set.key:<5}[/dim] load"
            f" {record['load_1']['bytes_per_second'] / 1e6:>5,.0f} and {record[many]['bytes_per_second'] / 1e6:>5,.0f}"
            f" MB/s ({self.settings.many_clients} clients), {record['reads']['operations_per_second']:>7,.0f} reads/s,"
            f" {record['updates']['operations_per_second']:>6,.0f} updates/s,"
            f" {record[many]['written']['server_bytes_per_payload_byte']:.2f} bytes written per byte"
        )

    def _curve(self, screen: Screen) -> None:
        screen.title("E1 in small: head, inline, VARBINARY over the number of threads")
        curve = curve_module.Curve(
            self.server, curve_module.Settings(seed=self.options.seed), screen, "QUARRY" if self.quarry else "InnoDB"
        )
        self.result["e1"] = curve.run()
        screen.line(f"{counted(len(self.result['e1']['points']), 'point')} measured")

    def _overwrite(self, screen: Screen, corpus: corpus_module.Corpus) -> None:
        quarry = next(VARIANTS[key] for key in self.variants if VARIANTS[key].is_quarry)
        twin = VARIANTS["innodb"] if "innodb" in self.variants else None
        times = self.options.overwrites
        screen.title(f"Live data overwritten {counted(times, 'time')}, with GC ({quarry.label})")
        items = overwrite.sample(corpus, self.options.seed)
        run = overwrite.Overwrite(self.overwrite_server, items, quarry, twin, times)
        with screen.phase("overwrite at a pace, with GC at work", times * run.payload_bytes) as on_progress:
            self.result["overwrite"] = found = run.run(on_progress)
        self.overwrite_server.stop()
        self.result["verified_rows"] += found["verified_rows"]
        self.result["verified_bytes"] += found["payload_bytes"] * len(run.variants)
        live = found["live_bytes"]
        screen.line(
            f"{counted(found['rows'], 'row')}, {live / 1e6:,.0f} MB, overwritten at {found['written_bytes_per_second'] / 1e6:.0f} MB/s:"
            f" on disk {max(found['peak_bytes']) / live:.2f} times that at the most (bound {found['bound']:g}),"
            f" {found['settled_bytes'] / live:.2f} in the end; {counted(found['gc']['passes'], 'pass')} gave"
            f" {found['gc']['reclaimed_bytes'] / 1e6:,.0f} MB back; {found['seconds']:.0f} s"
        )

    def _crash(self, screen: Screen, corpus: corpus_module.Corpus) -> None:
        variant = VARIANTS["quarry" if self.quarry else "innodb"]
        screen.title(f"kill -9 in mid-load ({variant.label})")
        test = crash_module.CrashTest(self.crash_server, corpus, variant, clients=8, seed=self.options.seed)
        test.prepare()
        cycles = []
        for number in range(1, self.options.kills + 1):
            with screen.phase(f"load, kill {number}, restart, compare") as on_progress:
                cycles.append(test.cycle(number, on_progress))
            last = cycles[-1]
            screen.line(
                f"kill {number}: {counted(last['acknowledged'], 'commit')} acknowledged before it; {last['intact']:,} of"
                f" {counted(last['acknowledged_rows'], 'row')} intact, {len(last['wrong'])} lost or torn;"
                f" {counted(last['in_flight'], 'transaction')} under way: {last['in_flight_there']} there, {last['in_flight_absent']} absent"
            )
        self.crash_server.stop()
        self.result["crash"] = {"variant": variant.key, "clients": 8, "cycles": cycles}

    def _finish(self) -> int:
        tables_console.print_all(self.console, self.result)
        usage = self.result["processor_usage"]
        if usage["noisy"]:
            self.console.print(
                "\n[yellow]The machine was not quiet[/yellow]: other programs used"
                f" {usage['other_cpus']:.2f} processors, the hypervisor took {usage['steal_cpus']:.2f}",
                highlight=False,
            )
        wrong = summary.mismatches(self.result)
        self.options.output.mkdir(parents=True, exist_ok=True)
        (self.options.output / "demo.json").write_text(json.dumps(self.result, indent=1) + "\n", encoding="utf-8")
        page = self.options.output / "index.html"
        page.write_text(report.render(self.result), encoding="utf-8")
        self.console.print()
        self.console.print(
            f"{counted(self.result['verified_rows'], 'row')} ({self.result['verified_bytes'] / 1e6:,.0f} MB) read back and"
            " compared by SHA-256: " + (f"[red]{len(wrong)} wrong[/red]" if wrong else "[green]all equal[/green]"),
            highlight=False,
        )
        for line in wrong[:20]:
            self.console.print(f"  [red]{line}[/red]", highlight=False)
        minutes, seconds = divmod(int(self.result["seconds"]), 60)
        self.console.print(
            f"report: {page}  [dim](raw rounds: demo.json beside it; {minutes} min {seconds} s)[/dim]",
            highlight=False,
            soft_wrap=True,
        )
        late = self.result.get("overwrite", {"late": []})["late"]
        for line in late:
            self.console.print(f"[red]{line}[/red]", highlight=False)
        return EXIT_WRONG if wrong or late else 0


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)  # a file or a pipe has no width of its own; the tables need more than 80
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return Demo(options, console).run()
    except KeyboardInterrupt:
        console.print("\ndemo: interrupted; the servers are stopped and their data removed")
        return EXIT_INTERRUPTED
    except space.NoSpace as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except FAILURES as error:
        print(f"demo: {error}", file=sys.stderr)
        return EXIT_WRONG
