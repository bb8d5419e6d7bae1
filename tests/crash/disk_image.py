"""The disk as it may be after a power cut: rebuilt from a copy of the directory and the log of all calls (io_layer).

What a call changed is durable when an fsync or fdatasync of the same file began after the call had ended, and had itself
ended before the cut (or the file was opened with O_DSYNC). O_DIRECT makes nothing durable: devices have caches. Of
everything else any part may be there, as a Policy says; it need not be the older part.

Names (create, rename, unlink ...): in the home a change of a name is durable when its directory was flushed after it, and
otherwise may be lost by itself. Elsewhere, where the server does not flush directories, they are taken as a journalling
file system takes them: in their order, and with a file's own flush those before it.

Invariant, checked by whoever uses it: without a cut, with everything kept, the image equals the real directory.
"""

import collections
import pathlib
import shutil
from typing import NamedTuple

from quarry_server.run import run_or_raise
from quarry_server.server import HOME_NAME

SECTOR_BYTES, BLOCK_BYTES = 512, 4096
NAME_CALLS = ("create", "rename", "unlink", "mkdir", "rmdir")
FLUSHES = ("fsync", "fdatasync")
# Made anew by every start.
IGNORED = ("ibtmp1",)


class Policy(NamedTuple):
    """What survives of what was not flushed. `unit_bytes`: of a write, pieces of this size each by itself (0: the whole
    call); `chance` of each piece; `in_order`: nothing behind the first call that is lost."""

    name: str
    unit_bytes: int
    chance: float
    in_order: bool = False


EVERYTHING = Policy("everything", 0, 1)
POLICIES = (
    Policy("nothing", 0, 0),
    Policy("some calls", 0, 0.5),
    Policy("calls in order", 0, 0.9, in_order=True),
    Policy("some blocks", BLOCK_BYTES, 0.5),
    Policy("some sectors", SECTOR_BYTES, 0.5),
    Policy("most sectors", SECTOR_BYTES, 0.95),
    Policy("few sectors", SECTOR_BYTES, 0.05),
)


