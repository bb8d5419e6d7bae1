"""PrivateServer on a plain MariaDB: life, death, leftovers of killed runs, and what it says when something is wrong."""
import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from quarry_lab.run import session
from quarry_server import private
from quarry_server.server import REPOSITORY, PrivateServer, ServerError, SqlError, data_directory_template, describe_exit, unescape


@pytest.fixture
def server(tmp_path):
    with PrivateServer(tmp_path / "server", plugin=None) as running:
        yield running


def test_answers_and_keeps_data_over_restart_and_kill(tmp_path):
    server = PrivateServer(tmp_path / "server", plugin=None)
    with server:
        server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT, b TEXT) ENGINE=InnoDB; INSERT INTO d.t VALUES (1, 'x\\ty')")
        server.restart()
        assert server.rows("SELECT * FROM t", "d") == [["1", "x\ty"]]
        first = server.pid
        server.kill()
        assert not server.running() and not os.path.exists(f"/proc/{first}")
        assert server.start().value("SELECT 1") == "1"
        assert server.value("SELECT COUNT(*) FROM d.t") == "1"
    assert not server.running()


def test_an_installation_leaves_the_temporary_tables_of_others_alone(tmp_path, monkeypatch):
    """A starting server removes what it finds in its temporary directory: two installations at once failed each other."""
    common = tmp_path / "common"
    common.mkdir()
    other = common / "#sql-temptable-1-1-1.MAI"
    other.touch()
    monkeypatch.setenv("TMPDIR", str(common))
    monkeypatch.setattr("quarry_server.server.BUILD", tmp_path / "build")
    data_directory_template([], private.account())
    assert other.exists()


def test_options_given_later_win_and_are_visible(tmp_path):
    with PrivateServer(tmp_path / "server", options=["--innodb-page-size=4k", "--max-connections=17"], plugin=None) as server:
        assert server.variables("innodb_page_size") == {"innodb_page_size": 4096}
        assert server.variables("max_connections") == {"max_connections": 17}
        assert server.variables("skip_networking") == {"skip_networking": "ON"}


def test_an_sql_error_is_an_exception_with_the_servers_words(server):
    with pytest.raises(SqlError, match=r"ERROR 1146.*no_such_table"):
        server.sql("SELECT * FROM mysql.no_such_table")


def test_binary_bytes_come_back_as_they_were(server):
    everything = bytes(range(256))
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (b BLOB) ENGINE=InnoDB")
    server.sql(b"INSERT INTO d.t VALUES (x'" + everything.hex().encode() + b"')")
    assert bytes.fromhex(server.value("SELECT HEX(b) FROM d.t")) == everything
    assert server.sql("SELECT b FROM d.t WHERE LENGTH(b) = 256", binary=True).startswith(b"\\0\x01\x02")


def test_a_wrong_option_is_shown_from_the_log(tmp_path):
    with pytest.raises(ServerError, match="(?s)did not start.*no-such-option=5"):
        PrivateServer(tmp_path / "server", options=["--no-such-option=5"], plugin=None).start()


def test_a_missing_plugin_is_named(tmp_path):
    with pytest.raises(ServerError, match="no plugin at .*/missing.so: run 'make plugin'"):
        PrivateServer(tmp_path / "server", plugin=tmp_path / "missing.so").start()


def test_killing_a_dead_server_is_an_error_and_it_starts_again(server):
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait()
    with pytest.raises(ServerError, match="no server to kill"):
        server.kill()
    assert server.start().value("SELECT 1") == "1"


def test_the_leftover_of_a_killed_run_is_ended_first(tmp_path):
    child = f"""
import os
from quarry_server.server import PrivateServer
print(PrivateServer({str(tmp_path / 'server')!r}, plugin=None).start().pid, flush=True)
os._exit(1)  # as if killed: nothing is cleaned up
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    output = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=False, env=environment).stdout
    leftover = int(output)
    assert os.path.exists(f"/proc/{leftover}")
    with PrivateServer(tmp_path / "server", plugin=None) as server:
        assert server.pid != leftover
        assert server.value("SELECT 1") == "1"
        assert not server._is_ours(leftover)


def test_what_a_killed_run_of_the_lab_left_is_swept(tmp_path):
    """A server, and the file of a device probe that had no time to remove it."""
    data = tmp_path / "data"
    left = PrivateServer(data / "main", plugin=None).start()
    (data / "quarry-probe-1-1").write_bytes(b"0")
    pid = left.pid
    session.sweep(data)
    left.process.wait()
    assert not data.exists() and not os.path.exists(f"/proc/{pid}")


def runs(pid, program):
    """Whether the process is there and has become this program."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and Path(f"/proc/{pid}/cmdline").read_bytes().startswith(program)
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(holds):
    deadline = time.monotonic() + 60
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert holds()


