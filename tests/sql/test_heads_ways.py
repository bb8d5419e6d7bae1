"""Bytes that end like a head, a user's own, through every way in which bytes reach InnoDB's rows past the handler.

Each is compared with an InnoDB twin, after a restart of the tables, too (FLUSH TABLES), and changed and deleted in
the end. And stores that follow their tables: what a table's heads say stays its own through DDL that gives the rows
to another table.
"""

import itertools

import pytest

from harness.heads import make_trailer
from harness.lookers import OWN_TRAILER, insert, value, words
from harness.server import ENGINE
from harness.values import payload

OWN = {
    "trailer": OWN_TRAILER,
    "behind some bytes": payload("own", 200) + OWN_TRAILER,
    "behind many bytes": payload("own", 9000) + OWN_TRAILER,
    "a store that may be": make_trailer(store=1),
}
BASE = "id INT PRIMARY KEY, n INT, b LONGBLOB"
NOT_IN_PLACE = {1845, 1846}


def literal(raw):
    return f"X'{raw.hex()}'"


def alter(twin, sql, algorithm):
    """In the way asked for where the engine does so, else in any. In its own way is what QUARRY may always say."""
    for schema in twin.engines:
        outcome = twin._execute(schema, f"{sql}, ALGORITHM={algorithm}", None, "main")
        if outcome.error is not None:
            assert outcome.error[0] in NOT_IN_PLACE, outcome.error
            outcome = twin._execute(schema, sql, None, "main")
            assert outcome.error is None, outcome.error


def look(twin, table="t", column="b"):
    """All that is there; then changed and deleted."""
    for _ in range(2):
        twin.run(f"SELECT * FROM {table} ORDER BY id")
        twin.run(
            f"SELECT id, HEX(RIGHT({column}, 70)), LENGTH({column}) FROM {table} WHERE {column} IS NOT NULL ORDER BY id"
        )
        twin.run(f"FLUSH TABLES {table}")
    twin.run(f"UPDATE {table} SET n = n + 1")
    twin.run(f"UPDATE {table} SET {column} = CONCAT('x', {column}) WHERE id = 2")
    twin.run(f"DELETE FROM {table} WHERE id = 3")
    twin.run(f"INSERT IGNORE INTO {table} (id, n, {column}) SELECT id + 100, n, {column} FROM {table}")
    twin.check()


def fill(twin, rows=9):
    twin.run(f"CREATE TABLE t ({BASE}) ENGINE={{e}}")
    insert(twin, "t", "id, n, b", [(i, i, value(i)) for i in range(rows)])


# --- DEFAULTs -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("algorithm", ["INSTANT", "INPLACE", "NOCOPY", "COPY"])
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.replace(" ", "-"))
def test_defaults_of_new_columns(twin, own, algorithm):
    fill(twin)
    for number, (type_, expression) in enumerate(
        (
            ("LONGBLOB", literal(OWN[own])),
            ("LONGBLOB NOT NULL", f"(CONCAT({literal(OWN[own][:-8])}, {literal(OWN[own][-8:])}))"),
            ("MEDIUMTEXT CHARACTER SET latin1", literal(OWN[own])),
        )
    ):
        alter(twin, f"ALTER TABLE t ADD COLUMN v{number} {type_} DEFAULT {expression}", algorithm)
    twin.run("INSERT INTO t (id, n) VALUES (50, 1), (51, 2)")
    twin.run("INSERT INTO t (id, n, v0) VALUES (52, 1, DEFAULT), (53, 2, DEFAULT(v1))")
    look(twin, column="v0")
    twin.run("SELECT id, MD5(v1), MD5(v2) FROM t ORDER BY id")


FORGED = literal(make_trailer())
# Once harmless, once not: what the engine looks at before the ALTER need not be what InnoDB puts into the rows.
CHANGING = {
    "a random number": f"IF(RAND(1) < 0.5, {FORGED}, 'harmless')",
    "another random number": f"IF(RAND(2) < 0.5, {FORGED}, 'harmless')",
    "the time": f"IF(SYSDATE(6) > NOW(6) + INTERVAL -1 SECOND, {FORGED}, 'harmless')",
    "an identifier": f"IF(UUID() <> 'x', {FORGED}, 'harmless')",
    "the user": f"IF(CURRENT_USER() LIKE 'root%', {FORGED}, 'harmless')",
    "the connection": f"IF(CONNECTION_ID() > 0, {FORGED}, 'harmless')",
    "a number of the session": f"IF(LAST_INSERT_ID() >= 0, {FORGED}, 'harmless')",
    "another column": f"IF(n % 2, {FORGED}, 'harmless')",
}


