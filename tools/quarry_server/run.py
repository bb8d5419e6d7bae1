"""Runs a program to its end: within a time, and an error holds what the program said."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

TIMEOUT_S = 600
LINES_SHOWN = 25  # of what a failed program said


class RunError(Exception):
    """A program failed, or did not end in time; the message holds the last lines of what it said."""


def run_or_raise(
    command: Sequence[Any],
    error: Callable[[str], Exception] = RunError,
    *,
    timeout_s: float = TIMEOUT_S,
    data: str | bytes | None = None,
    binary: bool = False,
    **options: Any,
) -> Any:
    """
    What the program wrote to its standard output: a str, or bytes if `binary`. `data` is its standard input; else that is empty.
    `options` are Popen's; stderr=subprocess.STDOUT puts both streams into the result. Raises `error` when the program fails. After
    timeout_s, or on an interrupt, it is killed with its children.
    """
    words = [str(part) for part in command]
    options = {"stdin": subprocess.DEVNULL if data is None else subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    try:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True, **options)
    except OSError as problem:
        raise error(f"{words[0]} cannot be started: {problem.strerror}") from None
    with process:
        try:
            output, errors = process.communicate(data.encode() if isinstance(data, str) else data, timeout_s)
        except subprocess.TimeoutExpired:
            raise error(f"{_shown(words)} did not end within {timeout_s:g} s{_tail(*_kill(process))}") from None
        except BaseException:
            _kill(process)
            raise
    if process.returncode != 0:
        raise error(f"{_shown(words)} failed with exit code {process.returncode}{_tail(output, errors)}")
    return output if binary else output.decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes | None]:
    """Ends it and its children, which may hold its streams open; what it had said."""
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()


def _shown(words: list[str]) -> str:
    """Enough to know which run it was; a command may be very long."""
    return f"'{' '.join(words[:6])}{' ...' if len(words) > 6 else ''}'"


def _tail(output: bytes, errors: bytes | None) -> str:
    said = (output + (errors or b"")).decode(errors="replace").strip().splitlines()
    return "".join(f"\n  {line}" for line in said[-LINES_SHOWN:])
