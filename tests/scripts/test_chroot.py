"""The verbs on a machine whose MariaDB server is older than the mirror's newest, and runs: nothing of it is upgraded, stopped
or restarted, and a restart after `make install` finds the engine.

The machine is a directory that debootstrap fills, with a server of Debian's. Its build tree begins empty but for downloads,
which apt compares with its indexes in any case. QUARRY_TEST_SCRATCH says where it lies; it takes about 4 GiB and is removed.
QUARRY_TEST_CHROOT_BUILT, a build tree of this version, spares the compilation for who looks at packages and restarts alone.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

from harness.server import REPOSITORY, SCRATCH

sys.path.append(str(REPOSITORY / "scripts"))

from private_apt import machine_sources  # noqa: E402

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: debootstrap and chroot"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="needs debootstrap (apt-get install debootstrap)"),
]
# What the machine's own apt and pip go by, beside its package sources.
CONFIGURATION = ["etc/pip.conf", "etc/resolv.conf", "etc/hosts", "usr/local/share/ca-certificates"]
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
OF_THE_SERVER = re.compile(r"(mariadb|libmariadb|mysql|libmysql|galera|libdbd-mysql)")
BUILT = os.environ.get("QUARRY_TEST_CHROOT_BUILT")
COPYING_CMAKE = """#!/bin/sh
[ "$1" = --build ] || exit 0
mkdir -p "$2/plugin" "$2/tools"
cp /built/ha_quarry.so "$2/plugin/" && cp /built/quarry-verify /built/quarry-dump "$2/tools/"
"""
PIN = "Package: src:mariadb\nPin: version {}\nPin-Priority: 1001\n"


class Machine:
    def __init__(self, root):
        self.root = root
        self.holder = None

    def make(self):
        sources = machine_sources()
        uri, suite = sources[0]["uris"].split()[0], sources[0]["suites"].split()[0]
        command = ["debootstrap", "--variant=minbase", "--include=ca-certificates,make,procps", suite, self.root, uri]
        subprocess.run(command, check=True, capture_output=True)
        lines = [f"deb {uri} {suite} main\n" for source in sources for uri in source["uris"].split() for suite in source["suites"].split()]
        (self.root / "etc/apt/sources.list").write_text("".join(lines))
        settings = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout.splitlines()
        acquire = [line for line in settings if line.startswith("Acquire::") and "IndexTargets" not in line]
        (self.root / "etc/apt/apt.conf.d/99machine").write_text("\n".join(acquire) + "\n")
        for name in CONFIGURATION:
            there, here = pathlib.Path("/", name), self.root / name
            if there.is_dir():
                shutil.copytree(there, here, dirs_exist_ok=True)
            elif there.exists():
                shutil.copy(there, here)
        self.trust_what_the_machine_trusts()
        self.hold()
        self.sh("apt-get -q update")

    def hold(self):
        """Namespaces of its own: Debian's scripts look for, and end, servers by their name, and shall see those in here alone.
        With the first process all others end, and the mounts go."""
        mounts = "mount -t proc proc /proc && mount -t devtmpfs dev /dev && while :; do sleep 1; done"
        self.holder = subprocess.Popen(
            ["unshare", "--pid", "--mount", "--fork", "--kill-child", "chroot", self.root, "bash", "-c", mounts],
            stdin=subprocess.DEVNULL,
        )
        children = pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        for _ in range(100):
            self.first = children.read_text().strip()
            if self.first and (self.root / "proc").exists() and self.sh("cat /proc/1/comm", check=False).strip() == "bash":
                return
            time.sleep(0.1)
        raise AssertionError("no namespace could be made for the machine")

    def trust_what_the_machine_trusts(self):
        """Also after a package has written the file anew: mirrors may be reached through a proxy with a certificate of its own."""
        shutil.copy(pathlib.Path("/", CERTIFICATES), self.root / CERTIFICATES)

    def sh(self, script, check=True):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}
        environment = {name: value for name, value in environment.items() if not name.startswith(("CMAKE_", "CCACHE_", "PYTEST_"))}
        done = subprocess.run(
            ["nsenter", f"--target={self.first}", "--pid", "--mount", "--root", "--wd", "bash", "-c", script], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        )
        assert not check or done.returncode == 0, f"{script}: exit code {done.returncode}\n{done.stdout[-6000:]}"
        return done.stdout

    def sql(self, statement):
        return self.sh(f'mariadb --batch --skip-column-names -e "{statement}"').strip()

    def packages(self):
        """{name: version} of all that is installed."""
        lines = self.sh("dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n'").splitlines()
        return {line.split()[0]: line.split()[1] for line in lines if line.endswith(" installed")}

    def server(self):
        """Process id and start of the running server."""
        (pid,) = self.sh("pidof mariadbd").split()
        return pid, self.sh(f"cat /proc/{pid}/stat").rsplit(")", 1)[1].split()[19]

    def remove(self):
        if self.holder is not None:
            self.holder.kill()
            self.holder.wait()
            time.sleep(1)  # its processes end with it
        shutil.rmtree(self.root, ignore_errors=True)

    # --- the server and the sources -------------------------------------------------------------
    def install_older_server(self):
        """The second newest version that the mirror has."""
        listed = self.sh("apt-cache madison mariadb-server")
        versions = list(dict.fromkeys(line.split("|")[1].strip() for line in listed.splitlines() if line.endswith("Packages")))
        if len(versions) < 2:
            pytest.skip(f"the mirror has one version of mariadb-server only: {versions}")
        pin = self.root / "etc/apt/preferences.d/older"
        pin.write_text(PIN.format(versions[1]))
        self.sh("apt-get -q -y install --no-install-recommends mariadb-server")
        pin.unlink()
        self.trust_what_the_machine_trusts()
        self.sh("pidof mariadbd || service mariadb start")
        assert self.packages()["mariadb-server"] == versions[1]
        self.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v LONGTEXT); INSERT INTO shop.t VALUES (1, REPEAT('x', 90000))")

    def copy_sources(self):
        """As a clone of this tree, with what is not committed yet."""
        target = self.root / "quarry"
        target.mkdir()
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY, capture_output=True, check=True
        ).stdout
        pack = subprocess.run(["tar", "-c", "--null", "--ignore-failed-read", "-T", "-"], cwd=REPOSITORY, input=names, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", target], input=pack.stdout, check=True)
        if BUILT:
            (self.root / "built").mkdir()
            for name in ("plugin/ha_quarry.so", "tools/quarry-verify", "tools/quarry-dump"):
                shutil.copy(pathlib.Path(BUILT, name), self.root / "built")
            (self.root / "usr/local/bin/cmake").write_text(COPYING_CMAKE)
            (self.root / "usr/local/bin/cmake").chmod(0o755)
        downloads = REPOSITORY / "build" / "downloads"
        if downloads.is_dir():
            (target / "build" / "downloads").mkdir(parents=True)
            for path in downloads.iterdir():
                if path.is_file():
                    shutil.copy(path, target / "build" / "downloads")


@pytest.fixture(scope="module")
def machine():
    root = SCRATCH / "chroot"
    made = Machine(root)
    try:
        made.make()
        made.install_older_server()
        made.copy_sources()
        yield made
    finally:
        made.remove()


def run_verb(machine, verb):
    """What it said; the server, its client library and every package that was there before are what they were."""
    packages, server = machine.packages(), machine.server()
    said = machine.sh(f"cd /quarry && make {verb}")
    after = machine.packages()
    of_server = {name: version for name, version in packages.items() if OF_THE_SERVER.match(name)}
    assert {name: version for name, version in after.items() if OF_THE_SERVER.match(name) and name in packages} == of_server
    assert machine.server() == server, "the server was stopped or restarted"
    changed = {name for name in packages if after.get(name) != packages[name]}
    named = {name for line in said.splitlines() if "apt-get upgrades" in line for name in line.rsplit(": ", 1)[1].split()}
    assert changed <= named, (changed, said)
    added = sorted(set(after) - set(packages))
    print(f"make {verb}: {len(packages)} packages before, {len(after)} after; {len(of_server)} of the server's unchanged; upgraded: {sorted(changed)}")
    return said, added


def test_install_on_a_fresh_clone(machine):
    said, added = run_verb(machine, "install")
    assert not any(name.startswith(("openjdk", "clang", "maven", "libmariadb")) for name in added), added
    assert "RESTART NEEDED" in said or "is loaded" in said, said
    assert "this build is for MariaDB" in said and "apt-mark hold mariadb-server" in said, said
    before = machine.sql("SELECT MD5(v) FROM shop.t")
    machine.sh("service mariadb restart")
    if "INSTALL SONAME 'ha_quarry'" in said:
        machine.sql("INSTALL SONAME 'ha_quarry'")
    machine.sql("ALTER TABLE shop.t ENGINE=QUARRY")
    assert machine.sql("SELECT MD5(v) FROM shop.t") == before
    assert "QUARRY" in machine.sql("SHOW CREATE TABLE shop.t")
    for tool in ("quarry-advisor", "quarry-backup", "quarry-verify", "quarry-dump"):
        assert tool in machine.sh(f"{tool} --help")
    assert "would stay" in machine.sh("quarry-advisor shop.t") or "verdict" in machine.sh("quarry-advisor shop.t")


def test_a_second_install_says_that_a_restart_is_needed(machine):
    said, added = run_verb(machine, "install")
    assert added == [] and "The engine that is loaded is the one from before" in said, said


# `make demo` builds everything: half an hour that says nothing of packages.
QUICK_DEMO = "demo ARGS='--megabytes 32 --rounds 1 --kills 0 --overwrites 0 --without-e1'"


@pytest.mark.parametrize("verb", ["fetch", "test STAGES=layers", "server stop", *([QUICK_DEMO] if BUILT else [])])
def test_what_works_with_a_private_server(machine, verb):
    said, added = run_verb(machine, verb)
    assert "apt-get would" not in said, said
    assert not any(name.startswith(("mariadb", "libmariadb-dev", "mysql")) for name in added), added
