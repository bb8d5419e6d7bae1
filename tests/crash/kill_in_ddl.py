#!/usr/bin/env python3
"""kill -9 in the middle of DDL, at every system call by which it changes a file.

Each kind of DDL (ddl_kinds.py) is run once under strace to learn its calls, then again and again, cut off at one of
them after the other. After each restart the schema must be as an InnoDB twin's was before or after the statement: the
tables under exactly their names, columns, indexes, partitions, every row with the SHA-256 of each of its fields, CHECK
TABLE clean, no temporary table left. Then rows are inserted, updated and deleted, and that must equal the twin's too,
then and after one more kill and restart.

    tests/crash/kill_in_ddl.py                                   # every point of every kind
    tests/crash/kill_in_ddl.py --ddl rename-swap --ddl drop      # of these
    tests/crash/kill_in_ddl.py --limit 5 --seed 1 --binlog       # five points of each, with the binary log on

Exit code 0 when every kill was survived; 1, with what was wrong, otherwise; 77 where the server can't be traced.
"""

import argparse
import collections
import hashlib
import pathlib
import random
import re
import secrets
import shutil
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools"), str(TESTS / "crash")]

import kill_at  # noqa: E402
from ddl_kinds import COLUMNS, CONSEQUENCES, KINDS, SERVER_FAULTS  # noqa: E402

from harness.server import ENGINE, Server  # noqa: E402

EXIT_SKIPPED = 77
FAILURES_MAX = 5
SOURCE_SIZES_BYTES = (0, None, 64, 100, 4095, 4096, 4097, 5000, 9000, 30000, 65536, 65537, 66000, 140000, 200000, 300)
AFTERWARDS = (
    "INSERT INTO {t} (id, b) VALUES (900, REPEAT('new', 6000))",
    "UPDATE {t} SET b = CONCAT(COALESCE(b, ''), REPEAT('after', 2000)) WHERE id % 2 = 0",
    "DELETE FROM {t} WHERE id % 5 = 0",
)


class ServerFault(Exception):
    """What was found happens to InnoDB tables too (SERVER_FAULTS)."""


class Table:
    """What a table is: its definition as far as both engines share it, and its rows, fields by SHA-256."""

    def __init__(self, cursor, schema, name, engine):
        self.engine = (engine or "none").upper()
        cursor.execute(f"SHOW COLUMNS FROM {schema}.{name}")
        self.columns = cursor.fetchall()
        cursor.execute(f"SHOW INDEX FROM {schema}.{name}")
        self.indexes = [(row[2], row[3], row[4], row[7], row[10]) for row in cursor.fetchall()]
        cursor.execute(
            "SELECT partition_name, partition_description FROM information_schema.partitions WHERE table_schema = %s AND "
            "table_name = %s ORDER BY partition_ordinal_position",
            (schema, name),
        )
        self.partitions = cursor.fetchall()
        cursor.execute(f"SELECT * FROM {schema}.{name} ORDER BY id")
        self.rows = [tuple(digest(field) for field in row) for row in cursor.fetchall()]

    def parts(self):
        return {"columns": self.columns, "indexes": self.indexes, "partitions": self.partitions, "rows": self.rows}

    def difference(self, other):
        """What differs between two tables of one name, in words; None when they are equal."""
        for what, mine in self.parts().items():
            theirs = other.parts()[what]
            if mine != theirs:
                wrong = [(a, b) for a, b in zip(mine, theirs) if a != b][:2]
                return f"{what}: {len(mine)} instead of {len(theirs)}" + (f", e.g. {wrong}" if wrong else "")
        return None


class State:
    """All tables of a schema."""

    def __init__(self, server, schema):
        connection = server.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %s ORDER BY 1", (schema,)
                )
                self.tables = {name: Table(cursor, schema, name, engine) for name, engine in cursor.fetchall()}
        finally:
            connection.close()

    def difference(self, other):
        if set(self.tables) != set(other.tables):
            return f"tables {sorted(self.tables)} instead of {sorted(other.tables)}"
        for name, table in self.tables.items():
            if (found := table.difference(other.tables[name])) is not None:
                return f"table {name}: {found}"
        return None


def digest(field):
    if isinstance(field, (bytes, str)) and len(field) > 40:
        data = field if isinstance(field, bytes) else field.encode()
        return f"{len(data)} bytes {hashlib.sha256(data).hexdigest()}"
    return field


