"""apt with lists, caches and configuration of its own, for programs that unpack packages under build/ and install none.

It reads the machine's own package sources with source entries switched on, so apt checks every file against the signed
indexes, and /etc/apt stays as it is.
"""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tools"))
from quarry_server.run import run_or_raise  # noqa: E402

FETCH_TIMEOUT_S = 3600  # of one program: a download of 500 MB on a slow line


class FetchError(Exception):
    """Something that the user can act on; the message says what."""


def run(command, env=None, cwd=None):
    """Output of a command, or FetchError with the last lines of what it said."""
    return run_or_raise(command, FetchError, timeout_s=FETCH_TIMEOUT_S, stderr=subprocess.STDOUT, env=env, cwd=cwd)


# --- the machine's package sources ------------------------------------------------------------------------------------


def parse_deb822(text):
    """Stanzas of a .sources file that are switched on and hold binaries, as dictionaries with lower-case keys."""
    for block in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n?", "", text)):
        stanza, key = {}, None
        for line in block.splitlines():
            if line[:1] in " \t" and key:
                stanza[key] += "\n" + line
            elif ":" in line:
                key, value = line.split(":", 1)
                key = key.strip().lower()
                stanza[key] = value.strip()
        if "deb" in stanza.get("types", "").split() and stanza.get("enabled", "yes").lower() not in (
            "no",
            "false",
            "0",
        ):
            yield stanza


def parse_one_line(text):
    """Entries of a sources.list, in the same form as parse_deb822's."""
    for line in text.splitlines():
        match = re.match(
            r"\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s*(?P<components>[^#]*)", line
        )
        if match:
            stanza = {"uris": match["uri"], "suites": match["suite"], "components": match["components"].strip()}
            for option in (match["options"] or "").split():
                key, _, value = option.partition("=")
                stanza[{"arch": "architectures"}.get(key, key)] = value.replace(",", " ")
            yield stanza


def machine_sources():
    """One stanza for each Debian suite of this release that the machine's own apt reads."""
    release = dict(re.findall(r'(?m)^(\w+)="?([^"\n]*)', Path("/etc/os-release").read_text(encoding="utf-8")))
    wanted = re.compile(
        rf"({re.escape(release.get('VERSION_CODENAME', 'stable'))}|stable|oldstable)(-updates|-security)?(/updates)?$"
    )
    stanzas = []
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.suffix in (".list", ".sources") and path.is_file():
            parse = parse_deb822 if path.suffix == ".sources" else parse_one_line
            stanzas.extend(parse(path.read_text(encoding="utf-8", errors="replace")))
    found = []
    for stanza in stanzas:
        suites = [suite for suite in stanza.get("suites", "").split() if wanted.match(suite)]
        if suites and "main" in stanza.get("components", "").split():
            found.append({**stanza, "suites": " ".join(suites), "components": "main"})
    if not found:
        raise FetchError("no Debian package source with component 'main' of this release found under /etc/apt")
    return found


