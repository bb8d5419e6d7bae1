"""Options and commands of scripts/cluster."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

import pymysql
from quarry_server.server import ServerError
from rich.console import Console

from .cluster import DIRECTORY, Cluster, locked
from .ddl import ShardedTables
from .in_doubt import resolve
from .keeper import keep
from .plan import KINDS, ClusterError
from .rebuild import rebuild
from .status import show


def start(arguments: argparse.Namespace, console: Console) -> int:
    with locked(arguments.directory):
        cluster = Cluster.make(arguments.directory, arguments.kind)
        cluster.start()
    show(cluster, console)
    return 0


def stop(arguments: argparse.Namespace, console: Console) -> int:
    with locked(arguments.directory):
        Cluster(arguments.directory).stop()
    console.print(f"stopped; its data stay in {arguments.directory}", highlight=False, soft_wrap=True)
    return 0


def status(arguments: argparse.Namespace, console: Console) -> int:
    return 0 if show(Cluster(arguments.directory), console) else 3  # as init scripts do


def create(arguments: argparse.Namespace, console: Console) -> int:
    with locked(arguments.directory):
        ShardedTables(Cluster(arguments.directory)).create(arguments.database, arguments.statement, arguments.key)
    console.print("created on every shard, replica and front", highlight=False)
    return 0


def drop(arguments: argparse.Namespace, console: Console) -> int:
    with locked(arguments.directory):
        ShardedTables(Cluster(arguments.directory)).drop(arguments.database, arguments.table)
    console.print("dropped everywhere", highlight=False)
    return 0


def alter(arguments: argparse.Namespace, console: Console) -> int:
    with locked(arguments.directory):
        tables = ShardedTables(Cluster(arguments.directory))
        (tables.take_back if arguments.take_back else tables.alter)(arguments.database, arguments.table, arguments.clauses)
    console.print(f"{'taken back' if arguments.take_back else 'altered'} on every shard, replica and front", highlight=False)
    return 0


def rebuild_replica(arguments: argparse.Namespace, console: Console) -> int:
    with locked(arguments.directory):
        cluster = Cluster(arguments.directory)
        rebuild(cluster, arguments.node)
    show(cluster, console)
    return 0


def keep_shards(arguments: argparse.Namespace, _console: Console) -> int:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    cluster = Cluster(arguments.directory)
    keep(cluster.plan, arguments.directory, ended, lambda: resolve(cluster))
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="scripts/cluster", description=__doc__.splitlines()[0], allow_abbrev=False)
    made.add_argument("--directory", type=absolute, default=DIRECTORY, help="default: build/cluster")
    commands = made.add_subparsers(dest="command", required=True, metavar="command")
    command = commands.add_parser("start", help="starts what does not run yet")
    command.add_argument("--kind", choices=KINDS, default="spider", help="spider: 2 shards; 4: 4 shards; or galera")
    command.set_defaults(function=start)
    command = commands.add_parser("create", help="creates a sharded table: on every node or on none")
    command.add_argument("database")
    command.add_argument("statement", help="CREATE TABLE name (...) ENGINE=QUARRY ...")
    command.add_argument("--key", required=True, help="the column whose hash chooses the shard; part of every unique key")
    command.set_defaults(function=create)
    command = commands.add_parser("alter", help="alters a sharded table: rehearsed on empty copies, then on every node")
    command.add_argument("database")
    command.add_argument("table")
    command.add_argument("clauses", help="what stands behind ALTER TABLE name, e.g. 'ADD COLUMN note TEXT'")
    command.add_argument("--take-back", action="store_true", help="the clauses undo, where it was done, an ALTER that stopped half way")
    command.set_defaults(function=alter)
    command = commands.add_parser("drop", help="drops a sharded table everywhere")
    command.add_argument("database")
    command.add_argument("table")
    command.set_defaults(function=drop)
    command = commands.add_parser("rebuild", help="makes a shard's replica anew from its primary")
    command.add_argument("node")
    command.set_defaults(function=rebuild_replica)
    commands.add_parser("stop", help="stops what was started here").set_defaults(function=stop)
    commands.add_parser("status", help="the nodes; exit code 3 when one is down").set_defaults(function=status)
    commands.add_parser("keep", help="what start leaves running: promotes replicas").set_defaults(function=keep_shards)
    return made


def absolute(text: str) -> Path:
    return Path(text).absolute()


def main() -> int:
    arguments = parser().parse_args()
    try:
        return arguments.function(arguments, Console())
    except (ClusterError, ServerError) as error:
        print(f"cluster: {error}", file=sys.stderr)
    except pymysql.err.Error as error:
        print(f"cluster: a server answered: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("cluster: interrupted: repeat the command, which goes on or begins anew", file=sys.stderr)
    except OSError as error:
        print(f"cluster: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}", file=sys.stderr)
    return 1