@pytest.mark.parametrize("algorithm", ["", ", ALGORITHM=INSTANT", ", ALGORITHM=INPLACE", ", FORCE, ALGORITHM=INPLACE"])
@pytest.mark.parametrize("way", CHANGING, ids=lambda way: way.replace(" ", "-"))
def test_defaults_that_are_no_literals(twin, way, algorithm):
    """Whatever the expression gives is a value, never a head; in place it is refused."""
    fill(twin)
    sql = f"ALTER TABLE t ADD COLUMN v LONGBLOB DEFAULT ({CHANGING[way]}){algorithm}"
    outcomes = [twin._execute(schema, sql, None, "main") for schema in twin.engines]
    for schema, outcome in zip(twin.engines, outcomes):
        if outcome.error is not None:
            assert outcome.error[0] not in (1296, 1030), outcome.error
            continue
        values = {row[0] for row in twin.server.query(f"SELECT v FROM {schema}.t")}
        assert values <= {make_trailer(), b"harmless"}, f"{schema}: {[len(v) for v in values]}"
        assert twin.server.query(f"CHECK TABLE {schema}.t")[-1][-1] == "OK"
        twin.server.query(f"INSERT INTO {schema}.t (id, n) VALUES (90, 1), (91, 2)")
        twin.server.query(f"SELECT v FROM {schema}.t")
        twin.server.query(f"DELETE FROM {schema}.t")


def test_defaults_for_what_was_null(twin):
    """MODIFY to NOT NULL, and DEFAULTs that are set for later."""
    fill(twin)
    twin.run("SET sql_mode = ''")
    for own, algorithm in itertools.product(OWN.values(), ("COPY", "INPLACE")):
        twin.run("UPDATE t SET b = NULL WHERE id IN (1, 4)")
        alter(twin, f"ALTER TABLE t MODIFY b LONGBLOB NOT NULL DEFAULT {literal(own)}", algorithm)
        twin.run("INSERT INTO t (id, n) SELECT 60 + COUNT(*), 0 FROM t")
        twin.run("SELECT * FROM t ORDER BY id")
        alter(twin, "ALTER TABLE t MODIFY b LONGBLOB", algorithm)
        alter(twin, f"ALTER TABLE t ALTER COLUMN b SET DEFAULT {literal(own)}", "INPLACE")
        twin.run("INSERT INTO t (id, n) SELECT 60 + COUNT(*), 0 FROM t")
    look(twin)


# --- types ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("algorithm", ["INSTANT", "INPLACE", "COPY"])
@pytest.mark.parametrize(
    "old",
    [
        "VARBINARY(100)",
        "VARBINARY(9100)",
        "TINYBLOB",
        "BLOB",
        "MEDIUMBLOB",
        "BLOB COMPRESSED",
        "VARBINARY(300) COMPRESSED",
    ],
)
def test_types_that_grow(twin, old, algorithm):
    """From types that Quarry does not manage, or with other limits."""
    twin.run(f"CREATE TABLE t (id INT PRIMARY KEY, n INT, b {old}) ENGINE={{e}}")
    limit = {"VARBINARY(100)": 100, "TINYBLOB": 255, "VARBINARY(300) COMPRESSED": 300}.get(old, 9100)
    fitting = [raw for raw in OWN.values() if len(raw) <= limit]
    insert(twin, "t", "id, n, b", [(i, i, raw) for i, raw in enumerate([*fitting, b"", None, b"short", *fitting])])
    alter(twin, "ALTER TABLE t MODIFY b LONGBLOB", algorithm)
    look(twin)


def test_from_other_engines_and_back(twin):
    twin.run(f"CREATE TABLE t ({BASE}, x VARBINARY(200), KEY (n)) ENGINE=InnoDB")
    insert(twin, "t", "id, n, b, x", [(i, i, raw, OWN_TRAILER) for i, raw in enumerate(OWN.values())])
    for engine in ("{e}", "Aria", "{e}", "InnoDB", "{e}"):
        twin.run(f"ALTER TABLE t ENGINE={engine}")
        twin.run("SELECT * FROM t ORDER BY id")
    twin.run("ALTER TABLE t CHANGE x y LONGBLOB FIRST")
    look(twin)


