"""The lab's C++ programs: compiled when they are needed, and anew when a source is newer."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from quarry_server.server import BUILD, REPOSITORY

from ..servers.program import RunningProgram

SOURCES = REPOSITORY / "lab" / "clients"
PROGRAMS = BUILD / "bench-clients"
COMPILE_SECONDS_MAX = 600
COMPILE = ("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")


def needs() -> list[str]:
    return [] if shutil.which("g++") else ["g++ (scripts/setup installs it)"]


def compiled(name: str, sources: Sequence[Path], flags: Callable[[], list[str]] = list) -> Path:
    """The program of these sources (headers among them); ProgramError with the compiler's words. flags are asked for when it is compiled."""
    program = PROGRAMS / name
    if program.exists() and program.stat().st_mtime > max(path.stat().st_mtime for path in sources):
        return program
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    units = [str(path) for path in sources if path.suffix == ".cc"]
    RunningProgram([*COMPILE, *units, "-o", str(program), *flags()]).wait(COMPILE_SECONDS_MAX)
    return program
