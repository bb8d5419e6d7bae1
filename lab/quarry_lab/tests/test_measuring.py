"""The load scripts on a real private server (InnoDB), the payload, and the device probe: what is counted must be what happened."""

import io
import json
import threading
import time
import zlib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from plain import Plain
from quarry_lab.design import profile
from quarry_lab.design.request import Address, Request, Settings
from quarry_lab.design.results import open_run
from quarry_lab.experiments import table_experiment
from quarry_lab.experiments.e4 import bench as e4_bench
from quarry_lab.experiments.e4 import experiment as e4
from quarry_lab.experiments.e4 import space
from quarry_lab.load import sysbench, value_reader
from quarry_lab.load.payload import Payload
from quarry_lab.probes import device
from quarry_lab.run import session
from quarry_lab.run.runner import TableBench
from quarry_lab.servers import target
from quarry_lab.servers.lab_server import ConfigurationError, LabServer, parse_mycnf
from quarry_server.ports import free_ports
from quarry_server.server import MARIADB, PLUGIN
from quarry_lab.design.variants import ALL, create_table
from quarry_server import private
from rich.console import Console

SMALL = {"innodb_buffer_pool_size": "128M", "innodb_log_file_size": "64M"}


def test_payload_kinds_compress_as_said():
    with Payload("random", 1 << 20) as plain, Payload("text3", 1 << 20) as text:
        assert plain.ratios["zlib"] < 1.01
        assert 3.0 < text.ratios["zlib"] < 4.5
        assert all(2.6 < ratio < 3.6 for name, ratio in text.ratios.items() if name == "lz4")
        # A small value keeps its ratio: all repeats are near.
        with open(text.path, "rb") as file:
            file.seek(300_000)
            value = file.read(4096)
        assert len(value) / len(zlib.compress(value)) > 2.4


def test_device_probe_leaves_nothing_behind(tmp_path: Path):
    assert device.sequential_write_rate(tmp_path, seconds=30, bytes_max=16 << 20) > 0
    assert len(device.durable_write_latencies(tmp_path, seconds=0.05)) > 0
    assert len(device.durable_write_latencies(tmp_path, seconds=0.05, overwrite=True)) > 0
    assert list(tmp_path.iterdir()) == []


def test_page_cache_of_a_directory(tmp_path: Path):
    assert device.page_cache_bytes(tmp_path) == 0
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(b"x" * (1 << 20))
    assert device.page_cache_bytes(tmp_path) == 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    lab = LabServer("main", tmp_path_factory.mktemp("lab") / "main", plugin=None, rocksdb=False, extra=SMALL)
    lab.start()
    yield lab
    lab.close()
    assert not lab.directory.exists()


THREADS = 3


def load(server, operation, **changes):
    return sysbench.Load(**{"operation": operation, **server.login, "database": "lab", "value_bytes": 5000,
                            "threads": THREADS, "rows": 100, "tables": 2, "warmup_seconds": 1, "seconds": 1, **changes})


@pytest.fixture
def tables(server):
    for i in (1, 2):
        server.execute(f"DROP TABLE IF EXISTS sbtest{i}")
        server.execute(f"CREATE TABLE sbtest{i} (id INT PRIMARY KEY AUTO_INCREMENT, data MEDIUMBLOB)")
    return server


def totals(server):
    counts = [server.rows(f"SELECT COUNT(*), COUNT(DISTINCT MD5(data)), MIN(LENGTH(data)), MAX(LENGTH(data)) FROM sbtest{i}")[0] for i in (1, 2)]
    return [tuple(int(x) for x in row) for row in counts]


def counts_differ_by(result) -> int:
    """sysbench counts an event after its statement: at each report one of every thread may be between the two."""
    return abs(result.reads + result.writes - result.events)


def test_inserts_are_counted_all_different_and_of_the_right_length(tables):
    with Payload("random", 1 << 20) as payload:
        result = sysbench.run(load(tables, "insert", batch_rows=4), payload)
    found = totals(tables)
    assert result.events > 0 and result.errors == 0 and result.reads == 0
    assert sum(row[0] for row in found) == result.total_rows_written and result.total_rows_written % 4 == 0
    assert all(row[0] == row[1] > 0 and row[2] == row[3] == 5000 for row in found)


