"""
`quarry-advisor --trial`: the advice, Quarry's defaults and InnoDB side by side, on a copy of the sample in a private server of this machine.

Each round makes the table of each contestant in random order, one at a time: load the sample, wait until it is written, count disk and
buffer pool, then insert, read and update for a while with several clients. Ratios are taken round by round. The copy holds the managed
columns, as bytes, and a filler for the others; inserted and updated values get fresh bytes at their start, so that none is equal to another.
"""

from __future__ import annotations

import os
import random
import time
from array import array
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quarry_advisor import constants as c
from quarry_advisor.errors import AdvisorError
from quarry_advisor.profile import Profile
from quarry_advisor.rules import Advice
from quarry_advisor.shown import plain, shown
from quarry_advisor.statements import column_options
from quarry_advisor.target import quoted
from quarry_server.server import BUILD, MARIADB, PLUGIN, ServerError

from .demo import workers
from .demo.workers import Client, Outcome, WorkerError
from .probes import device, noise
from .report.stats import Summary, human_bytes, human_count, paired_ratio, percentile, summarize
from .servers.lab_server import DATABASE, ConfigurationError, LabServer

SERVER = {"innodb_buffer_pool_size": "512M", "innodb_log_file_size": "512M"}
SERVER_BYTES = 2 << 30  # redo log, system tablespaces, and what a dropped table leaves for a few seconds
DEVICE_BYTES_PER_SECOND_GUESS = 1 << 30
SALT_BYTES = 16
OPERATIONS = ("insert", "read", "update")
TABLE = "copy"
DIRECTORY = BUILD / "advisor"

Values = tuple[bytes | None, ...]


@dataclass(frozen=True)
class Settings:
    rounds: int
    seconds: int
    clients: int
    seed: int


@dataclass(frozen=True)
class Contestant:
    key: str
    label: str
    create_table: str


def needed_bytes(sample_bytes: int, seconds: int) -> int:
    """The copy four times (its pages, their twins in doublewrite, what is updated), what two points can write, and the server itself."""
    return SERVER_BYTES + 4 * sample_bytes + 2 * seconds * DEVICE_BYTES_PER_SECOND_GUESS


def check_trial(sample_bytes: int, seconds: int) -> None:
    """That a trial can run here; said before any work starts. Errors: AdvisorError."""
    if not (MARIADB / "usr" / "sbin" / "mariadbd").exists() or PLUGIN is None or not Path(PLUGIN).exists():
        raise AdvisorError("--trial needs the lab's private server and the plugin: run `make build`, then tools/quarry-advisor, in Quarry's source tree")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    need, free = needed_bytes(sample_bytes, seconds), device.free_bytes(DIRECTORY)
    if free < need:
        raise AdvisorError(f"--trial needs {need:,} bytes ({human_bytes(need)}) of free disk under {DIRECTORY}, and {free:,} are free: free "
                           f"{need - free:,} more, or lower --fetch-megabytes and --trial-seconds")


def contestants(profile: Profile, advice: Advice) -> list[Contestant]:
    plain = {mine.column: "" for mine in advice.columns}
    advised = {mine.column: column_options(mine) for mine in advice.columns}
    found = [Contestant("innodb", "InnoDB", _create_table(profile, "InnoDB", plain)),
             Contestant("advised", "Quarry as advised", _create_table(profile, "QUARRY", advised))]
    defaults = {column_options(mine) for mine in advice.columns} == {f" INLINE_SIZE={c.INLINE_SIZE_DEFAULT} PART_SIZE={c.PART_SIZE_DEFAULT} CODEC=none"}
    return found + ([] if defaults else [Contestant("defaults", "Quarry's defaults", _create_table(profile, "QUARRY", plain))])


def _create_table(profile: Profile, engine: str, options: dict[str, str]) -> str:
    other = max(1, *(row.other_bytes for row in profile.sample.rows))
    columns = [f"{quoted(column.name)} {column.type.replace('text', 'blob')}{options[column.name]}" for column in profile.table.managed]
    return f"CREATE TABLE {TABLE} (`quarry advisor id` INT PRIMARY KEY AUTO_INCREMENT, `quarry advisor filler` VARBINARY({other}), {', '.join(columns)}) ENGINE={engine}"


def whole_rows(profile: Profile) -> list[Values]:
    """Rows of the sample whose managed values were all fetched whole: what is copied."""
    indexes = [index for index, column in enumerate(profile.table.columns) if column.left_alone is None]
    return [tuple(values[i] for i in indexes) for values, sizes in zip(profile.sample.values, profile.sample.value_sizes)
            if all(sizes[i] is None or (values[i] is not None and len(values[i]) == sizes[i]) for i in indexes)]


