"""Runs each statement on a table of the engine under test and on its InnoDB twin, and compares what comes back.

Both live in the same server, in two schemas (q_<name> and i_<name>), so that one text serves both; `{e}` in it stands
for the engine. Compared: rows, order where the statement asks for one, counts, errors, warnings; checksums on `check`.
Thread-safety: externally synchronised.
"""

import decimal
import hashlib
import re
import time
from dataclasses import dataclass, field

import pymysql

from harness.server import ENGINE

DDL = re.compile(r"\s*(ALTER|CREATE (UNIQUE )?INDEX|DROP INDEX)\b", re.IGNORECASE)
# InnoDB, which answers these for both, misses committed rows while it moves their words from its cache to its tables
# (docs/internals/conformance.md): one that differs is asked again.
SEARCH = re.compile(r"\bMATCH \(.*\) AGAINST \(")
SEARCHES_MAX, SEARCH_PAUSE_S = 40, 0.25


@dataclass
class Outcome:
    """What one statement gave: rows, an error, or neither; and how many rows it says it touched."""

    rows: list = None
    error: tuple = None
    affected: int = 0
    insert_id: int = 0
    warnings: list = field(default_factory=list)

    def value(self):
        return self.rows[0][0]


class Twin:
    def __init__(self, server, name, engine=ENGINE, create=True):
        self.server = server
        self.engines = {f"q_{name}": engine, f"i_{name}": "InnoDB"}
        self.under_test, self.twin = self.engines
        self.connections = {}
        if not create:
            return
        admin = server.connect()
        with admin.cursor() as cursor:
            for schema in self.engines:
                cursor.execute(f"DROP DATABASE IF EXISTS {schema}")
                cursor.execute(f"CREATE DATABASE {schema}")
        admin.close()

    def connection(self, session, schema):
        if (session, schema) not in self.connections:
            connection = self.server.connect(schema)
            with connection.cursor() as cursor:
                cursor.execute(f"SET default_storage_engine = {self.engines[schema]}")
            self.connections[session, schema] = connection
        return self.connections[session, schema]

    def close(self, drop=True):
        for connection in self.connections.values():
            try:
                connection.rollback()
                connection.close()
            except pymysql.err.Error:
                pass
        self.connections = {}
        if drop:
            for schema in self.engines:
                self.server.query(f"DROP DATABASE IF EXISTS {schema}")

    # --- one statement --------------------------------------------------------------------------
    def run(self, sql, args=None, session="main", error=None, compare=True, any_plan=False):
        """Runs `sql` on both; returns the outcome of the engine under test.

        `error`: the error number that both must give; without it both must succeed.
        `any_plan`: each may read rows that the other need not, so that warnings are not compared.
        """
        outcomes = mine, theirs = self._execute_on_both(sql, args, session)
        label = f"{abbreviate(sql)}  args={abbreviate(args)}"
        if compare:
            if any_plan:
                for outcome in outcomes:
                    outcome.warnings.clear()
            compare_outcomes(sql, mine, theirs, label)
        if error is None:
            assert mine.error is None, f"failed on both: {label}\n  {mine.error}"
        elif error != "any":
            assert mine.error is not None and mine.error[0] == error, f"expected error {error}: {label}\n  {mine.error}"
        return mine

    def all(self, *statements, session="main"):
        for statement in statements:
            self.run(statement, session=session)

    def rows(self, sql, args=None, session="main"):
        return self.run(sql, args, session=session).rows

    def value(self, sql, args=None, session="main"):
        return self.run(sql, args, session=session).value()

    def _execute_on_both(self, sql, args, session):
        mine, theirs = (self._execute(schema, sql, args, session) for schema in self.engines)
        if SEARCH.search(sql):
            for _ in range(SEARCHES_MAX):
                if sorted(mine.rows or [], key=sort_key) == sorted(theirs.rows or [], key=sort_key):
                    break
                time.sleep(SEARCH_PAUSE_S)
                mine, theirs = (self._execute(schema, sql, args, session) for schema in self.engines)
        return mine, theirs

    def _execute(self, schema, sql, args, session):
        connection = self.connection(session, schema)
        engine = self.engines[schema]
        text = sql.replace("{e}", engine)
        outcome = Outcome()
        with connection.cursor() as cursor:
            try:
                cursor.execute(text, args)
                outcome.affected = cursor.rowcount
                if cursor.description is not None:
                    outcome.rows = [tuple(self._neutral(cell, schema) for cell in row) for row in cursor.fetchall()]
                else:
                    outcome.insert_id = cursor.lastrowid
                while cursor.nextset():
                    outcome.rows += [tuple(row) for row in cursor.fetchall()]
                if cursor.warning_count:
                    cursor.execute("SHOW WARNINGS")
                    outcome.warnings = [
                        (code, self._neutral(message, schema))
                        for level, code, message in cursor.fetchall()
                        if level != "Note"
                    ]
            except pymysql.err.Error as failure:
                if len(failure.args) < 2 or failure.args[0] in (2006, 2013):
                    raise AssertionError(
                        f"connection lost ({failure.args}) in {abbreviate(text)}; server alive: "
                        f"{self.server.alive()}\n{self.server.error_log()[-4000:]}"
                    ) from failure
                outcome.error = (failure.args[0], self._neutral(failure.args[1], schema))
        return outcome

    def _neutral(self, cell, schema):
        """Text without what must differ: the schema's and the engine's names."""
        if isinstance(cell, str) and len(cell) < 20000:
            cell = cell.replace(schema, "<schema>")
            return re.sub(rf"(ENGINE=|engine )(`?){self.engines[schema]}\b", r"\1\2<engine>", cell)
        return cell

    # --- whole tables -----------------------------------------------------------------------------
    def tables(self):
        rows = self.server.query(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type IN "
            "('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY 1",
            (self.under_test,),
        )
        return [name for (name,) in rows]

    def check(self, *tables, session="main"):
        """Every table (or those named): same rows, same CHECKSUM TABLE, CHECK TABLE clean."""
        for table in tables or self.tables():
            self.run(f"CHECKSUM TABLE `{table}`", session=session)
            self.run(f"SELECT * FROM `{table}`", session=session)
            self._check_table(f"CHECK TABLE `{table}` EXTENDED", session)

    def _check_table(self, check, session):
        """Clean, or what InnoDB says of its twin. InnoDB warns of index records that its purge is just taking away (of
        indexed virtual columns): asked again a little later."""
        for _ in range(20):
            verdict = self.run(check, session=session, compare=False).rows
            if len(verdict) == 1:
                break
            time.sleep(0.25)
        else:
            self.run(check, session=session)
        assert verdict[-1][-1] == "OK", f"{check}: {verdict}"


