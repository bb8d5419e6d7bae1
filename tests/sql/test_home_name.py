"""Quarry's own folder in the data directory, and what reaches it: no SQL, whatever rights go with it; none of the server's
tools; and a server without the plugin, whose configuration still names the folder, does not take it for a database."""

import shutil
import subprocess
import sys

import pymysql
import pytest
from harness.server import REPOSITORY
from harness.values import payload
from quarry_server.server import FORMER_HOME_NAMES, HOME_NAME, PLUGIN, PrivateServer, ServerError, set_former_aside

pytestmark = pytest.mark.quarry_only

VALUE = payload(1, 90000)
HOME_AS_DATABASE = f"`#mysql50#{HOME_NAME}`"
INCORRECT_NAME = (1102, 1103)  # of a database, of a table
CONFIGURED = f"--ignore-db-dirs={HOME_NAME}"
OF_THE_HOME = (
    "ALTER DATABASE {home} UPGRADE DATA DIRECTORY NAME",
    "ALTER DATABASE {home} CHARACTER SET latin1",
    "CREATE DATABASE {home}",
    "CREATE OR REPLACE DATABASE {home}",
    "DROP DATABASE {home}",
    "CREATE TABLE {home}.x (id INT) ENGINE=MyISAM",
    "CREATE TABLE {home}.x (id INT) ENGINE=InnoDB",
    "CREATE TABLE {home}.x (id INT, b LONGBLOB) ENGINE=QUARRY",
    "CREATE TEMPORARY TABLE {home}.x (id INT)",
    "CREATE TABLE {home}.x LIKE d.plain",
    "CREATE VIEW {home}.x AS SELECT 1",
    "CREATE SEQUENCE {home}.x",
    "RENAME TABLE d.plain TO {home}.x",
    "ALTER TABLE d.plain RENAME {home}.x",
    "CREATE TRIGGER {home}.x BEFORE INSERT ON d.plain FOR EACH ROW SET @a = 1",
    "DROP TABLE {home}.stores",
    "USE {home}",
)


@pytest.fixture
def filled(own_server):
    server = own_server("home-name")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("CREATE TABLE d.plain (id INT PRIMARY KEY) ENGINE=InnoDB")
    server.query("INSERT INTO d.t VALUES (1, %s)", (VALUE,))
    return server


def below(directory):
    """What lies in the data directory, and how the home's own files look; logs and other tables' files come and go."""
    home = directory / HOME_NAME
    return sorted(p.name for p in directory.iterdir()), sorted(p.relative_to(home) for p in home.rglob("*"))


def check_values(server):
    assert server.query("SELECT b FROM d.t WHERE id = 1") == ((VALUE,),)
    server.query("CREATE TABLE d.another (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.another VALUES (1, %s)", (VALUE,))
    assert server.query("SELECT b FROM d.another") == ((VALUE,),)
    server.query("DROP TABLE d.another")


def test_no_statement_reaches_the_home(filled):
    """The account has what an application's administrator has; the server's refusals do not hang on its rights."""
    server = filled
    server.query("CREATE USER mallory@localhost")
    server.query("GRANT ALL ON *.* TO mallory@localhost")
    server.query("SET GLOBAL quarry_gc = OFF")
    before = below(server.datadir)
    let_through = {}
    connection = pymysql.connect(unix_socket=server.socket, user="mallory", autocommit=True)
    with connection, connection.cursor() as cursor:
        for statement in OF_THE_HOME:
            try:
                cursor.execute(statement.format(home=HOME_AS_DATABASE))
                let_through[statement] = "done"
            except pymysql.err.Error as refusal:
                if refusal.args[0] not in INCORRECT_NAME:
                    let_through[statement] = refusal.args
    assert let_through == {} and below(server.datadir) == before
    check_values(server)
    server.restart()
    check_values(server)


