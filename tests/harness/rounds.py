"""Random rounds of statements for servers that replicate, on a QUARRY schema and on its InnoDB twin.

The tables are those whose rows somebody looks at on the way: history, triggers, stored columns, whole-value UNIQUE,
partitions, no key. The statements depend on the seed alone. Thread-safety: externally synchronised.
"""

import random

from harness.lookers import compare_schemas, value, words
from harness.values import SEED

PLAIN = "id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT CHARACTER SET latin1"
# name: columns, what only a replica has behind them, what follows
TABLES = {
    "plain": (
        f"{PLAIN}, KEY (n)",
        ", h CHAR(32) AS (MD5(b)) STORED, size INT AS (LENGTH(v)) VIRTUAL, more LONGBLOB DEFAULT 'more', KEY (size)",
        "",
    ),
    # No column of the replica's own: the hidden column of the hash is logged, and stands last.
    "uniq": (f"{PLAIN}, u TEXT, len INT AS (LENGTH(b)) STORED, UNIQUE (u)", "", ""),
    "keyed": (
        f"{PLAIN}, len INT AS (LENGTH(b)) STORED",
        ", h CHAR(32) AS (MD5(b)) STORED, more LONGBLOB DEFAULT 'more'",
        "",
    ),
    "checked": (PLAIN, ", CHECK (b IS NULL OR n < 100000 OR LENGTH(b) <> 64), CHECK (LENGTH(v) <> 77777)", ""),
    "hist": (PLAIN, "", "WITH SYSTEM VERSIONING"),
    "moved": (f"{PLAIN}, len INT AS (LENGTH(b)) STORED", "", "PARTITION BY HASH (id) PARTITIONS 2"),
    "nokey": (PLAIN.replace(" PRIMARY KEY", ""), "", ""),
}
TRIGGERED = ("plain", "hist")
ID_RANGE = 16


def definitions(engine, replica):
    """CREATE statements; on a replica with its own columns, and with triggers that run for row events."""
    for name, (columns, more, behind) in TABLES.items():
        yield f"CREATE TABLE {name} ({columns}{more if replica else ''}) ENGINE={engine} {behind}"
    if not replica:
        return
    yield (
        "CREATE TABLE copy (what VARCHAR(9), id INT, b LONGBLOB, v LONGTEXT CHARACTER SET latin1, h CHAR(32), KEY"
        f" (id)) ENGINE={engine}"
    )
    for name in TRIGGERED:
        for event, row, other in (("INSERT", "NEW", "NEW"), ("UPDATE", "OLD", "NEW"), ("DELETE", "OLD", "OLD")):
            yield (
                f"CREATE TRIGGER {name}_{event} AFTER {event} ON {name} FOR EACH ROW INSERT INTO copy VALUES ('{name}',"
                f" {row}.id, {row}.b, {other}.v, MD5({other}.b))"
            )


def create(server, schemas, replica):
    """The tables in both schemas ({name: engine}) of this server alone."""
    for schema, engine in schemas.items():
        connection = server.connect(schema)
        with connection.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            for sql in definitions(engine, replica):
                cursor.execute(sql)
        connection.close()


class Rounds:
    """`pair`: a LoggedPair whose tables are there; `tables`: which of them change."""

    def __init__(self, pair, seed=SEED, tables=tuple(TABLES)):
        self.pair, self.tables = pair, tables
        self.random = random.Random(f"rounds-{seed}")

    def run(self, statements):
        """So many statements, alone and in transactions."""
        left = statements
        while left > 0:
            count = self.random.choice((1, 1, 3, 5))
            if count > 1:
                self.pair.run("BEGIN")
            for _ in range(count):
                self.pair.run(*self.statement())
            if count > 1:
                self.pair.run(self.random.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK")))
            left -= count

    def statement(self):
        """(sql, arguments)"""
        name = self.random.choice(self.tables)
        low = self.random.randrange(ID_RANGE)
        where = self.random.choice((f"id = {low}", f"id BETWEEN {low} AND {low + 5}", f"MOD(n, 4) = {low % 4}"))
        kinds = [
            (self.insert, 4),
            (lambda name: (f"UPDATE {name} SET n = n + 1 WHERE {where}", None), 5),
            (lambda name: (f"UPDATE {name} SET b = %s WHERE {where}", (self.value(),)), 2),
            (lambda name: (f"UPDATE {name} SET v = CONCAT(LEFT(v, 90), 'x'), n = n + 3 WHERE {where}", None), 2),
            (lambda name: (f"DELETE FROM {name} WHERE {where}", None), 2),
        ]
        if name != "nokey":
            kinds += [(self.replace, 2), (self.on_duplicate, 3), (self.select, 1)]
        if name == "moved":
            kinds.append(
                (lambda name: (f"UPDATE IGNORE {name} SET id = id + 51 WHERE {where} AND id < 50 ORDER BY id", None), 2)
            )
        make = self.random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        return make(name)

    def value(self):
        return value(self.random.randrange(9))

    def row(self, low, name):
        cells = [low, low % 7, self.value(), words(self.random.randrange(9))]
        return cells + ([f"{low}" + "u" * (low * 700)] if name == "uniq" else [])

    @staticmethod
    def columns(name):
        return "id, n, b, v, u" if name == "uniq" else "id, n, b, v"

    def insert(self, name, verb="INSERT IGNORE", tail=""):
        rows = [self.row(low, name) for low in self.random.sample(range(ID_RANGE), self.random.choice((1, 3, 6)))]
        marks = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
        return f"{verb} INTO {name} ({self.columns(name)}) VALUES {marks}{tail}", [cell for row in rows for cell in row]

    def replace(self, name):
        return self.insert(name, "REPLACE")

    def on_duplicate(self, name):
        change = self.random.choice(("n = n + 10", "b = VALUES(b), n = 5", "v = VALUES(v)"))
        return self.insert(name, "INSERT", f" ON DUPLICATE KEY UPDATE {change}")

    def select(self, name):
        source = self.random.choice(("plain", "hist", "moved"))
        more = ", CONCAT('s', id)" if name == "uniq" else ""
        sql = (
            f"REPLACE INTO {name} ({self.columns(name)}) SELECT id + 20, n, b, v{more} FROM {source} ORDER BY id"
            " LIMIT 3"
        )
        return sql, None


def compare_everywhere(pair, servers, logs):
    """Every table equals its twin on every server; no log holds a head. `logs`: {server: stems of its logs}."""
    for server in servers:
        for stem in logs[server]:
            server.query("FLUSH BINARY LOGS" if stem == "binlog" else "FLUSH RELAY LOGS")
            assert pair.search.check_logs(server, stem=stem) > 0, f"{server.name} has no {stem}"
        compare_schemas(server, pair.engines)
