"""Names of tables and columns reach the error log: whatever they hold, a line of Quarry's is one line, and printable."""

import re
from contextlib import closing

import pymysql
import pytest

from harness.gc import Gc
from harness.server import NO_BACKGROUND, Server

pytestmark = pytest.mark.quarry_only

NAMES = {
    "a line feed": "x\n2026-01-01  0:00:00 0 [ERROR] InnoDB: page corruption",
    "a carriage return": "x\rInnoDB: gone",
    "ESC": "x\x1b[2J\x1b]0;owned\x07",
    "C1": "x\x9b31mred",
    "line separators": "x\u2028InnoDB: \u2029gone\x85",
    "direction": "x\u202egnp.exe\u2066",
    "percent": "x%s%n%p",
    "quotes": "x`'\"\\",
    "as long as a file's name may be": "\u20ac" * 48,
}
# A control character, a separator or a mark of direction.
RAW = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def server():
    server = Server("security-log-names", [*NO_BACKGROUND, "--quarry-gc-timeout=1", "--innodb-fast-shutdown=0"]).start()
    server.query("CREATE DATABASE d")
    yield server
    server.remove()


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def test_a_line_stays_a_line(server):
    """A dropped pass, a damaged value and CHECK TABLE of each name, all of which the log tells of."""
    for name in NAMES.values():
        server.query(f"CREATE TABLE d.{quoted(name)} (id INT PRIMARY KEY, {quoted(name)} LONGBLOB) ENGINE=QUARRY")
        server.query(f"INSERT INTO d.{quoted(name)} VALUES (1, REPEAT('v', 90000))")
    server.stop()
    for segment in server.segments():
        content = bytearray(segment.read_bytes())
        at = content.find(b"v" * 1000)
        content[at + 100] ^= 1
        segment.write_bytes(content)
    before = len(server.error_log())
    server.start()
    for name in NAMES.values():
        with pytest.raises(pymysql.err.Error):
            server.query(f"SELECT {quoted(name)} FROM d.{quoted(name)}")
        server.query(f"CHECK TABLE d.{quoted(name)}")
        writer = server.connect("d", autocommit=False)
        with closing(writer), writer.cursor() as cursor:
            cursor.execute(f"INSERT INTO {quoted(name)} VALUES (2, REPEAT('w', 90000))")
            Gc(server).run()
            writer.rollback()
    log = server.private.error_log.read_bytes()[before:].decode("utf-8")
    lines = [line for line in log.split("\n") if "QUARRY" in line or "x" in line]
    assert sum("CHECK TABLE" in line for line in lines) == len(NAMES), lines
    begun = re.compile(r"\d{4}-\d\d-\d\d +\d+:\d\d:\d\d \d+ \[|Version: ")
    assert [line for line in log.split("\n") if line and not begun.match(line)] == []
    assert not [line for line in lines if "QUARRY" in line and RAW.search(line)]
    assert "[ERROR] InnoDB: page corruption" not in [line[22:60] for line in lines]
    assert "x\\x0a2026-01-01" in log and "\\x1b[2J" in log and "\\u2028" in log
