"""The Java clients against a private server: every codec, a JMH run, a value that changed, YCSB with values that it checks; a shaped link."""

import os
import subprocess
import sys
import time

import pytest

from quarry_lab.design.methods import METHODS
from quarry_lab.load import java, ycsb
from quarry_lab.servers import links, namespaces
from quarry_lab.servers.lab_server import LabServer
from quarry_server.ports import free_ports
from quarry_server.server import PLUGIN
from quarry_lab.load.ycsb import WORKLOADS, YcsbRun

SMALL = {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "64M"}
ROWS, VALUE_BYTES = 4, 2048
SHAPED = links.Link("shaped", "a rate alone", 1000)
NO_QUEUE = "this kernel has neither netem nor tbf, or this user may not make network namespaces"


@pytest.fixture(scope="module")
def network():
    """Localhost and, where the kernel can, a link through a namespace."""
    (port,) = free_ports(1)
    wanted = [links.LINKS["localhost"], *([SHAPED] if SHAPED.queue() else [])]
    with links.Network(wanted, port) as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory, network):
    if missing := java.missing_tools():
        pytest.skip("; ".join(missing))
    java.build()
    extra = {**SMALL, **java.network_options(network.port, network.addresses)}
    made = LabServer("main", tmp_path_factory.mktemp("java") / "server", PLUGIN, False, extra)
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture(scope="module")
def client(server, network):
    return java.Client(network.endpoint("localhost"), java.create_account(server))


@pytest.fixture(scope="module")
def filled(server, client):
    """The same documents by every way that this server has, each in a table of its own: key -> (load target, what LoadBlobs said)."""
    server.execute("CREATE TABLE lab.payloads (id INT PRIMARY KEY, sha256 BINARY(32))")
    targets = {}
    for key, method in METHODS.items():
        if method.engine in ("InnoDB", "QUARRY"):
            schema = key.replace("-", "_")
            server.execute(f"CREATE DATABASE {schema}")
            server.execute(method.create_table(schema))
            targets[key] = java.LoadTarget(f"{schema}.{method.table}", method.codec, method.insert)
    loads = java.load_blobs(java.Dataset("real", VALUE_BYTES, ROWS, 7), "lab.payloads", list(targets.values()), client)
    return {key: (target, load) for (key, target), load in zip(targets.items(), loads, strict=True)}


def fetch(key, filled, client, tmp_path):
    target = java.LoadTarget(filled[key][0].table, METHODS[key].codec, METHODS[key].select)
    return java.fetch_blobs(target, "lab.payloads", ROWS, 2, (1, 1), tmp_path / "jmh.json", client)[0]


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


def test_mysqls_format_is_the_same_in_the_application_and_in_the_server(server, filled, client, tmp_path):
    """Each reads what the other has compressed; every value is compared with its digest."""
    application, inside = filled["app-mysql"][0].table, filled["uncompress"][0].table
    same = f"SELECT SUM(SHA2(UNCOMPRESS(data), 256) = HEX(sha256)), SUM(HEX(LEFT(data, 4)) = '00080000') FROM {application} JOIN lab.payloads USING (id)"
    assert VALUE_BYTES == 0x800 and server.rows(same) == [(ROWS, ROWS)]
    fetched, cpu = java.fetch_blobs(java.LoadTarget(inside, "mysql", "data"), "lab.payloads", ROWS, 1, (1, 1), tmp_path / "jmh.json", client)
    assert fetched.uncompressed_bytes_per_second == pytest.approx(fetched.operations_per_second * VALUE_BYTES, rel=1e-9)
    assert cpu["client_cpus"] > 0


def test_a_value_in_mysqls_format_that_is_cut_or_too_long_fails_the_run(server, filled, client, tmp_path):
    table = filled["app-mysql"][0].table
    for change, said in (("LEFT(data, LENGTH(data) - 8)", "2048 bytes were promised"), ("CONCAT(CHAR(255), SUBSTR(data, 2))", "bytes were promised"), ("'abc'", "too short")):
        server.execute(f"CREATE TABLE lab.broken AS SELECT id, {change} data FROM {table}")
        try:
            with pytest.raises(java.JavaError, match=said):
                java.fetch_blobs(java.LoadTarget("lab.broken", "mysql", "data"), "lab.payloads", ROWS, 1, (1, 1), tmp_path / "jmh.json", client)
        finally:
            server.execute("DROP TABLE lab.broken")


def test_jmh_fetches_and_counts_bytes(filled, client, tmp_path):
    result = fetch("app-zstd", filled, client, tmp_path)
    assert result.uncompressed_bytes_per_second == pytest.approx(result.operations_per_second * VALUE_BYTES, rel=1e-9)
    assert result.received_bytes_per_second < result.uncompressed_bytes_per_second


