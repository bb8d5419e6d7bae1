"""What the user sees while the demo runs: a live bar per phase in a terminal, one line per finished phase elsewhere."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

MB = 1e6


class _Amount(ProgressColumn):
    def render(self, task) -> Text:
        amount = task.fields.get("amount", "")
        return Text(amount, style="cyan")


class Screen:
    """Externally synchronised. `steps_total` is only for the count in front of each line."""

    def __init__(self, console: Console):
        self.console = console
        self._started = time.monotonic()
        self._progress = Progress(
            TextColumn("  [bold]{task.description}"),
            BarColumn(bar_width=28),
            _Amount(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> "Screen":
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def title(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        self.console.print(f"\n[bold]{text}[/bold] [dim]{minutes}:{seconds:02}[/dim]", highlight=False)

    def line(self, text: str) -> None:
        self.console.print(f"  {text}", highlight=False, soft_wrap=True)

    @contextmanager
    def phase(self, text: str, total: float | None = None) -> Iterator[Callable[[int, int], None]]:
        """
        A bar while something runs; yields on_progress(operations, bytes). `total` is in bytes, or in seconds when it
        is below 1000.
        """
        by_time = total is not None and total < 1000
        task = self._progress.add_task(text, total=total, amount="")
        started = time.monotonic()

        def on_progress(operations: int, done_bytes: int) -> None:
            elapsed = max(time.monotonic() - started, 1e-3)
            amount = f"{operations:>6,} ops {done_bytes / MB:>5,.0f} MB {done_bytes / MB / elapsed:>5,.0f} MB/s"
            self._progress.update(task, completed=elapsed if by_time else done_bytes, amount=amount)

        try:
            yield on_progress
        finally:
            self._progress.remove_task(task)
