"""Every kind of server that our verbs start, looked at by another account of this machine: it gets in nowhere."""

import os
import pathlib
import subprocess
import tempfile

import pymysql
import pytest
from quarry_server.ports import free_ports
from quarry_lab.servers.lab_server import LabServer
from quarry_server.private import account, new_secret, unprivileged_id, unreachable
from quarry_server.server import BUILD, MARIADB, PLUGIN, REPOSITORY, PrivateServer

from harness.outside import GUESSES, NOBODY, as_nobody, is_open, look, user_ids

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another account")

SMALL = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "64M"}


def test_a_server_of_make_server(tmp_path):
    command = [REPOSITORY / "scripts" / "server", "--directory", tmp_path / "server"]
    done = subprocess.run([*command, "start"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        server = PrivateServer(tmp_path / "server")
        assert server.adopt()
        assert look([server.directory], [server])["doors"] == 0
        assert "no password" not in done.stdout and "mode 0700" in done.stdout, done.stdout
    finally:
        subprocess.run([*command, "stop"], capture_output=True, check=True)


@pytest.fixture
def reachable():
    """A directory that any account can pass through, as a tree in /srv or /home is; most of the tests' own are closed."""
    with tempfile.TemporaryDirectory(dir=BUILD) as directory:
        path = pathlib.Path(directory)
        path.chmod(0o711)
        hidden = unreachable(unprivileged_id(path), [PLUGIN, MARIADB / "usr" / "sbin" / "mariadbd"])
        if hidden:
            pytest.skip(f"no other account can reach {hidden}")
        yield path


def test_a_server_that_root_starts_gives_up_its_rights(reachable):
    lab = LabServer("main", reachable / "lab", PLUGIN, False, SMALL, paths=(reachable / "path",)).start()
    try:
        assert user_ids(lab.pid) == {unprivileged_id(lab.directory)}
        lab.execute("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        lab.execute("INSERT INTO t VALUES (1, REPEAT('x', 100000))")
        look([lab.directory, reachable / "path"], [lab.server])
        lab.restart_cold()
        assert lab.rows("SELECT LENGTH(b) FROM t") == [(100000,)]
        assert user_ids(lab.pid) == {unprivileged_id(lab.directory)}
    finally:
        lab.close()
    assert list(reachable.iterdir()) == []


def test_a_server_that_stays_root_says_so(reachable, capsys):
    reachable.chmod(0o700)
    with PrivateServer(reachable / "server", plugin=None, drop=()) as server:
        assert user_ids(server.pid) == {0}
        assert "runs as root" in capsys.readouterr().err


def test_a_directory_of_an_earlier_build_is_closed(tmp_path):
    """Accounts as they were made before, in a folder that everybody may enter."""
    command = [REPOSITORY / "scripts" / "server", "--directory", tmp_path / "server"]
    server = PrivateServer(tmp_path / "server").start()
    for name in ("root@localhost", "root@'127.0.0.1'", "root@'::1'"):
        server.sql(f"CREATE OR REPLACE USER {name}; GRANT ALL ON *.* TO {name} WITH GRANT OPTION")
    server.stop()
    server.directory.chmod(0o755)
    subprocess.run([*command, "start"], capture_output=True, text=True, check=True)
    try:
        assert server.adopt()
        look([server.directory], [server])
    finally:
        subprocess.run([*command, "stop"], capture_output=True, check=True)


def test_a_server_of_the_tests(own_server):
    """With a port, as clients have it that know TCP alone."""
    (port,) = free_ports(1)
    server = own_server("private", f"--port={port}")
    server.query(f"CREATE USER client@'127.0.0.1' IDENTIFIED BY '{new_secret()}'")
    assert look([server.directory], [server.private])["doors"] == 1


def test_a_server_of_lab_demo_and_trial(tmp_path):
    lab = LabServer("main", tmp_path / "lab", PLUGIN, False, SMALL, paths=(tmp_path / "path",)).start()
    try:
        look([lab.directory, tmp_path / "path"], [lab.server])
    finally:
        lab.close()


def test_handlersocket(tmp_path):
    if not (MARIADB / "usr/lib/mysql/plugin/handlersocket.so").exists():
        pytest.skip("the unpacked MariaDB has no handlersocket.so")
    reading, writing = free_ports(2)
    secrets = {"handlersocket_plain_secret": new_secret(), "handlersocket_plain_secret_wr": new_secret()}
    options = [f"--handlersocket-port={reading}", f"--handlersocket-port-wr={writing}", "--handlersocket-address=127.0.0.1"]
    options = ["--plugin-load-add=handlersocket.so", *options]
    with PrivateServer(tmp_path / "server", options, plugin=None, secrets=secrets) as server:
        tried = look([server.directory], [server], secrets.values(), line_protocol=(reading, writing))
        assert tried["doors"] == 2


def test_a_path_too_long_for_a_socket(tmp_path):
    """Then the socket is reached by a link in the temporary directory, which anybody can follow."""
    directory = tmp_path / ("long" * 20) / ("path" * 10)
    with PrivateServer(directory, plugin=None) as server:
        assert server.socket.parent != server.directory
        look([server.directory, server.socket.parent], [server])
        assert as_nobody(lambda: int(os.path.exists(server.socket))) == 0


def test_root_of_sql_is_whoever_runs_the_server_and_nobody_else(reachable):
    """Even where the directory is left open: the socket asks the kernel who is there."""
    with PrivateServer(reachable / "server", plugin=None) as server:
        server.directory.chmod(0o755)
        assert as_nobody(lambda: outcome_of(server, [*GUESSES, account()])) == 0


def test_who_is_not_root_starts_servers_of_its_own(reachable, monkeypatch):
    """Its own name is SQL's root there, and the machine's root no other than before."""
    os.chown(reachable, NOBODY, NOBODY)
    monkeypatch.setattr("quarry_server.server.BUILD", reachable / "build")

    def start():
        server = PrivateServer(reachable / "server", plugin=None).start()
        try:
            return int(server.value("SELECT CURRENT_USER()") != f"{account()}@localhost")
        finally:
            server.stop()

    assert as_nobody(start) == 0
    assert os.stat(reachable / "server").st_mode & 0o777 == 0o700


def outcome_of(server, users):
    """0: the server was there, and let in none of them."""
    for user in users:
        try:
            pymysql.connect(unix_socket=str(server.socket), user=user, ssl_disabled=True)
            return 1
        except pymysql.err.OperationalError as failure:
            if failure.args[0] not in (1045, 1698, 4151):  # access denied, or the account is locked
                return 2
    return 0


@pytest.mark.parametrize(
    ("privileges", "is_let_in"),
    [
        ({}, True),
        ({"plugin": "mysql_native_password", "authentication_string": ""}, True),
        ({"plugin": "mysql_native_password", "authentication_string": "*AB"}, False),
        ({"plugin": "mysql_native_password", "authentication_string": "invalid", "auth_or": [{}, {"plugin": "unix_socket"}]}, False),
        ({"plugin": "unix_socket", "auth_or": [{}, {"plugin": "mysql_native_password"}]}, True),
        ({"account_locked": True}, False),
    ],
)
def test_what_counts_as_an_open_account(privileges, is_let_in):
    assert is_open(privileges) == is_let_in
