"""Making a backup, full or incremental. docs/internals/backup.md says why the order of the steps makes it a sound one.

Invariants: the backup lock is held from before mariadb-backup starts until the last segment is copied, and that it was
held throughout is checked at the end; nothing in the target directory calls itself complete before all of it is durable.
"""

import concurrent.futures
import os
import sys
import threading
import time
import uuid

from quarry_backup import HOME_NAME, catalog, files, trusted
from quarry_backup.files import BackupError
from quarry_backup.session import Session, check_passed_on, find_tool, run_mariadb_backup
from quarry_backup.words import say

MARKER_BYTES_MAX = 4096
INCOMPLETE_TEXT = (
    b"This backup is being made, or was broken off. It cannot be restored. If no quarry-backup runs, remove this directory.\n"
)


class Progress:
    """Counts bytes of several threads; shows them every few seconds, on a terminal or not."""

    INTERVAL_S = 5

    def __init__(self, what, total_bytes, session=None):
        self._what, self._total, self._session = what, total_bytes, session
        self._lock = threading.Lock()
        self._done = 0
        self._stopped = False
        self._shown = time.monotonic()

    def stop(self):
        """Whoever counts from now on ends."""
        self._stopped = True

    def __call__(self, count):
        if self._stopped:
            raise BackupError("broken off, for another file failed or quarry-backup was interrupted")
        if self._session is not None and self._session.lost:
            raise BackupError(self._session.lost)
        with self._lock:
            self._done += count
            if time.monotonic() - self._shown < self.INTERVAL_S:
                return
            self._shown = time.monotonic()
            done = self._done
        of = f" of {files.human(self._total)} ({min(100, 100 * done // self._total)} %)" if self._total else ""
        say(f"{self._what}: {files.human(done)}{of}")


