"""scripts/uninstall against a private server that is configured as packaging/quarry.cnf says.

It refuses while a table or an undecided commit needs the engine, changes nothing then, and leaves a server that starts.
"""

import os
import shutil
import subprocess
import sys

import pytest
from quarry_server.server import HOME_NAME, MARIADB, PLUGIN, tool

from harness.server import REPOSITORY, Server
from harness.values import payload

pytestmark = pytest.mark.quarry_only

OURS = REPOSITORY / "packaging" / "quarry.cnf"
# Maps a file, as a server does that has loaded it, until its input ends.
MAPPER = (
    "import mmap, sys; file = open(sys.argv[1], 'rb'); kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); "
    "print('mapped', flush=True); sys.stdin.read()"
)


class Installed:
    """A server whose engine comes from a configuration file and a plugin directory, as an installed one's does."""

    def __init__(self, tmp_path):
        self.configuration = tmp_path / "mariadb.conf.d"
        self.configuration.mkdir()
        self.file = self.configuration / "70-quarry.cnf"
        shutil.copy(OURS, self.file)
        self.plugins = tmp_path / "plugins"
        self.plugins.mkdir()
        shutil.copy(PLUGIN, self.plugins / "ha_quarry.so")
        self.prefix = tmp_path / "prefix"
        for program in ("quarry-backup", "quarry-verify", "mine"):
            (self.prefix / "bin").mkdir(parents=True, exist_ok=True)
            (self.prefix / "bin" / program).write_text("a program")
        options = ["--innodb-flush-log-at-timeout=2700", "--innodb-stats-auto-recalc=OFF"]
        self.server = Server("security-uninstall", options)
        self.server.private.plugin = None
        # The server reads the file as if it lay in /etc/mysql/mariadb.conf.d.
        made = self.server.private.command
        self.server.private.command = lambda: self.with_configuration(made())

    def with_configuration(self, command):
        at = command.index("--no-defaults")
        whole = self.configuration.parent / "my.cnf"
        whole.write_text(f"!includedir {self.configuration}/\n")
        command = [*command[:at], f"--defaults-file={whole}", *command[at + 1 :]]
        kept = [part for part in command if not part.startswith(("--plugin-dir=", "--plugin-maturity="))]
        return [*kept, f"--plugin-dir={self.plugins}"]

    def start_without_engine(self):
        text = self.file.read_text(encoding="utf-8")
        self.file.write_text("[mariadbd]\n")
        self.server.start()
        self.file.write_text(text, encoding="utf-8")

    def uninstall(self, defaults="--no-defaults", user="root"):
        client = [tool("mariadb"), defaults, f"--socket={self.server.socket}", f"--user={user}"]
        environment = {
            **os.environ,
            "PREFIX": str(self.prefix),
            "QUARRY_CONFIGURATION": str(self.configuration),
            "QUARRY_CLIENT": " ".join(map(str, client)),
        }
        return subprocess.run(
            [REPOSITORY / "scripts" / "uninstall"], env=environment, capture_output=True, text=True, check=False
        )

    def nothing_was_removed(self):
        assert self.file.read_bytes() == OURS.read_bytes()
        assert (self.plugins / "ha_quarry.so").exists() and (self.prefix / "bin" / "quarry-backup").exists()


@pytest.fixture
def installed(tmp_path):
    assert (MARIADB / "usr").exists()
    made = Installed(tmp_path)
    yield made
    made.server.remove()


def test_the_file_that_is_shipped_loads_the_engine_with_force(installed):
    server = installed.server.start()
    assert server.query("SELECT load_option FROM information_schema.plugins WHERE plugin_name = 'QUARRY'") == (("FORCE",),)
    assert server.status("quarry_parallel_flush_active") == {"quarry_parallel_flush_active": "ON"}
    assert server.query("SELECT @@ignore_db_dirs")[0][0].count(HOME_NAME) >= 1
    text = OURS.read_text(encoding="utf-8")
    assert "loose" not in text and '"/srv/drive1/quarry;/srv/drive2/quarry"' in text and "quarry_cache_size" in text
    # Each line that is commented out works as it stands, with directories that are there.
    server.stop()
    for number in (1, 2):
        (installed.configuration.parent / f"drive{number}").mkdir()
    text = text.replace("#quarry_", "quarry_").replace("/srv/", f"{installed.configuration.parent}/")
    installed.file.write_text(text.replace("/quarry;", ";").replace('/quarry"', '"'))
    server.private.options = [option for option in server.private.options if "quarry-cache-size" not in option]
    server.start()
    assert server.query("SELECT @@quarry_cache_size, @@quarry_data_paths LIKE '%drive1;%drive2'") == ((1 << 30, 1),)


def test_it_refuses_while_a_table_needs_the_engine(installed):
    server = installed.server.start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    done = installed.uninstall()
    assert done.returncode == 1 and "  d.t" in done.stderr and "ENGINE=InnoDB" in done.stderr, done
    installed.nothing_was_removed()