def test_a_program_of_a_killed_lab_ends_with_it():
    """A load, or the proxy that makes E3's links: the next run would not find it."""
    child = """
from quarry_lab.servers.program import RunningProgram
print(RunningProgram(["sleep", "600"]).process.pid, flush=True)
input()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as lab:
        pid = int(lab.stdout.readline())
        try:
            wait_until(lambda: runs(pid, b"sleep"))
        finally:
            lab.kill()
    try:
        wait_until(lambda: not runs(pid, b"sleep"))
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_foreign_process_with_the_recorded_pid_is_left_alone(tmp_path):
    with subprocess.Popen(["sleep", "600"]) as foreign:
        try:
            server = PrivateServer(tmp_path / "server", plugin=None)
            server.directory.mkdir()
            server.pid_file.write_text(f"{foreign.pid}\n")
            assert not server.adopt()
            with server:
                assert foreign.poll() is None
        finally:
            foreign.kill()


def test_two_servers_of_different_directories_do_not_mix(tmp_path, server):
    with PrivateServer(tmp_path / "other", plugin=None) as other:
        assert not PrivateServer(tmp_path / "third", plugin=None).adopt()
        other.sql("CREATE DATABASE only_there")
        assert "only_there" not in server.sql("SHOW DATABASES")


def test_a_path_too_long_for_a_socket_gets_a_short_link(tmp_path, capsys):
    with PrivateServer(tmp_path / ("x" * 120), plugin=None) as server:
        assert server.value("SELECT 1") == "1"
        assert len(str(server.socket)) <= 107
        link = server.socket.parent
    assert "longer than the 107 bytes" in capsys.readouterr().err
    assert not link.exists() and not link.is_symlink()


@pytest.mark.parametrize(
    "field, expected",
    [("plain", "plain"), ("NULL", None), (r"a\tb\nc\\d\0", "a\tb\nc\\d\0"), ("", ""), ("trailing\\", "trailing\\")],
)
def test_unescape(field, expected):
    assert unescape(field) == expected


def test_describe_exit_names_signals():
    assert describe_exit(-9) == "signal SIGKILL"
    assert describe_exit(7) == "exit code 7"
    assert describe_exit(None) == "exit code unknown"


def test_data_without_the_servers_own_schema_are_not_replaced_by_an_empty_directory(tmp_path):
    """As a restore that was broken off leaves it, or a name that was moved by mistake."""
    server = PrivateServer(tmp_path / "server", plugin=None)
    table = server.datadir / "shop" / "t.ibd"
    table.parent.mkdir(parents=True)
    table.write_bytes(b"somebody's rows")
    with pytest.raises(ServerError, match="holds files, and no 'mysql'"):
        server.start()
    assert table.read_bytes() == b"somebody's rows"


def test_a_directory_of_others_is_not_closed_to_them(tmp_path):
    """As of a wrong --directory: a private server's gets mode 0700, and root's server takes all files in it for its own."""
    (tmp_path / "letters").write_text("mine", encoding="utf-8")
    tmp_path.chmod(0o755)
    for action in ("start", "stop"):
        command = [REPOSITORY / "scripts" / "server", "--directory", tmp_path, "--without-quarry", action]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and f"{tmp_path} holds files, and none of a private server's" in done.stderr, done
    assert tmp_path.stat().st_mode & 0o777 == 0o755 and [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_a_new_drive_is_no_directory_of_others(tmp_path):
    (tmp_path / "lost+found").mkdir()
    assert not private.is_foreign(tmp_path, "lock")
    (tmp_path / "letters").touch()
    assert private.is_foreign(tmp_path, "lock") and not private.is_foreign(tmp_path, "letters")


def test_two_starts_of_one_directory_do_not_take_each_others_socket(tmp_path):
    """As of `make server` in two terminals: the second one says that the first is at work."""
    directory = tmp_path / "server"
    private.make_directory(directory)
    command = [REPOSITORY / "scripts" / "server", "--directory", directory, "--without-quarry"]
    with open(directory / "lock", "w", encoding="ascii") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        (directory / "mysqld.sock").touch()
        for action in ("start", "stop"):
            done = subprocess.run([*command, action], capture_output=True, text=True, check=False)
            assert done.returncode == 1 and "another command is at work" in done.stderr, done
        assert (directory / "mysqld.sock").exists()
    try:
        done = subprocess.run([*command, "start"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
    finally:
        subprocess.run([*command, "stop"], capture_output=True, check=True)
