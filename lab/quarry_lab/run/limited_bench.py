"""One private server at a time whose memory is limited, as E5 and `cold` measure it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import ClassVar

from ..design.plan import Block
from ..design.request import LabError
from ..probes import noise
from ..report import stats
from ..servers.lab_server import LabServer
from ..servers.memory_cgroup import MemoryCgroup, reason_against
from ..servers.target import TargetServer
from .experiment import Bench, Context
from .kept_settings import note_server, of_block

# Parts of the memory limit. InnoDB's only cache is its buffer pool; MyRocks and QUARRY have the page cache beside their own.
BUFFER_POOL_SHARE, BLOCK_CACHE_SHARE, MEMTABLES_SHARE = 1 / 2, 1 / 8, 1 / 16
REDO_BYTES = 256 << 20
# For the environment of every engine's server: with an arena per thread, heaps outgrow their caches by some hundred MiB under values like these.
FEW_ARENAS = {"MALLOC_ARENA_MAX": "2"}


def cache_options(engine: str, memory_bytes: int) -> dict[str, str]:
    """Caches and redo log of a server whose memory is limited."""
    shares = {"innodb_buffer_pool_size": BUFFER_POOL_SHARE}
    if engine == "ROCKSDB":
        shares |= {"rocksdb_block_cache_size": BLOCK_CACHE_SHARE, "rocksdb_db_write_buffer_size": MEMTABLES_SHARE}
    return {"innodb_log_file_size": str(REDO_BYTES), **{name: str(int(memory_bytes * share)) for name, share in shares.items()}}


class LimitedBench(Bench):
    """
    Externally synchronised. Use as a context manager: what runs is ended on exit. A block has a server of its own; for it there is a
    memory cgroup of memory_bytes where this user may make one (reason_against says why not).
    """

    blocks_stand_alone: ClassVar[bool] = True

    def __init__(self, context: Context, memory_bytes: int):
        self.run, self.progress, self.request, self._memory_bytes = context.run, context.progress, context.request, memory_bytes
        self._stack = ExitStack()
        self._cgroup: MemoryCgroup | None = None
        self._server: LabServer | TargetServer | None = None

    def __enter__(self) -> LimitedBench:
        if reason_against() is None:
            self._cgroup = self._stack.enter_context(MemoryCgroup(self._memory_bytes))
        return self

    def __exit__(self, *_exc) -> None:
        """The cgroup goes though what the server stood on does not."""
        try:
            self._close_server()
        finally:
            self._stack.close()

    @property
    def server(self) -> LabServer:
        """The private one."""
        assert isinstance(self._server, LabServer)
        return self._server

    def ended(self) -> str:
        return self._server.ended() if self._server else ""

    def end(self, block: Block) -> None:
        self._close_server()

    def _close_server(self) -> None:
        if self._server:
            self._server.close()
            self._server = None

    def _note_server(self, block: Block, name: str) -> None:
        """In run.json: how the server of this name runs. Raises LabError where it ran otherwise for points that this run has."""
        assert self._server
        note_server(self.run, name, self._server.describe(), of_block(block))

    def _wait_for_quiet(self, own_pids: set[int]) -> None:
        """As --wait-quiet asks for it. own_pids: of the server and of what else of ours runs next to it."""
        if seconds := self.request.settings.quiet_wait_seconds_max:
            self.progress.step("waiting for a quiet machine")
            noise.wait_for_quiet(own_pids, seconds)

    def _failed(self, what: str, error: Exception) -> LabError:
        """What to raise for a client's error: at what it was, and what of the server ended under it, and how."""
        ended = self.ended()
        if not ended or not isinstance(self._server, LabServer):
            return LabError(f"'{what}': {error}{ended}")
        limit = stats.human_bytes(self._memory_bytes) if self._server.cgroup else "none"
        return LabError(f"the server ended during '{what}' (memory limit {limit}; the kernel's log tells whether it was too small): {error}{ended}")
