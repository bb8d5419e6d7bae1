"""Runs a program on the engine under test and on InnoDB, in two schemas of one server; compares after each statement.

Compared: errors with their messages, rows, affected rows, insert ids, warnings; and at every check all tables, with
history: definitions, rows by hash, CHECKSUM TABLE, CHECK TABLE, and each BLOB found through each index on it.
Results, and at each check the binary log where there is one, are searched for raw heads.

What may differ, and is counted, not hidden:
  ALGORITHM     one engine refuses to do an ALTER in the way asked for: it does it in its own way
  exchange      QUARRY refuses to exchange tables whose heads hold different prefixes: InnoDB exchanges them back
  locks         only one engine had to wait for a lock, or finds its snapshot older than the definition (plans and ways
                of an ALTER differ): both roll back; outside a transaction the program ends there
  copy checks   a copying ALTER checks CHECK constraints of every row, one in place does not (rows got in by INSERT
                IGNORE or before an ALTER): only one fails, and the program ends there
  order         after an ALTER that only one engine copied, the indexes stand in another order, and a row that breaks a
                unique key and a foreign key breaks another of them first: the program ends
  join buffer   only one plan has a join buffer, and that is too small for a row: the program ends
  NULL by plan  a joined UPDATE sets NOT NULL to NULL: whether that is an error hangs on which table the plan reads last
                (the server's sql_update.cc goes through a temporary table or not); only one fails: the program ends
  row size      InnoDB refuses a row that is too long for its page, QUARRY's heads are shorter: the program ends
  InnoDB crashed  the statement on the InnoDB twin killed the server, with nothing of QUARRY on the stack
  InnoDB 1034   InnoDB calls an index on a VIRTUAL column of a versioned table corrupt, now under one engine, now under
                the other, InnoDB against itself alike: the program ends. Rows are missing in such an index, too: it is not
                used to compare
  InnoDB's lookup  InnoDB's answer through an index is not its answer without it, QUARRY's are both that
  FULLTEXT sync  a search, which InnoDB answers on both sides, misses rows while InnoDB's background thread moves their
                words from its cache to its tables (tests/twin/fulltext_sync.py shows it with InnoDB alone): asked
                again, both find the same
  InnoDB's CHECK  CHECK TABLE finds fault with both tables (seen with indexes on VIRTUAL BLOBs of versioned tables): it
                is InnoDB's own, and the program ends there
A statement that waited for a lock in vain has used up AUTO_INCREMENT values, as many as its plan came to: an insert of
such a table ends the program. A warning's row number counts the rows that a filesort has read: with ORDER BY it is left out;
of a joined UPDATE's warnings, which may name a temporary table, only the codes count.
Of DDL, warnings and numbers of rows say how it was done and are not compared; errors are, by number.
Thread-safety: externally synchronised.
"""

import collections
import contextlib
import hashlib
import re
import time

import pymysql
from quarry_server.server import ServerError

from harness.heads import HeadSearch
from harness.segments import TRAILER_SIZE_BYTES
from harness.server import ENGINE
from harness.twin import SEARCH, SEARCH_PAUSE_S, SEARCHES_MAX, Outcome, abbreviate, sort_key
from twin.long_data import execute_long

DDL = re.compile(r"(ALTER|CREATE|DROP|RENAME|TRUNCATE|OPTIMIZE|ANALYZE|CHECK|FLUSH)\b")
ALGORITHM = re.compile(r"ALGORITHM=\w+")
SESSION = (
    "SET default_storage_engine = {e}, innodb_lock_wait_timeout = 0, lock_wait_timeout = 1, "
    "system_versioning_alter_history = KEEP"
)
CLOCK_START = 1_600_000_000
IN_TRANSACTION = 1  # of the protocol's server status
LOCK_ERRORS = {1205, 1213, 1412}
ROW_SIZE_ERRORS = {1118, 1713, 139}
ALGORITHM_ERRORS = {1845, 1846}
CHECK_FAILED = 4025
JOIN_BUFFER_ERROR = 1037
LOST = {0, 2003, 2006, 2013, 2014, 2055, 1053}
# Of DDL: the same refusal, as the copying and the in-place way of an ALTER put it.
# 1834: duplicates in a parent of a foreign key, where a copy might have to leave rows out.
SAME_ERROR = {1265: 1138, 1048: 1138, 1022: 1062, 1586: 1062, 1846: 1845, 1834: 1062}
INSERTS = re.compile(r"(INSERT|REPLACE|LOAD|EXECUTE)\b")
AT_ROW = re.compile(r" at row \d+$")
JOINED_UPDATE = re.compile(r"UPDATE (IGNORE )?\w+ a JOIN\b")


