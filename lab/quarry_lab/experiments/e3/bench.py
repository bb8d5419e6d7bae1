"""
Measures E3's points: the same values in one table for each method, fetched by JMH through one of the links.

Datasets are loaded when a block first needs them and stay until the run ends: they are small against the buffer pool, so every fetch is
hot, and each point verifies all its values first (lab/java, FetchBlobs). NDB's cluster runs for its own blocks, which come together (experiment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass

import pymysql

from ...design.methods import METHODS
from ...design.plan import Block, Point
from ...design.request import LabError
from ...load import java
from ...probes import noise, processors
from ...run.experiment import Bench, Context
from ...run.kept_settings import note_server, refuse_changes
from ...servers import links, ndb_cluster
from ...servers.lab_server import LabServer
from ...servers.links import LINKS, LOOPBACK, Endpoint, Link, Network
from ...servers.ndb_cluster import NdbCluster
from ...servers.processor_cgroup import ProcessorCgroup
from ...servers.routed import PRIMARY, RoutedPair
from ...servers.target import SCHEMA_PREFIX, over_tcp
from .datasets import DATABASE, Datasets
from .findings import DOCUMENT, THREADS

ROWS_MAX, ROWS_MIN = 256, 4
_NDB = "NDB"  # in run.json
Methods = dict[tuple[str, int], set[str]]  # (kind, bytes of a value) -> all that any round measures


def rows_of(size_bytes: int, dataset_bytes: int) -> int:
    """Several values of a size, so that no single one is fetched again and again."""
    return max(ROWS_MIN, min(ROWS_MAX, dataset_bytes // size_bytes))


def weak_processors() -> float:
    """
    What a weak server may use: of the processors that the clients of the document can keep busy here, the share that the author's weak server had
    of his other one's.
    """
    return min(THREADS, len(processors.AVAILABLE)) * (1 + DOCUMENT.value("weak-processor-share"))


@dataclass
class Site:
    """
    Where values lie, and how they are fetched. name: as progress has it; clients: by link; processes: of the servers; stopped: which of them run no
    more, in lines of their own.
    """

    name: str
    data: Datasets
    clients: dict[str, java.Client]
    network: Network
    processes: Callable[[], set[int]]
    stopped: Callable[[], str]

    def meter(self) -> noise.PhaseMeter:
        """Of a fetch. Who makes the links serves it, too, and stands there by itself."""
        proxy = self.network.pids()
        return noise.PhaseMeter(self.processes() | proxy, {"proxy": proxy})

    def ended(self) -> str:
        """What of all this runs no more, in lines; empty where all runs."""
        return self.network.ended() + self.stopped()


def _clients(network: Network, password: str, user: str = java.USER) -> dict[str, java.Client]:
    return {link.key: java.Client(network.endpoint(link.key), password, user) for link in network.links}


@contextmanager
def _telling(what: str, site: Site) -> Iterator[None]:
    """An error of a client, or of a server that was asked, says at what, and what had ended. A late report goes on as it is."""
    try:
        yield
    except (java.JavaError, pymysql.MySQLError) as error:
        raise LabError(f"{what}: {error}{site.ended()}") from error


class FetchBench(Bench):
    """
    Externally synchronised. The caller starts and closes the server, the pair and the networks, and closes this. methods: those of the server; a resumed
    run may have nothing left of some of them in its first round. weak: where the server runs. on_ndb: the methods and links of NDB's cluster.
    """

    def __init__(self, context: Context, server: LabServer, network: Network, methods: Methods, weak: ProcessorCgroup | None = None,
                 on_ndb: tuple[Methods, list[Link]] = ({}, [])):
        self.run, self.progress, self.request = context.run, context.progress, context.request
        self.server, self._weak, self._on_ndb = server, weak, on_ndb
        password = java.create_account(server)
        data = Datasets(server, java.Client(Endpoint(LOOPBACK, network.port), password), methods)
        self._main = Site("the server", data, _clients(network, password), network, lambda: {server.pid}, server.ended)
        self._pair: RoutedPair | None = None
        self._routed: Site | None = None
        self._ndb: Site | None = None
        self._cluster = ExitStack()

    def route(self, pair: RoutedPair, network: Network, methods: Methods) -> None:
        """Gives the points of routed links their servers. network: of the proxy."""
        password = java.create_account(pair.primary)
        pair.replicate(java.USER, password)
        data = Datasets(pair.primary, java.Client(Endpoint(LOOPBACK, pair.ports[PRIMARY]), password), methods)
        self._pair = pair
        self._routed = Site("the primary", data, _clients(network, password), network, pair.pids, pair.ended)

    def describe(self) -> dict:
        self.progress.step("measuring the links")
        found = links.probe([LINKS[key] for key in self.request.options["links"]])
        weak = {"weak_server_processors": round(weak_processors(), 3)} if self._weak else {}
        servers = {"main": self.server.describe(), **(self._pair.describe() if self._pair else {})}
        for name, server in servers.items():
            refuse_changes(self.run, name, server, lambda record: not METHODS[record["variant"]].on_ndb, is_in_session=False)
        return {"servers": servers, "links": found, **weak, "java": java.version(), "libraries": java.libraries()}

    def ended(self) -> str:
        return "".join(site.ended() for site in (self._main, self._routed, self._ndb) if site)

    def close(self) -> None:
        """Ends NDB's cluster."""
        self._ndb = None
        self._cluster.close()

    # --- preparing ---
    def begin(self, block: Block) -> None:
        if METHODS[block.points[0].variant].on_ndb:
            self._ndb = self._ndb or self._start_ndb()
            for kind, size_bytes in self._on_ndb[0]:
                self._load(self._ndb, kind, size_bytes)
            return
        self.close()
        kind, size_bytes = block.points[0].operation, block.points[0].size_bytes
        # The pair first: what it still writes then falls into the time in which the server is loaded and settles.
        if self._pair and self._routed and self._load(self._routed, kind, size_bytes):
            self._pair.catch_up()
        if self._load(self._main, kind, size_bytes):
            self.server.settle()
            if kind == "real":
                seen = self.run.run["sessions"][-1].get("json_value", {})
                self.run.update_session("json_value", {**seen, str(size_bytes): self._main.data.inside(kind, size_bytes)})

    def _start_ndb(self) -> Site:
        self.progress.step("starting NDB Cluster")
        server = NdbCluster(_NDB, ndb_cluster.ONE_SQL_NODE).start()
        self._cluster.callback(server.close)
        note_server(self.run, _NDB, server.describe(), lambda record: METHODS[record["variant"]].on_ndb)
        address, password, (methods, wanted) = over_tcp(server.address), server.login["password"], self._on_ndb
        network = self._cluster.enter_context(Network(wanted, address.port, max(self.request.threads), by_proxy=True))
        loader = java.Client(Endpoint(address.host, address.port), password, address.user)
        data = Datasets(server, loader, methods, SCHEMA_PREFIX + DATABASE)
        clients = _clients(network, password, address.user)
        return Site(_NDB, data, clients, network, lambda: server.process_ids, server.ended)

    def _load(self, site: Site, kind: str, size_bytes: int) -> bool:
        """Whether it had to."""
        if not site.data.needs(kind, size_bytes):
            return False
        what = f"loading {kind}, {size_bytes} bytes, on {site.name}"
        self.progress.step(what)
        with _telling(what, site):
            site.data.load(java.Dataset(kind, size_bytes, self._rows(size_bytes), self.request.seed))
        return True

    def _rows(self, size_bytes: int) -> int:
        return rows_of(size_bytes, self.request.settings.dataset_bytes)

    # --- measuring ---
    def measure(self, point: Point) -> dict:
        link, method, site = LINKS[point.setting], METHODS[point.variant], self._site(point)
        what = f"{method.label}, {point.operation} {point.size_bytes} bytes, {point.setting}"
        self.progress.step(what)
        before = self._pair.fetches() if link.routed and self._pair else {}
        with _telling(what, site), self._limit(link):
            fetched, cpu = self._fetch(point, site)
        more = {"routed_to": self._routed_to(before)} if before else {}
        return {
            "result": {"events_per_second": fetched.operations_per_second, "interval_seconds": self.request.settings.seconds, **asdict(fetched)},
            "loaded": site.data.loaded(point.operation, point.size_bytes, point.variant),
            "cpu": cpu, **more,
        }

    def _site(self, point: Point) -> Site:
        site = self._ndb if METHODS[point.variant].on_ndb else self._routed if LINKS[point.setting].routed else self._main
        assert site
        return site

    def _fetch(self, point: Point, site: Site) -> tuple[java.FetchResult, dict]:
        settings, where = self.request.settings, (point.operation, point.size_bytes)
        seconds = settings.warmup_seconds, settings.seconds
        return java.fetch_blobs(site.data.target(*where, METHODS[point.variant]), site.data.payloads(*where), self._rows(point.size_bytes),
                                point.threads, seconds, self.run.path / "jmh.json", site.clients[point.setting], site.meter())

    def _limit(self, link: Link) -> AbstractContextManager[None]:
        return self._weak.limited(weak_processors()) if link.weak_server and self._weak else nullcontext()

    def _routed_to(self, before: dict[str, int]) -> dict[str, int]:
        """Fetches of each server meanwhile. Raises LabError unless both had some."""
        assert self._pair
        moved = {name: count - before[name] for name, count in self._pair.fetches().items()}
        if idle := [name for name, count in moved.items() if not count]:
            raise LabError(f"the {idle[0]} had no fetch: connections are to be spread over both servers")
        return moved
