"""quarry_cache_size and quarry_recent_cache_bytes of a server that nobody tuned follow the memory that it may use."""

import pytest
from harness.server import SCRATCH, Server
from quarry_lab.probes import device
from quarry_lab.servers.memory_cgroup import MemoryCgroup, reason_against
from quarry_server.server import PrivateServer

MIB = 1 << 20


def defaults(server):
    server.query("SET GLOBAL quarry_cache_size = DEFAULT")
    ((cache, recent),) = server.query("SELECT @@global.quarry_cache_size, @@global.quarry_recent_cache_bytes")
    return int(cache), int(recent)


def test_the_cache_is_at_most_a_tenth_of_the_machine(request):
    server = Server("default_memory")
    request.addfinalizer(server.remove)
    server.start()
    cache, _ = defaults(server)
    assert 64 * MIB <= cache <= max(64 * MIB, min(device.memory_info()["MemTotal"] // 10, 4096 * MIB))


@pytest.mark.parametrize("limit, cache", [(2000 * MIB, 200 * MIB), (400 * MIB, 64 * MIB)])
def test_the_limit_of_a_control_group_counts(request, limit, cache):
    if reason := reason_against():
        pytest.skip(f"no memory cgroup can be made here: {reason}")
    if device.memory_info()["MemTotal"] < limit:
        pytest.skip(f"this machine has less memory than {limit} bytes")
    with MemoryCgroup(limit) as group:
        private = PrivateServer(SCRATCH / "default_memory_group", options=["--innodb-buffer-pool-size=64M"], cgroup=group.path)
        private.start()
        try:
            ((found, recent),) = private.rows("SELECT @@global.quarry_cache_size, @@global.quarry_recent_cache_bytes")
            assert [int(found), int(recent)] == [cache, cache // 4]
        finally:
            private.kill()
