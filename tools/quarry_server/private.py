"""What keeps the other accounts of this machine out of a private server: its directory, who may log in, where secrets stand.

A server's directory has mode 0700, and everything of it is in there: the socket, the data, the logs, files that SQL writes.
Root's account of SQL is that of whoever runs this (unix_socket), so no password is needed and none can be guessed. Clients
that know TCP alone get an account with a random password; it travels in the environment or in a file of mode 0600, which
other accounts cannot read, and never in a command line, which they can. Standard library only.
"""

import os
import pwd
import secrets
import socket
import subprocess
import zlib
from pathlib import Path

# Neither Debian nor systemd gives these to anybody.
UNUSED_IDS = range(60578, 61184)


class NoName(Exception):
    """Whoever runs this has a number and no name, so that unix_socket cannot know it."""


def account():
    """The name of whoever runs this, here and in SQL: a private server lets in nobody else."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise NoName(
            f"the user id {os.geteuid()} has no name on this machine (getent passwd {os.geteuid()}); "
            "private servers let their owner in by name (unix_socket), so give it one"
        ) from error


def closing_statements():
    """For --init-file: a data directory that an earlier build made lets in its owner alone from now on. One statement a line."""
    owner, host = f"`{account()}`@localhost", socket.gethostname().lower()
    everywhere = ["root@'127.0.0.1'", "root@'::1'", *([f"root@'{host}'"] if host != "localhost" else [])]
    return [
        "SET sql_log_bin = 0;",
        f"CREATE USER IF NOT EXISTS {owner} IDENTIFIED VIA unix_socket;",
        f"GRANT ALL PRIVILEGES ON *.* TO {owner} WITH GRANT OPTION;",
        "ALTER USER IF EXISTS root@localhost IDENTIFIED VIA unix_socket;",
        f"DROP USER IF EXISTS {', '.join(everywhere)};",
    ]


def unprivileged_id(directory):
    """The user id under which root's server in `directory` runs: no account's, and another one for each directory."""
    used = {entry.pw_uid for entry in pwd.getpwall()}
    free = [number for number in UNUSED_IDS if number not in used]
    return free[zlib.crc32(os.fsencode(directory)) % len(free)]


def become(number):
    """The command that runs another one as this user id, with no right of root's."""
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--no-new-privs"]


def unreachable(number, paths):
    """The first of these paths that this user id can't read, or None."""
    for path in paths:
        done = subprocess.run([*become(number), "test", "-r", path], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            return path
    return None


def new_secret():
    return secrets.token_hex(16)


def is_foreign(path, *marks):
    """Whether files lie in it, and none of those that one of ours has: a wrong name, that would be closed to its users and given away.
    A new drive has lost+found."""
    path = Path(path)
    has_files = path.is_dir() and any(entry.name != "lost+found" for entry in path.iterdir())
    return has_files and not any((path / name).is_file() for name in marks)


def make_directory(path):
    """Makes it, and what is above it; nobody else can enter it, whoever made it before. Returns it."""
    path = Path(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_secret(path, text):
    """A file that only its owner can read, at every moment. Returns its path."""
    path = Path(path)
    path.unlink(missing_ok=True)
    with open(path, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(text)
    return path
