"""Measures E1's points: one engine at a time, some of them with more data than memory."""

from __future__ import annotations

import resource

from ...design.plan import Point
from ...design.profile import PRODUCTION
from ...design.request import DATA, LabError
from ...design.variants import TARGET, Variant
from ...probes import device
from ...report import stats
from ...run.limited_bench import FEW_ARENAS, cache_options
from ...run.runner import Server, use_schema
from ...servers.lab_server import LabServer
from ...servers.memory_cgroup import MemoryCgroup
from ...servers.ndb_cluster import NdbCluster
from .. import engine_bench
from ..engine_bench import level_text
from .engines import MORE_DATA, MORE_DATA_LOG_CACHE, MORE_DATA_MEMORY_BYTES, MORE_DATA_TIMES, Group
from .findings import LIMITED_LINKS, LINK_MBITS

# Of each user, client and server together: copies of a value in the packet, the engine's record and the client library; and a thread's own.
USER_VALUES, USER_BYTES = 4, 1 << 20


def users_bytes(threads: int, size_bytes: int) -> int:
    """Memory that so many users take next to what the server has for data."""
    return threads * (USER_VALUES * size_bytes + USER_BYTES)


def open_files_lacking(connections: int) -> str:
    """Each connection has a file open at both ends. Empty when the limit allows it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    need = 2 * connections + 1000
    if limit == resource.RLIM_INFINITY or limit >= need:
        return ""
    return f"a limit of {need} open files ('ulimit -Hn' says {limit}) for {connections} connections"


class EngineBench(engine_bench.EngineBench):
    """A group with a setting has more data than memory, or is NDB with limited links."""

    @property
    def _is_limited(self) -> bool:
        return self._group is not None and self._group.setting == MORE_DATA

    def _made(self, group: Group, variants: list[Variant]) -> dict[str, Server]:
        if group.setting == MORE_DATA:
            return {variants[0].server: self._limited_server(variants[0])}
        if group.setting == LIMITED_LINKS:
            return {TARGET: NdbCluster(TARGET, link_mbits=LINK_MBITS)}
        return super()._made(group, variants)

    def _limited_server(self, variant: Variant) -> LabServer:
        """
        With all of its memory in a cgroup: half is the pool, an eighth the value cache, and what is left the page cache's and its own. With an arena for
        each thread the sessions' own would outgrow that.
        """
        cgroup = self._stack.enter_context(MemoryCgroup(MORE_DATA_MEMORY_BYTES))
        caches = cache_options(variant.engine, MORE_DATA_MEMORY_BYTES)
        if variant.needs_plugin:
            caches["quarry_cache_size"] = str(MORE_DATA_MEMORY_BYTES // 8)
        if self.request.profile == PRODUCTION:
            caches["binlog_cache_size"] = MORE_DATA_LOG_CACHE
        plugin = self.request.plugin if variant.needs_plugin else None
        return LabServer(variant.server, DATA / variant.server, plugin, False, {**self.request.mycnf, **caches}, cgroup=cgroup.path,
                         environment=FEW_ARENAS)

    def _named_in_run(self, group: Group) -> str:
        return f"{group.engine}, {group.setting}" if group.setting else group.engine

    def _rows(self, size_bytes: int) -> int:
        if self._is_limited:
            return -(-MORE_DATA_TIMES * MORE_DATA_MEMORY_BYTES // size_bytes // self.settings.tables)
        return super()._rows(size_bytes)

    def _warm(self, server: Server, schema: str, variant: Variant) -> None:
        """Not where all data cannot be in memory."""
        if self._is_limited:
            use_schema(server, schema)
        else:
            super()._warm(server, schema, variant)

    def measure(self, point: Point) -> dict:
        need, free = users_bytes(point.threads, point.size_bytes), device.memory_info()["MemAvailable"]
        if free < need:
            raise LabError(f"{stats.human_bytes(free)} of memory are available; {level_text(point)} may take {stats.human_bytes(need)} next to the "
                           "server's caches: end something, or leave it out (--threads, --sizes)")
        return super().measure(point)

    def _memory(self, point: Point, server: Server, variant: Variant, schema: str) -> dict | None:
        return None if self._is_limited else super()._memory(point, server, variant, schema)
