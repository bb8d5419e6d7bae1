"""The server's memory: how much more a QUARRY table takes than an InnoDB table, and what the engine says it holds."""

import random
import threading
from pathlib import Path

import pytest

from harness.server import Server
from harness.values import payload

pytestmark = [pytest.mark.quarry_only, pytest.mark.nightly]

MIB = 1 << 20
CLIENTS, READS, ROWS, SIZE = 32, 80, 300, 448 * 1024
CACHE_BYTES = 64 * MIB
# What only reads leave: buffers that are kept for the next ones, and a slot around the page cache for each client
# (docs/operate/variables.md, 'Memory').
READ_BUFFERS_BYTES = 16 * MIB + CLIENTS * MIB // 2


def anonymous_bytes(server):
    status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))


def in_threads(work):
    failures = []

    def run(number):
        try:
            work(number)
        except Exception as error:  # noqa: BLE001: whatever it is, the test must say so
            failures.append(repr(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def read_at_random(server):
    def work(number):
        chosen = random.Random(number)
        connection = server.connect("k")
        with connection.cursor() as cursor:
            for _ in range(READS):
                cursor.execute(f"SELECT b FROM t WHERE id = {chosen.randrange(ROWS)}")
                assert len(cursor.fetchall()[0][0]) == SIZE
        connection.close()

    in_threads(work)


def growth(engine, options=()):
    """What many clients that read make the server's own memory grow by; its status then; what a cache set to 0 gives back."""
    server = Server("memory", ["--innodb-buffer-pool-size=32M", *options]).start()
    try:
        server.query("CREATE DATABASE k")
        server.query(f"CREATE TABLE k.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={engine}")
        for row in range(ROWS):
            server.query("INSERT INTO k.t VALUES (%s, %s)", (row, payload(("memory", row), SIZE)))
        server.restart()
        server.query("SELECT SUM(CRC32(b)) FROM k.t")  # fills the buffer pool
        before = anonymous_bytes(server)
        read_at_random(server)
        after, status = anonymous_bytes(server), server.status("quarry%")
        server.query("SET GLOBAL quarry_cache_size = 0")
        return after - before, status, after - anonymous_bytes(server)
    finally:
        server.remove()


@pytest.fixture(scope="module")
def innodb():
    return growth("InnoDB")[0]


def test_many_readers_take_little_more_than_under_innodb(innodb):
    quarry, _, _ = growth("QUARRY")
    assert quarry - innodb <= 64 * MIB, f"InnoDB {innodb / MIB:.0f} MiB, QUARRY {quarry / MIB:.0f} MiB"


def test_what_is_taken_beyond_innodb_is_what_the_status_says(innodb):
    """What a large value cache lets go is the system's at once: none of it stays malloc's, for which no status would answer."""
    quarry, status, given_back = growth("QUARRY", [f"--quarry-cache-size={CACHE_BYTES}"])
    cache, buffers = int(status["quarry_cache_bytes"]), int(status["quarry_buffer_bytes"])
    assert cache > CACHE_BYTES * 9 // 10, "the cache was to be full"
    assert buffers <= READ_BUFFERS_BYTES
    assert given_back >= CACHE_BYTES * 8 // 10, f"{given_back / MIB:.0f} MiB given back"
    taken = f"InnoDB {innodb / MIB:.0f} MiB, QUARRY {quarry / MIB:.0f} MiB"
    assert quarry - innodb <= cache + buffers, f"{taken}, of which {cache / MIB:.0f} of the cache, {buffers / MIB:.0f} buffers"
