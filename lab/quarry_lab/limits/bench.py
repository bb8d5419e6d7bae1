"""Measures yardsticks on tables: their values come from functions of the server, and the device's own commits are taken with its rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ..design.plan import Point
from ..design.request import LabError
from ..design.variants import Variant
from ..load import sysbench
from ..load.payload import Payload
from ..run.experiment import Context
from ..run.runner import Server, TableBench, bytes_sent
from ..servers.lab_server import LabServer
from . import ordered_commits, server_functions
from .yardsticks import KNOWN, Yardstick


class LimitsBench(TableBench):
    """commit_loads: pairs of threads and bytes of a value whose ordered commits are measured whenever the device is (ordered_commits)."""

    def __init__(self, context: Context, servers: dict[str, Server], payloads: dict[str, Payload], commit_loads: Sequence[tuple[int, int]] = ()):
        super().__init__(context, servers, payloads, KNOWN)
        self._commit_loads = commit_loads

    def _device_rates(self, directory: Path) -> dict:
        return {**super()._device_rates(directory), "ordered_commits": ordered_commits.probe(directory, self._commit_loads)}

    def _load(self, point: Point, server: Server, operation: str, schema: str) -> sysbench.Load:
        variant = self.known[point.variant]
        return replace(super()._load(point, server, operation, schema), free_values=isinstance(variant, Yardstick) and variant.free_values)

    def _measured_load(self, point: Point, server: Server, schema: str) -> sysbench.Load:
        variant, load = self.known[point.variant], super()._measured_load(point, server, schema)
        if not isinstance(variant, Yardstick):
            return load
        if variant.device_writes:
            load = replace(load, value_expression=f"durable_write('{server.directory}', '{variant.device_writes}', ?, {variant.kept_bytes})")
        if variant.memory_reads:
            dataset_bytes = self._rows(point.size_bytes) * self.settings.tables * point.size_bytes
            load = replace(load, free_value=f"memory_value({point.size_bytes}, {dataset_bytes})")
        return load

    def _measure(self, point: Point, server: Server, variant: Variant, schema: str) -> dict:
        """
        Functions of the server take values that are read from its memory, and make those that are written durable in a file beside. A run whose
        values were not all sent and durable is none.
        """
        if not isinstance(variant, Yardstick) or not (variant.device_writes or variant.memory_reads):
            return super()._measure(point, server, variant, schema)
        assert isinstance(server, LabServer)  # Limits takes no target
        functions = [name for name, is_used in (("durable_write", variant.device_writes), ("memory_value", variant.memory_reads)) if is_used]
        with ExitStack() as stack:
            for name in functions:
                stack.enter_context(server_functions.loaded_with_end(server, name))
            before = bytes_sent(server)
            record = super()._measure(point, server, variant, schema)
            sent = bytes_sent(server) - before
            ended = {name: int(server.rows(f"SELECT {name}_end()")[0][0] or 0) for name in functions}
        if variant.memory_reads:
            require_bytes(variant, record["result"]["total_reads"] * point.size_bytes, {"sent": sent})
        if not variant.device_writes:
            return record
        require_bytes(variant, record["payload_bytes_written"], {"made durable": ended["durable_write"]})
        return {**record, "durable_value_bytes": ended["durable_write"]}


def require_bytes(variant: Variant, wanted: int, found: Mapping[str, int]) -> None:
    """found: bytes by what was done with them. LabError when one is less than wanted: such a run measured something else."""
    if short := [f"{done} bytes were {what}" for what, done in found.items() if done < wanted]:
        raise LabError(f"{variant.key}: of {wanted} {', '.join(short)}")
