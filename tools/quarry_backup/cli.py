"""Options and commands of quarry-backup."""

import argparse
import os
import signal
import sys

from quarry_backup import credentials
from quarry_backup.backup import backup
from quarry_backup.files import BackupError
from quarry_backup.restore import Restore, prepare, verify
from quarry_backup.words import shown

CONNECTION = {
    "defaults-file": "read this option file only",
    "defaults-extra-file": "read this option file too",
    "user": "the server's user, with the rights that mariadb-backup needs",
    "host": "",
    "port": "",
    "socket": "",
}

DESCRIPTION = """Backups of a MariaDB server with QUARRY tables: mariadb-backup for rows and definitions, and beside it
the segments that hold the values. Whatever stands behind '--' is passed on to mariadb-backup."""

EPILOG = """examples:
  quarry-backup backup --target-dir=/backup/sunday
  quarry-backup backup --target-dir=/backup/monday --incremental-basedir=/backup/sunday
  quarry-backup prepare --target-dir=/backup/sunday
  quarry-backup prepare --target-dir=/backup/sunday --incremental-dir=/backup/monday
  quarry-backup restore --target-dir=/backup/sunday --datadir=/var/lib/mysql
docs/operate/backup.md of Quarry tells it all: restoring, point-in-time recovery, what to do when something fails."""


def _parser():
    parser = argparse.ArgumentParser(
        prog="quarry-backup",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def command(name, function, text):
        made = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        made.set_defaults(function=function)
        made.add_argument("--target-dir", required=True, metavar="DIRECTORY", help="the backup's directory")
        made.add_argument("--parallel", type=_threads, default=2, metavar="N", help="threads that copy (default 2)")
        return made

    made = command("backup", backup, "takes a backup of a running server")
    made.add_argument("--incremental-basedir", metavar="DIRECTORY", help="only what changed since that backup")
    made.add_argument("--mariadb", metavar="PATH", help="the client program")
    _add_connection(made, CONNECTION)
    made.add_argument(
        "-p",
        "--password",
        nargs="?",
        const=credentials.ASK,
        metavar="",
        help="ask for the password (an option file's and MYSQL_PWD are used without; on the command line it is refused)",
    )
    _add_mariadb_backup(made)
    made = command("prepare", prepare, "makes a backup ready to be restored; adds incremental ones to it")
    made.add_argument("--incremental-dir", metavar="DIRECTORY", help="the incremental backup to be added")
    _add_mariadb_backup(made)
    made = command("restore", lambda arguments: Restore(arguments).run(), "copies a prepared backup back")
    made.add_argument("--datadir", required=True, metavar="DIRECTORY", help="the data directory, new or empty")
    made.add_argument("--quarry-data-paths", metavar="P1;P2", help="where segments of data paths go, in their order")
    made.add_argument("--owner", metavar="USER[:GROUP]", help="whose the restored files shall be, e.g. mysql (as root)")
    _add_connection(made, ["defaults-file", "defaults-extra-file"])
    _add_mariadb_backup(made)
    made = command("verify", verify, "checks every file of a backup against its checksum")
    made.add_argument("--quarry-verify", metavar="PATH", help="the program that looks into segments, if not in the PATH")
    return parser


def _add_connection(parser, names):
    for name in names:
        parser.add_argument(f"--{name}", metavar="...", help=CONNECTION[name] or argparse.SUPPRESS)
    parser.add_argument("--no-defaults", action="store_true", help="read no option file")


def _add_mariadb_backup(parser):
    parser.add_argument("--mariadb-backup", metavar="PATH", help="the program, when it is not in the PATH")
    parser.add_argument("--skip-space-check", action="store_true", help="start without asking for free space")


def _threads(text):
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"'{shown(text)}' (allowed: 1 to 256)")
    return int(text)


def _connection(arguments):
    """(options, descriptors) as both programs want them: those of option files first."""
    options = ["--no-defaults"] if getattr(arguments, "no_defaults", False) else []
    for name in CONNECTION:
        value = getattr(arguments, name.replace("-", "_"), None)
        if value is not None:
            options.append(f"--{name}={value}")
    password = getattr(arguments, "password", None)
    if password is None:
        return options, ()
    if password is not credentials.ASK:
        raise BackupError(credentials.REFUSED)
    return credentials.with_password(options, credentials.ask())


def main(words=None):
    words = list(sys.argv[1:] if words is None else words)
    passed_on = []
    if "--" in words:
        passed_on = words[words.index("--") + 1 :]
        words = words[: words.index("--")]
    arguments = _parser().parse_args(words)
    arguments.passed_on = passed_on
    # As Ctrl-C: the session is closed in order. Also where SIGINT itself is ignored, as in a job in the background.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if getattr(arguments, "incremental_dir", None):
        # A backup that an increment is being applied to is lost when that ends half way: not because a terminal goes away.
        # mariadb-backup inherits it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.umask(0o077)
    try:
        arguments.connection, arguments.descriptors = _connection(arguments)
        arguments.function(arguments)
        return 0
    except BackupError as failure:
        print(shown(f"quarry-backup: ERROR: {failure}"), file=sys.stderr)
    except OSError as failure:
        where = f"{failure.filename}: " if failure.filename else ""
        print(shown(f"quarry-backup: ERROR: {where}{failure.strerror or failure}"), file=sys.stderr)
    except KeyboardInterrupt:
        print("quarry-backup: ERROR: interrupted: what was begun is not complete", file=sys.stderr)
    return 1
