"""
The yardsticks as variants: rows in InnoDB as Quarry would have them, whose values no engine keeps.

Each gives what an engine reaches that is spared the rest of the work, so none of them is an engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from quarry_advisor.constants import TRAILER_BYTES

from ..design.variants import ALL, NDB_HEAD_BYTES, Variant

HEAD_BYTES = NDB_HEAD_BYTES + TRAILER_BYTES  # what Quarry leaves in the row of a value


@dataclass(frozen=True)
class Yardstick(Variant):
    kept_bytes: int | None = None  # all that is stored of a value, which is sent whole; None: the value
    free_values: bool = False  # point selects get a constant of the value's size beside what the row holds
    # As many bytes come from the device: a function of the 'server' reads them instead of the constant, or the 'client' reads them beside it.
    device_reads: str = ""
    # An insert or update makes its values durable in a file beside, of a kind of durable_write.cc; nobody waits for it.
    device_writes: str = ""
    memory_reads: bool = False  # and the constant stands in memory as large as the dataset (memory_value.cc)

    @property
    def value_expression(self) -> str:
        return super().value_expression if self.kept_bytes is None else f"LEFT(?, {self.kept_bytes})"

    def stored_bytes(self, size_bytes: int) -> int:
        return super().stored_bytes(size_bytes) if self.kept_bytes is None else self.kept_bytes


def _durable(kind: str, label: str) -> Yardstick:
    return Yardstick(f"heads-and-{kind}", f"InnoDB, heads; values {label}", "InnoDB", kept_bytes=HEAD_BYTES, device_writes=kind)


YARDSTICKS = {
    v.key: v
    for v in (
        Yardstick("no-table", "SQL layer alone", ""),
        Yardstick("blackhole", "BLACKHOLE: SQL layer alone", "BLACKHOLE"),
        Yardstick("heads-alone", "InnoDB, heads alone", "InnoDB", kept_bytes=HEAD_BYTES),
        _durable("growing", "durable where a file grows"),
        _durable("headed", "durable behind headers where a file grows"),
        _durable("written", "durable in space written before"),
        _durable("compressed", "lz4 and durable behind headers where a file grows"),
        Yardstick("heads-and-constant", "InnoDB, heads; a constant for each value", "InnoDB", kept_bytes=HEAD_BYTES, free_values=True),
        Yardstick("heads-and-memory", "InnoDB, heads; values from memory, and durable where a file grows", "InnoDB", kept_bytes=HEAD_BYTES,
                  free_values=True, memory_reads=True, device_writes="growing"),
        Yardstick("trailers-and-device", "InnoDB, trailers; the device's bytes for each value", "InnoDB", kept_bytes=TRAILER_BYTES,
                  free_values=True, device_reads="server"),
        Yardstick("trailers-and-client", "InnoDB, trailers; a constant for each value, and the client reads the device", "InnoDB",
                  kept_bytes=TRAILER_BYTES, free_values=True, device_reads="client"),
        Yardstick("empty-values", "InnoDB, values of no bytes", "InnoDB", kept_bytes=0),
    )
}
KNOWN: dict[str, Variant] = {**ALL, **YARDSTICKS}
