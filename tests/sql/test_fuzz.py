"""Random small statements on a table of the engine under test and on its twin; the seed is printed and can be given.

QUARRY_TEST_SEED=<n> repeats a run; QUARRY_TEST_STATEMENTS=<n> makes it longer.
"""

import os
import random

import pytest

from harness.values import SEED, payload, text

STATEMENTS = int(os.environ.get("QUARRY_TEST_STATEMENTS", "2500"))

TABLES = {
    "plain": "CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT, s BLOB, KEY (n)) ENGINE={e}",
    "indexed": "CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT, s BLOB, KEY (n), KEY b (b(15)), "
    "UNIQUE v (v(40)), KEY s (s(5), n)) ENGINE={e}",
    "no_key": "CREATE TABLE t (id INT, n INT, b LONGBLOB, v LONGTEXT, s BLOB) ENGINE={e}",
    "partitioned": "CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT, s BLOB, KEY (n)) ENGINE={e} "
    "PARTITION BY HASH (id) PARTITIONS 3",
    "generated": "CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT, s BLOB, l INT AS (LENGTH(v)) "
    "VIRTUAL, KEY (n), KEY (l)) ENGINE={e}",
}
SIZES = [0, 1, 30, 64, 255, 1000, 4032, 4095, 4096, 4097, 4160, 8000, 12000, 30000, 65535]


