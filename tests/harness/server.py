"""A private server as the tests see it: start, stop, kill, connect, look at its files.

Everything lives under build/tests/<name>, of a worker of pytest-xdist under build/tests/<worker>/<name>; the directory
is removed when the test is over and passed.
Thread-safety: externally synchronised; connections belong to the thread that made them.
"""

import os
import pathlib
import re
import shutil

import pymysql
from quarry_server.private import make_directory
from quarry_server.run import run_or_raise
from quarry_server.server import HOME_NAME, PrivateServer
from quarry_server.server import tool as tool_path

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = pathlib.Path(os.environ.get("QUARRY_TEST_SCRATCH", REPOSITORY / "build" / "tests"))
SCRATCH /= os.environ.get("PYTEST_XDIST_WORKER", "")
ENGINE = os.environ.get("QUARRY_TEST_ENGINE", "QUARRY")

BASE_OPTIONS = [
    "--innodb-buffer-pool-size=256M",
    "--innodb-log-file-size=256M",
    "--loose-quarry-cache-size=16M",  # the same on each machine
    "--loose-quarry-recent-cache-bytes=16M",
    "--max-allowed-packet=1G",
    "--innodb-lock-wait-timeout=3",
    "--lock-wait-timeout=20",
    "--character-set-server=utf8mb4",
    "--local-infile=1",
    "--log-bin-trust-function-creators=1",
    "--innodb-buffer-pool-dump-at-shutdown=0",
    "--innodb-buffer-pool-load-at-startup=0",
    # For all servers of a run, e.g. passes all the time: "--loose-quarry-gc-interval=1".
    *os.environ.get("QUARRY_TEST_OPTIONS", "").split(),
]
# Of a server whose system calls or counters are watched: nothing of Quarry's works unless a statement asks for it.
NO_BACKGROUND = ("--quarry-gc=OFF", "--quarry-scrub-rate=0")


class Server:
    """One private server, with the tests' usual options and whatever `options`, `environment` and `secrets` add."""

    def __init__(self, name, options=(), environment=None, secrets=None):
        self.name, self.environment, self.secrets = name, environment, secrets
        make_directory(SCRATCH)  # other servers' data paths, logs and backups stand in it too
        self.directory = SCRATCH / name
        if self.directory.exists():
            shutil.rmtree(self.directory)
        self.directory.mkdir()
        self.options = list(options)
        self._new_private_server()

    def _new_private_server(self):
        # The control run, InnoDB against InnoDB, needs no plugin.
        plugin = {} if ENGINE.upper() == "QUARRY" else {"plugin": None}
        self.private = PrivateServer(
            self.directory,
            options=BASE_OPTIONS + self.options,
            environment=self.environment,
            secrets=self.secrets,
            **plugin,
        )

    # --- life ---------------------------------------------------------------------------------
    def start(self):
        self.private.start()
        return self

    def stop(self):
        if self.alive():
            self.assert_no_head_was_caught()
        self.private.stop()

    def assert_no_head_was_caught(self):
        """No part of the server was about to see a head that Quarry had not foreseen (docs/internals/handler.md)."""
        caught = self.status("quarry\\_heads\\_caught")
        assert all(int(count) == 0 for count in caught.values()), f"{self.name}: {caught}"

    def kill(self):
        self.private.kill()

    def restart(self, options=None):
        """A clean restart; `options`, when given, replace the constructor's."""
        self.stop()
        if options is not None:
            self.options = list(options)
            self._new_private_server()
        return self.start()

    def remove(self):
        if self.alive():
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def alive(self):
        return self.private.running()

    def assert_alive(self):
        assert self.alive(), f"{self.name} died:\n{self.error_log()[-6000:]}"

    @property
    def account(self):
        """Root's account of SQL."""
        return self.private.account

    @property
    def pid(self):
        return self.private.pid

    def threads(self, name):
        """The kernel's ids of the server's threads of that name, as far as the kernel keeps it (15 characters)."""
        found = set()
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            try:
                if (task / "comm").read_text().strip() == name[:15]:
                    found.add(int(task.name))
            except OSError:  # it has ended
                continue
        return found

    @property
    def datadir(self):
        return self.private.datadir

    @property
    def files(self):
        """The directory in which SQL reads and writes files."""
        return self.private.files

    @property
    def socket(self):
        return str(self.private.socket)

    def error_log(self):
        return self.private.error_log.read_text(errors="replace")

    # --- clients ------------------------------------------------------------------------------
    def connect(self, database=None, **settings):
        settings.setdefault("autocommit", True)
        settings.setdefault("ssl_disabled", True)  # a context for each connection costs more than most tests' statements
        return pymysql.connect(
            unix_socket=self.socket, user=self.account, database=database, charset="utf8mb4", local_infile=True, **settings
        )

    def query(self, sql, args=None, database=None):
        """Rows of one statement on a connection of its own."""
        connection = self.connect(database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, args)
                return cursor.fetchall()
        finally:
            connection.close()

    def status(self, pattern):
        return {name.lower(): value for name, value in self.query("SHOW GLOBAL STATUS LIKE %s", (pattern,))}

    def client_tool(self, tool, *arguments, stdin=None):
        """Runs one of MariaDB's own client programs against this server; returns its standard output."""
        command = [tool_path(tool), "--no-defaults", f"--socket={self.socket}", f"--user={self.account}", *arguments]
        return run_or_raise(command, AssertionError, binary=True, **({} if stdin is None else {"stdin": stdin}))

    # --- files --------------------------------------------------------------------------------
    def segments(self, *data_paths):
        """Every segment file, of every store, on the home directory and on `data_paths`."""
        found = list((self.datadir / HOME_NAME / "stores").glob("*/*.qseg"))
        for path in data_paths:
            found += pathlib.Path(path).glob("quarry/*/*.qseg")
        return sorted(found)

    def stores(self):
        return sorted(path.name for path in (self.datadir / HOME_NAME / "stores").glob("*") if path.is_dir())

    def store_of(self, schema, table):
        """Directory name (16 hex digits) of the store that a table appends to, or None before its first append."""
        rows = self.query(
            "SELECT table_id FROM information_schema.innodb_sys_tables WHERE name = %s",
            (f"{encode_filename(schema)}/{encode_filename(table)}",),
        )
        table_id = rows[0][0]
        rows = self.query("SELECT store_id FROM information_schema.quarry_tables WHERE table_id = %s", (table_id,))
        return f"{int(rows[0][0]):016x}" if rows else None

    def segments_of(self, schema, table, *data_paths):
        store = self.store_of(schema, table)
        return [path for path in self.segments(*data_paths) if path.parent.name == store]


def has_failed(request):
    """In a fixture, after its yield: did the test fail? (tests/conftest.py keeps the reports.)"""
    report = getattr(request.node, "report_call", None)
    return report is not None and report.failed


def encode_filename(name):
    """MariaDB's file name of an identifier: what is not a letter, digit or underscore becomes @xxxx."""
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"@{ord(match.group(0)):04x}", name)
