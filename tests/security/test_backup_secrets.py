"""quarry-backup: the password is on no command line, and what it writes is nobody else's."""

import os
import pty
import pwd
import select
import signal
import stat
import subprocess
import time

import pytest
from harness.server import Server

PASSWORD = "s3#c\"r'e\\t ; [x] \u00e9"
SQL_PASSWORD = PASSWORD.replace("\\", "\\\\").replace("'", "''")


@pytest.fixture(scope="module")
def guarded():
    """A server with an account that needs a password, and one QUARRY table."""
    server = Server("guarded").start()
    server.query(f"CREATE USER 'backup'@'localhost' IDENTIFIED BY '{SQL_PASSWORD}'")
    server.query("GRANT ALL ON *.* TO 'backup'@'localhost'")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t SELECT seq, REPEAT('x', 90000) FROM d.seq_1_to_20")
    yield server
    server.remove()


def command(drill, server, name, *options):
    """A backup in which mariadb-backup notes every command line of the machine, and its own environment's names."""
    spy = drill.wrapper(f"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' >'{drill.root}/{name}.lines'\n\"$real\" \"$@\"")
    account = [f"--socket={server.socket}", "--user=backup"]
    return drill.command("backup", *options, *account, f"--target-dir={drill.path(name)}", f"--mariadb-backup={spy}")


def run(words, **environment):
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **environment}, check=False,
        start_new_session=True,
    )


def check_kept(drill, server, name):
    lines = (drill.root / f"{name}.lines").read_text(errors="replace")
    assert "--target-dir" in lines and "s3#c" not in lines
    found = subprocess.run(["grep", "-rlF", "s3#c", drill.path(name)], capture_output=True, text=True, check=False)
    assert found.stdout == "", found
    drill.verify(name)


@pytest.mark.parametrize("option", [f"--password={PASSWORD}", f"-p{PASSWORD}"])
def test_a_password_on_the_command_line_is_refused(guarded, drill, option):
    done = run(command(drill, guarded, "no", "--no-defaults", option))
    assert done.returncode == 1 and "ERROR: a password on the command line" in done.stderr, done
    assert "MYSQL_PWD" in done.stderr and "s3#c" not in done.stderr and not drill.path("no").exists()


@pytest.mark.parametrize("option", ["--password=x", "--passw=x", "-px"])
def test_one_that_is_passed_on_is_refused_too(guarded, drill, option):
    done = run([*command(drill, guarded, "no", "--no-defaults"), "--", option])
    assert done.returncode == 1 and "ERROR: a password on the command line" in done.stderr, done


@pytest.mark.parametrize("kind", ["--defaults-file", "--defaults-extra-file"])
def test_it_comes_from_an_option_file(guarded, drill, kind):
    file = drill.root / "backup.cnf"
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    file.write_text(f'[client]\npassword="{escaped}"\n', encoding="utf-8")
    file.chmod(0o600)
    done = run(command(drill, guarded, "file", f"{kind}={file}"))
    assert done.returncode == 0, done
    check_kept(drill, guarded, "file")


def test_it_comes_from_the_environment(guarded, drill):
    done = run(command(drill, guarded, "environment", "--no-defaults"), MYSQL_PWD=PASSWORD)
    assert done.returncode == 0, done
    check_kept(drill, guarded, "environment")


@pytest.mark.parametrize("option", ["-p", "--password"])
def test_it_is_asked_for_on_a_terminal(guarded, drill, option):
    """And counts more than the one in an option file."""
    file = drill.root / "wrong.cnf"
    file.write_text("[client]\npassword=wrong\n", encoding="utf-8")
    words = command(drill, guarded, "asked", f"--defaults-file={file}", option)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(words[0], words)
    said = b""
    deadline = time.monotonic() + 60
    while b"Password" not in said and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1)[0]:
            said += os.read(terminal, 4096)
    assert b"Password" in said, said
    os.write(terminal, PASSWORD.encode() + b"\n")
    while time.monotonic() < deadline:
        try:
            said += os.read(terminal, 4096)
        except OSError:  # its end
            break
    else:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0 and b"s3#c" not in said, said
    check_kept(drill, guarded, "asked")


def test_without_a_terminal_it_says_what_to_do(guarded, drill):
    done = run(command(drill, guarded, "no", "--no-defaults", "-p"))
    assert done.returncode == 1 and "there is no terminal to ask for the password on" in done.stderr, done


def modes(directory):
    """{(is a directory, mode)} of all below, and of itself."""
    found = set()
    for parent, _, names in os.walk(directory):
        for path in (parent, *(os.path.join(parent, name) for name in names)):
            status = os.lstat(path)
            found.add((stat.S_ISDIR(status.st_mode), oct(stat.S_IMODE(status.st_mode))))
    return found


def test_files_are_nobody_elses(guarded, drill):
    """Whatever umask quarry-backup is started with."""
    nobodys = {(True, "0o700"), (False, "0o600")}
    shell = ["sh", "-c", 'umask 000; exec "$@"', "sh"]
    connection = drill.connection(guarded)
    for words in (
        drill.command("backup", *connection, f"--target-dir={drill.path('full')}"),
        drill.command("backup", *connection, f"--target-dir={drill.path('inc')}", f"--incremental-basedir={drill.path('full')}"),
        drill.command("prepare", f"--target-dir={drill.path('full')}"),
        drill.command("prepare", f"--target-dir={drill.path('full')}", f"--incremental-dir={drill.path('inc')}"),
        drill.command("restore", "--no-defaults", f"--target-dir={drill.path('full')}", f"--datadir={drill.path('datadir')}"),
    ):
        done = subprocess.run([*shell, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
    for name in ("full", "inc", "datadir"):
        assert modes(drill.path(name)) <= nobodys, name


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files are given to another account")
def test_restored_files_are_the_owners_that_was_named(guarded, drill):
    drill.backup(guarded, "full")
    drill.prepare("full")
    datadir = f"--datadir={drill.path('datadir')}"
    said = drill.run("restore", "--no-defaults", f"--target-dir={drill.path('full')}", datadir, "--owner=no-such-user", fails=True)
    assert "there is no such user" in said and not drill.path("datadir").exists()
    drill.run("restore", "--no-defaults", f"--target-dir={drill.path('full')}", datadir, "--owner=nobody")
    owners = {os.lstat(os.path.join(parent, name)).st_uid for parent, _, names in os.walk(drill.path("datadir")) for name in (*names, ".")}
    assert owners == {pwd.getpwnam("nobody").pw_uid}




def test_a_server_without_the_engine_and_with_its_data_gets_no_advice_to_leave_them_out(own_server, drill):
    server = own_server("unloaded")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("UNINSTALL PLUGIN QUARRY_BACKUP")
    said = drill.backup(server, "no", fails=True)
    assert "this server HAS Quarry's data" in said and "Do not use mariadb-backup alone" in said and not drill.path("no").exists()
