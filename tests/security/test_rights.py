"""What accounts with few rights learn: of other people's tables nothing, neither a name nor that there are any.

Compared: every status variable, system variable, INFORMATION_SCHEMA.QUARRY_* table and error text, as an account without a
grant, with one table's SELECT, with one column's, with TRIGGER alone; beside what the server's own COLUMNS and TABLES show.
"""

from contextlib import closing

import pymysql
import pytest

from harness.gc import Gc
from harness.server import NO_BACKGROUND, Server
from harness.values import payload
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

HIDDEN = "hushhush"  # in the name of the database, the table and the columns that no account but root may see
ACCOUNTS = {
    "nobody": (),
    "one_table": ("SELECT ON app.open",),
    "one_column": ("SELECT (id) ON app.open",),
    "one_blob": ("SELECT (shown) ON app.open",),
    "triggers": ("TRIGGER ON app.open",),
    "showview": ("SHOW VIEW ON app.open",),
    "writer": ("INSERT ON app.open",),
    "one_schema": ("ALL ON app.*",),
}


@pytest.fixture(scope="module")
def server():
    server = Server("security-rights", [*NO_BACKGROUND]).start()
    server.query(f"CREATE DATABASE {HIDDEN}")
    server.query("CREATE DATABASE app")
    server.query(f"CREATE TABLE {HIDDEN}.{HIDDEN} (id INT PRIMARY KEY, {HIDDEN} LONGBLOB) ENGINE=QUARRY")
    server.query("CREATE TABLE app.open (id INT PRIMARY KEY, shown LONGBLOB, other LONGTEXT) ENGINE=QUARRY")
    for table in (f"{HIDDEN}.{HIDDEN}", "app.open"):
        columns = f"(id, {HIDDEN})" if HIDDEN in table else "(id, shown)"
        server.query(f"INSERT INTO {table} {columns} VALUES (1, %s), (2, %s)", (payload(1, 90000), payload(2, 90000)))
    for account, grants in ACCOUNTS.items():
        server.query(f"CREATE USER {account}@localhost")
        for grant in grants:
            server.query(f"GRANT {grant} TO {account}@localhost")
    yield server
    server.remove()


def rows(cursor, statement):
    cursor.execute(statement)
    return cursor.fetchall()


def damage(server):
    """The hidden table's segment is damaged, which the scrub has found, and a mark pass over the table was dropped."""
    (segment,) = server.segments_of(HIDDEN, HIDDEN)
    server.stop()
    content = bytearray(segment.read_bytes())
    at = content.find(payload(1, 90000)[500:700])
    content[at + 100] ^= 1
    segment.write_bytes(content)
    server.restart(["--quarry-gc=OFF", "--quarry-scrub-rate=1073741824", "--quarry-scrub-interval=1", "--quarry-gc-timeout=1"])
    wait_for(lambda: "the scrub's finding", lambda: int(server.status("quarry_scrub_errors")["quarry_scrub_errors"]) > 0)
    writer = server.connect(HIDDEN, autocommit=False)
    with closing(writer), writer.cursor() as cursor:
        cursor.execute(f"INSERT INTO {HIDDEN} VALUES (3, %s)", (payload(3, 90000),))
        assert Gc(server).run()["passes_dropped"] > 0
        writer.rollback()


def test_no_variable_table_or_error_tells_a_name(server, session_of):
    damage(server)
    assert HIDDEN in str(server.query("SHOW GLOBAL STATUS LIKE 'quarry%'")), "there is a name to be told"
    assert HIDDEN in str(server.query("SELECT * FROM information_schema.quarry_damage"))
    for _ in range(3):
        server.query(f"SELECT CRC32({HIDDEN}) FROM {HIDDEN}.{HIDDEN} WHERE id = 2")
    assert HIDDEN in str(server.query("SELECT * FROM information_schema.quarry_memory"))
    looked = 0
    for account in ACCOUNTS:
        cursor = session_of(server, account)
        tables = [
            name
            for (name,) in rows(
                cursor,
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'information_schema' AND "
                "table_name LIKE 'QUARRY%'",
            )
        ]
        assert len(tables) == 6
        told = {f"information_schema.{table}": rows(cursor, f"SELECT * FROM information_schema.{table}") for table in tables}
        for statement in (
            "SHOW GLOBAL STATUS LIKE 'quarry%'",
            "SHOW SESSION STATUS LIKE 'quarry%'",
            "SHOW GLOBAL VARIABLES LIKE 'quarry%'",
            "SELECT * FROM information_schema.global_status WHERE variable_name LIKE 'quarry%'",
            "SELECT * FROM information_schema.system_variables WHERE variable_name LIKE 'quarry%'",
            "SHOW ENGINES",
            "SELECT * FROM information_schema.plugins WHERE plugin_name LIKE 'quarry%'",
        ):
            told[statement] = rows(cursor, statement)
        for statement in (
            "SHOW ENGINE QUARRY STATUS",
            "SET GLOBAL quarry_gc_now = ON",
            "SET SESSION quarry_backup_lock = 1",
            f"SELECT * FROM {HIDDEN}.{HIDDEN}",
            f"CHECK TABLE {HIDDEN}.{HIDDEN}",
            f"SHOW CREATE TABLE {HIDDEN}.{HIDDEN}",
        ):
            try:
                told[statement] = rows(cursor, statement)
            except pymysql.err.Error as refused:
                told[statement] = str(refused.args[0])  # the words are the server's, and name what was asked for
            else:
                assert statement.startswith("CHECK"), (account, statement)
        for what, text in told.items():
            if HIDDEN not in what:
                assert HIDDEN not in str(text).lower(), (account, what, text)
            looked += 1
        assert rows(cursor, "SELECT * FROM information_schema.quarry_damage") == ()
        assert rows(cursor, "SELECT * FROM information_schema.quarry_backup") == ()
    print(f"{looked} answers looked at")
    assert looked >= 17 * len(ACCOUNTS)
    # With PROCESS the text is there.
    server.query("CREATE USER operator@localhost")
    server.query("GRANT PROCESS ON *.* TO operator@localhost")
    operator = session_of(server, "operator")
    assert HIDDEN in str(rows(operator, "SHOW GLOBAL STATUS LIKE 'quarry_gc_last%'"))


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_columns_row_is_shown_to_whom_the_server_shows_the_column(server, session_of, account):
    cursor = session_of(server, account)
    ours = rows(cursor, "SELECT table_schema, table_name, column_name FROM information_schema.quarry_columns")
    theirs = rows(
        cursor,
        "SELECT table_schema, table_name, column_name FROM information_schema.columns WHERE table_schema IN "
        f"('app', '{HIDDEN}') AND data_type LIKE 'long%'",
    )
    assert sorted(ours) == sorted(theirs)
    assert len(ours) == {"one_table": 2, "writer": 2, "one_schema": 2, "one_blob": 1}.get(account, 0)


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_tables_row_is_shown_to_whom_the_server_shows_the_table(server, session_of, account):
    cursor = session_of(server, account)
    ours = rows(cursor, "SELECT table_schema, table_name FROM information_schema.quarry_tables")
    theirs = rows(
        cursor, "SELECT table_schema, table_name FROM information_schema.tables WHERE engine = 'QUARRY'"
    )
    assert set(ours) == set(theirs)