def contents(directory):
    """{path below the directory: inode number} of its files; of directories: None."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if name not in IGNORED and not path.is_socket():
            found[name] = None if path.is_dir() else path.stat().st_ino
    return found


class Disk:
    """`base`: a copy of the directory as it was when the log began, everything in it durable; `inodes`: contents() of the
    directory itself at that time. `planted(record)`: a flush for which it is true is taken as not made."""

    def __init__(self, base, inodes, records, planted=lambda record: False):
        self.base, self.inodes = pathlib.Path(base), dict(inodes)
        records = tell_apart(records)
        self.records = [record for record in records if record.path.split("/")[0] not in IGNORED]
        self.planted = planted
        self.dropped = collections.Counter()  # bytes and names that the last build() left out

    def build(self, target, cut=None, policy=EVERYTHING, random=None):
        """Makes `target` the directory as a power cut at `cut` (of the layer's sequence; None: after the last call) may
        leave it."""
        self.random, self.policy = random, policy
        self.dropped = collections.Counter()
        records = [record for record in self.records if cut is None or record.begin <= cut]
        ended = [record for record in records if cut is None or record.end <= cut]
        flushes = [record for record in ended if record.call in FLUSHES and not self.planted(record)]
        names = self.names(records, flushes)
        target = pathlib.Path(target)
        if target.exists():
            shutil.rmtree(target)
        run_or_raise(["cp", "-a", "--sparse=always", self.base, target])
        self.place(target, names)
        flushed_until = {}
        for flush in flushes:
            flushed_until[flush.inode] = max(flushed_until.get(flush.inode, 0), flush.begin)
        changes = collections.defaultdict(list)
        for record in records:
            if record.call not in FLUSHES and record.call not in NAME_CALLS:
                durable = record.is_durable and (cut is None or record.end <= cut)
                durable = durable or record.end < flushed_until.get(record.inode, 0)
                changes[record.inode].append((record, durable))
        for name, inode in names.items():
            if inode is not None and inode in changes:
                self.apply(target / name, changes[inode])

    # --- names ------------------------------------------------------------------------------------
    def names(self, records, flushes):
        """{path: inode} on the disk."""
        changes = [record for record in records if record.call in NAME_CALLS]
        kept = self.kept_in_journal([one for one in changes if not in_quarry(one)], flushes)
        kept |= self.kept_by_directory([one for one in changes if in_quarry(one)], flushes)
        names = dict(self.inodes)
        for record in changes:
            if record.begin in kept:
                change_name(names, record)
        return names

    def kept_in_journal(self, changes, flushes):
        """A flush of the file or of its directory takes along every change of a name before it."""
        until = 0
        for one in changes:
            directories = {parent(one.path), parent(one.second_path or one.path)}
            for flush in flushes:
                if flush.begin > one.end and (flush.inode == one.inode or flush.path in directories):
                    until = max(until, one.end)
        kept, is_whole = set(), True
        for one in changes:
            is_whole = is_whole and (one.end <= until or self.survives())
            if is_whole:
                kept.add(one.begin)
            else:
                self.dropped["names"] += 1
        return kept

    def kept_by_directory(self, changes, flushes):
        kept = set()
        for one in changes:
            directories = {parent(one.path), parent(one.second_path or one.path)}
            durable = any(flush.begin > one.end and flush.path in directories for flush in flushes)
            if durable or self.survives():
                kept.add(one.begin)
            else:
                self.dropped["names of the home"] += 1
        return kept

    def survives(self):
        chance = self.policy.chance
        return chance >= 1 or chance > 0 and self.random.random() < chance

    def place(self, target, names):
        """Gives the files of the copied base their names, and makes those that are new."""
        aside = target / "aside"
        aside.mkdir()
        for name, inode in self.inodes.items():
            if inode is not None and names.get(name) != inode:
                (target / name).rename(aside / str(inode))
        for name, inode in names.items():
            if inode is None:
                (target / name).mkdir(parents=True, exist_ok=True)
        for name, inode in names.items():
            if inode is not None and self.inodes.get(name) != inode:
                old = aside / str(inode)
                if old.exists():
                    old.rename(target / name)
                else:
                    (target / name).touch()
        for name in sorted(self.inodes, reverse=True):
            if self.inodes[name] is None and name not in names:
                shutil.rmtree(target / name)
        shutil.rmtree(aside)

    # --- contents ---------------------------------------------------------------------------------
    def apply(self, path, changes):
        with path.open("r+b") as stream:
            losing = False
            for record, durable in changes:
                if durable:
                    change(stream, record)
                    continue
                if losing:
                    self.dropped["bytes"] += record.length
                    continue
                if record.call == "write" and self.policy.unit_bytes:
                    self.apply_pieces(stream, record)
                elif self.survives():
                    change(stream, record)
                else:
                    self.dropped["bytes"] += record.length
                    losing = self.policy.in_order

    def apply_pieces(self, stream, record):
        """Some sectors or blocks of a write, as they lie on the disk."""
        position, end = record.offset, record.offset + record.length
        while position < end:
            piece_end = min(end, (position // self.policy.unit_bytes + 1) * self.policy.unit_bytes)
            if self.survives():
                stream.seek(position)
                stream.write(record.data[position - record.offset : piece_end - record.offset])
            else:
                self.dropped["bytes"] += piece_end - position
            position = piece_end


def tell_apart(records):
    """The records, each file's with an inode of its own: a file system gives the inode of a removed file to a new one."""
    files = {}
    for count, record in enumerate(records):
        if record.call in ("create", "mkdir"):
            files[record.inode] = f"{record.inode}-{count}"
        yield record._replace(inode=files.get(record.inode, record.inode))


def change(stream, record):
    if record.call == "write":
        stream.seek(record.offset)
        stream.write(record.data)
    elif record.call == "truncate":
        stream.flush()
        stream.truncate(record.offset)
    else:
        stream.seek(0, 2)
        size = stream.tell()
        end = record.offset + record.length
        if record.call == "allocate" and end > size:
            stream.truncate(end)
        elif record.call == "punch":
            stream.seek(record.offset)
            stream.write(bytes(max(0, min(end, size) - record.offset)))


def change_name(names, record):
    """Carries out a change of a name, if what it needs is there."""
    path, directory = record.path, parent(record.second_path or record.path)
    if directory and directory not in names:
        return
    if record.call in ("create", "mkdir"):
        names[path] = record.inode if record.call == "create" else None
    elif record.call == "rename":
        moved = {name: inode for name, inode in names.items() if name == path or name.startswith(path + "/")}
        for name in moved:
            del names[name]
        for name, inode in moved.items():
            names[record.second_path + name[len(path) :]] = inode
    else:
        for name in [name for name in names if name == path or name.startswith(path + "/")]:
            del names[name]


def in_quarry(record):
    return record.path.startswith(HOME_NAME)


def parent(path):
    return path.rpartition("/")[0]


def difference(image, directory):
    """What distinguishes two directories, in words; None: nothing."""
    mine, theirs = contents(image), contents(directory)
    if mine.keys() != theirs.keys():
        return f"names: {sorted(mine.keys() - theirs.keys())[:5]} / {sorted(theirs.keys() - mine.keys())[:5]}"
    for name, inode in mine.items():
        if inode is not None:
            left, right = (image / name).read_bytes(), (directory / name).read_bytes()
            if left != right:
                place = next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
                return f"{name}: {len(left)} and {len(right)} bytes, the first different one at {place}"
    return None