def test_the_binary_log_of_production_is_durable_and_begins_anew_between_points(tmp_path: Path):
    lab = LabServer("main", tmp_path / "main", None, False, {**SMALL, **profile.SETTINGS[profile.PRODUCTION]}).start()

    def logged() -> int:
        return sum(int(row[1]) for row in lab.rows("SHOW BINARY LOGS"))

    try:
        said = lab.describe()["pinned"]
        assert (said["log_bin"], said["sync_binlog"], said["binlog_format"]) == ("ON", "1", "ROW")
        lab.execute("CREATE TABLE t (data LONGBLOB) ENGINE=InnoDB")
        lab.execute("INSERT INTO t VALUES (REPEAT('x', 1000000))")
        assert logged() > 1_000_000
        lab.settle()
        assert logged() < 10_000
        lab.execute("SET GLOBAL sync_binlog=0")
        with pytest.raises(ConfigurationError, match="sync_binlog is 0, expected 1"):
            lab.verify_pinned()
    finally:
        lab.close()
    with pytest.raises(ConfigurationError, match="sync_binlog must stay 1"):
        parse_mycnf(["sync-binlog=0"])


@pytest.mark.parametrize("ignored", ["none", "1205"])
def test_a_fill_that_lacks_rows_is_an_error(tables, ignored):
    tables.execute("INSERT INTO sbtest1 (id, data) VALUES (5, 'x')")
    with Payload("random", 1 << 20) as payload, pytest.raises(sysbench.SysbenchError, match="Duplicate entry '5'"):
        sysbench.fill(load(tables, "read", ignored_errors=ignored), payload)


@pytest.mark.parametrize("ignored, is_filled", [("1205", True), ("none", False)])
def test_a_fill_repeats_what_failed_for_a_while_if_that_is_to_be_ignored(tables, ignored, is_filled):
    holder = tables.another_connection()
    holder.cursor().execute("BEGIN")
    holder.cursor().execute("INSERT INTO lab.sbtest1 (id, data) VALUES (5, 'x')")
    release = threading.Timer(2.5, holder.rollback)  # longer than the wait for a lock
    release.start()
    waiting = load(tables, "read", ignored_errors=ignored, session_sql="SET innodb_lock_wait_timeout=1")
    try:
        with Payload("random", 1 << 20) as payload, nullcontext() if is_filled else pytest.raises(sysbench.SysbenchError, match="Lock wait timeout"):
            sysbench.fill(waiting, payload)
        assert not is_filled or totals(tables) == [(100, 100, 5000, 5000)] * 2
    finally:
        release.join()
        holder.close()


def test_fill_read_and_mix_touch_the_filled_rows_only(tables):
    with Payload("text3", 1 << 20) as payload:
        sysbench.fill(load(tables, "read"), payload)
        assert totals(tables) == [(100, 100, 5000, 5000)] * 2
        before = [tables.rows(f"SELECT id, MD5(data) FROM sbtest{i} ORDER BY id") for i in (1, 2)]
        read = sysbench.run(load(tables, "read"), payload)
        assert read.total_rows_written == 0 and counts_differ_by(read) <= THREADS < read.reads
        assert [tables.rows(f"SELECT id, MD5(data) FROM sbtest{i} ORDER BY id") for i in (1, 2)] == before
        mix = sysbench.run(load(tables, "mix"), payload)
    assert counts_differ_by(mix) <= THREADS and 0.05 < mix.writes / mix.events < 0.15
    after = [tables.rows(f"SELECT id, MD5(data) FROM sbtest{i} ORDER BY id") for i in (1, 2)]
    assert totals(tables) == [(100, 100, 5000, 5000)] * 2 and after != before


