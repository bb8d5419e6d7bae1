"""The command line of quarry-advisor."""

from __future__ import annotations

import argparse
import getpass
import importlib
import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pymysql
from rich.console import Console

from . import compression, from_ndb
from .apply import apply
from .catalog import read_table
from .errors import AdvisorError
from .estimate import estimate
from .profile import Profile
from .report import Findings, document, print_report
from .rules import advise
from .sampler import Limits, Sampler
from .shown import SafeConsole, plain, shown
from .target import Address, Target, error_of
from .workload import read_workload

PASSWORD_VARIABLE = "QUARRY_ADVISOR_PASSWORD"
DEFAULT_SOCKET = "/run/mysqld/mysqld.sock"
EXIT_REFUSED, EXIT_INTERRUPTED = 2, 130
MIB = 1 << 20
WIDTH_WITHOUT_TERMINAL = 150


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quarry-advisor", formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Samples a table of a running MariaDB server, which it only reads, and says how Quarry should keep its values.")
    parser.add_argument("table", metavar="DATABASE.TABLE", type=_table_name, nargs="?")
    parser.add_argument("--from-ndb", type=Path, metavar="DUMP",
                        help="no table, no server: write a dump of MySQL Cluster, made by mysqldump, to standard output as MariaDB loads it, with "
                             "ENGINE=QUARRY DEFAULTS=NDB; each change is said on standard error")
    parser.add_argument("--column", action="append", default=[], metavar="NAME", help="look at this column alone; repeatable")
    where = parser.add_argument_group("server")
    where.add_argument("--host", default="localhost")
    where.add_argument("--port", type=int, default=3306)
    where.add_argument("--socket", help="connect through this socket")
    where.add_argument("--user", help="needs SELECT on the table")
    where.add_argument("--password", nargs="?", const="", default=None, metavar="",
                       help=f"asked for; or in the variable {PASSWORD_VARIABLE}, or an option file. Never on the command line, which every account can read")
    where.add_argument("--defaults-file", type=Path, metavar="FILE", help="read user, password and the rest from its section [client]")
    where.add_argument("--ssl-ca", type=Path, metavar="FILE", help="encrypt the connection, and verify the server by this")
    load = parser.add_argument_group("limits of the load put on the server")
    load.add_argument("--sample-rows", type=_positive, default=Limits.rows, metavar="N", help="sampled of a larger table; one of up to four times as many is read whole")
    load.add_argument("--sample-megabytes", type=_positive, default=Limits.read_bytes // MIB, metavar="MB", help="of values that the server reads")
    load.add_argument("--fetch-megabytes", type=_positive, default=Limits.fetched_bytes // MIB, metavar="MB", help="of values that it sends, to try the codecs on")
    load.add_argument("--sample-seconds", type=_positive, default=Limits.seconds, metavar="S", help="for the whole sample, and for each statement")
    parser.add_argument("--seed", type=int, default=1, help="of the random places")
    output = parser.add_argument_group("output")
    output.add_argument("--json", metavar="FILE", help="write all findings there too; -: to standard output, in place of the tables")
    trial = parser.add_argument_group("trial, on a private server of this machine")
    trial.add_argument("--trial", action="store_true", help="measure the advice beside InnoDB on a copy of the sample")
    trial.add_argument("--trial-rounds", type=_positive, default=3, metavar="N")
    trial.add_argument("--trial-seconds", type=_positive, default=3, metavar="S", help="of each point")
    trial.add_argument("--trial-clients", type=_positive, default=8, metavar="N")
    doing = parser.add_argument_group("doing it")
    doing.add_argument("--apply", action="store_true", help="run the ALTER TABLE on the server, once it has been confirmed")
    doing.add_argument("--yes", action="store_true", help="with --apply: it is confirmed")
    return parser


def _table_name(text: str) -> tuple[str, str]:
    """Names with dots stand in backticks, as in SQL."""
    quoted = re.fullmatch(r"(`(?:[^`]|``)+`)\.(`(?:[^`]|``)+`)", text)
    if quoted:
        return quoted[1][1:-1].replace("``", "`"), quoted[2][1:-1].replace("``", "`")
    schema, separator, name = text.partition(".")
    if not separator or not schema or not name:
        raise argparse.ArgumentTypeError(f"'{shown(text)}' is not DATABASE.TABLE, nor `DATABASE`.`TABLE`")
    return schema, name


def _positive(text: str) -> int:
    try:
        found = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if found < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {found})")
    return found


def address_of(arguments: argparse.Namespace) -> Address:
    password = arguments.password
    if password:
        raise AdvisorError("a password on the command line can be read by every account of this machine, and is in the shell's history. Allowed: --password "
                           f"without a value, which asks for it, the variable {PASSWORD_VARIABLE}, or --defaults-file")
    if password == "":
        try:
            password = getpass.getpass(f"Password for {arguments.user or 'this user'}: ")
        except EOFError:
            raise AdvisorError("no password was given") from None
    elif password is None:
        password = os.environ.get(PASSWORD_VARIABLE, "")
    for path in (arguments.defaults_file, arguments.ssl_ca):
        if path and not path.is_file():
            raise AdvisorError(f"there is no file {path}")
    socket = arguments.socket
    if socket is None and arguments.host == "localhost" and not arguments.defaults_file and os.path.exists(DEFAULT_SOCKET):
        socket = DEFAULT_SOCKET  # as every client does: root logs in by it alone
    return Address(arguments.host, arguments.port, socket, arguments.user, password, arguments.defaults_file, arguments.ssl_ca)


def look(target: Target, arguments: argparse.Namespace, console: Console) -> Profile:
    """Everything that is asked of the user's server. Its counters first: they should not count us."""
    schema, name = arguments.table
    workload = read_workload(target, schema, name)
    table = read_table(target, schema, name, arguments.column)
    limits = Limits(arguments.sample_rows, arguments.sample_megabytes * MIB, arguments.fetch_megabytes * MIB, arguments.sample_seconds, arguments.trial)
    with console.status(plain(f"sampling {schema}.{name}: at most {limits.rows:,} rows, {arguments.sample_megabytes} MiB of values, {limits.seconds} s")):
        sample = Sampler(target, table, limits, arguments.seed).take()
    with console.status(plain("trying the codecs")):
        compressed, rates = compression.measure(table, sample)
    return Profile(table, target.server(), workload, sample, compressed, rates)


def convert_dump(path: Path, messages: Console) -> None:
    if not path.is_file():
        raise AdvisorError(f"there is no file {path}")
    changes = 0

    def say(change: str) -> None:
        nonlocal changes
        changes += 1
        messages.print(plain(change), soft_wrap=True)

    try:
        with path.open("rb") as dump:
            tables = from_ndb.convert(dump, sys.stdout.buffer, say)
        sys.stdout.buffer.flush()
    except OSError as error:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # what is left in the buffer is not tried once more at the exit
        raise AdvisorError(f"the dump was not converted to its end: {error.strerror}") from error
    messages.print(plain(f"{tables} {'table' if tables == 1 else 'tables'} for Quarry, {changes} {'change' if changes == 1 else 'changes'}"))


def run(arguments: argparse.Namespace, console: Console, messages: Console) -> None:
    if (arguments.from_ndb is None) == (arguments.table is None):
        raise AdvisorError("name one table, DATABASE.TABLE, or one dump, --from-ndb DUMP")
    if arguments.from_ndb is not None:
        convert_dump(arguments.from_ndb, messages)
        return
    if arguments.yes and not arguments.apply:
        raise AdvisorError("--yes confirms --apply, and does nothing alone")
    if arguments.trial:
        load_trial().check_trial(arguments.fetch_megabytes * MIB, arguments.trial_seconds)
    address = address_of(arguments)
    with Target(address, arguments.sample_seconds) as target:
        profile = look(target, arguments, messages)
    advice = advise(profile)
    findings = Findings(profile, advice, estimate(profile, advice))
    if arguments.json != "-":
        print_report(console, findings)
    if arguments.trial:
        findings = with_trial(findings, arguments, console, messages)
    if arguments.json:
        text = json.dumps(document(findings), indent=2) + "\n"
        sys.stdout.write(text) if arguments.json == "-" else Path(arguments.json).write_text(text, encoding="utf-8")
    if arguments.apply:
        apply(address, profile, advice, arguments.yes, messages)


def load_trial() -> ModuleType:
    """What a trial needs of the lab is not installed with the advisor."""
    try:
        return importlib.import_module("quarry_lab.advisor_trial")
    except ImportError as error:
        raise AdvisorError(f"--trial needs Quarry's source tree, where `make build` was run: use tools/quarry-advisor there ({error})") from None


def with_trial(findings: Findings, arguments: argparse.Namespace, console: Console, messages: Console) -> Findings:
    trial = load_trial()
    settings = trial.Settings(arguments.trial_rounds, arguments.trial_seconds, arguments.trial_clients, arguments.seed)
    found = trial.run_trial(findings.profile, findings.advice, settings, messages)
    if arguments.json != "-":
        trial.print_trial(console, found)
    return replace(findings, trial=found)


def main(arguments: list[str]) -> int:
    """0: done; 2: refused, with the reason; 130: interrupted."""
    parsed = build_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = SafeConsole(width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
    messages = SafeConsole(stderr=True, width=None if sys.stderr.isatty() else WIDTH_WITHOUT_TERMINAL)
    try:
        run(parsed, console, messages)
    except AdvisorError as error:
        messages.print(plain(f"quarry-advisor: {error}"), soft_wrap=True)
        return EXIT_REFUSED
    except pymysql.MySQLError as error:
        messages.print(plain(f"quarry-advisor: the server said: {error_of(error)[1]}"), soft_wrap=True)
        return EXIT_REFUSED
    except OSError as error:
        messages.print(plain(f"quarry-advisor: {error.filename or 'writing'}: {error.strerror}"), soft_wrap=True)
        return EXIT_REFUSED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0
