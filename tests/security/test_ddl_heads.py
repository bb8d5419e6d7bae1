"""After each kind of DDL: in InnoDB's rows no field ends like a head that Quarry did not write.

Each statement brings in bytes that are a head, of a value of another table and of a store that never was, by every expression
that a DDL statement evaluates. They are refused, or go to a segment, or are stored as the value that they are: read back they
are the same bytes, and the only trailers in InnoDB's files are those of stores that are bound to that table.
"""

from contextlib import closing

import pymysql
import pytest

from harness.heads import find_trailers, make_trailer
from harness.innodb_page import replace_bytes
from harness.server import NO_BACKGROUND, Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

SECRET = payload("the victim's secret", 9000)
FORGED = "X'{forged}'"
HALF = "IF(RAND(1) < 0.5, X'{forged}', 'harmless')"
KINDS = {
    "add a column with a literal": ["ALTER TABLE t ADD COLUMN c LONGBLOB DEFAULT (X'{forged}')"],
    "add a column, evaluated twice": [f"ALTER TABLE t ADD COLUMN c LONGBLOB DEFAULT ({HALF})"],
    "add a column, instant": [f"ALTER TABLE t ADD COLUMN c LONGBLOB DEFAULT ({FORGED}), ALGORITHM=INSTANT"],
    "add a column, in place": [f"ALTER TABLE t ADD COLUMN c LONGBLOB DEFAULT ({HALF}), ALGORITHM=INPLACE"],
    "add a column that others come from": [
        "ALTER TABLE t ADD COLUMN v VARBINARY(100) DEFAULT (X'{forged}')",
        "ALTER TABLE t ADD COLUMN c LONGBLOB DEFAULT (v)",
        "ALTER TABLE t MODIFY v LONGBLOB",
    ],
    "a virtual column": ["ALTER TABLE t ADD COLUMN c LONGBLOB AS (CONCAT(s, X'{forged}')) VIRTUAL", "ALTER TABLE t FORCE"],
    "a stored column": ["ALTER TABLE t ADD COLUMN c LONGBLOB AS (CONCAT(s, X'{forged}')) PERSISTENT"],
    "modify VARBINARY": ["UPDATE t SET s = X'{forged}'", "ALTER TABLE t MODIFY s LONGBLOB"],
    "modify TINYBLOB": ["ALTER TABLE t ADD COLUMN c TINYBLOB", "UPDATE t SET c = X'{forged}'", "ALTER TABLE t MODIFY c LONGBLOB"],
    "modify COMPRESSED": [
        "ALTER TABLE t ADD COLUMN c LONGBLOB COMPRESSED",
        "UPDATE t SET c = X'{forged}'",
        "ALTER TABLE t MODIFY c LONGBLOB",
    ],
    "change the options": ["UPDATE t SET b = X'{forged}'", "ALTER TABLE t COMMENT='INLINE_SIZE'", "ALTER TABLE t FORCE"],
    "drop an index that kept it whole": [
        "ALTER TABLE t ADD COLUMN c BLOB, ADD UNIQUE KEY c (c)",
        "UPDATE t SET c = X'{forged}' WHERE id = 1",
        "ALTER TABLE t DROP KEY c",
    ],
    "from InnoDB": ["ALTER TABLE t ENGINE=InnoDB", "UPDATE t SET b = X'{forged}'", "ALTER TABLE t ENGINE={e}"],
    "create as select": ["CREATE TABLE made ENGINE={e} AS SELECT id, CAST(X'{forged}' AS BINARY) b FROM t", "ALTER TABLE made MODIFY b LONGBLOB"],
    "partitions": ["UPDATE t SET b = X'{forged}'", "ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 3", "ALTER TABLE t REMOVE PARTITIONING"],
    "rename a column": [f"ALTER TABLE t CHANGE b bb LONGBLOB DEFAULT ({FORGED})", "INSERT INTO t (id, s) VALUES (50, 's')"],
    "set a default": [f"ALTER TABLE t ALTER COLUMN b SET DEFAULT ({HALF})", "INSERT INTO t (id, s) VALUES (51, 's')", "ALTER TABLE t FORCE, ALGORITHM=INPLACE"],
    "not null": [f"ALTER TABLE t ADD COLUMN c LONGBLOB", f"ALTER TABLE t MODIFY c LONGBLOB NOT NULL DEFAULT ({HALF})"],
    "optimize": ["UPDATE t SET b = X'{forged}'", "OPTIMIZE TABLE t"],
    "truncate": ["TRUNCATE TABLE t", "INSERT INTO t VALUES (1, X'{forged}', 's')"],
    "copy": ["UPDATE t SET b = X'{forged}'", "CREATE TABLE made LIKE t", "INSERT INTO made SELECT * FROM t", "DROP TABLE t", "RENAME TABLE made TO t"],
    "exchange": [
        "CREATE TABLE made (id INT PRIMARY KEY, b LONGBLOB, s VARBINARY(200)) ENGINE=InnoDB PARTITION BY HASH (id) PARTITIONS 1",
        "INSERT INTO made VALUES (60, X'{forged}', '')",
        "ALTER TABLE made EXCHANGE PARTITION p0 WITH TABLE t",
    ],
    "versioning": ["ALTER TABLE t ADD SYSTEM VERSIONING", "UPDATE t SET b = X'{forged}'", "ALTER TABLE t DROP SYSTEM VERSIONING"],
    "a trigger": ["CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.b = X'{forged}'", "INSERT INTO t (id) VALUES (70)"],
    "fulltext": ["ALTER TABLE t ADD COLUMN c LONGTEXT, ADD FULLTEXT KEY c (c)", "ALTER TABLE t DROP KEY c", "UPDATE t SET b = X'{forged}'"],
}


