"""The server's memlock, which NDB's LockPagesInMainMemory resembles: what it locks, and what it leaves out."""

import re
from pathlib import Path

import pytest

from harness.values import payload

pytestmark = pytest.mark.quarry_only

POOL_KIB = 16 * 1024
ROWS, SIZE = 40, 300_000


def locked_kib(server):
    return int(re.search(r"VmLck:\s*(\d+) kB", Path(f"/proc/{server.pid}/status").read_text()).group(1))


def test_memlock_locks_what_the_server_has_at_its_start_and_no_value(own_server):
    """InnoDB's pool is locked. The value cache grows later and is not: parameters.md names what takes the option's place."""
    server = own_server("locked", "--memlock", f"--innodb-buffer-pool-size={POOL_KIB}K", "--quarry-cache-size=16M")
    at_start = locked_kib(server)
    if at_start == 0:
        pytest.skip("memory is locked for a server of root's only, and within ulimit -l")
    assert at_start > POOL_KIB
    server.query("CREATE DATABASE k")
    server.query("CREATE TABLE k.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for row in range(ROWS):
        server.query("INSERT INTO k.t VALUES (%s, %s)", (row, payload(row, SIZE)))
    for row, value in server.query("SELECT * FROM k.t"):
        assert value == payload(row, SIZE)
    assert int(server.status("quarry\\_cache\\_bytes")["quarry_cache_bytes"]) > 8 << 20
    assert locked_kib(server) == at_start
    assert server.query("CHECK TABLE k.t")[-1][-1] == "OK"
