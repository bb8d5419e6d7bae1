"""A program that the lab started: its output line by line, a time limit, and an end on every way out, also when the lab itself is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar


# The kernel kills a program so started when the thread that started it ends. A program that becomes another user id loses this: root's HAProxy.
_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL")


class ProgramError(Exception):
    """A program failed or hung; the message holds the end of what it said."""


def last_words(lines: Sequence[str]) -> str:
    """What a program said of errors, or else its last lines."""
    said = [line.strip() for line in lines if "FATAL" in line or "error" in line.lower() or "exception" in line.lower()]
    return "; ".join((said or [line.strip() for line in lines[-5:]])[:5])


class RunningProgram:
    """
    A started program. `wait` returns what it printed (both streams, in order); `stop` ends it early. Not thread-safe; it ends with its thread.
    on_line: called in a thread of its own for each line, as it comes.
    """

    error: ClassVar[type[ProgramError]] = ProgramError

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None, pass_fds: Sequence[int] = (),
                 on_line: Callable[[str], None] | None = None):
        self._name, self._on_line = os.path.basename(command[0]), on_line
        # Its own process group: Ctrl-C reaches the lab first, which then decides.
        self.process = subprocess.Popen([*_WITH_ITS_PARENT, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", env={**os.environ, **(environment or {})}, pass_fds=pass_fds,
                                        start_new_session=True)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.append(line)
            if self._on_line:
                self._on_line(line)

    def wait(self, timeout_seconds: float) -> str:
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            raise self.error(f"{self._name} did not end within {timeout_seconds:.0f} s; its last words: {last_words(self._lines)}") from None
        except BaseException:
            self.stop()
            raise
        self._reader.join()
        if self.process.returncode != 0:
            raise self.error(f"{self._name} failed with exit code {self.process.returncode}: {last_words(self._lines)}")
        return "".join(self._lines)

    def stop(self) -> None:
        """Children that it started end with it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join()
