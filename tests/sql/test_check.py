"""CHECK TABLE finds every damaged value and names its row; the other administrative statements do what InnoDB's do."""

import pathlib
import re
import threading

import pymysql
import pytest

from harness.segments import all_extents, flip_bit
from harness.values import payload, text

COLUMNS = "(id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT, KEY (n))"


def value(row, size=20000):
    return payload(("check", row), size + row)


@pytest.fixture
def broken(own_server):
    """A table of 12 values in segments, on a server that has forgotten what it wrote."""
    server = own_server("check")
    server.query("CREATE DATABASE c")
    server.query("CREATE TABLE c.t (id INT PRIMARY KEY, n INT, b LONGBLOB, KEY (n)) ENGINE=QUARRY PART_SIZE=4096")
    for row in range(12):
        server.query("INSERT INTO c.t VALUES (%s, %s, %s)", (row, row, value(row)))
    server.restart()
    return server


def extent_of(paths, wanted):
    for extent in all_extents(paths):
        with extent.path.open("rb") as stream:
            stream.seek(extent.first_part_offset)
            if extent.value_size == len(wanted) and stream.read(100) == wanted[:100]:
                return extent
    raise AssertionError(f"no extent holds the value of {len(wanted)} bytes")


def damage(server, table, wanted, offset=None):
    """Flips a bit in the stored bytes of a value; its extent."""
    extent = extent_of(server.segments_of("c", table), wanted)
    flip_bit(extent.path, extent.first_part_offset + 4096 + 7 if offset is None else extent.offset + offset, 3)
    return extent


def errors_of(rows):
    return [row[3] for row in rows if row[2] == "error" and row[3] != "Corrupt"]


@pytest.mark.quarry_only
def test_every_damaged_value_is_named(broken):
    extents = {row: damage(broken, "t", value(row), offset) for row, offset in ((2, None), (5, 33), (11, 85))}
    for kind in ("", "MEDIUM", "EXTENDED", "FAST", "CHANGED"):
        rows = broken.query(f"CHECK TABLE c.t {kind}")
        assert rows[-1][2:] == ("error", "Corrupt"), rows
        assert {row[0] for row in rows} == {"c.t"} and {row[1] for row in rows} == {"check"}
        found = errors_of(rows)
        assert len(found) == 3, found
        for message, (row, extent) in zip(found, extents.items()):
            assert f"PRIMARY '{row}'" in message and "column 'b'" in message, message
            assert re.search(rf"segment {int(extent.path.stem, 16)}\b", message), message
            offset = int(re.search(r"offset (\d+)", message).group(1))
            assert extent.offset <= offset < extent.offset + extent.size, message
    assert broken.query("CHECK TABLE c.t QUICK")[-1][-1] == "OK"
    # Nothing is marked: every other row and every index is as good as before.
    for row in range(12):
        if row not in extents:
            assert broken.query("SELECT b FROM c.t FORCE INDEX (n) WHERE n = %s", (row,))[0][0] == value(row)
    broken.query("INSERT INTO c.t VALUES (100, 100, %s)", (value(100),))
    broken.query("UPDATE c.t SET b = %s WHERE id = 2", (value(2),))
    broken.query("DELETE FROM c.t WHERE id IN (5, 11)")
    assert broken.query("CHECK TABLE c.t EXTENDED") == (("c.t", "check", "status", "OK"),)
    assert "found the first bad value" in broken.error_log()


@pytest.mark.quarry_only
def test_what_was_just_written_is_looked_at_on_the_device(own_server):
    """Readers get it out of memory; a table that was just loaded is checked for what the device has."""
    server = own_server("check_recent")
    server.query("CREATE DATABASE c")
    server.query("CREATE TABLE c.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PART_SIZE=4096")
    for row in range(3):
        server.query("INSERT INTO c.t VALUES (%s, %s)", (row, value(row)))
    assert server.query("CHECK TABLE c.t")[-1][-1] == "OK"
    damage(server, "t", value(1))
    assert server.query("SELECT b FROM c.t WHERE id = 1") == ((value(1),),)
    rows = server.query("CHECK TABLE c.t")
    assert rows[-1][-1] == "Corrupt" and ["PRIMARY '1'" in message for message in errors_of(rows)] == [True], rows


@pytest.mark.quarry_only
def test_a_missing_segment_is_named(broken):
    broken.stop()
    # A mark pass in between may have sealed the first segment.
    found = all_extents(broken.segments())
    path = min(extent.path for extent in found)
    lost = sum(extent.path == path for extent in found)
    aside = path.with_suffix(".aside")
    path.rename(aside)
    broken.start()
    rows = broken.query("CHECK TABLE c.t")
    assert rows[-1][2:] == ("error", "Corrupt") and len(errors_of(rows)) == lost, rows
    broken.stop()
    aside.rename(path)
    broken.start()
    assert broken.query("CHECK TABLE c.t")[-1][-1] == "OK"