class World:
    """A state that may be there after a crash, and what the rows become by the statements of AFTERWARDS."""

    def __init__(self, name, engine, state, changed):
        self.name, self.engine, self.state, self.changed = name, engine, state, changed


class Hunt:
    """A server that is killed at chosen points. Externally synchronised."""

    def __init__(self, name, options=(), seed="1"):
        self.options, self.name = list(options), name
        self.random = random.Random(f"{seed}-points")
        self.counts = collections.Counter()
        self.number = 0
        self.pending = None  # (schema, World): to be looked at again after the next restart
        self.engine = ENGINE
        self.log_size = 0  # of the error log before the last restart
        self.server = None
        self.begin()

    def begin(self):
        self.server = Server(self.name, ["--innodb-lock-wait-timeout=5", *self.options]).start()
        self.server.query("CREATE DATABASE seed")
        self.server.query(f"CREATE TABLE seed.source ({COLUMNS}) ENGINE=InnoDB")
        for row, size_bytes in enumerate(SOURCE_SIZES_BYTES):
            data = None if size_bytes is None else random.Random(f"ddl-{row}").randbytes(size_bytes)
            text = f"row {row} " * row * 40
            self.server.query("INSERT INTO seed.source VALUES (%s, %s, %s, %s)", (row, data, text, row % 4))

    def give_up(self, number=None):
        """After a failure: a new server takes the place of this one, whose files are kept when there is a `number`."""
        if self.server.alive():
            self.server.kill()
        kept = self.server.directory.with_name(f"{self.server.directory.name}-failed-{number}")
        if number is None:
            self.server.remove()
        else:
            self.server.directory.rename(kept)
        self.pending = None
        self.begin()
        return kept

    # --- schemas ----------------------------------------------------------------------------------
    def prepare(self, kind, schema, engine):
        connection = self.server.connect()
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {schema}")
            cursor.execute(f"CREATE DATABASE {schema}")
            cursor.execute(f"USE {schema}")
            for statement in kind.setup:
                cursor.execute(statement.replace("{e}", engine))
        return connection

    def change_rows(self, schema):
        connection = self.server.connect(schema)
        with connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            for (table,) in cursor.fetchall():
                cursor.execute(f"SHOW COLUMNS FROM {table} LIKE 'b'")
                statements = AFTERWARDS if cursor.fetchall() else AFTERWARDS[2:]
                for statement in statements:
                    cursor.execute(statement.format(t=table))
        connection.close()

    def worlds(self, kind):
        """From the InnoDB twin: before the statement, and after it (after each, where it is several)."""
        steps = kind.twin or (kind.ddl,)
        found = []
        for done in range(len(steps) + 1):
            connection = self.prepare(kind, "twin", "InnoDB")
            with connection.cursor() as cursor:
                cursor.execute("SET default_storage_engine = InnoDB")
                for statement in steps[:done]:
                    cursor.execute(statement.replace("{e}", "InnoDB"))
                    cursor.fetchall()
            connection.close()
            state = State(self.server, "twin")
            self.change_rows("twin")
            name = "old form" if done == 0 else "new form" if done == len(steps) else f"step {done}"
            engine = kind.engines[0 if done == 0 else 1].replace("{e}", self.engine).upper()
            found.append(World(name, engine, state, State(self.server, "twin")))
        self.server.query("DROP DATABASE twin")
        return found

    # --- kills ------------------------------------------------------------------------------------
    def record(self, kind, worlds):
        """The points of a kind, by running it undisturbed; it must then equal the twin, too."""
        connection = self.prepare(kind, "record", self.engine)
        outcome = kill_at.run(self.server, connection, kind.ddl.replace("{e}", self.engine))
        connection.close()
        assert not outcome.killed, f"{kind.name}: the server died by itself:\n{self.server.error_log()[-4000:]}"
        self.check("record", worlds[-1:])
        self.server.query("DROP DATABASE record")
        return outcome.points

    def choose(self, points, limit):
        """All, or `limit` of them: one of each call and file first, as the seed has it."""
        if limit is None or limit >= len(points):
            return points
        shuffled = self.random.sample(points, len(points))
        seen = collections.Counter()
        ranks = {}
        for point in shuffled:
            ranks[point] = seen[point.call, point.file]
            seen[point.call, point.file] += 1
        return sorted(shuffled, key=lambda point: ranks[point])[:limit]

    def cut(self, kind, worlds, point):
        """One kill, restart and check; what was found, in words."""
        self.number += 1
        schema = f"cut_{self.number}"
        connection = self.prepare(kind, schema, self.engine)
        outcome = kill_at.run(self.server, connection, kind.ddl.replace("{e}", self.engine), point)
        if not outcome.killed:
            connection.close()
            self.check(schema, worlds[-1:])
            self.server.query(f"DROP DATABASE {schema}")
            self.counts["done before the point"] += 1
            return "done before the point"
        self.counts["kills"] += 1
        where = outcome.points[-1] if outcome.points else point
        try:
            return f"{where}: {self.recover(schema, worlds)}"
        except Exception as failure:
            fault = self.fault_of(kind, failure)
            if fault is None:
                raise
            if not (fault.by_log or self.engine == "InnoDB" or self.is_found_with_innodb(kind, where, fault)):
                raise AssertionError(f"{failure} (not so with InnoDB, cut off at the same calls)") from failure
            self.counts["server's own fault"] += 1
            raise ServerFault(f"{where}: {fault.reason}") from failure

    def fault_of(self, kind, failure):
        """Which of SERVER_FAULTS this may be; None if it is none. One that the log tells must be all that the log tells."""
        text = str(failure)
        for fault in SERVER_FAULTS:
            if fault.kinds and kind.name not in fault.kinds or re.search(fault.pattern, text, re.DOTALL) is None:
                continue
            errors = [line for line in self.server.error_log()[self.log_size :].splitlines() if "[ERROR]" in line]
            known = [one.pattern for one in SERVER_FAULTS if one.by_log] + list(CONSEQUENCES)
            if all(any(re.search(pattern, line) for pattern in known) for line in errors):
                return fault
        return None

    def is_found_with_innodb(self, kind, point, fault):
        """Whether the same kind, cut off with InnoDB at a same call of the same file, shows the same fault. Another server
        has taken the place of this one then; what this one left is kept unless the fault is the server's own."""
        kept, counts, self.counts = self.give_up(f"suspect-{self.number}"), self.counts, collections.Counter()
        self.engine = "InnoDB"
        try:
            worlds = self.worlds(kind)
            for one in self.record(kind, worlds):
                if (one.call, one.file) != (point.call, point.file):
                    continue
                try:
                    self.cut(kind, worlds, one)
                except ServerFault as found:
                    if str(found).endswith(fault.reason):
                        shutil.rmtree(kept)
                        return True
                    self.give_up()
            return False
        finally:
            self.engine, self.counts = ENGINE, counts

    def recover(self, schema, worlds):
        restart_s = self.restart()
        self.check_pending()
        world = self.check(schema, worlds)
        self.change_rows(schema)
        difference = State(self.server, schema).difference(world.changed)
        assert difference is None, f"{world.name}, after INSERT, UPDATE and DELETE: {difference}"
        self.pending = (schema, world)
        self.counts[world.name] += 1
        return f"{world.name}, restarted in {restart_s:.2f} s"

    def restart(self):
        began = time.monotonic()
        self.log_size = len(self.server.error_log())
        self.server.start()
        seconds = time.monotonic() - began
        errors = [line for line in self.server.error_log()[self.log_size :].splitlines() if "[ERROR]" in line]
        assert not errors, "errors in the log of the restart:\n" + "\n".join(errors[:10])
        return seconds

    def check(self, schema, worlds):
        """The world that the schema is in; AssertionError when it is none of them."""
        state = State(self.server, schema)
        differences = {}
        for world in worlds:
            wrong = [name for name, table in state.tables.items() if table.engine != world.engine]
            difference = state.difference(world.state)
            if difference is None and wrong:
                difference = f"table {wrong[0]} is {state.tables[wrong[0]].engine} instead of {world.engine}"
            if difference is None:
                self.check_health(schema, state, world)
                return world
            differences[world.name] = difference
        raise AssertionError("; ".join(f"not the {name}: {difference}" for name, difference in differences.items()))

    def check_health(self, schema, state, world):
        for name in state.tables:
            verdict = self.server.query(f"CHECK TABLE {schema}.{name}")
            assert verdict[-1][-1] == "OK", f"CHECK TABLE {name}: {verdict}"
        # #sql-ib: InnoDB removes them by itself, in the background.
        left = [
            path.name
            for path in (self.server.datadir / schema).iterdir()
            if path.name.startswith("#sql") and not path.name.startswith("#sql-ib")
        ]
        assert not left, f"{world.name}: files of temporary tables are left: {left}"

    def check_pending(self):
        """The schema of the kill before this one, after its second restart."""
        if self.pending is None:
            return
        (schema, world), self.pending = self.pending, None
        difference = State(self.server, schema).difference(world.changed)
        assert difference is None, f"schema {schema}, after a second restart: {difference}"
        self.server.query(f"DROP DATABASE {schema}")

    def finish(self):
        """One more kill, so that the last schema has its second restart too; then how many stores are there."""
        if self.pending is not None:
            self.server.kill()
            self.restart()
            self.check_pending()
        if ENGINE.upper() != "QUARRY":
            return {}
        return dict(self.server.query("SELECT state, COUNT(*) FROM information_schema.quarry_tables GROUP BY state"))


