"""What scripts/install puts under a prefix works from there, without the repository's help."""

import os
import signal
import stat
import subprocess

import pytest

from harness.server import REPOSITORY
from harness.waiting import wait_for

BUILT = REPOSITORY / "build" / "release" / "tools"
PROGRAMS = ["quarry-backup", "quarry-dump", "quarry-verify"]


def install(prefix, *arguments, path=os.environ["PATH"], umask=-1):
    return subprocess.run(
        [REPOSITORY / "scripts" / "install", *arguments],
        env={**os.environ, "PREFIX": str(prefix), "PATH": path},
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def prefix(tmp_path):
    for _ in range(2):  # again over itself, as an upgrade does
        done = install(tmp_path, "--tools", BUILT)
        assert done.returncode == 0 and "copied quarry-backup quarry-verify quarry-dump" in done.stdout, done
    return tmp_path


def run(prefix, *command):
    path = f"{prefix / 'bin'}:/usr/bin:/bin"
    return subprocess.run(
        [str(part) for part in command], cwd="/", env={"PATH": path}, capture_output=True, text=True, check=False
    )


def test_the_programs_are_there_and_run(prefix):
    assert sorted(path.name for path in (prefix / "bin").iterdir()) == PROGRAMS
    for program in PROGRAMS:
        assert stat.S_IMODE((prefix / "bin" / program).stat().st_mode) == 0o755
        done = run(prefix, program, "--help")
        assert done.returncode == 0 and program in done.stdout, done


def test_the_tools_are_for_every_account_whatever_roots_umask_is(tmp_path):
    done = install(tmp_path, "--tools", BUILT, umask=0o077)
    assert done.returncode == 0, done
    for directory in ("bin", "lib", "lib/quarry", "lib/quarry/quarry_backup"):
        assert stat.S_IMODE((tmp_path / directory).stat().st_mode) == 0o755, directory


def test_an_installed_backup_tool_finds_the_installed_verification(prefix, own_server, drill):
    server = own_server("install")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t SELECT seq, REPEAT('x', 90000) FROM d.seq_1_to_20")
    drill.backup(server, "full")
    done = run(prefix, "quarry-backup", "verify", f"--target-dir={drill.path('full')}")
    assert done.returncode == 0 and " extents, " in done.stdout + done.stderr, done
    server.stop()
    done = run(prefix, "quarry-verify", server.datadir)
    assert done.returncode == 0 and " extents, " in done.stdout, done
    (segment,) = server.segments()
    done = run(prefix, "quarry-dump", "--verify", segment)
    assert done.returncode == 0 and "20 extents" in done.stdout, done


def install_advisor(prefix):
    """That step of scripts/install alone, where no Python module can be had."""
    step = 'source <(sed "/^case /,\\$d" "$0"); install_advisor'
    environment = {**os.environ, "PREFIX": str(prefix), "PIP_NO_INDEX": "1"}
    command = ["bash", "-c", step, REPOSITORY / "scripts" / "install"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_advisor_that_cannot_be_upgraded_stays_as_it_was(tmp_path):
    for name in ("quarry_advisor", "venv"):
        (tmp_path / "lib" / "quarry" / name).mkdir(parents=True)
        (tmp_path / "lib" / "quarry" / name / "of before").touch()
    done = install_advisor(tmp_path)
    assert done.returncode == 0 and "stays as it was" in done.stdout, done
    left = sorted(str(path.relative_to(tmp_path / "lib" / "quarry")) for path in tmp_path.glob("lib/quarry/*/*"))
    assert left == ["quarry_advisor/of before", "venv/of before"]


def test_an_environment_that_is_not_the_advisors_is_left_alone(tmp_path):
    (tmp_path / "lib" / "quarry" / "venv").mkdir(parents=True)
    (tmp_path / "lib" / "quarry" / "venv" / "theirs").touch()
    done = install_advisor(tmp_path)
    assert done.returncode == 0 and f"{tmp_path}/lib/quarry/venv is not its environment" in done.stdout, done
    assert [path.name for path in tmp_path.glob("lib/quarry/*/*")] == ["theirs"]


def test_where_the_tools_cannot_be_written_they_are_not_installed(tmp_path):
    (tmp_path / "file").touch()
    done = install(tmp_path / "file" / "prefix", "--tools", BUILT)
    assert done.returncode == 1 and f"{tmp_path}/file/prefix/bin" in done.stderr and "nothing was installed" in done.stderr, done


def test_a_file_has_its_name_only_when_its_bytes_are_on_the_disk(tmp_path):
    """A plugin file that is empty after a power cut keeps the server from starting."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "sync").write_text(f'#!/bin/sh\ntest -s "$1" && echo "$1" >>{tmp_path}/synced\n')
    (programs / "sync").chmod(0o755)
    done = install(tmp_path, "--tools", BUILT, path=f"{programs}:{os.environ['PATH']}")
    assert done.returncode == 0, done
    written = [f"{tmp_path}/bin/{program}.new" for program in ("quarry-backup", "quarry-verify", "quarry-dump")]
    assert (tmp_path / "synced").read_text().split() == written


SERVER_THAT_STAYS = """#!/bin/sh
trap '' TERM INT
for word; do case $word in --print-defaults) exit ;; --datadir=*) echo "$$ ${{word#*=}}" >{noted}.new; mv {noted}.new {noted} ;; esac; done
while :; do sleep 0.05; done
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_install_leaves_no_server_of_its_trial(tmp_path, number):
    server, noted = tmp_path / "mariadbd", tmp_path / "noted"
    server.write_text(SERVER_THAT_STAYS.format(noted=noted))
    server.chmod(0o755)
    trial = 'source <(sed "/^case /,\\$d" "$0"); try_engine "$1" /'
    # Under nohup SIGHUP is ignored, and no script can undo that.
    command = ["env", "--default-signal=HUP", "bash", "-c", trial, REPOSITORY / "scripts" / "install", server]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    wait_for("the server to be started", noted.exists)
    pid, datadir = noted.read_text().split()
    process.send_signal(number)
    assert process.wait(60) != 0
    is_left = os.path.exists(f"/proc/{pid}")
    if is_left:
        os.kill(int(pid), signal.SIGKILL)
    assert not is_left and not os.path.exists(os.path.dirname(datadir))


