"""Indexes on columns whose values may lie outside the row: prefixes, collations, uniqueness, hash keys, FULLTEXT."""

import contextlib
import random

import pytest

from harness.values import payload, text


def test_blob_prefix_primary_key(twin):
    twin.run("CREATE TABLE t (k BLOB NOT NULL, n INT, v LONGBLOB, PRIMARY KEY (k(40))) ENGINE={e}")
    for row in range(60):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (payload(row, 30 + row * 200), row, payload(row, row * 300)))
    twin.run("INSERT INTO t VALUES (%s, 1, 'dup')", (payload(5, 30 + 5 * 200)[:41] + b"other",), error=1062)
    for row in range(0, 60, 7):
        key = payload(row, 30 + row * 200)
        twin.run("SELECT n, MD5(v) FROM t WHERE k = %s", (key,))
        twin.run("SELECT n, MD5(v) FROM t WHERE k = %s", (key[:40],))
        twin.run("UPDATE t SET v = CONCAT(v, 'u'), k = CONCAT(k, 'tail') WHERE k = %s", (key,))
    twin.run("SELECT n, k, v FROM t ORDER BY k")
    twin.run("SELECT n FROM t WHERE k > %s ORDER BY k LIMIT 10", (b"\x80",))
    twin.run("UPDATE t SET k = REVERSE(k) WHERE n BETWEEN 20 AND 30")
    twin.run("DELETE FROM t WHERE k < %s", (b"\x40",))
    twin.check()


@pytest.mark.parametrize(
    "collation",
    [
        "utf8mb4_general_ci",
        "utf8mb4_bin",
        "utf8mb4_unicode_ci",
        "latin1_swedish_ci",
        "utf8mb4_unicode_nopad_ci",
        "ucs2_general_ci",
    ],
)
def test_prefix_indexes_with_collations(twin, collation):
    charset = collation.split("_")[0]
    twin.run(
        f"CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT CHARACTER SET {charset} COLLATE {collation}, n INT, "
        "KEY v (v(50)), KEY n_v (n, v(10)), KEY desc_v (v(20) DESC)) ENGINE={e}"
    )
    starts = ["straße", "strasse", "STRASSE", "Äpfel", "apfel", "Apfel", "", " ", "a", "a  ", "zebra", "éa", "ea"]
    for row in range(90):
        start = starts[row % len(starts)]
        tail = text(row, [0, 1, 60, 300, 5000, 9000, 30000][row % 7])
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, start + tail, row % 4))
    for start in starts:
        twin.run("SELECT id, n FROM t FORCE INDEX (v) WHERE v = %s", (start,))
        twin.run("SELECT id, MD5(v) FROM t FORCE INDEX (v) WHERE v LIKE %s", (start + "%",))
        twin.run("SELECT id FROM t FORCE INDEX (n_v) WHERE n = 2 AND v >= %s", (start,))
        twin.run("SELECT id FROM t FORCE INDEX (desc_v) WHERE v BETWEEN %s AND %s", (start, start + "m"))
    twin.run("SELECT v, COUNT(*) FROM t GROUP BY v")
    twin.run("SELECT DISTINCT LEFT(v, 30) FROM t")
    twin.run("SELECT id, v FROM t ORDER BY v, id")
    twin.run("SELECT MIN(v), MAX(v) FROM t")
    twin.run("UPDATE t SET v = CONCAT('x', v) WHERE v LIKE 'a%'")
    twin.run("DELETE FROM t WHERE v >= 'str' AND v < 'stu'")
    twin.check()


def test_prefix_index_longer_than_the_default_prefix(twin):
    """The raw prefix is never shorter than the longest index prefix on the column, whatever the options say."""
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB, KEY (v(3000))) ENGINE={e}")
    base = payload("base", 3500)
    for row in range(60):
        # Two values differ first in the byte that the index must still see.
        position = [0, 255, 256, 257, 1000, 2990, 2999, 3000, 3400][row % 9]
        value = base[:position] + bytes([row]) + base[position + 1 :] + payload(row, row * 400)
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, value))
        twin.run("SELECT id FROM t FORCE INDEX (v) WHERE v = %s", (value,))
    twin.run("SELECT id FROM t FORCE INDEX (v) ORDER BY v")
    twin.run("SELECT id FROM t FORCE INDEX (v) WHERE v >= %s ORDER BY v, id", (base,))
    twin.check()