def hunt_all(hunt, kinds, limit):
    """Every kind; prints one line for each kill, then a table. The number of failures."""
    table, failures = [], []
    for kind in kinds:
        before = hunt.counts.copy()
        points = []
        try:
            worlds = hunt.worlds(kind)
            points = hunt.record(kind, worlds)
        except AssertionError as failure:
            failures.append(report_failure(hunt, kind, "undisturbed", failure, len(failures) + 1))
        for point in hunt.choose(points, limit):
            try:
                print(f"{kind.name}: {hunt.cut(kind, worlds, point)}", flush=True)
            except ServerFault as fault:
                print(f"{kind.name}: {fault}, as with InnoDB", flush=True)
                hunt.give_up()
            except Exception as failure:  # noqa: BLE001 - the hunt goes on with a new server
                failures.append(report_failure(hunt, kind, point, failure, len(failures) + 1))
                if len(failures) >= FAILURES_MAX:
                    break
        table.append((kind.name, len(points), hunt.counts - before))
        if len(failures) >= FAILURES_MAX:
            print(f"{FAILURES_MAX} failures: no more kills", flush=True)
            break
    print(f"\n{'kind':<26}{'points':>7}{'kills':>7}{'old':>6}{'new':>6}{'between':>9}{'done':>6}{'server':>8}")
    for name, points, counts in table:
        server = counts["server's own fault"]
        between = sum(value for key, value in counts.items() if key.startswith("step"))
        print(
            f"{name:<26}{points:>7}{counts['kills']:>7}{counts['old form']:>6}{counts['new form']:>6}{between:>9}"
            f"{counts['done before the point']:>6}{server:>8}"
        )
    return failures


