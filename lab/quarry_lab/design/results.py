"""
The files of one run: run.json (what was run, on what), points.jsonl (one raw round of one cell per line), points.csv (the same, flat).

Invariant: a point is appended and flushed when it is done, so an interrupted run keeps what it has; the same command resumes it. A run
with other parameters never mixes with it: the old directory is moved aside.
"""

from __future__ import annotations

import csv
import json
import os
import time
from pathlib import Path


class RunDirectory:
    """Externally synchronised. `records` holds all that was measured as it stands in points.jsonl, `points` of each point what counts: the last."""

    def __init__(self, path: Path, parameters: dict, fresh: bool = False, reopen: bool = False):
        """reopen: a finished run of these parameters is gone on with, too."""
        self.path = path
        self.parameters = parameters
        self.moved_to: Path | None = None
        if (path / "run.json").exists() and (fresh or not open_run(path).may_resume(parameters, reopen)):
            self.moved_to = path.with_name(f"{path.name}-{time.strftime('%Y%m%d-%H%M%S', time.localtime((path / 'run.json').stat().st_mtime))}")
            os.rename(path, self.moved_to)
        path.mkdir(parents=True, exist_ok=True)
        self.records = self._read_records()
        self.run: dict = json.loads((path / "run.json").read_text()) if (path / "run.json").exists() else {
            "parameters": parameters, "started": time.time(), "finished": None, "sessions": []}
        self.run["finished"] = None
        self.resumed = bool(self.records)
        self._write_run()

    @property
    def points(self) -> list[dict]:
        return list({point_key(record): record for record in self.records}.values())

    def is_of(self, parameters: dict) -> bool:
        return self.run["parameters"] == json.loads(json.dumps(parameters))

    def may_resume(self, parameters: dict, reopen: bool = False) -> bool:
        """Only an unfinished run of exactly these parameters is gone on with; with reopen a finished one, too."""
        return (reopen or self.run["finished"] is None) and self.is_of(parameters)

    def _read_records(self) -> list[dict]:
        """Also cuts off the torn last line of a run that was killed while writing it: that point is measured again."""
        file = self.path / "points.jsonl"
        if not file.exists():
            return []
        data = file.read_bytes()
        complete = data[: data.rfind(b"\n") + 1]
        if len(complete) < len(data):
            file.write_bytes(complete)
        return [json.loads(line) for line in complete.splitlines()]

    def _write_run(self) -> None:
        temporary = self.path / "run.json.new"
        temporary.write_text(json.dumps(self.run, indent=1) + "\n")
        temporary.rename(self.path / "run.json")

    def add_session(self, session: dict) -> None:
        """What was found at each start: machine, server version and variables, plugin checksum, the device's own rate."""
        self.run["sessions"].append(session)
        self._write_run()

    def update_session(self, key: str, value) -> None:
        self.run["sessions"][-1][key] = value
        self._write_run()

    def add_point(self, point: dict) -> None:
        with open(self.path / "points.jsonl", "a") as file:
            file.write(json.dumps(point) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.records.append(point)

    def done_keys(self) -> set[tuple]:
        return {point_key(p) for p in self.records}

    def finish(self) -> None:
        self.run["finished"] = time.time()
        self._write_run()

    def write_csv(self) -> Path:
        rows = [flatten(p) for p in self.records]
        columns = list(dict.fromkeys(column for row in rows for column in row))
        target = self.path / "points.csv"
        with open(target, "w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        return target


def open_run(path: Path) -> RunDirectory | None:
    """The run in a directory as it stands, finished or not; None when there is none."""
    if not (path / "run.json").exists():
        return None
    run = RunDirectory.__new__(RunDirectory)
    run.path, run.moved_to = path, None
    run.run = json.loads((path / "run.json").read_text())
    run.parameters = run.run["parameters"]
    run.records = run._read_records()
    run.resumed = bool(run.records)
    return run


def point_key(point: dict) -> tuple:
    return (point["round"], point["operation"], point["size_bytes"], point["threads"], point["variant"], point.get("setting", ""))


def flatten(value: dict, prefix: str = "") -> dict:
    """Nested dicts become dotted columns; lists become text, but lists of records (timelines) stay in points.jsonl alone."""
    flat: dict = {}
    for key, item in value.items():
        if isinstance(item, dict):
            flat.update(flatten(item, f"{prefix}{key}."))
        elif not _is_list_of_records(item):
            flat[prefix + key] = "; ".join(map(str, item)) if isinstance(item, list) else item
    return flat


def _is_list_of_records(item) -> bool:
    return isinstance(item, list) and bool(item) and isinstance(item[0], (dict, list))
