"""A pair of schemas (QUARRY and InnoDB) in a server with a row-based binary log, and what may have seen a head of it.

Every statement goes to both and is compared, as by Twin, with its results searched for heads. At the end, by
`finish`: all tables with their history are equal; no binary log holds a head; a second server, restored from the logs
with mariadb-binlog, has the same rows in both schemas. So whatever the server made of a row (log, trigger's copy,
stored column, history) must have been made of values. Thread-safety: externally synchronised.
"""

import pymysql

from harness.heads import HeadSearch, make_trailer
from harness.twin import Twin
from harness.values import payload, text

# A user's own bytes, which end as a head ends: legal, and to come back as they are.
OWN_TRAILER = make_trailer()
VALUES = [
    b"short",
    payload("seventy", 70),
    payload("nine", 9000),
    payload("hundred", 100_000),
    None,
    b"",
    OWN_TRAILER,
    payload("tail", 300) + OWN_TRAILER,
    payload("long tail", 9000) + OWN_TRAILER,
]
TEXTS = [value if value is None or value.endswith(OWN_TRAILER) else text(len(value), len(value)) for value in VALUES]
IMAGES = ("FULL", "MINIMAL", "NOBLOB")
CLOCK_START = 1_600_000_000
LOG_OPTIONS = ["--log-bin=binlog", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0"]


def value(number):
    """A value for a BLOB, of the kinds in turn."""
    return VALUES[number % len(VALUES)]


def insert(pair, table, columns, rows):
    """Rows in one statement."""
    marks = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
    pair.run(f"INSERT INTO {table} ({columns}) VALUES {marks}", [cell for row in rows for cell in row])


def words(number):
    """A value for a TEXT of latin1: other kinds than value() has of the same number."""
    return TEXTS[(number * 2 + 1) % len(TEXTS)]


class LoggedPair(Twin):
    """`restored`: the server that is filled from the logs of `server` (None: nothing is).

    `image`: the row image of all that is logged. `create`: the schemas are not there yet.
    """

    def __init__(self, server, restored, name, image="FULL", create=True):
        server.query("FLUSH BINARY LOGS")
        status = server.query("SHOW MASTER STATUS")
        self.first_log = status[0][0] if status else None
        self.restored, self.image = restored, image
        self.search = HeadSearch([OWN_TRAILER])
        self.clock = CLOCK_START
        super().__init__(server, name, create=create)

    def connection(self, session, schema):
        known = (session, schema) in self.connections
        connection = super().connection(session, schema)
        if not known:
            with connection.cursor() as cursor:
                cursor.execute(f"SET binlog_row_image = {self.image}")
        return connection

    def run(self, sql, args=None, session="main", **expected):
        """As Twin's, at one and the same time of both sides' clocks; each statement a second later than the one
        before."""
        self.clock += 1
        for schema in self.engines:
            with self.connection(session, schema).cursor() as cursor:
                cursor.execute("SET timestamp = %s", (self.clock,))
        outcome = super().run(sql, args, session=session, **expected)
        self.search.check_rows(outcome.rows, f"result of {sql[:200]}")
        return outcome

    def plan(self, sql):
        """EXPLAIN's text, of the engine under test."""
        return " | ".join(
            str(cell) for row in self._execute(self.under_test, f"EXPLAIN {sql}", None, "main").rows for cell in row
        )

    # --- the end ----------------------------------------------------------------------------------------------------
    def check(self, *tables, session="main"):
        assert not tables and session == "main", "all tables are compared, with their history"
        compare_schemas(self.server, self.engines)

    def finish(self):
        """Everything that was made of rows is right, here and in a server restored from the logs."""
        self.check()
        self.server.query("FLUSH BINARY LOGS")
        assert self.search.check_logs(self.server, first=self.first_log) > 1
        self.restore()
        compare_schemas(self.restored, self.engines)
        assert self.search.bytes_searched > 0

    def restore(self):
        logs = sorted(path for path in self.server.datadir.glob("binlog.[0-9]*") if path.name >= self.first_log)
        script = self.server.directory / "restore.sql"
        script.write_bytes(self.server.client_tool("mariadb-binlog", "--skip-annotate-row-events", *map(str, logs)))
        with script.open("rb") as stream:
            try:
                self.restored.client_tool("mariadb", "--max-allowed-packet=1G", "--binary-mode", stdin=stream)
            except AssertionError as failure:  # it repeats the whole event
                raise AssertionError(f"restoring failed: {str(failure)[-500:]}") from None
        script.unlink()

    def close(self, drop=True):
        super().close(drop)
        if self.restored is not None:
            for schema in self.engines:
                self.restored.query(f"DROP DATABASE IF EXISTS {schema}")


def compare_schemas(server, schemas):
    """Of one server: all tables of both, with their history, row by row."""
    first, second = schemas
    tables = tables_of(server, first)
    assert tables == tables_of(server, second) and tables, f"{server.name}: {tables}"
    # CHECK TABLE takes entries of an indexed VIRTUAL column that are still to be purged for corruption, with every
    # engine.
    server.query("SET GLOBAL innodb_max_purge_lag_wait = 0")
    for name, versioned in tables:
        mine, theirs = (whole_table(server, schema, name, versioned) for schema in schemas)
        differing = [pair for pair in zip(mine, theirs) if pair[0] != pair[1]][:2]
        assert mine == theirs, f"{name} in {server.name}: {len(mine)} and {len(theirs)} rows; differing: {differing}"
        # On a replica InnoDB may leave entries behind in the index of a VIRTUAL column, with every engine: in its own
        # table then as many.
        mine, theirs = ([row[2:] for row in server.query(f"CHECK TABLE `{schema}`.`{name}`")] for schema in schemas)
        assert mine == theirs, f"{name} in {server.name}: {mine}, and the twin {theirs}"


def tables_of(server, schema):
    """(name, whether it is system-versioned) of each table."""
    rows = server.query(
        "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s AND table_type <> 'VIEW' "
        "ORDER BY 1",
        (schema,),
    )
    return [(name, kind == "SYSTEM VERSIONED") for name, kind in rows]


def whole_table(server, schema, name, versioned):
    """Every row, sorted; values by length and SHA-256."""
    columns = server.query(
        "SELECT column_name, data_type, COALESCE(generation_expression, '') FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        (schema, name),
    )
    parts = [
        f"CONCAT(LENGTH(`{column}`), ':', SHA2(`{column}`, 256))" if kind.endswith(("blob", "text")) else f"`{column}`"
        for column, kind, _ in columns
    ]
    if versioned and not any(expression == "ROW START" for _, _, expression in columns):
        # An applier's cascade may be a microsecond away from its statement, with every engine.
        parts += ["CAST(row_start AS DATETIME)", "CAST(row_end AS DATETIME)"]
    history = " FOR SYSTEM_TIME ALL" if versioned else ""
    return sorted(server.query(f"SELECT {', '.join(parts)} FROM `{schema}`.`{name}`{history}"), key=repr)


def expect_error(server, sql, database, number):
    """The message of the error that this statement must end with."""
    try:
        server.query(sql, database=database)
    except pymysql.err.Error as failure:
        assert failure.args[0] == number, failure
        return failure.args[1]
    raise AssertionError(f"no error {number}: {sql}")
