"""Parts of quarry-backup without a server: disks that fill up, what an earlier run left, and what is said of it.

mariadb-backup is a program of ours that copies files.
"""

import errno
import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from types import SimpleNamespace

import pytest
from drill import TOOL

import quarry_backup.backup
from quarry_backup import HOME_NAME, catalog, cli, credentials, files, trusted
from quarry_backup.backup import Backup, Progress, in_parallel
from quarry_backup.files import BackupError
from quarry_backup.restore import Restore
from quarry_backup.session import Session, check_passed_on, run_mariadb_backup

COPY_BACK = """#!/bin/sh
for word; do case $word in --target-dir=*) from=${word#*=} ;; --datadir=*) to=${word#*=} ;; esac; done
[ -z "$to" ] || cp -r "$from/." "$to"
"""
SEGMENT = "stores/0000000000000001/00000001.qseg"
ON_DATA_PATH = "0000000000000001/00000002.qseg"


class Backups:
    """Backup directories as quarry-backup leaves them, with a few files that stand for a server's."""

    def __init__(self, directory):
        self.directory = directory
        self.program = directory / "mariadb-backup"
        self.program.write_text(COPY_BACK)
        self.program.chmod(0o755)

    def path(self, name):
        return self.directory / name

    def make(self, name, value=b"a value", paths=(), **more):
        """One that is complete. `paths`: numbers of data paths; `more`: of backup.json."""
        quarry_files = {"home/CATALOGUE-1": b"a catalogue", f"home/{SEGMENT}": value}
        for number in paths:
            quarry_files[f"paths/{number}/quarry/PATH"] = b"a marker"
            quarry_files[f"paths/{number}/quarry/{ON_DATA_PATH}"] = value * 1000
        contents = {
            "format": catalog.FORMAT,
            "id": name,
            "kind": "full",
            "base": None,
            "quarry_files": self.write(f"{name}/quarry", quarry_files),
            "server_files": self.write(f"{name}/server", {"ibdata1": b"rows", "d/t.ibd": b"more rows"}),
            "data_paths": [{"number": number, "path": f"/was/{number}"} for number in paths],
            **more,
        }
        catalog.save(str(self.path(name) / catalog.CATALOG), contents)
        return contents

    def write(self, directory, contents):
        """The files, and what a catalog says of them."""
        for name, data in contents.items():
            path = self.path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return [
            {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "identity": None, "linked": False}
            for name, data in contents.items()
        ]

    def parsed(self, command, name, *options):
        """Arguments as the command's function wants them."""
        words = [command, f"--target-dir={self.path(name)}", *map(str, options)]
        words += [] if command == "verify" else [f"--mariadb-backup={self.program}"]
        made = cli._parser().parse_args(words)
        made.passed_on, made.connection, made.descriptors = [], ["--no-defaults"], ()
        return made

    def run(self, command, name, *options):
        arguments = self.parsed(command, name, *options)
        arguments.function(arguments)

    def prepared(self, name, **more):
        self.make(name, **more)
        self.run("prepare", name)

    def increment(self, name, base, value):
        """One upon `base`, and the words that apply it."""
        self.make(name, value, kind="incremental", base={"id": base, "directory": base})
        return "prepare", "full", f"--incremental-dir={self.path(name)}"

    def restored_value(self):
        return (self.path("datadir") / HOME_NAME / SEGMENT).read_bytes()

    def restore(self, name, *options):
        Restore(self.parsed("restore", name, f"--datadir={self.path('datadir')}", *options)).run()


@pytest.fixture
def backups(tmp_path):
    return Backups(tmp_path)


