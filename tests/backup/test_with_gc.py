"""Backups beside GC: a mark pass that is asked for while a backup runs gives nothing back before it has ended."""

import threading

import pytest
from drill import binlogs_after, check_all, checksums, increments_under_ddl, replay
from quarry_lab.probes.device import allocated_bytes
from quarry_server.server import HOME_NAME

from harness.gc import Gc
from test_under_load import BINLOG, Load, restored

ROWS = 40


def test_a_pass_waits_for_the_copy(own_server, drill):
    server = own_server("backup-gc", "--quarry-segment-size=2M", "--quarry-gc=OFF")
    gc = Gc(server)
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query(f"INSERT INTO d.t SELECT seq, REPEAT(CHAR(64 + seq), 300000) FROM d.seq_1_to_{ROWS}")
    before = checksums(server)
    full = allocated_bytes(server.segments())
    # When mariadb-backup has ended, its locks are gone: all that is left is the tool's own lock.
    drill.backup_then(
        server,
        "full",
        f'echo "DELETE FROM d.t WHERE id % 10 > 0; SET GLOBAL quarry_gc_now = ON" | {drill.client(server)}\nsleep 8',
    )
    # The pass had reason enough, and does its work as soon as it may.
    gc.wait_done(gc.status()["requests"])
    assert allocated_bytes(server.segments()) < full / 2, "the pass found nothing to give back"
    drill.verify("full")
    drill.prepare("full")
    copy = own_server("backup-gc-copy", "--quarry-gc=OFF", start=False)
    drill.restore_to(copy, "full")
    server.stop()
    copy.start()
    assert checksums(copy) == before
    check_all(copy)
    # A pass over the restored server knows what is dead there, and what is not.
    copy.query("DELETE FROM d.t WHERE id % 2 = 0")
    left = checksums(copy)
    Gc(copy).run_well()
    assert checksums(copy) == left


def test_rewritten_segments(own_server, drill):
    """A sealed segment changes once more when GC rewrites it: an increment carries it whole, and what followed finds it
    unchanged. Both states can be restored."""
    server = own_server("backup-rewritten", "--quarry-gc=OFF", "--innodb-flush-log-at-trx-commit=0")
    server.query("CREATE DATABASE d")
    for table in ("small", "other"):
        server.query(f"CREATE TABLE d.{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY INLINE_SIZE=0")
    with server.connect("d") as connection, connection.cursor() as cursor:
        for row in range(ROWS * 5):  # a commit each, so a block each
            cursor.execute("INSERT INTO small VALUES (%s, REPEAT(CHAR(65 + %s %% 26), 700))", (row, row))
    server.query(f"INSERT INTO d.other SELECT seq, REPEAT(CHAR(64 + seq), 50000) FROM d.seq_1_to_{ROWS}")
    server.restart()  # seals
    (small,), (other,) = server.segments_of("d", "small"), server.segments_of("d", "other")
    before, sealed = checksums(server), small.read_bytes()
    drill.backup(server, "full")
    drill.backup(server, "before", base="full")
    assert Gc(server).run_well()["segments_rewritten"] == 1
    assert checksums(server) == before and small.read_bytes() != sealed
    drill.backup(server, "rewritten", base="before")
    drill.backup(server, "after", base="rewritten")
    entries = {
        name: {entry["name"]: entry for entry in drill.catalog(name)["quarry_files"]}
        for name in ("full", "before", "rewritten", "after")
    }
    of_small, of_other = (f"{path.parent.name}/{path.name}" for path in (small, other))
    linked = {
        name: [next(entry["linked"] for path, entry in found.items() if path.endswith(segment)) for segment in (of_small, of_other)]
        for name, found in entries.items()
    }
    assert linked == {"full": [False, False], "before": [True, True], "rewritten": [False, True], "after": [True, True]}
    drill.verify("after")
    drill.prepare("full")
    for state, increments in (("before", ["before"]), ("after", ["rewritten", "after"])):
        for increment in increments:
            drill.prepare("full", increment=increment)
        copy = own_server(f"backup-rewritten-{state}", "--quarry-gc=OFF", start=False)
        drill.restore_to(copy, "full")
        (restored_small,) = copy.datadir.glob(f"{HOME_NAME}/stores/{of_small}")
        assert restored_small.read_bytes() == (sealed if state == "before" else small.read_bytes())
        copy.start()
        assert checksums(copy) == before
        check_all(copy)
        copy.query("DELETE FROM d.small WHERE id % 2 = 0")
        left = checksums(copy)
        assert Gc(copy).run_well()["segments_damaged"] == 0
        assert checksums(copy) == left
        copy.stop()


@increments_under_ddl
@pytest.mark.nightly
def test_under_load_with_passes_all_the_time(own_server, drill):
    server = own_server("backup-gc-load", *BINLOG, "--quarry-gc=OFF")
    gc = Gc(server)
    Load.prepare(server)
    stop = threading.Event()

    def ask():
        while not stop.wait(0.3):
            gc.request()

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        with Load(server):
            drill.backup(server, "full")
        with Load(server):
            drill.backup(server, "one", base="full")
        # Once more without DDL, which ends passes.
        gc.wait_done(gc.status()["requests"])
    finally:
        stop.set()
        asker.join()
    final = checksums(server)
    print(f"GC: {gc.status()}")
    assert gc.status()["passes"] > 0, gc.status()
    linked = [entry for entry in drill.catalog("one")["quarry_files"] if entry["linked"]]
    print(f"linked: {len(linked)} of {len(drill.catalog('one')['quarry_files'])}")
    drill.prepare("full")
    drill.prepare("full", increment="one")
    copy = restored(own_server, drill, "backup-gc-load-copy", "full")
    _, start, names = binlogs_after(server, drill.catalog("one")["binlog"])
    replay(names, start, copy)
    assert checksums(copy) == final
    check_all(copy)