def test_a_database_of_the_name_is_another_folder(filled):
    """Its folder's name is encoded, and nothing brings the two together."""
    server = filled
    server.query(f"CREATE DATABASE `{HOME_NAME}`")
    server.query(f"CREATE TABLE `{HOME_NAME}`.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query(f"INSERT INTO `{HOME_NAME}`.t VALUES (1, %s)", (VALUE,))
    server.restart()
    assert server.query(f"SELECT b FROM `{HOME_NAME}`.t") == ((VALUE,),)
    server.query(f"DROP DATABASE `{HOME_NAME}`")
    check_values(server)


def run_the_servers_tools(server):
    server.client_tool("mariadb-dump", "--all-databases")
    server.client_tool("mariadb-check", "--all-databases")
    server.client_tool("mariadb-check", "--all-databases", "--fix-db-names", "--fix-table-names")
    server.client_tool("mariadb-upgrade", "--force")


def test_the_servers_tools_pass_by_the_home(filled):
    before = below(filled.datadir)
    run_the_servers_tools(filled)
    assert [name for name in below(filled.datadir)[0] if "quarry" in name] == [HOME_NAME]
    assert below(filled.datadir)[1] == before[1]
    check_values(filled)


def test_removed_as_the_documents_say(filled):
    """docs/operate/upgrade.md, 'Removing Quarry': tables to InnoDB, the plugin out, `ignore_db_dirs` stays, the folder last."""
    server = filled
    server.query("ALTER TABLE d.t ENGINE=InnoDB")
    server.stop()
    server.private.plugin = None
    server.private.options.append(CONFIGURED)
    server.start()
    run_the_servers_tools(server)
    assert list((server.datadir / HOME_NAME).glob("CATALOGUE-*"))
    assert not [name for (name,) in server.query("SHOW DATABASES") if "quarry" in name]
    assert server.query("SELECT b FROM d.t") == ((VALUE,),)


def refusal(server):
    """What the log says of a start that the engine refuses: with FORCE the server stops."""
    before = len(server.error_log())
    with pytest.raises(ServerError):
        server.start()
    return server.error_log()[before:]


@pytest.mark.parametrize("former", FORMER_HOME_NAMES)
def test_a_home_under_a_former_name_is_refused(filled, former):
    """And nothing is made in its place; under the name of now it is what it was."""
    server = filled
    server.stop()
    home = server.datadir / HOME_NAME
    home.rename(server.datadir / former)
    log = refusal(server)
    assert f"{former}' is the home of a build from before the first release" in log and f"rename it to '{home}'" in log
    assert not home.exists()
    (server.datadir / former).rename(home)
    server.start()
    check_values(server)


def test_a_home_under_a_former_name_beside_the_home_is_nobodys_concern(filled):
    """Who may make folders by SQL cannot keep the engine from starting."""
    server = filled
    server.query(f"CREATE DATABASE `#mysql50#{FORMER_HOME_NAMES[0]}`")
    server.stop()
    shutil.copytree(server.datadir / HOME_NAME, server.datadir / FORMER_HOME_NAMES[0], dirs_exist_ok=True)
    server.start()
    check_values(server)


def test_a_home_without_its_directory_file_is_refused(filled):
    """As that on a file system which is not mounted. Somebody's wish to go on without the values holds once."""
    server = filled
    server.stop()
    home, elsewhere = server.datadir / HOME_NAME, server.directory / "elsewhere"
    home.rename(elsewhere)
    assert f"there is no '{home}'" in refusal(server) and not home.exists()
    home.mkdir()
    log = refusal(server)
    assert "1 QUARRY tables are here (the first: d/t), but their values are not: there is no catalogue in" in log
    assert "mount that" in log and not list(home.iterdir())
    (home / "WITHOUT_VALUES").touch()
    server.start()
    with pytest.raises(pymysql.err.MySQLError, match="is lost, or never was this table's"):
        server.query("SELECT b FROM d.t")
    server.stop()
    assert not (home / "WITHOUT_VALUES").exists()
    for catalogue in home.glob("CATALOGUE-*"):
        catalogue.unlink()
    assert "there is no catalogue in" in refusal(server)
    shutil.rmtree(home)
    elsewhere.rename(home)
    server.start()
    check_values(server)


def test_make_server_sets_a_former_directory_aside(tmp_path):
    directory = tmp_path / "s"
    with PrivateServer(directory, plugin=PLUGIN) as former:
        former.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    assert set_former_aside(directory) is None
    (directory / "data" / HOME_NAME).rename(directory / "data" / FORMER_HOME_NAMES[0])
    (directory / "data" / FORMER_HOME_NAMES[0] / "DIRECTORY").touch()  # each of those builds had one
    command = [sys.executable, REPOSITORY / "scripts" / "server", f"--directory={directory}"]
    started = subprocess.run([*command, "start"], capture_output=True, text=True, check=True)
    try:
        aside = directory.with_name("s.former-1")
        assert f"it is {aside} now" in started.stdout and (aside / "data" / FORMER_HOME_NAMES[0] / "DIRECTORY").exists()
        databases = subprocess.run([*command, "sql", "SHOW DATABASES"], capture_output=True, text=True, check=True)
        assert "information_schema" in databases.stdout and "\nd\n" not in databases.stdout
    finally:
        subprocess.run([*command, "stop"], check=True)


def test_the_configuration_that_is_installed_names_the_home():
    """And so do the sources: each language has the name in one place."""
    configuration = (REPOSITORY / "packaging" / "quarry.cnf").read_text(encoding="utf-8")
    assert f'\nignore_db_dirs = "{HOME_NAME}"\n' in configuration
    header = (REPOSITORY / "include" / "quarry" / "options.h").read_text(encoding="utf-8")
    assert f'kHomeName[] = "{HOME_NAME}";' in header
