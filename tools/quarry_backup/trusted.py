"""Opening what the server names. The server is not trusted with it: quarry-backup runs as root, and copies what it opens
to where a restored server reads it. A server that was taken over must not get at files of other accounts that way.

So a path is walked name by name, and no link is followed that an account other than root, or our own, can have made; and
the file belongs to the account that the home belongs to.
"""

import os
import stat

from quarry_backup.files import BackupError, named

LINKS_MAX = 16


def _may_be_followed(link, directory):
    """A link of an administrator's, in a directory where nobody else can put one."""
    ours = (0, os.geteuid())
    return link.st_uid in ours and directory.st_uid in ours and not directory.st_mode & 0o022


class _Walk:
    """One way from the root of the file system; holds one descriptor."""

    def __init__(self, path):
        if not os.path.isabs(path):
            raise BackupError(f"the server names '{path}', which is no absolute path")
        self.path, self.left, self.links = path, [], 0
        self.directory = os.open("/", os.O_PATH | os.O_DIRECTORY)
        self._prepend(path)

    def __enter__(self):
        return self

    def __exit__(self, *_failure):
        os.close(self.directory)

    def _prepend(self, path):
        self.left[:0] = [name for name in path.split("/") if name not in ("", ".")]

    def last(self):
        """The last name, whose directory is self.directory; links in it are followed no further."""
        while len(self.left) > 1 or self._is_link():
            self._step(self.left.pop(0))
        return self.left[0] if self.left else "."

    def _is_link(self):
        if not self.left:
            return False
        return stat.S_ISLNK(os.stat(self.left[0], dir_fd=self.directory, follow_symlinks=False).st_mode)

    def _step(self, name):
        there = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self.directory)
        try:
            status = os.fstat(there)
            if stat.S_ISLNK(status.st_mode):
                self._follow(name, status, os.readlink("", dir_fd=there))
            elif stat.S_ISDIR(status.st_mode):
                there, self.directory = self.directory, there
            else:
                raise BackupError(f"{self.path}: '{name}' in it is no directory")
        finally:
            os.close(there)

    def _follow(self, name, link, target):
        self.links += 1
        if not _may_be_followed(link, os.fstat(self.directory)) or self.links > LINKS_MAX:
            raise BackupError(
                f"{self.path}: '{name}' in it is a symbolic link (to {target}) that the server's account may have made. "
                "quarry-backup follows only links that belong to root, in directories that belong to root and that only root "
                "may write into"
            )
        if os.path.isabs(target):
            root = os.open("/", os.O_PATH | os.O_DIRECTORY)
            os.close(self.directory)
            self.directory = root
        self._prepend(target)


def owner_of(directory):
    """User id of a directory that the server names: whose files its segments have to be."""
    with named(directory), _Walk(directory) as walk:
        descriptor = os.open(walk.last(), os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=walk.directory)
        try:
            return os.fstat(descriptor).st_uid
        finally:
            os.close(descriptor)


def open_file(path, owner):
    """A descriptor to read from. FileNotFoundError when nothing is there."""
    with named(path), _Walk(path) as walk:
        # Not blocked by a pipe; and of a device nothing is read.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
        descriptor = os.open(walk.last(), flags, dir_fd=walk.directory)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BackupError(f"{path} is no regular file")
        if status.st_uid != owner:
            raise BackupError(
                f"{path} belongs to user id {status.st_uid}, and the home to user id {owner}: a server's segments are files of "
                "one account. If it is a segment, chown it to that account"
            )
        return descriptor
    except BaseException:
        os.close(descriptor)
        raise
