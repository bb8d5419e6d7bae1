"""prepare, restore and verify.

Invariants: prepare leaves a directory that restore accepts, or one that it refuses, never one that is half of each;
a restored data directory has #quarry.d, and a data path its quarry directory, only when everything in it is there.
"""

import collections
import contextlib
import grp
import os
import pwd
import shutil
import subprocess
import tempfile

from quarry_backup import HOME_NAME, catalog, files
from quarry_backup.backup import Progress, in_parallel, make_home
from quarry_backup.files import BackupError
from quarry_backup.session import check_passed_on, find_tool, run_mariadb_backup
from quarry_backup.words import say

UNFINISHED = ".restoring"


def _sync_what_mariadb_backup_wrote(directory, threads):
    """It syncs nothing of what it copies, and after a crash a directory that was called ready would lack it."""
    in_parallel(lambda name: files.sync_file(os.path.join(directory, name)), files.walk_files(directory), threads)
    files.sync_tree(directory)


# --- prepare --------------------------------------------------------------------------------------


def prepare(arguments):
    check_passed_on(arguments.passed_on)
    program = find_tool(arguments.mariadb_backup, "mariadb-backup")
    directory = os.path.abspath(arguments.target_dir)
    contents = catalog.open_backup(directory)
    if contents["kind"] != "full":
        raise BackupError(f"{directory} is incremental: prepare the full backup that its chain began with, then this on it")
    with catalog.alone(directory):
        state = catalog.prepared(directory)
        if state is not None and state["step"] != contents["id"]:
            _refuse_half(directory, state, contents)
        if arguments.incremental_dir:
            _apply(arguments, program, directory, state)
        else:
            _prepare_full(arguments, program, directory, contents, state)


def _refuse_half(directory, state, contents):
    """What was broken off in the middle of a step is no backup."""
    if state["state"] == "ready":
        return
    if state["step"] == contents["id"]:
        raise BackupError(f"{directory}: its prepare was broken off. Run prepare once more; should it refuse, use another backup")
    raise BackupError(
        f"{directory}: applying an incremental backup was broken off, which mariadb-backup cannot go on with. "
        "Take the full backup from where you keep another copy of it, or an older one"
    )


def _prepare_full(arguments, program, directory, contents, state):
    if state is not None and state["state"] == "ready":
        raise BackupError(f"{directory} is prepared already: apply an incremental backup, or restore")
    if state is None:
        catalog.require_copied(directory, contents)
    say("mariadb-backup prepares")
    _save_state(directory, "applying", [], contents["id"], contents)
    run_mariadb_backup(
        program,
        ["--prepare", f"--target-dir={os.path.join(directory, catalog.SERVER)}", *arguments.passed_on],
        os.path.join(directory, catalog.LOG),
    )
    _sync_what_mariadb_backup_wrote(os.path.join(directory, catalog.SERVER), arguments.parallel)
    _save_state(directory, "ready", [contents["id"]], contents["id"], contents)
    say(f"prepared: {directory}. Apply incremental backups to it, in their order, or restore it")


def _apply(arguments, program, directory, state):
    increment = os.path.abspath(arguments.incremental_dir)
    added = catalog.open_backup(increment)
    if state is None or state["state"] != "ready":
        raise BackupError(f"{directory} is not prepared yet: first prepare it by itself, without --incremental-dir")
    if added["kind"] != "incremental":
        raise BackupError(f"{increment} is a full backup: prepare it by itself")
    if added["base"]["id"] != state["applied"][-1]:
        already = " It is applied already." if added["id"] in state["applied"] else ""
        raise BackupError(
            f"{increment} builds upon {added['base']['directory']}, which is not what was applied last to "
            f"{directory}.{already} Apply incremental backups in the order in which they were taken"
        )
    catalog.require_copied(increment, added)
    if not arguments.skip_space_check:
        _require_room(directory, increment)
    _take_segments(directory, increment, added)
    say("mariadb-backup applies the incremental backup")
    _apply_rows(arguments, program, directory, increment, state, added)
    _swap_segments(directory)
    _save_state(directory, "ready", [*state["applied"], added["id"]], added["id"], added)
    _remove_former_segments(directory)
    say(f"applied: {increment}. Apply the next, or restore {directory}")


