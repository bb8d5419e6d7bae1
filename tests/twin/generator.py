"""A whole program from one seed: tables, then statements of several sessions, DDL, checks, restarts.

While two sessions are in transactions every change is made inside one, so that a lock that only one engine had to wait
for (their plans may differ) can be undone on both. All are interleaved here, in one order; nobody waits: lock waits end
at once.
"""

import random

from twin.ddl import Ddl
from twin.dml import Dml
from twin.joins import Joins, optimizer_settings, row_image
from twin.program import Statement
from twin.schema import Schema

ISOLATION = ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "REPEATABLE READ", "SERIALIZABLE")
LOG_TABLE = "CREATE TABLE log (what CHAR(1), b LONGBLOB, KEY (what)) ENGINE={e}"
SESSIONS = ("a", "b", "c")


class Generator:
    def __init__(self, seed, restarts=True):
        self.chooser = random.Random(seed)
        self.schema = Schema(self.chooser)
        self.dml = Dml(self.schema)
        self.joins = Joins(self.schema, self.dml)
        self.ddl = Ddl(self.schema, self.dml, self.joins)
        self.restarts = restarts
        self.statements = []
        self.open = {session: False for session in SESSIONS}
        self.savepoints = {session: 0 for session in SESSIONS}
        self.many = False  # several sessions at work
        self.xa_serial = 0

    def chance(self, probability):
        return self.chooser.random() < probability

    def say(self, session, sql):
        self.statements.append(Statement(session, sql))

    def program(self, length):
        """About `length` statements, ending in a check."""
        self.set_up()
        while len(self.statements) < length:
            (self.many_sessions if self.many else self.one_session)()
        self.end_transactions()
        self.say("#", "check")
        return self.statements

    def set_up(self):
        self.say("a", LOG_TABLE)
        for session in SESSIONS:
            if self.chance(0.2):
                self.say(session, "SET sql_mode = ''")
            if self.chance(0.3):
                self.say(session, f"SET @twin = 1{self.quarry_variables()}")
            if self.chance(0.7):
                self.say(session, optimizer_settings(self.chooser))
            if self.chance(0.7):
                self.say(session, row_image(self.chooser))
        for _ in range(self.chooser.choice((1, 2, 2, 3))):
            self.say("a", self.schema.table().create())
        if self.chance(0.2):
            self.say("a", self.schema.table(temporary_of="a").create())
        for table in list(self.schema.tables.values()):
            for _ in range(3):
                self.say("a", self.dml.insert(table))

    def quarry_variables(self):
        """What only QUARRY has: batches of any size, defaults of tables to come."""
        chosen = self.chooser.sample(
            (
                f"quarry_batch_size = {self.chooser.choice((0, 100_000, 4 << 20))}",
                f"quarry_read_batch_bytes = {self.chooser.choice((4096, 5000, 1 << 20))}",
                f"quarry_write_batch_bytes = {self.chooser.choice((4096, 70_000, 1 << 20))}",
                f"quarry_inline_size = {self.chooser.choice((100, 1000, 8000))}",
                f"quarry_part_size = {self.chooser.choice((512, 4096))}",
                f"quarry_codec = {self.chooser.choice(('lz4', 'zstd'))}",
            ),
            2,
        )
        return f" /*q , {', '.join(chosen)}*/"

    # --- who does what --------------------------------------------------------------------------------------
    def one_session(self):
        actions = {
            self.touch: 660,
            self.define: 130,
            self.begin: 50,
            self.check: 14,
            self.start_many: 15,
            self.handler_reads: 4,
            self.locked_tables: 5,
            self.xa: 8,
            self.plans: 20,
        }
        if self.open["a"]:
            actions |= {self.end: 80, self.savepoint: 60}
        if self.restarts:
            actions[self.restart] = 3
        self.chooser.choices(list(actions), list(actions.values()))[0]("a")

    def plans(self, session):
        self.say(session, optimizer_settings(self.chooser))
        if self.chance(0.4) and not self.open[session]:
            self.say(session, row_image(self.chooser))

    def start_many(self, _):
        self.end_transactions()
        self.many = True

    def check(self, _):
        self.say("#", "check")

    def many_sessions(self):
        session = self.chooser.choice(SESSIONS)
        luck = self.chooser.random()
        if luck < 0.012:
            self.end_transactions()
            self.many = False
            self.dml.own_ids = range(40)
            if self.chance(0.5):
                self.say("#", "check")
        elif luck < 0.016:
            self.define(session)  # which may have to give way to the others' metadata locks
        elif luck < 0.022:
            self.say("#", "check")
        elif not self.open[session]:
            self.begin(session)
        elif luck < 0.11:
            self.end(session)
        elif luck < 0.18:
            self.savepoint(session)
        else:
            self.touch(session)

    def touch(self, session):
        """Reads or changes rows. In the midst of others, of rows that the session mostly has for itself."""
        if self.many:
            first = 14 * SESSIONS.index(session)
            self.dml.own_ids = range(first, first + 12)
        if self.chance(0.12) and (sql := self.joins.read()):
            self.say(session, sql)
            return
        if self.chance(0.02) and (sql := self.joins.insert_into_log()):
            self.say(session, sql)
            return
        tables = [t for t in self.schema.tables.values() if t.temporary_of in ("", session)]
        table = self.chooser.choice(tables)
        made = self.dml.read(table) if self.chance(0.28) else self.dml.change(table)
        self.statements.append(Statement(session, made.sql, made.how, made.values, made.file))

    # --- transactions ------------------------------------------------------------------------------------------
    def begin(self, session):
        if self.open[session]:
            return
        if self.chance(0.6):
            self.say(session, f"SET TRANSACTION ISOLATION LEVEL {self.chooser.choice(ISOLATION)}")
        kinds = ("BEGIN", "BEGIN", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "START TRANSACTION READ ONLY")
        self.say(session, self.chooser.choices(kinds, (8, 8, 3, 1))[0])
        self.open[session], self.savepoints[session] = True, 0

    def end(self, session):
        self.say(session, self.chooser.choice(("COMMIT", "COMMIT", "ROLLBACK")))
        self.open[session] = False

    def savepoint(self, session):
        count = self.savepoints[session]
        kind = self.chooser.choice(("SAVEPOINT", "SAVEPOINT", "ROLLBACK TO", "ROLLBACK TO", "RELEASE SAVEPOINT"))
        if kind == "SAVEPOINT" or count == 0:
            kind, count = "SAVEPOINT", count + 1
            self.savepoints[session] = count
        self.say(session, f"{kind} s{self.chooser.randrange(count) + 1 if kind != 'SAVEPOINT' else count}")

    def end_transactions(self):
        for session in SESSIONS:
            if self.open[session]:
                self.end(session)

    # --- rarer things ------------------------------------------------------------------------------------------
    def define(self, session):
        if not self.many or self.chance(0.7):
            self.end_transactions()
        tables = [t for t in self.schema.tables.values() if t.temporary_of in ("", session)]
        if len(tables) < 4 and self.chance(0.1):
            table = self.schema.table()
            self.say(session, table.create())
            for _ in range(3):
                self.say(session, self.dml.insert(table))
        else:
            for sql in self.ddl.change(self.chooser.choice(tables)):
                self.say(session, sql)
        self.open[session] = False

    def handler_reads(self, _):
        table = self.chooser.choice(list(self.schema.tables.values()))
        self.say("a", f"HANDLER {table.name} OPEN")
        self.say("a", f"HANDLER {table.name} READ FIRST LIMIT 3")
        self.say("a", f"HANDLER {table.name} READ NEXT LIMIT 2")
        if table.primary.startswith("id"):
            self.say("a", f"HANDLER {table.name} READ `PRIMARY` >= ({self.dml.row_id()}) LIMIT 3")
        self.say("a", f"HANDLER {table.name} CLOSE")

    def locked_tables(self, _):
        self.end_transactions()
        tables = [t for t in self.schema.tables.values() if not t.temporary_of]
        names = ", ".join(f"{t.name} WRITE" for t in tables)
        self.say("a", f"LOCK TABLES {names}, log WRITE")
        for _ in range(self.chooser.choice((2, 4))):
            self.touch("a")
        if self.chance(0.3):
            for sql in self.ddl.rebuild(self.chooser.choice(tables)):
                self.say("a", sql)
        self.say("a", "UNLOCK TABLES")

    def xa(self, _):
        """Prepared, perhaps left behind by a server that was killed, and ended."""
        self.end_transactions()
        self.xa_serial += 1
        name = f"'x{self.xa_serial}-{{twin}}'"
        self.say("a", f"XA START {name}")
        for _ in range(self.chooser.choice((1, 3))):
            self.touch("a")
        self.say("a", f"XA END {name}")
        self.say("a", f"XA PREPARE {name}")
        if self.restarts and self.chance(0.05):
            self.restart()
        self.say("a", f"XA {self.chooser.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} {name}")

    def restart(self, _=None):
        self.end_transactions()
        self.say("#", self.chooser.choice(("restart", "kill", "kill")))
        for table in [t for t in self.schema.tables.values() if t.temporary_of]:
            del self.schema.tables[table.name]
        self.say("#", "check")
