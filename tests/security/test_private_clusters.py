"""Clusters as `make cluster` starts them as root: their servers give up root's rights, and go on as before."""

import os
import pathlib
import tempfile

import pytest
from quarry_cluster.cluster import Cluster
from quarry_cluster.ddl import ShardedTables
from quarry_cluster.galera import why_no_galera
from quarry_server.private import unprivileged_id, unreachable
from quarry_server.server import BUILD, MARIADB, PLUGIN

from harness.outside import look, user_ids

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another account"),
    pytest.mark.nightly,  # half a minute; tests/cluster and tests/galera look at clusters that run as root
]
TABLE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE=QUARRY"


@pytest.mark.parametrize("kind", ["spider", "galera"])
def test_servers_of_a_cluster_are_not_root(kind):
    if kind == "galera" and (reason := why_no_galera()):
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(dir=BUILD) as parent:
        pathlib.Path(parent).chmod(0o711)
        directory = pathlib.Path(parent) / "cluster"
        number = unprivileged_id(directory)
        if hidden := unreachable(number, [PLUGIN, MARIADB / "usr" / "sbin" / "mariadbd"]):
            pytest.skip(f"no other account can reach {hidden}")
        cluster = Cluster.make(directory, kind)
        try:
            cluster.start()
            entry = cluster.role("galera" if kind == "galera" else "front")[0]
            if kind == "galera":
                entry.query("CREATE DATABASE d")
                entry.query(TABLE, database="d")
            else:
                ShardedTables(cluster).create("d", TABLE, "id")
                assert user_ids(cluster.proxy.pid()) == {number}
            entry.query("INSERT INTO t (b) VALUES (REPEAT('x', 100000)), (REPEAT('y', 200000))", database="d")
            servers = [member.server for member in cluster.members.values()]
            secrets = [cluster.plan.password, cluster.plan.replication_password]
            look([directory, *(server.directory for server in servers)], servers, secrets, sockets_min=len(servers))
            cluster.stop()
            cluster.start()
            assert all(user_ids(member.server.pid) == {number} for member in cluster.members.values())
            assert entry.value("SELECT SUM(LENGTH(b)) FROM d.t") == 300000
        finally:
            cluster.stop()
