"""quarry-backup of an idle server: what comes back, what is shared, what is refused."""

import json
import os
import shutil
import subprocess

import pymysql
import pytest
from drill import allocated, check_all, checksums
from harness.heads import make_trailer
from quarry_server.run import run_or_raise
from quarry_server.server import HOME_NAME, tool


def fill(server, schema="d", rows=40):
    server.query(f"CREATE DATABASE {schema}")
    server.query(
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB, s LONGTEXT CODEC=zstd, KEY (s(20))) "
        "ENGINE=QUARRY"
    )
    server.query(
        f"CREATE TABLE {schema}.p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 3"
    )
    server.query(f"CREATE TABLE {schema}.plain (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB")
    add(server, schema, 0, rows)


def add(server, schema, first, rows):
    for table in ("t", "p", "plain"):
        server.query(
            f"INSERT INTO {schema}.{table} (id, b) SELECT seq, IF(seq % 5 = 0, NULL, REPEAT(SHA2(seq, 512), 10 * seq))"
            f" FROM {schema}.seq_{first + 1}_to_{first + rows}"
        )
    server.query(f"UPDATE {schema}.t SET s = CONCAT(id, REPEAT(' text that compresses', 500)) WHERE id > {first}")


def test_full(own_server, drill):
    server = own_server("backup-full")
    fill(server)
    server.query("DROP TABLE d.plain")
    before = checksums(server)
    server.query("CREATE USER saver@localhost IDENTIFIED BY 'p w'")
    server.query("GRANT RELOAD, PROCESS, LOCK TABLES, BINLOG MONITOR ON *.* TO saver@localhost")
    options = drill.path("client.cnf")
    options.write_text(f"[client]\nsocket={server.socket}\nuser=saver\npassword='p w'\n")
    said = drill.run("backup", f"--defaults-file={options}", f"--target-dir={drill.path('full')}")
    assert "complete" in said and "full" in said
    drill.verify("full")
    drill.prepare("full")
    drill.verify("full")
    fill(server, "later")
    server.query("DELETE FROM d.t")
    copy = own_server("backup-full-copy", start=False)
    drill.restore_to(copy, "full")
    server.stop()
    copy.start()
    assert checksums(copy) == before
    check_all(copy)
    # It is a server like any other.
    fill(copy, "more")
    add(copy, "more", 1000, 5)
    after = checksums(copy)
    copy.restart()
    assert checksums(copy) == after


def test_chain_of_two_incrementals(own_server, drill):
    # Small segments: some are sealed and stay as they are.
    server = own_server("backup-chain", "--quarry-segment-size=1M")
    fill(server, rows=60)
    server.restart()
    drill.backup(server, "full")
    add(server, "d", 1000, 30)
    server.query("DELETE FROM d.t WHERE id % 3 = 0")
    server.query("ALTER TABLE d.p TRUNCATE PARTITION p1")
    drill.backup(server, "one", base="full")
    server.query("UPDATE d.t SET b = REPEAT('new', 70000) WHERE id % 4 = 0")
    server.query("CREATE TABLE d.young (b LONGBLOB) ENGINE=QUARRY AS SELECT REPEAT('y', 100000) AS b")
    server.query("DROP TABLE d.plain")
    before = checksums(server)
    drill.backup(server, "two", base="one")
    one, two = drill.catalog("one"), drill.catalog("two")
    assert one["base"]["id"] == drill.catalog("full")["id"] and two["base"]["id"] == one["id"]
    linked = [entry["name"] for entry in two["quarry_files"] if entry["linked"]]
    assert linked, "nothing was unchanged"
    for name in linked:
        paths = [drill.path(backup) / "quarry" / name for backup in ("one", "two")]
        assert os.path.samefile(*paths)
    for backup in ("full", "one", "two"):
        drill.verify(backup)
    assert "not prepared yet" in drill.prepare("full", increment="one", fails=True)
    drill.prepare("full")
    assert "order" in drill.prepare("full", increment="two", fails=True)
    drill.prepare("full", increment="one")
    assert "applied already" in drill.prepare("full", increment="one", fails=True)
    drill.prepare("full", increment="two")
    # The chain's parts are not needed any more.
    shutil.rmtree(drill.path("one"))
    shutil.rmtree(drill.path("two"))
    drill.verify("full")
    copy = own_server("backup-chain-copy", start=False)
    drill.restore_to(copy, "full")
    server.stop()
    copy.start()
    assert checksums(copy) == before
    check_all(copy)


