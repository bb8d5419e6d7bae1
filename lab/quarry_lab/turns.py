"""
`python -m quarry_lab turns`: engines within one load, a table of each in one server, all clients at the one whose turn it is.

Two points of `bench` are seconds apart, and a machine may be faster in one than in the other by more than what is to be seen. Turns of a
quarter of a second are too short for that: what happens to the machine, the clients or the server meets every engine alike.

It answers less than `bench` does. What a turn leaves behind (pages to be flushed, space to be given back) is done in the turns of all, so
writes are compared of values only that stay in the row, where all leave the same; and an engine's background threads run in the turns of
the others, too. The same engine twice shows how far the figures are to be trusted: its ratio is 1 but for chance.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from quarry_server.server import BUILD, PLUGIN
from rich.console import Console
from rich.table import Table

from .design.profile import BARE
from .design.request import BENCH_OUTPUT
from .design.variants import ALL, KIB, create_table
from .load import sysbench
from .load.payload import Payload
from .probes.noise import Meter
from .report.stats import human_count, paired_ratio, summarize
from .run.verb import chosen, exit_code_of, numbers
from .servers.lab_server import DATABASE, LabServer, parse_mycnf

OPERATIONS = ("insert", "read", "mix")
ENGINES = ("innodb", "quarry", "quarry-default")
WRITTEN_KIB_MAX = 4  # of values in the row
TURN_MS = 230  # so that what happens once a second does not always meet the same table
ROWS_BYTES = 256 << 20  # of a table that is read: all of them fit the buffer pool and the value cache
SERVER = {"loose_quarry_cache_size": "2G"}
WARMUP_SECONDS = 2
FILL_THREADS = 8


class Turns:
    """Loads on one server. Externally synchronised."""

    def __init__(self, server: LabServer, payload: Payload, engines: list[str], seconds: int):
        self.server, self.payload, self.engines, self.seconds = server, payload, engines, seconds
        self._filled: tuple[int, int] | None = None  # of the tables that can be read: the values' size, and the first table's engine

    def measure(self, operation: str, size_bytes: int, threads: int, round_number: int) -> dict:
        """
        operation, size_bytes, threads, round, events_per_second by the engines' order, and who used the processors (noise.usage). From round to round
        each engine has another table, and another turn to begin with.
        """
        first = round_number % len(self.engines)  # the engine of sbtest1
        rows = max(64, ROWS_BYTES // size_bytes)
        load = sysbench.Load(operation, DATABASE, size_bytes, threads, **self.server.login, rows=rows, tables=len(self.engines), warmup_seconds=WARMUP_SECONDS,
                             seconds=self.seconds, turn_ms=TURN_MS)
        if operation == "insert":
            self._make_tables(size_bytes, first)
        elif self._filled != (size_bytes, first):
            self._make_tables(size_bytes, first)
            self._fill(load)
            self._filled = (size_bytes, first)
        with Meter({self.server.pid}) as meter:
            rates = sysbench.run_in_turns(load, self.payload)
        return {"operation": operation, "size_bytes": size_bytes, "threads": threads, "round": round_number, "engines": self.engines,
                "events_per_second": rates[len(rates) - first:] + rates[:len(rates) - first], "cpu": meter.usage}

    def _make_tables(self, size_bytes: int, first: int) -> None:
        self._filled = None
        for number, engine in enumerate(self.engines[first:] + self.engines[:first], 1):
            self.server.execute(f"DROP TABLE IF EXISTS sbtest{number}")
            self.server.execute(create_table(ALL[engine], size_bytes, f"sbtest{number}"))

    def _fill(self, load: sysbench.Load) -> None:
        sysbench.fill(replace(load, threads=FILL_THREADS), self.payload)
        for number in range(1, load.tables + 1):
            for _ in range(2):  # the value cache takes in what is asked for again
                self.server.rows(f"SELECT BIT_XOR(CRC32(data)) FROM sbtest{number}")


def loads_of(parsed: argparse.Namespace) -> list[tuple[str, int, int, int]]:
    """Operation, size in bytes, threads and round of each load. Within a round reads come before writes: they share their tables."""
    ordered = [name for name in ("read", "mix", "insert") if name in parsed.ops]
    return [(operation, size * KIB, threads, number) for number in range(1, parsed.rounds + 1) for size in parsed.sizes
            for operation in ordered for threads in parsed.threads]


def report(points: list[dict], engines: list[str]) -> Table:
    """Of each cell: events a second of every engine, and the median and range of its rounds' ratios to the first."""
    table = Table(title=f"profile {BARE}; turns of {TURN_MS} ms within one load; events a second of each engine's turns, and its ratio to {engines[0]}'s")
    numbers = range(1, len(engines))
    for heading in ("", *engines, *(f"{engines[n]} / {engines[0]}" for n in numbers), "rounds", "noisy"):
        table.add_column(heading, justify="right" if heading else "left")
    cells: dict[tuple, list[dict]] = {}
    for point in points:
        cells.setdefault((point["operation"], point["size_bytes"], point["threads"]), []).append(point)
    for (operation, size_bytes, threads), rounds in cells.items():
        rates = [dict(enumerate(point["events_per_second"][n] for point in rounds)) for n in range(len(engines))]
        ratios = [paired_ratio(rates[n], rates[0]) for n in numbers]
        table.add_row(f"{operation} {size_bytes // KIB} KB x{threads}", *(human_count(summarize(list(of.values())).median) for of in rates),
                      *(f"{r.median:.3f} ({r.low:.3f}-{r.high:.3f})" if r else "-" for r in ratios),
                      str(len(rounds)), str(sum(point["cpu"]["noisy"] for point in rounds)))
    return table


