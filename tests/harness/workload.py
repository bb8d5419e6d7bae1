"""Transactions for servers that replicate: every kind of change to managed columns, with a model of what must be there.

Each worker has rows of its own, whose contents it knows after every acknowledged commit, and shares `hot` with all
others, where each acknowledged update adds one to a counter. The other tables are only compared between servers.
Thread-safety: a Worker belongs to its thread; a server's connections to the thread that made them.
"""

import collections
import hashlib
import json
import os
import random
import threading

import pymysql

# How much longer than usual the tests of replication run: 1 for `make test`, more by hand.
SCALE = int(os.environ.get("QUARRY_REPLICATION_SCALE", "1"))

SIZES = [None, 0, 1, 50, 3000, 4096, 4097, 9000, 30000, 66000, 300000]
SIZE_WEIGHTS = [2, 2, 1, 3, 4, 2, 3, 6, 4, 2, 1]
HOT_ROWS = 4
# Lost connections, and a server that is going or not ready yet.
GONE = (0, 1047, 1053, 1927, 2003, 2006, 2013, 2014, 2055)
# Deadlock, lock wait. Galera gives 1213 for every lost conflict.
CONFLICTS = (1205, 1213)

TABLES = {
    "doc": "id BIGINT PRIMARY KEY AUTO_INCREMENT, owner INT, n INT, body LONGBLOB{zstd}, note LONGTEXT, meta JSON, "
    "KEY (owner), KEY (body(16))",
    "hot": "id INT PRIMARY KEY, n INT, body MEDIUMBLOB",
    "parent": "id INT PRIMARY KEY, b MEDIUMBLOB",
    "child": "id BIGINT PRIMARY KEY AUTO_INCREMENT, parent INT, t LONGTEXT{lz4}, KEY (parent), "
    "FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE",
    "nokey": "n INT, b LONGBLOB",
}


def create_tables(server, schema, engine, log=True):
    """`log=False`: this server only, nothing of it is replicated."""
    quarry = engine.upper() == "QUARRY"
    options = {"zstd": " CODEC=zstd PART_SIZE=16384" if quarry else "", "lz4": " CODEC=lz4" if quarry else ""}
    connection = server.connect()
    with connection.cursor() as cursor:
        if not log:
            cursor.execute("SET sql_log_bin = 0")
        cursor.execute(f"CREATE DATABASE {schema}")
        for table, definition in TABLES.items():
            cursor.execute(f"CREATE TABLE {schema}.{table} ({definition.format(**options)}) ENGINE={engine}")
        for row in range(HOT_ROWS):
            cursor.execute(f"INSERT INTO {schema}.hot VALUES (%s, 0, REPEAT('h', 9000))", (row,))
    connection.close()


def is_gone(failure):
    """The server went, or is going: a Galera node that is being stopped says so in error 1180."""
    if isinstance(failure, pymysql.err.InterfaceError) or not failure.args:
        return True
    return failure.args[0] in GONE or is_between_groups(failure)


def is_between_groups(failure):
    """A Galera node refused a statement because members come or go just now, or because it is being stopped."""
    number, message, *_ = (*failure.args, "", "")
    return number == 1047 or (number == 1180 and "Primary Component" in message)