def test_a_write_that_takes_only_a_part_is_gone_on_with(tmp_path, monkeypatch):
    """As a disk takes it that is nearly full, and on which another file goes a moment later."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(3 * files.CHUNK_SIZE_BYTES + 77))
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: whole(descriptor, data[: len(data) // 2 + 1], at))
    size_bytes, digest, _ = files.copy(source, target, clone=False)
    assert target.read_bytes() == source.read_bytes()
    assert size_bytes == source.stat().st_size and digest == files.checksum(target)


def test_what_a_broken_off_restore_left_on_a_data_path_is_named(backups):
    backups.prepared("full", paths=[1])
    left = backups.path("drive") / "quarry.restoring" / "0000000000000001" / "00000009.qseg"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of another backup")
    place = f"--quarry-data-paths={backups.path('drive')}"
    with pytest.raises(BackupError, match="holds a 'quarry.restoring'.*remove it"):
        backups.restore("full", place)
    assert not backups.path("datadir").exists(), "it began nevertheless"
    left.unlink()
    left.parent.rmdir()
    left.parent.parent.rmdir()
    backups.restore("full", place)
    assert (backups.path("drive") / "quarry" / ON_DATA_PATH).read_bytes() == b"a value" * 1000
    assert (backups.path("datadir") / HOME_NAME / SEGMENT).read_bytes() == b"a value"


def test_a_file_that_cannot_be_written_is_named(backups):
    """And not only the one it is a copy of, in which nothing is wrong."""
    backups.prepared("full")
    restore = Restore(backups.parsed("restore", "full", f"--datadir={backups.path('datadir')}"))
    in_the_way = backups.path("datadir") / f"{HOME_NAME}.restoring" / SEGMENT
    copied = restore.copy_segments

    def copy_segments():
        in_the_way.parent.mkdir(parents=True)
        in_the_way.touch()
        copied()

    restore.copy_segments = copy_segments
    with pytest.raises(BackupError, match=f"{in_the_way}: File exists"):
        restore.run()


def test_what_mariadb_backup_copied_is_durable_before_it_is_called_restored(backups, monkeypatch):
    """It syncs nothing itself."""
    synced, whole = set(), os.fsync

    def fsync(descriptor):
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    server = backups.path("full") / "server"
    backups.make("full")
    backups.run("prepare", "full")
    assert {str(server / name) for name in (".", "d", "ibdata1", "d/t.ibd")} <= synced, "prepared"
    backups.restore("full")
    datadir = backups.path("datadir")
    assert {str(datadir / name) for name in (".", "d", "ibdata1", "d/t.ibd")} <= synced, "restored"


def test_a_directory_is_not_synced_for_each_store_in_it(backups, monkeypatch):
    """A server with 100,000 tables has as many: GC waits meanwhile, or the server that is to be restored."""
    synced, whole = [], os.fsync
    contents = backups.make("full")
    segments = {f"home/stores/{store:016x}/00000001.qseg": b"a value" for store in range(2, 12)}
    contents["quarry_files"] += backups.write("full/quarry", segments)
    catalog.save(str(backups.path("full") / catalog.CATALOG), contents)
    backups.run("prepare", "full")

    def fsync(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    backups.restore("full")
    stores = f"{backups.path('datadir')}/{HOME_NAME}.restoring/stores"
    assert synced.count(stores) == 1 and all(synced.count(f"{stores}/{name.split('/')[2]}") == 1 for name in segments), synced


def test_room_is_asked_for_where_it_is_needed(backups, monkeypatch):
    """Segments of data paths need none on the data directory's file system, and some on their own."""
    free = {str(backups.path("datadir")): 1 << 20, str(backups.path("drive")): 1 << 20}
    monkeypatch.setattr(files, "device_of", lambda path: path, raising=False)
    monkeypatch.setattr(files, "free_bytes", lambda path: free[path])
    backups.prepared("full", paths=[1], value=b"x" * 3000)
    backups.path("drive").mkdir()
    place = f"--quarry-data-paths={backups.path('drive')}"
    with pytest.raises(BackupError, match=f"{backups.path('drive')} has 1.0 MiB free"):
        backups.restore("full", place)
    assert not backups.path("datadir").exists()
    free[str(backups.path("drive"))] = 1 << 30
    backups.restore("full", place)


