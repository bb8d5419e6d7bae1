"""ALTER without a copy: Quarry's own options change instantly, and every index made afterwards is right.

The danger: an index prefix that is longer than the raw bytes of some older head would index bytes of its trailer, and
find nothing. So every table here is read through every index, against an InnoDB twin.
"""

import random
import re
import threading

import pymysql
import pytest

from harness.segments import TRAILER_MAGIC, all_extents
from harness.values import SEED, payload, text

OWN_OPTION = re.compile(r"\s*\b(?:INLINE_SIZE|PREFIX_SIZE|PART_SIZE|CODEC)=[^\s,)]+")


def both(twin, sql):
    """On the engine under test as it stands, on the twin without what InnoDB does not know."""
    quarry = twin.engines[twin.under_test] != "InnoDB"
    plain = OWN_OPTION.sub("", sql)
    twin.server.query(sql if quarry else plain, database=twin.under_test)
    if plain.strip() != "ALTER TABLE t":
        twin.server.query(plain.replace(", ALGORITHM=INSTANT", ""), database=twin.twin)


def guaranteed(twin, column="b", table="t"):
    rows = twin.server.query(
        "SELECT prefix_in_every_row FROM information_schema.quarry_columns WHERE table_schema = %s AND table_name = %s "
        "AND column_name = %s",
        (twin.under_test, table, column),
    )
    return int(rows[0][0])


def refused(twin, sql, *words):
    """An ALTER that cannot be done in the way asked for says why, and changes nothing."""
    before = twin.server.query("SHOW CREATE TABLE t", database=twin.under_test)
    with pytest.raises(pymysql.err.Error) as failure:
        twin.server.query(sql, database=twin.under_test)
    assert failure.value.args[0] in (1845, 1846), failure.value
    for word in words:
        assert word in failure.value.args[1], failure.value
    assert twin.server.query("SHOW CREATE TABLE t", database=twin.under_test) == before


