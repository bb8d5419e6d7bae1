#!/usr/bin/env python3
"""kill -9 of a server under load, again and again: nothing acknowledged is lost, and Quarry equals its InnoDB twin.

Every transaction makes the same changes to a QUARRY table and to an InnoDB twin, so after any crash the two must be
equal row by row. Each client also owns rows whose contents it knows: what was acknowledged must be there, what was
rolled back must not, and of the one transaction that was in flight either all or nothing. One more client alters,
renames, truncates and rebuilds a table of its own, so that the kill also falls into DDL.

    tests/crash/kill_under_load.py --cycles 50 --seed 1

Exit code 0 when every cycle held; 1, with what differed, otherwise. A kill does not drop the page cache: what a power
cut would do is the business of the simulation, the order of system calls that of tests/sql/test_durability.py.
"""

import argparse
import collections
import hashlib
import pathlib
import random
import secrets
import sys
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

import pymysql  # noqa: E402

from harness.server import ENGINE, Server  # noqa: E402

ROWS_PER_CLIENT = 1000
SHARED_FIRST = 1_000_000
SIZES = [0, 50, 3000, 4096, 4097, 9000, 30000, 66000, 250000]
SIZE_WEIGHTS = [1, 2, 3, 2, 2, 5, 4, 2, 1]
DDL_ROWS = 20
DDL_STATES = ("ddl_a", "ddl_b")


class Client:
    """One connection's life: transactions on rows of its own, and now and then on rows that all share.

    `model`: {id: (n, sha256 of b)} as of the last acknowledged commit. `in_doubt`: what it becomes if the commit in
    flight made it.
    """

    def __init__(self, number, seed):
        self.number = number
        self.random = random.Random(f"{seed}-{number}")
        self.first = number * ROWS_PER_CLIENT
        self.model = {}
        self.in_doubt = None
        self.counts = collections.Counter()
        self.failure = None

    def run(self, server, stop):
        try:
            connection = server.connect("crash", autocommit=False)
            with connection.cursor() as cursor:
                cursor.execute("SET NAMES binary")
                while not stop.is_set():
                    self.transaction(connection, cursor)
        except pymysql.err.Error as failure:
            self.note(failure)
        except OSError:
            self.counts["connections lost"] += 1

    def note(self, failure):
        """A lost connection is what the test is about; every other error is a failure."""
        if (
            failure.args
            and failure.args[0] in (0, 2003, 2006, 2013, 2014, 1053)
            or isinstance(failure, pymysql.err.InterfaceError)
        ):
            self.counts["connections lost"] += 1
        else:
            self.failure = repr(failure)

    def value(self):
        return self.random.randbytes(self.random.choices(SIZES, SIZE_WEIGHTS)[0] + self.random.randrange(8))

    def transaction(self, connection, cursor):
        changed = dict(self.model)
        try:
            for _ in range(self.random.choice((1, 1, 1, 2, 3, 8))):
                self.change(cursor, changed)
            if self.random.random() < 0.15:
                connection.rollback()
                self.counts["rollbacks"] += 1
                return
            self.in_doubt = changed
            connection.commit()
            self.model, self.in_doubt = changed, None
            self.counts["commits"] += 1
        except pymysql.err.OperationalError as failure:
            if failure.args[0] not in (1205, 1213):
                raise
            connection.rollback()
            self.counts["deadlocks and lock waits"] += 1

    def change(self, cursor, changed):
        kind = self.random.random()
        if kind < 0.12:
            return self.shared(cursor)
        if kind < 0.5 or not changed:
            row, n, value = (
                self.first + self.random.randrange(ROWS_PER_CLIENT),
                self.random.randrange(100),
                self.value(),
            )
            both(cursor, "REPLACE INTO {} VALUES (%s, %s, %s, %s)", (row, n, value, value[:3000]))
            changed[row] = (n, digest(value))
        elif kind < 0.75:
            row, value = self.random.choice(list(changed)), self.value()
            both(cursor, "UPDATE {} SET b = %s WHERE id = %s", (value, row))
            changed[row] = (changed[row][0], digest(value))
        elif kind < 0.82:
            row = self.random.choice(list(changed))
            both(cursor, "UPDATE {} SET n = n + 1 WHERE id = %s", (row,))
            changed[row] = (changed[row][0] + 1, changed[row][1])
        elif kind < 0.9:
            row = self.random.choice(list(changed))
            both(cursor, "DELETE FROM {} WHERE id = %s", (row,))
            del changed[row]
        else:
            cursor.execute("SAVEPOINT s")
            both(cursor, "REPLACE INTO {} VALUES (%s, 0, %s, '')", (self.first, self.value()))
            cursor.execute("ROLLBACK TO SAVEPOINT s")
        return None

    def shared(self, cursor):
        """Rows that all clients fight for: only the comparison of the twins speaks of them."""
        row = SHARED_FIRST + self.random.randrange(20)
        both(
            cursor,
            self.random.choice(
                (
                    "REPLACE INTO {0} VALUES (%(id)s, 1, %(b)s, '')",
                    "UPDATE {0} SET b = CONCAT(LEFT(b, 20000), %(b)s) WHERE id = %(id)s",
                    "DELETE FROM {0} WHERE id = %(id)s",
                )
            ),
            {"id": row, "b": self.value()},
        )

    def check(self, rows):
        """`rows`: {id: (n, sha256)} of this client after the crash."""
        if rows == self.model:
            self.counts["in flight: lost"] += self.in_doubt is not None
        elif self.in_doubt is not None and rows == self.in_doubt:
            self.model = self.in_doubt
            self.counts["in flight: committed"] += 1
        else:
            wrong = [row for row in set(rows) | set(self.model) if rows.get(row) != self.model.get(row)]
            raise AssertionError(
                f"client {self.number}: {len(wrong)} rows are neither as acknowledged nor as in flight, e.g. "
                + ", ".join(
                    f"id {row}: is {rows.get(row)}, acknowledged {self.model.get(row)}" for row in sorted(wrong)[:3]
                )
            )
        self.in_doubt = None