def test_a_full_disk_while_an_increment_is_taken_in_spares_the_backup(backups, monkeypatch):
    """Its segments are copied where it lies on another file system: before anything of the backup is changed."""
    backups.prepared("full")
    backups.make("one", b"a later value", kind="incremental", base={"id": "full", "directory": "full"})

    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a segment")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(files, "link_or_copy", no_room)
        with pytest.raises(OSError):
            backups.run("prepare", "full", f"--incremental-dir={backups.path('one')}")
    assert not backups.path("full/quarry.new").exists(), "what was copied still takes the room"
    backups.run("verify", "full")
    backups.run("prepare", "full", f"--incremental-dir={backups.path('one')}")
    backups.restore("full")
    assert (backups.path("datadir") / HOME_NAME / SEGMENT).read_bytes() == b"a later value"


def test_an_increment_that_mariadb_backup_refuses_spares_the_backup(backups):
    """As for an option that it does not know: what it has not touched is a backup still."""
    backups.prepared("full")
    apply = backups.increment("one", "full", b"a later value")
    backups.program.write_text("#!/bin/sh\necho unknown option\nexit 7\n")
    with pytest.raises(BackupError, match="(?s)unknown option.*is as it was before"):
        backups.run(*apply)
    assert not backups.path("full/quarry.new").exists(), "what was copied still takes the room"
    backups.run("verify", "full")
    backups.program.write_text(COPY_BACK)
    backups.run(*apply)
    backups.restore("full")
    assert backups.restored_value() == b"a later value"


CHANGE_AND_FAIL = """#!/bin/sh
for word; do case $word in --target-dir=*) printf x >>"${word#*=}/ibdata1" ;; esac; done
exit 7
"""


def test_an_increment_that_is_half_applied_spoils_the_backup(backups):
    backups.prepared("full")
    apply = backups.increment("one", "full", b"a later value")
    backups.program.write_text(CHANGE_AND_FAIL)
    with pytest.raises(BackupError, match="ended with 7"):
        backups.run(*apply)
    backups.program.write_text(COPY_BACK)
    for refused in (lambda: backups.run(*apply), lambda: backups.restore("full")):
        with pytest.raises(BackupError, match="was broken off"):
            refused()


def test_an_increment_is_not_begun_where_its_rows_have_no_room(backups, monkeypatch):
    """mariadb-backup writes into the backup's own files: where the disk fills up then, they are of no moment any more."""
    backups.prepared("full")
    apply = backups.increment("one", "full", b"a later value")
    monkeypatch.setattr(files, "free_bytes", lambda path: 0)
    with pytest.raises(BackupError, match="applying the incremental backup needs.*make room"):
        backups.run(*apply)
    backups.run("verify", "full")
    backups.run(*apply, "--skip-space-check")
    backups.restore("full", "--skip-space-check")
    assert backups.restored_value() == b"a later value"


@pytest.mark.parametrize("name", ["full", "one"])
@pytest.mark.parametrize("lacks", ["server/d/t.ibd", f"quarry/home/{SEGMENT}"])
def test_a_copy_of_a_backup_that_broke_off_is_not_prepared(backups, name, lacks):
    """backup.json is copied first: it says what should be there, and mariadb-backup prepares what there is."""
    backups.make("full")
    words = backups.increment("one", "full", b"a later value")
    if name == "one":
        backups.run("prepare", "full")
    else:
        words = words[:2]
    missing = backups.path(name) / lacks
    whole = missing.read_bytes()
    missing.write_bytes(whole[:2])
    with pytest.raises(BackupError, match=f"{missing} has 2 bytes.*is not whole"):
        backups.run(*words)
    missing.unlink()
    with pytest.raises(BackupError, match=f"{missing} is not there.*is not whole"):
        backups.run(*words)
    missing.write_bytes(whole)
    backups.run(*words)