def shared_start(seed, common, size):
    """Values that begin alike: only an index that holds raw bytes far enough tells them apart."""
    return (b"same" * (common // 4 + 1))[:common] + payload(seed, max(0, size - common))


# --- instant options ------------------------------------------------------------------------------------------------


@pytest.mark.quarry_only
@pytest.mark.parametrize(
    "change",
    [
        "MODIFY b LONGBLOB INLINE_SIZE=100",
        "MODIFY b LONGBLOB INLINE_SIZE=60000 PREFIX_SIZE=3000",
        "MODIFY b LONGBLOB PREFIX_SIZE=500",
        "MODIFY b LONGBLOB PREFIX_SIZE=1",
        "MODIFY b LONGBLOB PART_SIZE=512",
        "MODIFY b LONGBLOB CODEC=zstd",
        "MODIFY b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=2000,MAX_BLOB_PART_SIZE'",
        "MODIFY b LONGBLOB INLINE_SIZE=64 PREFIX_SIZE=64 PART_SIZE=1024 CODEC=lz4, MODIFY j JSON CODEC=zstd",
        "MODIFY j JSON PREFIX_SIZE=40",
        "INLINE_SIZE=9000",
        "PREFIX_SIZE=300 INLINE_SIZE=300",
        "PART_SIZE=4096 CODEC=lz4",
        "INLINE_SIZE=DEFAULT PREFIX_SIZE=DEFAULT",
    ],
)
def test_own_options_change_instantly(twin, change):
    """No extent is written, the old values read as before, the new ones too, and FORCE writes all of them anew."""
    server = twin.server
    server.query(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB INLINE_SIZE=1000 PREFIX_SIZE=100, j JSON, n INT, "
        "KEY k (b(50)), g INT AS (n + 1) STORED, KEY (g)) ENGINE=QUARRY INLINE_SIZE=2000",
        database=twin.under_test,
    )
    server.query(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, j JSON, n INT, KEY k (b(50)), g INT AS (n + 1) STORED, "
        "KEY (g)) ENGINE=InnoDB",
        database=twin.twin,
    )
    sizes = [0, 80, 101, 999, 1001, 2001, 9000, 70000]

    def fill(first):
        for row, size in enumerate(sizes):
            twin.run(
                "INSERT INTO t (id, b, j, n) VALUES (%s, %s, %s, %s)",
                (first + row, payload((first, row), size), '"' + text(row, size) + '"', row),
            )

    fill(0)
    extents = all_extents(server.segments_of(twin.under_test, "t"))
    assert extents
    server.query(f"ALTER TABLE t {change}, ALGORITHM=INSTANT", database=twin.under_test)
    assert extents == all_extents(server.segments_of(twin.under_test, "t"))
    twin.check("t")
    fill(100)
    twin.run("UPDATE t SET b = CONCAT(b, 'longer'), j = JSON_ARRAY(j) WHERE id IN (2, 4, 6, 104)")
    twin.check("t")
    for first, row in ((0, 3), (0, 5), (0, 7), (100, 3), (100, 7)):
        twin.run("SELECT id FROM t FORCE INDEX (k) WHERE b = %s", (payload((first, row), sizes[row]),))
    old_store = server.store_of(twin.under_test, "t")
    server.query("ALTER TABLE t FORCE", database=twin.under_test)
    assert server.store_of(twin.under_test, "t") != old_store
    twin.check("t")


@pytest.mark.quarry_only
def test_new_values_follow_the_new_options(twin):
    """What is written after the change, and all of it after FORCE, has the new part size and codec."""
    server, schema = twin.server, twin.under_test
    server.query("CREATE TABLE t (id INT PRIMARY KEY, b LONGTEXT PART_SIZE=4096) ENGINE=QUARRY", database=schema)
    server.query("INSERT INTO t VALUES (1, %s)", ("old" * 10000,), database=schema)
    server.query("ALTER TABLE t MODIFY b LONGTEXT PART_SIZE=8192 CODEC=zstd, ALGORITHM=INSTANT", database=schema)
    server.query("INSERT INTO t VALUES (2, %s)", ("new" * 10000,), database=schema)

    def shapes():
        return sorted((extent.part_size, extent.codec) for extent in all_extents(server.segments_of(schema, "t")))

    assert shapes() == [(4096, "none"), (8192, "zstd")]
    server.query("ALTER TABLE t FORCE", database=schema)
    assert shapes() == [(8192, "zstd")] * 2
    server.query("ALTER TABLE t PART_SIZE=512, MODIFY b LONGTEXT CODEC=lz4, ALGORITHM=INSTANT", database=schema)
    server.query("ALTER TABLE t ENGINE=QUARRY", database=schema)
    assert shapes() == [(512, "lz4")] * 2
    server.query("ALTER TABLE t MODIFY b LONGTEXT CODEC=none, ALGORITHM=INSTANT", database=schema)
    server.query("OPTIMIZE TABLE t", database=schema)
    assert shapes() == [(512, "none")] * 2
    assert server.query("SELECT b FROM t ORDER BY id", database=schema) == (("old" * 10000,), ("new" * 10000,))


@pytest.mark.quarry_only
def test_rebuild_in_place_keeps_the_values_where_they_are(twin):
    server, schema = twin.server, twin.under_test
    server.query("CREATE TABLE t (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE=QUARRY", database=schema)
    for row in range(8):
        server.query("INSERT INTO t VALUES (%s, %s, %s)", (row, -row, payload(row, 20000)), database=schema)
    store = server.store_of(schema, "t")
    extents = all_extents(server.segments_of(schema, "t"))
    for change in (
        "FORCE, ALGORITHM=INPLACE, LOCK=NONE",
        "MODIFY n INT NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (id, n), ALGORITHM=INPLACE, LOCK=NONE",
        "ROW_FORMAT=COMPACT, ALGORITHM=INPLACE",
    ):
        server.query(f"ALTER TABLE t {change}", database=schema)
        assert server.store_of(schema, "t") == store
        assert all_extents(server.segments_of(schema, "t"))[: len(extents)] == extents
        for row in range(8):
            assert server.query("SELECT b FROM t WHERE id = %s", (row,), database=schema)[0][0] == payload(row, 20000)
    refused(twin, "ALTER TABLE t FORCE, ALGORITHM=NOCOPY", "written anew")
    refused(twin, "ALTER TABLE t FORCE, LOCK=NONE", "LOCK=SHARED")


# --- the guaranteed prefix ------------------------------------------------------------------------------------------


@pytest.fixture
def prefixed(twin):
    """PREFIX_SIZE=100, and values that differ only behind byte 0, 64, 100, 300 or 600."""
    twin.server.query(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB INLINE_SIZE=200 PREFIX_SIZE=100, c LONGBLOB PREFIX_SIZE=100) "
        "ENGINE=QUARRY",
        database=twin.under_test,
    )
    twin.server.query("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, c LONGBLOB) ENGINE=InnoDB", database=twin.twin)
    twin.filled = []
    fill(twin, 0)
    return twin


def fill(twin, first):
    for row, common in enumerate((0, 64, 100, 300, 600)):
        for size in (150, 250, 5000):
            key = first + row * 10 + (150, 250, 5000).index(size)
            value = shared_start(key, common, size)
            twin.run("INSERT INTO t (id, b, c) VALUES (%s, %s, %s)", (key, value, value[::-1]))
            twin.filled.append((key, value))


def read_through(twin, *indexes, values=None):
    """Every value (or those given) is found through every index, alone and in ranges."""
    for index in indexes:
        for _, value in twin.filled if values is None else values:
            found = twin.run(f"SELECT id FROM t FORCE INDEX ({index}) WHERE b = %s", (value,)).rows
            assert found, f"no row through {index} for a value of {len(value)} bytes"
        twin.run(f"SELECT COUNT(*) FROM t FORCE INDEX ({index}) WHERE b > ''")
        twin.run(f"SELECT id FROM t FORCE INDEX ({index}) WHERE b BETWEEN 'same' AND 'samf' ORDER BY id")
    twin.check("t")


@pytest.mark.quarry_only
def test_a_grown_prefix_guarantees_the_old_one_only(prefixed):
    twin = prefixed
    assert guaranteed(twin) == 100
    both(twin, "ALTER TABLE t MODIFY b LONGBLOB INLINE_SIZE=700 PREFIX_SIZE=700, ALGORITHM=INSTANT")
    assert guaranteed(twin) == 100
    fill(twin, 100)
    both(twin, "ALTER TABLE t ADD KEY k100 (b(100))")
    refused(twin, "ALTER TABLE t ADD KEY k101 (b(101)), ALGORITHM=INPLACE", "longer prefix")
    refused(twin, "ALTER TABLE t ADD KEY k101 (b(101)), ALGORITHM=INSTANT", "longer prefix")
    twin.server.query("ALTER TABLE t DROP KEY k100", database=twin.under_test)
    twin.server.query("ALTER TABLE t ADD KEY k100 (b(100)), ALGORITHM=INPLACE, LOCK=NONE", database=twin.under_test)
    read_through(twin, "k100")
    both(twin, "ALTER TABLE t ADD KEY k650 (b(650))")
    assert guaranteed(twin) == 700
    read_through(twin, "k100", "k650")
    both(twin, "ALTER TABLE t ADD KEY k700 (b(700)), ALGORITHM=INPLACE")
    fill(twin, 200)
    read_through(twin, "k100", "k650", "k700")


@pytest.mark.quarry_only
def test_the_smallest_prefix_ever_in_force_counts(prefixed):
    twin = prefixed
    for turn, (size, least) in enumerate(((60, 60), (300, 60), (80, 60), (0, 0), (650, 0))):
        both(twin, f"ALTER TABLE t MODIFY b LONGBLOB INLINE_SIZE=700 PREFIX_SIZE={size}, ALGORITHM=INSTANT")
        assert guaranteed(twin) == least
        fill(twin, 1000 + 100 * turn)
    refused(twin, "ALTER TABLE t ADD KEY k (b(1)), ALGORITHM=INPLACE", "longer prefix")
    refused(twin, "ALTER TABLE t FORCE, ALGORITHM=INPLACE", "written anew")
    both(twin, "ALTER TABLE t ADD KEY k600 (b(600))")
    assert guaranteed(twin) == 650
    read_through(twin, "k600")
    both(twin, "ALTER TABLE t MODIFY b LONGBLOB INLINE_SIZE=700 PREFIX_SIZE=0, ALGORITHM=INSTANT")
    assert guaranteed(twin) == 600, "an index that is there holds heads to its length"
    both(twin, "ALTER TABLE t DROP KEY k600")
    assert guaranteed(twin) == 0
    fill(twin, 3000)
    both(twin, "ALTER TABLE t ADD KEY k10 (b(10))")
    read_through(twin, "k10")


@pytest.mark.quarry_only
def test_a_rebuild_does_not_forget_older_heads(prefixed):
    """What InnoDB would rebuild in place is copied while older heads are there; the copy then holds the full prefix."""
    twin = prefixed
    both(twin, "ALTER TABLE t MODIFY b LONGBLOB INLINE_SIZE=700 PREFIX_SIZE=700, ALGORITHM=INSTANT")
    refused(twin, "ALTER TABLE t ROW_FORMAT=COMPACT, ALGORITHM=INPLACE", "older")
    both(twin, "ALTER TABLE t ROW_FORMAT=COMPACT")
    assert guaranteed(twin) == 700
    both(twin, "ALTER TABLE t ADD KEY k (b(700)), ALGORITHM=INPLACE")
    read_through(twin, "k")
    both(twin, "ALTER TABLE t MODIFY b LONGBLOB INLINE_SIZE=900 PREFIX_SIZE=800, ALGORITHM=INSTANT")
    both(twin, "TRUNCATE TABLE t")
    assert guaranteed(twin) == 800
    twin.filled = []
    fill(twin, 0)
    twin.server.query("ALTER TABLE t ADD KEY k8 (b(750)), ALGORITHM=INPLACE", database=twin.under_test)
    twin.server.query("ALTER TABLE t ADD KEY k8 (b(750))", database=twin.twin)
    read_through(twin, "k", "k8")


@pytest.mark.quarry_only
def test_rename_and_exchange_take_the_limit_along(prefixed):
    twin = prefixed
    both(twin, "ALTER TABLE t MODIFY b LONGBLOB INLINE_SIZE=700 PREFIX_SIZE=700, ALGORITHM=INSTANT")
    both(twin, "RENAME TABLE t TO s")
    assert guaranteed(twin, table="s") == 100
    server, schema = twin.server, twin.under_test
    server.query(
        "CREATE TABLE p (id INT PRIMARY KEY, b LONGBLOB, c LONGBLOB) ENGINE=QUARRY INLINE_SIZE=700 PREFIX_SIZE=700 "
        "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (5000), PARTITION p1 VALUES LESS THAN (9000))",
        database=schema,
    )
    with pytest.raises(pymysql.err.Error) as failure:
        server.query("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE s", database=schema)
    assert "PREFIX_SIZE" in str(failure.value)
    server.query("ALTER TABLE s INLINE_SIZE=700 PREFIX_SIZE=700", database=schema)
    server.query("ALTER TABLE s MODIFY c LONGBLOB, MODIFY b LONGBLOB", database=schema)
    assert guaranteed(twin, table="s") == 100
    server.query("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE s", database=schema)
    assert guaranteed(twin, table="s") == 700
    assert guaranteed(twin, table="p") == 100
    with pytest.raises(pymysql.err.Error):
        server.query("ALTER TABLE p ADD KEY k (b(600)), ALGORITHM=INPLACE", database=schema)
    server.query("ALTER TABLE s ADD KEY k (b(600)), ALGORITHM=INPLACE", database=schema)
    server.query("ALTER TABLE p ADD KEY k (b(600))", database=schema)
    assert guaranteed(twin, table="p") == 700
    for key, value in twin.filled:
        assert (key,) in server.query("SELECT id FROM p FORCE INDEX (k) WHERE b = %s", (value,), database=schema)


@pytest.mark.quarry_only
@pytest.mark.parametrize("end", ["kill", "restart"])
def test_the_limit_outlives_the_server(own_server, end):
    server = own_server(f"limit_{end}")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB INLINE_SIZE=50 PREFIX_SIZE=50) ENGINE=QUARRY")
    values = [shared_start(row, 100, 3000) for row in range(8)]
    for row, value in enumerate(values):
        server.query("INSERT INTO d.t VALUES (%s, %s)", (row, value))
    server.query("ALTER TABLE d.t MODIFY b LONGBLOB INLINE_SIZE=400 PREFIX_SIZE=400, ALGORITHM=INSTANT")
    if end == "kill":
        server.kill()
        server.start()
    else:
        server.restart()
    with pytest.raises(pymysql.err.Error):
        server.query("ALTER TABLE d.t ADD KEY k (b(300)), ALGORITHM=INPLACE")
    server.query("ALTER TABLE d.t ADD KEY k (b(300))")
    for row, value in enumerate(values):
        assert server.query("SELECT id FROM d.t FORCE INDEX (k) WHERE b = %s", (value,)) == ((row,),)


