"""Backups taken while others write and change definitions; what is restored is of one moment, and the binlog leads from
there to the very state of the source.

Each writer's transactions change a QUARRY table and its InnoDB twin alike, so that any moment shows both equal; one
thread runs DDL of every kind without a pause. The witnesses at the end say that there was something to get wrong.
"""

import collections
import random
import shutil
import threading

import pymysql
from drill import binlogs_after, check_all, checksums, increments_under_ddl, replay
from harness.values import SEED
from harness.waiting import wait_for
from quarry_server.server import HOME_NAME

WRITERS = 3
BINLOG = ["--log-bin", "--server-id=1", "--binlog-format=ROW", "--quarry-segment-size=2M", "--gtid-domain-id=7"]
SIZES = [0, 100, 5000, 20000, 70000, 300000]


class Load:
    """Writers and one thread of DDL, from `with` to its end."""

    def __init__(self, server):
        self.server = server
        self.stop = threading.Event()
        self.counts = collections.Counter()
        self.failures = []
        self.threads = [threading.Thread(target=self.guarded, args=(self.write, number)) for number in range(WRITERS)]
        self.threads.append(threading.Thread(target=self.guarded, args=(self.define, 99)))

    @staticmethod
    def prepare(server):
        for schema, engine in (("q", "QUARRY"), ("i", "InnoDB")):
            server.query(f"CREATE DATABASE {schema}")
            server.query(
                f"CREATE TABLE {schema}.t (id BIGINT PRIMARY KEY, w INT, b LONGBLOB, s LONGTEXT, KEY (b(30))) "
                f"ENGINE={engine}"
            )
        server.query("CREATE DATABASE ddl")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exception):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert exception[0] is not None or not self.failures, self.failures

    def guarded(self, function, number):
        try:
            connection = self.server.connect()
            with connection.cursor() as cursor:
                cursor.execute("SET NAMES binary")
                function(number, random.Random(f"{SEED}-{number}-{id(self)}"), connection, cursor)
            connection.close()
        except Exception as failure:  # pylint: disable=broad-except
            self.failures.append(repr(failure)[:1000])

    def write(self, number, draw, connection, cursor):
        connection.autocommit(False)
        cursor.execute("SELECT COALESCE(MAX(id), %s) FROM q.t WHERE w = %s", (number * 10**9, number))
        last = cursor.fetchall()[0][0]
        while not self.stop.is_set():
            kind = draw.choice(["insert", "insert", "update", "delete", "rollback"])
            value, text = draw.randbytes(draw.choice(SIZES)), "t" * draw.choice(SIZES)
            row = draw.randrange(number * 10**9, last + 1)
            for schema in ("q", "i"):
                if kind in ("insert", "rollback"):
                    cursor.execute(f"INSERT INTO {schema}.t VALUES (%s, %s, %s, %s)", (last + 1, number, value, text))
                elif kind == "update":
                    cursor.execute(
                        f"UPDATE {schema}.t SET b = %s WHERE w = %s AND id >= %s ORDER BY id LIMIT 2", (value, number, row)
                    )
                else:
                    cursor.execute(
                        f"DELETE FROM {schema}.t WHERE w = %s AND id >= %s ORDER BY id LIMIT 1", (number, row)
                    )
            if kind == "rollback":
                connection.rollback()
            else:
                connection.commit()
            last += kind == "insert"
            self.counts[kind] += 1

    def define(self, _, draw, __, cursor):
        """Tables that live for a while, each with values that say which it is."""
        number = 0
        while not self.stop.is_set():
            number += 1
            table, other = f"ddl.t{number % 5}", f"ddl.u{number % 5}"
            kind = draw.choice(["create", "drop", "rename", "truncate", "copy", "rebuild", "partition", "prefix"])
            statement = {
                "create": f"CREATE TABLE IF NOT EXISTS {table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY",
                "drop": f"DROP TABLE IF EXISTS {table}",
                "rename": f"RENAME TABLE {table} TO {other}x, {other} TO {table}, {other}x TO {other}",
                "truncate": f"TRUNCATE {table}",
                "copy": f"ALTER TABLE {table} FORCE, ALGORITHM=COPY",
                "rebuild": f"ALTER TABLE {table} FORCE, ALGORITHM=INPLACE",
                "partition": f"ALTER TABLE {table} PARTITION BY HASH (id) PARTITIONS 2",
                "prefix": f"ALTER TABLE {table} PREFIX_SIZE={draw.choice([0, 100, 700])}",
            }[kind]
            try:
                cursor.execute(statement)
                self.counts[kind] += 1
            except pymysql.err.Error as failure:
                # The table may not be there, or be there already; a rebuild may be refused.
                if failure.args[0] not in (1050, 1146, 1845, 1846):
                    raise
            for target in (table, other):
                cursor.execute(f"CREATE TABLE IF NOT EXISTS {target} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
                for row in range(2):
                    cursor.execute(
                        f"REPLACE INTO {target} (id, b) VALUES (%s, %s)", (draw.randrange(20), draw.randbytes(9000 + row))
                    )


def restored(own_server, drill, name, backup):
    copy = own_server(name, *BINLOG, start=False)
    drill.restore_to(copy, backup)
    copy.start()
    found = checksums(copy)
    assert found["q", "t"] == found["i", "t"], "the QUARRY table and its twin are not of one moment"
    check_all(copy)
    return copy


@increments_under_ddl
def test_full_incrementals_and_point_in_time(own_server, drill):
    server = own_server("backup-load", *BINLOG)
    Load.prepare(server)
    with Load(server) as load:
        drill.backup(server, "full")
    with Load(server) as more:
        drill.backup(server, "one", base="full")
        server.query("FLUSH BINARY LOGS")
    # The point in time to which a server will be brought later on.
    mark = checksums(server)
    mark_file, mark_position = server.query("SHOW MASTER STATUS")[0][:2]
    with Load(server) as last:
        drill.backup(server, "two", base="one")
        server.query("FLUSH BINARY LOGS")
    final = checksums(server)
    counts = load.counts + more.counts + last.counts
    print(f"under load: {dict(counts)}")
    assert counts["insert"] > 20 and all(counts[kind] for kind in ("update", "delete", "create", "drop", "rebuild")), counts
    shutil.copytree(drill.path("full"), drill.path("chain"))
    # The full backup alone, and the binlog up to the mark.
    drill.prepare("full")
    copy = restored(own_server, drill, "backup-load-mark", "full")
    first, start, names = binlogs_after(server, drill.catalog("full")["binlog"])
    names = [name for name in names if name.rpartition("/")[2] <= mark_file]
    replay(names, start, copy, f"--stop-position={mark_position}")
    assert first and checksums(copy) == mark
    copy.stop()
    # The chain, and all of the binlog.
    drill.prepare("chain")
    drill.prepare("chain", increment="one")
    drill.prepare("chain", increment="two")
    copy = restored(own_server, drill, "backup-load-final", "chain")
    _, start, names = binlogs_after(server, drill.catalog("two")["binlog"])
    replay(names, start, copy)
    assert checksums(copy) == final
    check_all(copy)
    # Nothing that the rows need is taken for what a dropped table left behind.
    copy.restart()
    assert checksums(copy) == final


def test_each_kind_of_ddl_between_the_backups_moment_and_the_copy(own_server, drill):
    """The segments are copied when all locks are gone: the worst that DDL can do happens just then."""
    server = own_server("backup-ddl")
    server.query("CREATE DATABASE d")
    tables = ("dropped", "truncated", "rebuilt", "copied", "renamed", "exchanged", "converted")
    for table in tables:
        server.query(f"CREATE TABLE d.{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        server.query(f"INSERT INTO d.{table} SELECT seq, REPEAT(MD5(CONCAT('{table}', seq)), 900) FROM d.seq_1_to_9")
    server.query(
        "CREATE TABLE d.parts (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY RANGE (id) "
        "(PARTITION p0 VALUES LESS THAN (100), PARTITION p1 VALUES LESS THAN MAXVALUE)"
    )
    server.query("INSERT INTO d.parts SELECT seq * 20, REPEAT(MD5(seq), 900) FROM d.seq_1_to_9")
    before = checksums(server)
    after_end = drill.path("after-end")
    statements = [
        "DROP TABLE d.dropped",
        "TRUNCATE d.truncated",
        "ALTER TABLE d.rebuilt FORCE, ALGORITHM=INPLACE",
        "ALTER TABLE d.copied FORCE, ALGORITHM=COPY",
        "RENAME TABLE d.renamed TO d.other",
        "CREATE TABLE d.renamed LIKE d.other",
        "INSERT INTO d.renamed VALUES (1, REPEAT('not the one', 9000))",
        "ALTER TABLE d.parts EXCHANGE PARTITION p0 WITH TABLE d.exchanged",
        "ALTER TABLE d.converted ENGINE=InnoDB",
        "UPDATE d.rebuilt SET b = REPEAT('later', 9000)",
    ]
    after_end.write_text(";\n".join(statements) + ";\n")
    drill.backup_then(server, "full", f"{drill.client(server)} < {after_end}")
    assert checksums(server) != before
    drill.prepare("full")
    copy = own_server("backup-ddl-copy", start=False)
    drill.restore_to(copy, "full")
    server.stop()
    copy.start()
    assert checksums(copy) == before
    check_all(copy)
    # The sweep of dropped tables looks at every store, and lets those be.
    dropped = copy.store_of("d", "dropped")
    copy.query("DROP TABLE d.dropped")
    home = copy.datadir / HOME_NAME
    wait_for("the sweep", lambda: not list(home.glob(f"*/{dropped}")) and not list((home / "trash").iterdir()))
    before.pop(("d", "dropped"))
    assert checksums(copy) == before


def test_a_prepared_transaction_is_decided_after_the_restore(own_server, drill):
    server = own_server("backup-xa", *BINLOG)
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t VALUES (1, REPEAT('a', 50000)), (2, REPEAT('b', 50000))")
    open_too = server.connect(autocommit=False)
    with open_too.cursor() as cursor:
        cursor.execute("UPDATE d.t SET b = REPEAT('not committed', 5000) WHERE id = 2")
    prepared = server.connect()
    with prepared.cursor() as cursor:
        for sql in (
            "XA START 'x'",
            "INSERT INTO d.t VALUES (3, REPEAT('c', 60000))",
            "UPDATE d.t SET b = REPEAT('d', 70000) WHERE id = 1",
            "XA END 'x'",
            "XA PREPARE 'x'",
        ):
            cursor.execute(sql)
    drill.backup(server, "full")
    drill.prepare("full")
    server.kill()
    for decision, rows in (("COMMIT", {1: (b"d", 70000), 2: (b"b", 50000), 3: (b"c", 60000)}),
                           ("ROLLBACK", {1: (b"a", 50000), 2: (b"b", 50000)})):
        copy = own_server(f"backup-xa-{decision.lower()}", *BINLOG, start=False)
        drill.restore_to(copy, "full")
        copy.start()
        assert len(copy.query("XA RECOVER")) == 1
        copy.query(f"XA {decision} 'x'")
        assert copy.query("SELECT id, b FROM d.t") == tuple((row, byte * size) for row, (byte, size) in rows.items())
        check_all(copy)
        copy.stop()
