"""
Measures the cells of tables twice: with the machine's memory free, and with it taken.

A block is one of the two conditions with a fresh server of its own, every engine in it, conditioned and loaded as TableBench does it. Taken:
the server starts in a memory cgroup, which counts its page cache, too. Its settings are the same in both; every point checks them.
"""

from __future__ import annotations

from dataclasses import replace

from ...design.plan import OPERATION_LABELS, Block, Point
from ...design.request import Request
from ...design.variants import ALL
from ...load import sysbench
from ...load.payload import Payload
from ...run.experiment import Context
from ...run.limited_bench import LimitedBench
from ...run.runner import TableBench
from ...servers.memory_cgroup import MemoryCgroup
from ..table_experiment import buffer_pool_bytes, make_servers
from .findings import TAKEN

CACHE_SHARE = 1 / 2  # of the memory beside the buffer pool, for Quarry's value cache; what is left is for all else and the page cache


class PressureBench(LimitedBench):
    """A point's setting is its condition. Externally synchronised."""

    def __init__(self, context: Context):
        super().__init__(context, memory_bytes(context.request))
        self._context = context
        self._payload: Payload
        self._tables: TableBench

    def __enter__(self) -> PressureBench:
        self._payload = self._stack.enter_context(Payload(self.request.payload))
        super().__enter__()
        return self

    @property
    def cgroup(self) -> MemoryCgroup:
        assert self._cgroup  # Pressure.needs asked for it
        return self._cgroup

    def describe(self) -> dict:
        return {"payload": self._payload.describe(), "memory_limit": self.cgroup.describe(), "cache_bytes": cache_bytes(self.request)}

    def begin(self, block: Block) -> None:
        condition = block.points[0].setting
        self.progress.step(f"starting a server, memory {condition}")
        variants = [ALL[key] for key in sorted({point.variant for point in block.points})]
        cgroup = self.cgroup.path if condition == TAKEN else None
        (server,) = make_servers(variants, self.request, cache_bytes(self.request), cgroup).values()
        self._server = server.start()
        self._note_server(f"{server.key} {condition}")
        self._tables = TableBench(self._context, {server.key: server}, {self._payload.kind: self._payload})
        self._tables.begin(block)

    def measure(self, point: Point) -> dict:
        self.cgroup.forget_peak()
        try:
            record = self._tables.measure(replace(point, setting=""))  # a setting there is a payload
        except sysbench.SysbenchError as error:
            raise self._failed(OPERATION_LABELS[point.operation], error) from error
        taken = point.setting == TAKEN
        return {**record, "memory_limit_bytes": self.cgroup.limit_bytes if taken else None,
                "limit_reached": self.cgroup.limit_reached() if taken else None}


def memory_bytes(request: Request) -> int:
    """The limit: the buffer pool and what is left beside it."""
    return buffer_pool_bytes(request) + request.options["beside_bytes"]


def cache_bytes(request: Request) -> int:
    return int(request.options["beside_bytes"] * CACHE_SHARE)
