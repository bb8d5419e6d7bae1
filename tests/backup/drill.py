"""quarry-backup as the tests run it, and servers made of what it restores.

Thread-safety: externally synchronised.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest
from harness.server import REPOSITORY, SCRATCH, Server
from quarry_server.server import tool

# What mariadb-backup itself makes, now and then, of DDL between a backup and its increments; of InnoDB tables alone as well
# (docs/internals/testing.md has the control). A test in which it does so is run again, and the output says that it was.
SERVER_FAULTS = (
    r"ERROR: mariadb-backup ended with 1",
    r"is corrupted\. Please drop the table and recreate",
    r"Tablespace is missing for a table",
)
increments_under_ddl = pytest.mark.flaky(reruns=4, only_rerun=list(SERVER_FAULTS))
TOOL = REPOSITORY / "tools" / "quarry-backup"
# Of `gtid_current_pos` and what a checksum is made of: every column, whatever is NULL.
ALL_TABLES = """SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'
    AND table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') ORDER BY 1, 2"""


class Drill:
    """One test's backups, below a directory of its own."""

    def __init__(self, name):
        self.root = SCRATCH / f"{name}-backups"
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def path(self, name):
        return self.root / name

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)

    # --- the tool -----------------------------------------------------------------------------
    @staticmethod
    def command(command, *arguments):
        programs = [f"--mariadb-backup={tool('mariadb-backup')}"] if command != "verify" else []
        programs += [f"--mariadb={tool('mariadb')}"] if command == "backup" else []
        return [sys.executable, str(TOOL), command, *programs, *map(str, arguments)]

    def run(self, command, *arguments, fails=False):
        """Its output (both streams); it must succeed, or fail with a message when `fails`."""
        done = subprocess.run(
            self.command(command, *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        assert (done.returncode != 0) == fails, f"exit code {done.returncode}:\n{said}"
        assert not fails or "quarry-backup: ERROR: " in done.stderr, said
        return said

    @staticmethod
    def connection(server):
        return ["--no-defaults", f"--socket={server.socket}", f"--user={server.account}"]

    def backup(self, server, name, base=None, more=(), fails=False):
        incremental = [f"--incremental-basedir={self.path(base)}"] if base else []
        return self.run(
            "backup", *self.connection(server), f"--target-dir={self.path(name)}", *incremental, *more, fails=fails
        )

    @staticmethod
    def client(server):
        return f"'{tool('mariadb')}' --no-defaults --socket='{server.socket}' --user={server.account}"

    def wrapper(self, script):
        """A program to be run for mariadb-backup; `$real "$@"` in `script` is mariadb-backup itself."""
        path = self.root / f"wrapper-{len(list(self.root.glob('wrapper-*')))}"
        path.write_text(f"#!/bin/sh\nset -e\nreal='{tool('mariadb-backup')}'\n{script}\n")
        path.chmod(0o755)
        return path

    def backup_then(self, server, name, script):
        """A backup, with `script` run when mariadb-backup has ended and nothing of Quarry's is copied yet."""
        wrapper = self.wrapper(f'"$real" "$@"\n{script}')
        return self.backup(server, name, more=[f"--mariadb-backup={wrapper}"])

    def prepare(self, name, increment=None, fails=False):
        arguments = [f"--incremental-dir={self.path(increment)}"] if increment else []
        return self.run("prepare", f"--target-dir={self.path(name)}", *arguments, fails=fails)

    def verify(self, name, fails=False):
        """By sizes and checksums, and by quarry-verify."""
        extents = f"--quarry-verify={REPOSITORY / 'build' / 'release' / 'tools' / 'quarry-verify'}"
        said = self.run("verify", f"--target-dir={self.path(name)}", extents, fails=fails)
        assert fails or " extents, " in said, said
        return said

    def catalog(self, name):
        return json.loads((self.path(name) / "backup.json").read_text())

    def restore_to(self, server, name, *more, fails=False):
        """Restores into a server made with start=False; it is not started."""
        return self.run(
            "restore",
            "--no-defaults",
            f"--target-dir={self.path(name)}",
            f"--datadir={server.datadir}",
            *more,
            fails=fails,
        )


def checksums(server, tables=None):
    """{(schema, table): digest of all rows, in the order of all columns}, read through SELECT: every value is verified."""
    found = {}
    connection = server.connect()
    with connection.cursor() as cursor:
        cursor.execute("SET NAMES binary")
        cursor.execute(ALL_TABLES)
        for schema, table in cursor.fetchall():
            schema, table = (name.decode() if isinstance(name, bytes) else name for name in (schema, table))
            if tables is not None and (schema, table) not in tables:
                continue
            cursor.execute(f"SELECT * FROM `{schema}`.`{table}`")
            rows = sorted(hashlib.sha256(repr(row).encode()).digest() for row in cursor.fetchall())
            found[schema, table] = hashlib.sha256(b"".join(rows)).hexdigest()
    connection.close()
    return found


def check_all(server):
    """CHECK TABLE of every table says OK."""
    for schema, table in server.query(ALL_TABLES):
        rows = server.query(f"CHECK TABLE `{schema}`.`{table}`")
        assert rows[-1][-1] == "OK", rows


def binlogs_after(server, position):
    """(first file, its start position, all files from there on) of "file position [gtid]"."""
    name, start = position.split()[:2]
    listed = [row[0] for row in server.query("SHOW BINARY LOGS")]
    return name, int(start), [str(server.datadir / each) for each in listed[listed.index(name) :]]


def replay(source_files, start, target, *stop):
    """mariadb-binlog of `source_files` from `start` on, into the server `target`."""
    dump = subprocess.Popen(
        [tool("mariadb-binlog"), "--no-defaults", f"--start-position={start}", *stop, *source_files],
        stdout=subprocess.PIPE,
    )
    load = subprocess.run(
        [tool("mariadb"), "--no-defaults", f"--socket={target.socket}", f"--user={target.account}", "--binary-mode"]
        + ["--max-allowed-packet=1G"],
        stdin=dump.stdout,
        capture_output=True,
        check=False,
    )
    dump.stdout.close()
    assert dump.wait() == 0 and load.returncode == 0, load.stderr.decode()


def allocated(path):
    return sum(os.stat(os.path.join(parent, name)).st_blocks * 512 for parent, _, names in os.walk(path) for name in names)


__all__ = ["Drill", "Server", "allocated", "binlogs_after", "check_all", "checksums", "increments_under_ddl", "replay"]