# --- what the clients do ---
def salted(values: Values, rng: random.Random) -> Values:
    salt = rng.randbytes(SALT_BYTES)
    return tuple(None if value is None else salt[: len(value)] + value[SALT_BYTES:] for value in values)


def _bytes(values: Values) -> int:
    return sum(len(value) for value in values if value is not None)


def _writing(sql: str, rows: list[Values], first: Callable[[Client], list], last: Callable[[Client], list]) -> Callable[[Client], None]:
    """Executes `sql` until the deadline, with the values of random rows between the parameters that `first` and `last` give."""
    def job(client: Client) -> None:
        with client.connection.cursor(prepared=True) as cursor:
            while (started := time.monotonic()) < client.deadline:
                values = salted(client.random.choice(rows), client.random)
                cursor.execute(sql, (*first(client), *values, *last(client)))
                client.done(time.monotonic() - started, _bytes(values))
    return job


class Trial:
    """One run. Externally synchronised."""

    def __init__(self, profile: Profile, rows: list[Values], settings: Settings, server: LabServer):
        self.rows, self.settings, self.server = rows, settings, server
        self.names = [quoted(column.name) for column in profile.table.managed]
        self.filler = b"." * int(sum(row.other_bytes for row in profile.sample.rows) / len(profile.sample.rows))
        self.points: list[dict] = []

    @property
    def insert_sql(self) -> str:
        return (f"INSERT INTO {TABLE} (`quarry advisor filler`, {', '.join(self.names)}) "
                f"VALUES ({', '.join('?' * (1 + len(self.names)))})")

    def run(self, contestant: Contestant, round_number: int) -> None:
        self.server.execute(contestant.create_table)
        self._load(round_number)
        self.server.settle()
        point = {"round": round_number, "contestant": contestant.key, **self._space()}
        for operation in OPERATIONS:
            outcome = self._operate(operation, f"{self.settings.seed}/{round_number}/{operation}")
            point[operation] = {"rows_per_second": outcome.operations / outcome.seconds, "bytes_per_second": outcome.payload_bytes / outcome.seconds,
                                "p95_ms": 1000 * percentile(_list(outcome.latencies), 95)}
        self.points.append(point)
        self.server.execute(f"DROP TABLE {TABLE}")
        self.server.settle()

    def _load(self, round_number: int) -> None:
        def job(client: Client) -> None:
            with client.connection.cursor(prepared=True) as cursor:
                while (turn := client.next_number()) < len(self.rows):
                    cursor.execute(self.insert_sql, (self.filler, *self.rows[turn]))
                    client.done(0.0, 0)
        workers.run(job, self.settings.clients, self.server.socket, DATABASE, f"load/{round_number}")
        self.ids = [row[0] for row in self.server.rows(f"SELECT `quarry advisor id` FROM {TABLE}")]

    def _operate(self, operation: str, seed: str) -> Outcome:
        def random_id(client: Client) -> list:
            return [client.random.choice(self.ids)]

        def read(client: Client) -> None:
            with client.connection.cursor(prepared=True) as cursor:
                while (started := time.monotonic()) < client.deadline:
                    cursor.execute(f"SELECT {', '.join(self.names)} FROM {TABLE} WHERE `quarry advisor id` = ?", (*random_id(client),))
                    client.done(time.monotonic() - started, _bytes(cursor.fetchone()))
        jobs = {
            "insert": _writing(self.insert_sql, self.rows, lambda _: [self.filler], lambda _: []),
            "read": read,
            "update": _writing(f"UPDATE {TABLE} SET {', '.join(f'{name} = ?' for name in self.names)} WHERE `quarry advisor id` = ?",
                               self.rows, lambda _: [], random_id),
        }
        return workers.run(jobs[operation], self.settings.clients, self.server.socket, DATABASE, seed, self.settings.seconds)

    def _space(self) -> dict:
        """Disk and buffer pool of the loaded copy; of Quarry's files what holds values, not the space zeroed ahead of them."""
        file = Path(self.server.directory) / "data" / DATABASE / f"{TABLE}.ibd"
        segments = self.server.rows(f"SELECT COALESCE(SUM(LIVE_BYTES), 0) FROM information_schema.QUARRY_TABLES WHERE TABLE_NAME = '{TABLE}' AND STATE = 'BOUND'")
        pages = self.server.rows("SELECT COUNT(*) FROM information_schema.INNODB_BUFFER_PAGE p JOIN information_schema.INNODB_SYS_TABLESPACES s "
                                 f"ON s.SPACE = p.SPACE WHERE s.NAME = '{DATABASE}/{TABLE}'")
        return {"disk_bytes": os.stat(file).st_blocks * 512 + int(segments[0][0]), "buffer_pool_bytes": int(pages[0][0]) * 16384}


