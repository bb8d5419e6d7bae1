"""What to run: the request of one experiment, made from its defaults, the scale and the command line. Sizes in bytes, times in seconds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from quarry_server.server import BUILD, PLUGIN

from .profile import BARE

BENCH_OUTPUT = BUILD / "bench"
DATA = BENCH_OUTPUT / "data"  # of all servers of a run; removed when it ends
SCALES = ("quick", "normal", "full")


class LabError(Exception):
    """The run cannot go on; the message says what is missing."""


@dataclass(frozen=True)
class Address:
    """HOST:PORT or the path of a socket, and who to be there."""

    socket: str = ""
    host: str = ""
    port: int = 0
    user: str = "root"

    @property
    def text(self) -> str:
        return self.socket or f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Settings:
    seconds: int = 10
    warmup_seconds: int = 2
    dataset_bytes: int = 384 << 20  # per variant; several variants' datasets fit the buffer pool together
    tables: int = 1
    rows_min: int = 64
    read_percent: int = 90
    batch_rows: int = 1
    disk_budget_bytes: int = 32 << 30  # a server's directory is made anew beyond this
    disk_reserve_bytes: int = 8 << 30  # left free for everyone else
    device_probe_seconds: float = 3.0
    quiet_wait_seconds_max: float = 0.0  # before each point, for other processes to leave the processors alone


@dataclass
class Request:
    """`variants` are keys that the experiment knows; `options` holds what only this experiment understands (it is part of the identity)."""

    name: str
    operations: list[str]
    sizes_bytes: list[int]
    threads: list[int]
    variants: list[str]
    rounds: int = 3
    seed: int = 20260101
    scale: str = "normal"
    payload: str = "random"
    settings: Settings = field(default_factory=Settings)
    options: dict = field(default_factory=dict)
    mycnf: dict[str, str] = field(default_factory=dict)
    plugin: Path | None = PLUGIN
    baseline_plugin: Path | None = None
    target: Address | None = None  # a server of the user's
    output: Path | None = None
    fresh: bool = False
    profile: str = BARE  # profile.py; the command line's default is production
    apart: bool = False  # servers and clients have processors of their own (processors.py)
    repeat_seconds_max: float = 0.0  # spent on measuring noisy points again

    @property
    def output_directory(self) -> Path:
        return self.output or BENCH_OUTPUT / self.name

    def identity(self) -> dict:
        """What makes two runs the same run; an experiment adds the checksums of the builds that it measures."""
        return {
            "name": self.name, "operations": self.operations, "sizes_bytes": self.sizes_bytes, "threads": self.threads,
            "variants": self.variants, "rounds": self.rounds, "seed": self.seed, "scale": self.scale, "payload": self.payload,
            "settings": asdict(self.settings), "options": self.options, "mycnf": self.mycnf, "target": self.target and self.target.text,
            "profile": self.profile, **({"apart": True} if self.apart else {}),
        }


def parse_options(defaults: dict, pairs: list[str]) -> dict:
    """NAME=VALUE of the command line over an experiment's own options; a value has the type of the default, lists are split at commas."""
    found = dict(defaults)
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or name not in defaults:
            raise LabError(f"unknown option '{pair}' (this experiment has: {', '.join(f'{n}=' for n in defaults) or 'none'})")
        found[name] = _as(defaults[name], name, value)
    return found


def _as(default, name: str, value: str):
    try:
        if isinstance(default, list):
            words = [word for word in value.split(",") if word]
            return [int(word) for word in words] if default and isinstance(default[0], int) else words
        return int(value) if isinstance(default, int) else value
    except ValueError:
        raise LabError(f"option {name} takes numbers (got '{value}')") from None
