"""Heads that somebody else made: a row into which another table's trailer was brought shows nothing of that table.

Brought in by changing InnoDB's page (tests/harness/innodb_page.py): whatever the next trick is, its result is such a
page. A statement that reads the row fails, and says no place, size or store; every other row and statement goes on;
nothing that happens to the row changes the victim.
"""

import re
import subprocess
from contextlib import closing

import pymysql
import pytest
from quarry_server.server import tool

from harness.gc import Gc
from harness.heads import TRAILER, TRAILER_SIZE_BYTES, find_trailers, make_trailer
from harness.innodb_page import replace_bytes
from harness.server import NO_BACKGROUND, Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

SECRET = payload("the victim's secret", 9000)
KINDS = {
    1: "another table's value",
    2: "a value of a table that is gone",
    3: "a store that never was",
    4: "another table's place, with a wrong identity",
}
CHANGED = 20  # the same again in rows from here on, for what takes them away
# What no error may tell of another table: a store, a place, a size.
TELLING = re.compile(r"\d{3,}|\b(store|segment|offset|extent)\b|victim", re.IGNORECASE)


def trailers(server, table):
    return [raw for _, raw in find_trailers((server.datadir / "app" / f"{table}.ibd").read_bytes())]


def marker(row):
    return payload(("marker", row), TRAILER_SIZE_BYTES)


@pytest.fixture(scope="module")
def forged():
    """app.thief, rows 1 to 4 and 21 to 24 of which hold forged heads; app.victim; app.witness, which a dump comes to
    later."""
    server = Server("forged-heads", ["--innodb-fast-shutdown=0", *NO_BACKGROUND]).start()
    server.query("CREATE DATABASE app")
    for table in ("victim", "gone", "thief", "witness"):
        server.query(f"CREATE TABLE app.{table} (id INT PRIMARY KEY, n INT, loot LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO app.victim VALUES (1, 1, %s), (2, 2, %s)", (SECRET, payload("second", 9000)))
    server.query("INSERT INTO app.gone VALUES (1, 1, %s)", (payload("gone", 9000),))
    server.query("INSERT INTO app.witness VALUES (1, 1, %s)", (payload("witness", 9000),))
    rows = [row + more for row in KINDS for more in (0, CHANGED)]
    for row in rows:
        server.query("INSERT INTO app.thief VALUES (%s, %s, %s)", (row, row, marker(row)))
    server.query(
        "INSERT INTO app.thief VALUES (10, 10, %s), (11, 11, 'short'), (12, 12, NULL)", (payload("own", 9000),)
    )
    server.stop()
    (victims, _), (gone,) = trailers(server, "victim"), trailers(server, "gone")
    forgeries = {1: victims, 2: gone, 3: make_trailer(), 4: other_identity(victims)}
    for row in rows:
        replace_bytes(server.datadir / "app" / "thief.ibd", marker(row), forgeries[row % CHANGED])
    server.start()
    server.query("DROP TABLE app.gone")
    yield server
    server.remove()


def other_identity(trailer):
    """The same place, with another identity of the extent: one guess of an attacker."""
    store, offset, identity, value_size, segment, extent_units, *_ = TRAILER.unpack(trailer[: TRAILER.size])
    return make_trailer(store, offset, value_size, segment, 8 * extent_units, identity ^ 1)


def counters(server):
    """Of the victim's store."""
    found = server.query(
        "SELECT stored_values, live_bytes, dead_bytes, real_bytes FROM information_schema.quarry_tables WHERE table_schema ="
        " 'app' AND table_name = 'victim'"
    )
    assert len(found) == 1
    return found


def refused(server, sql):
    """The message with which a statement fails."""
    with pytest.raises(pymysql.err.Error) as failure:
        server.query(sql)
    return failure.value.args[1]


@pytest.mark.parametrize("row", KINDS, ids=KINDS.values())
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT loot FROM app.thief WHERE id = {row}",
        "SELECT LENGTH(loot) FROM app.thief WHERE id = {row}",
        "SELECT SUBSTRING(loot, 1, 10) FROM app.thief WHERE id = {row}",
        "SELECT COUNT(*) FROM app.thief WHERE id = {row} AND loot LIKE '%secret%'",
        "UPDATE app.thief SET loot = CONCAT(loot, 'x') WHERE id = {row}",
        "INSERT INTO app.witness SELECT id + 100, n, loot FROM app.thief WHERE id = {row}",
        "CREATE OR REPLACE TABLE app.copy ENGINE=InnoDB SELECT loot FROM app.thief WHERE id = {row}",
    ],
    ids=["read", "length", "range", "like", "update", "insert select", "create select"],
)
def test_who_reads_it_is_refused_and_told_nothing(forged, row, sql):
    before = counters(forged)
    message = refused(forged, sql.format(row=row))
    assert "thief" in message and "loot" in message, message
    told = TELLING.search(message)
    assert told is None, f"{message} tells '{told[0]}'"
    assert counters(forged) == before