def run(parsed: argparse.Namespace, console: Console) -> None:
    output = parsed.output or BENCH_OUTPUT / "turns"
    output.mkdir(parents=True, exist_ok=True)
    points: list[dict] = []
    loads = loads_of(parsed)
    with tempfile.TemporaryDirectory(prefix="turns-", dir=BUILD) as directory, Payload("random") as payload:
        server = LabServer("turns", Path(directory) / "server", parsed.plugin, False, {**SERVER, **parse_mycnf(parsed.mycnf)})
        try:
            with (output / "points.jsonl").open("w") as raw:
                for load in loads:
                    if not points or load[-1] != points[-1]["round"]:
                        server.recycle()  # a process of its own for each round: where its memory lies is worth a per cent, too
                        turns = Turns(server, payload, parsed.engines, parsed.seconds)
                    point = turns.measure(*load)
                    points.append(point)
                    raw.write(json.dumps(point) + "\n")
                    raw.flush()
                    rates = ", ".join(human_count(rate) for rate in point["events_per_second"])
                    operation, size_bytes, threads, number = load
                    console.print(f"{len(points)}/{len(loads)} round {number} {operation} {size_bytes // KIB} KB x{threads}: {rates}", highlight=False)
        finally:
            server.close()
    console.print(report(points, parsed.engines))
    console.print(f"raw rounds in {output / 'points.jsonl'}", highlight=False)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quarry_lab turns", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", type=chosen(OPERATIONS), default="read,mix,insert", metavar="OP,...", help=f"of {', '.join(OPERATIONS)} (default: %(default)s)")
    parser.add_argument("--engines", type=chosen(ENGINES), default="innodb,quarry", metavar="NAME,...",
                        help=f"at least two of {', '.join(ENGINES)}, the same twice if you like; ratios are to the first (default: %(default)s)")
    parser.add_argument("--sizes", type=numbers, default=[WRITTEN_KIB_MAX], metavar="KB,...", help="value sizes (default: 4)")
    parser.add_argument("--threads", type=numbers, default=[1, 8, 32], metavar="N,...", help="client threads (default: 1,8,32)")
    parser.add_argument("--seconds", type=int, default=10, metavar="S", help="of each load, shared by the engines (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="loads of each kind (default: %(default)s)")
    parser.add_argument("--mycnf", action="append", default=[], metavar="KEY=VALUE", help="server setting; repeatable")
    parser.add_argument("--plugin", type=Path, default=PLUGIN, metavar="SO", help="the plugin to look at (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the raw rounds go (default: build/bench/turns)")
    parsed = parser.parse_args(arguments)
    if len(parsed.engines) < 2:
        parser.error("--engines must name at least two")
    if parsed.rounds < 1:
        parser.error("--rounds must be at least 1")
    if parsed.seconds * 1000 < TURN_MS * len(parsed.engines):
        parser.error(f"--seconds must be enough for a turn of {TURN_MS} ms of each engine")
    if set(parsed.ops) - {"read"} and max(parsed.sizes) > WRITTEN_KIB_MAX:
        parser.error(f"writes of more than {WRITTEN_KIB_MAX} KB leave work behind that differs by engine, and turns share it: use `bench`, or --ops read")
    return parsed


def main(arguments: list[str]) -> int:
    parsed = parse(arguments)
    return exit_code_of(lambda console: run(parsed, console))