# --- generated columns, row events ----------------------------------------------------------------------------------
def test_generated_columns(twin):
    """InnoDB stores what they come to: a STORED one, and the entries of an indexed VIRTUAL one."""
    twin.run(
        f"CREATE TABLE t ({BASE}, s LONGBLOB AS (CONCAT(b, {literal(OWN_TRAILER)})) STORED, w LONGBLOB AS"
        f" (CONCAT(LEFT(b, 10), {literal(OWN_TRAILER)})) VIRTUAL, KEY (w(30))) ENGINE={{e}}"
    )
    insert(twin, "t", "id, n, b", [(i, i, value(i)) for i in range(9)])
    twin.run("SELECT id FROM t FORCE INDEX (w) WHERE w >= 's' ORDER BY id")
    look(twin)
    for algorithm in ("COPY", "INPLACE"):
        alter(
            twin,
            f"ALTER TABLE t ADD COLUMN g{algorithm} LONGBLOB AS (CONCAT(n, {literal(OWN_TRAILER)})) STORED",
            algorithm,
        )
        alter(
            twin,
            f"ALTER TABLE t ADD COLUMN h{algorithm} LONGBLOB AS (CONCAT(n, {literal(OWN_TRAILER)})) VIRTUAL",
            algorithm,
        )
        alter(twin, f"ALTER TABLE t ADD KEY (h{algorithm}(40))", algorithm)
    look(twin)


def test_row_events_into_another_type(make_pair):
    """What is VARBINARY where the event was written is a LONGBLOB where it is applied."""
    pair = make_pair("FULL")
    pair.restored.query("SET GLOBAL slave_type_conversions = 'ALL_NON_LOSSY'")
    try:
        definition = "CREATE TABLE t (id INT PRIMARY KEY, n INT, b {type}, c {type}) ENGINE={engine}"
        for schema, engine in pair.engines.items():
            pair.restored.query(f"CREATE DATABASE {schema}")
            pair.restored.query(definition.format(type="LONGBLOB", engine=engine), database=schema)
            with pair.connection("main", schema).cursor() as cursor:
                cursor.execute("SET sql_log_bin = 0")
                cursor.execute(definition.format(type="VARBINARY(9100)", engine=engine))
                cursor.execute("SET sql_log_bin = 1")
        pair.server.query("FLUSH BINARY LOGS")
        pair.first_log = pair.server.query("SHOW MASTER STATUS")[0][0]
        insert(pair, "t", "id, n, b, c", [(i, i, raw, OWN_TRAILER) for i, raw in enumerate(OWN.values())])
        pair.run("UPDATE t SET n = n + 1")
        pair.run("UPDATE t SET b = c WHERE id = 2")
        pair.run("DELETE FROM t WHERE id = 1")
        pair.search.own.add(OWN["a store that may be"])
        pair.finish()
    finally:
        pair.restored.query("SET GLOBAL slave_type_conversions = ''")


# --- other tables' rows ---------------------------------------------------------------------------------------------
def fill_partitions(twin):
    twin.run(
        f"CREATE TABLE p ({BASE}) ENGINE={{e}} PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION"
        " p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE)"
    )
    insert(twin, "p", "id, n, b", [(i, i, value(i)) for i in range(30)])


def test_partitions_that_change_places(twin):
    """EXCHANGE and CONVERT: rows, heads and own bytes come to another table, and the stores with them."""
    fill_partitions(twin)
    fill(twin)
    for _ in range(2):
        twin.run("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE t")
        twin.all(
            "SELECT * FROM p ORDER BY id", "SELECT * FROM t ORDER BY id", "UPDATE p SET n = n + 1", "FLUSH TABLES p, t"
        )
        twin.run("DELETE FROM t WHERE id = 4")
    twin.run("ALTER TABLE p CONVERT PARTITION p1 TO TABLE q")
    twin.all(
        "SELECT * FROM q ORDER BY id", "UPDATE q SET b = CONCAT('q', b) WHERE id < 14", "DELETE FROM q WHERE id = 18"
    )
    twin.run(
        "ALTER TABLE p REORGANIZE PARTITION p2 INTO (PARTITION p1b VALUES LESS THAN (25), PARTITION p2 VALUES LESS THAN"
        " MAXVALUE)"
    )
    twin.check()
    twin.run("ALTER TABLE q DROP COLUMN n")
    twin.run("ALTER TABLE q ADD COLUMN n INT AFTER id")
    look(twin, "p")
    look(twin, "q")