def test_restore_of_the_middle_of_a_chain(own_server, drill):
    server = own_server("backup-middle")
    fill(server)
    drill.backup(server, "full")
    add(server, "d", 1000, 30)
    before = checksums(server)
    drill.backup(server, "one", base="full")
    server.query("TRUNCATE d.t")
    drill.backup(server, "two", base="one")
    drill.prepare("full")
    drill.prepare("full", increment="one")
    copy = own_server("backup-middle-copy", start=False)
    drill.restore_to(copy, "full")
    server.stop()
    copy.start()
    assert checksums(copy) == before


def test_an_increment_upon_what_the_server_was_before_it_was_restored(own_server, drill):
    """It went on from an older state: what it wrote since then, mariadb-backup would take for what the base has."""
    server = own_server("backup-former")
    fill(server)
    drill.backup(server, "full")
    add(server, "d", 1000, 30)
    drill.backup(server, "one", base="full")
    drill.prepare("full")
    copy = own_server("backup-former-copy", start=False)
    drill.restore_to(copy, "full")
    server.stop()
    copy.start()
    said = drill.backup(copy, "two", base="one", fails=True)
    assert "is not a backup of what this server holds" in said and "full" in said, said
    last_lsn, at = int(drill.catalog("one")["last_lsn"]), 2000
    while int(copy.status("innodb_lsn_current")["innodb_lsn_current"]) <= last_lsn:
        add(copy, "d", at, 10)
        at += 1000
    assert "the server was restored since" in drill.backup(copy, "two", base="one", fails=True)
    assert not drill.path("two").exists()
    drill.backup(copy, "new")
    drill.backup(copy, "newer", base="new")


def test_data_paths(own_server, drill):
    paths = [drill.path(f"drive{number}") for number in (1, 2)]
    for path in paths:
        path.mkdir()
    server = own_server("backup-paths", f"--quarry-data-paths={paths[0]};{paths[1]}")
    fill(server)
    before = checksums(server)
    assert all(list(path.glob("quarry/*/*.qseg")) for path in paths)
    drill.backup(server, "full")
    drill.prepare("full")
    drill.verify("full")
    places = [drill.path(f"new{number}") for number in (1, 2)]
    for path in places:
        path.mkdir()
    copy = own_server("backup-paths-copy", start=False)
    assert "2 data paths" in drill.restore_to(copy, "full", fails=True)
    assert str(paths[0]) in drill.restore_to(copy, "full", f"--quarry-data-paths={places[0]}", fails=True)
    drill.restore_to(copy, "full", f"--quarry-data-paths={places[0]};{places[1]}")
    # The source goes on beside its copy, and neither touches the other's files.
    copy.start()
    with pytest.raises(pymysql.err.MySQLError, match="quarry_data_paths must name"):
        copy.query("SELECT MD5(b) FROM d.t")
    copy.restart([f"--quarry-data-paths={places[0]};{places[1]}"])
    assert checksums(copy) == before
    check_all(copy)
    copy.query("DROP DATABASE d")
    copy.stop()
    assert checksums(server) == before
    check_all(server)