SERVER_THAT_TELLS = """#!/bin/sh
case $* in *--print-defaults*)
  printf 'mariadbd would have been started with:\\n--innodb_log_file_size=1G --quarry=FORCE --quarry_page_cache_pct=5 '
  echo '--quarry-cache-size=64G --quarry_data_paths=/srv/drive1;/srv/drive2 --loose-quarry_old=1 --quarry-gc=OFF '
  exit ;;
esac
echo "[ERROR] mariadbd: unknown variable 'quarry_page_cache_pct=5'; given: $*"
exit 1
"""


def test_settings_that_the_new_engine_does_not_know_are_found_before_it_is_installed(tmp_path):
    """With quarry = FORCE the server would not start. What names directories in use, or takes memory, is not tried."""
    server = tmp_path / "mariadbd"
    server.write_text(SERVER_THAT_TELLS)
    server.chmod(0o755)
    trial = 'source <(sed "/^case /,\\$d" "$0"); try_engine "$1" /'
    command = ["bash", "-c", trial, REPOSITORY / "scripts" / "install", server]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "unknown variable 'quarry_page_cache_pct=5'" in done.stderr, done
    given = next(line for line in done.stderr.splitlines() if "given: " in line).partition("given: ")[2].split()
    settings = [word for word in given if word.startswith("--quarry") and word != "--quarry=FORCE"]
    assert settings == ["--quarry_page_cache_pct=5", "--quarry-gc=OFF"], given
    assert "--quarry_page_cache_pct=5 --quarry-gc=OFF; whole log" in done.stderr and "nothing was installed" in done.stderr, done


def test_a_wrong_argument_is_named(tmp_path):
    done = install(tmp_path, "--tool")
    assert done.returncode == 1 and "unknown argument '--tool'" in done.stderr
    assert not (tmp_path / "bin").exists()