def test_values_compress_as_well_behind_many_writes_as_before(tables):
    with Payload("text3", 64 << 10) as payload, open(payload.path, "rb") as file:
        before = file.read()
        written = 0
        for _ in range(20):  # a busy machine writes fewer in the time of one run
            written += sysbench.run(load(tables, "insert", batch_rows=4), payload).total_rows_written
            if written * 16 > len(before):
                break
        file.seek(0)
        after = file.read()
    assert written * 16 > len(before), "stamps that stayed would be all over the buffer"
    assert sum(a != b for a, b in zip(before, after, strict=True)) < len(before) // 10, "nothing has changed but where threads' stamps overlapped"
    assert all(row[0] == row[1] for row in totals(tables)), "and yet all values differ"


def test_an_sql_error_ends_the_run_with_its_text(tables):
    with Payload("random", 1 << 20) as payload, pytest.raises(sysbench.SysbenchError, match="no_such_variable"):
        sysbench.run(load(tables, "read", session_sql="SET no_such_variable=1"), payload)


def test_settings_are_verified_and_settling_leaves_nothing_dirty(server):
    assert server.verify_pinned()["innodb_flush_log_at_trx_commit"] == "1"
    settled = server.settle()
    assert settled["settled"] and settled["dirty_pages"] == 0
    assert server.variables()["innodb_io_capacity"] == "10000"
    server.execute("SET GLOBAL innodb_flush_log_at_trx_commit=2")
    with pytest.raises(ConfigurationError, match="innodb_flush_log_at_trx_commit is 2"):
        server.verify_pinned()
    server.execute("SET GLOBAL innodb_flush_log_at_trx_commit=1")


def test_a_server_that_lacks_a_plugin_is_not_measured(tmp_path: Path):
    lab = LabServer("main", tmp_path / "main", None, False, SMALL, plugins=("no_such",))
    with pytest.raises(ConfigurationError, match=r"'main' lacks the plugin no_such\.so, looked for in .*plugin"):
        lab.start()
    assert not lab.directory.exists()


def test_a_whole_run_is_recorded_resumed_and_cleaned_up(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path / "bench")
    monkeypatch.setattr(session, "DATA", tmp_path / "bench" / "data")
    monkeypatch.setattr(table_experiment, "DATA", tmp_path / "bench" / "data")
    settings = Settings(seconds=1, warmup_seconds=1, dataset_bytes=1 << 20, device_probe_seconds=0.2, disk_reserve_bytes=0)

    def request():
        return Request("plain", ["insert", "read", "mix"], [4096], [2], ["innodb", "innodb-varbinary"], rounds=1, settings=settings, mycnf=SMALL,
                       output=tmp_path / "bench" / "plain")

    interrupted = []

    def interrupt(bench, point):
        if len(bench.directory.points) == 3 and not interrupted:
            interrupted.append(point)
            raise KeyboardInterrupt
        return real(bench, point)

    real = TableBench.measure
    monkeypatch.setattr(TableBench, "measure", interrupt)
    console = Console(file=io.StringIO(), width=200)
    with pytest.raises(KeyboardInterrupt):
        session.execute(Plain(), request(), console)
    kept = open_run(tmp_path / "bench" / "plain")
    assert len(kept.points) == 3 and kept.run["finished"] is None
    run = session.execute(Plain(), request(), console)
    assert run.resumed and run.points[:3] == kept.points and len(run.done_keys()) == 6 and run.run["finished"]
    assert "resuming" in console.file.getvalue()
    assert json.loads((run.path / "verdicts.json").read_text()) == {"experiment": "plain", "verdicts": []}
    # Every row was read: the buffer pool holds the dataset, each page counted once.
    reads = [p for p in run.points if p["operation"] == "read"]
    assert all(1.0 <= p["memory"]["cached_bytes"]["buffer_pool"] / p["memory"]["payload_bytes"] < 6 for p in reads)
    inserts = [p for p in run.points if p["operation"] == "insert"]
    # InnoDB writes every byte at least to the log and to the page.
    assert all(p["written"]["server_bytes_per_payload_byte"] > 1.9 for p in inserts)
    assert all(p["configuration"]["innodb_doublewrite"] == "ON" for p in run.points)
    assert run.run["sessions"][-1]["device_probes"][0]["sequential_write_bytes_per_second"] > 0
    assert not (tmp_path / "bench" / "data").exists()


