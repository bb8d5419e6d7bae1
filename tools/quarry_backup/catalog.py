"""backup.json and prepared.json: what a backup directory says of itself.

Invariants: backup.json is written when everything it names is durable, and never again; both carry a checksum of
themselves; a directory with INCOMPLETE or without backup.json is no backup, whatever else is in it.
"""

import contextlib
import fcntl
import hashlib
import json
import os

from quarry_backup.files import BackupError, is_within, status_of, write_durably

FORMAT = 1
CATALOG = "backup.json"
PREPARED = "prepared.json"
INCOMPLETE = "INCOMPLETE"
LOG = "mariadb-backup.log"
SERVER = "server"
QUARRY = "quarry"
REDO_LOG = "ib_logfile0"  # in mariadb-backup's directory
INFO_FILES = ("xtrabackup_info", "mariadb_backup_info")  # in there, and in what was restored from it
DDL_FILES = (".del", ".ren", ".new", ".new.meta", ".new.delta")  # there, by the end of the name: of tables that DDL changed meanwhile
WHOLE = {"partial": "N", "format": "file", "compressed": "N"}  # in mariadb-backup's own notes


def _seal(contents):
    body = json.dumps(contents, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()


def save(path, contents):
    """Durably; the checksum is added."""
    contents = {key: value for key, value in contents.items() if key != "checksum"}
    contents["checksum"] = _seal(contents)
    write_durably(path, (json.dumps(contents, indent=1, sort_keys=True) + "\n").encode())


def load(path):
    try:
        with open(path, encoding="utf-8") as stream:
            contents = json.load(stream)
    except (OSError, ValueError) as failure:
        raise BackupError(f"{path} cannot be read: {failure}. Use another backup") from failure
    checksum = contents.pop("checksum", None) if isinstance(contents, dict) else None
    if checksum is None or checksum != _seal(contents):
        raise BackupError(f"{path} is damaged (its checksum is wrong): use another backup")
    if contents.get("format") != FORMAT:
        raise BackupError(f"{path} has format {contents.get('format')}, this quarry-backup reads {FORMAT}: use a newer one")
    for entry in contents.get("quarry_files", []) + contents.get("server_files", []):
        if not is_within(entry["name"]):
            raise BackupError(f"{path} names a file outside of the backup: {entry['name']!r}")
    return contents


def open_backup(directory):
    """The catalog of a complete backup."""
    if not os.path.isdir(directory):
        raise BackupError(f"there is no directory {directory}")
    if os.path.exists(os.path.join(directory, INCOMPLETE)) or not os.path.exists(os.path.join(directory, CATALOG)):
        if os.path.exists(os.path.join(directory, SERVER)) or os.path.exists(os.path.join(directory, INCOMPLETE)):
            raise BackupError(
                f"{directory} holds a backup that was never completed: it cannot be restored or built upon. Remove it "
                "and take another"
            )
        raise BackupError(f"{directory} is no backup of quarry-backup: it has no {CATALOG}")
    return load(os.path.join(directory, CATALOG))


def _was_applied(directory, contents):
    """Whether mariadb-backup applied an increment, or began to, and so deleted and renamed files in the increment itself, by what
    it had noted of DDL. It does this first, so that the backup may be as it was before."""
    names = [entry["name"] for entry in contents["server_files"] if entry["name"].endswith(DDL_FILES)]
    return contents["kind"] == "incremental" and any(status_of(os.path.join(directory, SERVER, name)) is None for name in names)


def require_copied(directory, contents):
    """A copy of a backup that was broken off has backup.json, too, and mariadb-backup prepares what there is. Sizes alone are
    compared: `verify` reads the bytes."""
    server_files = [] if _was_applied(directory, contents) else contents["server_files"]
    for part, entries in ((QUARRY, contents["quarry_files"]), (SERVER, server_files)):
        for entry in entries:
            path = os.path.join(directory, part, entry["name"])
            status = status_of(path)
            if status is not None and contents["kind"] == "incremental" and entry["name"] == REDO_LOG:
                continue  # mariadb-backup may have written to it when it applied the increment to another copy
            found = "is not there" if status is None else f"has {status.st_size} bytes, not {entry['size']}"
            if status is None or status.st_size != entry["size"]:
                raise BackupError(
                    f"{path} {found}: this copy of the backup is not whole, and nothing was changed. Copy it again, or use "
                    "another backup (quarry-backup verify names all that is wrong)"
                )


def prepared(directory):
    """What prepare has done there so far; None when nothing."""
    path = os.path.join(directory, PREPARED)
    return load(path) if os.path.exists(path) else None


@contextlib.contextmanager
def alone(directory):
    """Nobody else works on this directory meanwhile."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as failure:
            raise BackupError(f"another quarry-backup is at work in {directory}: wait for it") from failure
        yield
    finally:
        os.close(descriptor)


def text_file(directory, *names):
    """The first of `names` that there is in mariadb-backup's directory, stripped; None when there is none."""
    for name in names:
        path = os.path.join(directory, SERVER, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as stream:
                return stream.read().strip()
    return None


def binlog_position(directory):
    """'file position gtid' as mariadb-backup noted it, or None when the server wrote no binlog."""
    return text_file(directory, "xtrabackup_binlog_info", "mariadb_backup_binlog_info")


def _noted(directory, *names):
    """What mariadb-backup wrote down as lines 'key = value'."""
    text = text_file(directory, *names) or ""
    return {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in text.splitlines())}


def checkpoints(directory):
    return _noted(directory, "xtrabackup_checkpoints", "mariadb_backup_checkpoints")


def require_whole(directory, is_incremental=False):
    """Its sections of option files count, too, and may have it leave tables out or write another format, without an error."""
    noted = _noted(directory, *INFO_FILES)
    wanted = {**WHOLE, "incremental": "Y" if is_incremental else "N"}
    wrong = [key for key, value in wanted.items() if noted.get(key) != value]
    if wrong:
        found = ", ".join(f"{key} = {noted[key]}" if key in noted else f"{key} is not noted" for key in wrong)
        raise BackupError(
            f"what mariadb-backup wrote cannot be restored as a whole server ({found}; wanted: "
            f"{', '.join(f'{key} = {wanted[key]}' for key in wrong)}). Take its options (databases, tables, stream, compress, "
            "incremental-lsn ...) out of the sections [mariadb-backup], [mariabackup] and [xtrabackup] of option files, and take "
            "the backup again"
        )
