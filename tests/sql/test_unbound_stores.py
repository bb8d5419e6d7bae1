"""A catalogue that is damaged or gone: every value is read, nothing is given back, and quarry-verify --rebuild-catalogue
makes one that GC works with again."""

import subprocess
import time

import pymysql
import pytest

from harness.gc import Gc
from harness.server import HOME_NAME, NO_BACKGROUND, REPOSITORY
from harness.values import payload
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

VERIFY = REPOSITORY / "build" / "release" / "tools" / "quarry-verify"
LARGE_BYTES = 300_000


@pytest.fixture
def server(own_server):
    server = own_server("unbound", *NO_BACKGROUND)
    server.query("CREATE DATABASE app")
    for table in ("t", "other"):
        server.query(f"CREATE TABLE app.{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        for row in range(8):
            server.query(f"INSERT INTO app.{table} VALUES (%s, %s)", (row, payload((table, row), LARGE_BYTES)))
    return server


def catalogues(server):
    return sorted((server.datadir / HOME_NAME).glob("CATALOGUE-" + 16 * "[0-9a-f]"))


def damage(server, text):
    """The server is stopped, and a bit of the last record that holds `text` is flipped."""
    server.stop()
    (catalogue,) = catalogues(server)
    content = bytearray(catalogue.read_bytes())
    at = content.rfind(text)
    assert at > 0
    content[at] ^= 1
    catalogue.write_bytes(content)


def rebuild(server, *options):
    done = subprocess.run(
        [VERIFY, "--rebuild-catalogue", *options, server.datadir], capture_output=True, check=False, text=True
    )
    return done.returncode, done.stdout + done.stderr


def segments(server):
    return {path: path.stat().st_blocks for path in (server.datadir / HOME_NAME).rglob("*.qseg")}


def check_rows(server, table, rows):
    assert dict(server.query(f"SELECT id, b FROM app.{table}")) == {row: payload((table, row), LARGE_BYTES) for row in rows}
    assert server.query(f"CHECK TABLE app.{table}")[-1][-1] == "OK"


def unbound(server):
    return server.query("SELECT COUNT(*) FROM information_schema.quarry_tables WHERE table_id = 0 AND state = 'UNBOUND'")[0][0]


def delete_most(server, table):
    server.query(f"DELETE FROM app.{table} WHERE id > 0")


def test_what_damage_concerns_is_read_and_nothing_of_it_is_given_back(server):
    damage(server, b"app/t")
    server.start()
    check_rows(server, "t", range(8))
    check_rows(server, "other", range(8))
    assert "the catalogue was damaged" in server.error_log()
    ((kind, message),) = server.query("SELECT kind, message FROM information_schema.quarry_damage")
    assert kind == "damaged" and "does not verify" in message
    delete_most(server, "t")
    delete_most(server, "other")
    server.query("INSERT INTO app.t VALUES (100, %s)", (payload(("t", 100), LARGE_BYTES),))
    before = segments(server)
    gc = Gc(server)
    gc.run()
    gc.run()
    given_back = {path for path, blocks in before.items() if segments(server).get(path, 0) < blocks}
    stores = {path.parent.name for path in given_back}
    assert len(stores) == 1, f"the other table's space alone comes back: {given_back}"
    check_rows(server, "t", (0, 100))
    check_rows(server, "other", (0,))


def test_a_rebuilt_catalogue_gives_space_back_after_a_scan(server):
    damage(server, b"app/t")
    code, text = rebuild(server, "--dry-run")
    assert code == 0 and "nothing was changed" in text, text
    code, text = rebuild(server)
    assert code == 0 and "1 of the stores lose their table" in text and text.endswith("done\n"), text
    assert list((server.datadir / HOME_NAME).glob("CATALOGUE-*.damaged"))
    server.start()
    assert server.query("SELECT COUNT(*) FROM information_schema.quarry_damage") == ((0,),)
    check_rows(server, "t", range(8))
    delete_most(server, "t")
    before = sum(segments(server).values())
    gc = Gc(server)
    time.sleep(12)  # two looks of the sweep, which must leave it alone
    assert unbound(server) == 1 and "go to the trash" not in server.error_log()
    gc.run()  # binds it
    assert unbound(server) == 0
    gc.run()
    after = sum(segments(server).values())
    assert after < 0.7 * before, f"{after} of {before} blocks are left"
    check_rows(server, "t", (0,))
    server.query("DROP TABLE app.t")
    check_rows(server, "other", range(8))


def refuses_an_index_in_place(server):
    with pytest.raises(pymysql.Error) as failure:
        server.query("ALTER TABLE app.p ADD INDEX i (b(100)), ALGORITHM=INPLACE")
    assert failure.value.args[0] in (1845, 1846), failure.value


def test_an_index_on_a_prefix_is_made_by_a_copy_when_the_limit_may_be_lost(server):
    """PREFIX_SIZE was 0 when the values came, so InnoDB finds none of their bytes in the rows."""
    values = {row: f"{row} " + "x" * 20_000 for row in range(8)}
    server.query("CREATE TABLE app.p (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE=QUARRY PREFIX_SIZE=0")
    for row, value in values.items():
        server.query("INSERT INTO app.p VALUES (%s, 0, %s)", (row, value))
    server.query("ALTER TABLE app.p PREFIX_SIZE=256, ALGORITHM=INSTANT")
    damage(server, b"app/p")
    server.start()
    for is_rebuilt in (False, True):
        if is_rebuilt:
            server.stop()
            assert rebuild(server)[0] == 0
            server.start()
        assert server.query("CHECK TABLE app.p")[-1][-1] == "OK"
        refuses_an_index_in_place(server)
    Gc(server).run()
    assert unbound(server) == 0
    refuses_an_index_in_place(server)
    server.query("CREATE INDEX i ON app.p (b(100))")
    for row, value in values.items():
        assert server.query("SELECT id FROM app.p FORCE INDEX (i) WHERE b = %s", (value,)) == ((row,),)


def test_an_unbound_store_is_bound_by_itself(server):
    damage(server, b"app/other")
    assert rebuild(server)[0] == 0
    server.start()
    assert unbound(server) == 1
    server.query("SET GLOBAL quarry_gc_interval = 1")
    server.query("SET GLOBAL quarry_gc = ON")
    wait_for("a binding", lambda: unbound(server) == 0)
    assert "go to the trash" not in server.error_log()
    check_rows(server, "other", range(8))


def start_without_catalogue(server):
    server.stop()
    for catalogue in catalogues(server):
        catalogue.unlink()
    server.private.force = False  # else the server would stay down
    server.start()


def test_every_table_answers_while_the_engine_is_not_there(server):
    """Its tables are plugins of their own, and this is when one looks at them."""
    start_without_catalogue(server)
    for table in ("columns", "tables", "values", "memory", "damage", "backup"):
        assert server.query(f"SELECT COUNT(*) FROM information_schema.quarry_{table}") == ((0,),), table
    server.assert_alive()


def test_a_catalogue_that_is_gone(server):
    start_without_catalogue(server)
    assert server.query("SELECT COUNT(*) FROM information_schema.engines WHERE engine = 'QUARRY'") == ((0,),)
    assert "there is no catalogue in" in server.error_log()
    server.stop()
    server.private.force = True
    code, text = rebuild(server)
    assert code == 0 and "2 of the stores lose their table" in text, text
    server.start()
    for table in ("t", "other"):
        check_rows(server, table, range(8))
        delete_most(server, table)
        server.query(f"INSERT INTO app.{table} VALUES (100, %s)", (payload((table, 100), LARGE_BYTES),))
    before = sum(segments(server).values())
    gc = Gc(server)
    gc.run()
    gc.run()
    assert sum(segments(server).values()) < 0.7 * before
    for table in ("t", "other"):
        check_rows(server, table, (0, 100))
        server.query(f"DROP TABLE app.{table}")
    wait_for("an empty home", lambda: not segments(server))


def test_a_whole_catalogue_is_left_alone(server):
    code, text = rebuild(server)
    assert code == 2 and "in use by a running server" in text, text
    server.stop()
    before = catalogues(server)
    code, text = rebuild(server)
    assert code == 0 and "nothing is to be done" in text, text
    assert catalogues(server) == before
