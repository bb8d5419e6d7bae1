"""quarry-verify on a stopped server, the scrub of a running one, SHOW ENGINE QUARRY STATUS, and who may touch the files."""

import datetime
import json
import os
import re
import stat
import subprocess
import time

import pymysql
import pytest

from harness.gc import Gc
from harness.segments import all_extents, flip_bit
from harness.server import REPOSITORY
from harness.values import payload
from harness.waiting import wait_for
from quarry_server.server import HOME_NAME

pytestmark = pytest.mark.quarry_only

VERIFY = REPOSITORY / "build" / "release" / "tools" / "quarry-verify"
ROWS = 12


def verify(server, *options):
    done = subprocess.run([VERIFY, "--json", "--quiet", *options, server.datadir], capture_output=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.decode()


def fill(server, table="v.t"):
    server.query("CREATE DATABASE IF NOT EXISTS v")
    server.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PART_SIZE=4096")
    for row in range(ROWS):
        server.query(f"INSERT INTO {table} VALUES (%s, %s)", (row, payload(("verify", row), 20000 + row)))


def extent_of_row(server, row):
    wanted = payload(("verify", row), 20000 + row)
    (extent,) = [e for e in all_extents(server.segments_of("v", "t")) if e.value_size == len(wanted)]
    return extent


def test_quarry_verify_and_check_table_find_the_same(own_server):
    """Flips all over a segment: quarry-verify names the place, CHECK TABLE the row, as often as an extent was hit."""
    server = own_server("verify")
    fill(server)
    code, _, error = verify(server)
    assert code == 2 and "in use by a running server" in error, error
    extents = {row: extent_of_row(server, row) for row in (1, 4, 7, 10)}
    server.stop()
    assert verify(server)[0] == 0
    places = {
        1: extents[1].offset + 3,
        4: extents[4].offset + 40,
        7: extents[7].offset + 80,
        10: extents[10].first_part_offset + 4096 + 5,
    }
    for row, place in places.items():
        flip_bit(extents[row].path, place, row % 8)
    code, report, _ = verify(server)
    assert code == 1 and report["counts"]["damaged"] == len(places), report
    for row, place in places.items():
        finding = next(f for f in report["findings"] if f["offset"] <= place < f["offset"] + f["length"])
        assert finding["kind"] == "damaged" and finding["table"] == "v/t", finding
        assert extents[row].offset <= finding["offset"] < extents[row].offset + extents[row].size, finding
    server.start()
    lines = [row[3] for row in server.query("CHECK TABLE v.t") if row[2] == "error"]
    named = {int(match.group(1)) for match in re.finditer(r"PRIMARY '(\d+)'", " ".join(lines))}
    assert named == set(places), lines


def test_the_scrub_finds_what_was_damaged(own_server):
    server = own_server("scrub", "--quarry-scrub-interval=1", "--quarry-scrub-rate=1G")
    fill(server)

    def figure(name):
        return int(server.status(f"quarry_scrub_{name}")[f"quarry_scrub_{name}"])

    wait_for("two rounds of the scrub", lambda: figure("rounds") >= 2)
    assert figure("errors") == 0 and figure("doubtful") == 0
    assert figure("bytes") > 0 and figure("segments") > 0
    extent = extent_of_row(server, 5)
    flip_bit(extent.path, extent.first_part_offset + 9000, 2)
    wait_for("the scrub to find a flipped bit", lambda: figure("errors") > 0)
    rows = server.query(
        "SELECT KIND, TABLE_PATH, SEGMENT, OFFSET_BYTES, LENGTH_BYTES, FILE FROM information_schema.QUARRY_DAMAGE"
    )
    assert len(rows) == 1, rows
    kind, table, segment, offset, length, file = rows[0]
    assert (kind, table, segment) == ("damaged", "v/t", int(extent.path.stem, 16)), rows
    assert offset <= extent.first_part_offset + 9000 < offset + length and file.endswith(extent.path.name)
    assert "QUARRY: scrub: damaged, table 'v/t'" in server.error_log()
    # Mended, or gone: the next whole round forgets it.
    flip_bit(extent.path, extent.first_part_offset + 9000, 2)
    wait_for("a clean round", lambda: not server.query("SELECT 1 FROM information_schema.QUARRY_DAMAGE"))
    server.query("SET GLOBAL quarry_scrub_rate = 0")
    time.sleep(1.5)
    before = figure("bytes")
    time.sleep(1.5)
    assert figure("bytes") == before, "a rate of 0 stops it"


def times_in(server, time_zone):
    """Each time that Quarry shows, as a session in this time zone sees it, and its distance from that session's NOW()."""
    sources = {
        "found_at": "SELECT MAX(FOUND_AT) AS t FROM information_schema.QUARRY_DAMAGE",
        "last_gc": "SELECT MAX(LAST_GC) AS t FROM information_schema.QUARRY_TABLES",
        "scrub_last": "SELECT CAST(VARIABLE_VALUE AS DATETIME) AS t FROM information_schema.GLOBAL_STATUS "
        "WHERE VARIABLE_NAME = 'QUARRY_SCRUB_LAST'",
    }
    connection = server.connect()
    shown, distance = {}, {}
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = %s", (time_zone,))
        for name, sql in sources.items():
            cursor.execute(f"SELECT t, ABS(TIMESTAMPDIFF(SECOND, t, NOW())) FROM ({sql}) AS shown")
            shown[name], distance[name] = cursor.fetchone()
        cursor.execute("SHOW ENGINE QUARRY STATUS")
        text = re.search(r"last round ended ([-0-9]+ [:0-9]+)", cursor.fetchone()[2]).group(1)
        shown["status"] = datetime.datetime.fromisoformat(text)
    connection.close()
    return shown, distance


def test_times_are_in_the_sessions_time_zone(own_server):
    server = own_server("times", "--quarry-scrub-interval=1", "--quarry-scrub-rate=1G")
    fill(server)
    extent = extent_of_row(server, 5)
    flip_bit(extent.path, extent.first_part_offset + 9000, 2)
    wait_for("the scrub to find a flipped bit", lambda: server.query("SELECT 1 FROM information_schema.QUARRY_DAMAGE"))
    Gc(server).run_well()
    rounds = server.status("quarry_scrub_rounds")
    wait_for("a whole round", lambda: server.status("quarry_scrub_rounds") != rounds)
    server.query("SET GLOBAL quarry_scrub_rate = 0")
    wait_for("the scrub to be off", lambda: "---\noff (" in server.query("SHOW ENGINE QUARRY STATUS")[0][2])
    time.sleep(1.5)  # a round that had just begun has seen the rate
    east, from_east = times_in(server, "+05:00")
    west, from_west = times_in(server, "-07:30")
    assert all(seconds < 600 for seconds in (*from_east.values(), *from_west.values())), (east, west)
    assert {name: east[name] - west[name] for name in east} == dict.fromkeys(east, datetime.timedelta(hours=12.5))


def test_the_scrub_pauses_in_a_backup(own_server):
    server = own_server("scrub_pause", "--quarry-scrub-interval=1", "--quarry-scrub-rate=1G")
    fill(server)
    connection = server.connect()
    with connection.cursor() as cursor:
        cursor.execute("BACKUP STAGE START")
        time.sleep(1.5)
        before = server.status("quarry_scrub_bytes")
        time.sleep(2.5)
        assert server.status("quarry_scrub_bytes") == before
        cursor.execute("BACKUP STAGE END")
    connection.close()
    wait_for("the scrub to go on after the backup", lambda: server.status("quarry_scrub_bytes") != before)


def test_engine_status(server):
    server.query("CREATE DATABASE IF NOT EXISTS v")
    server.query("CREATE TABLE v.status (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO v.status VALUES (1, REPEAT('x', 20000))")
    rows = server.query("SHOW ENGINE QUARRY STATUS")
    assert len(rows) == 1 and rows[0][0] == "QUARRY"
    text = rows[0][2]
    for section in ("STORES", "APPENDS AND READS", "GROUP COMMIT", "GC", "SCRUB", "HEALTH"):
        assert f"---\n{section}\n---\n" in text, text
    stores = int(re.search(r"^(\d+) stores, \d+ segments", text, re.M).group(1))
    shown = server.query("SELECT COUNT(*) FROM information_schema.QUARRY_TABLES WHERE STATE <> 'DROPPED'")[0][0]
    assert stores >= shown > 0
    assert int(re.search(r"extents appended (\d+)", text).group(1)) > 0
    server.query("DROP TABLE v.status")


def test_modes_of_files_and_no_symbolic_links(own_server, tmp_path):
    """Files are the server's alone, as InnoDB's; a link in place of a segment is not followed."""
    path = tmp_path / "drive"
    path.mkdir()
    server = own_server("modes", f"--quarry-data-paths={path}")
    fill(server)
    roots = [server.datadir / HOME_NAME, path / "quarry"]
    seen = 0
    for root in roots:
        for folder, folders, files in os.walk(root):
            for name in files:
                mode = stat.S_IMODE((os.stat(os.path.join(folder, name))).st_mode)
                assert mode & ~0o660 == 0, f"{folder}/{name} has mode {mode:o}"
                seen += 1
            for name in folders:
                mode = stat.S_IMODE((os.stat(os.path.join(folder, name))).st_mode)
                assert mode & ~0o770 == 0, f"{folder}/{name} has mode {mode:o}"
    assert seen >= 4
    # A mark pass in between may have sealed the first segment.
    segment = min(server.segments_of("v", "t", path))
    server.stop()
    elsewhere = tmp_path / "elsewhere.qseg"
    segment.rename(elsewhere)
    segment.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    server.start()
    with pytest.raises(pymysql.err.Error) as failure:
        server.query("SELECT b FROM v.t WHERE id = 1")
    assert "symbolic link" in str(failure.value), failure.value
    server.stop()
    assert elsewhere.read_bytes() == before
    segment.unlink()
    elsewhere.rename(segment)
    server.start()
    assert server.query("SELECT b FROM v.t WHERE id = 1")[0][0] == payload(("verify", 1), 20001)


def test_a_data_path_that_is_not_mounted(own_server, tmp_path):
    """A clear error at start, nothing lost, nothing made on the empty mount point; it comes back with the path."""
    path = tmp_path / "drive"
    path.mkdir()
    server = own_server("unmounted", f"--quarry-data-paths={path}")
    fill(server)
    server.stop()
    away = tmp_path / "unmounted"
    path.rename(away)
    path.mkdir()  # the mount point
    server.start()
    assert "has lost its marker 'quarry/PATH': is it mounted?" in server.error_log()
    with pytest.raises(pymysql.err.Error):
        server.query("SELECT b FROM v.t WHERE id = 1")
    assert not list(path.iterdir())
    server.stop()
    code, report, _ = verify(server)
    assert code == 3 and {f["kind"] for f in report["findings"]} == {"unreadable"}, report
    assert verify(server, "--data-path", str(away))[0] == 0
    path.rmdir()
    away.rename(path)
    server.start()
    for row in range(ROWS):
        assert server.query("SELECT b FROM v.t WHERE id = %s", (row,))[0][0] == payload(("verify", row), 20000 + row)


def test_foreign_files_and_half_made_stores(own_server):
    """Files of nobody's, an empty store folder, a cut off record: the server starts and keeps what is its own."""
    server = own_server("foreign")
    fill(server)
    home = server.datadir / HOME_NAME
    server.kill()
    half = home / "stores" / "000000000000000e"
    half.mkdir()
    (home / "stores" / "notes.txt").write_text("mine")
    (home / "OPENED.new").write_bytes(b"cut off")
    code, report, _ = verify(server, "--all")
    assert code == 3 and report["counts"]["foreign"] == 1 and report["counts"]["damaged"] == 0, report
    server.start()
    for row in range(ROWS):
        assert server.query("SELECT b FROM v.t WHERE id = %s", (row,))[0][0] == payload(("verify", row), 20000 + row)
    assert (home / "stores" / "notes.txt").read_text() == "mine"
    fill(server, "v.later")
    server.stop()
    assert verify(server)[0] == 3
    (home / "stores" / "notes.txt").unlink()
    assert verify(server)[0] == 0