def in_parallel(function, items, threads, progress=None):
    """function(item) for all; the first error ends it. Where the items count their `progress`, in their middle, too."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=threads) as pool:
        futures = [pool.submit(function, item) for item in items]
        try:
            done, _ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_EXCEPTION)
            for future in done:
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            if progress:
                progress.stop()
            raise


def make_home(directory):
    """What every home has, also when nothing is in it."""
    for part in ("stores", "trash"):
        files.make_directories(os.path.join(directory, "home", part))


class Base:
    """The backup that an incremental one builds upon."""

    def __init__(self, directory):
        self.directory = os.path.abspath(directory)
        self.contents = catalog.open_backup(self.directory)
        if catalog.prepared(self.directory) is not None:
            raise BackupError(
                f"{self.directory} has been prepared: an incremental backup needs one as it was taken. Take it from the "
                "last backup of the chain, or a full one"
            )
        self.files = {entry["name"]: entry for entry in self.contents["quarry_files"]}

    def path_of(self, name):
        return os.path.join(self.directory, catalog.QUARRY, name)


class Backup:
    def __init__(self, arguments):
        check_passed_on(arguments.passed_on)
        self.arguments = arguments
        self.target = os.path.abspath(arguments.target_dir)
        self.program = find_tool(arguments.mariadb_backup, "mariadb-backup")
        self.client = find_tool(arguments.mariadb, "mariadb")
        self.base = Base(arguments.incremental_basedir) if arguments.incremental_basedir else None
        self.started, self.boot = time.time(), files.boot_id()
        self.linked_bytes = self.copied_bytes = 0

    def path(self, *names):
        return os.path.join(self.target, *names)

    # --- the steps ----------------------------------------------------------------------------
    def run(self):
        files.require_empty(self.target, "the target directory")
        files.require_own(self.target, "the target directory")
        session = Session(self.client, self.arguments.connection, self.arguments.descriptors)
        try:
            session.require_engine()
            session.take_lock()
            say("Quarry gives no space back until this ends")
            self.check_base(session)
            self.check_space(session)
            files.make_directories(self.target)
            with catalog.alone(self.target):
                os.chmod(self.target, 0o700)  # as mariadb-backup does: it holds everybody's data
                # Once more: another server's backup may have been made there since.
                files.require_empty(self.target, "the target directory")
                files.write_durably(self.path(catalog.INCOMPLETE), INCOMPLETE_TEXT)
                self.make(session)
        finally:
            session.close()

    def make(self, session):
        say("mariadb-backup copies rows and definitions")
        run_mariadb_backup(self.program, self.mariadb_backup_arguments(), self.path(catalog.LOG), self.arguments.descriptors)
        catalog.require_whole(self.target, self.base is not None)
        session.check_lock()
        snapshot = session.snapshot()
        self.owner = trusted.owner_of(os.path.join(session.variable("datadir"), HOME_NAME))
        small, segments = self.copy_quarry(snapshot, session)
        # All that was read lies within the time of the lock.
        session.check_lock()
        session.close()
        say("checksums of what mariadb-backup copied")
        server_files = self.describe_server_files()
        self.finish(snapshot, small, segments, server_files)

    def mariadb_backup_arguments(self):
        arguments = list(self.arguments.connection)
        arguments += ["--backup", f"--target-dir={self.path(catalog.SERVER)}", f"--parallel={self.arguments.parallel}"]
        if self.base:
            arguments.append(f"--incremental-basedir={os.path.join(self.base.directory, catalog.SERVER)}")
        return arguments + self.arguments.passed_on

    def check_base(self, session):
        """InnoDB's log only grows, except that a restored server goes on from the log's end of that backup: what it writes
        until it has caught up with the base is older than the base to mariadb-backup, which leaves it out. After that the log
        does not tell, but a file that mariadb-backup restores does."""
        if self.base is None:
            return
        now, then = int(session.status("Innodb_lsn_current")), int(self.base.contents["last_lsn"] or 0)
        if now < then:
            self.refuse_base(f"it goes to LSN {then}, and the server is at {now}, as after a restore of an older backup")
        for name in catalog.INFO_FILES:
            restored = os.path.join(session.variable("datadir"), name)
            status = files.status_of(restored)
            if status and status.st_mtime > self.base.contents["started"]:
                self.refuse_base(f"the server was restored since ({restored} is younger)")

    def refuse_base(self, why):
        raise BackupError(
            f"{self.base.directory} is not a backup of what this server holds: {why}. Take a full backup, and increments upon that"
        )

    def check_space(self, session):
        if self.arguments.skip_space_check:
            return
        datadir = session.variable("datadir")
        if not os.path.isdir(os.path.join(datadir, HOME_NAME)):
            raise BackupError(
                f"{datadir}{HOME_NAME} is not here, or may not be read: quarry-backup, as mariadb-backup, must run on the "
                "server's own machine, as root or the server's user"
            )
        stores = [os.path.join(datadir, HOME_NAME)]
        stores += [os.path.join(path, "quarry") for path in session.variable("quarry_data_paths").split(";") if path]
        if self.base:
            # What mariadb-backup will find changed is not known. Segments that are known need no room.
            known = {tuple(entry["identity"]) for entry in self.base.files.values() if entry["identity"]}
            needed = 0
            for path in (os.path.join(store, name) for store in stores for name in files.walk_files(store)):
                status = files.status_of(path)
                if status and tuple(files.identity(status)) not in known:
                    needed += files.allocated_bytes([path])
        else:
            others = [os.path.join(datadir, name) for name in os.listdir(datadir) if name != HOME_NAME]
            needed = files.allocated_bytes(stores + others)
        files.require_space(self.target, needed + needed // 20, "the backup")

    # --- Quarry's files -----------------------------------------------------------------------
    def copy_quarry(self, snapshot, session):
        for name, *_ in snapshot["file"] + snapshot["segment"]:
            # Not trusted (trusted.py): we write as root.
            if not files.is_within(name) or name == ".":
                raise BackupError(f"the server names a file '{name}', which leads out of the backup")
        make_home(self.path(catalog.QUARRY))
        small = []
        for name, _, _, contents in snapshot["file"]:
            small.append(self.write_small(f"home/{name}", bytes.fromhex(contents or "")))
        for _, marker, number, _ in snapshot["data path"]:
            with open(trusted.open_file(marker, self.owner), "rb") as stream:
                small.append(self.write_small(f"paths/{number}/quarry/PATH", stream.read(MARKER_BYTES_MAX)))
        wanted = [
            (path, f"home/{name}" if number == 0 else f"paths/{number}/quarry/{name}")
            for name, path, number, _ in snapshot["segment"]
        ]
        total = files.allocated_bytes(path for path, _ in wanted)
        say(f"copying {len(wanted)} segments, {files.human(total)}")
        progress = Progress("segments", total, session)
        for parent in sorted({os.path.dirname(name) for _, name in wanted}):
            files.make_directories_to_be_synced(self.path(catalog.QUARRY, parent))
        copied = in_parallel(lambda item: self.take_segment(*item, progress), wanted, self.arguments.parallel, progress)
        files.sync_tree(self.path(catalog.QUARRY))
        return small, copied

    def write_small(self, name, contents):
        target = self.path(catalog.QUARRY, name)
        files.make_directories(os.path.dirname(target))
        files.write_durably(target, contents)
        return {"name": name, "size": len(contents), "sha256": files.checksum(target), "identity": None, "linked": False}

    def take_segment(self, path, name, progress):
        try:
            source = self.open_segment(path)
            try:
                entry = self.link_unchanged(source, name) or self.copy_segment(source, name, progress)
            finally:
                os.close(source)
        except OSError as failure:
            where = f"{failure.filename}: " if failure.filename not in (None, path) else ""
            raise BackupError(f"segment {path}: {where}{failure.strerror}. The backup is not complete") from failure
        except BackupError as failure:
            raise BackupError(f"segment {path}: {failure}") from failure
        return entry

    def open_segment(self, path):
        """A store may have gone to the trash, or come back, since the server named the path."""
        try:
            return trusted.open_file(path, self.owner)
        except FileNotFoundError:
            store, name = os.path.split(path)
            place, number = os.path.split(store)
            other = {"stores": "trash", "trash": "stores"}.get(os.path.basename(place))
            if other is None:
                raise
            return trusted.open_file(os.path.join(os.path.dirname(place), other, number, name), self.owner)

    def link_unchanged(self, source, name):
        """The base's file, when the source is still the very file, unchanged, that was copied to it."""
        if self.base is None or self.boot is None or self.base.contents.get("boot") != self.boot:
            return None
        known = self.base.files.get(name)
        if known is None or known["identity"] is None or known["identity"] != files.identity(os.fstat(source)):
            return None
        copied = self.base.path_of(name)
        if not os.path.exists(copied) or os.path.getsize(copied) != known["size"]:
            return None
        # Where it can't be linked, the source is copied: nobody would look at the bytes of a copy of the base's.
        return self.linked(known) if files.link(copied, self.path(catalog.QUARRY, name)) else None

    def linked(self, known):
        self.linked_bytes += known["size"]
        return {**known, "linked": True}

    def copy_segment(self, source, name, progress):
        target = self.path(catalog.QUARRY, name)
        size_bytes, digest, identity = files.copy_open(source, target, progress)
        known = self.base.files.get(name) if self.base else None
        if known is not None and (known["size"], known["sha256"]) == (size_bytes, digest):
            # Touched, and yet the same: one copy is enough, if the base's is what it should be.
            copied = self.base.path_of(name)
            if files.checksum(copied) == digest and files.link(copied, f"{target}.link"):
                os.rename(f"{target}.link", target)
                return self.linked({**known, "identity": identity})
        self.copied_bytes += size_bytes
        return {"name": name, "size": size_bytes, "sha256": digest, "identity": identity, "linked": False}

    # --- the end ------------------------------------------------------------------------------
    def describe_server_files(self):
        root = self.path(catalog.SERVER)
        names = files.walk_files(root)

        def describe(name):
            path = os.path.join(root, name)
            with open(path, "rb") as stream:
                os.fsync(stream.fileno())
            return {"name": name, "size": os.path.getsize(path), "sha256": files.checksum(path)}

        described = in_parallel(describe, names, self.arguments.parallel)
        files.sync_tree(root)
        return described

    def finish(self, snapshot, small, segments, server_files):
        points = catalog.checkpoints(self.target)
        contents = {
            "format": catalog.FORMAT,
            "id": str(uuid.uuid4()),
            "kind": "incremental" if self.base else "full",
            "base": {"id": self.base.contents["id"], "directory": self.base.directory} if self.base else None,
            "boot": self.boot,
            "started": self.started,
            "finished": time.time(),
            "last_lsn": points.get("last_lsn"),
            "binlog": catalog.binlog_position(self.target),
            "home": snapshot["home"][0][0],
            "data_paths": [{"number": number, "path": path} for path, _, number, _ in snapshot["data path"]],
            "quarry_files": sorted(small + segments, key=lambda entry: entry["name"]),
            "server_files": server_files,
        }
        catalog.save(self.path(catalog.CATALOG), contents)
        os.unlink(self.path(catalog.INCOMPLETE))
        files.sync_directory(self.target)
        say(
            f"complete: {self.target}, {contents['kind']}, {len(segments)} segments: {files.human(self.copied_bytes)} "
            f"copied, {files.human(self.linked_bytes)} shared with the backup before; "
            f"{time.time() - self.started:.1f} s"
        )
        if contents["binlog"]:
            say(f"binlog position: {contents['binlog']}")


def backup(arguments):
    Backup(arguments).run()
    sys.stdout.flush()