def test_a_server_that_a_killed_run_left_is_ended(tmp_path: Path):
    left = LabServer("baseline", tmp_path / "data" / "baseline", plugin=None, rocksdb=False, extra=SMALL).start()
    process = left.server.process
    session.sweep(tmp_path / "data")
    assert process.wait(10) != 0 and not (tmp_path / "data").exists()
    left._connection.close()
    left.server = None


def test_two_values_a_row_ids_of_a_sequence_and_readers_beside_an_updater(server):
    wide, sequence = ALL["innodb-2blob"], replace(ALL["sequence-256"], engine="InnoDB")
    server.execute("CREATE OR REPLACE SEQUENCE ids CACHE 256")
    server.execute("DROP TABLE IF EXISTS sbtest1")
    server.execute(create_table(sequence, 1024, "sbtest1"))
    with Payload("random", 1 << 20) as payload:
        inserted = sysbench.run(load(server, "insert", tables=1, value_bytes=1024, batch_rows=4, id_expression=sequence.id_expression), payload)
        ((rows, lowest, highest),) = server.rows("SELECT COUNT(*), MIN(id), MAX(id) FROM sbtest1")
        assert int(rows) == inserted.total_rows_written and int(lowest) == 1 and int(highest) >= int(rows)
        server.execute("DROP TABLE sbtest1")
        server.execute(create_table(wide, 2048, "sbtest1"))
        two = load(server, "updated", tables=1, value_bytes=1024, columns=2, rows=20)
        sysbench.fill(two, payload)
        before = server.rows("SELECT id, MD5(data1), MD5(data2) FROM sbtest1 ORDER BY id")
        with sysbench.updating(two, payload):
            read = sysbench.run(two, payload)
    after = server.rows("SELECT id, MD5(data1), MD5(data2) FROM sbtest1 ORDER BY id")
    assert read.events > 0 and counts_differ_by(read) <= two.threads and read.total_rows_written == 0
    assert len(before) == 20 and all(a[0] == b[0] and a[1] != b[1] and a[2] != b[2] for a, b in zip(before, after, strict=True))
    server.execute("DROP TABLE sbtest1")


def test_an_updater_that_fails_ends_the_point(tables):
    with Payload("random", 1 << 20) as payload, pytest.raises(sysbench.SysbenchError, match="no_such_variable"):
        with sysbench.updating(load(tables, "updated", session_sql="SET no_such_variable=1"), payload):
            time.sleep(3)


def test_a_target_is_measured_and_left_as_it_was(server, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path)
    for module in (session, table_experiment):
        monkeypatch.setattr(module, "DATA", tmp_path / "data")
    address = Address(socket=server.socket, user=private.account())
    schemas = server.rows("SHOW DATABASES")
    assert target.needs(address) == [] and server.rows("SHOW DATABASES") == schemas
    settings = Settings(seconds=1, warmup_seconds=1, dataset_bytes=1 << 20, disk_reserve_bytes=0)
    request = Request("plain", ["insert", "read"], [4096], [2], ["target-innodb"], rounds=1, settings=settings, target=address, output=tmp_path / "plain")
    run = session.execute(Plain(), request, Console(file=io.StringIO()))
    assert [p["result"]["events"] > 0 for p in run.points] == [True, True]
    assert all(p["configuration"]["innodb_flush_log_at_trx_commit"] == "1" for p in run.points)
    assert "--target" in run.run["sessions"][0]["servers"]["target"]["version"]
    assert server.rows("SHOW DATABASES") == schemas


