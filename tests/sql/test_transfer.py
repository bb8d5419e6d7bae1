"""Values on their way in and out: dump, restore, LOAD DATA, INTO OUTFILE, character sets, checksums."""

from harness.server import ENGINE
from harness.values import payload, text

TABLE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB, v LONGTEXT, j JSON) ENGINE={e}"


def fill(twin, rows=24):
    sizes = [0, 1, 4096, 4097, 10000, 66000]
    for row in range(rows):
        twin.run(
            "INSERT INTO t (b, v, j) VALUES (%s, %s, %s)",
            (
                payload(row, sizes[row % 6]),
                None if row % 7 == 6 else text(row, sizes[(row + 1) % 6]),
                '["%s"]' % text(row, row * 300),
            ),
        )


def test_dump_and_restore(twin):
    twin.run(TABLE)
    fill(twin)
    server, schema = twin.server, twin.under_test
    checksum = server.query(f"CHECKSUM TABLE {schema}.t")[0][1]
    for options in (
        ["--hex-blob", "--single-transaction"],
        ["--single-transaction", "--quick", "--default-character-set=binary"],
        ["--hex-blob", "--skip-extended-insert", "--lock-tables"],
    ):
        dump = server.client_tool("mariadb-dump", "--max-allowed-packet=1G", *options, schema)
        assert f"ENGINE={ENGINE}".encode() in dump
        path = server.directory / "dump.sql"
        path.write_bytes(dump)
        server.query(f"DROP DATABASE {schema}")
        server.query(f"CREATE DATABASE {schema}")
        with path.open("rb") as stream:
            server.client_tool("mariadb", "--max-allowed-packet=1G", "--binary-mode", schema, stdin=stream)
        path.unlink()
        assert server.query(f"CHECKSUM TABLE {schema}.t")[0][1] == checksum, options
    twin.connections.clear()
    twin.check()


def test_dump_tab_and_import(twin):
    twin.run(TABLE)
    fill(twin)
    server, schema = twin.server, twin.under_test
    directory = server.files / "tab"
    directory.mkdir(exist_ok=True)
    server.client_tool("mariadb-dump", f"--tab={directory}", "--default-character-set=binary", schema, "t")
    server.query(f"TRUNCATE TABLE {schema}.t")
    server.client_tool("mariadb-import", "--default-character-set=binary", "--local", schema, str(directory / "t.txt"))
    twin.check()


def test_load_data_and_into_outfile(twin):
    twin.run(TABLE)
    fill(twin)
    directory = twin.server.files
    for schema in (twin.under_test, twin.twin):
        path = directory / f"{schema}.csv"
        path.unlink(missing_ok=True)
        twin.server.query(
            f"SELECT * INTO OUTFILE '{path}' CHARACTER SET binary FIELDS TERMINATED BY ',' ENCLOSED BY '\"' FROM "
            f"{schema}.t ORDER BY id"
        )
        twin.server.query(f"DELETE FROM {schema}.t WHERE id % 2 = 0")
        for mode in ("REPLACE", "IGNORE"):
            twin.server.query(
                f"LOAD DATA INFILE '{path}' {mode} INTO TABLE {schema}.t CHARACTER SET binary FIELDS TERMINATED BY "
                f"',' ENCLOSED BY '\"' "
                "(id, b, v, j) SET b = CONCAT(b, 'loaded')"
            )
        twin.server.query(f"TRUNCATE TABLE {schema}.t")
        twin.server.query(
            f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {schema}.t CHARACTER SET binary FIELDS TERMINATED BY ',' "
            f"ENCLOSED BY '\"'"
        )
    one, other = (directory / f"{schema}.csv" for schema in (twin.under_test, twin.twin))
    assert one.read_bytes() == other.read_bytes()
    twin.check()


def test_into_dumpfile_and_load_file(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")
    value = payload("dumpfile", 3_000_000)
    twin.run("INSERT INTO t VALUES (1, %s)", (value,))
    path = twin.server.files / "one.bin"
    path.unlink(missing_ok=True)
    twin.server.query(f"SELECT b INTO DUMPFILE '{path}' FROM {twin.under_test}.t")
    assert path.read_bytes() == value
    twin.run(f"INSERT INTO t VALUES (2, LOAD_FILE('{path}'))")
    twin.check()


def test_checksum_table_extended(twin):
    twin.run(TABLE)
    fill(twin)
    twin.run("CHECKSUM TABLE t EXTENDED")
    before = twin.rows("CHECKSUM TABLE t")
    twin.run("UPDATE t SET b = CONCAT(LEFT(b, 60000), 'x', SUBSTRING(b, 60002)) WHERE id = 6")
    assert twin.rows("CHECKSUM TABLE t") != before


def test_character_sets(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT CHARACTER SET latin1, u LONGTEXT CHARACTER SET utf8mb4, w "
        "LONGTEXT CHARACTER SET utf16, "
        "c LONGTEXT CHARACTER SET ucs2, m MEDIUMTEXT CHARACTER SET cp1251, KEY (u(10)), KEY (w(7))) ENGINE={e}"
    )
    latin, cyrillic, wide = "äöüß€abc", "Привет мир", "Ω𝄞語abc😀"
    for row in range(20):
        times = [0, 1, 500, 2000, 9000][row % 5]
        twin.run(
            "INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)",
            (row, latin * times, wide * times, wide * times, cyrillic * times, cyrillic * times),
        )
    for sql in (
        "SELECT id, a, u, w, c, m FROM t",
        "SELECT id, CHAR_LENGTH(a), LENGTH(u), CHAR_LENGTH(w), LENGTH(w), LENGTH(c), CHAR_LENGTH(m) FROM t",
        "SELECT id, SUBSTRING(u, 3000, 7), SUBSTRING(w, 2000, 5), RIGHT(c, 4), LEFT(m, 30) FROM t",
        "SELECT id FROM t WHERE u = CONVERT(w USING utf8mb4)",
        "SELECT id FROM t WHERE c = m",
        "SELECT id, CONCAT(u, CONVERT(w USING utf8mb4)) FROM t",
        "SELECT id, UPPER(u), LOWER(m) FROM t",
        "SELECT id FROM t WHERE w LIKE 'Ω%'",
    ):
        twin.run(sql)
    twin.run("INSERT INTO t (id, a) VALUES (100, %s)", ("語" * 5000,), error=1366)
    twin.run("INSERT INTO t (id, u) SELECT id + 200, CONCAT(a, CONVERT(m USING utf8mb4)) FROM t")
    twin.run("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4")
    twin.check()
    twin.run("ALTER TABLE t MODIFY u LONGTEXT CHARACTER SET ucs2", error=1366)
    twin.run("ALTER TABLE t MODIFY a LONGBLOB, MODIFY m LONGTEXT CHARACTER SET utf32")
    twin.check()


def test_max_allowed_packet_refuses_and_nothing_changes(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")
    twin.run("INSERT INTO t VALUES (1, REPEAT('a', 10000000))")
    twin.run("SELECT LENGTH(CONCAT(b, b)) FROM t")
    twin.run("UPDATE t SET b = REPEAT(b, 200)", error="any")
    twin.check()