def test_stores_follow_their_tables(twin):
    """Through every DDL that gives rows another name or another InnoDB table, heads stay the table's own."""
    fill_partitions(twin)
    fill(twin)
    for sql in (
        "RENAME TABLE t TO u, p TO t, u TO p",
        "RENAME TABLE t TO u, p TO t, u TO p",
        "ALTER TABLE t ADD COLUMN x INT",
        "ALTER TABLE t FORCE",
        "ALTER TABLE t FORCE, ALGORITHM=INPLACE",
        "ALTER TABLE t ADD KEY (n), ALGORITHM=INPLACE",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n, id), ALGORITHM=INPLACE",
        "OPTIMIZE TABLE t",
        "ALTER TABLE p REBUILD PARTITION p0, p2",
        "ALTER TABLE p FORCE, ALGORITHM=INPLACE",
        "ALTER TABLE p TRUNCATE PARTITION p1",
        "ALTER TABLE p REMOVE PARTITIONING",
        "ALTER TABLE p PARTITION BY HASH (id) PARTITIONS 2",
        "ALTER TABLE p COALESCE PARTITION 1",
    ):
        twin.run(sql, compare=False)
        twin.all(
            "SELECT * FROM t ORDER BY id",
            "SELECT * FROM p ORDER BY id",
            "UPDATE t SET n = n + 1",
            "UPDATE p SET n = n + 1",
        )
    twin.all("TRUNCATE TABLE t", "INSERT INTO t (id, n, b) SELECT id, n, b FROM p", "SELECT * FROM t ORDER BY id")
    twin.check()


def test_temporary_tables(twin):
    """Their ids overlap with others': what they hold is theirs alone."""
    fill(twin)
    twin.run("CREATE TEMPORARY TABLE w (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE={e}")
    twin.run("INSERT INTO w SELECT * FROM t")
    for sql in (
        "ALTER TABLE w ADD COLUMN x INT",
        "ALTER TABLE w FORCE",
        "UPDATE w SET n = n + 1",
        "DELETE FROM w WHERE id < 3",
        "TRUNCATE TABLE w",
        "INSERT INTO w (id, n, b) SELECT id, n, b FROM t",
        "ALTER TABLE w RENAME TO z",
    ):
        twin.run(sql)
        twin.run(f"SELECT * FROM {'z' if 'RENAME' in sql else 'w'} ORDER BY id")
    twin.run("INSERT INTO t (id, n, b) SELECT id + 50, n, b FROM z")
    twin.run("DROP TEMPORARY TABLE z")
    look(twin)


# --- restores -------------------------------------------------------------------------------------------------------
def test_dumps(twin):
    twin.run(
        f"CREATE TABLE t ({BASE}, v LONGTEXT CHARACTER SET latin1, x VARBINARY(100) DEFAULT {literal(OWN_TRAILER)})"
        " ENGINE={e}"
    )
    insert(twin, "t", "id, n, b, v", [(i, i, raw, raw) for i, raw in enumerate(OWN.values())])
    insert(twin, "t", "id, n, b, v", [(i + 10, i, value(i), words(i)) for i in range(9)])
    server = twin.server
    for options in (["--hex-blob"], ["--default-character-set=binary", "--skip-extended-insert"]):
        for schema in twin.engines:
            path = server.directory / "own.sql"
            path.write_bytes(server.client_tool("mariadb-dump", "--max-allowed-packet=1G", *options, schema))
            server.query(f"DROP TABLE {schema}.t")
            with path.open("rb") as stream:
                server.client_tool("mariadb", "--max-allowed-packet=1G", "--binary-mode", schema, stdin=stream)
            path.unlink()
        twin.check()
    assert (
        server.query(f"SELECT engine FROM information_schema.tables WHERE table_schema = '{twin.under_test}'")[0][
            0
        ].upper()
        == ENGINE.upper()
    )
    look(twin)


def test_files(twin):
    """LOAD DATA, INTO OUTFILE, LOAD_FILE."""
    fill(twin)
    for number, raw in enumerate(OWN.values()):
        single = twin.server.files / f"own{number}"
        single.write_bytes(raw)
        single.chmod(0o644)
        twin.run(f"INSERT INTO t VALUES ({70 + number}, 0, LOAD_FILE('{single}'))")
    outside = twin.server.files / "out.txt"
    for schema in twin.engines:
        outside.unlink(missing_ok=True)
        twin.server.query(f"SELECT * FROM {schema}.t INTO OUTFILE '{outside}' CHARACTER SET binary")
        twin.server.query(f"DELETE FROM {schema}.t")
        twin.server.query(f"LOAD DATA INFILE '{outside}' INTO TABLE {schema}.t CHARACTER SET binary")
    outside.unlink()
    look(twin)
