"""How a password reaches mariadb and mariadb-backup: by an option file that exists in memory alone, never by a command line.

A command line can be read by every account of the machine, and Python cannot overwrite its own. So `--password=VALUE` is
refused: to start over without it would not undo that it was shown, nor take it out of the shell's history.
"""

import getpass
import os

from quarry_backup.files import BackupError

ASK = object()
REFUSED = (
    "a password on the command line can be read by every account of this machine, and is in the shell's history: change it, "
    "if others use this machine. Allowed: --defaults-file=FILE or --defaults-extra-file=FILE with the password in its section "
    "[client], the variable MYSQL_PWD, or --password (-p) without a value, which asks for it"
)
# Where the programs look when they are told nothing, in their order.
STANDARD_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf", "~/.my.cnf")


def refuse_password_in(words):
    """In what is passed on: MariaDB's programs take a beginning of an option's name for the option."""
    for word in words:
        name = word.partition("=")[0].lstrip("-").replace("_", "-")
        if (word.startswith("--") and len(name) > 2 and "password".startswith(name)) or (word[:2] == "-p" and word[:3] != "-p="):
            raise BackupError(REFUSED)


def ask():
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError as failure:
        raise BackupError(
            "there is no terminal to ask for the password on: give it by --defaults-file=FILE or the variable MYSQL_PWD"
        ) from failure
    try:
        return getpass.getpass("Password of the server's user: ")
    except EOFError as failure:
        raise BackupError("no password was given") from failure


def _quoted(password):
    for raw, escape in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ('"', '\\"')):
        password = password.replace(raw, escape)
    return f'"{password}"'


def _included(options):
    """The option files that the programs would have read."""
    given = dict(option.lstrip("-").partition("=")[::2] for option in options if option.startswith("--defaults"))
    if "--no-defaults" in options:
        return []
    if "defaults-file" in given:
        return [os.path.abspath(given["defaults-file"])]
    standard = [os.path.expanduser(name) for name in STANDARD_FILES]
    if os.environ.get("MYSQL_HOME"):
        standard.insert(2, os.path.join(os.environ["MYSQL_HOME"], "my.cnf"))
    if "defaults-extra-file" in given:
        standard.insert(-1, os.path.abspath(given["defaults-extra-file"]))
    return [path for path in standard if os.path.exists(path)]


def with_password(options, password):
    """(options, descriptors to be passed on): the same, and the password. What is in no file is gone when we end, however."""
    descriptor = os.memfd_create("quarry-backup")
    os.fchmod(descriptor, 0o600)  # the programs ignore an option file that everybody may write
    lines = [f"!include {path}" for path in _included(options)]
    lines += ["[client]", f"password={_quoted(password)}", "[mariadb-backup]", f"password={_quoted(password)}"]
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
    rest = [option for option in options if option != "--no-defaults" and not option.startswith("--defaults")]
    return [f"--defaults-file=/proc/self/fd/{descriptor}", *rest], (descriptor,)