def test_index_added_and_dropped_later(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB, w LONGTEXT) ENGINE={e}")
    for row in range(60):
        value = payload("same start", 2000)[: 200 + row * 30] + payload(row, [10, 5000, 40000][row % 3])
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, value, text(row, 6000)))
    for statement in (
        "CREATE INDEX v10 ON t (v(10))",
        "ALTER TABLE t ADD KEY v700 (v(700)), ADD KEY w (w(30))",
        "ALTER TABLE t ADD KEY v2500 (v(2500), id)",
        "ALTER TABLE t DROP KEY v10",
        "ALTER TABLE t RENAME KEY w TO w2",
    ):
        twin.run(statement)
        twin.run("SELECT id FROM t ORDER BY v")
        for row in (0, 17, 40, 59):
            twin.run("SELECT b.id FROM t a JOIN t b ON b.v = a.v WHERE a.id = %s", (row,))
        twin.run("UPDATE t SET v = CONCAT(v, id) WHERE id % 5 = 0")
        twin.check()
    twin.run("ALTER TABLE t ADD KEY huge (v(4000))", error="any")
    twin.check()


def test_unique_prefix_and_unique_hash(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB, w LONGTEXT, UNIQUE (v), UNIQUE (w(100))) ENGINE={e}")
    for row in range(30):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, payload(row, row * 700), text(row, row * 600 + 1)))
    twin.run("INSERT INTO t VALUES (100, %s, 'x')", (payload(20, 20 * 700),), error=1062)
    twin.run("INSERT INTO t VALUES (101, 'y', %s)", (text(20, 20 * 600 + 1)[:101] + "other",), error=1062)
    twin.run("UPDATE t SET v = %s WHERE id = 3", (payload(25, 25 * 700),), error=1062)
    twin.run("REPLACE INTO t VALUES (200, %s, 'new')", (payload(12, 12 * 700),))
    twin.run(
        "INSERT INTO t VALUES (300, %s, 'z') ON DUPLICATE KEY UPDATE w = 'changed by hash'", (payload(13, 13 * 700),)
    )
    twin.run("INSERT IGNORE INTO t VALUES (301, %s, 'z')", (payload(14, 14 * 700),))
    twin.run("ALTER TABLE t ADD UNIQUE v_and_w (v, w)")
    twin.run("ALTER TABLE t DROP KEY v")
    twin.run("INSERT INTO t VALUES (400, %s, 'allowed now')", (payload(15, 15 * 700),))
    twin.check()


def test_unique_hash_added_later(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB) ENGINE={e}")
    for row in range(30):
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, payload(row % 29, 9000)))
    twin.run("ALTER TABLE t ADD UNIQUE (v)", error=1062)
    twin.run("DELETE FROM t WHERE id = 29")
    twin.run("ALTER TABLE t ADD UNIQUE (v)")
    twin.run("INSERT INTO t VALUES (50, %s)", (payload(3, 9000),), error=1062)
    twin.check()


def test_fulltext(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT, w LONGTEXT, FULLTEXT (v)) ENGINE={e}")
    words = ["granite", "marble", "slate", "basalt", "limestone", "sandstone"]
    for row in range(40):
        chosen = random.Random(row).choices(words, k=3)
        body = " ".join([chosen[0], text(row, [0, 4000, 20000][row % 3]), chosen[1], chosen[2]])
        twin.run("INSERT INTO t (v, w) VALUES (%s, %s)", (body, body))
    for word in words:
        twin.run("SELECT id FROM t WHERE MATCH (v) AGAINST (%s) ORDER BY id", (word,))
        twin.run("SELECT id, MD5(v) FROM t WHERE MATCH (v) AGAINST (%s IN BOOLEAN MODE)", (f"+{word} -granite",))
    twin.run("UPDATE t SET v = CONCAT(v, ' obsidian') WHERE id % 4 = 0")
    twin.run("DELETE FROM t WHERE id % 5 = 0")
    twin.run("SELECT id FROM t WHERE MATCH (v) AGAINST ('obsidian') ORDER BY id")
    twin.run("ALTER TABLE t ADD FULLTEXT (w)")
    twin.run("SELECT id, LENGTH(w) FROM t WHERE MATCH (w) AGAINST ('marble' IN BOOLEAN MODE)")
    twin.run("ALTER TABLE t DROP KEY w")
    twin.check()


@pytest.mark.parametrize("missed, found", [(1, True), (10**6, False)])
def test_a_search_that_misses_rows_for_a_moment_is_asked_again(twin, monkeypatch, missed, found):
    """What differs for good, or is no search, is a difference."""
    monkeypatch.setattr("harness.twin.SEARCH_PAUSE_S", 0)
    execute, left = twin._execute, [missed]

    def execute_and_miss(schema, *arguments):
        outcome = execute(schema, *arguments)
        if schema == twin.twin and left[0]:
            left[0] -= 1
            outcome.rows = []
        return outcome

    twin.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT, FULLTEXT (v)) ENGINE={e}")
    twin.run("INSERT INTO t VALUES (1, 'granite marble')")
    twin.run("SELECT id FROM t WHERE MATCH (v) AGAINST ('granite')")
    monkeypatch.setattr(twin, "_execute", execute_and_miss)
    search = "SELECT id FROM t WHERE MATCH (v) AGAINST ('marble' IN BOOLEAN MODE)"
    with contextlib.nullcontext() if found else pytest.raises(AssertionError, match="row counts differ"):
        assert twin.run(search).rows == [(1,)]
    left[0] = 1
    with pytest.raises(AssertionError, match="row counts differ"):
        twin.run("SELECT id FROM t")


