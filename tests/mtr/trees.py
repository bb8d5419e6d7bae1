"""Private copies of the server's test tree, build/mtr/tree/{innodb,quarry}: mtr finds everything from where it stands.

The copy is made of hard links (copies where links can't be made), so it costs a second and no space, and whatever a run
leaves beside the tests is gone with it. Files that are changed are written anew: the unpacked server is never touched.
In quarry/ the tests name our engine (rewrite.py), the plugin stands among the server's plugins and the overlay of the
storage_engine suite among the plugins' suites. innodb/ has no trace of Quarry: it is the control.

Invariant: a tree whose stamp names the present server, overlay and rewriting rules is complete.
"""

import errno
import hashlib
import os
import shutil
from pathlib import Path

import rewrite

HERE = Path(__file__).resolve().parent
OVERLAY = HERE / "overlay"
TEST_TREE = Path("share/mysql/mysql-test")
PLUGINS = Path("lib/mysql/plugin")
INNODB_OVERLAY = "plugin/innobase/storage_engine"
QUARRY_OVERLAY = "plugin/quarry/storage_engine"


def make(directory, engine, server, plugin):
    """Makes or completes the tree of one engine ('innodb' or 'quarry'); returns its mysql-test folder."""
    root = directory / engine
    tests = root / "usr" / TEST_TREE
    stamp = stamp_of(engine, server)
    stamp_file = root / "stamp"
    if not stamp_file.exists() or stamp_file.read_text(encoding="ascii") != stamp:
        shutil.rmtree(root, ignore_errors=True)
        make_frame(root / "usr", server / "usr")
        copy_tests(server / "usr" / TEST_TREE, tests, engine)
        if engine == "quarry":
            make_overlay(tests)
        stamp_file.write_text(stamp, encoding="ascii")
    if engine == "quarry":
        link = root / "usr" / PLUGINS / "ha_quarry.so"
        link.unlink(missing_ok=True)
        link.symlink_to(plugin)
    return tests


def stamp_of(engine, server):
    digest = hashlib.sha256()
    for path in [HERE / "rewrite.py", HERE / "trees.py", *sorted(p for p in OVERLAY.rglob("*") if p.is_file())]:
        digest.update(f"{path.name}\n".encode())
        digest.update(path.read_bytes())
    return f"{engine} {server_stamp(server)} {digest.hexdigest()}\n"


def server_stamp(server):
    binary = (server / "usr" / "sbin" / "mariadbd").stat()
    return f"{binary.st_size} {binary.st_mtime_ns}"


def make_frame(root, server):
    """Everything around the tests: links into the server, down to the folders that get something of their own."""
    own = {Path("."), TEST_TREE, PLUGINS, *TEST_TREE.parents, *PLUGINS.parents}
    for folder in sorted(own - {TEST_TREE}):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for entry in (server / folder).iterdir():
            if folder / entry.name not in own:
                (root / folder / entry.name).symlink_to(entry)


def copy_tests(source, target, engine):
    for folder, folders, files in os.walk(source):
        there = target / Path(folder).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in [*folders, *files]:
            path = Path(folder) / name
            if path.is_symlink():
                (there / name).symlink_to(os.readlink(path))
            elif path.is_file():
                copy_file(path, there / name, engine)


def copy_file(source, target, engine):
    suffix = source.suffix or f".{source.name}"  # a suite's own combinations are in a file of that name
    if engine == "quarry" and suffix in rewrite.SUFFIXES:
        text = source.read_bytes().decode("latin-1")
        changed = rewrite.rewrite(text, suffix)
        if changed is not text:
            target.write_text(changed, encoding="latin-1", newline="")
            shutil.copymode(source, target)
            return
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise
        shutil.copy2(source, target)


def make_overlay(tests):
    """The storage_engine suite for QUARRY: as InnoDB's (its options, the tests it disables), but for the engine."""
    shutil.copytree(tests / INNODB_OVERLAY, tests / QUARRY_OVERLAY)
    for path in sorted(p for p in OVERLAY.rglob("*") if p.is_file()):
        target = tests / QUARRY_OVERLAY / path.relative_to(OVERLAY / "storage_engine")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy2(path, target)


def suites_tests(tests, suite):
    """Sorted names of a suite's tests, without the suite."""
    if suite == "main":
        folder = tests / "main"
    else:
        folder = tests / "suite" / suite
        folder = folder / "t" if (folder / "t").is_dir() else folder
    if not folder.is_dir():
        raise FileNotFoundError(f"no suite '{suite}' in {tests}")
    return sorted(path.stem for path in folder.glob("*.test"))