class DdlClient:
    """Alters, renames and rebuilds a table whose 20 rows never change: they must be there after every crash."""

    STATEMENTS = (
        "ALTER TABLE {t} FORCE, ALGORITHM=COPY",
        "ALTER TABLE {t} FORCE",
        "RENAME TABLE {t} TO {o}",
        "ALTER TABLE {t} ADD COLUMN IF NOT EXISTS x LONGBLOB DEFAULT REPEAT('x', 5000)",
        "ALTER TABLE {t} DROP COLUMN IF EXISTS x",
        "OPTIMIZE TABLE {t}",
        "ALTER TABLE {t} ENGINE={e}",
        "ALTER TABLE {t} ENGINE=InnoDB",
        "CREATE OR REPLACE TABLE scratch ENGINE={e} SELECT * FROM {t}",
        "TRUNCATE TABLE scratch",
        "DROP TABLE IF EXISTS scratch",
    )

    def __init__(self, seed):
        self.random = random.Random(f"{seed}-ddl")
        self.rows = {row: digest(self.body(row)) for row in range(DDL_ROWS)}
        self.counts = collections.Counter()
        self.failure = None

    @staticmethod
    def body(row):
        return random.Random(f"ddl-{row}").randbytes(2000 * (row + 1))

    def create(self, server):
        server.query(f"CREATE TABLE crash.ddl_a (id INT PRIMARY KEY, b LONGBLOB) ENGINE={ENGINE}")
        for row in range(DDL_ROWS):
            server.query("INSERT INTO crash.ddl_a VALUES (%s, %s)", (row, self.body(row)))

    def run(self, server, stop):
        try:
            connection = server.connect("crash")
            with connection.cursor() as cursor:
                while not stop.is_set():
                    cursor.execute("SHOW TABLES LIKE 'ddl%'")
                    ((table,),) = cursor.fetchall()
                    other = DDL_STATES[table == DDL_STATES[0]]
                    cursor.execute("CREATE TABLE IF NOT EXISTS scratch (id INT) ENGINE=" + ENGINE)
                    cursor.execute(self.random.choice(self.STATEMENTS).format(t=table, o=other, e=ENGINE))
                    cursor.fetchall()
                    self.counts["ddl statements"] += 1
                    time.sleep(self.random.random() * 0.02)
        except pymysql.err.Error as failure:
            Client.note(self, failure)
        except OSError:
            self.counts["connections lost"] += 1

    def check(self, server):
        tables = [name for (name,) in server.query("SHOW TABLES LIKE 'ddl%'", database="crash")]
        assert len(tables) == 1, f"after DDL: the table must have exactly one of its names, found {tables}"
        rows = {row: digest(value) for row, value in server.query(f"SELECT id, b FROM crash.{tables[0]}")}
        wrong = [row for row in range(DDL_ROWS) if rows.get(row) != self.rows[row]]
        assert rows == self.rows, f"after DDL: {len(rows)} rows, of {DDL_ROWS} these are wrong: {wrong}"


def digest(value):
    return hashlib.sha256(value).hexdigest()


def both(cursor, statement, arguments):
    for table in ("q", "i"):
        cursor.execute(statement.format(table), arguments)


