"""scripts/setup asks apt first: what is installed and in use is never upgraded, stopped or removed for our packages.

apt-get, apt-cache and dpkg-query are stubs: the first prints a recorded simulation, and notes a real run.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.server import REPOSITORY

WANTED = "quarry-test-package-that-is-missing"
NEW = f"Inst {WANTED} (1.0 Debian:12.15/oldstable [amd64])\nConf {WANTED} (1.0 Debian:12.15/oldstable [amd64])\n"
# As apt printed it on a machine with MariaDB 10.11.18, when libmariadb-dev of 10.11.19 was asked for.
SERVER_UPGRADE = """\
Inst libmariadb-dev (1:10.11.19-0+deb12u1 Debian-Security:12/oldstable-security [amd64]) []
Inst mariadb-server [1:10.11.18-0+deb12u1] (1:10.11.19-0+deb12u1 Debian-Security:12/oldstable-security [amd64]) []
Inst mariadb-server-core [1:10.11.18-0+deb12u1] (1:10.11.19-0+deb12u1 Debian-Security:12/oldstable-security [amd64]) []
Inst libmariadb3 [1:10.11.18-0+deb12u1] (1:10.11.19-0+deb12u1 Debian-Security:12/oldstable-security [amd64])
Conf libmariadb3 (1:10.11.19-0+deb12u1 Debian-Security:12/oldstable-security [amd64])
"""
LIBRARIES = """\
Inst libc6-dev [2.36-9+deb12u9] (2.36-9+deb12u13 Debian:12.15/oldstable [amd64]) []
Inst libc6:amd64 [2.36-9+deb12u9] (2.36-9+deb12u13 Debian:12.15/oldstable [amd64])
"""

MADISON = """\
libmariadb-dev | 1:10.11.19-0+deb12u1 | http://security.debian.org/debian-security bookworm-security/main amd64 Packages
libmariadb-dev | 1:10.11.18-0+deb12u1 | http://deb.debian.org/debian bookworm/main amd64 Packages
"""

APT_GET = """#!/bin/sh
echo "$@" >>{calls}
case " $* " in *" -s "*) cat {simulation} ;; esac
exit 0
"""
DPKG_QUERY = """#!/bin/sh
[ "$1" != -L ] || exec cat "{files}/$2"
[ "$4" != libmariadb3 ] || exec cat "{files}/version of libmariadb3"
/usr/bin/dpkg-query "$@" | grep -v "$(cat "{files}/missing")"
"""
SYSTEMCTL = """#!/bin/sh
case $* in "is-active --quiet "*active.service*) exit 0 ;; esac
exit 3
"""
APT_CACHE = """#!/bin/sh
cat <<'TEXT'
{madison}TEXT
"""


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


class Machine:
    """A PATH with stubs; `files(package, ...)`: what dpkg says that a package holds."""

    def __init__(self, directory):
        self.directory = directory
        self.calls, self.simulation, self.listings = (directory / name for name in ("calls", "simulation", "files"))
        self.listings.mkdir()
        programs = directory / "bin"
        programs.mkdir()
        (self.listings / "missing").write_text("^$")
        stubs = {"apt-get": APT_GET, "dpkg-query": DPKG_QUERY, "apt-cache": APT_CACHE, "systemctl": SYSTEMCTL}
        for name, text in stubs.items():
            path = programs / name
            path.write_text(
                text.format(calls=self.calls, simulation=self.simulation, files=self.listings, madison=MADISON)
            )
            path.chmod(0o755)
        self.path = f"{programs}:{os.environ['PATH']}"

    def files(self, package, *paths):
        (self.listings / package).write_text("".join(f"{path}\n" for path in paths))

    def setup(self, simulation):
        self.simulation.write_text(simulation)
        return subprocess.run(
            ["scripts/setup", "--with", WANTED],
            cwd=REPOSITORY,
            env={**os.environ, "PATH": self.path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def installed(self):
        """What a real run of apt-get was asked for."""
        lines = self.calls.read_text().splitlines()
        return [line for line in lines if " install " in f" {line} " and " -s " not in f" {line} "]


def test_new_packages_are_installed(machine):
    done = machine.setup(NEW)
    assert done.returncode == 0 and "upgrades" not in done.stdout, done
    (line,) = machine.installed()
    assert WANTED in line and "--no-remove" in line


def test_an_installed_server_is_not_upgraded(machine):
    done = machine.setup(NEW + SERVER_UPGRADE)
    assert done.returncode == 1 and machine.installed() == [], done
    for name in ("mariadb-server", "mariadb-server-core", "libmariadb3"):
        assert f"setup:   upgrade {name} 1:10.11.18-0+deb12u1 to 1:10.11.19-0+deb12u1\n" in done.stderr
    assert "nothing was installed" in done.stderr and "--only-upgrade" in done.stderr


@pytest.mark.parametrize(
    "there, asked",
    [
        ("installed 1:10.11.18-0+deb12u1", "libmariadb-dev=1:10.11.18-0+deb12u1"),
        ("installed 1:10.11.14-0+deb12u2", "libmariadb-dev"),  # no mirror has it any more
        ("config-files 1:10.11.18-0+deb12u1", "libmariadb-dev"),
    ],
)
def test_the_client_library_is_asked_for_in_the_version_that_is_there(machine, there, asked):
    (machine.listings / "missing").write_text(" libmariadb-dev$")
    (machine.listings / "version of libmariadb3").write_text(there)
    assert machine.setup(NEW).returncode == 0
    (line,) = machine.installed()
    assert asked in line.split()


def test_nothing_is_removed(machine):
    done = machine.setup("Remv default-mysql-client [1.1.0]\n" + NEW)
    assert done.returncode == 1 and machine.installed() == [], done
    assert "setup:   remove default-mysql-client\n" in done.stderr


@pytest.mark.parametrize("unit", ["/lib/systemd/system/kept.service", "/etc/init.d/kept"])
def test_a_service_that_runs_is_not_upgraded(machine, unit):
    upgrade = "Inst kept [1.0] (1.1 Debian:12.15/oldstable [amd64])\n"
    running = str(Path(sys.executable).resolve())
    for program in (running, running.removeprefix("/usr")):  # dpkg names programs as before /usr was merged
        machine.files("kept", unit, program)
        done = machine.setup(NEW + upgrade)
        assert done.returncode == 1 and machine.installed() == [], done
        assert "setup:   upgrade kept, whose service runs\n" in done.stderr
    for files in ((unit, "/usr/sbin/no-such-daemon"), (running,)):  # it does not run; it is no service
        machine.files("kept", *files)
        assert machine.setup(NEW + upgrade).returncode == 0, files
    assert len(machine.installed()) == 2


def test_a_service_whose_program_is_a_script_is_known_by_its_unit(machine):
    machine.files("kept", "/lib/systemd/system/active.service", "/usr/bin/a-script")
    done = machine.setup(NEW + "Inst kept [1.0] (1.1 Debian:12.15/oldstable [amd64])\n")
    assert done.returncode == 1 and "upgrade kept, whose service runs" in done.stderr, done


def test_plain_libraries_are_upgraded_and_named(machine):
    """On an image some days old, libc6-dev wants its libc6: a fresh machine must come through by itself."""
    for name in ("libc6", "libc6-dev"):
        machine.files(name, "/lib/x86_64-linux-gnu/libc.so.6")
    done = machine.setup(NEW + LIBRARIES)
    assert done.returncode == 0 and len(machine.installed()) == 1, done
    assert "setup: apt-get upgrades, for new packages need them newer: libc6 libc6-dev\n" in done.stdout