# --- random sequences -----------------------------------------------------------------------------------------------


@pytest.mark.quarry_only
@pytest.mark.parametrize("turn", range(3))
def test_random_changes_then_indexes(prefixed, turn):
    """Options, indexes, rebuilds and DML in any order; every index is read after each index and data change."""
    twin, dice = prefixed, random.Random(f"alter-{SEED}-{turn}")
    keys, used, done = {}, 100, []

    def options():
        prefix = dice.choice([0, 1, 50, 100, 300, 650])
        inline = max(prefix, dice.choice([0, 100, 700, 2000]))
        return f"INLINE_SIZE={inline} PREFIX_SIZE={prefix} CODEC={dice.choice(['none', 'lz4', 'zstd'])}"

    kinds = ["option", "option", "ndb", "table", "add", "add", "drop", "fill", "update", "rebuild", "rollback"]
    for _ in range(25):
        kind = dice.choice(kinds)
        if kind == "option":
            statement = f"ALTER TABLE t MODIFY b LONGBLOB {options()}, ALGORITHM=INSTANT"
        elif kind == "ndb":
            comment = f"NDB_COLUMN=BLOB_INLINE_SIZE={dice.choice([1, 80, 400])}"
            statement = f"ALTER TABLE t MODIFY b LONGBLOB COMMENT '{comment}'"
        elif kind == "table":
            statement = f"ALTER TABLE t INLINE_SIZE={dice.choice([650, 900])} PREFIX_SIZE={dice.choice([0, 200, 650])}"
        elif kind == "add":
            length = dice.choice([1, 20, 64, 65, 100, 128, 300, 620])
            if length in keys:
                continue
            keys[length] = f"k{length}"
            statement = f"ALTER TABLE t ADD KEY k{length} (b({length}))"
        elif kind == "drop" and keys:
            length = dice.choice(sorted(keys))
            statement = f"ALTER TABLE t DROP KEY {keys.pop(length)}"
        elif kind == "rebuild":
            statement = dice.choice(["ALTER TABLE t FORCE", "ALTER TABLE t ROW_FORMAT=DYNAMIC", "OPTIMIZE TABLE t"])
        else:
            statement = None
        done.append(statement or kind)
        if statement is not None:
            both(twin, statement)
        elif kind == "fill":
            used += 100
            fill(twin, used)
        elif kind == "update":
            number = dice.randrange(len(twin.filled))
            key, _ = twin.filled[number]
            common, size = dice.choice([0, 64, 100, 300, 600]), dice.choice([90, 250, 5000])
            value = shared_start((turn, key, len(done)), common, size)
            twin.run("UPDATE t SET b = %s WHERE id = %s", (value, key))
            twin.filled[number] = (key, value)
        elif kind == "rollback":
            for statement in ("BEGIN", "UPDATE t SET b = CONCAT('gone', b), c = NULL", "ROLLBACK"):
                twin.run(statement)
        if kind in ("add", "update", "rollback"):
            try:
                read_through(twin, *keys.values(), values=dice.sample(twin.filled, min(20, len(twin.filled))))
            except AssertionError as failure:
                raise AssertionError(f"{failure}\nafter:\n" + "\n".join(done)) from failure
    read_through(twin, *keys.values())