def test_refusals(own_server, drill):
    server = own_server("backup-refusals")
    fill(server, rows=5)
    drill.backup(server, "full")
    # Never over anything.
    assert "not empty" in drill.backup(server, "full", fails=True)
    assert "no backup of quarry-backup" in drill.backup(server, "x", base="..", fails=True)
    assert "--no-lock" in drill.backup(server, "x", more=["--", "--no-lock"], fails=True)
    assert not drill.path("x").exists()
    # In order.
    copy = own_server("backup-refusals-copy", start=False)
    assert "not prepared" in drill.restore_to(copy, "full", fails=True)
    drill.backup(server, "one", base="full")
    assert "full backup" in drill.prepare("one", fails=True)
    assert "not prepared" in drill.restore_to(copy, "one", fails=True)
    shutil.copytree(drill.path("full"), drill.path("again"))
    drill.prepare("full")
    assert "not empty" in drill.restore_to(server, "full", fails=True)
    assert "prepared already" in drill.prepare("full", fails=True)
    assert "has been prepared" in drill.backup(server, "x", base="full", fails=True)
    copy.datadir.mkdir(parents=True)
    (copy.datadir / "something").write_text("of somebody")
    assert "not empty" in drill.restore_to(copy, "full", fails=True)
    (copy.datadir / "something").unlink()
    # A damaged file is found, by verify and at the latest by restore.
    for damaged in ("full", "again"):
        victim = max((drill.path(damaged) / "quarry" / "home" / "stores").glob("*/*.qseg"), key=os.path.getsize)
        with open(victim, "r+b") as stream:
            stream.seek(5000)
            byte = stream.read(1)
            stream.seek(5000)
            stream.write(bytes([byte[0] ^ 1]))
        assert f"{victim}: the checksum is wrong" in drill.verify(damaged, fails=True)
    assert f"{victim.name} is damaged" in drill.restore_to(copy, "full", fails=True)
    assert not (copy.datadir / HOME_NAME).exists()
    # So is a damaged catalog.
    catalog = json.loads((drill.path("again") / "backup.json").read_text())
    catalog["kind"] = "incremental"
    (drill.path("again") / "backup.json").write_text(json.dumps(catalog))
    assert "damaged" in drill.verify("again", fails=True)


@pytest.mark.parametrize("line", ["databases-exclude=d", "tables=d.plain"])
def test_an_option_file_that_leaves_tables_out(own_server, drill, line):
    """mariadb-backup does what its section asks for, and ends with 0."""
    server = own_server("backup-partial")
    fill(server, rows=5)
    options = drill.path("client.cnf")
    options.write_text(f"[client]\nsocket={server.socket}\nuser={server.account}\n[mariadb-backup]\n{line}\n")
    said = drill.run("backup", f"--defaults-file={options}", f"--target-dir={drill.path('full')}", fails=True)
    assert "partial = Y" in said and "[mariadb-backup]" in said, said
    assert (drill.path("full") / "INCOMPLETE").exists() and not (drill.path("full") / "backup.json").exists()


CLIENT_SETTINGS = ["safe-updates\nselect-limit=3", "table", "vertical", "auto-vertical-output", "html", "xml", "raw", "delimiter=//"]


def test_settings_of_the_client_leave_nothing_out(own_server, drill):
    """With safe-updates in ~/.my.cnf a SELECT ends after some rows, and without a word."""
    server = own_server("backup-client")
    fill(server)
    options = drill.path("client.cnf")
    for number, lines in enumerate(["", *CLIENT_SETTINGS]):
        name = f"backup-{number}"
        options.write_text(f"[client]\nsocket={server.socket}\nuser={server.account}\n[mysql]\n{lines}\n")
        words = drill.command("backup", f"--defaults-file={options}", f"--target-dir={drill.path(name)}")
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, (lines, done)
        copied = {entry["name"] for entry in drill.catalog(name)["quarry_files"] if entry["name"].endswith(".qseg")}
        assert copied == {f"home/stores/{path.parent.name}/{path.name}" for path in server.segments()}, lines
        drill.verify(name)


def test_holes_stay_holes(own_server, drill):
    server = own_server("backup-holes")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t VALUES (1, REPEAT('a', 8000000)), (2, REPEAT('b', 100000))")
    before = checksums(server)
    segment = server.segments()[0]
    with open(segment, "r+b") as stream:
        stream.truncate(segment.stat().st_size + 256 * 1024 * 1024)
    drill.backup(server, "full")
    copied = drill.path("full") / "quarry" / "home" / "stores" / segment.parent.name / segment.name
    assert copied.stat().st_size == segment.stat().st_size
    assert allocated(drill.path("full") / "quarry") < 32 * 1024 * 1024
    drill.verify("full")
    drill.prepare("full")
    copy = own_server("backup-holes-copy", start=False)
    drill.restore_to(copy, "full")
    assert allocated(copy.datadir / HOME_NAME) < 32 * 1024 * 1024
    copy.start()
    assert checksums(copy) == before


