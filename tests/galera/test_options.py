"""Settings under which a state transfer would leave values behind: refused, or warned of, at start. One node alone."""

import pytest
from quarry_cluster.galera import PROVIDER, provider_options, why_no_galera
from quarry_server.ports import free_ports
from quarry_cluster.tls import Certificates
from quarry_server.server import HOME_NAME, ServerError

from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only


@pytest.fixture
def node(own_server, tmp_path_factory):
    """Starts a cluster of one node with options."""
    reason = why_no_galera()
    if reason:
        pytest.skip(reason)

    def make(*options):
        sql, group, incremental = free_ports(3)
        certificates = Certificates(tmp_path_factory.mktemp("certificates"))
        certificates.make(["127.0.0.1"])
        provider = provider_options(group, incremental, "8M", certificates)
        made = own_server(
            "galera-options",
            f"--port={sql}",
            "--bind-address=127.0.0.1",
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON",
            f"--wsrep-provider={PROVIDER}",
            f"--wsrep-provider-options={provider}",
            f"--wsrep-node-address=127.0.0.1:{group}",
            "--wsrep-cluster-address=gcomm://",
            "--wsrep-new-cluster",
            *options,
        )
        # A node answers before it has joined its own group.
        wait_for("the node to be ready", lambda: made.status("wsrep_ready")["wsrep_ready"] == "ON")
        return made

    return make


def engines(server):
    return {name.upper() for name, *_ in server.query("SHOW ENGINES")}


@pytest.mark.parametrize("method", ["rsync", "mariabackup"])
def test_data_paths_are_refused_where_a_transfer_leaves_them_out(node, tmp_path, method):
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.mkdir()
    with pytest.raises(ServerError) as refused:  # FORCE: without the engine there is no server
        node(f"--wsrep-sst-method={method}", "--quarry-data-paths=" + ";".join(map(str, paths)))
    log = str(refused.value)
    assert str(paths[0]) in log and f"wsrep_sst_method={method}" in log and "mysqldump" in log, log[-3000:]
    assert not any(list(path.iterdir()) for path in paths), "something was made there"


def test_data_paths_are_taken_with_a_logical_transfer(node, tmp_path):
    server = node("--wsrep-sst-method=mysqldump", f"--quarry-data-paths={tmp_path}")
    assert "QUARRY" in engines(server), server.error_log()[-3000:]
    server.query("CREATE DATABASE p")
    server.query("CREATE TABLE p.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO p.t VALUES (1, REPEAT('x', 20000))")
    assert server.segments(tmp_path)


def test_a_method_that_leaves_segments_out_is_warned_of(node):
    server = node("--wsrep-sst-method=mariabackup")
    assert "QUARRY" in engines(server)
    assert f"leaves {HOME_NAME} out" in server.error_log()