# --- in place beside writers, partitions, defaults ------------------------------------------------------------------


@pytest.mark.quarry_only
def test_indexes_and_rebuilds_beside_writers(prefixed):
    """Rows written while an index is made are in it, by their raw bytes; a rebuild loses none of their values."""
    twin, server, schema = prefixed, prefixed.server, prefixed.under_test
    for row in range(5000, 5300):
        server.query("INSERT INTO t VALUES (%s, %s, NULL)", (row, shared_start(row, 60, 3000)), database=schema)
    stop, written, errors = threading.Event(), {}, []

    def write(number):
        connection = server.connect(schema)
        try:
            with connection.cursor() as cursor:
                row = 10000 * (number + 1)
                while not stop.is_set():
                    row += 1
                    value = shared_start(row, 60, 3000)
                    cursor.execute("INSERT INTO t VALUES (%s, %s, NULL)", (row, value))
                    written[row] = value
        except pymysql.err.Error as failure:
            errors.append(failure)
        finally:
            connection.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        for turn in range(4):
            key = f"k{turn} (b({64 + turn * 12}))"
            server.query(f"ALTER TABLE t ADD KEY {key}, ALGORITHM=INPLACE, LOCK=NONE", database=schema)
            if turn % 2 == 1:
                server.query("ALTER TABLE t FORCE, ALGORITHM=INPLACE, LOCK=NONE", database=schema)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors, errors
    assert written
    with server.connect(schema) as connection, connection.cursor() as cursor:
        for row, value in list(written.items())[-100:] + list(written.items())[:100]:
            for turn in range(4):
                cursor.execute(f"SELECT id FROM t FORCE INDEX (k{turn}) WHERE b = %s", (value,))
                assert cursor.fetchall() == ((row,),)
    assert server.query("SELECT COUNT(*) FROM t WHERE id > 10000", database=schema)[0][0] == len(written)
    assert server.query("CHECK TABLE t EXTENDED", database=schema)[-1][-1] == "OK"