@pytest.mark.parametrize("end", catalog.DDL_FILES)
def test_an_increment_with_ddl_in_it_can_be_applied_to_another_copy(backups, end):
    """mariadb-backup deletes or renames such files in the increment, and others by them, before it changes the backup."""
    backups.prepared("full")
    words = backups.increment("one", "full", b"a later value")
    path = str(backups.path("one") / catalog.CATALOG)
    contents = catalog.load(path)
    contents["server_files"] += backups.write("one/server", {f"d/t{end}": b"of DDL"})
    catalog.save(path, contents)
    (backups.path("one") / "server" / "d" / "t.ibd").unlink()
    with pytest.raises(BackupError, match="t.ibd is not there.*is not whole"):
        backups.run(*words)
    (backups.path("one") / "server" / f"d/t{end}").unlink()
    backups.run(*words)
    backups.restore("full")
    assert backups.restored_value() == b"a later value"


def test_old_segments_that_cannot_be_removed_are_named_and_spare_the_backup(backups, monkeypatch, capsys):
    """The increment is applied by then, and the next one removes what is left."""
    backups.prepared("full")
    remove = files.remove_tree

    def busy(path):
        if path.endswith(".old") and os.path.exists(path):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        remove(path)

    with monkeypatch.context() as one_that_reads_them:
        one_that_reads_them.setattr(files, "remove_tree", busy)
        backups.run(*backups.increment("one", "full", b"a later value"))
    assert "full/quarry.old is not needed any more: remove it" in capsys.readouterr().out
    backups.run(*backups.increment("two", "one", b"the last value"))
    backups.restore("full")
    assert backups.restored_value() == b"the last value" and not backups.path("full/quarry.old").exists()


