"""
`python -m quarry_lab builds --baseline OLD.so`: two builds of the plugin and InnoDB, side by side, by what a statement costs the server.

For changes of the hot path, also on a machine that is not idle: what is compared is the processor time of the thread that serves the
connection (`/proc/<pid>/task/<tid>/schedstat`, nanoseconds), not the clock on the wall. Waiting, other threads of the server and the
client are not in it; the `bench` verb measures those, on an idle machine. Bursts of the contestants alternate in random order, and
ratios are taken round by round.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pymysql
from quarry_server import private
from quarry_server.server import BUILD, PLUGIN
from rich.console import Console
from rich.table import Table

from .design.profile import BARE
from .design.variants import KIB
from .report.stats import paired_ratio, summarize
from .run.verb import chosen, exit_code_of, numbers
from .servers.lab_server import DATABASE, LabServer, parse_mycnf

OPERATIONS = ("read", "scan", "insert", "update")
ROWS_BYTES = 64 << 20  # what a table holds, so that it stays in any cache
ROWS_MAX = 2000
SMALL_SERVER = {"innodb_buffer_pool_size": "512M", "innodb_log_file_size": "256M"}


@dataclass(frozen=True)
class Contestant:
    """Who is measured: an engine on one of the two servers."""

    name: str
    engine: str
    server: LabServer


@dataclass(frozen=True)
class Cell:
    operation: str
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.operation} {self.size_bytes // KIB} KB"


class Client:
    """One connection and the server's thread behind it. Externally synchronised."""

    def __init__(self, contestant: Contestant, seed: int):
        self.contestant, self.rng = contestant, random.Random(seed)
        self.connection = pymysql.connect(unix_socket=contestant.server.socket, user=private.account(), database=DATABASE, autocommit=True, charset="latin1")
        self.cursor = self.connection.cursor()
        self.cursor.execute("SET NAMES binary")
        thread = self.one("SELECT TID FROM information_schema.processlist WHERE ID = CONNECTION_ID()")
        self.schedstat = Path(f"/proc/{contestant.server.pid}/task/{thread}/schedstat")
        self.next_row = 0

    def one(self, sql: str):
        self.cursor.execute(sql)
        return self.cursor.fetchone()[0]

    def cpu_nanoseconds(self) -> int:
        return int(self.schedstat.read_text().split()[0])

    def table(self, cell: Cell) -> str:
        return f"{self.contestant.name}_{cell.size_bytes}"

    def rows(self, cell: Cell) -> int:
        return max(8, min(ROWS_MAX, ROWS_BYTES // cell.size_bytes))

    def load(self, cell: Cell) -> None:
        """The cell's table, as `bench` makes it: a value of 4 KB in the row, of larger ones the first 256 bytes."""
        inline = 4096 if cell.size_bytes <= 4096 else 256
        comment = f"COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE={inline}'" if self.contestant.engine == "QUARRY" else ""
        self.cursor.execute(f"CREATE TABLE IF NOT EXISTS {self.table(cell)} (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0, data LONGBLOB {comment}) "
                            f"ENGINE={self.contestant.engine}")
        for name in ("a", "b"):
            self.cursor.execute(f"SET @{name} = %s", (self.rng.randbytes(cell.size_bytes),))
        for name, sql in (("ins", "INSERT INTO {t} (id, data) VALUES (?, ?)"), ("upd", "UPDATE {t} SET data = ? WHERE id = ?")):
            self.cursor.execute(f"PREPARE {name} FROM '{sql.format(t=self.table(cell))}'")
        if self.one(f"SELECT COUNT(*) FROM {self.table(cell)}") == 0:
            for row in range(self.rows(cell)):
                self.cursor.execute(f"EXECUTE ins USING {row}, @a")
        self.next_row = self.one(f"SELECT MAX(id) + 1 FROM {self.table(cell)}")

    def burst(self, cell: Cell, statements: int) -> float:
        """Microseconds of the serving thread for each statement (scan: for each row)."""
        table, rows = self.table(cell), self.rows(cell)
        done = statements
        before = self.cpu_nanoseconds()
        if cell.operation == "scan":
            self.cursor.execute(f"SELECT data FROM {table} WHERE id < {rows}")
            done = len(self.cursor.fetchall())
        for number in range(0 if cell.operation == "scan" else statements):
            if cell.operation == "read":
                self.cursor.execute(f"SELECT data FROM {table} WHERE id = {self.rng.randrange(rows)}")
                self.cursor.fetchall()
            elif cell.operation == "insert":
                self.cursor.execute(f"EXECUTE ins USING {self.next_row}, @{'ab'[number % 2]}")
                self.next_row += 1
            else:
                self.cursor.execute(f"EXECUTE upd USING @{'ab'[self.rng.randrange(2)]}, {self.rng.randrange(rows)}")
        used = self.cpu_nanoseconds() - before
        if cell.operation == "insert":
            self.cursor.execute(f"DELETE FROM {table} WHERE id >= {rows}")
        return used / 1000 / done

    def close(self) -> None:
        self.connection.close()


def measure(contestants: list[Contestant], cells: list[Cell], rounds: int, statements: int, seed: int, console: Console) -> list[dict]:
    """One dict per burst: cell, contestant, round, microseconds. Round 0 warms up and is not kept."""
    rng = random.Random(seed)
    clients = [Client(contestant, seed) for contestant in contestants]
    points = []
    for cell in cells:
        for client in clients:
            client.load(cell)
        for round_number in range(rounds + 1):
            for client in rng.sample(clients, len(clients)):
                # Random rows, six times as many as there are: nearly every value is read twice, which every cache takes for a reason to keep it.
                count = max(statements, 6 * client.rows(cell)) if round_number == 0 and cell.operation == "read" else statements
                micros = client.burst(cell, count)
                if round_number > 0:
                    points.append({"operation": cell.operation, "size_bytes": cell.size_bytes, "contestant": client.contestant.name,
                                   "round": round_number, "micros": micros})
        console.print(f"{cell}: {rounds} rounds", highlight=False)
    for client in clients:
        client.close()
    return points


def compare(points: list[dict], cell: Cell, numerator: str, denominator: str):
    """How many times the processor time of `denominator` `numerator` takes, round by round: a Summary, or None."""
    def of(name: str) -> dict[int, float]:
        return {p["round"]: p["micros"] for p in points
                if p["contestant"] == name and (p["operation"], p["size_bytes"]) == (cell.operation, cell.size_bytes)}
    return paired_ratio(of(numerator), of(denominator))


def report(points: list[dict], cells: list[Cell], names: list[str]) -> Table:
    table = Table(title=f"profile {BARE}; processor time of the serving thread, microseconds a statement (scan: a row); ratios: above 1 the new build costs less")
    others = [name for name in names if name != "new"]
    for column in ("cell", *names, *(f"{name} / new" for name in others)):
        table.add_column(column, justify="left" if column == "cell" else "right")
    for cell in cells:
        row = [str(cell)]
        for name in names:
            mine = [p["micros"] for p in points if p["contestant"] == name and (p["operation"], p["size_bytes"]) == (cell.operation, cell.size_bytes)]
            row.append(f"{summarize(mine).median:,.1f}" if mine else "-")
        for name in others:
            ratio = compare(points, cell, name, "new")
            row.append(f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})" if ratio else "-")
        table.add_row(*row)
    return table


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="quarry_lab builds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", type=Path, required=True, metavar="SO", help="the build to compare with")
    parser.add_argument("--plugin", type=Path, default=PLUGIN, metavar="SO", help="the new build (default: %(default)s)")
    parser.add_argument("--sizes", type=numbers, default="4,24,64,448", metavar="KB,...", help="value sizes (default: %(default)s)")
    parser.add_argument("--ops", type=chosen(OPERATIONS), default="read,insert", metavar="OP,...", help=f"of {', '.join(OPERATIONS)} (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="bursts of each contestant in each cell (default: %(default)s)")
    parser.add_argument("--statements", type=int, default=300, help="statements of a burst (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mycnf", action="append", default=[], metavar="KEY=VALUE", help="server setting for both; repeatable")
    parser.add_argument("--new-option", action="append", default=[], metavar="KEY=VALUE", help="setting of the new build's server alone")
    parser.add_argument("--data", type=Path, help="where the servers' data goes (default: below build/)")
    parsed = parser.parse_args(arguments)
    if parsed.rounds < 1 or parsed.statements < 1:
        parser.error("--rounds and --statements must be at least 1")
    for path in (parsed.baseline, parsed.plugin):
        if not path.is_file():
            parser.error(f"there is no plugin {path} (build one with `make build` and keep a copy of build/release/plugin/ha_quarry.so)")
    return parsed


def run(parsed: argparse.Namespace, console: Console) -> None:
    cells = [Cell(operation, size * KIB) for operation in parsed.ops for size in parsed.sizes]
    extra = {**SMALL_SERVER, **parse_mycnf(parsed.mycnf)}
    of_new = {**extra, **parse_mycnf(parsed.new_option)}
    if parsed.data:
        parsed.data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="builds-", dir=parsed.data or BUILD) as directory:
        servers = {"new": LabServer("new", Path(directory) / "new", parsed.plugin, False, of_new),
                   "old": LabServer("old", Path(directory) / "old", parsed.baseline, False, extra)}
        try:
            for server in servers.values():
                server.start()
            contestants = [Contestant("innodb", "InnoDB", servers["new"]), Contestant("old", "QUARRY", servers["old"]),
                           Contestant("new", "QUARRY", servers["new"])]
            points = measure(contestants, cells, parsed.rounds, parsed.statements, parsed.seed, console)
        finally:
            for server in servers.values():
                server.close()
    output = BUILD / "bench" / "builds"
    output.mkdir(parents=True, exist_ok=True)
    (output / "points.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    console.print(report(points, cells, [c.name for c in contestants]))
    console.print(f"raw bursts in {output / 'points.jsonl'}", highlight=False)


def main(arguments: list[str]) -> int:
    parsed = parse(arguments)
    return exit_code_of(lambda console: run(parsed, console))