@pytest.mark.quarry_only
def test_partitioned_tables_are_rebuilt_in_place(twin):
    """Each partition's store follows its heads to the new InnoDB table."""
    server, schema = twin.server, twin.under_test
    for name, engine in twin.engines.items():
        server.query(
            f"CREATE TABLE t (id INT, n INT NOT NULL, b LONGBLOB, PRIMARY KEY (id)) ENGINE={engine} "
            "PARTITION BY HASH (id) PARTITIONS 3",
            database=name,
        )
    for row in range(30):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, row % 4, payload(row, 6000 + row)))

    def stores():
        return sorted(
            server.query(
                "SELECT store_id, state FROM information_schema.quarry_tables WHERE table_schema = %s "
                "AND table_name = 't' AND state != 'DROPPED'",
                (schema,),
            )
        )

    assert len(stores()) == 3
    for change in ("ROW_FORMAT=COMPACT", "FORCE", "MODIFY n BIGINT NOT NULL FIRST", "FORCE", "ROW_FORMAT=DYNAMIC"):
        in_place = ", ALGORITHM=INPLACE" if "MODIFY" not in change else ""
        before = stores()
        server.query(f"ALTER TABLE t {change}{in_place}", database=schema)
        server.query(f"ALTER TABLE t {change}", database=twin.twin)
        if in_place:
            assert stores() == before, change
        twin.check("t")
        twin.run("UPDATE t SET b = CONCAT(b, %s) WHERE n = 1", (change,))
        twin.check("t")
    assert all(state == "BOUND" for _, state in stores())