def test_cold_copy(own_server, drill):
    place, moved = drill.path("drive"), drill.path("moved")
    place.mkdir()
    server = own_server("backup-cold", f"--quarry-data-paths={place}")
    fill(server)
    before = checksums(server)
    server.stop()
    copy = own_server("backup-cold-copy", f"--quarry-data-paths={moved}", start=False)
    for source, target in ((server.datadir, copy.datadir), (place, moved)):
        run_or_raise(["cp", "-a", "--sparse=always", source, target])
    shutil.rmtree(place)
    copy.start()
    assert checksums(copy) == before
    check_all(copy)
    assert "was last opened by another data directory" in copy.error_log()
    copy.restart(options=[f"--quarry-data-paths={moved}", "--quarry-adopt-data-paths=ON"])
    copy.restart(options=[f"--quarry-data-paths={moved}"])
    copy.query("UPDATE d.t SET b = CONCAT(b, 'x')")
    check_all(copy)


def test_mariadb_backup_alone_is_found_out(own_server, drill):
    server = own_server("backup-alone")
    fill(server, rows=10)
    target = drill.path("alone")
    program = [tool("mariadb-backup"), "--no-defaults"]
    for arguments in (
        ["--backup", f"--target-dir={target}", f"--socket={server.socket}", f"--user={server.account}"],
        ["--prepare", f"--target-dir={target}"],
    ):
        run_or_raise([*program, *arguments])
    assert not (target / HOME_NAME).exists(), "mariadb-backup has learned something"
    assert "a backup starts without quarry-backup" in server.error_log()
    copy = own_server("backup-alone-copy", "--quarry=ON", start=False)
    run_or_raise([*program, "--copy-back", f"--target-dir={target}", f"--datadir={copy.datadir}"])
    copy.start()
    log = copy.error_log()
    assert "2 QUARRY tables are here (the first: d/p)" in log and "quarry-backup" in log, log[-3000:]
    assert not (copy.datadir / HOME_NAME).exists()
    with pytest.raises(pymysql.err.MySQLError, match="Unknown storage engine 'QUARRY'"):
        copy.query("SELECT MD5(b) FROM d.t")
    assert copy.query("SELECT COUNT(*) FROM d.plain")[0][0] == 10
    # Somebody who wants to go on without the values says so.
    copy.stop()
    (copy.datadir / HOME_NAME).mkdir()
    (copy.datadir / HOME_NAME / "WITHOUT_VALUES").touch()
    copy.start()
    assert copy.query("SELECT COUNT(*) FROM d.t")[0][0] == 10
    with pytest.raises(pymysql.err.MySQLError, match="is lost, or never was this table's"):
        copy.query("SELECT MD5(b) FROM d.t")


def test_bytes_that_end_like_a_head(own_server, drill):
    """A user's own come back as they are, raw and out of line, from a whole backup and from an increment."""
    own = [make_trailer(), b"x" * 300 + make_trailer(), b"y" * 9000 + make_trailer(store=1)]
    server = own_server("backup-own-bytes")
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    for row, value in enumerate(own):
        server.query("INSERT INTO d.t VALUES (%s, %s)", (row, value))
    drill.backup(server, "full")
    for row, value in enumerate(own):
        server.query("INSERT INTO d.t VALUES (%s, %s)", (row + 10, value))
    server.query("UPDATE d.t SET b = CONCAT('z', b) WHERE id = 1")
    drill.backup(server, "more", base="full")
    before = server.query("SELECT id, b FROM d.t ORDER BY id")
    assert [value for _, value in before] == [own[0], b"z" + own[1], own[2], *own]
    drill.prepare("full")
    drill.prepare("full", increment="more")
    copy = own_server("backup-own-bytes-copy", start=False)
    drill.restore_to(copy, "full")
    server.stop()
    copy.start()
    assert copy.query("SELECT id, b FROM d.t ORDER BY id") == before
    check_all(copy)