def report_failure(hunt, kind, point, failure, number):
    log = hunt.server.error_log()[-3000:]
    kept = hunt.give_up(number)
    text = f"{kind.name} at {point}: {type(failure).__name__}: {failure}"
    print(f"FAILED {text}\n  the server's files: {kept}\n{log}", flush=True)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [kind.name for kind in KINDS]
    parser.add_argument(
        "--ddl", action="append", choices=names, metavar="KIND", help=f"one of {', '.join(names)} (default: all)"
    )
    parser.add_argument("--limit", type=int, default=None, help="kills of each kind (default: all points)")
    parser.add_argument("--seed", default=None, help="of the choice of points (default: random, printed)")
    parser.add_argument("--binlog", action="store_true", help="with the binary log on")
    arguments = parser.parse_args()
    seed = arguments.seed or str(secrets.randbelow(10**9))
    chosen = [kind for kind in KINDS if arguments.ddl is None or kind.name in arguments.ddl]
    limit = "all points" if arguments.limit is None else f"{arguments.limit} points of each"
    print(f"kill_in_ddl: engine {ENGINE}, {len(chosen)} kinds, {limit}, --seed {seed}", flush=True)
    options = ["--log-bin=binlog", "--server-id=1", "--sync-binlog=1"] if arguments.binlog else []
    hunt = Hunt("kill-in-ddl", options, seed)
    try:
        failures = hunt_all(hunt, chosen, arguments.limit)
        stores = hunt.finish()
    except kill_at.CannotTrace as reason:
        print(f"skipped: {reason}")
        hunt.server.remove()
        return EXIT_SKIPPED
    if stores:
        print("stores at the end: " + ", ".join(f"{count} {state}" for state, count in sorted(stores.items())))
    print(f"kill_in_ddl: {hunt.counts['kills']} kills, {len(failures)} failures; seed {seed}")
    for text in failures:
        print(f"  {text}")
    hunt.server.remove()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
