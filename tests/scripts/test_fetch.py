"""The way of `make install` on a fresh clone: scripts/fetch-mariadb --headers-only, and what scripts/install says of it."""

import os
import shutil
import subprocess

import pytest

from harness.server import REPOSITORY, SCRATCH

VERSION = (REPOSITORY / "build" / "mariadb" / "VERSION").read_text(encoding="utf-8").strip()


def run(command, **environment):
    return subprocess.run(
        [str(part) for part in command],
        cwd=REPOSITORY,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def directory():
    target = SCRATCH / "headers-only"
    yield target
    shutil.rmtree(target, ignore_errors=True)
    shutil.rmtree(target.with_name(target.name + ".new"), ignore_errors=True)


def test_headers_alone_come_without_a_server(directory):
    """The downloads are those of the private server, so this unpacks files that are there."""
    command = ["scripts/fetch-mariadb", "--headers-only", "--version", VERSION, "--directory", directory]
    done = run(command)
    if "in the package lists" in done.stderr:
        pytest.skip(f"the package mirror lists MariaDB {VERSION} no more: {done.stderr.strip()}")
    assert done.returncode == 0, done
    assert sorted(path.name for path in directory.iterdir()) == ["STAMP", "VERSION", "headers"]
    assert (directory / "VERSION").read_text(encoding="utf-8").strip() == VERSION
    for header in ("generated/my_config.h", "sql/handler.h", "innobase/handler/ha_innodb.h"):
        assert (directory / "headers" / header).exists()
    again = run(command)
    assert (again.returncode, again.stdout) == (0, ""), again


def test_a_directory_of_others_is_not_replaced(tmp_path):
    (tmp_path / "letters").write_text("mine", encoding="utf-8")
    done = run(["scripts/fetch-mariadb", "--directory", tmp_path])
    assert done.returncode == 1 and f"{tmp_path} holds files, and no MariaDB of this script's" in done.stderr, done
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_install_leaves_the_cause_to_what_failed(tmp_path):
    """A server of a version that no mirror has: the one cause named is the true one."""
    programs, plugins = tmp_path / "bin", tmp_path / "plugins"
    programs.mkdir()
    plugins.mkdir()
    server = programs / "mariadbd"
    said = f'*--help*) echo "plugin-dir  {plugins}/" ;; *) echo "mariadbd  Ver 10.11.0-MariaDB" ;;'
    server.write_text(f"#!/bin/sh\ncase $* in {said} esac\n")
    server.chmod(0o755)
    done = run(["scripts/install"], PATH=f"{programs}:{os.environ['PATH']}", PREFIX=tmp_path / "prefix")
    assert done.returncode == 1 and "building for MariaDB 10.11.0" in done.stdout, done
    *said, last = done.stderr.splitlines()
    assert "fetch-mariadb: no libmariadbd-dev of version 10.11.0 in the package lists" in said[-1], done
    assert "without its headers" in last and "download" not in last and list(plugins.iterdir()) == [], done


def test_versions_are_read_between_the_warnings_of_apt(monkeypatch):
    """A list that is configured twice makes apt warn in the middle of its answer."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    import private_apt

    said = (
        "W: Target Packages (main/binary-amd64/Packages) is configured multiple times in a:1 and b:1\n"
        "libmariadbd-dev | 1:10.11.18-0+deb12u1 | http://deb.debian.org/debian bookworm/main amd64 Packages\n"
        "   mariadb | 1:10.11.17-0+deb12u1 | http://deb.debian.org/debian bookworm/main Sources\n"
    )
    monkeypatch.setattr(private_apt, "run", lambda command, environment: said)
    apt = object.__new__(private_apt.PrivateApt)
    apt.env = {}
    assert apt.binary_versions("libmariadbd-dev") == {"1:10.11.18-0+deb12u1"}
