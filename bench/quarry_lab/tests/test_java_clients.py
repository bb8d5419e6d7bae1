"""The Java clients against a private server: every codec, a JMH run, a value that changed, YCSB with values that it checks; a shaped link."""

import socket

import pytest

from quarry_lab import java, links, ycsb
from quarry_lab.lab_server import LabServer
from quarry_lab.methods import METHODS
from quarry_lab.server import PLUGIN
from quarry_lab.ycsb import WORKLOADS, YcsbRun

SMALL = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "64M"}
ROWS, VALUE_BYTES = 4, 2048


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if missing := java.missing_tools():
        pytest.skip("; ".join(missing))
    java.build()
    made = LabServer("main", tmp_path_factory.mktemp("java") / "server", PLUGIN, False, {**SMALL, **java.network_options()})
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture(scope="module")
def environment(server):
    return java.Account.create(server).environment(int(server.extra["port"]))


@pytest.fixture(scope="module")
def filled(server, environment):
    """The same documents by every way that this server has, each in a table of its own: key -> (load target, what LoadBlobs said)."""
    server.execute("CREATE TABLE lab.payloads (id INT PRIMARY KEY, sha256 BINARY(32))")
    targets = {}
    for key, method in METHODS.items():
        if method.engine != "ROCKSDB":
            schema = key.replace("-", "_")
            server.execute(f"CREATE DATABASE {schema}")
            server.execute(method.create_table(schema))
            targets[key] = java.LoadTarget(f"{schema}.{method.table}", method.codec, method.insert)
    loads = java.load_blobs(java.Dataset("real", VALUE_BYTES, ROWS, 7), "lab.payloads", list(targets.values()), environment)
    return {key: (target, load) for (key, target), load in zip(targets.items(), loads, strict=True)}


def fetch(key, filled, environment, tmp_path):
    target = java.LoadTarget(filled[key][0].table, METHODS[key].codec, METHODS[key].select)
    return java.fetch_blobs(target, "lab.payloads", ROWS, 1, (1, 1), tmp_path / "jmh.json", environment)


def test_every_way_stores_documents_that_the_server_can_or_cannot_read(server, filled):
    """LoadBlobs itself has compared what each codec gives back."""
    owners = {}
    for key, (target, load) in filled.items():
        assert (load["rows"], load["uncompressed_bytes"]) == (ROWS, ROWS * VALUE_BYTES)
        ((owners[key],),) = server.rows(f"SELECT JSON_VALUE(CONVERT(data USING utf8mb4), '$.owner') FROM {target.table} WHERE id = 1")
    usable = {key for key, owner in owners.items() if owner is not None}
    assert usable == {"app-none", "row-compressed", "column-compressed", "page-compressed", "quarry", "quarry-lz4", "quarry-zstd"}
    assert len({owners[key] for key in usable}) == 1
    ratios = {key: load["uncompressed_bytes"] / load["sent_bytes"] for key, (_target, load) in filled.items()}
    assert ratios["app-brotli-11"] > ratios["app-lz4-17"] >= ratios["app-lz4-fast"] > ratios["app-none"] == 1


def test_jmh_fetches_and_counts_bytes(filled, environment, tmp_path):
    result = fetch("app-zstd", filled, environment, tmp_path)
    assert result.uncompressed_bytes_per_second == pytest.approx(result.operations_per_second * VALUE_BYTES, rel=0.01)
    assert result.received_bytes_per_second < result.uncompressed_bytes_per_second


def test_a_value_that_is_not_what_was_stored_fails_the_run(server, filled, environment, tmp_path):
    server.execute(f"UPDATE {filled['quarry-lz4'][0].table} SET data = CONCAT(data, ' ') WHERE id = 3")
    with pytest.raises(java.JavaError, match="row 3 of quarry_lz4.uncompressed_blobs is not the value that was stored"):
        fetch("quarry-lz4", filled, environment, tmp_path)


def test_ycsb_loads_reads_and_updates_values_that_it_checks(server, environment, tmp_path):
    server.execute("CREATE TABLE lab.usertable (id VARCHAR(32) CHARACTER SET ascii PRIMARY KEY, payload BLOB INLINE_SIZE=16) ENGINE=QUARRY")
    load = YcsbRun(WORKLOADS["load"], "lab.usertable", 60, 2, payload_bytes=300, check_values=True)
    report = ycsb.run(load, environment, tmp_path / "ycsb.json")
    assert report.latencies["INSERT"].operations == 60
    assert server.rows("SELECT COUNT(*), MIN(LENGTH(payload)), MAX(LENGTH(payload)) FROM lab.usertable") == [(60, 300, 300)]
    mix = YcsbRun(WORKLOADS["f"], "lab.usertable", 60, 2, seconds=2, payload_bytes=300, check_values=True)
    found = ycsb.run(mix, environment, tmp_path / "ycsb.json")
    assert {"READ", "UPDATE", "READ-MODIFY-WRITE"} <= set(found.latencies)
    assert found.operations_per_second > 0


def test_a_shaped_link_is_as_slow_as_asked():
    if not links.PROGRAM.exists():
        pytest.skip("no build/toxiproxy-server (scripts/build-toxiproxy makes it; E3 does so itself)")
    slow = links.Link("slow", "8 Mbit/s, 30 ms", 8, 30)
    (found,) = links.probe([slow])
    assert found["measured_round_trip_ms"] >= 30
    # Buffers between the ends fill faster than the link lets them through.
    assert found["measured_bytes_per_second"] < 8e6
    assert found["by"].startswith("toxiproxy 2.")


def test_a_proxy_ends_with_its_context():
    if not links.PROGRAM.exists():
        pytest.skip("no build/toxiproxy-server (scripts/build-toxiproxy makes it; E3 does so itself)")
    with links.Proxy([links.LINKS["wifi"]], 1) as proxy:
        port = proxy.port("wifi")
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
