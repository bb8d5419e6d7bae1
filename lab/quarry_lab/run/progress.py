"""Progress with the time left: a live bar in a terminal, one line per step elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from ..report import stats


class RunProgress:
    """
    Time left = points left x the mean of what their operation took so far (all points' mean until it has one; the given guess
    before the first). Externally synchronised. Use as a context manager.
    """

    def __init__(self, console: Console, title: str, operations_left: list[str], guess_seconds: float):
        self.console, self.title = console, title
        self._left = list(operations_left)
        self._total = len(operations_left)
        self._guess = guess_seconds
        self._taken: dict[str, list[float]] = {}
        self._started = time.monotonic()
        self._bar = Progress(TextColumn("[bold]{task.fields[title]}"), BarColumn(bar_width=24), MofNCompleteColumn(),
                             TextColumn("{task.fields[left]}"), TextColumn("[dim]{task.fields[step]}"), console=console, transient=True)
        self._task = self._bar.add_task("", total=self._total, title=title, left="", step="")

    def __enter__(self) -> RunProgress:
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_exc) -> None:
        if self.console.is_terminal:
            self._bar.stop()

    def seconds_left(self) -> float:
        every = [seconds for taken in self._taken.values() for seconds in taken]
        fallback = sum(every) / len(every) if every else self._guess
        return sum((sum(t) / len(t) if (t := self._taken.get(operation)) else fallback) for operation in self._left)

    def step(self, text: str) -> None:
        """What is being done now."""
        self._bar.update(self._task, step=text, left=f"{stats.human_seconds(self.seconds_left())} left")

    def more(self, operations: list[str]) -> None:
        """Points that were not planned are to be done, too."""
        self._left += operations
        self._total += len(operations)
        self._bar.update(self._task, total=self._total)

    def done(self, operation: str, seconds: float, text: str) -> None:
        """A point is done; `text` is its line."""
        self._left.remove(operation)
        self._taken.setdefault(operation, []).append(seconds)
        finished = self._total - len(self._left)
        self._bar.update(self._task, completed=finished, left=f"{stats.human_seconds(self.seconds_left())} left")
        prefix = f"[dim]{self.title} {finished}/{self._total}[/dim] "
        suffix = "" if self.console.is_terminal else f" [dim]({stats.human_seconds(self.seconds_left())} left)[/dim]"
        self.console.print(prefix + text + suffix, highlight=False, soft_wrap=True)