def _apply_rows(arguments, program, directory, increment, state, added):
    """What breaks off in here spoils the backup, unless mariadb-backup had not begun: it may refuse an option, or not start."""
    server = os.path.join(directory, catalog.SERVER)
    before = _identities(server)
    try:
        _save_state(directory, "applying", state["applied"], added["id"], state)
        run_mariadb_backup(
            program,
            ["--prepare", f"--target-dir={server}"]
            + [f"--incremental-dir={os.path.join(increment, catalog.SERVER)}", *arguments.passed_on],
            os.path.join(directory, catalog.LOG),
        )
    except (BackupError, OSError) as failure:
        if _identities(server) != before:
            raise
        files.remove_tree(os.path.join(directory, catalog.QUARRY + ".new"))  # first: the disk may be full
        catalog.save(os.path.join(directory, catalog.PREPARED), state)
        raise BackupError(f"{failure}\n{directory} is as it was before: mend what is said above, and apply the increment again") from failure
    _sync_what_mariadb_backup_wrote(server, arguments.parallel)


def _identities(directory):
    """Of all files below: the same twice when nothing was changed."""
    return {name: files.identity(os.lstat(os.path.join(directory, name))) for name in files.walk_files(directory)}


def _require_room(directory, increment):
    """A disk that fills up while mariadb-backup applies spoils the backup. Asks as if each page of the increment were a new one."""
    needed = files.allocated_bytes([os.path.join(increment, catalog.SERVER)])
    if files.device_of(increment) != files.device_of(directory):
        needed += files.allocated_bytes([os.path.join(increment, catalog.QUARRY)])
    files.require_space(directory, needed, "applying the incremental backup")


def _take_segments(directory, increment, added):
    """Every backup holds all of Quarry's files of its moment: those of the increment, which will take the place of ours.

    First of all: where they are copied, the disk may be full, and by now the backup is whole.
    """
    new = os.path.join(directory, catalog.QUARRY + ".new")
    for left in (new, os.path.join(directory, catalog.QUARRY + ".old")):  # by a run that was killed
        files.remove_tree(left)
    try:
        make_home(new)
        for entry in added["quarry_files"]:
            target = os.path.join(new, entry["name"])
            files.make_directories_to_be_synced(os.path.dirname(target))
            files.link_or_copy(os.path.join(increment, catalog.QUARRY, entry["name"]), target)
        files.sync_tree(new)
    except BaseException:
        files.remove_tree(new)
        raise


def _swap_segments(directory):
    here = os.path.join(directory, catalog.QUARRY)
    os.rename(here, here + ".old")
    os.rename(here + ".new", here)
    files.sync_directory(directory)


def _remove_former_segments(directory):
    former = os.path.join(directory, catalog.QUARRY + ".old")
    try:
        files.remove_tree(former)
    except OSError as failure:
        say(f"{failure.filename or former}: {failure.strerror}. {former} is not needed any more: remove it")


def _save_state(directory, state, applied, step, source):
    catalog.save(
        os.path.join(directory, catalog.PREPARED),
        {
            "format": catalog.FORMAT,
            "state": state,
            "applied": applied,
            "step": step,
            "quarry_files": source["quarry_files"],
            "data_paths": source["data_paths"],
        },
    )


# --- restore --------------------------------------------------------------------------------------


def _owner(text):
    """(user id, group id) of USER[:GROUP]; without a group the user's own."""
    user, _, group = text.partition(":")
    try:
        entry = pwd.getpwnam(user)
        found = entry.pw_uid, grp.getgrnam(group).gr_gid if group else entry.pw_gid
    except KeyError as failure:
        raise BackupError(f"--owner={text}: there is no such user or group here") from failure
    if os.geteuid() not in (0, found[0]):
        raise BackupError(f"--owner={text}: only root may give files to another account")
    return found