def test_a_terminal_that_goes_away_does_not_break_off_an_increment(backups):
    """Both programs get the signal, as those of a terminal do."""
    backups.prepared("full")
    backups.program.write_text("#!/bin/sh\nkill -HUP $PPID $$\n")
    words = [*backups.increment("one", "full", b"a later value"), f"--mariadb-backup={backups.program}"]
    words[1] = f"--target-dir={backups.path('full')}"
    command = ["env", "--default-signal=HUP", sys.executable, TOOL, *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    backups.program.write_text(COPY_BACK)
    backups.restore("full")
    assert backups.restored_value() == b"a later value"


def test_a_restore_where_the_backups_disk_is_full_or_read_only(backups, monkeypatch):
    """What mariadb-backup says goes elsewhere. Here its file is none that can be written."""
    backups.prepared("full")
    log = backups.path("full") / catalog.LOG
    log.unlink()
    log.mkdir()
    backups.path("temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(backups.path("temporary")))
    backups.restore("full")
    assert backups.restored_value() == b"a value"
    (elsewhere,) = backups.path("temporary").iterdir()
    assert "--copy-back" in elsewhere.read_text()


@pytest.mark.parametrize("place", ["datadir", "drive"])
def test_two_restores_of_two_backups_do_not_mix(backups, place):
    """Each looks whether a place is empty before its mariadb-backup begins: the one that comes second copies nothing."""
    backups.prepared("full", paths=[1])
    for name in ("datadir", "drive"):
        backups.path(name).mkdir()
    with catalog.alone(str(backups.path(place))), pytest.raises(BackupError, match=f"another quarry-backup.*{backups.path(place)}"):
        backups.restore("full", f"--quarry-data-paths={backups.path('drive')}")
    assert list(backups.path("datadir").iterdir()) == list(backups.path("drive").iterdir()) == []
    backups.restore("full", f"--quarry-data-paths={backups.path('drive')}")
    assert backups.restored_value() == b"a value"


def test_the_servers_account_can_pass_through_what_restore_makes_above_the_data(backups):
    backups.prepared("full")
    datadir = backups.path("srv") / "shop" / "data"
    before = os.umask(0o077)  # as cli.main sets it
    try:
        backups.restore("full", f"--datadir={datadir}")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (backups.path("srv"), datadir.parent, datadir)]
    assert modes == [0o755, 0o755, 0o700]


@pytest.mark.parametrize("step, what_to_do", [("full", "Run prepare once more"), ("one", "Take the full backup from where")])
def test_verify_does_not_call_good_what_restore_refuses(backups, step, what_to_do):
    contents = backups.make("full")
    backups.run("verify", "full")
    kept = {key: contents[key] for key in ("format", "quarry_files", "data_paths")}
    state = {**kept, "state": "applying", "applied": [], "step": step}
    catalog.save(str(backups.path("full") / catalog.PREPARED), state)
    for refused in (lambda: backups.run("verify", "full"), lambda: backups.restore("full")):
        with pytest.raises(BackupError, match=f"broken off.*{what_to_do}"):
            refused()


INFO = "uuid = 1\ntool_command = --backup\npartial = {}\nincremental = N\nformat = {}\ncompressed = {}\n"


@pytest.mark.parametrize("name", ["xtrabackup_info", "mariadb_backup_info"])
@pytest.mark.parametrize(
    "noted, wrong",
    [
        (("N", "file", "N"), None),
        (("Y", "file", "N"), "partial = Y"),
        (("N", "xbstream", "N"), "format = xbstream"),
        (("N", "file", "compressed"), "compressed = compressed"),
    ],
)
def test_what_mariadb_backup_left_out_by_an_option_file_is_no_backup(backups, name, noted, wrong):
    """Sections [mariadb-backup], [mariabackup] and [xtrabackup] count, whatever the command line says."""
    backups.write("full/server", {name: INFO.format(*noted).encode()})
    if wrong is None:
        catalog.require_whole(str(backups.path("full")))
        return
    with pytest.raises(BackupError, match=wrong):
        catalog.require_whole(str(backups.path("full")))


def test_an_increment_that_an_option_file_made_of_a_full_backup(backups):
    """And the other way round: incremental-lsn and incremental-basedir may stand there, too."""
    backups.write("full/server", {"xtrabackup_info": INFO.format("N", "file", "N").encode()})
    with pytest.raises(BackupError, match="incremental = N; wanted: incremental = Y"):
        catalog.require_whole(str(backups.path("full")), is_incremental=True)


def test_a_backup_that_notes_nothing_of_itself_is_none(backups):
    backups.path("full").mkdir()
    with pytest.raises(BackupError, match="partial is not noted"):
        catalog.require_whole(str(backups.path("full")))


@pytest.mark.parametrize("option", ["--databases-e=d", "--databases_exclude=d", "--loose-tables=x", "--no-loc", "--datad=/elsewhere"])
def test_options_that_mariadb_backup_would_take_for_refused_ones(option):
    """It takes a beginning of a name for the name, and knows prefixes as loose-."""
    with pytest.raises(BackupError, match=f"'{option}' cannot be passed on"):
        check_passed_on([option])


def test_options_that_are_passed_on():
    check_passed_on(["--ftwrl-wait-timeout=10", "--compress-threads=2", "--slave-info", "--loose-throttle=5", "--tmpdir=/tmp"])


@pytest.mark.parametrize("end", [BackupError, KeyboardInterrupt])
def test_an_error_ends_what_other_threads_copy(end):
    """A segment of 16 GiB that one of them is at is not waited for, and neither is one that is not begun."""
    begun, seen = threading.Event(), []
    progress = Progress("segments", 0)

    def copy(number):
        seen.append(number)
        if number == 1:
            begun.wait()
            raise end("no room")
        begun.set()
        for _ in range(1000):
            progress(1)
            time.sleep(0.01)
        seen.append("its end")

    with pytest.raises(end, match="no room"):
        in_parallel(copy, range(9), 2, progress)
    assert "its end" not in seen and 8 not in seen, seen


@pytest.mark.parametrize("name", ["quarry/PATH", "missing/quarry/PATH"])
def test_what_is_not_there_is_named_with_its_whole_path(tmp_path, name):
    (tmp_path / "quarry").mkdir()
    for look in (lambda: trusted.open_file(str(tmp_path / name), os.geteuid()), lambda: trusted.owner_of(str(tmp_path / name))):
        with pytest.raises(FileNotFoundError) as failure:
            look()
        assert failure.value.filename == str(tmp_path / name)


def test_a_path_that_is_no_utf8_is_no_obstacle(tmp_path):
    option = os.fsdecode(b"--target-dir=/backup/caf\xe9")
    run_mariadb_backup("/bin/true", [option], str(tmp_path / "log"))
    assert b"/backup/caf\xe9" in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize("number", ["x", "0", "257"])
def test_a_wrong_number_of_threads_is_named_with_what_is_allowed(backups, capsys, number):
    with pytest.raises(SystemExit):
        backups.parsed("verify", "full", f"--parallel={number}")
    assert f"'{number}' (allowed: 1 to 256)" in capsys.readouterr().err


def test_what_goes_while_it_is_counted_counts_nothing(tmp_path, monkeypatch):
    """As a temporary table's file, between two looks at it."""
    (tmp_path / "there").write_bytes(b"x" * 5000)
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    counted = files.allocated_bytes(str(tmp_path / name) for name in ("gone", "there"))
    assert counted == files.allocated_bytes([str(tmp_path / "there")]) > 0


def test_where_links_cannot_be_made_the_source_is_copied_and_not_the_base(backups, monkeypatch):
    """An increment on another device than its base: nobody would look at the base's bytes, which may be damaged."""
    source = backups.path("1.qseg")
    source.write_bytes(b"a value")
    contents = backups.make("full", boot=files.boot_id())
    (entry,) = [entry for entry in contents["quarry_files"] if entry["name"].endswith(".qseg")]
    entry["identity"] = files.identity(source.stat())
    catalog.save(str(backups.path("full") / catalog.CATALOG), contents)
    (backups.path("full") / "quarry" / entry["name"]).write_bytes(b"damaged")

    def no_link(*_, **__):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", no_link)
    arguments = backups.parsed("backup", "one", f"--incremental-basedir={backups.path('full')}", "--mariadb=/bin/true")
    backup = Backup(arguments)
    backup.owner = os.geteuid()
    target = backups.path("one") / "quarry" / entry["name"]
    target.parent.mkdir(parents=True)
    taken = backup.take_segment(str(source), entry["name"], Progress("segments", 0))
    assert target.read_bytes() == b"a value" and taken["sha256"] == entry["sha256"] and not taken["linked"]


@pytest.mark.parametrize("name", catalog.INFO_FILES)
def test_a_base_from_before_a_restore_is_refused_however_far_the_log_is_by_now(backups, name):
    """What the restored server wrote until its log was as far as the base's would be in no increment."""
    backups.make("full", started=1000.0, last_lsn="100")
    backup = Backup(backups.parsed("backup", "one", f"--incremental-basedir={backups.path('full')}", "--mariadb=/bin/true"))
    session = SimpleNamespace(status=lambda _: "999", variable=lambda _: str(backups.path("datadir")))
    backup.check_base(session)
    info = backups.path("datadir") / name
    info.parent.mkdir()
    info.touch()
    with pytest.raises(BackupError, match=f"restored since .{info} is younger.*Take a full backup"):
        backup.check_base(session)
    os.utime(info, (500, 500))
    backup.check_base(session)


@pytest.mark.parametrize("named, lies", [("stores", "trash"), ("trash", "stores")])
def test_a_segment_whose_store_has_moved_is_found_whatever_is_above_the_home(backups, named, lies):
    """A data directory may lie below a directory that is called as the home's own are."""
    home = backups.path("stores") / "trash" / "stores" / HOME_NAME
    segment = home / lies / "0000000000000001" / "00000001.qseg"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"a value")
    backup = Backup(backups.parsed("backup", "full", "--mariadb=/bin/true"))
    backup.owner = os.geteuid()
    with open(backup.open_segment(str(home / named / "0000000000000001" / "00000001.qseg")), "rb") as stream:
        assert stream.read() == b"a value"
    missing = str(backups.path("stores") / "drive" / "quarry" / "0000000000000001" / "00000001.qseg")
    with pytest.raises(FileNotFoundError) as failure:
        backup.open_segment(missing)
    assert failure.value.filename == missing


