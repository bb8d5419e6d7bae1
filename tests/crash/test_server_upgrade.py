"""The server is another patch release than the one that the installed plugin was built for.

The server then refuses the plugin, and goes on without the engine. Here the other release is made by changing the
version that the plugin declares. What must hold: the server says why; statements on the tables fail with a clear error
and change nothing; with the right plugin back, every value is there. (docs/operate/upgrade.md tells the operator.)
"""

import struct

import pymysql
import pytest
from harness.server import BASE_OPTIONS
from harness.twin import Twin
from harness.values import payload, text
from quarry_server.server import BUILD, HOME_NAME, PLUGIN, PrivateServer, ServerError

UNKNOWN_STORAGE_ENGINE = 1286
pytestmark = pytest.mark.quarry_only


def declared(version):
    """A version as a storage engine declares it: MYSQL_VERSION_ID << 8."""
    major, minor, patch = (int(number) for number in version.split("."))
    return struct.pack("<i", (major * 10000 + minor * 100 + patch) << 8)


@pytest.fixture
def foreign_plugin(tmp_path):
    """The plugin as if built for the patch release before this one."""
    version = (BUILD / "mariadb" / "VERSION").read_text(encoding="ascii").strip()
    major, minor, patch = version.split(".")
    before = f"{major}.{minor}.{int(patch) - 1}"
    data = PLUGIN.read_bytes()
    # Twice: the engine's own, and that of the INFORMATION_SCHEMA tables.
    assert data.count(declared(version)) >= 1, f"the plugin does not declare {version}"
    changed = tmp_path / "ha_quarry.so"
    changed.write_bytes(data.replace(declared(version), declared(before)))
    return changed


@pytest.fixture
def pair(own_server):
    server = own_server("upgrade")
    twin = Twin(server, "upgrade")
    twin.all(
        "CREATE TABLE plain (id INT PRIMARY KEY, b LONGBLOB, v LONGTEXT, KEY (b(20))) ENGINE={e}",
        "CREATE TABLE parts (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 3",
        "CREATE TABLE gone (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
    )
    for row, size_bytes in enumerate((0, 100, 4097, 9000, 66000, 200000)):
        twin.run("INSERT INTO plain VALUES (%s, %s, %s)", (row, payload(row, size_bytes), text(row, size_bytes // 2)))
        twin.run("INSERT INTO parts VALUES (%s, %s)", (row, payload(row, size_bytes)))
        twin.run("INSERT INTO gone VALUES (%s, %s)", (row, payload(row, size_bytes)))
    twin.check()
    return twin


def restart_with(pair, plugin, *options):
    pair.close(drop=False)
    server = pair.server
    if server.alive():
        server.stop()
    server.private = PrivateServer(server.directory, options=[*BASE_OPTIONS, *options], plugin=plugin, force=plugin == PLUGIN)
    server.start()


REFUSED = (
    "SELECT * FROM plain",
    "INSERT INTO plain VALUES (99, 'lost', '')",
    "UPDATE plain SET b = 'lost'",
    "DELETE FROM parts",
    "TRUNCATE TABLE plain",
    "ALTER TABLE plain ADD COLUMN x INT",
    "ALTER TABLE plain ENGINE=InnoDB",
    "ALTER TABLE parts DROP PARTITION p0",
    "RENAME TABLE plain TO other",
    "CREATE TABLE fresh (id INT) ENGINE=QUARRY",
)


# Of a partitioned table: 'incorrect information in file'; of a renamed one: 'does not exist'.
OTHER_ERRORS = {"DELETE": (1033,), "ALTER": (1033,), "RENAME": (1146,)}


def test_refused_plugin_loses_nothing(pair, foreign_plugin):
    server = pair.server
    restart_with(pair, foreign_plugin, f"--ignore-db-dirs={HOME_NAME}")
    log = server.error_log()
    assert "API version for STORAGE ENGINE plugin QUARRY not supported by this version of the server" in log
    assert server.query("SELECT COUNT(*) FROM information_schema.engines WHERE engine = 'QUARRY'") == ((0,),)
    for statement in REFUSED:
        with pytest.raises(pymysql.err.Error) as failure:
            server.query(statement, database=pair.under_test)
        expected = (UNKNOWN_STORAGE_ENGINE, *OTHER_ERRORS.get(statement.split()[0], ()))
        assert failure.value.args[0] in expected, f"{statement}: {failure.value}"
    # The tables are still listed, with the reason; the server's other tables work.
    listed = dict(
        server.query(
            "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = %s", (pair.under_test,)
        )
    )
    assert set(listed) == {"plain", "parts", "gone"} and "Unknown storage engine 'QUARRY'" in listed["plain"]
    server.query(f"INSERT INTO {pair.twin}.plain VALUES (50, 'x', 'y')")
    server.query(f"DELETE FROM {pair.twin}.plain WHERE id = 50")
    server.client_tool("mariadb-upgrade", "--force")
    assert [path.name for path in server.datadir.iterdir() if "quarry" in path.name] == [HOME_NAME]

    restart_with(pair, PLUGIN)
    pair.check()
    server.client_tool("mariadb-upgrade", "--force")
    assert [path.name for path in server.datadir.iterdir() if "quarry" in path.name] == [HOME_NAME]
    pair.check()
    pair.run("UPDATE plain SET b = CONCAT(b, 'after')")
    pair.run("ALTER TABLE parts FORCE")
    pair.check()


def test_drop_without_the_plugin(pair, foreign_plugin):
    """It removes the definition only: the rows stay in InnoDB and the values in their store, until a second DROP TABLE."""
    server = pair.server
    store = int(server.store_of(pair.under_test, "gone"), 16)
    restart_with(pair, foreign_plugin)
    server.query(f"DROP TABLE {pair.under_test}.gone")
    restart_with(pair, PLUGIN)
    pair.check("plain", "parts")
    assert "gone" not in pair.tables()

    def state():
        return dict(server.query("SELECT store_id, state FROM information_schema.quarry_tables")).get(store, "DROPPED")

    assert state() == "BOUND"
    with pytest.raises(pymysql.err.Error):
        server.query("CREATE TABLE gone (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY", database=pair.under_test)
    server.query(f"DROP TABLE {pair.under_test}.gone")
    assert state() == "DROPPED"
    server.query("CREATE TABLE gone (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY", database=pair.under_test)
    server.query("DELETE FROM gone", database=pair.twin)
    pair.run("INSERT INTO gone VALUES (1, REPEAT('new', 5000))")
    pair.check()


@pytest.mark.parametrize(
    "option, said",
    [
        ("--quarry=FORCE", "unknown variable 'quarry=FORCE'"),
        ("--quarry-codec=lz4", "unknown variable"),
        ("--default-storage-engine=QUARRY", "QUARRY"),
    ],
)
def test_options_that_keep_such_a_server_from_starting(pair, foreign_plugin, option, said):
    """Clear errors in the log; the option as loose-..., or left out, and it starts. Nothing is lost."""
    with pytest.raises(ServerError):
        restart_with(pair, foreign_plugin, option)
    assert said in pair.server.error_log()[-4000:]
    if "quarry-codec" in option:
        restart_with(pair, foreign_plugin, option.replace("--", "--loose-"))
    restart_with(pair, PLUGIN, option)
    pair.check()