class PrivateApt:
    """Everything under one directory. Externally synchronised. `say` prints one line about what is being done."""

    def __init__(self, directory, say):
        self.directory, self.say = directory, say
        self.env = dict(
            os.environ, APT_CONFIG=str(directory / "apt.conf"), LC_ALL="C", DEBIAN_FRONTEND="noninteractive"
        )
        for name in ("lists/partial", "cache/archives/partial", "sources", "empty"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        self._write_configuration()

    def _write_configuration(self):
        # The machine's proxy, certificate and time-out settings stay in force; its hooks and cleaners do not.
        kept = [
            line
            for line in run(["apt-config", "dump"]).splitlines()
            if line.startswith("Acquire::") and not line.startswith(("Acquire::IndexTargets", "Acquire::Languages"))
        ]
        d = self.directory
        own = [
            f'Dir::State::lists "{d}/lists";',
            f'Dir::Cache "{d}/cache";',
            f'Dir::Etc::parts "{d}/empty";',
            'Dir::Etc::main "/dev/null";',
            'Dir::Etc::sourcelist "/dev/null";',
            f'Dir::Etc::sourceparts "{d}/sources";',
            'Dir::Etc::preferences "/dev/null";',
            f'Dir::Etc::preferencesparts "{d}/empty";',
            'Acquire::Languages "none";',
            'Acquire::Retries "2";',
        ]
        if os.geteuid() == 0:
            own.append('APT::Sandbox::User "root";')  # the download directory need not be readable for the user _apt
        (d / "apt.conf").write_text("\n".join(kept + own) + "\n", encoding="utf-8")

    def write_sources(self, stanzas):
        # One URI and suite per stanza, so that a foreign one can be left out by itself.
        blocks = []
        for stanza in stanzas:
            fields = dict(stanza, types="deb deb-src")
            blocks.append("\n".join(f"{key.title()}: {value}" for key, value in fields.items()) + "\n")
        (self.directory / "sources" / "debian.sources").write_text("\n".join(blocks), encoding="utf-8")

    def update(self, stanzas):
        single = [
            dict(s, uris=uri, suites=suite)
            for s in stanzas
            for uri in s["uris"].split()
            for suite in s["suites"].split()
        ]
        self.write_sources(single)
        self.say("reading the package lists (private copy, with sources)")
        output = run(["apt-get", "-q", "update"], self.env)
        lines = run(
            ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN)", "Created-By: Sources"], self.env
        )
        origin = {tuple(line.split()[:2]): line.split()[2] for line in lines.splitlines() if len(line.split()) == 3}
        debian = [s for s in single if origin.get((s["uris"].rstrip("/") + "/", s["suites"])) == "Debian"]
        if not debian:
            raise FetchError(
                "no package list of Debian could be read (offline?):\n  " + "\n  ".join(output.splitlines()[-4:])
            )
        if len(debian) < len(single):
            self.write_sources(debian)

    def binary_versions(self, package):
        lines = run(["apt-cache", "madison", package], self.env).splitlines()
        # What apt warns of, a list that is configured twice for one, stands between the lines.
        rows = [fields for fields in (line.split("|") for line in lines) if len(fields) == 3]
        return {version.strip() for _, version, place in rows if place.split()[-1] == "Packages"}

    def source_versions(self, package):
        return set(
            re.findall(r"(?m)^Version: (\S+)", run(["apt-cache", "showsrc", "--only-source", package], self.env))
        )

    def download_source(self, package, version, directory):
        """The orig tarball. --tar-only leaves out Debian's own changes, which touch no header."""
        run(["apt-get", "-q", "source", "--download-only", "--tar-only", f"{package}={version}"], self.env, directory)
        upstream = upstream_version(version)
        found = sorted(directory.glob(f"{package}_{upstream}.orig.tar.*z*"))
        tarballs = [path for path in found if path.suffix != ".asc"]
        if not tarballs:
            raise FetchError(f"apt-get source downloaded no {package}_{upstream}.orig.tar.* into {directory}")
        return tarballs[0]

    def download_binary(self, package, version, directory):
        """apt names the file and leaves it alone when it is there with the right checksum."""
        run(["apt-get", "-q", "download", f"{package}={version}"], self.env, directory)
        architecture = r"(amd64|arm64|all|[a-z0-9-]+)"
        name = re.compile(rf"{re.escape(package)}_{re.escape(version.replace(':', '%3a'))}_{architecture}\.deb$")
        found = [path for path in directory.iterdir() if name.match(path.name)]
        if not found:
            raise FetchError(f"apt-get download left no .deb of {package} {version} in {directory}")
        return found[0]


def upstream_version(version):
    """'1:10.11.18-0+deb12u1' -> '10.11.18'"""
    return re.sub(r"^\d+:", "", version).rsplit("-", 1)[0]


def newest_first(versions):
    def compare(a, b):
        if a == b:
            return 0
        return 1 if subprocess.run(["dpkg", "--compare-versions", a, "gt", b], check=False).returncode == 0 else -1

    return sorted(versions, key=functools.cmp_to_key(compare), reverse=True)


def listing(versions):
    return ", ".join(newest_first(versions)) or "none"
