"""quarry-verify --rebuild-catalogue as root acts as the account that the home belongs to."""

import os
import pathlib
import subprocess
import tempfile

import pytest
from quarry_server.private import unreachable
from quarry_server.server import BUILD, REPOSITORY

from harness.outside import NOBODY

VERIFY = REPOSITORY / "build" / "release" / "tools" / "quarry-verify"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a home is given to another account")


@pytest.fixture
def home():
    """A home of another account's, which that account can reach, and which has lost its catalogue."""
    with tempfile.TemporaryDirectory(dir=BUILD) as directory:
        path = pathlib.Path(directory)
        path.chmod(0o711)
        made = path / "home"
        (made / "stores").mkdir(parents=True)
        for folder in (made, made / "stores"):
            folder.chmod(0o700)
            os.chown(folder, NOBODY, NOBODY)
        hidden = unreachable(NOBODY, [made])
        if hidden:
            pytest.skip(f"no other account can reach {hidden}")
        yield made


def rebuild(home):
    return subprocess.run([VERIFY, "--rebuild-catalogue", home], capture_output=True, check=False, text=True)


def test_the_server_can_read_what_root_rebuilt(home):
    done = rebuild(home)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    (catalogue,) = home.glob("CATALOGUE-*")
    found = catalogue.lstat()
    assert (found.st_uid, found.st_gid) == (NOBODY, NOBODY)


def test_root_looks_at_nothing_that_the_account_may_not_see(home):
    secret = home.parent / "secret"
    secret.mkdir(mode=0o700)
    (secret / ("0" * 15 + "1")).mkdir()
    (home / "stores").rmdir()
    (home / "stores").symlink_to(secret)
    done = rebuild(home)
    assert done.returncode == 2 and "Permission denied" in done.stderr, done.stdout + done.stderr
    assert not list(home.glob("CATALOGUE-*"))