@pytest.mark.quarry_only
def test_all_partitions_are_checked(own_server):
    server = own_server("check_partitions")
    server.query("CREATE DATABASE c")
    server.query(
        "CREATE TABLE c.p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PART_SIZE=4096 PARTITION BY RANGE (id) "
        "(PARTITION p0 VALUES LESS THAN (4), PARTITION p1 VALUES LESS THAN (8), "
        "PARTITION p2 VALUES LESS THAN MAXVALUE)"
    )
    for row in range(12):
        server.query("INSERT INTO c.p VALUES (%s, %s)", (row, value(row)))
    server.restart()
    for row in (1, 9):
        extent = extent_of(server.segments(), value(row))
        flip_bit(extent.path, extent.first_part_offset + 9)
    rows = server.query("CHECK TABLE c.p")
    assert rows[-1][2:] == ("error", "Corrupt"), rows
    text_of = "\n".join(errors_of(rows))
    assert "partition p0 (PRIMARY '1')" in text_of and "partition p2 (PRIMARY '9')" in text_of, rows
    assert server.query("ALTER TABLE c.p CHECK PARTITION p1")[-1][-1] == "OK"
    rows = server.query("ALTER TABLE c.p CHECK PARTITION p2")
    assert rows[-1][-1] == "Corrupt" and "'9'" in errors_of(rows)[0], rows
    server.query("DELETE FROM c.p WHERE id IN (1, 9)")
    assert server.query("CHECK TABLE c.p EXTENDED")[-1][-1] == "OK"


@pytest.mark.quarry_only
def test_rows_without_a_primary_key_are_numbered(own_server):
    server = own_server("check_rows")
    server.query("CREATE DATABASE c")
    server.query("CREATE TABLE c.t (b LONGBLOB, w LONGTEXT) ENGINE=QUARRY INLINE_SIZE=100 PART_SIZE=4096")
    for row in range(5):
        server.query("INSERT INTO c.t VALUES (%s, %s)", (value(row), text(row, 9000)))
    server.restart()
    damage(server, "t", value(3))
    damage(server, "t", text(4, 9000).encode())
    found = errors_of(server.query("CHECK TABLE c.t"))
    assert [message.split(":")[0] for message in found] == ["row 4, column 'b'", "row 5, column 'w'"], found


@pytest.mark.quarry_only
def test_a_long_value_is_checked_in_bounded_memory(own_server):
    server = own_server("check_long", "--innodb-buffer-pool-size=64M")
    server.query("CREATE DATABASE c")
    server.query("CREATE TABLE c.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO c.t VALUES (1, REPEAT('0123456789abcdef', 10485760))")
    server.restart()
    server.query("SELECT id FROM c.t")
    pathlib.Path(f"/proc/{server.pid}/clear_refs").write_text("5")
    before = peak_bytes(server)
    assert server.query("CHECK TABLE c.t")[-1][-1] == "OK"
    assert peak_bytes(server) - before < 80 << 20, "the value has 160 MiB"
    (extent,) = all_extents(server.segments_of("c", "t"))
    flip_bit(extent.path, extent.first_part_offset + (150 << 20))
    assert len(errors_of(server.query("CHECK TABLE c.t"))) == 1


def peak_bytes(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) << 10


@pytest.mark.quarry_only
def test_a_check_shows_its_progress_and_can_be_killed(own_server):
    """Tiny parts and read batches make the check long enough to be looked at; it is looked at until it is seen."""
    server = own_server("check_kill")
    server.query("CREATE DATABASE c")
    server.query("CREATE TABLE c.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB) ENGINE=QUARRY PART_SIZE=512")
    server.query("INSERT INTO c.t (b) VALUES (REPEAT('part', 1048576))")
    for _ in range(5):
        server.query("INSERT INTO c.t (b) SELECT CONCAT(b, id) FROM c.t")
    rows, seen = [], False

    def check(connection):
        with connection.cursor() as cursor:
            try:
                cursor.execute("CHECK TABLE c.t")
                rows.append(cursor.fetchall())
            except pymysql.err.Error as failure:
                rows.append((("c.t", "check", "error", str(failure)),))

    at_work = "SELECT progress FROM information_schema.processlist WHERE id = %s"
    for _ in range(20):
        connection = server.connect("c")
        with connection.cursor() as cursor:
            cursor.execute("SET quarry_read_batch_bytes = 4096")
        number = connection.thread_id()
        thread = threading.Thread(target=check, args=(connection,))
        thread.start()
        while thread.is_alive() and not seen:
            found = server.query(at_work, (number,))
            seen = bool(found) and 0 < found[0][0] < 100
        if seen:
            server.query(f"KILL QUERY {number}")
        thread.join()
        connection.close()
        if seen and rows[-1][-1][-1] != "OK":
            break
        seen = False
    assert seen, "no check was seen at work"
    answer = rows[-1]
    assert answer[-1][-1] == "Operation failed", answer
    assert "interrupted after" in answer[-2][-1], answer
    assert server.query("CHECK TABLE c.t")[-1][-1] == "OK"


