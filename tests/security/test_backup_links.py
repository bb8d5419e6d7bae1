"""quarry-backup as root opens nothing of other accounts that the server names, through links or otherwise."""

import os
import shutil
import subprocess
import sys

import pytest
from harness.server import REPOSITORY, SCRATCH, Server

sys.path.append(str(REPOSITORY / "tools"))

from quarry_backup import trusted  # noqa: E402
from quarry_backup.files import BackupError  # noqa: E402

SERVER = 65534  # an account that may not do what root may
ROOTS_SECRET = b"what only root may read"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of two accounts are made")


@pytest.fixture
def place():
    """A directory of root's, with a directory of the server's in it, and a secret of root's."""
    directory = SCRATCH / "links"
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "home" / "stores").mkdir(parents=True)
    (directory / "secret").write_bytes(ROOTS_SECRET)
    (directory / "secret").chmod(0o600)
    (directory / "home" / "stores" / "good").write_bytes(b"good")
    for path in (directory / "home", directory / "home" / "stores", directory / "home" / "stores" / "good"):
        os.chown(path, SERVER, SERVER)
    yield directory
    shutil.rmtree(directory)


def link(path, target, owner=SERVER):
    os.symlink(target, path)
    os.lchown(path, owner, owner)
    return str(path)


def read(path):
    with open(trusted.open_file(str(path), SERVER), "rb") as stream:
        return stream.read()


def test_the_servers_own_file_is_read(place):
    assert trusted.owner_of(str(place / "home")) == SERVER
    assert read(place / "home" / "stores" / "good") == b"good"
    with pytest.raises(FileNotFoundError):
        read(place / "home" / "stores" / "missing")


@pytest.mark.parametrize("target", ["{place}/secret", "../../secret", "good", "/etc/shadow", "/dev/zero"])
def test_a_link_in_the_last_place(place, target):
    path = link(place / "home" / "stores" / "bad", target.format(place=place))
    with pytest.raises(BackupError, match="'bad' in it is a symbolic link"):
        read(path)


def test_a_link_in_the_middle(place):
    path = link(place / "home" / "elsewhere", place)
    with pytest.raises(BackupError, match="'elsewhere' in it is a symbolic link"):
        read(f"{path}/secret")
    with pytest.raises(BackupError, match="'elsewhere' in it is a symbolic link"):
        trusted.owner_of(f"{path}/home")


def test_a_name_of_roots_file_without_any_link(place):
    for path in (place / "secret", place / "home" / "stores" / ".." / ".." / "secret", "/etc/shadow"):
        with pytest.raises(BackupError, match="belongs to user id 0"):
            read(path)
    os.link(place / "secret", place / "home" / "stores" / "hard")
    with pytest.raises(BackupError, match="belongs to user id 0"):
        read(place / "home" / "stores" / "hard")


@pytest.mark.parametrize("kind", ["pipe", "directory", "socket"])
def test_what_is_no_regular_file(place, kind):
    path = place / "home" / "stores" / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        os.mknod(path, 0o140600)
    os.chown(path, SERVER, SERVER)
    with pytest.raises((BackupError, OSError)):
        read(path)


def test_roots_own_link_in_roots_own_directory_is_followed(place):
    """As /var/lib/mysql is one where the data lie on another drive."""
    path = link(place / "datadir", "home", owner=0)
    assert read(f"{path}/stores/good") == b"good"
    path = link(place / "absolute", place / "home", owner=0)
    assert read(f"{path}/stores/good") == b"good" and trusted.owner_of(path) == SERVER
    place.chmod(0o777)  # now anybody could have put it there
    with pytest.raises(BackupError, match="'absolute' in it is a symbolic link"):
        read(f"{path}/stores/good")
    place.chmod(0o755)
    link(place / "round", "round", owner=0)
    with pytest.raises(BackupError, match="'round' in it"):
        read(place / "round")


def test_a_relative_path_is_refused():
    with pytest.raises(BackupError, match="no absolute path"):
        trusted.open_file("etc/passwd", 0)


@pytest.mark.parametrize("what", ["segment", "store", "marker"])
def test_a_backup_of_a_server_that_lies(drill, what):
    """Its files became links, which an account other than root made: the backup is refused, and the secret is not in it."""
    paths = drill.root / "path"
    paths.mkdir()
    secret = drill.root / "secret"
    secret.write_bytes(ROOTS_SECRET * 1000)
    server = Server("liar", [f"--quarry-data-paths={paths}"]).start()
    try:
        server.query("CREATE DATABASE d")
        server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        server.query("INSERT INTO d.t SELECT seq, REPEAT('x', 90000) FROM d.seq_1_to_20")
        segment = server.segments(paths)[-1]
        path = {"segment": segment, "store": segment.parent, "marker": paths / "quarry" / "PATH"}[what]
        target = secret
        if what == "store":
            target = drill.root / "elsewhere"
            target.mkdir()
            (target / segment.name).write_bytes(ROOTS_SECRET * 1000)
        path.rename(f"{path}.was")
        link(path, target)
        said = drill.backup(server, "full", fails=True)
        assert "is a symbolic link" in said and "may have made" in said, said
        for parent, _, names in os.walk(drill.path("full")):
            for name in names:
                with open(os.path.join(parent, name), "rb") as stream:
                    assert ROOTS_SECRET not in stream.read()
    finally:
        server.remove()


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_a_target_directory_of_another_account_is_not_written_into(place, kind):
    """Its owner could have put links there for root's files, or take the backup away."""
    target = place / "backup"
    if kind == "directory":
        target.mkdir()
        os.chown(target, SERVER, SERVER)
    else:
        (place / "elsewhere").mkdir()
        link(target, place / "elsewhere")
    words = ["backup", f"--target-dir={target}", "--mariadb=/bin/false", "--mariadb-backup=/bin/false"]
    done = subprocess.run([sys.executable, REPOSITORY / "tools" / "quarry-backup", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"{target} belongs to user id {SERVER}" in done.stderr, done
    assert list(target.iterdir()) == []