@pytest.mark.skipif(bool(value_reader.needs()), reason="; ".join(value_reader.needs()))
def test_the_ways_to_a_value_are_measured_on_a_target_too(tmp_path: Path, monkeypatch):
    """Over TCP, with a password that no command line shows; the target's processes are no noise."""
    monkeypatch.setattr(session, "BENCH_OUTPUT", tmp_path)
    monkeypatch.setattr(e4_bench, "DATA", tmp_path / "data")
    monkeypatch.setenv(target.PASSWORD_VARIABLE, "open sesame")
    (port,) = free_ports(1)
    other = LabServer("main", tmp_path / "target", None, False, {**SMALL, "port": port, "bind_address": "127.0.0.1"}).start()
    try:
        other.execute("CREATE USER visitor IDENTIFIED BY 'open sesame'")
        other.execute("GRANT ALL ON *.* TO visitor")
        schemas = other.rows("SHOW DATABASES")
        address = Address(socket=other.socket, user="visitor")
        assert target.needs_over_tcp(address) == [] and target.over_tcp(address) == Address(host="127.0.0.1", port=port, user="visitor")
        assert target.process_ids(address) == other.process_ids
        experiment = e4.Protocols()
        keys = [key for key in experiment.on_target(list(e4.PRIVATE_WAYS), {"INNODB"}) if key != "target-innodb-connect"]
        assert keys == ["target-innodb-text", "target-innodb-text-compressed", "target-innodb-prepared"]
        settings = Settings(seconds=1, warmup_seconds=0, dataset_bytes=1 << 20, disk_reserve_bytes=0)
        request = Request("e4", ["fetch"], [100], [2], keys, rounds=1, settings=settings, target=address, output=tmp_path / "e4", mycnf=SMALL)
        run = session.execute(experiment, request, Console(file=io.StringIO()))
        assert {p["variant"] for p in run.points} == set(keys) and all(p["result"]["events"] > 0 for p in run.points)
        assert all(p["cpu"]["server_cpus"] > 0 for p in run.points)
        assert other.socket in run.run["sessions"][0]["servers"]["target"]["version"]
        assert other.rows("SHOW DATABASES") == schemas
    finally:
        other.close()


def test_a_target_on_a_socket_alone_is_refused_where_tcp_is_needed(server):
    (said,) = target.needs_over_tcp(Address(socket=server.socket, user=private.account()))
    assert "listen on TCP" in said and server.socket in said


def test_a_target_is_refused_for_its_rights_and_for_schemas_in_the_way(server):
    server.execute("CREATE USER reader@localhost")
    (said,) = target.needs(Address(socket=server.socket, user="reader"))
    assert "CREATE" in said and "reader" in said and "denied" in said
    server.execute("CREATE DATABASE quarry_lab_mine")
    (said,) = target.needs(Address(socket=server.socket, user=private.account()))
    assert "drop quarry_lab_mine" in said
    server.execute("DROP DATABASE quarry_lab_mine")


@pytest.mark.skipif(bool(value_reader.needs()), reason="; ".join(value_reader.needs()))
def test_a_fill_repeats_a_transaction_upon_an_error_that_is_temporary(server):
    server.execute("CREATE OR REPLACE TABLE lab.filled (id INT PRIMARY KEY, data LONGBLOB)")
    reading = value_reader.Reading("lab", "filled", 5000, 40, first="SET GLOBAL innodb_lock_wait_timeout=1", **server.login)
    other, failures = server.another_connection(), []

    def fill(payload):
        try:
            value_reader.fill(reading, payload)
        except value_reader.ReaderError as failure:
            failures.append(failure)

    def rolled_back() -> int:
        return int(server.status("Com_rollback")["com_rollback"])

    with Payload("random", 1 << 20) as payload, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO lab.filled VALUES (7, 'in the way')")
        before, filling = rolled_back(), threading.Thread(target=fill, args=(payload,))
        filling.start()
        while filling.is_alive() and rolled_back() == before:
            time.sleep(0.1)
        cursor.execute("ROLLBACK")
        filling.join()
    other.close()
    server.execute("SET GLOBAL innodb_lock_wait_timeout=DEFAULT")
    assert failures == [] and server.rows("SELECT COUNT(*), MIN(LENGTH(data)) FROM lab.filled") == [(40, 5000)]
    server.execute("DROP TABLE lab.filled")