def _list(latencies: array) -> list[float]:
    return list(latencies) or [0.0]


def run_trial(profile: Profile, advice: Advice, settings: Settings, messages: Console) -> dict:
    """Errors: AdvisorError. Nothing stays behind, however it ends."""
    rows = whole_rows(profile)
    if not rows:
        raise AdvisorError("--trial found no row whose values were fetched whole: raise --fetch-megabytes")
    check_trial(sum(map(_bytes, rows)), settings.seconds)
    taking_part = contestants(profile, advice)
    batches = {"quarry_read_batch_bytes": advice.batches.read_bytes, "quarry_write_batch_bytes": advice.batches.write_bytes}
    server = LabServer("trial", DIRECTORY / f"trial-{os.getpid()}", PLUGIN, False, {**SERVER, **batches})
    order = random.Random(settings.seed)
    try:
        with messages.status(plain("trial: starting a private server")) as status:
            server.start()
            trial = Trial(profile, rows, settings, server)
            with noise.Meter({server.pid}) as meter:
                for round_number in range(1, settings.rounds + 1):
                    for contestant in order.sample(taking_part, len(taking_part)):
                        status.update(plain(f"trial: round {round_number} of {settings.rounds}, {contestant.label}"))
                        trial.run(contestant, round_number)
    except (ServerError, ConfigurationError, WorkerError, OSError) as error:
        raise AdvisorError(f"the trial failed: {error}") from None
    finally:
        server.close()
    return {"settings": asdict(settings), "rows": len(rows), "value_bytes": sum(map(_bytes, rows)), "points": trial.points,
            "contestants": [asdict(contestant) for contestant in taking_part], "processors": meter.usage}


# --- the table ---
def summary(found: dict, contestant: str, figure: Callable[[dict], float]) -> Summary:
    return summarize([figure(point) for point in found["points"] if point["contestant"] == contestant])


def ratio(found: dict, contestant: str, figure: Callable[[dict], float]) -> Summary | None:
    """Of a contestant to InnoDB, round by round."""
    def rounds(key: str) -> dict[int, float]:
        return {point["round"]: figure(point) for point in found["points"] if point["contestant"] == key}
    return paired_ratio(rounds(contestant), rounds("innodb"))


def _cell(found: dict, contestant: str, figure: Callable[[dict], float], form: Callable[[float], str]) -> Text:
    mine, compared = summary(found, contestant, figure), ratio(found, contestant, figure)
    if contestant == "innodb" or compared is None:
        return Text(form(mine.median))
    return Text.assemble(f"{form(mine.median)}  {compared.median:.2f}x ", (f"({compared.low:.2f}-{compared.high:.2f})", "dim"))


def print_trial(console: Console, found: dict) -> None:
    settings = found["settings"]
    console.print()
    console.print(Text.assemble(("Trial: measured here", "bold"), f", {found['rows']:,} rows of the sample ({human_bytes(found['value_bytes'])} of values), "
                                f"{settings['clients']} clients, {settings['rounds']} rounds of {settings['seconds']} s, no binary log; to InnoDB: median and range of the rounds"))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("")
    for contestant in found["contestants"]:
        table.add_column(contestant["label"], justify="right")
    figures: list[tuple[str, Callable[[dict], float], Callable[[float], str]]] = [
        (f"{operation}s, rows/s", lambda point, operation=operation: point[operation]["rows_per_second"], human_count) for operation in OPERATIONS]
    figures += [("disk", lambda point: point["disk_bytes"], human_bytes), ("buffer pool", lambda point: point["buffer_pool_bytes"], human_bytes)]
    for label, figure, form in figures:
        table.add_row(label, *(_cell(found, contestant["key"], figure, form) for contestant in found["contestants"]))
    console.print(table)
    used = found["processors"]
    if used["noisy"]:
        others = shown(", ".join(used["top_others"])) or "many"
        console.print(Text.assemble(("The machine was not idle", "yellow"), f": others used {used['other_cpus']:.2f} processors ({others}), "
                                    f"{used['steal_cpus']:.2f} were stolen. Take the figures for a look."))
