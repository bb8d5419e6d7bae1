"""
E4: what lies between a client and a value. Point reads over every path that MariaDB ships, by one C++ client (lab/clients).

Published (published/e4.toml: 2012 blog, CLIENT_COMPRESS considered harmful): what the compressed protocol costs, how far MongoDB and the NDB API
are ahead of SQL; what connections cost and what an embedded server would give was left open. All paths but the embedded one go over TCP, on the
loopback interface but for a target elsewhere: HandlerSocket has nothing else.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from quarry_server import private
from quarry_server.server import MARIADB
from rich import box
from rich.table import Table

from ...design import published, rules
from ...design.cells import CellKey, Cells, client_cpus, p95_ms, server_cpus, throughput
from ...design.plan import Block, Cell, Point
from ...design.published import Claim
from ...design.request import DATA, Request, Settings
from ...design.results import RunDirectory
from ...design.variants import ALL, KIB, TARGET, Variant, create_table
from ...load import value_reader
from ...load.payload import KINDS, Payload
from ...load.value_reader import Reading
from ...probes import device, noise
from ...report import charts, stats
from ...report.verdicts import ANSWERED, OPPOSITE, REPRODUCED, WEAKER, Finding, Verdict, figures_of, not_measured, stated
from ...run.experiment import Bench, Context, Experiment, PublishedFigure, Source
from ...run.tables import add_sections, size_label
from ...servers import target
from ...servers.lab_server import PINNED, LabServer, file_sha256
from ...servers.links import LOOPBACK
from quarry_server.ports import free_ports
from ...servers.target import SCHEMA_PREFIX, TargetServer
from ..table_experiment import answer_gain, server_needs, value_cache

SMALL = 100
SIZES = (SMALL, 4 * KIB, 64 * KIB, 448 * KIB)
THREADS = 8
USER = "lab"


@dataclass(frozen=True)
class Way:
    """One path to a value: the client's --path, the engine, compressed or not, the server in the client's process or not."""

    label: str
    path: str
    table: str = "quarry-default"  # a key of variants.ALL
    compress: bool = False
    embedded: bool = False

    @property
    def variant(self) -> Variant:
        return ALL[self.table]

    @property
    def is_protocol(self) -> bool:
        """An SQL statement on a kept connection: what the compressed protocol concerns."""
        return self.path in ("text", "prepared") and not self.embedded


PRIVATE_WAYS = {
    "text": Way("SQL text", "text"),
    "text-compressed": Way("SQL text, compressed protocol", "text", compress=True),
    "prepared": Way("prepared statement", "prepared"),
    "handler": Way("HANDLER statement", "handler"),
    "handlersocket": Way("HandlerSocket", "handlersocket"),
    "connect": Way("a connection per request", "connect"),
    "innodb-prepared": Way("InnoDB, prepared statement", "prepared", table="innodb"),
    "innodb-embedded": Way("InnoDB, embedded server", "prepared", table="innodb", embedded=True),
}
# What every server of the family has; NDB's head is pinned to its own default, 256 bytes.
SQL_WAYS = ("text", "text-compressed", "prepared", "connect")
# Of the default grid the other ways are measured at these sizes only: between them the protocol is what differs from size to size.
EVERY_WAY_SIZES = (SMALL, 64 * KIB)
TARGET_TABLES = {"innodb": "target-innodb", "quarry": "target-quarry-default", "ndb": "target-ndb-head"}


def _target_ways() -> dict[str, Way]:
    ways = {}
    for engine, table in TARGET_TABLES.items():
        for key in SQL_WAYS:
            own = PRIVATE_WAYS[key]
            ways[f"target-{engine}-{key}"] = replace(own, label=f"{ALL[table].label.split(',')[0]}, target: {own.label}", table=table)
    return ways


NDB_API_WAY = "target-ndb-api"
WAYS = PRIVATE_WAYS | _target_ways() | {NDB_API_WAY: Way(f"{ALL[TARGET_TABLES['ndb']].label}: NDB API", value_reader.NDB_API_PATH, table=TARGET_TABLES["ndb"])}
DOCUMENT = published.document("e4")
HARMFUL_LARGE = Finding("e4-compress-large", "the compressed protocol for values of 4, 64 and 448 KB (not published)",
                        "ratio of SQL text without compression to with it, at each of these sizes")
BESIDE_SQL = Finding("e4-handlersocket", "what MariaDB's own interface beside SQL gives (not published)", "ratio of HandlerSocket to SQL text, small rows")
BUSY_MIN = 0.9  # of the processors, where a server is said to max them out: our threshold
CONNECTING = Finding("e4-connect", "left open there: how much does a connection per request cost?", "ratio to SQL text on a kept connection, small rows")
EMBEDDED = Finding("e4-embedded", "left open there: what would an embedded server give?",
                   "ratio to the same statements over TCP, InnoDB, small rows (libmariadbd has no Galera and cannot load ENGINE=QUARRY)")


class Protocols(Experiment):
    name = "e4"
    title = "E4: the compressed protocol, and other ways to a value"
    operations = ("fetch",)
    payloads = KINDS
    takes_target = True
    reference = "text"
    source = Source(
        DOCUMENT.text, DOCUMENT.setup,
        f"{THREADS} client threads, rows of {SMALL} bytes and values of 4, 64 and 448 KB, TCP on the loopback interface, server and client on the "
        "same processors. The NDB API is measured on NDB alone; HandlerSocket is MariaDB's own way beside SQL. The payload is incompressible unless --payload says otherwise.")
    published = (PublishedFigure(DOCUMENT.figure("plain"), Cell("fetch", "text", SMALL, THREADS)),
                 PublishedFigure(DOCUMENT.figure("compressed"), Cell("fetch", "text-compressed", SMALL, THREADS)),
                 PublishedFigure(DOCUMENT.figure("gain-plain"), Cell("fetch", "text", SMALL, THREADS), "text-compressed"))

    @property
    def labels(self) -> dict[str, str]:
        return {key: way.label for key, way in WAYS.items()}

    def default_request(self) -> Request:
        return Request(self.name, list(self.operations), list(SIZES), [THREADS], list(PRIVATE_WAYS),
                       settings=Settings(warmup_seconds=1, dataset_bytes=128 << 20))

    def quick(self, request: Request) -> Request:
        return replace(super().quick(request), sizes_bytes=[SMALL, 64 * KIB])

    def full(self, request: Request) -> Request:
        return replace(super().full(request), threads=[1, THREADS, 64])

    def on_target(self, keys: list[str], engines: set[str]) -> list[str]:
        """The NDB API's library, and its port, are those of `make ndb`."""
        ways = [f"target-{name}-{key}" for name, table in TARGET_TABLES.items() if ALL[table].engine.upper() in engines for key in SQL_WAYS if key in keys]
        return [*ways, NDB_API_WAY] if "NDBCLUSTER" in engines and value_reader.has_ndb_api() and target.local_cluster() else ways

    def cells(self, request: Request) -> list[Cell]:
        is_whole = request.scale == "full" or request.sizes_bytes != list(SIZES)
        return [Cell("fetch", key, size, count) for size in request.sizes_bytes for key in request.variants for count in request.threads
                if is_whole or size in EVERY_WAY_SIZES or WAYS[key].is_protocol]

    def identity(self, request: Request) -> dict:
        plugin = request.plugin and file_sha256(request.plugin)
        return super().identity(request) | {"plugin_sha256": plugin, "client_sha256": [file_sha256(path) for path in value_reader.sources()]}

    def needs(self, request: Request) -> list[str]:
        private = [WAYS[key].variant for key in request.variants if WAYS[key].variant.server != TARGET]
        missing = server_needs(private, request) + value_reader.needs() + (target.needs_over_tcp(request.target) if request.target else [])
        if "handlersocket" in request.variants and not (MARIADB / "usr" / "lib" / "mysql" / "plugin" / "handlersocket.so").exists():
            missing.append(f"handlersocket.so under {MARIADB} (scripts/fetch-mariadb gets it)")
        return missing

    def disk_bytes(self, request: Request) -> int:
        return request.settings.dataset_bytes * 8 + (4 << 30)

    def seconds_of(self, request: Request, point: Point) -> float:
        return request.settings.seconds + request.settings.warmup_seconds + (4 if WAYS[point.variant].embedded else 1)

    def seconds_around(self, request: Request) -> float:
        return 60 + 15 * len(self.plan(request))

    @contextmanager
    def open(self, context: Context) -> Iterator[Bench]:
        with ExitStack() as stack:
            payload = stack.enter_context(Payload(context.request.payload))
            bench = ReaderBench(context, payload)
            stack.callback(bench.close)
            bench.start()
            yield bench

    # --- what came out ---
    def verdicts(self, run: RunDirectory) -> list[Verdict]:
        cells, parameters = self.cells_of(run), run.run["parameters"]
        small = [k for k in cells.keys() if k.size_bytes == SMALL]
        harmful, native = _harmful(), DOCUMENT.claim("native")
        on_ndb = replace(harmful, id=f"{harmful.id}-ndb", says=f"NDB: {harmful.says}")
        return [
            rules.judge_gain(cells, harmful, small, "text", "text-compressed", parameters),
            *([rules.judge_gain(cells, on_ndb, small, "target-ndb-text", "target-ndb-text-compressed", parameters)]
              if "target-ndb-text" in cells.variants() else []),
            _large_verdict(cells, parameters),
            _bound_verdict(cells, small, parameters),
            rules.judge_gain(cells, native, small, NDB_API_WAY, "target-ndb-text", parameters),
            not_measured(DOCUMENT.finding("mongodb"), DOCUMENT.claim("mongodb").judging["lacking"]),
            answer_gain(cells, BESIDE_SQL, small, "handlersocket", "text", parameters),
            answer_gain(cells, CONNECTING, small, "connect", "text", parameters),
            answer_gain(cells, EMBEDDED, small, "innodb-embedded", "innodb-prepared", parameters),
        ]

    def figures(self, run: RunDirectory) -> dict:
        cells = self.cells_of(run)
        made = {}
        for threads in sorted({k.threads for k in cells.keys()}):
            keys = [k for k in cells.keys() if k.threads == threads]
            panels = [charts.Panel(size_label(k.size_bytes), [""], [charts.Series(v, cells.label(v), [cells.summary(k, v, throughput)])
                                                                   for v in cells.variants()]) for k in keys]
            made[f"ways-x{threads}"] = charts.bar_panels(f"values fetched per second, {threads} client threads", panels)
        return made

    def tables(self, run: RunDirectory) -> list[Table]:
        cells = self.cells_of(run)
        table = Table(title="values fetched per second", header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for heading in ("", "way"):
            table.add_column(heading, no_wrap=True)
        for heading in ("fetches/s", "range", "/ SQL text", "p95 ms", "MB/s", "CPU server", "CPU client"):
            table.add_column(heading, justify="right")
        add_sections(table, cells, [(f"{size_label(key.size_bytes)} x{key.threads}", [key]) for key in cells.keys()], partial(_row, cells))
        return [table]


class ReaderBench(Bench):
    """
    One private server with HandlerSocket; for the embedded server a data directory of its own; the target, if there is one. Externally
    synchronised.
    """

    def __init__(self, context: Context, payload: Payload):
        request = context.request
        self.settings, self.progress, self.payload = request.settings, context.progress, payload
        self.port, self.read_port, write_port = free_ports(3)
        self.embedded_data = DATA / "embedded"
        self.tables: list[Variant] = list({WAYS[key].table: WAYS[key].variant for key in request.variants}.values())
        self.has_embedded = any(WAYS[key].embedded for key in request.variants)
        plugin = request.plugin if any(v.needs_plugin and v.server != TARGET for v in self.tables) else None
        self.password, self.secret = private.new_secret(), private.new_secret()
        network = {"port": self.port, "bind_address": "127.0.0.1", "handlersocket_address": "127.0.0.1", "handlersocket_port": self.read_port,
                   "handlersocket_port_wr": write_port, "handlersocket_threads": 16,
                   **(value_cache(request) if plugin else {})}
        self.server = LabServer("main", DATA / "main", plugin, False, {**network, **request.mycnf}, plugins=("handlersocket",),
                                secrets={"handlersocket_plain_secret": self.secret, "handlersocket_plain_secret_wr": private.new_secret()})
        self.servers: dict[str, LabServer | TargetServer] = {"main": self.server}
        if request.target:
            self.servers[TARGET] = TargetServer(TARGET, target.over_tcp(request.target), request.target)

    def start(self) -> None:
        for server in self.servers.values():
            server.start()
        self.server.execute(f"CREATE USER {USER}@'127.0.0.1' IDENTIFIED BY '{self.password}'")
        self.server.execute(f"GRANT ALL ON *.* TO {USER}@'127.0.0.1'")

    def close(self) -> None:
        for server in self.servers.values():
            server.close()

    def describe(self) -> dict:
        return {"payload": self.payload.describe(), "servers": {key: server.describe() for key, server in self.servers.items()}}

    def _login(self, table: Variant) -> dict:
        """How the client reaches the server of a table: by TCP."""
        server = self.servers[table.server]
        if isinstance(server, TargetServer):
            return {name: value for name, value in server.login.items() if name != "socket"}
        return {"port": self.port, "user": USER, "password": self.password}

    def _rows(self, size_bytes: int) -> int:
        return max(64, min(200_000, self.settings.dataset_bytes // size_bytes))

    def _reading(self, size_bytes: int, table: Variant, **changes) -> Reading:
        return Reading(database=_schema(table), table=_table(size_bytes), value_bytes=size_bytes, rows=self._rows(size_bytes), **changes)

    def begin(self, block: Block) -> None:
        """One table per engine, filled, and read once."""
        size = block.points[0].size_bytes
        for table in self.tables:
            self.progress.step(f"loading {table.label} {size_label(size)}")
            server = self.servers[table.server]
            server.execute(f"CREATE DATABASE IF NOT EXISTS {_schema(table)}")
            server.execute(create_table(table, size, f"{_schema(table)}.{_table(size)}"))
            value_reader.fill(self._reading(size, table, **self._login(table)), self.payload)
            server.rows(f"SELECT BIT_XOR(CRC32(data)) FROM {_schema(table)}.{_table(size)}")
        if self.has_embedded:
            self.progress.step("loading the embedded server's table")
            (self.embedded_data / "mysql").mkdir(parents=True, exist_ok=True)
            table = ALL["innodb"]
            created = create_table(table, size, _table(size))
            value_reader.fill(self._reading(size, table, first=created, server_options=self._embedded_options()), self.payload)
        for server in self.servers.values():
            server.settle()

    def end(self, block: Block) -> None:
        size = block.points[0].size_bytes
        for table in self.tables:
            self.servers[table.server].execute(f"DROP TABLE {_schema(table)}.{_table(size)}")
        if self.has_embedded:
            shutil.rmtree(self.embedded_data, ignore_errors=True)

    def _embedded_options(self) -> tuple[str, ...]:
        """The same pinned settings as the server's, as far as the library knows them."""
        pinned = [f"--{name.replace('_', '-')}={value}" for name, value in PINNED.items() if name.startswith("innodb_")]
        return ("--no-defaults", f"--datadir={self.embedded_data}", f"--lc-messages-dir={MARIADB / 'usr' / 'share' / 'mysql'}",
                "--max-allowed-packet=64M", *pinned)

    def measure(self, point: Point) -> dict:
        way = WAYS[point.variant]
        table = way.variant
        changes: dict = {"path": way.path, "compress": way.compress, "threads": point.threads, "seconds": self.settings.seconds,
                         "warmup_seconds": self.settings.warmup_seconds}
        if way.embedded:
            warm = f"SELECT BIT_XOR(CRC32(data)) FROM {_table(point.size_bytes)}"
            reading = self._reading(point.size_bytes, table, **changes, first=warm, server_options=self._embedded_options())
        else:
            reading = self._reading(point.size_bytes, table, **changes, **self._login(table))
            if way.path == "handlersocket":
                reading = replace(reading, port=self.read_port, password=self.secret)
            if way.path == value_reader.NDB_API_PATH:
                reading = replace(reading, host=LOOPBACK, port=target.NDB_MANAGEMENT_PORT)
        own_pids = set().union(*(server.process_ids for server in self.servers.values()))
        if self.settings.quiet_wait_seconds_max:
            noise.wait_for_quiet(own_pids, self.settings.quiet_wait_seconds_max)
        pinned = self.servers[table.server].verify_pinned()
        self.progress.step(f"{way.label} {size_label(point.size_bytes)} x {point.threads}")
        memory = device.memory_info()
        with noise.Meter(own_pids) as meter:
            result = value_reader.measure(reading)
        return {"payload": self.payload.kind, "result": result, "cpu": meter.usage, "memory_free_before": memory, "configuration": pinned}


def _schema(table: Variant) -> str:
    return (SCHEMA_PREFIX if table.server == TARGET else "lab_") + table.engine.lower()


def _table(size_bytes: int) -> str:
    return f"values_{size_bytes}"


def _row(cells: Cells, key: CellKey, variant: str) -> list[str]:
    rate, ratio = cells.summary(key, variant, throughput), cells.ratio(key, variant, "text")
    late, server, client = (cells.summary(key, variant, figure) for figure in (p95_ms, server_cpus, client_cpus))
    assert rate and late and server and client  # only variants that have rounds get a row
    return [cells.label(variant), f"[bold]{stats.human_count(rate.median)}[/bold]",
            f"[dim]{stats.human_count(rate.low)}-{stats.human_count(rate.high)}[/dim]", f"{ratio.median:.2f}x" if ratio else "", f"{late.median:.2f}",
            f"{rate.median * key.size_bytes / 1e6:,.0f}", "in the client" if WAYS[variant].embedded else f"{server.median:.2f}", f"{client.median:.2f}"]


def _harmful() -> Claim:
    """The document's percentage and its two rates, which do not quite agree: what lies between is what it says."""
    claim = DOCUMENT.claim("compress")
    stated_gain, of_rates = claim.figures
    return replace(claim, figures=(replace(stated_gain, high=max(stated_gain.high, of_rates.value)),))


def _large_verdict(cells: Cells, parameters: dict) -> Verdict:
    found = cells.ratios([k for k in cells.keys() if k.size_bytes > SMALL], "text", "text-compressed")
    if not found:
        return not_measured(HARMFUL_LARGE, "no larger values in this run")
    text = "; ".join(f"{size_label(k.size_bytes)} x{k.threads}: {r.median:.2f}x without" for k, r in found.items())
    figures = {f"ratio_{k.size_bytes}_x{k.threads}": figures_of(r) for k, r in found.items()}
    points = cells.rounds_of(found, ("text", "text-compressed"))
    return stated(HARMFUL_LARGE, ANSWERED, text, figures, points, parameters)


def _bound_verdict(cells: Cells, keys: list[CellKey], parameters: dict) -> Verdict:
    finding, points = DOCUMENT.finding("processors"), cells.rounds_of(keys, ["text"])
    if not points:
        return not_measured(finding, "no SQL text of small rows in this run")
    busy = [(p["cpu"]["server_cpus"] + p["cpu"]["client_cpus"]) / p["cpu"]["processors"] for p in points]
    server, client = (stats.summarize([p["cpu"][name] for p in points]) for name in ("server_cpus", "client_cpus"))
    ahead = [p["cpu"]["server_cpus"] > p["cpu"]["client_cpus"] for p in points]
    state = REPRODUCED if min(busy) >= BUSY_MIN and all(ahead) else WEAKER if any(ahead) else OPPOSITE
    text = f"server {server.median:.2f} and client {client.median:.2f} processors, {min(busy):.0%}-{max(busy):.0%} of what there is"
    return stated(finding, state, text, {"server_cpus": figures_of(server), "client_cpus": figures_of(client)}, points, parameters)