def compare(server, clients):
    """Quarry against its twin, row by row, then each client's rows against what it was told; the number of rows."""
    columns = "id, n, SHA2(b, 256), SHA2(v, 256), LENGTH(b)"
    quarry, twin = (server.query(f"SELECT {columns} FROM crash.{table} ORDER BY id") for table in ("q", "i"))
    if quarry != twin:
        left, right = {row[0]: row for row in quarry}, {row[0]: row for row in twin}
        wrong = [row for row in sorted(set(left) | set(right)) if left.get(row) != right.get(row)]
        raise AssertionError(
            f"{len(wrong)} rows differ from the InnoDB twin, e.g. "
            + "; ".join(f"{ENGINE} {left.get(row)}, InnoDB {right.get(row)}" for row in wrong[:3])
        )
    checksums = server.query("CHECKSUM TABLE crash.q, crash.i")
    assert checksums[0][1] == checksums[1][1], f"CHECKSUM TABLE differs: {checksums}"
    for table in ("q", "i"):
        verdict = server.query(f"CHECK TABLE crash.{table}")
        assert verdict[-1][-1] == "OK", verdict
    for client in clients:
        client.check(
            {row[0]: (row[1], row[2]) for row in quarry if client.first <= row[0] < client.first + ROWS_PER_CLIENT}
        )
    return len(quarry)


def cycle(server, clients, ddl, pause_s):
    stop = threading.Event()
    workers = [threading.Thread(target=worker.run, args=(server, stop)) for worker in (*clients, ddl)]
    for worker in workers:
        worker.start()
    time.sleep(pause_s)
    server.kill()
    stop.set()
    for worker in workers:
        worker.join()
    for client in (*clients, ddl):
        assert client.failure is None, f"a statement failed: {client.failure}"
    began = time.monotonic()
    server.start()
    recovery_s = time.monotonic() - began
    rows = compare(server, clients)
    ddl.check(server)
    return rows, recovery_s


def total(clients, ddl):
    return sum((client.counts for client in (*clients, ddl)), collections.Counter())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=50, help="how many kills (default %(default)s)")
    parser.add_argument(
        "--clients", type=int, default=6, help="concurrent clients beside the one that does DDL (default %(default)s)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help="longest load before a kill; the moment is random (default %(default)s)",
    )
    parser.add_argument("--seed", default=None, help="of statements, values and moments (default: random, printed)")
    parser.add_argument("--binlog", action="store_true", help="with the binary log on")
    arguments = parser.parse_args()
    seed = arguments.seed or str(secrets.randbelow(10**9))
    print(
        f"kill_under_load: engine {ENGINE}, {arguments.cycles} cycles, {arguments.clients} clients and one for DDL, "
        f"--seed {seed}",
        flush=True,
    )

    options = ["--log-bin=binlog", "--server-id=1"] if arguments.binlog else []
    server = Server("kill-under-load", [*options, "--innodb-lock-wait-timeout=1"]).start()
    server.query("CREATE DATABASE crash")
    for table, engine in (("q", ENGINE), ("i", "InnoDB")):
        server.query(
            f"CREATE TABLE crash.{table} (id INT PRIMARY KEY, n INT, b LONGBLOB, v BLOB, KEY (n), KEY (b(12))) "
            f"ENGINE={engine}"
        )
    clients, ddl, moments = (
        [Client(number, seed) for number in range(arguments.clients)],
        DdlClient(seed),
        random.Random(f"{seed}-moments"),
    )
    ddl.create(server)
    number = 0
    try:
        for number in range(1, arguments.cycles + 1):
            pause_s = 0.2 + moments.random() * (arguments.seconds - 0.2)
            rows, recovery_s = cycle(server, clients, ddl, pause_s)
            counts = total(clients, ddl)
            print(
                f"[{number:3}/{arguments.cycles}] killed after {pause_s:.2f} s, restarted in {recovery_s:.2f} s: "
                f"{rows} rows equal, "
                f"{counts['commits']} commits so far",
                flush=True,
            )
    except Exception as failure:  # noqa: BLE001 - everything must end in the summary
        print(
            f"FAILED in cycle {number}: {failure}\nseed: {seed}; the server's files are kept in "
            f"{server.directory}\n{server.error_log()[-3000:]}",
            flush=True,
        )
        if server.alive():
            server.kill()
        return 1
    counts = total(clients, ddl)
    print(
        f"kill_under_load: {arguments.cycles} kills, 0 differences; "
        + ", ".join(f"{value} {name}" for name, value in sorted(counts.items()))
        + f"; seed {seed}"
    )
    server.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
