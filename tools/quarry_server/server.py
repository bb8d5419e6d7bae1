"""Private MariaDB servers: each made in a directory of its own, started, stopped, killed, asked.

No system service is touched. A server listens on a unix socket only (options can add a port of the loopback interface), reads
no option file, runs as whoever starts it (root: as root, unless `user` says otherwise), lets in nobody else (private.py) and
loads Quarry from the plugin that was built here. Standard library only.

Directory layout, mode 0700: data/ (the data directory)  tmp/  files/ (all that SQL reads and writes outside of it)
                             plugins/ (links to the unpacked server's plugins and to ours)
                             mysqld.sock  error.log  server.pid (pid that we started)  secrets.cnf (options)

Invariants: a process is signalled only after /proc says that it is our mariadbd with our data directory;
a server started here ends with this Python process, unless start(detach=True) was asked for.
Thread-safety: a PrivateServer is externally synchronised.
"""

import atexit
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from quarry_backup import HOME_NAME

from . import private
from .run import run_or_raise

REPOSITORY = Path(__file__).resolve().parents[2]

BUILD = REPOSITORY / "build"
MARIADB = Path(os.environ.get("QUARRY_MARIADB_SERVER", BUILD / "mariadb" / "server"))
PLUGIN = Path(os.environ.get("QUARRY_PLUGIN") or BUILD / "release" / "plugin" / "ha_quarry.so")
if PLUGIN.name == "none":
    PLUGIN = None  # QUARRY_PLUGIN=none: plain servers, for control runs

FORMER_HOME_NAMES = ("#quarry", "@0023quarry")  # of builds before the first release: the plugin refuses them
SOCKET_PATH_BYTES_MAX = 107  # sun_path of struct sockaddr_un, less the final zero
READY_TIMEOUT_S = 120
STOP_TIMEOUT_S = 300
LOG_LINES_SHOWN = 25
# Options that are fixed when a data directory is made: they are given to the installation too.
INSTALL_OPTIONS = (
    "--innodb-page-size",
    "--innodb-data-file-path",
    "--innodb-undo-tablespaces",
    "--innodb-checksum-algorithm",
    "--lower-case-table-names",
    "--aria-block-size",
    "--character-set-server",
    "--collation-server",
)


class ServerError(Exception):
    """A server could not be installed, started, stopped or reached."""


class SqlError(Exception):
    """The client reported an error for a statement; the message is the client's."""


