"""The server as quarry-backup meets it: one session that holds the backup lock, and runs of mariadb-backup.

The session is a `mariadb` client that reads statements from us. It ends when we do, however we end, and with it ends
the lock. So that a process that hangs or was stopped does not hold it for ever, the session has a short wait_timeout and a
thread keeps it alive.

Thread-safety: Session is internally synchronised.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import threading

from quarry_backup import HOME_NAME
from quarry_backup.credentials import refuse_password_in
from quarry_backup.files import BackupError, named

SESSION_TIMEOUT_S = 300
KEEP_ALIVE_S = 20
# Left out of a backup by these, or not held still: such a backup would not be one of QUARRY tables.
REFUSED_OPTIONS = (
    "backup prepare copy-back move-back target-dir incremental-basedir incremental-dir incremental-lsn datadir no-lock "
    "stream databases databases-file databases-exclude tables tables-file tables-exclude export compress "
    "force-non-empty-directories"
).split()
# Whatever the client's option file and the server's variables say: safe-updates, and a global limit, cut off the list of segments.
# Nor shall a server that was taken over ask root's client for files.
AS_WE_READ_IT = (
    "--skip-table --skip-vertical --skip-auto-vertical-output --skip-html --skip-xml --skip-raw --delimiter=; --skip-local-infile"
).split()
UNLIMITED = "SET SESSION sql_select_limit = 18446744073709551615, sql_big_selects = 1, max_statement_time = 0"
PREFIXES = ("loose-", "enable-", "maximum-", "skip-", "disable-")
UNESCAPE = {"\\t": "\t", "\\n": "\n", "\\\\": "\\", "\\0": "\0"}


def find_tool(given, name):
    path = given or shutil.which(name) or (f"/usr/bin/{name}" if os.path.exists(f"/usr/bin/{name}") else None)
    if path is None or not os.access(path, os.X_OK):
        raise BackupError(f"the program {given or name} is not there: install it, or name it with --{name}=PATH")
    return path


def _is_refused(name):
    """As MariaDB's programs read it: a beginning of an option's name is the option, behind some prefixes, too."""
    bare = next((name[len(prefix) :] for prefix in PREFIXES if name.startswith(prefix)), name)
    return any(refused.startswith(word) for refused in REFUSED_OPTIONS for word in (name, bare))


def check_passed_on(options):
    refuse_password_in(options)
    for option in options:
        if not option.startswith("--") or _is_refused(option.lstrip("-").partition("=")[0].replace("_", "-")):
            raise BackupError(
                f"'{option}' cannot be passed on to mariadb-backup: quarry-backup decides that itself, or the backup "
                "would be none of QUARRY tables"
            )


_LIBC = ctypes.CDLL(None)


def _die_with_parent():
    _LIBC.prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def run_mariadb_backup(program, arguments, log_path, descriptors=()):
    """Runs it, with `descriptors` open; what it says goes to `log_path`. A failure shows its last lines."""
    with open(log_path, "ab") as log:
        with named(log_path):
            log.write(os.fsencode("\n$ mariadb-backup " + " ".join(arguments) + "\n"))
            log.flush()
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
            pass_fds=descriptors,
            preexec_fn=_die_with_parent,
        )
    if done.returncode != 0:
        with open(log_path, encoding="utf-8", errors="replace") as stream:
            tail = "".join(stream.readlines()[-12:])
        raise BackupError(f"mariadb-backup ended with {done.returncode}; its last words (all of them: {log_path}):\n{tail}")


def _unescape(cell):
    if "\\" not in cell:
        return cell
    out, position = [], 0
    while position < len(cell):
        pair = cell[position : position + 2]
        out.append(UNESCAPE.get(pair, cell[position]))
        position += 2 if pair in UNESCAPE else 1
    return "".join(out)


class Session:
    """One connection of the `mariadb` client."""

    def __init__(self, program, connection_options, descriptors=()):
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()
        defaults = [option for option in connection_options if option.startswith(("--defaults", "--no-defaults"))]
        others = [option for option in connection_options if option not in defaults]
        self._client = subprocess.Popen(
            [program, *defaults, "--batch", "--skip-column-names", "--unbuffered", "--skip-reconnect", *AS_WE_READ_IT]
            + ["--default-character-set=utf8mb4", "--skip-auto-rehash", "--max-allowed-packet=1G", *others],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=descriptors,
            # Ctrl-C is for quarry-backup, which ends the session in order.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
        self._stopped = threading.Event()
        self._marker = 0
        self._keeper = None
        self.lost = None
        self.query(UNLIMITED)

    def query(self, sql):
        """Rows of texts (NULL is None). BackupError with the server's words when it fails, or the connection is lost."""
        with self._lock:
            if self._client.poll() is not None:
                raise BackupError(self._complaint())
            self._marker += 1
            end = f"quarry-backup-end-{self._marker}"
            rows = []
            try:
                self._client.stdin.write(f"{sql};\nSELECT '{end}';\n".encode())
                self._client.stdin.flush()
                while True:
                    line = self._client.stdout.readline().decode("utf-8", "surrogateescape")
                    if not line:
                        self._client.wait()
                        raise BackupError(self._complaint())
                    if line.rstrip("\n") == end:
                        return rows
                    rows.append(
                        [None if cell == "NULL" else _unescape(cell) for cell in line.rstrip("\n").split("\t")]
                    )
            except BrokenPipeError as failure:
                raise BackupError(self._complaint()) from failure

    def _complaint(self):
        self._errors.seek(0)
        words = self._errors.read().decode("utf-8", "replace").strip() or "the client ended without a word"
        return f"the server: {words}"

    # --- the lock -----------------------------------------------------------------------------
    def take_lock(self):
        self.query(f"SET SESSION wait_timeout = {SESSION_TIMEOUT_S}")
        self.query("SET SESSION quarry_backup_lock = 1")
        self.check_lock()
        self._keeper = threading.Thread(target=self._keep_alive, daemon=True)
        self._keeper.start()

    def check_lock(self):
        if self.lost:
            raise BackupError(self.lost)
        if self.query("SELECT @@SESSION.quarry_backup_lock") != [["1"]]:
            raise BackupError("the backup lock was not granted or is lost: another backup runs. Try again later")

    def _keep_alive(self):
        while not self._stopped.wait(KEEP_ALIVE_S):
            try:
                self.query("SELECT 1")
            except BackupError as failure:
                self.lost = f"{failure}. The session that held the backup lock is lost: this backup is worthless"
                return

    def close(self):
        self._stopped.set()
        try:
            self._client.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._client.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._client.kill()
            self._client.wait()

    # --- what it tells ------------------------------------------------------------------------
    def variable(self, name):
        return self.query(f"SELECT @@GLOBAL.{name}")[0][0] or ""

    def status(self, name):
        return self.query(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1]

    def require_engine(self):
        rows = self.query(
            "SELECT plugin_name FROM information_schema.plugins "
            "WHERE plugin_name IN ('QUARRY', 'QUARRY_BACKUP') AND plugin_status = 'ACTIVE'"
        )
        if len(rows) == 2:
            return
        home = os.path.join(self.variable("datadir"), HOME_NAME)
        if os.path.lexists(home):
            raise BackupError(
                f"this server HAS Quarry's data ({home}), and its engine QUARRY is not loaded, did not start, or is older than "
                "quarry-backup. Load it first: the server's error log says why it is not there. Do not use mariadb-backup "
                "alone: it would leave out every value"
            )
        raise BackupError(
            "the engine QUARRY is not loaded in this server, and there are no data of it: a server without QUARRY tables "
            "needs mariadb-backup alone"
        )

    def snapshot(self):
        """INFORMATION_SCHEMA.QUARRY_BACKUP: {kind: [(name, path, path number, contents), ...]}."""
        rows = self.query("SELECT KIND, NAME, PATH, PATH_NUMBER, CONTENTS FROM information_schema.QUARRY_BACKUP")
        count = int(self.query("SELECT COUNT(*) FROM information_schema.QUARRY_BACKUP")[0][0])
        if len(rows) != count:
            raise BackupError(f"{len(rows)} of {count} rows came of INFORMATION_SCHEMA.QUARRY_BACKUP, which names what to copy")
        found = {"file": [], "segment": [], "data path": []}
        for kind, name, path, number, contents in rows:
            found.setdefault(kind, []).append((name, path, None if number is None else int(number), contents))
        taken = found.get("snapshots", [("0",)])[0][0]
        if taken != "1":
            raise BackupError(
                f"{taken} backups reached BACKUP STAGE END while this one was made, so that its own moment cannot be "
                "told: let no other backup run at the same time, and try again"
            )
        if "error" in found:
            raise BackupError(f"the server cannot tell what to copy: {found['error'][0][0]}")
        return found
