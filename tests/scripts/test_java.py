"""scripts/build-java runs nothing that it downloaded before the checksums were compared."""

import os
import shutil
import subprocess

import pytest
from quarry_lab.load.java import IVY

from harness.server import REPOSITORY


@pytest.fixture
def tree(tmp_path):
    """A copy of what build-java needs, with a compiler that only says that it was called; downloads are shared."""
    if not IVY.exists() or shutil.which("java") is None:
        pytest.skip("no Ivy or no Java: scripts/setup installs both")
    made = tmp_path / "tree"
    shutil.copytree(REPOSITORY / "lab" / "java", made / "lab" / "java")
    (made / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "build-java", made / "scripts")
    downloads = REPOSITORY / "build" / "downloads" / "ivy"
    downloads.mkdir(parents=True, exist_ok=True)
    (made / "build" / "downloads").mkdir(parents=True)
    (made / "build" / "downloads" / "ivy").symlink_to(downloads)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "javac").write_text(f"#!/bin/sh\ntouch {tmp_path}/compiled\n")
    (programs / "javac").chmod(0o755)
    return made


def build(tree):
    path = f"{tree.parent / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        [tree / "scripts" / "build-java"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False
    )


def test_the_right_libraries_are_compiled_with(tree):
    done = build(tree)
    assert done.returncode == 0 and (tree.parent / "compiled").exists(), done
    assert len(list((tree / "build" / "java" / "lib").iterdir())) == 15


@pytest.mark.parametrize("library", ["processor/jmh-generator-annprocess-1.37.jar", "lib/jmh-core-1.37.jar"])
def test_a_library_with_another_checksum_is_not_run(tree, library):
    sums = tree / "lab" / "java" / "libraries.sha256"
    lines = [line if not line.endswith(library) else f"{'0' * 64}  {library}" for line in sums.read_text().splitlines()]
    sums.write_text("\n".join(lines) + "\n")
    done = build(tree)
    assert done.returncode == 1 and "none of them was run" in done.stderr and library in done.stderr, done
    assert not (tree.parent / "compiled").exists() and not (tree / "build" / "java").exists()