class Restore:
    def __init__(self, arguments):
        check_passed_on(arguments.passed_on)
        self.arguments = arguments
        self.program = find_tool(arguments.mariadb_backup, "mariadb-backup")
        self.directory = os.path.abspath(arguments.target_dir)
        self.datadir = os.path.abspath(arguments.datadir)
        contents = catalog.open_backup(self.directory)
        self.state = catalog.prepared(self.directory)
        if self.state is None:
            raise BackupError(f"{self.directory} is not prepared: quarry-backup prepare --target-dir={self.directory}")
        _refuse_half(self.directory, self.state, contents)
        self.places = self.place_data_paths()
        self.owner = _owner(self.arguments.owner) if self.arguments.owner else None

    def place_data_paths(self):
        """{path number: directory} of where the segments of each data path go."""
        numbers = [path["number"] for path in self.state["data_paths"]]
        given = [os.path.abspath(path) for path in (self.arguments.quarry_data_paths or "").split(";") if path]
        if len(given) != len(numbers) or len(set(given)) != len(given):
            was = ";".join(path["path"] for path in self.state["data_paths"])
            raise BackupError(
                f"--quarry-data-paths names {len(given)} directories, and the backup has segments of {len(numbers)} data "
                + (f"paths, which were '{was}': name as many, each another, in that order" if numbers else "paths")
            )
        return dict(zip(numbers, given))

    def refuse_what_is_there(self):
        files.require_empty(self.datadir, "the data directory")
        for place in self.places.values():
            if not os.path.isdir(place):
                raise BackupError(f"the data path {place} is no directory: make it, or mount it")
            for name, why in (("quarry", ""), (f"quarry{UNFINISHED}", ", of a restore that was broken off")):
                if os.path.lexists(os.path.join(place, name)):
                    raise BackupError(f"the data path {place} holds a '{name}' already{why}: remove it, or choose another place")

    def run(self):
        self.refuse_what_is_there()
        if not self.arguments.skip_space_check:
            self.check_space()
        with contextlib.ExitStack() as held:
            held.enter_context(catalog.alone(self.directory))
            if catalog.prepared(self.directory) != self.state:
                raise BackupError(f"{self.directory} was prepared meanwhile: restore again")
            files.make_passable(os.path.dirname(self.datadir))
            files.make_directories(self.datadir)
            for place in {self.datadir, *self.places.values()}:
                held.enter_context(catalog.alone(place))
            # Once more: a restore of another backup may have ended there since.
            self.refuse_what_is_there()
            say("mariadb-backup copies back")
            self.copy_back()
            _sync_what_mariadb_backup_wrote(self.datadir, self.arguments.parallel)
            self.copy_segments()
        if self.owner:
            for root in (self.datadir, *(os.path.join(place, "quarry") for place in self.places.values())):
                files.change_owner(root, *self.owner)
        self.tell()

    def copy_back(self):
        # First, as mariadb-backup wants it: an option file may name other directories of InnoDB.
        command = [option for option in self.arguments.connection if option.startswith(("--defaults", "--no-defaults"))]
        command += ["--copy-back", f"--target-dir={os.path.join(self.directory, catalog.SERVER)}"]
        command += [f"--datadir={self.datadir}", *self.arguments.passed_on]
        try:
            run_mariadb_backup(self.program, command, os.path.join(self.directory, catalog.LOG))
        except OSError as failure:
            # The disk with the backups is full or read-only: from it, too, a restore is possible.
            with tempfile.NamedTemporaryFile(prefix="quarry-restore-", suffix=".log", delete=False) as log:
                say(f"{failure.filename}: {failure.strerror}. What mariadb-backup says goes to {log.name}")
            run_mariadb_backup(self.program, command, log.name)

    def check_space(self):
        """On each file system, for all that will lie there."""
        parts = [(self.datadir, catalog.SERVER), (self.datadir, os.path.join(catalog.QUARRY, "home"))]
        parts += [(place, os.path.join(catalog.QUARRY, "paths", str(number))) for number, place in self.places.items()]
        places, needed = {}, collections.Counter()
        for place, part in parts:
            device = files.device_of(place)
            places.setdefault(device, place)
            needed[device] += files.allocated_bytes([os.path.join(self.directory, part)])
        for device, place in places.items():
            files.require_space(place, needed[device], "restoring")

    def target_of(self, name):
        """Under names that no server looks at, until all is there."""
        kind, _, rest = name.partition("/")
        if kind == "home":
            return os.path.join(self.datadir, f"{HOME_NAME}{UNFINISHED}", rest)
        number, _, rest = rest.partition("/quarry/")
        return os.path.join(self.places[int(number)], f"quarry{UNFINISHED}", rest)

    def copy_segments(self):
        entries = self.state["quarry_files"]
        roots = [os.path.join(self.datadir, HOME_NAME)] + [os.path.join(p, "quarry") for p in self.places.values()]
        for root in roots:
            for part in ("stores", "trash") if root == roots[0] else ("",):
                files.make_directories(os.path.join(root + UNFINISHED, part))
        total = sum(entry["size"] for entry in entries)
        say(f"copying {len(entries)} files of Quarry, {files.human(total)}, and checking them")
        progress = Progress("files of Quarry", total)
        for parent in sorted({os.path.dirname(self.target_of(entry["name"])) for entry in entries}):
            files.make_directories_to_be_synced(parent)
        in_parallel(lambda entry: self.copy_one(entry, progress), entries, self.arguments.parallel, progress)
        for root in roots:
            files.sync_tree(root + UNFINISHED)
        # The home last: without it, a server with QUARRY tables does not take what is there for all there is.
        for root in reversed(roots):
            os.rename(root + UNFINISHED, root)
            files.sync_directory(os.path.dirname(root))

    def copy_one(self, entry, progress):
        source = os.path.join(self.directory, catalog.QUARRY, entry["name"])
        target = self.target_of(entry["name"])
        try:
            size_bytes, digest, _ = files.copy(source, target, progress)
        except OSError as failure:
            raise BackupError(
                f"copying {source} to {target}: {failure.strerror}. Nothing that was restored can be used"
            ) from failure
        if (size_bytes, digest) != (entry["size"], entry["sha256"]):
            raise BackupError(
                f"{source} is damaged: its bytes are not those that were backed up. Nothing that was restored can be "
                "used: remove it, and take this file from another copy of the backup, or an older backup"
            )

    def tell(self):
        say(f"restored into {self.datadir}")
        if self.places:
            say("start the server with quarry_data_paths='" + ";".join(self.places.values()) + "'")
        if not self.owner:
            say("the files belong to this user: chown -R mysql: them if the server runs as mysql (or restore with --owner=mysql)")
        position = catalog.binlog_position(self.directory)
        if position:
            say(f"for point-in-time recovery, replay the binlog from: {position}")