class Worker:
    """`connect`: gives a connection to the server it works on. `galera`: it is a node of a cluster, where tables
    without a primary key are no place for multi-master writes; where ids may be taken already when the number of nodes
    changes (1062), and DDL of another node may come in between (1412) or interrupt a statement in its way (1317).
    """

    def __init__(self, number, seed, connect, galera=False, large_bytes=0):
        self.number = number
        self.random = random.Random(f"{seed}-{number}")
        self.connect = connect
        self.galera = galera
        self.large_bytes = large_bytes
        self.model = {}  # id -> (n, body) as of the last acknowledged commit
        self.in_doubt = None  # what it becomes if the commit in flight made it
        self.hot_acknowledged = 0
        self.hot_in_doubt = 0
        self.next_parent = number * 100_000
        self.parents = []
        self.counts = collections.Counter()
        self.failure = None

    # --- life ---------------------------------------------------------------------------------
    def run(self, transactions=None, stop=None):
        """Until `transactions` are done or `stop` is set. A lost connection ends it; any other error is a failure."""
        try:
            connection = self.connect()
            connection.autocommit(False)
            with connection.cursor() as cursor:
                cursor.execute("SET NAMES binary")
                done = 0
                while (transactions is None or done < transactions) and not (stop is not None and stop.is_set()):
                    self.transaction(connection, cursor, done)
                    done += 1
            connection.close()
        except pymysql.err.Error as failure:
            if is_gone(failure):
                self.counts["connections lost"] += 1
            else:
                self.failure = repr(failure)[:2000]
        except OSError:
            self.counts["connections lost"] += 1

    def transaction(self, connection, cursor, number):
        changed, self.hot_in_doubt = dict(self.model), 0
        parents, next_parent = list(self.parents), self.next_parent
        try:
            large = self.large_bytes if number >= 3 else 0
            if large:
                self.insert(cursor, changed, self.random.randbytes(self.large_bytes))
            for _ in range(self.random.choice((1, 1, 2, 3, 5))):
                self.change(cursor, changed)
            if self.random.random() < 0.12:
                connection.rollback()
                self.counts["rollbacks"] += 1
                self.parents, self.hot_in_doubt = parents, 0
                return
            self.in_doubt = changed
            connection.commit()
            self.model, self.in_doubt = changed, None
            self.large_bytes -= large
            self.hot_acknowledged += self.hot_in_doubt
            self.counts["commits"] += 1
        except (pymysql.err.OperationalError, pymysql.err.IntegrityError) as failure:
            if failure.args[0] not in CONFLICTS and not (self.galera and failure.args[0] in (1062, 1317, 1412)):
                raise
            connection.rollback()
            self.in_doubt = None
            self.parents, self.next_parent = parents, next_parent + 50
            self.counts["conflicts"] += 1
        self.hot_in_doubt = 0

    def settle(self, rows):
        """After a crash: `rows` {id: (n, body)} decide whether the commit in flight was made."""
        if self.in_doubt is not None and rows == self.in_doubt != self.model:
            self.model = self.in_doubt
            self.counts["in flight: committed"] += 1
        self.in_doubt = None

    # --- changes ------------------------------------------------------------------------------
    def value(self):
        size = self.random.choices(SIZES, SIZE_WEIGHTS)[0]
        if size is None:
            return None
        size += self.random.randrange(8) if size else 0
        if self.random.random() < 0.3:
            return (b"words that compress well, " * (size // 26 + 1))[:size]
        return self.random.randbytes(size)

    def change(self, cursor, changed):
        kinds = [self.insert, self.insert_many, self.update_body, self.append, self.update_many, self.upsert]
        kinds += [self.delete, self.family, self.savepoint, self.hot, self.copy]
        weights = [5, 3, 5, 3, 3, 3, 2, 3, 2, 3, 1]
        if not self.galera:
            kinds.append(self.no_key)
            weights.append(2)
        self.random.choices(kinds, weights)[0](cursor, changed)

    def own(self, changed):
        return self.random.choice(sorted(changed)) if changed else None

    def insert(self, cursor, changed, body=None):
        body = self.value() if body is None else body
        n, note = self.random.randrange(100), self.note()
        meta = json.dumps({"worker": self.number, "pad": "m" * self.random.choice((0, 10, 6000))})
        cursor.execute(
            "INSERT INTO doc (owner, n, body, note, meta) VALUES (%s, %s, %s, %s, %s)",
            (self.number, n, body, note, meta),
        )
        changed[cursor.lastrowid] = (n, body)

    def note(self):
        return self.random.choice((None, "", "short", "a longer note, " * 700))

    def insert_many(self, cursor, changed):
        rows = [(self.number, self.random.randrange(100), self.value()) for _ in range(4)]
        cursor.execute(
            "INSERT INTO doc (owner, n, body) VALUES " + ", ".join(["(%s, %s, %s)"] * len(rows)),
            [cell for row in rows for cell in row],
        )
        cursor.execute("SELECT id FROM doc WHERE owner = %s", (self.number,))
        ids = [row for (row,) in cursor.fetchall() if row not in changed]
        cursor.execute("SELECT id, n, body FROM doc WHERE id IN %s", (ids,))
        new = {row: (n, body) for row, n, body in cursor.fetchall()}
        if sorted(new.values(), key=repr) != sorted(((n, body) for _, n, body in rows), key=repr):
            raise AssertionError(f"worker {self.number}: inserted {len(rows)} rows, found {len(new)}, or others")
        changed.update(new)

    def update_body(self, cursor, changed):
        row, body = self.own(changed), self.value()
        if row is not None:
            cursor.execute("UPDATE doc SET body = %s, note = %s WHERE id = %s", (body, self.note(), row))
            changed[row] = (changed[row][0], body)

    def append(self, cursor, changed):
        row, more = self.own(changed), self.random.randbytes(self.random.choice((1, 100, 5000)))
        if row is not None:
            cursor.execute("UPDATE doc SET body = CONCAT(body, %s) WHERE id = %s", (more, row))
            n, body = changed[row]
            changed[row] = (n, None if body is None else body + more)

    def update_many(self, cursor, changed):
        """Several rows in one statement; half of them leave the values alone."""
        third = self.random.randrange(3)
        if self.random.random() < 0.5:
            cursor.execute("UPDATE doc SET n = n + 3 WHERE owner = %s AND n %% 3 = %s", (self.number, third))
            new = {row: (n + 3, body) for row, (n, body) in changed.items() if n % 3 == third}
        else:
            cursor.execute(
                "UPDATE doc SET body = REVERSE(body), note = UPPER(note) WHERE owner = %s AND n %% 3 = %s",
                (self.number, third),
            )
            new = {
                row: (n, None if body is None else body[::-1]) for row, (n, body) in changed.items() if n % 3 == third
            }
        changed.update(new)

    def upsert(self, cursor, changed):
        row, n, body = self.own(changed), self.random.randrange(100), self.value()
        if row is None:
            return
        if self.random.random() < 0.5:
            # Every column: of those left out the server, with any engine, forgets to log the defaults in a MINIMAL image.
            cursor.execute(
                "REPLACE INTO doc (id, owner, n, body, note, meta) VALUES (%s, %s, %s, %s, NULL, NULL)",
                (row, self.number, n, body),
            )
        else:
            cursor.execute(
                "INSERT INTO doc (id, owner, n, body) VALUES (%s, %s, %s, %s) "
                "ON DUPLICATE KEY UPDATE n = VALUES(n), body = VALUES(body)",
                (row, self.number, n, body),
            )
        changed[row] = (n, body)

    def delete(self, cursor, changed):
        if self.random.random() < 0.3:
            cursor.execute("DELETE FROM doc WHERE owner = %s AND n > 90", (self.number,))
            for row in [row for row, (n, _) in changed.items() if n > 90]:
                del changed[row]
        elif changed:
            row = self.own(changed)
            cursor.execute("DELETE FROM doc WHERE id = %s", (row,))
            del changed[row]

    def family(self, cursor, _changed):
        """Cascades happen inside InnoDB: no event speaks of the children."""
        if self.parents and self.random.random() < 0.6:
            parent = self.random.choice(self.parents)
            if self.random.random() < 0.5:
                cursor.execute("DELETE FROM parent WHERE id = %s", (parent,))
                self.parents.remove(parent)
            else:
                self.next_parent += 1
                cursor.execute("UPDATE parent SET id = %s WHERE id = %s", (self.next_parent, parent))
                self.parents[self.parents.index(parent)] = self.next_parent
            return
        self.next_parent += 1
        cursor.execute("INSERT INTO parent VALUES (%s, %s)", (self.next_parent, self.value()))
        for _ in range(3):
            cursor.execute("INSERT INTO child (parent, t) VALUES (%s, %s)", (self.next_parent, self.note()))
        self.parents.append(self.next_parent)

    def savepoint(self, cursor, changed):
        cursor.execute("SAVEPOINT s")
        self.insert(cursor, dict(changed))
        cursor.execute("UPDATE doc SET body = %s WHERE owner = %s", (self.value(), self.number))
        cursor.execute("ROLLBACK TO SAVEPOINT s")
        self.update_body(cursor, changed)

    def hot(self, cursor, _changed):
        """Rows that every worker fights for."""
        cursor.execute(
            "UPDATE hot SET n = n + 1, body = %s WHERE id = %s",
            (self.random.randbytes(self.random.choice((50, 5000, 20000))), self.random.randrange(HOT_ROWS)),
        )
        self.hot_in_doubt += 1

    def copy(self, cursor, changed):
        """INSERT ... SELECT: what is copied gets extents of its own."""
        row = self.own(changed)
        if row is None:
            return
        cursor.execute("INSERT INTO doc (owner, n, body) SELECT owner, n, body FROM doc WHERE id = %s", (row,))
        changed[cursor.lastrowid] = changed[row]

    def no_key(self, cursor, _changed):
        """Few rows: without a key each changed row is searched for."""
        n = self.random.randrange(20)
        cursor.execute("DELETE FROM nokey WHERE n = %s", (n,))
        cursor.execute("INSERT INTO nokey VALUES (%s, %s)", (n, self.value()))
        cursor.execute("UPDATE nokey SET b = CONCAT('x', b) WHERE n = %s", ((n + 1) % 20,))


class Load:
    """Workers in threads of their own."""

    def __init__(self, workers):
        self.workers = workers
        self.stop = threading.Event()
        self.threads = []

    def begin(self, transactions=None):
        self.stop.clear()
        self.threads = [
            threading.Thread(target=worker.run, kwargs={"transactions": transactions, "stop": self.stop})
            for worker in self.workers
        ]
        for thread in self.threads:
            thread.start()
        return self

    def end(self, stop=True):
        """Waits for the workers, after telling them to stop unless they were given a number of transactions."""
        if stop:
            self.stop.set()
        for thread in self.threads:
            thread.join()
        for worker in self.workers:
            assert worker.failure is None, f"worker {worker.number}: {worker.failure}"

    def ended(self):
        """Nobody works any more: what is waited for would not come."""
        return not any(thread.is_alive() for thread in self.threads)

    def counts(self):
        return sum((worker.counts for worker in self.workers), collections.Counter())

    def commits(self):
        return self.counts()["commits"]

    def large_bytes(self):
        """Of large values that are yet to be committed."""
        return sum(worker.large_bytes for worker in self.workers)


# --- looking at servers ---------------------------------------------------------------------------------------------
def tables_of(server, schema):
    return [
        name
        for (name,) in server.query(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE' "
            "ORDER BY 1",
            (schema,),
        )
    ]


def digests(server, schema, table):
    """Every row as one sorted list: plain columns as they are, values by length and SHA-256."""
    columns = server.query(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
        "ORDER BY ordinal_position",
        (schema, table),
    )
    parts = [
        f"CONCAT(LENGTH(`{name}`), ':', SHA2(`{name}`, 256))" if kind.endswith(("blob", "text")) else f"`{name}`"
        for name, kind in columns
    ]
    return sorted(server.query(f"SELECT {', '.join(parts)} FROM `{schema}`.`{table}`"), key=repr)


def compare(servers, schema, tables=None):
    """The same tables with the same rows, by CHECKSUM TABLE and by SHA-256 of every value, on all servers; CHECK TABLE
    clean everywhere. The number of rows."""
    first, *others = servers
    names = tables or tables_of(first, schema)
    assert names, f"schema {schema} of {first.name} has no tables"
    rows = 0
    for other in others:
        assert tables or tables_of(other, schema) == names, f"tables of {schema} in {other.name}"
    for table in names:
        expected, checksum = digests(first, schema, table), checksum_of(first, schema, table)
        rows += len(expected)
        for other in others:
            found = digests(other, schema, table)
            if found != expected:
                wrong = sorted(set(map(repr, found)) ^ set(map(repr, expected)))
                raise AssertionError(
                    f"{schema}.{table}: {first.name} has {len(expected)} rows, {other.name} {len(found)}; differing, "
                    f"e.g. {wrong[:3]}"
                )
            assert checksum_of(other, schema, table) == checksum, f"CHECKSUM TABLE {schema}.{table} in {other.name}"
        for server in servers:
            verdict = server.query(f"CHECK TABLE `{schema}`.`{table}`")
            assert verdict[-1][-1] == "OK", f"{server.name}: {verdict}"
    return rows


def checksum_of(server, schema, table):
    return server.query(f"CHECKSUM TABLE `{schema}`.`{table}`")[0][1]


def check_models(server, schema, workers, hot_before=0):
    """Every worker's rows are exactly as acknowledged; the shared counters, `hot_before` before these workers began,
    count every acknowledged update."""
    for worker in workers:
        rows = {
            row: (n, body)
            for row, n, body in server.query(f"SELECT id, n, body FROM {schema}.doc WHERE owner = %s", (worker.number,))
        }
        worker.settle(rows)
        wrong = sorted(row for row in set(rows) | set(worker.model) if rows.get(row) != worker.model.get(row))
        assert not wrong, (
            f"{server.name}, worker {worker.number}: {len(wrong)} of {len(worker.model)} rows are not as acknowledged: "
            + "; ".join(
                f"id {row}: is {show(rows.get(row))}, acknowledged {show(worker.model.get(row))}" for row in wrong[:3]
            )
        )
    least = hot_before + sum(worker.hot_acknowledged for worker in workers)
    most = least + sum(worker.hot_in_doubt for worker in workers)
    (total,) = server.query(f"SELECT SUM(n) FROM {schema}.hot")[0]
    assert least <= total <= most, (
        f"{server.name}: {total} updates of hot rows, acknowledged {least}, in flight {most - least}"
    )
    # What was in flight is decided now, once and for all: the next look must see the same.
    made = total - least
    for worker in workers:
        worker.hot_acknowledged += min(made, worker.hot_in_doubt)
        made -= min(made, worker.hot_in_doubt)
        worker.hot_in_doubt = 0


def show(row):
    if row is None:
        return "absent"
    n, body = row
    return f"n={n} body={'NULL' if body is None else f'{len(body)} bytes {hashlib.sha256(body).hexdigest()[:10]}'}"
