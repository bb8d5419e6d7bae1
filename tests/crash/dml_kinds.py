"""What kill_in_dml cuts off: transactions of every kind, and what each of them makes of the rows.

A transaction says beforehand which rows it changes and what their values are then (`effects`), so whatever is found
after a crash is either all of it or nothing of it. Values are random bytes; what the server computes (CONCAT, INSERT
... SELECT, cascades) is computed here too.
"""

import random
from typing import NamedTuple

GONE = object()  # the value of a row that is not there
SLOTS = 14  # rows of a client in each table; when they are all taken, some are deleted
KEPT_ROWS = 4  # of those, where others must make room
IDS_PER_CLIENT = 1000
KIB, MIB = 1 << 10, 1 << 20
SIZES_BYTES = (0, 100, 4096, 4097, 9000, 30000, 65536, 66000, 140000, 200000)

# {q}: options of Quarry's, empty for the control run with InnoDB.
TABLES = {
    "plain": "CREATE TABLE plain (id INT PRIMARY KEY, b LONGBLOB, KEY (b(12))) ENGINE={e}",
    "packed": "CREATE TABLE packed (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} {q}",
    "atoms": "CREATE TABLE atoms (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} {q}",
    "parts": "CREATE TABLE parts (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 3",
    "parent": "CREATE TABLE parent (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
    "child": (
        "CREATE TABLE child (id INT PRIMARY KEY, b LONGBLOB, FOREIGN KEY (id) REFERENCES parent (id) "
        "ON DELETE CASCADE ON UPDATE CASCADE) ENGINE={e}"
    ),
    "history": "CREATE TABLE history (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} WITH SYSTEM VERSIONING",
}
QUARRY_OPTIONS = {"packed": "CODEC=zstd INLINE_SIZE=1000 PART_SIZE=16384", "atoms": "INLINE_SIZE=0"}
MARK_PASS = """BEGIN NOT ATOMIC
  DECLARE looks INT DEFAULT 0;
  SET GLOBAL quarry_gc_now = ON;
  WHILE looks < 600 AND (SELECT COUNT(DISTINCT variable_value) = 2 FROM information_schema.global_status
                         WHERE variable_name IN ('quarry_gc_requests', 'quarry_gc_requests_done')) DO
    DO SLEEP(0.1);
    SET looks = looks + 1;
  END WHILE;
END"""


class Transaction:
    """`statements`: (text, arguments). `effects`: {(table, id): value, NULL as None, or GONE}. `xid`: of an XA transaction.
    `outcome`, once it ran: acknowledged, in doubt (no answer came) or not begun."""

    def __init__(self, statements, effects, xid=None):
        self.statements, self.effects, self.xid = statements, effects, xid
        self.outcome = "not begun"


class Kind(NamedTuple):
    """`make(maker)` gives the transactions of one client, in order; `clients` of them run side by side. `call` and `file`,
    if given, are where it is cut off, `per_round` times (else: at every call in turn), whichever thread makes it, at one
    of the first `calls_max` of them, or (`is_late`) as soon as it was carried out; the transactions are then repeated,
    `rounds_max` times at most."""

    name: str
    make: object
    clients: int = 1
    call: str = ""
    file: str = ""
    per_round: int = 3
    calls_max: int = 3
    is_late: bool = False
    rounds_max: int = 1
    pause_s: float = 0


class Maker:
    """Makes transactions of one client from what its rows are now."""

    def __init__(self, seed, client, rows):
        self.random, self.client = random.Random(seed), client
        self.rows = dict(rows)  # as they will be after the transactions made so far

    def value(self, size_bytes=None):
        if size_bytes is None:
            size_bytes = self.random.choice(SIZES_BYTES) + self.random.randrange(8)
        return self.random.randbytes(size_bytes)

    def taken(self, table):
        first = self.client * IDS_PER_CLIENT
        return sorted(
            row for (name, row), value in self.rows.items() if name == table and value is not GONE and
            first <= row < first + IDS_PER_CLIENT
        )  # fmt: skip

    def free(self, table, count=1):
        first = self.client * IDS_PER_CLIENT
        return [row for row in range(first, first + SLOTS) if self.rows.get((table, row), GONE) is GONE][:count]

    def some(self, table, count=1):
        taken = self.taken(table)
        return self.random.sample(taken, min(count, len(taken)))

    def done(self, statements, effects, xid=None):
        self.rows.update(effects)
        return Transaction([(text, args) for text, args in statements], effects, xid)

    def room(self, *tables, count=4):
        """Transactions that see to it that rows can be inserted, and that there are some to change."""
        made = []
        for table in tables:
            if len(self.free(table, count)) < count:
                gone = self.some(table, SLOTS // 2)
                text = f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, gone))})"
                effects = {(table, row): GONE for row in gone}
                if table == "parent":
                    effects |= {("child", row): GONE for row in gone if ("child", row) in self.rows}
                made.append(self.done([(text, ())], effects))
            if len(self.taken(table)) < count and table != "child":
                made.append(self.insert(table, [9000, 70000, 300, 20000][:count]))
        return made

    def delete(self, table, rows):
        text = f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, rows))})"
        return self.done([(text, ())], {(table, row): GONE for row in rows})

    def insert(self, table, sizes_bytes):
        new = {row: self.value(size) for row, size in zip(self.free(table, len(sizes_bytes)), sizes_bytes)}
        text = f"INSERT INTO {table} (id, b) VALUES " + ", ".join(["(%s, %s)"] * len(new))
        return self.done(
            [(text, [cell for pair in new.items() for cell in pair])],
            {(table, row): value for row, value in new.items()},
        )


