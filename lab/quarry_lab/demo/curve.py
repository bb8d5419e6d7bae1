"""
The small E1 curve: 90% point reads and 10% updates of one BLOB over the number of threads, with the column variants
of the published experiment.

Short points (seconds, not tens of them) on data that fits memory: it shows the shape on this machine. `make lab`
measures E1 properly.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from quarry_server import private

from ..design import variants
from ..load import sysbench
from ..load.payload import Payload
from ..report.stats import counted
from ..servers.lab_server import LabServer
from .screen import Screen

KEYS = ("quarry-head", "quarry-inline", "quarry-varbinary")
LABELS = {"quarry-head": "default head (256 B)", "quarry-inline": "inline", "quarry-varbinary": "VARBINARY"}
SIZES_BYTES = (4 << 10, 64 << 10)


@dataclass(frozen=True)
class Settings:
    threads: tuple[int, ...] = (1, 8, 32)
    rounds: int = 2
    seconds: int = 2
    dataset_bytes: int = 64 << 20  # per variant
    read_percent: int = 90
    seed: int = 1


def _schema(key: str, size_bytes: int) -> str:
    return f"e1_{key.replace('-', '_')}_{size_bytes}"


class Curve:
    """Measures on the given server. Externally synchronised. `engine` replaces QUARRY when there is none."""

    def __init__(self, server: LabServer, settings: Settings, screen: Screen, engine: str):
        self.server, self.settings, self.screen = server, settings, screen
        self.variants = {key: replace(variants.ALL[key], engine=engine) for key in KEYS}

    def run(self) -> dict:
        cells = [(key, size) for size in SIZES_BYTES for key in KEYS if self.variants[key].applies_to(size)]
        points, statements, rng = [], {}, random.Random(self.settings.seed)
        with Payload("random", 32 << 20) as payload:
            for key, size in cells:
                statements[f"{key}/{size}"] = self._fill(key, size, payload)
            for round_number in range(1, self.settings.rounds + 1):
                settled = self.server.settle()
                order = [(key, size, threads) for key, size in cells for threads in self.settings.threads]
                rng.shuffle(order)
                for key, size, threads in order:
                    points.append(
                        {
                            "round": round_number,
                            "settled": settled["settled"],
                            **self._point(key, size, threads, payload),
                        }
                    )
            for key, size in cells:
                self.server.execute(f"DROP DATABASE {_schema(key, size)}")
            described = payload.describe()
        return {
            "points": points,
            "statements": statements,
            "payload": described,
            "labels": LABELS,
            "read_percent": self.settings.read_percent,
            "dataset_bytes_per_variant": self.settings.dataset_bytes,
            "seconds_per_point": self.settings.seconds,
        }

    def _load(self, key: str, size_bytes: int, threads: int) -> sysbench.Load:
        return sysbench.Load(
            operation="mix",
            socket=self.server.socket,
            database=_schema(key, size_bytes),
            user=private.account(),
            password="",
            value_bytes=size_bytes,
            threads=threads,
            rows=max(64, self.settings.dataset_bytes // size_bytes),
            warmup_seconds=0,
            seconds=self.settings.seconds,
            read_percent=self.settings.read_percent,
        )

    def _fill(self, key: str, size_bytes: int, payload: Payload) -> str:
        statement = variants.create_table(self.variants[key], size_bytes, "sbtest1")
        with self.screen.phase(f"E1: loading {LABELS[key]}, {size_bytes >> 10} KB"):
            self.server.execute(f"CREATE DATABASE {_schema(key, size_bytes)}")
            self.server.execute(f"USE {_schema(key, size_bytes)}")
            self.server.execute(statement)
            sysbench.fill(self._load(key, size_bytes, 4), payload)
            self.server.rows("SELECT BIT_XOR(CRC32(data)) FROM sbtest1")  # every value read once: the points are hot
        return statement

    def _point(self, key: str, size_bytes: int, threads: int, payload: Payload) -> dict:
        with self.screen.phase(f"E1: {LABELS[key]}, {size_bytes >> 10} KB, {counted(threads, 'thread')}"):
            result = sysbench.run(self._load(key, size_bytes, threads), payload)
        return {"variant": key, "size_bytes": size_bytes, "threads": threads, **result.as_dict()}