def test_names_in_its_refusal_act_on_no_terminal(installed):
    server = installed.server.start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.`\x1b[2Jx\x07` (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    done = installed.uninstall()
    assert done.returncode == 1 and "  d.?[2Jx?" in done.stderr, done


def test_it_refuses_while_a_partitioned_table_cannot_be_opened(installed):
    """Without the engine the server calls its definition wrong, and does not say whose table it is."""
    server = installed.server.start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 2")
    server.stop()
    installed.start_without_engine()
    done = installed.uninstall()
    assert done.returncode == 1 and "  d.p" in done.stderr, done
    installed.nothing_was_removed()


def test_a_refusal_changes_nothing_in_the_running_server(installed):
    server = installed.server.start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    assert installed.uninstall().returncode == 1
    assert server.query("SELECT @@quarry_parallel_flush") == ((1,),), "each commit flushes twice from now on"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_it_refuses_where_it_may_not_remove_the_plugin(installed):
    installed.server.start()
    installed.plugins.chmod(0o500)
    done = installed.uninstall()
    installed.plugins.chmod(0o700)
    assert done.returncode == 1 and "no right to write" in done.stderr and "nothing was removed" in done.stderr, done
    installed.nothing_was_removed()


def test_a_second_uninstall_keeps_what_the_first_one_kept(installed):
    server = installed.server.start()
    with installed.file.open("a", encoding="utf-8") as file:
        file.write("quarry_cache_size = 64M\n")
    for _ in range(2):
        assert installed.uninstall().returncode == 0
    kept = installed.configuration / "70-quarry.cnf.removed"
    assert "quarry_cache_size = 64M" in kept.read_text(encoding="utf-8")
    # And the next one's settings do not take the place of the first one's.
    server.restart()
    installed.file.write_text(OURS.read_text(encoding="utf-8") + "quarry_cache_size = 80M\n", encoding="utf-8")
    done = installed.uninstall()
    assert done.returncode == 0 and "70-quarry.cnf.removed.2" in done.stdout, done
    assert "64M" in kept.read_text(encoding="utf-8") and "80M" in kept.with_name(f"{kept.name}.2").read_text(encoding="utf-8")


@pytest.mark.parametrize("lines", ["table", "safe-updates", "host = 192.0.2.1\nconnect_timeout = 1"])
def test_settings_of_the_client_do_not_change_what_is_read(installed, tmp_path, lines):
    """A table with lines drawn around it has no row that begins with Quarry's number, and no directory. What INSTALL SONAME wrote
    is deleted without a key. And another machine's server says nothing of the tables of this one."""
    server = installed.server.start()
    server.query("INSERT INTO mysql.plugin VALUES ('QUARRY', 'ha_quarry.so')")
    (tmp_path / "client.cnf").write_text(f"[mysql]\n{lines}\n")
    done = installed.uninstall(f"--defaults-file={tmp_path / 'client.cnf'}")
    assert done.returncode == 0 and not (installed.plugins / "ha_quarry.so").exists(), done
    assert server.query("SELECT COUNT(*) FROM mysql.plugin WHERE dl LIKE 'ha_quarry%'") == ((0,),)


def test_replicas_keep_what_install_soname_wrote_down(installed):
    """The row would be deleted there too, or be missed there, which ends replication."""
    installed.server.private.options += ["--log-bin=binlog", "--binlog-format=ROW"]
    server = installed.server.start()
    server.query("INSERT INTO mysql.plugin VALUES ('QUARRY', 'ha_quarry.so')")
    before = server.query("SELECT @@gtid_binlog_pos")
    done = installed.uninstall()
    assert done.returncode == 0 and server.query("SELECT COUNT(*) FROM mysql.plugin WHERE dl LIKE 'ha_quarry%'") == ((0,),), done
    assert server.query("SELECT @@gtid_binlog_pos") == before != (("",),)


def test_it_refuses_an_account_that_does_not_see_every_table(installed):
    """To such an account a server without the engine lists no QUARRY table, and nothing else that uninstall does needs a right there."""
    server = installed.server.start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("CREATE USER monitor@localhost")
    server.query("GRANT PROCESS, RELOAD ON *.* TO monitor@localhost")
    server.query("GRANT SELECT ON mysql.* TO monitor@localhost")
    server.stop()
    installed.start_without_engine()
    done = installed.uninstall(user="monitor")
    assert done.returncode == 1 and "monitor@localhost may not see every table" in done.stderr, done
    installed.nothing_was_removed()


def test_what_somebody_keeps_next_to_the_tools_stays(installed):
    """A virtual environment is ours where quarry-advisor's modules lie next to it."""
    installed.server.start()
    tools = installed.prefix / "lib" / "quarry"
    (tools / "quarry_backup").mkdir(parents=True)
    (tools / "venv").mkdir()
    (tools / "venv" / "theirs").touch()
    done = installed.uninstall()
    assert done.returncode == 0 and [path.name for path in tools.rglob("*")] == ["venv", "theirs"], done
    (tools / "quarry_advisor").mkdir()
    done = installed.uninstall()
    assert done.returncode == 0 and not tools.exists(), done


def install_configuration(directory):
    """That step of scripts/install alone."""
    functions = 'source <(sed "/^case /,\\$d" "$0"); CONFIGURATION=$1 install_configuration'
    return subprocess.run(
        ["bash", "-c", functions, REPOSITORY / "scripts" / "install", directory], capture_output=True, text=True, check=False
    )


def test_an_install_after_an_uninstall_loads_the_engine_with_force_again(installed):
    installed.server.start()
    assert installed.uninstall().returncode == 0
    done = install_configuration(installed.configuration)
    assert done.returncode == 0 and "wrote" in done.stdout, done
    assert installed.file.read_bytes() == OURS.read_bytes()
    # What somebody wrote there stays.
    installed.file.write_text("[mariadbd]\n# mine\n", encoding="utf-8")
    done = install_configuration(installed.configuration)
    assert "left" in done.stdout and "# mine" in installed.file.read_text(encoding="utf-8"), done


def test_it_refuses_while_a_commit_is_undecided(installed):
    server = installed.server.start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t VALUES (1, %s)", (payload(1, 9000),))
    server.kill()
    # Somebody starts it without the engine, against the advice.
    installed.start_without_engine()
    assert len(server.query("XA RECOVER")) == 1
    done = installed.uninstall()
    assert done.returncode == 1 and "1 commits of Quarry's are undecided" in done.stderr, done
    installed.nothing_was_removed()


@pytest.mark.parametrize(
    "name, line",
    [
        ("80-mine.cnf", "quarry_cache_size = 64M"),
        ("80-mine.cnf", "default_storage_engine = QUARRY"),
        ("../conf-of-all.cnf", "quarry_cache_size = 64M"),
        ("../conf.d/mine.cnf", "default-storage-engine=QUARRY"),
    ],
)
def test_it_refuses_when_another_file_names_quarry(installed, name, line):
    """Of /etc/mysql, its conf.d and its mariadb.conf.d: the server would not start with any."""
    file = installed.configuration / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"[mariadbd]\n{line}\n")
    installed.server.start()
    done = installed.uninstall()
    assert done.returncode == 1 and f"{file.name} names Quarry too" in done.stderr, done
    installed.nothing_was_removed()