class PrivateServer:
    """One server in one directory. Reusing the directory reuses its data.

    options   mariadbd options, e.g. ["--innodb-buffer-pool-size=1G"]; later ones win, also over those made here
    plugin    the plugin file to load as ha_quarry.so, or None for a server without Quarry (default: the release build;
              the environment variable QUARRY_PLUGIN names another one, or none)
    force     such a server does not run without the engine (--quarry=FORCE); False: also with a plugin that it refuses
    rocksdb   load MyRocks too
    user      account that a server started by root runs under (default root)
    cgroup    a cgroup directory, made by the caller: the server enters it before it allocates anything
    environment  additions to the process's environment, e.g. {"LD_PRELOAD": ...} for a sanitizer's run-time
    secrets   options, {name: value}, that no command line may show: they stand in a file that only the owner can read
    drop      root's server gives up root's rights, where its user id can reach the programs; further directories of its own
    drop_to   that user id, where several servers share one
    """

    def __init__(
        self,
        directory,
        options=(),
        plugin=PLUGIN,
        rocksdb=False,
        user=None,
        cgroup=None,
        environment=None,
        secrets=None,
        drop=None,
        drop_to=None,
        force=True,
    ):
        self.directory = Path(os.path.abspath(directory))
        self.options = [str(option) for option in options]
        self.plugin = Path(os.path.abspath(plugin)) if plugin else None
        self.force = force
        self.rocksdb = rocksdb
        self.user = user
        self.cgroup = Path(cgroup) if cgroup else None
        self.environment = dict(environment or {})
        self.secrets = dict(secrets or {})
        self.drop = drop if os.geteuid() == 0 and not user else None
        self.drop_to = drop_to
        self.runs_as = None  # the user id that a server of root's drops to
        self.datadir = self.directory / "data"
        self.files = self.directory / "files"
        self.error_log = self.directory / "error.log"
        self.plugin_dir = self.directory / "plugins"
        self.pid_file = self.directory / "server.pid"
        self.secrets_file = self.directory / "secrets.cnf"
        self.socket = self.directory / "mysqld.sock"
        self.process = None  # subprocess.Popen, while a server that this object started runs
        self._adopted_pid = None
        self._log_start = 0
        self._atexit = None

    # --- life ---------------------------------------------------------------------------------------------------------
    def start(self, timeout_s=READY_TIMEOUT_S, detach=False):
        """Makes the data directory if there is none, starts the server and waits until it answers."""
        if self.running():
            raise ServerError(f"the server in {self.directory} is already running (pid {self.pid})")
        self._check_binaries()
        self._clean_stale()
        private.make_directory(self.directory)
        for name in ("tmp", "files"):
            (self.directory / name).mkdir(exist_ok=True)
        self._link_plugins()
        self.socket = self._usable_socket()
        self._install()
        if self.secrets:
            lines = [f"{name} = {value}" for name, value in self.secrets.items()]
            private.write_secret(self.secrets_file, "\n".join(["[mariadbd]", *lines, ""]))
        self.socket.unlink(missing_ok=True)
        self._drop()
        self._log_start = self.error_log.stat().st_size if self.error_log.exists() else 0
        with open(self.error_log, "ab") as log:
            # A session of its own: Ctrl-C in the terminal reaches the caller, who then stops the server cleanly.
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        self.pid_file.write_text(f"{self.process.pid}\n", encoding="ascii")
        if not detach:
            self._atexit = atexit.register(self._kill_at_exit, os.getpid())
        try:
            self.wait_until_ready(timeout_s)
        except BaseException:
            self._end_failed_start()
            raise
        return self

    def stop(self, timeout_s=STOP_TIMEOUT_S):
        """A clean shutdown; ServerError when the server crashed on the way or does not end."""
        if not self.running():
            self._forget()
            return
        pid = self.pid
        os.kill(pid, signal.SIGTERM)
        exit_code = self._wait_for_end(timeout_s)
        if exit_code is None:
            raise ServerError(f"the server (pid {pid}) did not end within {timeout_s} s of SIGTERM\n{self.log_tail()}")
        self._forget()
        if exit_code != 0:
            raise ServerError(
                f"the server (pid {pid}) ended with {describe_exit(exit_code)} while stopping\n{self.log_tail()}"
            )

    def kill(self):
        """SIGKILL, as a crash would be; what the server had not made durable is lost."""
        if not self.running():
            raise ServerError(f"no server to kill in {self.directory}\n{self.log_tail()}")
        os.kill(self.pid, signal.SIGKILL)
        self._wait_for_end(STOP_TIMEOUT_S)
        self._forget()

    def restart(self, timeout_s=READY_TIMEOUT_S):
        self.stop()
        return self.start(timeout_s)

    def __enter__(self):
        return self if self.running() else self.start()

    def __exit__(self, exception_type, exception, traceback):
        if exception_type is None:
            self.stop()
        elif self.running():
            self.kill()  # an error is on its way already: do not hide it behind a slow or failing shutdown

    def adopt(self):
        """Takes over a server that another process started in this directory. True if one runs."""
        self.socket = self._usable_socket()
        pid = self._recorded_pid()
        self._adopted_pid = pid if pid and self._is_ours(pid) else None
        return self._adopted_pid is not None

    @property
    def pid(self):
        return self.process.pid if self.process else self._adopted_pid

    def running(self):
        if self.process:
            return self.process.poll() is None
        return self._adopted_pid is not None and self._is_ours(self._adopted_pid)

    def wait_until_ready(self, timeout_s=READY_TIMEOUT_S):
        deadline = time.monotonic() + timeout_s
        ping = [
            tool("mariadb-admin"),
            "--no-defaults",
            f"--socket={self.socket}",
            f"--user={self.account}",
            "--connect-timeout=5",
            "ping",
        ]
        while True:
            if not self.running():
                code = self.process.returncode if self.process else None
                raise ServerError(
                    f"the server in {self.directory} did not start ({describe_exit(code)})\n{self.log_tail()}"
                )
            if self.socket.exists():
                # ping succeeds as soon as connections are accepted, whatever the account's rights.
                if subprocess.run(ping, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0:
                    return
            if time.monotonic() > deadline:
                raise ServerError(
                    f"the server in {self.directory} was not ready within {timeout_s} s\n{self.log_tail()}"
                )
            time.sleep(0.02)

    # --- asking -------------------------------------------------------------------------------------------------------
    @property
    def account(self):
        """Root's account of SQL: whoever runs this, through the socket, without a password."""
        try:
            return private.account()
        except private.NoName as error:
            raise ServerError(str(error)) from error

    def client_command(self, *arguments):
        return [tool("mariadb"), "--no-defaults", f"--socket={self.socket}", f"--user={self.account}", *arguments]

    def sql(self, text, database=None, headers=False, binary=False):
        """Output of the mariadb client in batch form (tab-separated, values escaped) for the statements in `text`
        (str or bytes). Stops at the first error: SqlError."""
        arguments = ["--batch", "--max-allowed-packet=1G"] + ([] if headers else ["--skip-column-names"])
        # The statements' own bytes: a client in utf8mb4 would have the server scan random bytes as characters.
        arguments.append("--default-character-set=" + ("binary" if binary else "utf8mb4"))
        if database:
            arguments.append(f"--database={database}")
        data = text.encode() if isinstance(text, str) else text
        done = subprocess.run(self.client_command(*arguments), input=data, capture_output=True, check=False)
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip()
            if not self.running():
                message += f"\nthe server is not running any more\n{self.log_tail()}"
            raise SqlError(message)
        return done.stdout if binary else done.stdout.decode(errors="replace")

    def rows(self, text, database=None):
        """The result as a list of lists of strings; NULL (and the string NULL, shown alike) is None."""
        return [[unescape(field) for field in line.split("\t")] for line in self.sql(text, database).split("\n")[:-1]]

    def value(self, text, database=None):
        """The only field of the only row."""
        rows = self.rows(text, database)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise SqlError(f"expected one value from: {text.strip()}; got {rows}")
        return rows[0][0]

    def status(self, pattern="%"):
        """Global status variables (names in lower case) whose name is LIKE pattern; numbers as int."""
        return self._variables("STATUS", pattern)

    def variables(self, pattern="%"):
        """Global system variables, as status() gives them."""
        return self._variables("VARIABLES", pattern)

    def _variables(self, kind, pattern):
        quoted = pattern.replace("\\", "\\\\").replace("'", "''")
        return {name.lower(): as_number(value) for name, value in self.rows(f"SHOW GLOBAL {kind} LIKE '{quoted}'")}

    def log_tail(self, lines=LOG_LINES_SHOWN):
        """The last lines of the error log since the last start."""
        try:
            with open(self.error_log, "rb") as log:
                log.seek(self._log_start)
                text = log.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            text = []
        shown = "\n".join(f"  {line}" for line in text[-lines:])
        return f"last lines of {self.error_log}:\n{shown}" if text else f"{self.error_log} is empty"

    # --- making and starting ------------------------------------------------------------------------------------------
    def command(self):
        """What is executed; printed by benchmarks, since the configuration belongs to a figure."""
        usr = MARIADB / "usr"
        command = [
            str(usr / "sbin" / "mariadbd"),
            f"--defaults-file={self.secrets_file}" if self.secrets else "--no-defaults",
            f"--basedir={usr}",
            f"--lc-messages-dir={usr}/share/mysql",
            f"--datadir={self.datadir}",
            f"--tmpdir={self.directory}/tmp",
            f"--socket={self.socket}",
            f"--pid-file={self.directory}/mysqld.pid",
            f"--log-error={self.error_log}",
            f"--plugin-dir={self.plugin_dir}",
            "--plugin-maturity=unknown",
            "--skip-name-resolve",
            f"--secure-file-priv={self.files}",
        ]
        has_port = any(option.replace("_", "-").startswith("--port=") for option in self.options)
        command.append("--bind-address=127.0.0.1" if has_port else "--skip-networking")
        if os.geteuid() == 0 and self.runs_as is None:
            command.append(f"--user={self.user or 'root'}")
        if self.plugin:
            command.append("--plugin-load-add=ha_quarry.so")
            # Without the engine the server does not start, and so a commit may flush its values and the redo log at once.
            if self.force:
                command.append("--quarry=FORCE")
        if self.rocksdb:
            command.append("--plugin-load-add=ha_rocksdb.so")
        command += self.options
        if self.runs_as is not None:
            command = [*private.become(self.runs_as), *command]
        if self.cgroup:
            # The shell enters the cgroup and becomes the server, so that every page is charged there from the first on.
            command = ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(self.cgroup), *command]
        return command

    def _drop(self):
        """Hands the server's files to the user id that it will run as; it stays root where that can't reach the programs."""
        if self.drop is None:
            return
        number = self.drop_to or private.unprivileged_id(self.directory)
        owned = [self.directory, *self.drop]
        # Not through links: they lead to what is not the server's own.
        run_or_raise(["chown", "-hR", f"{number}:{number}", *owned], ServerError)
        needed = [MARIADB / "usr" / "sbin" / "mariadbd", MARIADB / "usr" / "share" / "mysql", self.plugin, *owned]
        hidden = private.unreachable(number, [path for path in needed if path])
        self.runs_as = number if hidden is None else None
        if hidden:
            print(f"the server in {self.directory} runs as root: user id {number} cannot read {hidden}", file=sys.stderr)

    def _check_binaries(self):
        if not (MARIADB / "usr" / "sbin" / "mariadbd").exists():
            raise ServerError(f"no MariaDB in {MARIADB}: run scripts/fetch-mariadb")
        if self.plugin and not self.plugin.exists():
            raise ServerError(f"no plugin at {self.plugin}: run 'make plugin'")
        if self.cgroup and not (self.cgroup / "cgroup.procs").exists():
            raise ServerError(f"{self.cgroup} is not a cgroup directory (no cgroup.procs in it)")

    def _link_plugins(self):
        """The server reads all its plugins from one directory: links to its own ones, and ours."""
        self.plugin_dir.mkdir(exist_ok=True)
        wanted = {path.name: path for path in (MARIADB / "usr" / "lib" / "mysql" / "plugin").glob("*.so")}
        if self.plugin:
            wanted["ha_quarry.so"] = self.plugin
        for link in self.plugin_dir.iterdir():
            if link.name not in wanted or not link.is_symlink() or os.readlink(link) != str(wanted[link.name]):
                link.unlink()
        for name, target in wanted.items():
            if not (self.plugin_dir / name).is_symlink():
                (self.plugin_dir / name).symlink_to(target)

    def _usable_socket(self):
        """The socket's path; through a short link in the temporary directory when the kernel would find it too long."""
        direct = self.directory / "mysqld.sock"
        if len(os.fsencode(direct)) <= SOCKET_PATH_BYTES_MAX:
            return direct
        name = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:12]
        link = Path(tempfile.gettempdir()) / f"quarry-{os.geteuid()}-{name}"
        try:
            link.symlink_to(self.directory)
            print(
                f"{direct} is longer than the {SOCKET_PATH_BYTES_MAX} bytes of a socket path: using {link}/mysqld.sock",
                file=sys.stderr,
            )
        except FileExistsError as error:
            if not link.is_symlink() or os.readlink(link) != str(self.directory) or link.lstat().st_uid != os.geteuid():
                raise ServerError(
                    f"{link} is in the way: it should be a link to {self.directory}; remove it"
                ) from error
        return link / "mysqld.sock"

    def _install(self):
        """Copies a template data directory, which is made once for each set of options that an installation fixes."""
        if (self.datadir / "mysql").is_dir():
            return
        if self.datadir.is_dir() and any(self.datadir.iterdir()):
            raise ServerError(
                f"{self.datadir} holds files, and no 'mysql' directory: this is no whole data directory of a server. "
                "Bring back what is missing, or remove it to begin anew"
            )
        chosen = sorted(o for o in self.options if o.split("=")[0].replace("_", "-") in INSTALL_OPTIONS)
        template = data_directory_template(chosen, self.account)
        shutil.rmtree(self.datadir, ignore_errors=True)
        fresh = self.directory / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        run_or_raise(["cp", "-a", "--sparse=always", template, fresh], ServerError)
        fresh.rename(self.datadir)
        self._move_redo_log()
        if self.user and os.geteuid() == 0:
            run_or_raise(["chown", "-R", self.user, self.directory], ServerError)

    def _move_redo_log(self):
        """The template's redo log stands in its data directory; an option may want it elsewhere."""
        for option in self.options:
            name, _separator, directory = option.partition("=")
            if name.replace("_", "-") == "--innodb-log-group-home-dir":
                shutil.move(self.datadir / "ib_logfile0", Path(directory) / "ib_logfile0")

    # --- ending -------------------------------------------------------------------------------------------------------
    def _is_ours(self, pid):
        """Whether this process is our mariadbd on our data directory (pids are reused, files outlive processes)."""
        try:
            executable = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if (
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[0]
                == "Z"
            ):
                return False
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        return os.path.basename(executable) == "mariadbd" and f"--datadir={self.datadir}".encode() in arguments

    def _recorded_pid(self):
        try:
            return int(self.pid_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None

    def _clean_stale(self):
        """Ends a server that an earlier, killed run left behind in this directory."""
        pid = self._recorded_pid()
        if pid and self._is_ours(pid):
            self._adopted_pid = pid
            os.kill(pid, signal.SIGTERM)
            if self._wait_for_end(30) is None:
                os.kill(pid, signal.SIGKILL)
                self._wait_for_end(STOP_TIMEOUT_S)
        self._forget()

    def _wait_for_end(self, timeout_s):
        """The exit code, or None on time-out. Of an adopted process only that it ended is known: 0."""
        if self.process:
            try:
                return self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return None
        deadline = time.monotonic() + timeout_s
        while self._is_ours(self._adopted_pid):
            if time.monotonic() > deadline:
                return None
            time.sleep(0.02)
        return 0

    def _forget(self):
        self.process, self._adopted_pid = None, None
        self.pid_file.unlink(missing_ok=True)
        if self._atexit:
            atexit.unregister(self._atexit)
            self._atexit = None
        if self.socket.parent != self.directory and self.socket.parent.is_symlink():
            self.socket.parent.unlink()

    def _end_failed_start(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._forget()

    def _kill_at_exit(self, owner):
        if os.getpid() == owner and self.process and self.process.poll() is None:  # not in a forked child
            self.process.kill()
            self.process.wait()
            self._forget()


def tool(name):
    """Path of one of the unpacked MariaDB's programs."""
    return str(MARIADB / "usr" / "bin" / name)


def data_directory_template(install_options, account):
    """A freshly installed data directory that can be copied, root's account being `account`: build/datadir-templates/<key>."""
    stat = (MARIADB / "usr" / "sbin" / "mariadbd").stat()
    key = hashlib.sha256(repr((install_options, account, stat.st_size, stat.st_mtime_ns)).encode()).hexdigest()[:16]
    template = BUILD / "datadir-templates" / key
    if template.is_dir():
        return template
    private.make_directory(template.parent)
    with tempfile.TemporaryDirectory(dir=template.parent, prefix="new-") as scratch:
        # A small redo log: it is copied for every server, and each server resizes it to its own setting when it starts.
        command = [
            tool("mariadb-install-db"),
            "--no-defaults",
            f"--basedir={MARIADB}/usr",
            f"--datadir={scratch}/data",
            f"--tmpdir={scratch}",  # of its own: a server that starts removes the temporary tables that it finds
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={account}",
            "--skip-test-db",
            "--skip-name-resolve",
            "--force",
            "--innodb-log-file-size=8M",
            "--innodb-buffer-pool-size=64M",
            *install_options,
        ]
        if os.geteuid() == 0:
            command.append("--user=root")
        run_or_raise(command, ServerError, cwd=scratch)
        try:
            os.rename(f"{scratch}/data", template)
        except OSError:
            if not template.is_dir():  # else another process made the same one a moment ago
                raise
    return template


def holds_former_home(directory):
    """Whether `directory`, one server's or a cluster's, is what a build from before the first release left."""
    directory = Path(directory)
    return any(
        (data / name / "DIRECTORY").exists()
        for data in (directory / "data", *directory.glob("*/data"))
        for name in (*FORMER_HOME_NAMES, HOME_NAME)
    )


def set_former_aside(directory):
    """Such a directory's contents go to a new one beside it, which is returned; None: it is no such. No server may run."""
    return set_aside(directory) if holds_former_home(directory) else None


def set_aside(directory):
    """A directory's contents go to a new one beside it, which is returned. No server may run in it."""
    directory = Path(directory)
    names = (directory.with_name(f"{directory.name}.former-{number}") for number in range(1, 1000))
    aside = next(path for path in names if not path.exists())
    private.make_directory(aside)
    for entry in directory.iterdir():
        if entry.name != "lock":  # a cluster's: whoever calls holds it
            entry.rename(aside / entry.name)
    return aside


def describe_exit(code):
    if code is None:
        return "exit code unknown"
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def unescape(field):
    """A field of the client's batch output as it was in the table; NULL becomes None."""
    if field == "NULL":
        return None
    if "\\" not in field:
        return field
    pieces, position = [], 0
    while position < len(field):
        character = field[position]
        if character == "\\" and position + 1 < len(field):
            position += 1
            character = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}.get(field[position], field[position])
        pieces.append(character)
        position += 1
    return "".join(pieces)


def as_number(text):
    try:
        return int(text)
    except (TypeError, ValueError):
        return text