@pytest.fixture(scope="module")
def server():
    """With `server.forged`: bytes that are a head, by whose it is."""
    server = Server("security-ddl", ["--innodb-fast-shutdown=0", *NO_BACKGROUND]).start()
    server.query("CREATE DATABASE other")
    server.query("CREATE TABLE other.victim (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PREFIX_SIZE=0")
    server.query("INSERT INTO other.victim VALUES (1, %s)", (SECRET,))
    server.stop()
    ((_, victims),) = find_trailers((server.datadir / "other" / "victim.ibd").read_bytes())
    server.forged = {"the victim's": victims, "of no store": make_trailer()}
    server.start()
    yield server
    server.remove()


def run(cursor, statements, engine, forged):
    """What each statement came to: None, or its error's number."""
    outcomes = []
    for statement in statements:
        try:
            cursor.execute(statement.replace("{forged}", forged.hex()).replace("{e}", engine))
            cursor.fetchall()
            outcomes.append(None)
        except pymysql.err.Error as refused:
            outcomes.append(refused.args[0])
    return outcomes


def contents(cursor):
    """Every row of every table, history rows too."""
    cursor.execute("SHOW TABLES")
    found = {}
    for (table,) in cursor.fetchall():
        cursor.execute(f"SHOW CREATE TABLE {table}")
        all_rows = " FOR SYSTEM_TIME ALL" if "WITH SYSTEM VERSIONING" in cursor.fetchone()[1] else ""
        cursor.execute(f"SELECT * FROM {table}{all_rows} ORDER BY id")
        found[table] = cursor.fetchall()
    return found


def drawn(tables, either):
    """What RAND() chose is another one in a copy than in place: each of `either` is the same."""
    return {
        table: [tuple("drawn" if field in either else field for field in row) for row in rows]
        for table, rows in tables.items()
    }


def refused_heads(server):
    return int(server.status("quarry_foreign_heads_refused")["quarry_foreign_heads_refused"])


@pytest.mark.parametrize("whose", ["the victim's", "of no store"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_field_ends_like_a_head_that_quarry_did_not_write(server, kind, whose):
    """What InnoDB holds is read by every statement here: bytes that it took for a head would be refused, or be a value."""
    before = refused_heads(server)
    seen, outcomes = {}, {}
    for engine in ("QUARRY", "InnoDB"):
        connection = server.connect()
        with closing(connection), connection.cursor() as cursor:
            cursor.execute("CREATE OR REPLACE DATABASE app")
            cursor.execute("USE app")
            cursor.execute("SET timestamp = 1700000000")
            cursor.execute(
                f"CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, s VARBINARY(200)) ENGINE={engine} "
                + ("INLINE_SIZE=500 PREFIX_SIZE=0" if engine == "QUARRY" else "")
            )
            cursor.execute("INSERT INTO t VALUES (1, REPEAT('a', 9000), ''), (2, 'short', 'x'), (3, NULL, NULL)")
            outcomes[engine] = run(cursor, KINDS[kind], engine, server.forged[whose])
            seen[engine] = contents(cursor)
            for table in seen[engine]:
                cursor.execute(f"CHECK TABLE {table} EXTENDED")
                assert [row[2:] for row in cursor.fetchall()] == [("status", "OK")], (kind, table)
    assert refused_heads(server) == before
    assert SECRET not in str(seen["QUARRY"]).encode() and SECRET not in b"".join(
        field for rows in seen["QUARRY"].values() for row in rows for field in row if isinstance(field, bytes)
    )
    assert outcomes["InnoDB"].count(None) > 0
    if outcomes["QUARRY"] == outcomes["InnoDB"]:
        either = {server.forged[whose], b"harmless"} if any("RAND" in statement for statement in KINDS[kind]) else set()
        assert drawn(seen["QUARRY"], either) == drawn(seen["InnoDB"], either), kind
    else:
        print(f"{kind}: Quarry refuses {outcomes['QUARRY']}, InnoDB {outcomes['InnoDB']}")
        assert all(outcome is not None for outcome, its in zip(outcomes["QUARRY"], outcomes["InnoDB"]) if outcome != its)


def test_the_look_would_find_one(server):
    """A head that is brought in past everything, into InnoDB's page, is refused and counted: the test above can fail."""
    mark = payload("a place to forge", len(server.forged["the victim's"]))
    server.query("CREATE OR REPLACE DATABASE app")
    server.query("CREATE TABLE app.t (id INT PRIMARY KEY, b LONGBLOB, s VARBINARY(200)) ENGINE=QUARRY")
    server.query("INSERT INTO app.t VALUES (1, %s, '')", (mark,))
    server.stop()
    replace_bytes(server.datadir / "app" / "t.ibd", mark, server.forged["the victim's"])
    server.start()
    before = refused_heads(server)
    with pytest.raises(pymysql.err.Error):
        server.query("SELECT * FROM app.t")
    assert refused_heads(server) == before + 1