# --- verify ---------------------------------------------------------------------------------------


def verify(arguments):
    directory = os.path.abspath(arguments.target_dir)
    contents = catalog.open_backup(directory)
    state = catalog.prepared(directory)
    if state is not None:
        _refuse_half(directory, state, contents)
    checked = [(catalog.QUARRY, entry) for entry in (state or contents)["quarry_files"]]
    if state is None:
        checked += [(catalog.SERVER, entry) for entry in contents["server_files"]]
    else:
        say("prepared: mariadb-backup's files have changed since, only Quarry's are checked")
    progress = Progress("checked", sum(entry["size"] for _, entry in checked))

    def check(item):
        part, entry = item
        path = os.path.join(directory, part, entry["name"])
        try:
            size_bytes = os.path.getsize(path)
            if size_bytes != entry["size"]:
                return f"{path}: {size_bytes} bytes, not {entry['size']}"
            return None if files.checksum(path, progress) == entry["sha256"] else f"{path}: the checksum is wrong"
        except OSError as failure:
            return f"{path}: {failure.strerror}"

    problems = [problem for problem in in_parallel(check, checked, arguments.parallel, progress) if problem]
    for problem in problems:
        say(problem)
    if problems:
        raise BackupError(f"{len(problems)} of {len(checked)} files are damaged or missing: this backup cannot be relied upon")
    _verify_extents(directory, arguments, sorted(path["number"] for path in (state or contents)["data_paths"]))
    what = contents["kind"] if state is None else f"prepared, {len(state['applied'])} backups applied"
    say(f"{directory}: {len(checked)} files are as they were backed up ({what})")


def _verify_extents(directory, arguments, numbers):
    """`numbers`: of the data paths. With quarry-verify, where it is installed: what the files say of themselves and of each other."""
    program = arguments.quarry_verify or shutil.which("quarry-verify")
    if program is None:
        say("quarry-verify is not here: sizes and checksums of files were compared, the extents in them were not looked at")
        return
    home = os.path.join(directory, catalog.QUARRY, "home")
    paths = os.path.join(directory, catalog.QUARRY, "paths")
    options = [word for number in numbers for word in ("--data-path", os.path.join(paths, str(number)))]
    done = subprocess.run([program, "--quiet", *options, home], stdin=subprocess.DEVNULL, check=False)
    # 3: doubtful things, as the end of a segment that was written to while it was copied.
    if done.returncode not in (0, 3):
        raise BackupError(f"quarry-verify ended with {done.returncode}: see above. This backup cannot be relied upon")
