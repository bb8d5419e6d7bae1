"""scripts/setup asks apt first: what is installed and in use is never upgraded, stopped or removed for our packages.

apt-get and dpkg-query are stubs: the first prints a recorded simulation, and notes a real run.
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

APT_GET = """#!/bin/sh
echo "$@" >>{calls}
case " $* " in *" -s "*) cat {simulation} ;; esac
exit 0
"""
DPKG_QUERY = """#!/bin/sh
[ "$1" != -L ] || exec cat "{files}/$2"
/usr/bin/dpkg-query "$@" | grep -v "$(cat "{files}/missing")"
"""
SYSTEMCTL = """#!/bin/sh
case $* in "is-active --quiet "*active.service*) exit 0 ;; esac
exit 3
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
        stubs = {"apt-get": APT_GET, "dpkg-query": DPKG_QUERY, "systemctl": SYSTEMCTL}
        for name, text in stubs.items():
            path = programs / name
            path.write_text(text.format(calls=self.calls, simulation=self.simulation, files=self.listings))
            path.chmod(0o755)
        self.path = f"{programs}:{os.environ['PATH']}"

    def files(self, package, *paths):
        (self.listings / package).write_text("".join(f"{path}\n" for path in paths))

    def setup(self, simulation, options=("--with", WANTED), repository=REPOSITORY):
        self.simulation.write_text(simulation)
        return subprocess.run(
            ["scripts/setup", *options],
            cwd=repository,
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


def listed(*sections):
    """Names of scripts/packages.txt: of these sections, or all."""
    found, here = [], None
    for line in (REPOSITORY / "scripts" / "packages.txt").read_text(encoding="utf-8").splitlines():
        word = line.split("#")[0].strip()
        if word.startswith("["):
            here = word.strip("[]")
        elif word and (not sections or here in sections):
            found.append(word)
    return found


def test_no_server_and_no_client_library_is_ever_asked_for():
    """libmariadb-dev wants a libmariadb3 of its version, and that the server's: they are unpacked under build/ instead."""
    of_mariadb = [name for name in listed() if name.startswith(("mariadb", "libmariadb", "mysql", "libmysql", "default-mysql", "galera"))]
    assert of_mariadb == ["libmariadb-java"] and len(listed()) > 40  # a jar, which depends on neither


def test_install_asks_for_a_compiler_and_headers_alone(machine):
    (machine.listings / "missing").write_text(".")  # a machine that has nothing
    done = machine.setup(NEW, options=["--for-install"])
    assert done.returncode == 0 and "build/venv" not in done.stdout, done
    (line,) = machine.installed()
    asked = set(line.split("--no-remove ")[1].split())
    assert asked == set(listed("build", "install")) and {"g++", "cmake"} < asked
    assert not [name for name in asked if name.startswith(("openjdk", "maven", "clang", "sysbench", "libgtest"))]


def test_plain_make_asks_for_a_dozen_packages(machine):
    (machine.listings / "missing").write_text(".")
    done = machine.setup(NEW, options=["--for-core"])
    assert done.returncode == 0 and "build/venv" not in done.stdout, done
    (line,) = machine.installed()
    asked = line.split("--no-remove ")[1].split()
    assert set(asked) == set(listed("build", "core")) and "libgtest-dev" in asked
    assert len(asked) <= 14 and not [name for name in asked if name.startswith("python")]


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


# --- what pip may install ---


def blocks():
    """{module: [lines]} of requirements.txt."""
    found = {}
    for line in (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if "==" in line:
            name = line.split("==")[0].lower()
            found[name] = []
        if line and not line.startswith("#"):
            found[name].append(line)
    return found


def test_every_module_has_checksums_and_is_the_version_that_is_pinned():
    pinned = [line for line in (REPOSITORY / "requirements.in").read_text(encoding="utf-8").splitlines() if "==" in line]
    wanted = {line.split("==")[0].lower().replace("_", "-"): line.split("==")[1] for line in pinned}
    locked = {name: lines[0].split("==")[1].split()[0] for name, lines in blocks().items()}
    assert locked == wanted and len(locked) > 25
    for lines in blocks().values():
        assert len(lines) > 1 and all(line.strip().startswith("--hash=sha256:") for line in lines[1:]), lines


def test_a_file_with_another_checksum_is_not_installed(machine, tmp_path):
    """A tree whose requirements.txt knows mdurl by another checksum than the index's file has."""
    tree = tmp_path / "tree"
    (tree / "scripts").mkdir(parents=True)
    for path in (REPOSITORY / "scripts").iterdir():
        if path.is_file():
            (tree / "scripts" / path.name).symlink_to(path)
    # setup finds its tree by its own place.
    for name in ("setup", "requirements"):
        (tree / "scripts" / name).unlink()
        (tree / "scripts" / name).write_bytes((REPOSITORY / "scripts" / name).read_bytes())
        (tree / "scripts" / name).chmod(0o755)
    wrong = [f"mdurl{blocks()['mdurl'][0].removeprefix('mdurl')}", f"    --hash=sha256:{'0' * 64}"]
    (tree / "requirements.txt").write_text("\n".join([*wrong, *blocks()["mariadb"]]) + "\n")
    done = machine.setup(NEW, options=[], repository=tree)
    assert done.returncode == 1 and "DO NOT MATCH THE HASHES" in done.stderr, done
    assert not (tree / "build" / "venv" / "quarry-key").exists()
    assert list((tree / "build" / "venv").rglob("mdurl*")) == []


def test_every_pip_of_the_scripts_compares_checksums():
    lines = []
    for path in (REPOSITORY / "scripts").iterdir():
        text = path.read_text(encoding="utf-8").replace("\\\n", " ") if path.is_file() else ""
        lines += [line for line in text.splitlines() if "-m pip" in line and " install" in line]
    assert len(lines) >= 2 and all("--require-hashes" in line and "--no-deps" in line for line in lines), lines