class Statements:
    """An endless stream of (sql, args) for one table."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def blob(self, limit=65535):
        if self.random.random() < 0.08:
            return None
        size = min(limit, self.random.choice(SIZES) + self.random.choice((0, 0, 0, -1, 1, 7)))
        return payload(self.random.randrange(40), max(size, 0))

    def words(self):
        return (
            None
            if self.random.random() < 0.08
            else text(self.random.randrange(60), max(0, self.random.choice(SIZES) - 1))
        )

    def row_id(self):
        return self.random.randrange(60)

    def condition(self):
        return self.random.choice(
            [
                lambda: ("id = %s", (self.row_id(),)),
                lambda: ("id BETWEEN %s AND %s", (self.row_id(), self.row_id())),
                lambda: ("n = %s", (self.random.randrange(8),)),
                lambda: ("b = %s", (self.blob(),)),
                lambda: ("b > %s AND n < 4", (payload(self.random.randrange(40), 20),)),
                lambda: ("v LIKE %s", (text(self.random.randrange(60), 1).replace("%", "") + "%",)),
                lambda: ("LENGTH(b) > %s", (self.random.choice(SIZES),)),
                lambda: ("b IS NULL OR s IS NULL", ()),
                lambda: ("id IN (%s, %s, %s)", (self.row_id(), self.row_id(), self.row_id())),
            ]
        )()

    def assignment(self):
        return self.random.choice(
            [
                lambda: ("b = %s", (self.blob(),)),
                lambda: ("v = %s", (self.words(),)),
                lambda: ("b = CONCAT(LEFT(b, 50000), %s)", (payload(self.random.randrange(40), 100),)),
                lambda: ("b = v, v = NULL", ()),
                lambda: ("s = LEFT(b, 60000)", ()),
                lambda: ("n = n + 1", ()),
                lambda: ("b = b", ()),
                lambda: ("s = %s, b = REVERSE(b)", (self.blob(),)),
                lambda: ("n = %s, b = s, s = %s", (self.random.randrange(8), self.blob())),
                lambda: ("id = id + %s", (self.random.choice((1, 60, -7)),)),
            ]
        )()

    def next(self):
        kinds = {
            self.insert: 24,
            self.update: 26,
            self.delete: 8,
            self.replace: 8,
            self.on_duplicate: 6,
            self.insert_select: 4,
            self.select: 18,
            self.transaction: 8,
            self.multi_update: 3,
            self.other: 1,
        }
        return self.random.choices(list(kinds), list(kinds.values()))[0]()

    def insert(self):
        count = self.random.choice((1, 1, 1, 3, 6))
        values = [
            item
            for _ in range(count)
            for item in (self.row_id(), self.random.randrange(8), self.blob(), self.words(), self.blob())
        ]
        kind = self.random.choice(("INSERT", "INSERT IGNORE"))
        return f"{kind} INTO t (id, n, b, v, s) VALUES " + ", ".join(["(%s, %s, %s, %s, %s)"] * count), values

    def replace(self):
        sql, values = self.insert()
        return sql.replace("INSERT IGNORE", "INSERT").replace("INSERT", "REPLACE", 1), values

    def on_duplicate(self):
        sql, values = self.insert()
        change, arguments = self.assignment()
        return f"{sql.replace(' IGNORE', '')} ON DUPLICATE KEY UPDATE {change}", [*values, *arguments]

    def insert_select(self):
        condition, arguments = self.condition()
        return (
            f"INSERT IGNORE INTO t (id, n, b, v, s) SELECT id + 30, n, v, v, s FROM t WHERE {condition} ORDER BY "
            f"id, n, b, v, s LIMIT 5",
            arguments,
        )

    def update(self):
        change, arguments = self.assignment()
        condition, more = self.condition()
        kind = self.random.choice(("UPDATE", "UPDATE IGNORE"))
        return f"{kind} t SET {change} WHERE {condition} ORDER BY id, n, b, v, s LIMIT 20", [*arguments, *more]

    def multi_update(self):
        return "UPDATE t a JOIN t c ON a.n = c.id SET a.b = c.b, a.s = LEFT(c.v, 60000) WHERE a.id < %s", (
            self.row_id(),
        )

    def delete(self):
        condition, arguments = self.condition()
        return f"DELETE FROM t WHERE {condition} ORDER BY id, n, b, v, s LIMIT 6", arguments

    def select(self):
        condition, arguments = self.condition()
        columns = self.random.choice(
            (
                "*",
                "id, b",
                "id, MD5(v), s",
                "id, SUBSTRING(b, 4000, 200), LENGTH(v)",
                "n, COUNT(*), MAX(b), MIN(v)",
                "DISTINCT b",
            )
        )
        group = " GROUP BY n" if columns.startswith("n,") else ""
        return f"SELECT {columns} FROM t WHERE {condition}{group}", arguments

    def transaction(self):
        return (
            self.random.choice(("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "ROLLBACK TO a", "BEGIN", "COMMIT")),
            None,
        )

    def other(self):
        return (
            self.random.choice(
                (
                    "FLUSH TABLES",
                    "ANALYZE TABLE t",
                    "CHECKSUM TABLE t",
                    "ALTER TABLE t FORCE",
                    # COPY: after an instant one, CHECK TABLE of the twin crashes InnoDB 10.11.18 now and then.
                    "ALTER TABLE t ADD COLUMN x LONGBLOB DEFAULT REPEAT('x', 6000), ALGORITHM=COPY",
                    "ALTER TABLE t DROP COLUMN IF EXISTS x",
                    "TRUNCATE TABLE t",
                    "ALTER TABLE t ENGINE={e}",
                )
            ),
            None,
        )


@pytest.mark.parametrize("kind", TABLES)
def test_random_statements(twin, kind):
    statements = Statements(f"{SEED}-{kind}")
    twin.run("SET max_sort_length = 70000, sort_buffer_size = 16000000")
    twin.run(TABLES[kind])
    counts = {"ok": 0, "error": 0}
    for number in range(STATEMENTS // len(TABLES)):
        sql, args = statements.next()
        try:
            outcome = twin.run(sql, args or None, error="any")
            counts["error" if outcome.error else "ok"] += 1
            if number % 100 == 99:
                twin.check("t")
        except AssertionError as failure:
            raise AssertionError(f"statement {number} of QUARRY_TEST_SEED={SEED}, table {kind}: {failure}") from failure
    twin.run("COMMIT")
    twin.check()
    print(f"{kind}: {counts}")
    assert counts["ok"] > counts["error"], f"too few statements did anything: {counts}"