def compare_outcomes(sql, mine, theirs, label):
    def same(what, left, right):
        assert left == right, f"{what} differ: {label}\n  {ENGINE}: {left}\n  InnoDB: {right}"

    # Of a DDL statement the rows copied, and the row that an error names, say how it was done, not what came of it.
    same("errors", *((o.error and o.error[0] if DDL.match(sql) else o.error) for o in (mine, theirs)))
    compare_rows(mine, theirs, ordered=" order by " in sql.lower(), label=label)
    if not DDL.match(sql):
        same("affected rows", mine.affected, theirs.affected)
    same("insert ids", mine.insert_id, theirs.insert_id)
    same("warnings", mine.warnings, theirs.warnings)


def compare_rows(mine, theirs, ordered, label):
    if mine.rows is None or theirs.rows is None:
        assert mine.rows == theirs.rows, f"one gave rows, one did not: {label}"
        return
    left, right = mine.rows, theirs.rows
    if not ordered:
        left, right = sorted(left, key=sort_key), sorted(right, key=sort_key)
    if left == right:
        return
    for number, (a, b) in enumerate(zip(left, right)):
        assert a == b, f"row {number} differs: {label}\n  {ENGINE}: {abbreviate(a)}\n  InnoDB: {abbreviate(b)}"
    raise AssertionError(f"row counts differ: {label}\n  {ENGINE}: {len(left)}\n  InnoDB: {len(right)}")


def sort_key(row):
    return [("0", "") if cell is None else (type(cell).__name__, number_or_text(cell)) for cell in row]


def number_or_text(cell):
    if isinstance(cell, (int, float, decimal.Decimal)):
        return f"{float(cell):030.6f}"
    return cell.hex() if isinstance(cell, bytes) else str(cell)


def abbreviate(thing, limit=300):
    """Short text of a statement or row; long values by length and SHA-256."""
    if isinstance(thing, (tuple, list)):
        return "(" + ", ".join(abbreviate(item, 80) for item in thing) + ")"
    if isinstance(thing, bytes) and len(thing) > 60:
        return f"<{len(thing)} bytes {hashlib.sha256(thing).hexdigest()[:12]} {thing[:8].hex()}..{thing[-8:].hex()}>"
    if isinstance(thing, dict):
        return str({key: abbreviate(item, 80) for key, item in thing.items()})
    shown = thing if isinstance(thing, str) else repr(thing)
    return shown if len(shown) <= limit else f"{shown[:limit]}... ({len(shown)} characters)"
