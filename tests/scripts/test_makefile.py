"""What the verbs of the Makefile would do."""

import subprocess

import pytest

from harness.server import REPOSITORY


@pytest.mark.parametrize("verb", ["clean", "distclean"])
def test_what_runs_is_stopped_before_its_files_are_removed(verb):
    command = ["make", "--no-print-directory", "--dry-run", verb]
    lines = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    stops = [number for number, line in enumerate(lines) if line.endswith(("scripts/server stop", "scripts/cluster stop", "scripts/ndb stop"))]
    (removal,) = (number for number, line in enumerate(lines) if "rm -rf" in line)
    assert len(stops) == 3 and max(stops) < removal, lines