def test_an_error_is_the_same_for_every_forgery(forged):
    """Else it would say whether a guess is right."""
    messages = {row: refused(forged, f"SELECT loot FROM app.thief WHERE id = {row}") for row in KINDS}
    assert len(set(messages.values())) == 1, messages


def test_all_else_can_be_read(forged):
    assert forged.query("SELECT id, n FROM app.thief WHERE id < 5 ORDER BY id") == tuple((i, i) for i in KINDS)
    assert forged.query("SELECT loot FROM app.thief WHERE id BETWEEN 9 AND 19 ORDER BY id") == (
        (payload("own", 9000),),
        (b"short",),
        (None,),
    )
    assert forged.query("SELECT loot FROM app.victim WHERE id = 1") == ((SECRET,),)


def test_whole_table_statements_fail_without_a_word_too_many(forged):
    for sql in (
        "SELECT * FROM app.thief",
        "ALTER TABLE app.thief FORCE, ALGORITHM=COPY",
        "ALTER TABLE app.thief ENGINE=InnoDB",
    ):
        message = refused(forged, sql)
        assert "thief" in message and TELLING.search(message) is None, message
    verdict = forged.query("CHECK TABLE app.thief")
    assert verdict[-1][-1] != "OK", verdict
    assert not any(TELLING.search(row[-1]) for row in verdict), verdict
    assert forged.query("CHECK TABLE app.victim")[-1][-1] == "OK"


def test_a_dump_goes_on_with_force(forged):
    account = [f"--socket={forged.socket}", f"--user={forged.account}"]
    command = [tool("mariadb-dump"), "--no-defaults", *account, "--hex-blob", "app"]
    plain = subprocess.run(command, capture_output=True, check=False)
    said = re.sub(r"Error \d+|at row: \d+", "", plain.stderr.decode())
    assert plain.returncode != 0 and TELLING.search(said) is None, said
    forced = subprocess.run([*command, "--force"], capture_output=True, check=False)
    for secret in (payload("witness", 9000), payload("second", 9000), SECRET):
        # The victim's own table is dumped, once; nothing of it comes out of the thief's.
        assert forced.stdout.lower().count(secret.hex().encode()) == 1
    assert b"Dump completed" in forced.stdout


def test_a_prepared_transaction_and_a_cursor_learn_nothing(forged):
    connection = forged.connect("app")
    with connection.cursor() as cursor:
        for sql in ("HANDLER thief OPEN", "HANDLER thief READ `PRIMARY` = (1)"):
            try:
                cursor.execute(sql)
            except pymysql.err.Error as failure:
                assert TELLING.search(failure.args[1]) is None, failure
                break
        else:
            raise AssertionError("HANDLER read the forged row")
    connection.close()


@pytest.mark.parametrize("row", KINDS, ids=KINDS.values())
def test_what_happens_to_the_row_does_nothing_to_the_victim(forged, row):
    before, row = counters(forged), row + CHANGED
    with closing(forged.connect("app", autocommit=False)) as connection, connection.cursor() as cursor:
        for sql in (
            "DELETE FROM thief WHERE id = %s",
            "UPDATE thief SET n = n + 1 WHERE id = %s",
            "UPDATE thief SET loot = 'new' WHERE id = %s",
            "REPLACE INTO thief VALUES (%s, 0, 'replaced')",
            "INSERT INTO thief VALUES (%s, 0, 'x') ON DUPLICATE KEY UPDATE n = 5",
        ):
            try:
                cursor.execute(sql, (row,))
            except pymysql.err.Error as failure:
                # It may count as reading the row; a DELETE does not.
                assert not sql.startswith("DELETE") and TELLING.search(failure.args[1]) is None, failure
            connection.rollback()
            assert counters(forged) == before, sql
        cursor.execute("DELETE FROM thief WHERE id = %s", (row,))
        connection.commit()
    assert counters(forged) == before
    Gc(forged).run()
    assert forged.query("SELECT loot FROM app.victim WHERE id = 1") == ((SECRET,),)
    assert forged.query("SELECT COUNT(*) FROM app.thief WHERE id = %s", (row,)) == ((0,),)


def test_afterwards_the_table_is_like_any_other(forged):
    forged.query("DELETE FROM app.thief WHERE id < 5 OR id > 20")
    assert forged.query("SELECT COUNT(loot) FROM app.thief") == ((2,),)
    assert forged.query("CHECK TABLE app.thief")[-1][-1] == "OK"
    forged.query("ALTER TABLE app.thief FORCE, ALGORITHM=COPY")
    assert forged.query("SELECT loot FROM app.thief WHERE id = 10") == ((payload("own", 9000),),)