def inserting(table, *sizes_bytes):
    return lambda maker: [maker.insert(table, sizes_bytes)]


def insert_compressible(maker):
    (row,) = maker.free("packed")
    value = maker.value(30000) * 100
    return [maker.done([("INSERT INTO packed VALUES (%s, %s)", (row, value))], {("packed", row): value})]


def insert_select(maker):
    sources = maker.some("plain", 3)
    targets = maker.free("packed", len(sources))
    effects, texts = {}, []
    for source, target in zip(sources, targets):
        texts.append(f"SELECT {target}, CONCAT('copy', b) FROM plain WHERE id = {source}")
        value = maker.rows["plain", source]
        effects["packed", target] = None if value is None else b"copy" + value
    return [maker.done([("INSERT INTO packed " + " UNION ALL ".join(texts), ())], effects)]


def update(maker):
    (row,), value = maker.some("plain"), maker.value(maker.random.choice((5000, 66000, 200000)))
    return [maker.done([("UPDATE plain SET b = %s WHERE id = %s", (value, row))], {("plain", row): value})]


def update_many(maker):
    rows, tail = maker.some("packed", 4), maker.value(9000)
    text = f"UPDATE packed SET b = CONCAT(LEFT(COALESCE(b, ''), 50000), %s) WHERE id IN ({', '.join(map(str, rows))})"
    effects = {("packed", row): (maker.rows["packed", row] or b"")[:50000] + tail for row in rows}
    return [maker.done([(text, (tail,))], effects)]


def update_to_null(maker):
    (row,) = maker.some("plain")
    return [maker.done([("UPDATE plain SET b = NULL WHERE id = %s", (row,))], {("plain", row): None})]


def delete(maker):
    return [maker.delete("plain", maker.some("plain", 2))]


def replace(maker):
    old, new = maker.some("plain"), maker.free("plain")
    effects = {("plain", row): maker.value() for row in (*old, *new)}
    arguments = [cell for (_, row), value in effects.items() for cell in (row, value)]
    return [maker.done([("REPLACE INTO plain VALUES (%s, %s), (%s, %s)", arguments)], effects)]


def on_duplicate_key(maker):
    (row,), value = maker.some("packed"), maker.value(40000)
    text = "INSERT INTO packed VALUES (%s, 'x') ON DUPLICATE KEY UPDATE b = %s"
    return [maker.done([(text, (row, value))], {("packed", row): value})]


def several_statements(maker):
    """Two tables, every size; a row that is written twice."""
    (new,), (old,), (gone,) = maker.free("plain"), maker.some("packed"), maker.some("plain")
    first, second, third = maker.value(9000), maker.value(200000), maker.value(5000)
    statements = [
        ("BEGIN", ()),
        ("INSERT INTO plain VALUES (%s, %s)", (new, first)),
        ("UPDATE packed SET b = %s WHERE id = %s", (second, old)),
        ("UPDATE plain SET b = CONCAT(b, %s) WHERE id = %s", (third, new)),
        ("DELETE FROM plain WHERE id = %s", (gone,)),
        ("COMMIT", ()),
    ]
    effects = {("plain", new): first + third, ("packed", old): second, ("plain", gone): GONE}
    return [maker.done(statements, effects)]


def savepoints(maker):
    (new,), (old,) = maker.free("plain"), maker.some("packed")
    kept, lost, late = maker.value(66000), maker.value(66000), maker.value(12000)
    statements = [
        ("BEGIN", ()),
        ("INSERT INTO plain VALUES (%s, %s)", (new, kept)),
        ("SAVEPOINT a", ()),
        ("UPDATE plain SET b = %s WHERE id = %s", (lost, new)),
        ("DELETE FROM packed WHERE id = %s", (old,)),
        ("ROLLBACK TO SAVEPOINT a", ()),
        ("UPDATE packed SET b = %s WHERE id = %s", (late, old)),
        ("COMMIT", ()),
    ]
    return [maker.done(statements, {("plain", new): kept, ("packed", old): late})]