@pytest.mark.quarry_only
def test_checking_takes_no_row_locks(broken):
    writer = broken.connect("c", autocommit=False)
    with writer.cursor() as cursor:
        cursor.execute("UPDATE t SET b = CONCAT(b, 'x') WHERE id = 3")
        assert broken.query("CHECK TABLE c.t EXTENDED")[-1][-1] == "OK"
        reader = broken.connect("c")
        with reader.cursor() as checked:
            for level in ("READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
                checked.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
                checked.execute("CHECK TABLE t")
                assert checked.fetchall()[-1][-1] == "OK", level
        reader.close()
    writer.rollback()
    writer.close()
    assert broken.query("CHECK TABLE c.t")[-1][-1] == "OK"


# --- the others, against the twin -----------------------------------------------------------------------------------


@pytest.fixture
def table(twin):
    twin.run(f"CREATE TABLE t {COLUMNS} ENGINE={{e}}")
    for row in range(20):
        twin.run("INSERT INTO t VALUES (%s, %s, %s, %s)", (row, row % 5, value(row, row * 900), text(row, 500 * row)))
    return twin


def test_administration_answers_as_for_the_twin(table):
    for statement in (
        "CHECK TABLE t",
        "CHECK TABLE t QUICK",
        "CHECK TABLE t FOR UPGRADE",
        "CHECK TABLE t, missing",
        "REPAIR TABLE t",
        "REPAIR TABLE t EXTENDED",
        "REPAIR TABLE t USE_FRM",
        "OPTIMIZE TABLE t",
        "ANALYZE TABLE t",
        "ANALYZE TABLE t PERSISTENT FOR ALL",
        "CHECKSUM TABLE t",
        "CHECKSUM TABLE t QUICK",
        "CHECKSUM TABLE t EXTENDED",
        "CHECKSUM TABLE t, missing",
    ):
        table.run(statement)
        table.check()
    table.run("SELECT COUNT(*) FROM mysql.column_stats WHERE db_name = DATABASE()")


def test_administration_of_partitions_answers_as_for_the_twin(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e} PARTITION BY HASH (id) PARTITIONS 2",
    )
    for row in range(12):
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, value(row, row * 1000)))
    for statement in (
        "CHECK TABLE t EXTENDED",
        "ALTER TABLE t CHECK PARTITION p1",
        "ALTER TABLE t OPTIMIZE PARTITION p0",
        "ALTER TABLE t ANALYZE PARTITION ALL",
        "ALTER TABLE t REPAIR PARTITION p0",
        "OPTIMIZE TABLE t",
        "REPAIR TABLE t",
        "CHECKSUM TABLE t",
    ):
        twin.run(statement)
        twin.check()


def test_administration_under_lock_tables(table):
    table.all(
        "LOCK TABLES t WRITE",
        "CHECK TABLE t",
        "OPTIMIZE TABLE t",
        "ANALYZE TABLE t",
        "CHECKSUM TABLE t",
        "ALTER TABLE t ADD KEY (b(30))",
        "UPDATE t SET b = CONCAT(b, b)",
        "UNLOCK TABLES",
        "LOCK TABLES t READ",
        "CHECK TABLE t EXTENDED",
        "CHECKSUM TABLE t",
        "UNLOCK TABLES",
    )
    table.check()


@pytest.mark.quarry_only
def test_flush_for_export_is_refused(table):
    with pytest.raises(pymysql.err.Error) as failure:
        table.server.query("FLUSH TABLES t FOR EXPORT", database=table.under_test)
    assert failure.value.args[0] == 1031 and "QUARRY" in failure.value.args[1]
    table.run("FLUSH TABLES t WITH READ LOCK")
    table.run("SELECT id, b FROM t")
    table.run("UNLOCK TABLES")
    table.check()
