"""A memory cgroup for a server whose dataset shall not fit into memory: page cache counts as memory there, too."""

from __future__ import annotations

from typing import Self

from .cgroup import ROOT, Cgroup, Hierarchies

_HIERARCHIES = Hierarchies("memory", "quarry-lab", (
    (ROOT / "memory", "memory.limit_in_bytes"), (ROOT, "memory.max"), (ROOT / "unified", "memory.max")))
# Swap would be memory by another name: (file, what to write for a limit). Missing where the kernel does not count it.
_SWAP = (("memory.memsw.limit_in_bytes", lambda limit: limit), ("memory.swap.max", lambda limit: 0))

reason_against = _HIERARCHIES.reason_against


class MemoryCgroup(Cgroup):
    def __init__(self, limit_bytes: int):
        super().__init__(_HIERARCHIES)
        self.limit_bytes = limit_bytes

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            (self.path / self._limit_file).write_text(str(self.limit_bytes))
            for name, value in _SWAP:
                if (self.path / name).exists():
                    (self.path / name).write_text(str(value(self.limit_bytes)))
        except BaseException:
            self.path.rmdir()
            raise
        return self

    def describe(self) -> dict:
        return {"limit_bytes": int((self.path / self._limit_file).read_text()), "path": str(self.path), "file": self._limit_file}