def test_new_columns_with_short_defaults_are_instant(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")
    for row in range(10):
        twin.run("INSERT INTO t VALUES (%s, %s)", (row, payload(row, row * 1000)))
    for number, (kind, default) in enumerate(
        (
            ("LONGBLOB NOT NULL", "''"),
            ("LONGBLOB", "'short'"),
            ("LONGBLOB", "'%s'" % ("x" * 63)),
            ("LONGBLOB", "'%s'" % ("aaa" * 62)),
            ("LONGTEXT NOT NULL", "'%s'" % ("longer" * 680)),
            ("MEDIUMTEXT CHARACTER SET latin1 NOT NULL", "'häuser'"),
            ("BLOB", "NULL"),
            ("LONGBLOB", "x'00ff41'"),
            ("MEDIUMTEXT CHARACTER SET utf8mb4", "_latin1 x'e4'"),
            ("LONGTEXT", "-17"),
            ("TEXT", "1.5e3"),
            ("TEXT", "TIMESTAMP'2026-01-02 03:04:05'"),
        )
    ):
        twin.run(f"ALTER TABLE t ADD COLUMN x{number} {kind} DEFAULT ({default}), ALGORITHM=INSTANT")
        twin.check("t")
        twin.run(f"UPDATE t SET x{number} = CONCAT(x{number}, HEX(b)) WHERE id % 2 = 1")
        twin.check("t")
    like_a_head = f"CONCAT(REPEAT('h', 100), x'{TRAILER_MAGIC.hex()}')"
    long_ones = (f"'{'y' * 4097}'", "REPEAT('z', 9000)", "UUID()", "CONCAT(USER(), REPEAT('u', 100))", like_a_head)
    for number, default in enumerate(long_ones):
        outcome = twin.run(f"ALTER TABLE t ADD COLUMN y{number} LONGBLOB DEFAULT ({default})", compare=False)
        assert outcome.error is None
    twin.run("SELECT id, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, y0, y1, LENGTH(y2), y3, y4 FROM t")
    twin.run("ALTER TABLE t MODIFY x1 LONGBLOB NOT NULL DEFAULT 'none'")
    twin.run("SELECT id, x1, MD5(b) FROM t")


@pytest.mark.quarry_only
@pytest.mark.parametrize(
    "default", ["RAND(1)", "NOW()", "UUID()", "USER()", "CONCAT('a', 'b')", "REPEAT('a', 9)", "CURRENT_TIMESTAMP"]
)
def test_a_default_that_is_no_literal_copies(twin, default):
    """Whether a new column, or one that no longer may be NULL."""
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")
    twin.run("INSERT INTO t VALUES (1, NULL), (2, 'x')")
    for algorithm in ("INSTANT", "INPLACE"):
        refused(twin, f"ALTER TABLE t ADD COLUMN x LONGTEXT DEFAULT ({default}), ALGORITHM={algorithm}", "no literal")
        change = f"ALTER TABLE t MODIFY b LONGBLOB NOT NULL DEFAULT ({default}), ALGORITHM={algorithm}"
        refused(twin, f"SET STATEMENT sql_mode = '' FOR {change}", "no literal")
    twin.run(f"ALTER TABLE t ADD COLUMN x LONGTEXT DEFAULT ({default})", compare=False)


@pytest.mark.quarry_only
def test_keys_that_move_a_column_copy(twin):
    """A key that makes a column unmanaged, or the loss of it, is never done in place."""
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT, n INT, l INT AS (LENGTH(v)) VIRTUAL) ENGINE={e}")
    for row in range(12):
        twin.run("INSERT INTO t (id, v, n) VALUES (%s, %s, %s)", (row, text(row, row * 900), row))
    for change in ("ADD FULLTEXT f (v)", "ADD UNIQUE u (v)", "ADD KEY i (l)"):
        refused(twin, f"ALTER TABLE t {change}, ALGORITHM=INPLACE", "segments")
        both(twin, f"ALTER TABLE t {change}")
        twin.check("t")
        twin.run("SELECT id FROM t FORCE INDEX (PRIMARY) WHERE l > 5000 ORDER BY id")
        name = change.split()[2]
        refused(twin, f"ALTER TABLE t DROP KEY {name}, ALGORITHM=INPLACE", "segments")
        both(twin, f"ALTER TABLE t DROP KEY {name}")
        twin.check("t")