def rolled_back(maker):
    (new,), (old,) = maker.free("plain"), maker.some("packed")
    statements = [
        ("BEGIN", ()),
        ("INSERT INTO plain VALUES (%s, %s)", (new, maker.value(66000))),
        ("UPDATE packed SET b = %s WHERE id = %s", (maker.value(9000), old)),
        ("ROLLBACK", ()),
    ]
    effects = {("plain", new): GONE, ("packed", old): maker.rows["packed", old]}
    return [maker.done(statements, effects)]


def partitions(maker):
    """Rows of every partition; one moves from one to another."""
    (old,), new = maker.some("parts"), maker.free("parts", 4)
    moved, inserted = new[0], {row: maker.value(9000 + row) for row in new[1:]}
    statements = [
        ("BEGIN", ()),
        ("UPDATE parts SET id = %s WHERE id = %s", (moved, old)),
        (
            "INSERT INTO parts VALUES " + ", ".join(["(%s, %s)"] * len(inserted)),
            [cell for pair in inserted.items() for cell in pair],
        ),
        ("COMMIT", ()),
    ]
    effects = {("parts", old): GONE, ("parts", moved): maker.rows["parts", old]}
    return [maker.done(statements, effects | {("parts", row): value for row, value in inserted.items()})]


def with_child(maker):
    """A parent that has a child, made first if there is none."""
    pairs = [row for row in maker.taken("parent") if maker.rows.get(("child", row), GONE) is not GONE]
    if pairs:
        return [], maker.random.choice(pairs)
    (row,), value = maker.some("parent"), maker.value(30000)
    statement = ("INSERT INTO child VALUES (%s, %s)", (row, value))
    return [maker.done([statement], {("child", row): value})], row


def cascade_delete(maker):
    before, row = with_child(maker)
    effects = {("parent", row): GONE, ("child", row): GONE}
    return [*before, maker.done([("DELETE FROM parent WHERE id = %s", (row,))], effects)]


def cascade_update(maker):
    before, row = with_child(maker)
    (to,), value = maker.free("parent"), maker.value(70000)
    effects = {("parent", row): GONE, ("child", row): GONE, ("child", to): maker.rows["child", row]}
    text = "UPDATE parent SET id = %s, b = %s WHERE id = %s"
    return [*before, maker.done([(text, (to, value, row))], effects | {("parent", to): value})]


def versioned(maker):
    (row,), (new,) = maker.some("history"), maker.free("history")
    value, other = maker.value(9000), maker.value(70000)
    statements = [
        ("BEGIN", ()),
        ("UPDATE history SET b = %s WHERE id = %s", (value, row)),
        ("INSERT INTO history (id, b) VALUES (%s, %s)", (new, other)),
        ("COMMIT", ()),
    ]
    return [maker.done(statements, {("history", row): value, ("history", new): other})]


def load_data(maker):
    """The file is named by the runner: %s of the statement is its path, the arguments are its rows."""
    new = {row: maker.value() for row in maker.free("plain", 4)}
    text = "LOAD DATA INFILE '{file}' INTO TABLE plain (id, @hex) SET b = UNHEX(@hex)"
    lines = "".join(f"{row}\t{value.hex()}\n" for row, value in new.items())
    return [maker.done([(text, lines)], {("plain", row): value for row, value in new.items()})]


def xa(maker):
    (new,), (old,) = maker.free("plain"), maker.some("packed")
    first, second = maker.value(70000), maker.value(9000)
    xid = f"x{maker.random.randrange(10**9)}"
    statements = [
        (f"XA START '{xid}'", ()),
        ("INSERT INTO plain VALUES (%s, %s)", (new, first)),
        ("UPDATE packed SET b = %s WHERE id = %s", (second, old)),
        (f"XA END '{xid}'", ()),
        (f"XA PREPARE '{xid}'", ()),
        (f"XA COMMIT '{xid}'", ()),
    ]
    return [maker.done(statements, {("plain", new): first, ("packed", old): second}, xid)]


def group(maker):
    """One of several clients that commit at the same time."""
    return [maker.insert("plain", [9000 + 500 * maker.client]), maker.insert("packed", [70000]), *update(maker)]


def new_store(maker):
    """A table's first value makes its store. The table is made by the transaction before."""
    name = f"fresh_{maker.random.randrange(10**9)}"
    row, value = maker.client * IDS_PER_CLIENT, maker.value(9000)
    created = Transaction([(f"CREATE TABLE {name} (id INT PRIMARY KEY, b LONGBLOB) ENGINE={{e}}", ())], {})
    return [created, Transaction([(f"INSERT INTO {name} VALUES (%s, %s)", (row, value))], {(name, row): value})]


