"""Clients that run the transactions of dml_kinds, and the model of the rows that they must leave.

The promise, as a test sees it: a transaction that was acknowledged is there, one that was not answered is there wholly or
not at all, nothing else has changed, and every value can be read.
"""

import hashlib
import threading

import pymysql
from dml_kinds import GONE, IDS_PER_CLIENT
from kill_at import is_lost, thread_of

from harness.server import ENGINE


class Client(threading.Thread):
    """Runs transactions one after the other on a connection of its own until one is not answered."""

    def __init__(self, server, transactions):
        super().__init__()
        self.server, self.transactions, self.failure = server, transactions, None
        self.connection = server.connect("dml")
        self.thread = thread_of(self.connection)
        with self.connection.cursor() as cursor:
            cursor.execute("SET NAMES binary")

    def run(self):
        try:
            with self.connection.cursor() as cursor:
                for transaction in self.transactions:
                    transaction.outcome = "in doubt"
                    for text, arguments in transaction.statements:
                        self.execute(cursor, text, arguments)
                    transaction.outcome = "acknowledged"
        except (pymysql.err.Error, OSError) as failure:
            if not isinstance(failure, OSError) and not is_lost(failure):
                self.failure = failure

    def execute(self, cursor, text, arguments):
        text = text.replace("{e}", ENGINE)
        if "{file}" in text:
            file = self.server.files / f"load-{self.thread}.txt"  # clients may load at the same time
            file.write_text(arguments, encoding="ascii")
            text, arguments = text.replace("{file}", str(file)), ()
        cursor.execute(text, arguments or None)


class RowModel:
    """What the rows of schema dml must be. `rows`: {(table, id): bytes or None}. Externally synchronised."""

    def __init__(self, server, random, counts):
        self.server, self.random, self.counts = server, random, counts
        self.rows = {}

    def apply(self, transaction):
        for key, value in transaction.effects.items():
            if value is GONE:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value

    def settle(self, transactions):
        """Each transaction that was cut off is found whole or not at all; the model takes over what is there."""
        prepared = {row[3] if isinstance(row[3], str) else row[3].decode() for row in self.server.query("XA RECOVER")}
        known = {one.xid for one in transactions if one.xid is not None}
        assert prepared <= known, f"prepared, and nobody knows of it: {prepared - known}"
        for one in transactions:
            if one.outcome == "acknowledged":
                assert one.xid not in prepared, f"{one.xid} was committed, and is prepared"
                self.apply(one)
                self.counts["acknowledged"] += 1
            elif one.xid in prepared:
                self.assert_hidden(one)
                decision = self.random.choice(("COMMIT", "ROLLBACK"))
                self.server.query(f"XA {decision} '{one.xid}'")
                self.counts[f"prepared: {decision.lower()}"] += 1
                if decision == "COMMIT":
                    self.apply(one)
            elif one.outcome == "in doubt":
                self.adopt(one)

    def settle_in_order(self, client, transactions):
        """Where commits may be lost: of a client's transactions a first part is there, and nothing of the others. How
        many of those that were acknowledged are lost."""
        found = {key: value for key, value in self.found(self.tables()).items() if key[1] // IDS_PER_CLIENT == client}
        states, rows = [{}], {}
        for one in transactions:
            rows = {key: value for key, value in (rows | one.effects).items() if value is not GONE}
            states.append(rows)
        fitting = [
            done
            for done, state in enumerate(states)
            if state.keys() == found.keys() and all(digest(value) == found[key] for key, value in state.items())
        ]
        assert fitting, f"client {client}: its rows are not what any number of its transactions makes of them"
        self.rows.update(states[fitting[-1]])
        return sum(one.outcome == "acknowledged" for one in transactions[fitting[-1] :])

    def assert_hidden(self, transaction):
        found = self.found(sorted({table for table, _ in transaction.effects}))
        for key in transaction.effects:
            assert found.get(key, GONE) == digest(self.rows.get(key, GONE)), f"row {key} is prepared, and shows"

    def adopt(self, transaction):
        """Of one that was not answered: all of it or nothing."""
        found = self.found(sorted({table for table, _ in transaction.effects}))
        keys = [key for key, value in transaction.effects.items() if digest(value) != digest(self.rows.get(key, GONE))]
        new = [key for key in keys if found.get(key, GONE) == digest(transaction.effects[key])]
        old = [key for key in keys if found.get(key, GONE) == digest(self.rows.get(key, GONE))]
        assert len(new) == len(keys) or len(old) == len(keys), (
            f"a transaction is there in part: new {new}, old {old}, neither {set(keys) - set(new) - set(old)} of {keys}"
        )
        if keys and len(new) == len(keys):
            self.apply(transaction)
        self.counts["in doubt: committed" if keys and new else "in doubt: not there"] += 1

    def tables(self):
        return [name for (name,) in self.server.query("SHOW TABLES", database="dml")]

    def found(self, tables):
        """{(table, id): digest} of what is in these tables (those of them that are there)."""
        rows, there = {}, set(self.tables())
        for table in tables:
            if table in there:
                for row, size, sha in self.server.query(f"SELECT id, LENGTH(b), SHA2(b, 256) FROM dml.{table}"):
                    rows[table, row] = None if size is None else (size, sha)
        return rows

    def check(self):
        """Everything is as the model says, and every value can be read."""
        tables = self.tables()
        found = self.found(tables)
        wanted = {key: digest(value) for key, value in self.rows.items()}
        wrong = [key for key in {*found, *wanted} if found.get(key, GONE) != wanted.get(key, GONE)]
        assert not wrong, f"{len(wrong)} rows differ from the model: " + ", ".join(
            f"{key} is {found.get(key, 'gone')} instead of {wanted.get(key, 'gone')}" for key in wrong[:4]
        )
        for table, _, kind, text in self.server.query("CHECK TABLE " + ", ".join(f"dml.{name}" for name in tables)):
            assert (kind, text) == ("status", "OK"), f"CHECK TABLE {table}: {kind}: {text}"
        for name in tables:
            if name.startswith("fresh_"):
                self.server.query(f"DROP TABLE dml.{name}")
                self.rows = {key: value for key, value in self.rows.items() if key[0] != name}


def digest(value):
    if value is None or value is GONE:
        return value
    return (len(value), hashlib.sha256(value).hexdigest())