@pytest.mark.skipif(bool(value_reader.needs()), reason="; ".join(value_reader.needs()))
def test_every_way_reads_whole_values(tmp_path: Path):
    """HandlerSocket, HANDLER, text, prepared, compressed, a connection per request, and the server inside the client."""
    port, read_port, write_port = free_ports(3)
    secret = private.new_secret()
    network = {"port": port, "bind_address": "127.0.0.1", "handlersocket_address": "127.0.0.1", "handlersocket_port": read_port,
               "handlersocket_port_wr": write_port}
    lab = LabServer("main", tmp_path / "main", None, False, {**SMALL, **network}, plugins=("handlersocket",),
                    secrets={"handlersocket_plain_secret": secret, "handlersocket_plain_secret_wr": private.new_secret()}).start()
    try:
        lab.execute(f"CREATE USER lab@'127.0.0.1' IDENTIFIED BY '{secret}'")
        lab.execute("GRANT ALL ON *.* TO lab@'127.0.0.1'")
        lab.execute("CREATE TABLE lab.t (id INT PRIMARY KEY, data LONGBLOB)")
        reading = value_reader.Reading("lab", "t", 5000, 40, user="lab", password=secret, threads=2, warmup_seconds=0, seconds=1)
        with Payload("random", 1 << 20) as payload:
            value_reader.fill(replace(reading, **lab.login), payload)
        ((rows, different, shortest, longest),) = lab.rows("SELECT COUNT(*), COUNT(DISTINCT MD5(data)), MIN(LENGTH(data)), MAX(LENGTH(data)) FROM lab.t")
        assert (int(rows), int(different), int(shortest), int(longest)) == (40, 40, 5000, 5000)
        with pytest.raises(value_reader.ReaderError, match="denied"):
            value_reader.measure(replace(reading, port=port, password=""))
        with pytest.raises(value_reader.ReaderError, match="HandlerSocket"):
            value_reader.measure(replace(reading, path="handlersocket", port=read_port, password="another"))
        for path in ("text", "prepared", "handler", "handlersocket", "connect"):
            found = value_reader.measure(replace(reading, path=path, port=read_port if path == "handlersocket" else port))
            assert found["events"] > 0 and found["latency_p95_ms"] >= 0 and found["interval_seconds"] >= 1, path
        assert value_reader.measure(replace(reading, path="text", compress=True, port=port))["events"] > 0
        for path in ("text", "prepared", "handler", "handlersocket"):
            with pytest.raises(value_reader.ReaderError, match="came back with 5000|longer value than expected"):
                value_reader.measure(replace(reading, path=path, value_bytes=4999, port=read_port if path == "handlersocket" else port))
    finally:
        lab.close()
    data = tmp_path / "embedded"
    (data / "mysql").mkdir(parents=True)
    options = ("--no-defaults", f"--datadir={data}", f"--lc-messages-dir={MARIADB / 'usr' / 'share' / 'mysql'}", "--innodb-buffer-pool-size=64M")
    inside = replace(reading, password="", server_options=options)
    with Payload("random", 1 << 20) as payload:
        value_reader.fill(replace(inside, first="CREATE TABLE t (id INT PRIMARY KEY, data LONGBLOB)"), payload)
    assert value_reader.measure(inside)["events"] > 0


@pytest.mark.skipif(PLUGIN is None or not PLUGIN.exists(), reason="the plugin is not built")
def test_disk_of_a_table_is_without_that_of_a_dropped_one_of_its_name(tmp_path):
    lab = LabServer("main", tmp_path / "main", PLUGIN, False, SMALL).start()
    try:
        used = []
        for _time in range(2):
            lab.execute("CREATE TABLE lab.t (id INT PRIMARY KEY, data LONGBLOB) ENGINE=QUARRY")
            lab.execute("INSERT INTO lab.t VALUES (1, REPEAT('x', 4000000))")
            lab.settle()
            used.append(space.used_bytes(lab, "lab", "t"))
            if len(used) == 1:
                looking = lab.another_connection()  # the store of a dropped table stays while a transaction may look into it
                looking.cursor().execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                lab.execute("DROP TABLE lab.t")
        assert {state for (state,) in lab.rows("SELECT STATE FROM information_schema.QUARRY_TABLES")} == {"BOUND", "DROPPED"}
        assert used[1] < 1.5 * used[0]
        looking.close()
    finally:
        lab.close()