def test_generated_columns(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT, w LONGBLOB, "
        "len INT AS (CHAR_LENGTH(v)) VIRTUAL, start VARCHAR(20) AS (LEFT(v, 20)) PERSISTENT, "
        "doubled LONGTEXT AS (CONCAT(v, v)) VIRTUAL, kept LONGBLOB AS (CONCAT(w, 'kept')) STORED, "
        "wlen INT AS (LENGTH(w)) VIRTUAL, KEY (wlen), KEY (start)) ENGINE={e}"
    )
    for row in range(40):
        size = [0, 10, 4000, 9000, 70000][row % 5]
        twin.run(
            "INSERT INTO t (id, v, w) VALUES (%s, %s, %s)",
            (row, text(row, size), None if row % 11 == 10 else payload(row, size)),
        )
    twin.run("SELECT id, len, wlen, MD5(doubled), MD5(kept), start FROM t ORDER BY id")
    twin.run("SELECT id FROM t FORCE INDEX (wlen) WHERE wlen = 9000")
    twin.run("SELECT COUNT(*) FROM t FORCE INDEX (start) WHERE start = %s", (text(3, 20),))
    twin.run("UPDATE t SET v = CONCAT('new', v), w = LEFT(w, 8000) WHERE id % 2 = 0")
    twin.run("DELETE FROM t WHERE wlen IS NULL")
    twin.run("ALTER TABLE t ADD COLUMN head VARBINARY(10) AS (LEFT(w, 10)) VIRTUAL, ADD KEY (head)")
    twin.run("SELECT id FROM t FORCE INDEX (head) WHERE head >= %s ORDER BY id", (b"\x80",))
    twin.run("ALTER TABLE t ADD KEY (len)")
    twin.run("UPDATE t SET v = REVERSE(v)")
    twin.run("SELECT id FROM t FORCE INDEX (len) WHERE len > 4003 ORDER BY id")
    twin.run("ALTER TABLE t DROP COLUMN kept")
    twin.check()


def test_indexed_virtual_column_survives_purge(twin):
    """InnoDB's purge recomputes an indexed virtual column from its base, which must be in the row."""
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT, start VARCHAR(50) AS (LEFT(v, 50)) VIRTUAL, "
        "ending VARCHAR(50) AS (RIGHT(v, 50)) VIRTUAL, KEY (start), KEY (ending)) ENGINE={e}"
    )
    for row in range(50):
        twin.run("INSERT INTO t (id, v) VALUES (%s, %s)", (row, text(row, 9000)))
    for turn in range(4):
        twin.run("UPDATE t SET v = CONCAT(%s, v, %s)", (f"turn {turn} ", f" turn {turn}"))
        twin.run("DELETE FROM t WHERE id %% 10 = %s", (turn,))
    twin.run("SET GLOBAL innodb_max_purge_lag_wait = 0")
    twin.run("SELECT id FROM t FORCE INDEX (start) WHERE start LIKE 'turn 3 turn 2%' ORDER BY id")
    twin.run("SELECT id FROM t FORCE INDEX (ending) WHERE ending LIKE '%turn 3' ORDER BY id")
    twin.check()


def test_spatial_and_tiny_columns(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, g GEOMETRY NOT NULL, b TINYBLOB, x TINYTEXT, v LONGBLOB, "
        "SPATIAL KEY (g)) ENGINE={e}"
    )
    for row in range(30):
        points = ", ".join(f"{x} {x + row}" for x in range(300))
        twin.run(
            "INSERT INTO t VALUES (%s, ST_GeomFromText(%s), %s, %s, %s)",
            (row, f"LINESTRING({points})", payload(row, 255), text(row, 255), payload(row, 9000)),
        )
    twin.run("SELECT id, ST_AsText(g), b, x, v FROM t WHERE ST_Intersects(g, ST_GeomFromText('POINT(5 6)'))")
    twin.check()


def test_compressed_column_and_row_formats(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, c LONGBLOB COMPRESSED, v LONGBLOB) ENGINE={e}")
    for row_format in ("DYNAMIC", "COMPACT", "REDUNDANT", "COMPRESSED KEY_BLOCK_SIZE=8"):
        twin.run(f"ALTER TABLE t ROW_FORMAT={row_format}")
        for row in range(15):
            twin.run(
                "REPLACE INTO t VALUES (%s, %s, %s)",
                (row, text(row, 3000 * row).encode(), payload(row_format, 4000 + 400 * row)),
            )
        twin.check()
        twin.run("ALTER TABLE t KEY_BLOCK_SIZE=0, ROW_FORMAT=DYNAMIC")
