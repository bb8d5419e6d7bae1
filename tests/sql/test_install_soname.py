"""The engine loaded into a running server (INSTALL SONAME), and by the next start, which finds it in mysql.plugin."""

import pytest
from quarry_server.server import HOME_NAME, PLUGIN

from harness.gc import Gc
from harness.values import payload
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

HOME_AS_DATABASE = f"#mysql50#{HOME_NAME}"


@pytest.fixture
def plain_server(own_server, tmp_path):
    """`plain_server("--option")`: a server without the engine, whose plugin directory has it."""
    (tmp_path / "ha_quarry.so").symlink_to(PLUGIN)

    def make(*options):
        server = own_server("soname", f"--plugin-dir={tmp_path}", *options, start=False)
        server.private.plugin = None
        return server.start()

    return make


def databases(server):
    return [name for (name,) in server.query("SHOW DATABASES")]


def test_a_running_servers_list_is_left_alone(plain_server):
    """Later releases keep ignore_db_dirs in memory that is read-only once the server runs: a change kills them."""
    server = plain_server()
    server.query("INSTALL SONAME 'ha_quarry'")
    assert server.query("SELECT @@ignore_db_dirs") == (("",),)
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t VALUES (1, %s)", (payload(1, 90000),))
    assert server.query("SELECT b FROM d.t") == ((payload(1, 90000),),)
    assert HOME_AS_DATABASE in databases(server)
    assert f'put ignore_db_dirs="{HOME_NAME}" into the configuration' in server.error_log()
    with pytest.raises(AssertionError, match="1102"):
        server.client_tool("mariadb-dump", "--all-databases")
    server.restart()
    assert server.query("SELECT @@ignore_db_dirs") == ((HOME_NAME,),)
    assert HOME_AS_DATABASE not in databases(server)
    server.client_tool("mariadb-dump", "--all-databases")
    assert server.query("SELECT b FROM d.t") == ((payload(1, 90000),),)
    server.query("UNINSTALL SONAME 'ha_quarry'")
    server.query("INSTALL SONAME 'ha_quarry'")
    assert server.query("SELECT @@ignore_db_dirs") == ((HOME_NAME,),)
    assert server.query("SELECT b FROM d.t") == ((payload(1, 90000),),)


def test_the_configuration_hides_the_folder_at_once(plain_server):
    server = plain_server(f"--ignore-db-dirs={HOME_NAME}")
    server.query("INSTALL SONAME 'ha_quarry'")
    assert HOME_AS_DATABASE not in databases(server)
    assert server.query("SELECT @@ignore_db_dirs") == ((HOME_NAME,),)
    server.restart()
    assert server.query("SELECT @@ignore_db_dirs") == ((HOME_NAME,),)


def test_space_comes_back_after_the_restart(plain_server):
    """In a running server InnoDB's list of transactions may end before those of clients that were there first."""
    server = plain_server()
    server.query("INSTALL SONAME 'ha_quarry'")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for row in range(10):
        server.query("INSERT INTO d.t VALUES (%s, %s)", (row, payload(row, 90000)))
    server.query("DELETE FROM d.t WHERE id > 0")
    done = Gc(server).run()
    assert done["passes"] == 0 and "until the server was restarted" in done["last_error"], done
    server.restart()
    assert server.query("SELECT id, b FROM d.t") == ((0, payload(0, 90000)),)
    wait_for(lambda: "InnoDB's table ids", lambda: "passed" in server.status("quarry_table_id_check").values())
    assert Gc(server).run_well()["reclaimed_bytes"] >= 8 * 90000
    assert server.query("SELECT id, b FROM d.t") == ((0, payload(0, 90000)),)