@pytest.mark.quarry_only
def test_an_index_that_needs_a_copy_checks_rows_as_every_copy_does(twin):
    """A row that only INSERT IGNORE lets in stops it. The ways out: the sql_mode of that INSERT, or PREFIX_SIZE from
    the start, with which the index is made in place."""
    options = {"t": "", "early": " PREFIX_SIZE=32"}  # 8 characters of 4 bytes
    for name, option in options.items():
        for schema, engine in twin.engines.items():
            twin.server.query(
                "CREATE TABLE {} (id INT PRIMARY KEY, b MEDIUMTEXT CHARACTER SET utf8mb4, a JSON{}, v VARCHAR(80) AS "
                "(LEFT(b, 10)) VIRTUAL) ENGINE={} DEFAULT CHARSET=latin1".format(
                    name, option if engine == "QUARRY" else "", engine
                ),
                database=schema,
            )
        twin.run(f"INSERT IGNORE INTO {name} (id, b, a) VALUES (1, REPEAT('漢', 3000), '{{}}')")
        twin.run(f"INSERT IGNORE INTO {name} (id, b, a) VALUES (2, 'x', JSON_ARRAY(REPEAT('a', 9000)))")
    refused(twin, "ALTER TABLE t ADD INDEX i (a(8)), ALGORITHM=INPLACE", "longer prefix")
    twin.run("ALTER TABLE t ADD INDEX i (a(8)), ALGORITHM=COPY", error=1366)
    with pytest.raises(pymysql.err.Error, match="Incorrect string value"):
        twin.server.query("ALTER TABLE t ADD INDEX i (a(8))", database=twin.under_test)
    twin.run("SET STATEMENT sql_mode = '' FOR ALTER TABLE t ADD INDEX i (a(8)), ALGORITHM=COPY")
    twin.run("ALTER TABLE early ADD INDEX i (a(8)), ALGORITHM=INPLACE")
    for name in options:
        twin.run(f"SELECT id FROM {name} FORCE INDEX (i) WHERE a LIKE '[\"aa%%' ORDER BY id")
    twin.check()