class Difference(Exception):
    """The two engines differ. `kind` is what a smaller program must show too."""

    def __init__(self, kind, number, text):
        super().__init__(text)
        self.kind, self.number, self.text = kind, number, text


class ProgramEnds(Exception):
    """Nothing is wrong, but from here on the two could not be compared."""


def same_rows(left, right):
    """In whatever order; an error is the business of others."""
    if left.rows is None or right.rows is None:
        return True
    return sorted(left.rows, key=sort_key) == sorted(right.rows, key=sort_key)


class EnginePair:
    def __init__(self, server, name="twin"):
        self.server = server
        self.engines = {"q": ENGINE, "i": "InnoDB"}
        self.schemas = {side: f"{side}_{name}" for side in self.engines}
        self.connections = {}
        self.files = server.directory / "files"
        self.counts = collections.Counter()  # statements by verb and outcome
        self.allowed = collections.Counter()  # what may differ and did
        self.number = 0
        self.search, self.searched = HeadSearch(), {}  # up to where each binary log was searched
        self.clock = False
        self.auto_increment = False
        self.copied = False  # an ALTER that InnoDB did in place

    # --- programs ---------------------------------------------------------------------------------------
    def run(self, statements):
        """Raises Difference. Returns the number of statements run (fewer than given if they could not be compared)."""
        self.reset()
        self.clock = any("SYSTEM VERSIONING" in statement.sql for statement in statements)
        self.auto_increment = any("AUTO_INCREMENT" in statement.sql for statement in statements)
        self.copied = False
        try:
            for self.number, statement in enumerate(statements):
                if statement.session == "#":
                    {"check": self.check, "restart": self.restart, "kill": self.restart}[statement.sql](statement.sql)
                else:
                    self.both(statement)
        except ProgramEnds:
            pass
        except ServerError as failure:
            raise Difference("crash", self.number, str(failure)) from failure
        return self.number + 1 if statements else 0

    def reset(self):
        """A server that runs, and two empty schemas."""
        self.close()
        self.ensure_alive()
        self.files.mkdir(exist_ok=True)
        for file in self.files.iterdir():
            file.unlink()
        admin = self.server.connect(ssl_disabled=True)
        with admin.cursor() as cursor:
            cursor.execute("SET lock_wait_timeout = 60")
            prepared = self.end_prepared(cursor)
        if prepared:  # the connection that holds them does not end: no connection outlives the server
            admin.close()
            self.server.kill()
            self.server.start()
            admin = self.server.connect(ssl_disabled=True)
        with admin.cursor() as cursor:
            if prepared and (prepared := self.end_prepared(cursor)):
                raise ServerError(f"prepared transactions that cannot be ended: {'; '.join(prepared)}")
            with contextlib.suppress(pymysql.err.Error):
                cursor.execute("RESET MASTER")  # where there is a binary log, lest it fill the disk
            self.searched.clear()
            cursor.execute("CREATE DATABASE IF NOT EXISTS marker")
            cursor.execute("CREATE TABLE IF NOT EXISTS marker.m (n INT) ENGINE=InnoDB")
            for schema in self.schemas.values():
                cursor.execute(f"DROP DATABASE IF EXISTS {schema}")
                cursor.execute(f"CREATE DATABASE {schema}")
        admin.close()

    @staticmethod
    def end_prepared(cursor):
        """Ends what an earlier program left prepared; its connection may take a moment to let go of it. Returns the
        names of what it could not end, each with the reason."""
        refused = {}
        for _ in range(200):
            cursor.execute("XA RECOVER FORMAT='SQL'")
            names = [row[3] for row in cursor.fetchall()]  # quoted, as text
            if not names:
                return []
            for name in names:
                try:
                    cursor.execute(f"XA ROLLBACK {name}")
                except pymysql.err.Error as error:
                    refused[name] = error
            time.sleep(0.05)
        return [f"{name}: {refused.get(name, 'listed again')}" for name in names]

    def ensure_alive(self):
        """A server that crashed may still be writing its last words; what it left may not even start, then it gets a
        new data directory."""
        try:
            self.server.connect(ssl_disabled=True).close()
            return
        except (pymysql.err.Error, OSError):
            with contextlib.suppress(ServerError):
                self.server.kill()
        try:
            self.server.start()
        except ServerError:
            self.server.remove()
            self.server.start()

    def close(self):
        for connection in self.connections.values():
            try:
                connection.close()
            except (pymysql.err.Error, OSError):
                pass
        self.connections = {}

    def restart(self, how):
        self.close()
        if how == "kill":
            # The log up to here is on disk: also what a rollback left in it, such as counters.
            self.server.query("INSERT INTO marker.m VALUES (1)")
            self.server.kill()
        else:
            self.server.stop()
        self.server.start()
        self.counts[how, "ok"] += 1

    # --- one statement --------------------------------------------------------------------------------------
    def connection(self, session, side):
        if (session, side) not in self.connections:
            connection = self.server.connect(self.schemas[side], ssl_disabled=True)
            with connection.cursor() as cursor:
                cursor.execute(SESSION.replace("{e}", self.engines[side]))
            self.connections[session, side] = connection
        return self.connections[session, side]

    def both(self, statement):
        in_transaction = self.connection(statement.session, "q").server_status & IN_TRANSACTION
        mine, theirs = (self.execute(side, statement) for side in ("q", "i"))
        is_ddl = DDL.match(statement.sql) is not None
        if is_ddl:
            mine, theirs = self.settle_definition(statement, mine, theirs)
        elif SEARCH.search(statement.sql):
            mine, theirs = self.settle_search(statement, mine, theirs)
        self.counts[statement.sql.split(None, 1)[0], "error" if mine.error else "ok"] += 1
        codes = [outcome.error and outcome.error[0] for outcome in (mine, theirs)]
        if LOCK_ERRORS & set(codes):
            self.settle_locks(statement, codes, in_transaction and not is_ddl)
        elif (reason := self.excuse(statement, codes)) is not None:
            self.allowed[reason] += 1
            raise ProgramEnds
        elif codes[0] != codes[1] and ROW_SIZE_ERRORS & set(codes):
            self.allowed["row size"] += 1
            raise ProgramEnds
        else:
            self.compare(statement, mine, theirs, is_ddl)

    def settle_definition(self, statement, mine, theirs):
        refused = [o.error is not None and o.error[0] in ALGORITHM_ERRORS for o in (mine, theirs)]
        if refused[0] != refused[1]:
            self.allowed["ALGORITHM"] += 1
            self.copied = True
            side = "q" if refused[0] else "i"
            text = ALGORITHM.sub("ALGORITHM=DEFAULT", statement.text(self.engines[side], side))
            again = self.execute(side, statement, text)
            mine, theirs = (again, theirs) if refused[0] else (mine, again)
        if self.failed_check(mine) != self.failed_check(theirs):
            self.allowed["copy checks"] += 1
            raise ProgramEnds
        if " EXCHANGE PARTITION " in statement.sql and mine.error and "QUARRY_COLUMNS" in mine.error[1]:
            if theirs.error is None:
                self.allowed["exchange"] += 1
                self.execute("i", statement)
                return theirs, theirs
        return mine, theirs

    def settle_search(self, statement, mine, theirs):
        """Outcomes of a search that differed asked for again, until they agree or did not for long enough."""
        if same_rows(mine, theirs):
            return mine, theirs
        for _ in range(SEARCHES_MAX):
            time.sleep(SEARCH_PAUSE_S)
            mine, theirs = (self.execute(side, statement) for side in ("q", "i"))
            if same_rows(mine, theirs):
                self.allowed["FULLTEXT sync"] += 1
                break
        return mine, theirs

    def excuse(self, statement, codes):
        """Why only one of them failed, or both in their own ways, where that is the server's doing; or None."""
        if codes[0] == codes[1]:
            return None
        if JOIN_BUFFER_ERROR in codes and None in codes:
            return "join buffer"
        if set(codes) == {1062, 1452} and (self.copied or self.index_order("q") != self.index_order("i")):
            return "order"
        if 1048 in codes and JOINED_UPDATE.match(statement.sql):
            return "NULL by plan"
        if self.clock and 1034 in codes and None in codes:
            return "InnoDB 1034"
        return None

    def index_order(self, side):
        """Of each table the names of its indexes as InnoDB goes through them, in the order in which they were made."""
        order = collections.defaultdict(list)
        for table, index in self.server.query(
            "SELECT SUBSTRING_INDEX(t.name, '/', -1), i.name FROM information_schema.innodb_sys_tables t "
            "JOIN information_schema.innodb_sys_indexes i USING (table_id) WHERE t.name LIKE %s ORDER BY i.index_id",
            (f"{self.schemas[side]}/%",),
        ):
            order[table].append(index)
        return order

    @staticmethod
    def failed_check(outcome):
        """By its error or, of OPTIMIZE and its like, by what the rows say."""
        if outcome.error is not None:
            return outcome.error[0] == CHECK_FAILED
        return any("CONSTRAINT" in str(row[-1]) for row in outcome.rows or ())

    def settle_locks(self, statement, codes, can_roll_back):
        if self.auto_increment and INSERTS.match(statement.sql):
            self.allowed["locks"] += 1
            raise ProgramEnds
        if codes[0] == codes[1] == 1205:
            return
        if codes[0] != codes[1]:
            self.allowed["locks"] += 1
            if not can_roll_back:
                raise ProgramEnds
        # A deadlock's victim is rolled back already; the transaction that the program believes in goes on.
        for side in ("q", "i"):
            with self.connection(statement.session, side).cursor() as cursor:
                cursor.execute("ROLLBACK")
                if can_roll_back:
                    cursor.execute("BEGIN")

    def execute(self, side, statement, text=None):
        """The outcome of one statement on one engine."""
        connection = self.connection(statement.session, side)
        text = text or statement.text(self.engines[side], side)
        outcome = Outcome()
        try:
            with connection.cursor() as cursor:
                if self.clock:
                    cursor.execute(f"SET timestamp = {CLOCK_START + self.number}")
                if statement.how == "long":
                    outcome.affected, outcome.insert_id, warnings = execute_long(connection, text, statement.values)
                else:
                    if statement.how == "load":
                        text = text.replace("{file}", self.file(statement.file))
                    cursor.execute(text)
                    self.take_result(cursor, side, outcome)
                    warnings = cursor.warning_count
                if warnings and not DDL.match(text):
                    cursor.execute("SHOW WARNINGS")
                    outcome.warnings = [
                        (code, self.neutral(self.by_plan(text, message), side))
                        for level, code, message in cursor.fetchall()
                        if level != "Note"
                    ]
        except (pymysql.err.Error, OSError) as failure:
            if not isinstance(failure, pymysql.err.Error) or len(failure.args) < 2 or failure.args[0] in LOST:
                lost = self.lost(text, failure)
                if side == "i" and ENGINE.upper() != "INNODB" and "handle_fatal_signal" in lost and "plugin/" not in lost:
                    self.allowed["InnoDB crashed"] += 1
                    raise ProgramEnds from failure
                raise Difference("crash", self.number, lost) from failure
            outcome.error = (failure.args[0], self.neutral(failure.args[1], side))
        return outcome

    @staticmethod
    def by_plan(text, message):
        """A warning without what the plan decides."""
        if JOINED_UPDATE.match(text):
            return ""
        return AT_ROW.sub("", message) if "ORDER BY" in text else message

    def take_result(self, cursor, side, outcome):
        outcome.affected = cursor.rowcount
        if cursor.description is None:
            outcome.insert_id = cursor.lastrowid
        else:
            outcome.rows = [tuple(self.neutral(cell, side) for cell in row) for row in cursor.fetchall()]
            for cell in (cell for row in outcome.rows for cell in row if isinstance(cell, bytes)):
                self.look_for_heads(cell, "a result")

    def look_for_heads(self, data, where):
        """No value of a program ends in a whole trailer: one that is found got out of the engine."""
        if found := self.search.heads(data):
            raise Difference("head", self.number, f"statement {self.number}: {len(found)} raw heads in {where}")

    def search_logs(self):
        for path in sorted(self.server.datadir.glob("binlog.[0-9]*")):
            with path.open("rb") as log:
                log.seek(max(self.searched.get(path, 0) - TRAILER_SIZE_BYTES, 0))
                self.look_for_heads(log.read(), path.name)
                self.searched[path] = log.tell()

    def lost(self, text, failure):
        alive = self.server.alive()
        return (
            f"connection lost in {abbreviate(text)}: {failure}; the server is {'alive' if alive else 'dead'}\n"
            f"{self.server.error_log()[-9000:]}"
        )

    def neutral(self, cell, side):
        """Text without what must differ: the names of schema and engine."""
        if isinstance(cell, str) and len(cell) < 20000:
            cell = cell.replace(self.schemas[side], "<schema>")
            cell = re.sub(rf"(ENGINE=|engine )(`?){self.engines[side]}\b", r"\1\2<engine>", cell)
        return cell

    def file(self, content):
        path = self.files / hashlib.sha256(content).hexdigest()[:16]
        if not path.exists():
            path.write_bytes(content)
        return str(path)

    # --- comparing --------------------------------------------------------------------------------------------
    def compare(self, statement, mine, theirs, is_ddl):
        label = f"statement {self.number}, session {statement.session}: {abbreviate(statement.sql)}"

        def same(kind, left, right):
            if left != right:
                text = f"{label}\n  {ENGINE}: {abbreviate(left, 1500)}\n  InnoDB: {abbreviate(right, 1500)}"
                raise Difference(kind, self.number, f"{kind} differ: {text}")

        if is_ddl:
            same("errors", *(o.error and SAME_ERROR.get(o.error[0], o.error[0]) for o in (mine, theirs)))
        else:
            same("errors", mine.error, theirs.error)
        self.compare_rows(label, mine.rows, theirs.rows)
        if not is_ddl:
            same("affected rows", mine.affected, theirs.affected)
            same("insert ids", mine.insert_id, theirs.insert_id)
            same("warnings", mine.warnings, theirs.warnings)

    def compare_rows(self, label, left, right):
        if left == right:
            return
        if left is None or right is None:
            raise Difference("rows", self.number, f"one gave rows, one did not: {label}")
        left, right = sorted(left, key=sort_key), sorted(right, key=sort_key)
        if left == right:
            return
        pairs = [(a, b) for a, b in zip(left, right) if a != b][:2]
        shown = "".join(f"\n  {ENGINE}: {abbreviate(a)}\n  InnoDB: {abbreviate(b)}" for a, b in pairs)
        counts = f"{len(left)} and {len(right)} rows"
        raise Difference("rows", self.number, f"rows differ ({counts}): {label}{shown}")

    # --- whole tables -----------------------------------------------------------------------------------------
    def check(self, _=None):
        self.search_logs()
        tables = self.ask_both(
            "tables",
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() AND "
            "table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY 1",
        )
        for name, kind in tables:
            self.check_table(name, kind == "SYSTEM VERSIONED")
        self.counts["check", "ok"] += 1

    def check_table(self, name, versioned):
        columns = self.ask_both(
            "definitions",
            "SELECT column_name, data_type, column_type, is_nullable, collation_name, generation_expression FROM "
            f"information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{name}' ORDER BY "
            "ordinal_position",
        )
        lobs = {column[0] for column in columns if column[1].endswith(("blob", "text"))}
        generated = {column[0] for column in columns if column[5] is not None}
        shown = [f"LENGTH({c[0]}), MD5({c[0]})" if c[0] in lobs else c[0] for c in columns]
        history = " FOR SYSTEM_TIME ALL" if versioned else ""
        if versioned and "row_start" not in {column[0] for column in columns}:
            shown += ["row_start", "row_end"]
        self.ask_both("checked rows", f"SELECT {', '.join(shown)} FROM {name}{history}")
        self.ask_both("checksums", f"CHECKSUM TABLE {name}")
        self.check_verdict(name)
        indexes = self.ask_both(
            "indexes",
            "SELECT index_name, column_name FROM information_schema.statistics WHERE table_schema = DATABASE() AND "
            f"table_name = '{name}' AND seq_in_index = 1 AND index_type = 'BTREE' ORDER BY 1, 2",
        )
        for index, column in indexes:
            if column in lobs and not (versioned and column in generated):
                self.check_lookups(name, index, column)

    def check_lookups(self, name, index, column):
        """Each value found through the index. InnoDB alone now and then misses a row that a transaction still open has
        changed; it is told from a fault of ours by asking both once more, without the index."""
        query = f"SELECT COUNT(*) FROM {name} a STRAIGHT_JOIN {name} o {{}} ON o.{column} = a.{column}"
        try:
            self.ask_both("lookups", query.format(f"FORCE INDEX (`{index}`)"))
        except Difference:
            without = query.format("USE INDEX ()")
            found, truth = self.answers(query.format(f"FORCE INDEX (`{index}`)")), self.answers(without)
            if not (truth[0] == truth[1] == found[0] and found[1] != truth[1]):
                raise
            self.allowed["InnoDB's lookup"] += 1

    def check_verdict(self, name):
        # Not EXTENDED: that crashes InnoDB 10.11.18 now and then after an instant ADD COLUMN, without Quarry too.
        verdicts = self.answers(f"CHECK TABLE {name}")
        sound = ["OK" in {row[-1] for row in verdict} for verdict in verdicts]
        if sound[0] != sound[1]:
            text = f"check at {self.number}: CHECK TABLE {name}\n  {ENGINE}: {verdicts[0]}\n  InnoDB: {verdicts[1]}"
            raise Difference("CHECK TABLE", self.number, text)
        if not sound[0]:
            self.allowed["InnoDB's CHECK"] += 1
            raise ProgramEnds

    def answers(self, sql):
        """What both say to one query, of a session that is in no transaction; an error as a row."""
        answers = []
        for side in ("q", "i"):
            try:
                with self.connection("#", side).cursor() as cursor:
                    cursor.execute(sql)
                    rows = [tuple(self.neutral(cell, side) for cell in row) for row in cursor.fetchall()]
                    answers.append(sorted(rows, key=sort_key))
            except (pymysql.err.Error, OSError) as failure:
                code = failure.args[0] if failure.args else 0
                if not isinstance(failure, pymysql.err.Error) or code in LOST:
                    raise Difference("crash", self.number, self.lost(sql, failure)) from failure
                answers.append([("error", code, self.neutral(failure.args[1], side))])
        if any(rows and rows[0][0] == "error" and rows[0][1] in LOCK_ERRORS for rows in answers):
            self.allowed["locks"] += 1
            raise ProgramEnds
        return answers

    def ask_both(self, kind, sql):
        """Rows of one query, which must be equal."""
        answers = self.answers(sql)
        try:
            self.compare_rows(f"check at {self.number}: {abbreviate(sql)}", *answers)
        except Difference as difference:
            raise Difference(kind, self.number, f"{kind} differ: {difference.text}") from None
        if answers[0] and answers[0][0][0] == "error":
            raise Difference(kind, self.number, f"check failed on both: {sql}: {answers[0][0]}")
        return answers[0]