@pytest.mark.parametrize("has_started", [False, True])
def test_a_segment_is_read_again_once_the_machine_has_started_again(backups, has_started):
    """fdatasync makes a write durable without its time: after a power cut the file may look as it did when the base was taken."""
    source = backups.path("1.qseg")
    source.write_bytes(b"A VALUE")
    contents = backups.make("full", boot="another start" if has_started else files.boot_id())
    (entry,) = [entry for entry in contents["quarry_files"] if entry["name"].endswith(".qseg")]
    entry["identity"] = files.identity(source.stat())
    catalog.save(str(backups.path("full") / catalog.CATALOG), contents)
    backup = Backup(backups.parsed("backup", "one", f"--incremental-basedir={backups.path('full')}", "--mariadb=/bin/true"))
    backup.owner = os.geteuid()
    target = backups.path("one") / "quarry" / entry["name"]
    target.parent.mkdir(parents=True)
    taken = backup.take_segment(str(source), entry["name"], Progress("segments", 0))
    assert target.read_bytes() == (b"A VALUE" if has_started else b"a value")
    assert taken["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest() and taken["linked"] != has_started


CLIENT = """#!/bin/sh
echo "$@" >>{said}
while read -r line; do
  echo "$line" >>{said}
  case $line in
    "SELECT 'quarry-backup-end"*) end=${{line#*\\'}}; echo "${{end%%\\'*}}" ;;
    "SELECT COUNT"*) echo 5 ;;
    "SELECT KIND"*) printf 'snapshots\\t1\\tNULL\\tNULL\\tNULL\\nhome\\t/home\\t/home\\tNULL\\tNULL\\nfile\\tCATALOGUE-1\\tNULL\\tNULL\\t00\\n' ;;
  esac
done
"""


def test_rows_that_the_server_kept_back_are_missed(tmp_path):
    """A limit on SELECTs cuts the list of segments short, without a word: here to three rows of five."""
    client, said = tmp_path / "mariadb", tmp_path / "said"
    client.write_text(CLIENT.format(said=said))
    client.chmod(0o755)
    session = Session(str(client), ["--no-defaults"])
    try:
        with pytest.raises(BackupError, match="3 of 5 rows"):
            session.snapshot()
    finally:
        session.close()
    assert "sql_select_limit = 18446744073709551615" in said.read_text()
    # A server that was taken over asks a client that allows it for any file of the machine.
    assert "--skip-local-infile" in said.read_text()


def refuse(number):
    """As a system call of a disk that is full, or breaks: its error names no file."""

    def refused(*_):
        raise OSError(number, os.strerror(number))

    return refused


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_small_file_that_cannot_be_written_is_named(tmp_path, monkeypatch, call):
    monkeypatch.setattr(os, call, refuse(errno.ENOSPC))
    with pytest.raises(OSError) as failure:
        files.write_durably(str(tmp_path / "backup.json"), b"{}")
    assert failure.value.filename == str(tmp_path / "backup.json")


@pytest.mark.parametrize("call, named", [("pwrite", "target"), ("ftruncate", "target"), ("fsync", "target"), ("pread", "source")])
def test_of_a_copy_that_fails_the_file_is_named_that_failed(tmp_path, monkeypatch, call, named):
    (tmp_path / "source").write_bytes(b"x" * 5000)
    monkeypatch.setattr(os, call, refuse(errno.EIO))
    with pytest.raises(OSError) as failure:
        files.copy(str(tmp_path / "source"), str(tmp_path / "target"), clone=False)
    assert failure.value.filename == str(tmp_path / named)


def test_a_full_disk_is_not_said_of_the_servers_segment(backups, monkeypatch):
    (backups.path("1.qseg")).write_bytes(b"a value")
    backup = Backup(backups.parsed("backup", "full", "--mariadb=/bin/true"))
    backup.owner = os.geteuid()
    backups.path("full/quarry").mkdir(parents=True)
    monkeypatch.setattr(os, "pwrite", refuse(errno.ENOSPC))
    monkeypatch.setattr(files, "_clone", lambda *_: False)
    with pytest.raises(BackupError, match=f"{backups.path('full/quarry/1.qseg')}: No space left on device. The backup is not complete"):
        backup.take_segment(str(backups.path("1.qseg")), "1.qseg", Progress("segments", 0))


@pytest.mark.parametrize("kind", ["file", "segment"])
@pytest.mark.parametrize("name", ["../../../escaped", "stores/../../../../escaped", "{tmp_path}/escaped", "", "."])
def test_a_name_of_the_servers_that_leads_out_of_the_backup(backups, tmp_path, kind, name):
    """quarry-backup runs as root: a server that was taken over would have it write files of any name, anywhere."""
    (tmp_path / "own").write_bytes(b"the server's own file")
    backup = Backup(backups.parsed("backup", "full", "--mariadb=/bin/true"))
    backup.owner = os.geteuid()
    snapshot = {"file": [("CATALOGUE-1", None, None, "00")], "segment": [], "data path": []}
    snapshot[kind].append((name.format(tmp_path=tmp_path), str(tmp_path / "own"), 0, "00"))
    with pytest.raises(BackupError, match="leads out of the backup"):
        backup.copy_quarry(snapshot, None)
    assert not (tmp_path / "escaped").exists() and not backups.path("full").exists()


def test_the_end_of_input_at_the_password_is_said(monkeypatch):
    """Ctrl-D."""

    def end_of_input(*_):
        raise EOFError

    monkeypatch.setattr(credentials.os, "open", lambda *_: os.dup(0))
    monkeypatch.setattr(credentials.getpass, "getpass", end_of_input)
    with pytest.raises(BackupError, match="no password was given"):
        credentials.ask()


def test_a_file_that_becomes_shorter_while_it_is_copied(tmp_path):
    """Also where its end was behind a hole: what is gone is not made up for by zeros."""
    source, mib = tmp_path / "source", 1 << 20
    with open(source, "wb") as stream:
        stream.write(b"x" * mib)
        stream.seek(2 * mib)
        stream.write(b"y" * mib)
    with pytest.raises(BackupError, match="became shorter"):
        files.copy(source, tmp_path / "target", lambda _: os.truncate(source, mib), clone=False)


def test_two_servers_whose_backups_go_to_one_place(backups, monkeypatch):
    """The second one counts its files for long. When it begins, the first one's backup is there: it stays what it is."""
    session = SimpleNamespace(**{name: lambda *_: None for name in ("require_engine", "take_lock", "check_lock", "close")})
    monkeypatch.setattr(quarry_backup.backup, "Session", lambda *_: session)
    second = Backup(backups.parsed("backup", "full", "--mariadb=/bin/true"))
    second.check_space = lambda _: backups.make("full")
    with pytest.raises(BackupError, match="is there already and not empty"):
        second.run()
    assert catalog.open_backup(str(backups.path("full")))["id"] == "full"


def test_a_backup_that_is_prepared_while_a_restore_begins_is_not_called_damaged(backups):
    backups.prepared("full")
    backups.make("one", b"a later value", kind="incremental", base={"id": "full", "directory": "full"})
    restore = Restore(backups.parsed("restore", "full", f"--datadir={backups.path('datadir')}"))
    backups.run("prepare", "full", f"--incremental-dir={backups.path('one')}")
    with pytest.raises(BackupError, match="was prepared meanwhile"):
        restore.run()
    assert not backups.path("datadir").exists()