@pytest.mark.parametrize("replaced", [False, True], ids=["this file", "the file of before an upgrade"])
def test_it_refuses_while_another_server_uses_the_same_file(installed, tmp_path, replaced):
    """That one would not start again: the plugin directory is for all servers of the machine."""
    server = installed.server.start()
    library = installed.plugins / "ha_quarry.so"
    other = tmp_path / "other data"
    other.mkdir()
    command = [sys.executable, "-c", MAPPER, library]
    with subprocess.Popen(command, cwd=other, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"mapped\n"
        if replaced:
            shutil.copy(library, f"{library}.new")
            os.replace(f"{library}.new", library)
        done = installed.uninstall()
        process.stdin.close()
    assert done.returncode == 1 and f"process {process.pid}, which works in '{other}'" in done.stderr, done
    installed.nothing_was_removed()
    assert server.query("SELECT @@quarry_parallel_flush") == ((1,),)
    done = installed.uninstall()
    assert done.returncode == 0 and not library.exists(), done


def test_it_refuses_when_the_server_cannot_be_asked(installed):
    done = installed.uninstall()
    assert done.returncode == 1 and "can't be reached" in done.stderr, done
    installed.nothing_was_removed()


@pytest.mark.parametrize("installed_too", [False, True], ids=["by the file", "and by INSTALL SONAME"])
def test_what_it_leaves_is_a_server_that_starts(installed, installed_too):
    server = installed.server.start()
    if installed_too:
        server.query("INSERT INTO mysql.plugin VALUES ('QUARRY', 'ha_quarry.so')")
        server.stop()
        server.start()
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t VALUES (1, %s)", (payload(1, 9000),))
    server.query("ALTER TABLE d.t ENGINE=InnoDB")
    with installed.file.open("a", encoding="utf-8") as file:
        file.write("quarry_cache_size = 64M\n")
    done = installed.uninstall()
    assert done.returncode == 0, done
    assert sorted(path.name for path in (installed.prefix / "bin").iterdir()) == ["mine"]
    assert not (installed.plugins / "ha_quarry.so").exists()
    assert "quarry_cache_size = 64M" in (installed.configuration / "70-quarry.cnf.removed").read_text()
    lines = [line for line in installed.file.read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["[mariadbd]", f'ignore_db_dirs = "{HOME_NAME}"']
    # Until the restart the engine goes on, and a crash leaves nothing prepared.
    server.query("CREATE TABLE d.late (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.late VALUES (1, %s)", (payload(1, 9000),))
    server.kill()
    server.start()
    assert server.query("XA RECOVER") == ()
    assert server.query("SELECT b FROM d.t") == ((payload(1, 9000),),)
    assert f"#mysql50#{HOME_NAME}" not in [name for (name,) in server.query("SHOW DATABASES")]