@pytest.mark.quarry_only
def test_a_row_too_large_for_strict_mode_stops_copies_alone(twin):
    columns = ", ".join(f"c{number} CHAR(250) CHARACTER SET latin1" for number in range(40))
    twin.run("SET innodb_strict_mode = OFF")
    twin.run(f"CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, {columns}) ENGINE={{e}}", compare=False)
    twin.run("SET innodb_strict_mode = ON")
    twin.run("INSERT INTO t (id, b) VALUES (1, %s)", (payload(1, 9000),))
    twin.run("ALTER TABLE t FORCE, ALGORITHM=COPY", error=1118)
    with pytest.raises(pymysql.err.Error, match="Row size too large"):
        twin.server.query("ALTER TABLE t FORCE", database=twin.under_test)
    twin.run("SET STATEMENT innodb_strict_mode = OFF FOR ALTER TABLE t FORCE", compare=False)
    twin.run("ALTER TABLE t FORCE, ALGORITHM=INPLACE", compare=False)
    twin.check()


@pytest.mark.quarry_only
def test_history_survives_every_way_to_alter(twin):
    """System versioning: the rows of the past keep their values, shared with the present or not."""
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, n INT) ENGINE={e} WITH SYSTEM VERSIONING", compare=False
    )
    for row in range(6):
        twin.run("INSERT INTO t VALUES (%s, %s, 0)", (row, payload(row, 9000)))
    twin.run("UPDATE t SET n = 1 WHERE id < 4")
    twin.run("UPDATE t SET b = CONCAT(b, 'new') WHERE id < 2")
    twin.run("DELETE FROM t WHERE id = 5")
    twin.run("SET system_versioning_alter_history = KEEP")
    connection = twin.connection("main", twin.under_test)
    for change in (
        "MODIFY b LONGBLOB PREFIX_SIZE=200 INLINE_SIZE=300, ALGORITHM=INSTANT",
        "ADD KEY k (b(100))",
        "FORCE",
        "MODIFY b LONGBLOB PREFIX_SIZE=10 INLINE_SIZE=10, ALGORITHM=INSTANT",
        "FORCE",
    ):
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE t {change}")
        if change.startswith("ADD"):
            with twin.connection("main", twin.twin).cursor() as cursor:
                cursor.execute(f"ALTER TABLE t {change}")
        twin.run("SELECT id, n, MD5(b) FROM t FOR SYSTEM_TIME ALL")
        twin.run("UPDATE t SET n = n + 1 WHERE id < 3")
        twin.run("SELECT id, n, LENGTH(b), MD5(b) FROM t FOR SYSTEM_TIME ALL")
