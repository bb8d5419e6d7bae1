"""A cgroup that limits the processor time of a server: a weak machine is played by a strong one that may run a part of each period."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .cgroup import ROOT, Cgroup, Hierarchies

_QUOTA_FILE, _MAX_FILE = "cpu.cfs_quota_us", "cpu.max"  # of version 1 and of version 2
_HIERARCHIES = Hierarchies("processor", "quarry-lab-cpu", (
    (ROOT / "cpu", _QUOTA_FILE), (ROOT / "cpu,cpuacct", _QUOTA_FILE), (ROOT, _MAX_FILE), (ROOT / "unified", _MAX_FILE)))
_PERIOD_FILE = "cpu.cfs_period_us"  # of version 1, next to the quota
PERIOD_US, QUOTA_US_MIN = 10_000, 1_000  # short, so that a fetch meets many of them; the kernel takes no quota below a millisecond

reason_against = _HIERARCHIES.reason_against


class ProcessorCgroup(Cgroup):
    """Without a limit at first."""

    def __init__(self) -> None:
        super().__init__(_HIERARCHIES)

    @contextmanager
    def limited(self, processors: float) -> Iterator[None]:
        """Meanwhile its processes have so many processors' time together."""
        quota = max(QUOTA_US_MIN, round(processors * PERIOD_US))
        self._write(str(quota))
        try:
            yield
        finally:
            self._write("max" if self._limit_file == _MAX_FILE else "-1")

    def quota_us(self) -> int | None:
        """Of each period; None: no limit."""
        found = (self.path / self._limit_file).read_text().split()[0]
        return None if found in ("max", "-1") else int(found)

    def _write(self, quota: str) -> None:
        if self._limit_file == _MAX_FILE:
            (self.path / self._limit_file).write_text(f"{quota} {PERIOD_US}")
            return
        if quota != "-1":
            (self.path / _PERIOD_FILE).write_text(str(PERIOD_US))
        (self.path / self._limit_file).write_text(quota)
