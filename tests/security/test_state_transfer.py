"""The rsync daemon of a Galera node that joins takes files from who knows its secret, and from nobody else."""

import os
import subprocess

from quarry_cluster.galera import RSYNC_USER, transfer_path
from quarry_server.ports import free_ports
from quarry_server.private import write_secret

from harness.outside import as_nobody, doors_of
from harness.waiting import wait_for


def test_the_rsync_of_a_state_transfer_asks_for_a_secret(tmp_path):
    """Its daemon, as the server's script starts it: it writes what it is sent into the data directory of a node that joins."""
    (port,) = free_ports(1)
    data, sent = tmp_path / "data", tmp_path / "sent"
    data.mkdir()
    sent.write_text("a state")
    configuration = tmp_path / "rsyncd.conf"
    configuration.write_text(f"use chroot = no\nread only = no\n[rsync_sst]\n    path = {data}\n")
    path = transfer_path(tmp_path)
    environment = {**os.environ, "PATH": path, "USER": RSYNC_USER}
    command = ["rsync", "--daemon", "--no-detach", f"--port={port}", f"--config={configuration}", "--address=127.0.0.1"]
    with subprocess.Popen(command, env=environment) as daemon:
        try:
            wait_for("the daemon listens", lambda: any(door[1] == port for door in doors_of([daemon.pid])))
            url = f"rsync://127.0.0.1:{port}/rsync_sst"
            guess = write_secret(tmp_path / "guess", "guess\n")
            plain = ["rsync", "--quiet", f"--password-file={guess}", str(sent), url]
            outside = {**environment, "PATH": os.environ["PATH"]}
            refused = subprocess.run(plain, env=outside, capture_output=True, text=True, check=False)
            assert refused.returncode != 0 and "auth failed" in refused.stderr + refused.stdout, refused
            assert list(data.iterdir()) == []
            subprocess.run(["rsync", "--quiet", str(sent), url], env=environment, check=True, timeout=60)
            assert (data / "sent").read_text() == "a state"
            assert as_nobody(lambda: int(os.access(tmp_path / "bin" / "password", os.R_OK))) == 0
        finally:
            daemon.terminate()