def connections(server):
    ((count,),) = server.rows(f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{java.USER}'")
    return int(count)


def wait_until(holds):
    deadline = time.monotonic() + 120
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert holds()


def test_the_clients_of_a_killed_lab_end_with_it(server, filled, client, tmp_path):
    """Also the JVM that JMH forked, which has the connections, and ten minutes to go."""
    target = java.LoadTarget(filled["app-none"][0].table, "none", "data")
    child = f"""
from pathlib import Path
from quarry_lab.load.java import Client, LoadTarget, fetch_blobs
from quarry_lab.servers.links import Endpoint
fetch_blobs({target!r}, "lab.payloads", {ROWS}, 1, (1, 600), Path({str(tmp_path / "jmh.json")!r}), {client!r})
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    wait_until(lambda: connections(server) == 0)
    try:
        with subprocess.Popen([sys.executable, "-"], stdin=subprocess.PIPE, text=True, env=environment) as lab:
            try:
                lab.stdin.write(child)
                lab.stdin.close()
                wait_until(lambda: connections(server) > 0)
            finally:
                lab.kill()
        wait_until(lambda: connections(server) == 0)
    finally:
        server.execute(f"KILL USER {java.USER}")


def test_a_value_that_is_not_what_was_stored_fails_the_run(server, filled, client, tmp_path):
    server.execute(f"UPDATE {filled['quarry-lz4'][0].table} SET data = CONCAT(data, ' ') WHERE id = 3")
    with pytest.raises(java.JavaError, match="row 3 of quarry_lz4.uncompressed_blobs is not the value that was stored"):
        fetch("quarry-lz4", filled, client, tmp_path)


def test_ycsb_loads_reads_and_updates_values_that_it_checks(server, client, tmp_path):
    server.execute("CREATE TABLE lab.usertable (id VARCHAR(32) CHARACTER SET ascii PRIMARY KEY, payload BLOB INLINE_SIZE=16) ENGINE=QUARRY")
    load = YcsbRun(WORKLOADS["load"], "lab.usertable", 60, 2, payload_bytes=300, check_values=True)
    report = ycsb.run(load, client, tmp_path / "ycsb.json")
    assert report.latencies["INSERT"].operations == 60
    assert server.rows("SELECT COUNT(*), MIN(LENGTH(payload)), MAX(LENGTH(payload)) FROM lab.usertable") == [(60, 300, 300)]
    mix = YcsbRun(WORKLOADS["f"], "lab.usertable", 60, 2, seconds=2, payload_bytes=300, check_values=True)
    found = ycsb.run(mix, client, tmp_path / "ycsb.json")
    assert {"READ", "UPDATE", "READ-MODIFY-WRITE"} <= set(found.latencies)
    assert found.operations_per_second > 0


def test_ycsb_repeats_what_meets_a_temporary_error_and_says_how_often(server, client, tmp_path):
    """The first update of each connection meets one, as NDB has it."""
    server.execute("CREATE TABLE lab.refusing (id VARCHAR(32) CHARACTER SET ascii PRIMARY KEY, payload BLOB) ENGINE=InnoDB")
    assert ycsb.run(YcsbRun(WORKLOADS["load"], "lab.refusing", 60, 2, payload_bytes=300), client, tmp_path / "ycsb.json").repeated == 0
    server.execute("CREATE TRIGGER lab.refuses BEFORE UPDATE ON lab.refusing FOR EACH ROW "
                   "IF @met IS NULL THEN SET @met = 1; SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1297, MESSAGE_TEXT = 'Got temporary error'; END IF")
    found = ycsb.run(YcsbRun(WORKLOADS["published"], "lab.refusing", 60, 2, seconds=2, payload_bytes=300), client, tmp_path / "ycsb.json")
    assert found.latencies["UPDATE"].operations > 2 and found.repeated == 2


# --- links ---
def check_slow_link():
    """As slow as was asked; a machine under load only makes it slower."""
    (found,) = links.probe([links.Link("slow", "8 Mbit/s, 30 ms", 8, 30)])
    assert found["measured_round_trip_ms"] >= 30
    # Buffers between the ends fill faster than the link lets them through.
    assert found["measured_bytes_per_second"] < 8e6
    return found["by"]


def test_a_link_of_the_proxy_is_as_slow_as_asked(monkeypatch):
    if not links.PROGRAM.exists():
        pytest.skip("no build/toxiproxy-server (scripts/build-toxiproxy makes it; E3 does so itself)")
    monkeypatch.setattr(links, "usable_queue", lambda *_asked: None)
    assert check_slow_link().startswith("toxiproxy 2.")


def test_a_link_of_the_kernel_is_as_slow_as_asked():
    if not namespaces.usable_queue(8, 30, 0):
        pytest.skip("this kernel has no netem queue, or this user may not make network namespaces")
    assert check_slow_link().startswith("tc netem delay 30ms")


def own_namespaces():
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.startswith(f"quarry-lab-{os.getpid()}-")}


def test_a_rate_alone_is_made_by_the_kernel_and_its_namespace_goes():
    if not namespaces.usable_queue(8, 0, 0):
        pytest.skip(NO_QUEUE)
    (ended := subprocess.Popen(["true"])).wait()
    left = f"quarry-lab-{ended.pid}-0"
    subprocess.run(["ip", "netns", "add", left], check=True)
    namespaces.remove_leftovers()
    before = own_namespaces()
    assert not os.path.exists(f"/run/netns/{left}")
    (found,) = links.probe([links.Link("other", "", shaped=False), links.Link("slow", "8 Mbit/s", 8)])[1:]
    assert found["measured_bytes_per_second"] < 8e6
    assert "rate 8mbit" in found["by"]
    assert own_namespaces() == before


def test_a_link_both_ways_limits_what_clients_send_too():
    if not namespaces.usable_queue(8, 0, 0):
        pytest.skip(NO_QUEUE)
    queue = links.Link("slow", "8 Mbit/s", 8).queue()
    for both_ways in (True, False):
        with namespaces.ClientNamespace(queue, both_ways) as made:
            there = subprocess.run(["tc", "-n", made.name, "qdisc", "show"], capture_output=True, text=True, check=True).stdout
            here = subprocess.run(["tc", "qdisc", "show", "dev", made.interface], capture_output=True, text=True, check=True).stdout
            assert "rate 8Mbit" in here and ("rate 8Mbit" in there) is both_ways


def test_a_java_client_reaches_the_server_from_its_namespace(network, client, filled, tmp_path):
    if not SHAPED.queue():
        pytest.skip(NO_QUEUE)
    there = java.Client(network.endpoint(SHAPED.key), client.password)
    assert fetch("app-zstd", filled, there, tmp_path).operations_per_second > 0