def churn(maker):
    """Fills and drops a table: rolls segments, gives the catalogue and the trash something to do."""
    name = f"fresh_{maker.random.randrange(10**9)}"
    create = f"CREATE TABLE {name} (id INT PRIMARY KEY, b LONGBLOB) ENGINE={{e}}"
    fill = [(f"INSERT INTO {name} VALUES (%s, %s)", (row, maker.value(400000))) for row in range(4)]
    drop = Transaction([(f"DROP TABLE {name}", ())], {(name, row): GONE for row in range(4)})
    return [
        Transaction([(create, ())], {}),
        *(Transaction([one], {(name, one[1][0]): one[1][1]}) for one in fill),
        drop,
        *maker.room("plain"),
        maker.insert("plain", [9000, 200000]),
    ]


def garbage(maker):
    """Values that die, some beside others that live, and a mark pass over all tables."""
    made = maker.room("plain", count=6)
    for _ in range(2):
        made.append(maker.insert("plain", [300000, 5000, 400000]))
        rows = [row for row in maker.taken("plain") if len(maker.rows["plain", row] or b"") in (300000, 400000)]
        made.append(maker.delete("plain", rows))
    return [*made, Transaction([("SET GLOBAL quarry_gc_now = ON", ())], {})]


def sparse(maker):
    """Small values, each with a commit and so a block of its own, beside some that die: a mark pass, whose end it waits
    for, rewrites the segment."""
    rows = maker.taken("atoms")
    made = [maker.delete("atoms", rows[KEPT_ROWS:])] if len(rows) > KEPT_ROWS else []
    made += [maker.insert("atoms", [300 + row]) for row in maker.free("atoms", SLOTS)]
    return [*made, Transaction([(MARK_PASS, ())], {})]


KINDS = (
    Kind("insert-inline", inserting("plain", 3000)),
    Kind("insert-staged", inserting("plain", 9000)),
    Kind("insert-parts", inserting("packed", 200000)),
    Kind("insert-streamed", inserting("plain", 3 * MIB)),
    Kind("insert-compressed", insert_compressible),
    Kind("insert-many", inserting("plain", 0, 5000, 70000, 300)),
    Kind("insert-select", insert_select),
    Kind("update", update),
    Kind("update-many", update_many),
    Kind("update-to-null", update_to_null),
    Kind("delete", delete),
    Kind("replace", replace),
    Kind("on-duplicate-key", on_duplicate_key),
    Kind("several-statements", several_statements),
    Kind("savepoints", savepoints),
    Kind("rollback", rolled_back),
    Kind("partitions", partitions),
    Kind("cascade-delete", cascade_delete),
    Kind("cascade-update", cascade_update),
    Kind("versioned", versioned),
    Kind("load-data", load_data),
    Kind("xa", xa),
    Kind("group-commit", group, clients=6),
    Kind("new-store", new_store),
    Kind("garbage", garbage),
    # Threads of the background.
    *(
        Kind(f"catalogue-{call}", churn, call=call, file="CATALOGUE", rounds_max=8)
        for call in ("write", "fdatasync")
    ),
    Kind("seal-sync", churn, call="fdatasync", file="segment", rounds_max=8),
    # The sweep looks every five seconds.
    *(
        Kind(name, churn, call=call, file=file, per_round=1, rounds_max=100, pause_s=0.3)
        for name, call, file in (
            ("trash-rename", "rename", "home directory"),
            ("trash-unlink", "unlink", "segment"),
            ("trash-record", "write", "CATALOGUE"),
            ("trash-rmdir", "rmdir", "home directory"),
        )
    ),
    *(
        Kind(f"gc-{call}-{file.split()[0]}", garbage, call=call, file=file, per_round=4, rounds_max=60, pause_s=0.2)
        for call, file in (("truncate", "segment"), ("punch", "segment"), ("unlink", "segment"), ("write", "CATALOGUE"))
    ),
    # The file beside a segment that is to take its place: while it is written, as it takes its name, and when it has.
    *(
        Kind(f"gc-move-{call}", sparse, call=call, file="rewritten segment", calls_max=calls_max, rounds_max=4)
        for call, calls_max in (("create", 1), ("allocate", 1), ("write", 5), ("fdatasync", 1), ("rename", 1))
    ),
    Kind("gc-moved", sparse, call="rename", file="rewritten segment", calls_max=1, is_late=True, rounds_max=4),
    Kind("innodb-page-write", churn, call="write", file="ibd", rounds_max=40),
    Kind("innodb-page-sync", churn, call="fdatasync", file="ibd", rounds_max=40),
)
