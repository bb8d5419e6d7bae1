"""Passwords of clients that we start: other accounts can read a command line, and nothing else of a process."""

import pytest
from quarry_server.ports import free_ports
from quarry_lab.load import sysbench
from quarry_lab.load.payload import Payload
from quarry_lab.servers.lab_server import LabServer
from quarry_server.private import new_secret
from quarry_lab.design.variants import ALL, create_table

SMALL = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "64M"}


@pytest.mark.skipif(not sysbench.is_installed(), reason="sysbench is not installed (scripts/setup installs it)")
def test_sysbench_gets_its_password_and_no_command_line_shows_it(tmp_path, monkeypatch):
    commands = []
    popen = sysbench.RunningProgram.__init__

    def noting(self, command, *arguments, **settings):
        commands.append(command)
        popen(self, command, *arguments, **settings)

    monkeypatch.setattr(sysbench.RunningProgram, "__init__", noting)
    (port,), secret = free_ports(1), new_secret()
    server = LabServer("main", tmp_path / "lab", None, False, {**SMALL, "port": port}).start()
    try:
        server.execute(f"CREATE USER visitor@'127.0.0.1' IDENTIFIED BY '{secret}'")
        server.execute("GRANT ALL ON lab.* TO visitor@'127.0.0.1'")
        server.execute(create_table(ALL["innodb"], 5000, "lab.sbtest1"))
        load = sysbench.Load("read", "lab", 5000, 1, host="127.0.0.1", port=port, user="visitor", password=secret, rows=20, seconds=1)
        with Payload("random", 1 << 20) as payload:
            sysbench.fill(load, payload)
            assert sysbench.run(load, payload).events > 0
        assert server.rows("SELECT COUNT(*) FROM lab.sbtest1") == [(20,)]
    finally:
        server.close()
    assert len(commands) == 2 and not any(secret in word for command in commands for word in command)
