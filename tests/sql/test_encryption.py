"""Encryption at rest: nothing plain on the disk, whatever way a value takes; keys that change, rotate, are lost.

The payload searched for is the same in every value, stands in it again and again, and is longer than any prefix that
stays in a row: InnoDB's files, its redo log and temporary files are InnoDB's to encrypt, and are asked to.
"""

import pathlib

import pymysql
import pytest

from harness.gc import Gc
from harness.segments import all_extents
from harness.values import payload

pytestmark = pytest.mark.quarry_only

MARKER = b"<a payload that nobody may find on the disk>"
KEYS = {1: "a1" * 32, 2: "b2" * 16, 5: "c5" * 24}

# As a DBA would turn everything on. (The binary log is off: it is the server's own, encrypt_binlog.)
ALL_ON = [
    "--innodb-encrypt-log=ON",
    "--innodb-encrypt-temporary-tables=ON",
    "--encrypt-tmp-files=ON",
    "--encrypt-tmp-disk-tables=ON",
    "--aria-encrypt-tables=ON",
]


def write_keys(path, keys):
    path.write_text("".join(f"{number};{key}\n" for number, key in keys.items()))


def key_options(path, *more):
    return ["--plugin-load-add=file_key_management", f"--file-key-management-filename={path}", *more]


@pytest.fixture
def encrypted(own_server):
    """Makes servers with file_key_management, whose keys file is `server.keys`."""

    def make(name, *options, keys=KEYS):
        server = own_server(name, start=False)
        server.keys = server.directory / "keys.txt"
        write_keys(server.keys, keys)
        server.options = key_options(server.keys, *options)
        server._new_private_server()
        server.start()
        server.query("CREATE DATABASE e")
        return server

    return make


