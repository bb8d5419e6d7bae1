"""Modes of Quarry's files and folders are those of the server's own, whatever UMASK and UMASK_DIR say."""

import os
import stat

import pytest
from quarry_server.server import HOME_NAME

pytestmark = pytest.mark.quarry_only


@pytest.mark.parametrize(
    ("environment", "file_mode", "folder_mode"),
    [({}, 0o660, 0o700), ({"UMASK": "0640", "UMASK_DIR": "0750"}, 0o640, 0o750), ({"UMASK": "0600"}, 0o600, 0o700)],
    ids=["as it comes", "for a group", "for the account alone"],
)
def test_files_and_folders_are_as_the_servers_own(own_server, tmp_path, environment, file_mode, folder_mode):
    drive = tmp_path / "drive"
    drive.mkdir(mode=0o700)
    server = own_server("security-modes", f"--quarry-data-paths={drive}", environment=environment)
    server.query("CREATE DATABASE d")
    for table in ("t", "u"):
        server.query(f"CREATE TABLE d.{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        server.query(f"INSERT INTO d.{table} VALUES (1, REPEAT('v', 90000))")
    server.query("DROP TABLE d.u")
    assert stat.S_IMODE((server.datadir / "d" / "t.ibd").stat().st_mode) == file_mode
    assert stat.S_IMODE((server.datadir / "d").stat().st_mode) == folder_mode
    files = folders = 0
    for root in (server.datadir / HOME_NAME, drive / "quarry"):
        for folder, _, names in os.walk(root):
            assert stat.S_IMODE(os.stat(folder).st_mode) == folder_mode, folder
            folders += 1
            for name in names:
                assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) == file_mode, f"{folder}/{name}"
                files += 1
    assert files >= 4 and folders >= 5