def value(row, size):
    """Half of it compresses; the marker stands in every part of 512 bytes or more."""
    block = MARKER + payload(("encryption", row), 100) + b" " * 100
    return (block * (size // len(block) + 1))[:size]


def files_with(server, needle, *roots):
    """Every file of the data directory (and `roots`) that holds `needle`, read whole, holes and tails included."""
    found = []
    for root in (server.datadir, server.directory / "tmp", *map(pathlib.Path, roots)):
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink() and needle in path.read_bytes():
                found.append(str(path.relative_to(root)))
    return found


def fails(server, sql, *words, args=None):
    with pytest.raises(pymysql.err.Error) as failure:
        server.query(sql, args)
    for word in words:
        assert word in str(failure.value), failure.value
    return failure.value


def warnings_of(server, sql):
    connection = server.connect("e")
    with connection.cursor() as cursor:
        cursor.execute(sql)
        cursor.execute("SHOW WARNINGS")
        shown = [row[2] for row in cursor.fetchall()]
    connection.close()
    return shown


def insert(server, table, row, size):
    server.query(f"INSERT INTO e.{table} (id, b) VALUES (%s, %s)", (row, value(row, size)))


def expect_values(server, table, sizes):
    for row, size in sizes.items():
        assert server.query(f"SELECT b FROM e.{table} WHERE id = %s", (row,)) == ((value(row, size),),), (table, row)


def keys_of(server, table):
    """(key id, version) of every extent of a table, on the disk."""
    return sorted({(extent.key_id, extent.key_version) for extent in all_extents(server.segments_of("e", table))})


SIZES = {1: 5000, 2: 70000, 3: 524288, 4: 3 << 20, 5: 9 << 20}


@pytest.mark.parametrize("codec, part_size", [("none", 65536), ("none", 16777216), ("lz4", 512), ("zstd", 65536)])
def test_no_plain_byte_reaches_the_disk(encrypted, codec, part_size, tmp_path):
    data_path = tmp_path / "drive"
    data_path.mkdir()
    server = encrypted("encryption", *ALL_ON, f"--quarry-data-paths={data_path}", "--innodb-encrypt-tables=FORCE")
    server.query("SET GLOBAL quarry_write_batch_bytes = 131072")
    options = f"ENGINE=QUARRY CODEC={codec} PART_SIZE={part_size} INLINE_SIZE=100 PREFIX_SIZE=20"
    server.query(f"CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB, v INT) {options}")
    server.query(
        f"CREATE TABLE e.p (id INT PRIMARY KEY, b LONGBLOB) {options} ENCRYPTED=YES ENCRYPTION_KEY_ID=5 "
        "PARTITION BY HASH (id) PARTITIONS 2"
    )
    for table in ("t", "p"):
        for row, size in SIZES.items():
            insert(server, table, row, size)
    server.query("UPDATE e.t SET b = CONCAT(b, b) WHERE id = 2")
    server.query("UPDATE e.t SET b = LEFT(b, 70000) WHERE id = 2")
    server.query("DELETE FROM e.t WHERE id = 3")
    server.query("ALTER TABLE e.t FORCE")
    server.query("ALTER TABLE e.t ADD COLUMN w INT, ALGORITHM=INPLACE")
    server.query("CREATE TABLE e.c LIKE e.t")
    server.query("INSERT INTO e.c SELECT * FROM e.t")
    server.query(f"CREATE TABLE e.s {options} SELECT id, b FROM e.p")
    server.query("ALTER TABLE e.p COALESCE PARTITION 1")
    server.query("CREATE TEMPORARY TABLE e.q ENGINE=QUARRY AS SELECT * FROM e.t")
    connection = server.connect("e")
    with connection.cursor() as cursor:
        # A temporary table on the disk, sorted; then rows that are rolled back.
        cursor.execute("SET sort_buffer_size = 65536, tmp_memory_table_size = 65536")
        cursor.execute("SELECT id, b FROM t UNION SELECT id, b FROM p ORDER BY b, id")
        cursor.fetchall()
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t (id, b) VALUES (99, %s)", (value(99, 300000),))
        cursor.execute("ROLLBACK")
    connection.close()
    server.query("TRUNCATE e.c")
    expected = {row: size for row, size in SIZES.items() if row != 3}
    assert files_with(server, MARKER, data_path) == [], "while it runs"
    expect_values(server, "t", expected)
    expect_values(server, "p", SIZES)
    expect_values(server, "s", SIZES)
    assert set(keys_of_path(data_path)) <= {(1, 1), (5, 1)}
    server.kill()
    assert files_with(server, MARKER, data_path) == [], "after kill -9"
    server.start()
    expect_values(server, "t", expected)
    server.stop()
    assert files_with(server, MARKER, data_path) == [], "after a clean stop"


def keys_of_path(data_path):
    extents = all_extents(sorted(pathlib.Path(data_path).glob("quarry/*/*.qseg")))
    assert extents
    return [(extent.key_id, extent.key_version) for extent in extents]


def test_the_search_finds_what_is_plain(encrypted):
    """Else the test above could not fail."""
    server = encrypted("encryption_off")
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=NO")
    insert(server, "t", 1, 5000)
    assert any(name.endswith(".qseg") for name in files_with(server, MARKER))
    assert keys_of(server, "t") == [(0, 0)]


def test_who_is_encrypted_follows_innodb(encrypted):
    """ENCRYPTED=YES, NO and not given; innodb_encrypt_tables OFF, ON and FORCE, changed while the server runs."""
    server = encrypted("encryption_who")
    for name, option in (("y", "ENCRYPTED=YES ENCRYPTION_KEY_ID=2"), ("n", "ENCRYPTED=NO"), ("d", "")):
        server.query(f"CREATE TABLE e.{name} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY {option}")
        insert(server, name, 1, 9000)
    assert [keys_of(server, name) for name in "ynd"] == [[(2, 1)], [(0, 0)], [(0, 0)]]
    server.query("SET GLOBAL innodb_encrypt_tables = ON")
    for name in "ynd":
        insert(server, name, 2, 9000)
    assert [keys_of(server, name) for name in "ynd"] == [[(2, 1)], [(0, 0)], [(0, 0), (1, 1)]]
    server.query("SET GLOBAL innodb_encrypt_tables = 'FORCE'")
    fails(server, "CREATE TABLE e.bad (id INT, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=NO", "option")
    insert(server, "n", 3, 9000)
    assert keys_of(server, "n") == [(0, 0)], "as InnoDB: a table that is there stays as it is"
    server.query("ALTER TABLE e.d FORCE")
    assert keys_of(server, "d") == [(1, 1)], "the documented way to encrypt what was there"
    server.query("SET GLOBAL innodb_encrypt_tables = OFF")
    insert(server, "d", 3, 9000)
    assert keys_of(server, "d") == [(0, 0), (1, 1)]
    for name in "yd":
        expect_values(server, name, {1: 9000, 2: 9000})


def test_columns_show_whether_values_are_encrypted(encrypted):
    server = encrypted("encryption_columns")
    server.query("CREATE TABLE e.y (id INT, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES ENCRYPTION_KEY_ID=5")
    server.query("CREATE TABLE e.d (id INT, b LONGBLOB) ENGINE=QUARRY")
    show = "SELECT table_name, encrypted, encryption_key_id FROM information_schema.quarry_columns WHERE table_schema='e'"
    assert sorted(server.query(show)) == [("d", "NO", None), ("y", "YES", 5)]
    server.query("SET GLOBAL innodb_encrypt_tables = ON")
    assert sorted(server.query(show)) == [("d", "YES", 1), ("y", "YES", 5)]


@pytest.mark.parametrize(
    "change, keys",
    [
        ("ENCRYPTION_KEY_ID=1", [(1, 1)]),
        ("ENCRYPTED=YES ENCRYPTION_KEY_ID=5", [(5, 1)]),
        ("ENCRYPTED=NO ENCRYPTION_KEY_ID=1", [(0, 0)]),
    ],
)
def test_alter_writes_every_value_anew(encrypted, change, keys):
    server = encrypted("encryption_alter")
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES ENCRYPTION_KEY_ID=2")
    for row, size in SIZES.items():
        insert(server, "t", row, size)
    assert keys_of(server, "t") == [(2, 1)]
    fails(server, f"ALTER TABLE e.t {change}, ALGORITHM=INPLACE", "ALGORITHM=INPLACE", "encrypt")
    server.query(f"ALTER TABLE e.t {change}")
    assert keys_of(server, "t") == keys
    expect_values(server, "t", SIZES)


def test_a_key_that_is_not_there_is_refused(encrypted):
    server = encrypted("encryption_refused")
    before = server.stores()
    create = "CREATE TABLE e.bad (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY"
    fails(server, f"{create} ENCRYPTED=YES ENCRYPTION_KEY_ID=77", "option")
    assert any("77" in text for text in warnings_of_failure(server, f"{create} ENCRYPTED=YES ENCRYPTION_KEY_ID=77"))
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES")
    insert(server, "t", 1, 9000)
    fails(server, "ALTER TABLE e.t ENCRYPTION_KEY_ID=77", "option")
    expect_values(server, "t", {1: 9000})
    fails(
        server,
        f"{create} PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9) ENCRYPTED=YES)",
        "p0",
        "ENCRYPTED",
        "whole",
    )
    assert len(server.stores()) == len(before) + 1


def warnings_of_failure(server, sql):
    connection = server.connect("e")
    with connection.cursor() as cursor:
        with pytest.raises(pymysql.err.Error):
            cursor.execute(sql)
        cursor.execute("SHOW WARNINGS")
        shown = [row[2] for row in cursor.fetchall()]
    connection.close()
    return shown


def test_innodbs_default_key_does_not_go_unnoticed(encrypted):
    server = encrypted("encryption_default_key", "--innodb-default-encryption-key-id=5")
    shown = warnings_of(server, "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES")
    assert any("innodb_default_encryption_key_id=5" in text and "ENCRYPTION_KEY_ID=5" in text for text in shown), shown
    insert(server, "t", 1, 9000)
    assert keys_of(server, "t") == [(1, 1)]
    assert warnings_of(server, "CREATE TABLE u (id INT, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=NO") == []


def test_without_its_key_a_table_waits_and_comes_back(encrypted):
    """InnoDB cannot open the table either; nothing is lost, dropped or changed meanwhile."""
    server = encrypted("encryption_missing")
    server.query("CREATE TABLE e.k (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES ENCRYPTION_KEY_ID=5")
    server.query("CREATE TABLE e.other (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES ENCRYPTION_KEY_ID=2")
    for table in ("k", "other"):
        insert(server, table, 1, 50000)
    server.stop()
    write_keys(server.keys, {number: key for number, key in KEYS.items() if number != 5})
    server.start()
    for sql in ("SELECT * FROM e.k", "INSERT INTO e.k VALUES (2, REPEAT('x', 9000))"):
        fails(server, sql, "`e`.`k`", "encrypted, nothing of it is lost: key 5 is not available")
    expect_values(server, "other", {1: 50000})
    insert(server, "other", 2, 50000)
    server.stop()
    write_keys(server.keys, KEYS)
    server.start()
    expect_values(server, "k", {1: 50000})
    insert(server, "k", 2, 50000)
    expect_values(server, "k", {1: 50000, 2: 50000})


def test_rewritten_segments(encrypted):
    """GC copies small values to a file of their own as they are stored: without the key, and nothing plain."""
    server = encrypted("encryption_rewritten", "--quarry-gc=OFF", "--innodb-encrypt-tables=FORCE", *ALL_ON)
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY INLINE_SIZE=0")
    sizes = {row: 600 + row for row in range(60)}
    for row, size in sizes.items():
        insert(server, "t", row, size)
    before = sorted(extent.value_size for extent in all_extents(server.segments_of("e", "t")))
    assert Gc(server).run_well()["segments_rewritten"] == 1
    assert sorted(extent.value_size for extent in all_extents(server.segments_of("e", "t"))) == before
    assert keys_of(server, "t") == [(1, 1)] and files_with(server, MARKER) == []
    server.restart()
    expect_values(server, "t", sizes)


def test_when_only_the_values_key_is_gone(encrypted):
    """The rows are readable (InnoDB's tablespace is plain: DEFAULT, turned off again), some values are not."""
    server = encrypted("encryption_values", "--innodb-encryption-threads=0")
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    insert(server, "t", 1, 50000)
    server.query("SET GLOBAL innodb_encrypt_tables = ON")
    insert(server, "t", 2, 50000)
    server.stop()
    server.options = []
    server._new_private_server()
    server.start()
    expect_values(server, "t", {1: 50000})
    failure = fails(server, "SELECT b FROM e.t WHERE id = 2", "`e`.`t`", "version 1 of key 1 is not available")
    assert "segment" in str(failure) and "offset" in str(failure), failure
    assert server.query("SELECT id FROM e.t ORDER BY id") == ((1,), (2,)), "heads need no key"
    # Another key under the same id: an error, never other bytes.
    write_keys(server.keys, {1: "d4" * 32})
    server.restart(key_options(server.keys))
    fails(server, "SELECT b FROM e.t WHERE id = 2", "another key", "version 1", "key 1")
    write_keys(server.keys, KEYS)
    server.restart(key_options(server.keys, "--file-key-management-encryption-algorithm=AES_CTR"))
    fails(server, "SELECT b FROM e.t WHERE id = 2", "another key", "algorithm")
    server.restart(key_options(server.keys))
    expect_values(server, "t", {1: 50000, 2: 50000})


def test_check_table_names_rows_whose_key_is_gone(encrypted):
    server = encrypted("encryption_check", "--innodb-encryption-threads=0")
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("SET GLOBAL innodb_encrypt_tables = ON")
    insert(server, "t", 1, 50000)
    server.restart([])
    answer = server.query("CHECK TABLE e.t EXTENDED")
    assert any("is not available" in row[3] for row in answer), answer
    server.restart(key_options(server.keys))
    assert server.query("CHECK TABLE e.t EXTENDED")[-1][3] == "OK"


@pytest.mark.parametrize("algorithm", ["AES_CBC", "AES_CTR"])
def test_every_size_in_both_algorithms(encrypted, algorithm):
    server = encrypted("encryption_sizes", f"--file-key-management-encryption-algorithm={algorithm}")
    server.query(
        "CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES INLINE_SIZE=0 PREFIX_SIZE=0 "
        "PART_SIZE=512"
    )
    sizes = [*range(1, 40), *range(500, 540), 1023, 1024, 1025, 4095, 4096, 65536, 65537]
    rows = [(size, value(size, size)) for size in sizes]
    connection = server.connect("e", autocommit=False)
    with connection.cursor() as cursor:
        for row in rows:
            cursor.execute("INSERT INTO t (id, b) VALUES (%s, %s)", row)
        connection.commit()
    connection.close()
    assert list(server.query("SELECT id, b FROM e.t ORDER BY id")) == rows
    server.kill()
    server.start()
    assert list(server.query("SELECT id, b FROM e.t ORDER BY id")) == rows
    for row in (1, 500, 65537):
        assert server.query("SELECT SUBSTRING(b, 2, 30) FROM e.t WHERE id = %s", (row,)) == ((value(row, row)[1:31],),)


def test_rotation(own_server):
    """debug_key_management: one key whose version the test sets."""
    server = own_server("encryption_rotation", "--plugin-load-add=debug_key_management", "--innodb-encrypt-tables=ON")
    server.query("CREATE DATABASE e")
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for version in (1, 2, 7):
        server.query(f"SET GLOBAL debug_key_management_version = {version}")
        insert(server, "t", version, 300000)
    assert keys_of(server, "t") == [(1, 1), (1, 2), (1, 7)], "new values take the latest version"
    expect_values(server, "t", {version: 300000 for version in (1, 2, 7)})
    server.kill()
    server.options.append("--debug-key-management-version=7")
    server._new_private_server()
    server.start()
    expect_values(server, "t", {version: 300000 for version in (1, 2, 7)})
    server.query("ALTER TABLE e.t FORCE")
    assert keys_of(server, "t") == [(1, 7)], "the documented way to leave old versions behind"
    expect_values(server, "t", {version: 300000 for version in (1, 2, 7)})


def encryption_of(server, table):
    """(ENCRYPTION, PLAIN_BYTES, ENCRYPTED_BYTES, OLDEST_KEY_VERSION) as QUARRY_TABLES has them."""
    return server.query(
        "SELECT encryption, plain_bytes, encrypted_bytes, oldest_key_version FROM information_schema.quarry_tables "
        "WHERE table_schema = 'e' AND table_name = %s AND state = 'BOUND'",
        (table,),
    )[0]


def test_gc_encrypts_and_rotates(own_server):
    """What was written plain, and under old keys, is encrypted by mark passes; QUARRY_TABLES says when it is done."""
    options = ["--plugin-load-add=debug_key_management", "--quarry-gc=OFF", "--innodb-encryption-rotate-key-age=2"]
    server = own_server("encryption_gc", *options)
    server.query("CREATE DATABASE e")
    server.query("CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY CODEC=lz4 PREFIX_SIZE=20")
    sizes = {1: 5000, 2: 70000, 3: 3 << 20}
    for row, size in sizes.items():
        insert(server, "t", row, size)
    assert encryption_of(server, "t")[0] == "PLAIN"
    Gc(server).run_well()
    assert encryption_of(server, "t")[0] == "PLAIN", "it was not asked for"
    server.query("SET GLOBAL innodb_encrypt_tables = ON")
    insert(server, "t", 4, 9000)
    sizes[4] = 9000
    encryption, plain, encrypted, oldest = encryption_of(server, "t")
    assert (encryption, oldest) == ("PARTLY", 1) and plain > 0 and encrypted > 0
    Gc(server).run_well()
    encryption, plain, encrypted, oldest = encryption_of(server, "t")
    assert (encryption, plain, oldest) == ("ENCRYPTED", 0, 1) and encrypted > 0
    expect_values(server, "t", sizes)
    assert keys_of(server, "t") == [(1, 1)]
    for version, expected in ((2, 1), (3, 3)):  # older by two
        server.query(f"SET GLOBAL debug_key_management_version = {version}")
        Gc(server).run_well()
        assert encryption_of(server, "t")[3] == expected
    assert keys_of(server, "t") == [(1, 3)]
    server.kill()
    server.options.append("--debug-key-management-version=3")
    server._new_private_server()
    server.start()
    expect_values(server, "t", sizes)
    assert encryption_of(server, "t")[0] == "ENCRYPTED"
    assert server.query("CHECK TABLE e.t EXTENDED")[0][2:] == ("status", "OK")


def test_a_note_says_when_only_one_side_is_encrypted(encrypted):
    server = encrypted("encryption_sides", "--innodb-encrypt-log=OFF")

    def notes(options):
        return warnings_of(server, f"CREATE OR REPLACE TABLE n (id INT, b LONGBLOB) ENGINE=QUARRY {options}")

    (note,) = notes("ENCRYPTED=YES")
    assert "its long values are encrypted; InnoDB's redo log, with its short values and prefixes, may be plain" in note
    assert notes("") == []
    server.restart(key_options(server.keys, "--innodb-encrypt-log=ON", "--innodb-encrypt-tables=ON"))
    assert notes("") == []
    server.query("SET GLOBAL innodb_file_per_table = OFF")
    (note,) = notes("")
    assert "innodb_file_per_table=OFF" in note


def test_tables_of_different_keys_do_not_change_places(encrypted):
    server = encrypted("encryption_exchange")
    server.query(
        "CREATE TABLE e.p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY ENCRYPTED=YES "
        "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100))"
    )
    for name, option in (("same", "ENCRYPTED=YES"), ("plain", ""), ("other", "ENCRYPTED=YES ENCRYPTION_KEY_ID=2")):
        server.query(f"CREATE TABLE e.{name} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY {option}")
        insert(server, name, 7, 9000)
    for name in ("plain", "other"):
        fails(server, f"ALTER TABLE e.p EXCHANGE PARTITION p0 WITH TABLE e.{name}")
    server.query("ALTER TABLE e.p EXCHANGE PARTITION p0 WITH TABLE e.same")
    expect_values(server, "p", {7: 9000})


def test_other_threads_decrypt_what_a_scan_reads_ahead(encrypted):
    server = encrypted("ahead", "--quarry-recent-cache-bytes=0")
    options = "ENCRYPTED=YES ENCRYPTION_KEY_ID=2 CODEC=lz4 PART_SIZE=8192"
    server.query(f"CREATE TABLE e.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY {options}")
    for row in range(40):
        server.query("INSERT INTO e.t VALUES (%s, %s)", (row, payload(("ahead", row), 100_000)))
    server.restart()
    rows = server.query("SELECT id, b FROM e.t ORDER BY id")
    assert rows == tuple((row, payload(("ahead", row), 100_000)) for row in range(40))
    counts = {name: int(number) for name, number in server.status("quarry\\_read\\_ahead%").items()}
    assert counts["quarry_read_ahead_values"] >= 5 and counts["quarry_read_ahead_unused"] == 0
