"""quarry-advisor against a private server: what it reads, what it refuses, that what it prints runs, and that it writes nothing."""

import io
import json
import random
import re
import subprocess

import pymysql
import pytest
from rich.console import Console

from quarry_lab import advisor_trial as trial
from quarry_advisor import cli
from quarry_advisor.catalog import read_table
from quarry_advisor.errors import AdvisorError
from quarry_advisor.sampler import NEIGHBOURS, Limits, Sampler
from quarry_advisor.target import Address, Target
from quarry_server import private
from quarry_server.server import REPOSITORY, PrivateServer, SqlError

KIB = 1024
WRITING = re.compile(r"\b(INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|TRUNCATE|LOAD|CALL|GRANT|LOCK|SET GLOBAL|OPTIMIZE|ANALYZE)\b", re.IGNORECASE)

TITLES = ("Segments and stores", "How a commit becomes durable", "Mark passes", "Parts, ranges, codecs", "Heads in the row")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("advisor") / "server"
    options = ["--performance-schema=ON", "--general-log=ON", f"--general-log-file={directory}/general.log", "--innodb-buffer-pool-size=64M",
               "--max-allowed-packet=64M"]
    with PrivateServer(directory, options=options) as running:
        connection = pymysql.connect(unix_socket=str(running.socket), user=private.account(), charset="utf8mb4")
        with connection.cursor() as cursor:
            fill(cursor)
        connection.close()
        yield running


def fill(cursor) -> None:
    """Real files (this repository's own), small documents, and tables of every shape that is sampled in another way."""
    rng = random.Random(1)
    cursor.execute("CREATE DATABASE app CHARACTER SET utf8mb4")
    cursor.execute("USE app")
    cursor.execute("CREATE TABLE app.files (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(200) NOT NULL, data LONGBLOB NOT NULL COMMENT 'the file')")
    for path in sorted(path for folder in ("src", "plugin", "docs", "tests/sql") for path in (REPOSITORY / folder).rglob("*.*") if path.is_file()):
        cursor.execute("INSERT INTO app.files (name, data) VALUES (%s, _binary %s)", (str(path.relative_to(REPOSITORY)), path.read_bytes()))
    cursor.execute("INSERT INTO app.files (name, data) VALUES ('incompressible', _binary %s)", (rng.randbytes(2 << 20),))
    cursor.execute("CREATE TABLE app.documents (id INT PRIMARY KEY AUTO_INCREMENT, at DATETIME, body JSON)")
    cursor.executemany("INSERT INTO app.documents (at, body) VALUES (NOW(), %s)",
                       [(json.dumps({"id": i, "title": rng.choice(TITLES), "tags": rng.choices(TITLES, k=i % 9), "price": rng.random()}),) for i in range(500)])
    cursor.execute("CREATE TABLE app.keyed (tenant SMALLINT, name VARCHAR(20), at DATETIME, v MEDIUMTEXT, PRIMARY KEY (tenant, name, at))")
    cursor.execute("INSERT INTO app.keyed SELECT seq % 7, CONCAT('name', LPAD(seq, 5, '0')), NOW(), REPEAT('x', seq) FROM seq_0_to_2999")
    cursor.execute("CREATE TABLE app.keyless (v BLOB, t TEXT)")
    cursor.execute("INSERT INTO app.keyless SELECT REPEAT('x', seq % 900), NULL FROM seq_0_to_2999")
    cursor.execute("CREATE TABLE app.parted (id INT, v MEDIUMBLOB, w LONGTEXT, PRIMARY KEY (id)) PARTITION BY RANGE (id) "
                   "(PARTITION p0 VALUES LESS THAN (1000), PARTITION p1 VALUES LESS THAN (1500), PARTITION p2 VALUES LESS THAN MAXVALUE)")
    cursor.execute("INSERT INTO app.parted SELECT seq, REPEAT('p', 20000), REPEAT('é', 3000) FROM seq_0_to_2999_step_3")
    cursor.execute("CREATE TABLE app.huge (id BIGINT PRIMARY KEY, v LONGBLOB)")
    cursor.execute("INSERT INTO app.huge SELECT seq * seq, REPEAT('h', 1048576) FROM seq_0_to_39")
    cursor.execute("CREATE TABLE app.empty (id INT PRIMARY KEY, v BLOB)")
    cursor.execute("CREATE TABLE app.plain (id INT PRIMARY KEY, v VARCHAR(10))")
    cursor.execute("INSERT INTO app.plain VALUES (1, 'x')")
    cursor.execute("CREATE TABLE app.tiny (id INT PRIMARY KEY, v TINYBLOB)")
    cursor.execute("INSERT INTO app.tiny VALUES (1, 'x')")
    cursor.execute("CREATE TABLE app.versioned (id INT PRIMARY KEY, v BLOB) WITH SYSTEM VERSIONING")
    cursor.execute("INSERT INTO app.versioned VALUES (1, 'x')")
    cursor.execute("CREATE VIEW app.seen AS SELECT * FROM app.files")
    cursor.execute("CREATE USER reader IDENTIFIED BY 'secret'")
    cursor.execute("GRANT SELECT ON app.files TO reader")
    cursor.execute("ANALYZE TABLE app.keyed, app.keyless, app.parted, app.huge, app.documents, app.files")


def advise(server, capsys, *arguments, user: str | None = None) -> tuple[int, dict | None, str]:
    """Exit status, the document, and what it said on standard error."""
    status = cli.main([*arguments, "--socket", str(server.socket), "--user", user or private.account(), "--json", "-"])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else None, err


def sample(server, table: str, **limits):
    with Target(Address(socket=str(server.socket), user=private.account()), 30) as target:
        shape = read_table(target, "app", table, [])
        return Sampler(target, shape, Limits(**limits), 1).take()


# --- advice on real tables ---
def test_real_files(server, capsys):
    status, found, _ = advise(server, capsys, "app.files")
    assert status == 0 and found["sample"]["complete"]
    column = found["columns"][0]
    assert column["codec"] in ("lz4", "zstd") and 4096 <= column["inline_size"] <= 8126 and not column["varbinary"]["would_do"]
    assert sum(octave["values"] for octave in column["histogram"]) == found["table"]["rows"] == int(server.value("SELECT COUNT(*) FROM app.files"))
    assert column["percentiles"]["100"] == 2 << 20
    assert found["verdict"]["worth_it"] and found["estimate"]["disk_then_bytes"] < found["estimate"]["pages_now_bytes"]


def test_small_documents_have_nothing_to_gain(server, capsys):
    status, found, _ = advise(server, capsys, "app.documents")
    assert status == 0 and not found["verdict"]["worth_it"]
    column = found["columns"][0]
    assert (column["inline_size"], column["share_in_row"], column["codec"]) == (4096, 1.0, "none")
    assert found["statements"]["alter"].endswith("ENGINE=QUARRY")


@pytest.mark.parametrize("table", ["files", "documents", "keyed", "keyless", "parted"])
def test_the_printed_alter_runs_and_is_what_counts_afterwards(server, capsys, table):
    """On a copy, so that the tests do not meet each other's engine. The values are the same before and after."""
    server.sql(f"DROP TABLE IF EXISTS app.copy; CREATE TABLE app.copy LIKE app.{table}; INSERT INTO app.copy SELECT * FROM app.{table}; ANALYZE TABLE app.copy")
    checksum = server.rows("CHECKSUM TABLE app.copy")
    status, found, _ = advise(server, capsys, "app.copy")
    assert status == 0
    server.sql(found["statements"]["alter"])
    for batch in found["statements"]["batches"]:
        server.sql(batch)
    rows = server.rows("SELECT COLUMN_NAME, MANAGED, INLINE_SIZE, PART_SIZE, CODEC FROM information_schema.QUARRY_COLUMNS WHERE TABLE_NAME = 'copy'")
    advised = {c["column"]: c for c in found["columns"]}
    heaviest = max(advised.values(), key=lambda c: sum(o["values"] * o["from_bytes"] for o in c["histogram"]))
    for name, managed, inline, part, codec in rows:
        expected = heaviest if found["table"]["partitions"] else advised[name]
        assert (managed, int(inline), int(part), codec) == ("YES", expected["inline_size"], expected["part_size"], expected["codec"])
    assert len(rows) == len(advised) and server.rows("CHECKSUM TABLE app.copy") == checksum


def test_a_quarry_table_gets_other_options_and_is_written_anew(server, capsys):
    server.sql("USE app; CREATE TABLE app.already (id INT PRIMARY KEY, a BLOB INLINE_SIZE=10 CODEC=zstd, j JSON COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=99') ENGINE=QUARRY "
               "SELECT seq AS id, REPEAT('a', 2000) AS a, '[1]' AS j FROM seq_1_to_50")
    checksum = server.rows("CHECKSUM TABLE app.already")
    status, found, _ = advise(server, capsys, "app.already")
    assert status == 0
    server.sql(found["statements"]["alter"])
    assert server.rows("SELECT INLINE_SIZE, CODEC FROM information_schema.QUARRY_COLUMNS WHERE TABLE_NAME = 'already'") == [["4096", "none"]] * 2
    assert server.value("SELECT COALESCE(SUM(LIVE_BYTES), 0) FROM information_schema.QUARRY_TABLES WHERE TABLE_NAME = 'already' AND STATE = 'BOUND'") == "0"
    assert server.rows("CHECKSUM TABLE app.already") == checksum


def test_tables_for_people(server, capsys):
    assert cli.main(["app.files", "--socket", str(server.socket), "--user", private.account()]) == 0
    out = capsys.readouterr().out
    for text in ("Column data (longblob)", "█", "INLINE_SIZE", "What it would give (estimate)", "docs/performance.md, 'How fast'", "ALTER TABLE `app`.`files`"):
        assert text in out


def test_use_is_read_from_performance_schema(server, capsys):
    server.sql("SELECT COUNT(*) FROM app.keyed")
    _, found, _ = advise(server, capsys, "app.keyed")
    assert found["workload"]["source"] == "performance_schema" and found["workload"]["inserts"] == 3000 and found["workload"]["reads"] > 0


def test_use_is_unknown_when_nothing_counts(tmp_path, capsys):
    with PrivateServer(tmp_path / "server", plugin=None) as plain:
        plain.sql("CREATE DATABASE app; CREATE TABLE app.t (id INT PRIMARY KEY, v BLOB); INSERT INTO app.t VALUES (1, REPEAT('x', 100))")
        status, found, _ = advise(plain, capsys, "app.t")
        assert status == 0 and found["workload"]["source"] is None and found["workload"]["note"] == "performance_schema is off; userstat is off"
        assert any("no engine QUARRY" in note for note in found["notes"])
        status, _, err = advise(plain, capsys, "app.t", "--apply", "--yes")
        assert status == 2 and "no engine QUARRY" in err and plain.value("SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = 't'") == "InnoDB"


# --- sampling ---
@pytest.mark.parametrize("table, rows, how", [("keyed", 400, "the primary key (tenant, name, at)"), ("parted", 60, "the primary key (id)"),
                                              ("keyless", 400, "the first rows")])
def test_a_part_of_a_table_is_sampled_within_the_rows_asked_for(server, table, rows, how):
    found = sample(server, table, rows=rows)
    assert how in found.how and not found.complete
    assert rows / 3 < len(found.rows) <= rows + NEIGHBOURS
    if table == "keyed":  # lengths run from 0 to 2999: a sample of random places meets all of them
        sizes = [row.sizes[0] for row in found.rows]
        assert min(sizes) < 500 and max(sizes) > 2500 and 1000 < sum(sizes) / len(sizes) < 2000
    if table == "parted":
        assert {row.sizes for row in found.rows} == {(20000, 6000)}  # bytes, not characters


def test_a_whole_table_is_read_once(server):
    found = sample(server, "keyed", rows=10_000)
    assert found.complete and len(found.rows) == 3000 and sum(row.sizes[0] for row in found.rows) == sum(range(3000))


def test_bytes_are_limited(server):
    """40 values of 1 MiB: few neighbours at a place, and no place more when the limit is reached."""
    found = sample(server, "huge", read_bytes=6 << 20)
    assert found.stopped_by and len(found.rows) <= 10 and found.read_bytes <= 10 << 20
    found = sample(server, "huge", fetched_bytes=3 << 20)
    assert found.fetched_bytes <= 8 << 20


def test_time_is_limited(server):
    """A sample that may take a tenth of a second ends with what it has, or says that this is too little."""
    try:
        found = sample(server, "keyed", rows=700, seconds=0.1)
    except AdvisorError as error:
        assert "raise --sample-seconds" in str(error)
        return
    assert len(found.rows) >= 600 or found.stopped_by == "0.1 s"


def test_the_same_seed_takes_the_same_sample(server):
    first, second = (sample(server, "keyed", rows=200) for _ in range(2))
    assert first.rows == second.rows


# --- nothing is written ---
def test_the_servers_log_holds_no_writing_statement(server, capsys):
    log = server.directory / "general.log"
    start = log.stat().st_size
    for table in ("files", "documents", "keyed", "keyless", "parted", "huge"):
        assert advise(server, capsys, f"app.{table}", "--sample-rows", "100")[0] == 0
    with open(log, "rb") as stream:
        stream.seek(start)
        said = stream.read().decode("utf-8", "replace")
    statements = [line.split("\t", 2)[-1] for line in said.splitlines() if "Query\t" in line]
    assert len(statements) > 100 and "SET SESSION TRANSACTION READ ONLY" in said
    assert [statement for statement in statements if WRITING.search(statement.replace("SHOW CREATE TABLE", ""))] == []


def test_its_session_may_not_write(server):
    with Target(Address(socket=str(server.socket), user=private.account()), 30) as target:
        with pytest.raises(pymysql.MySQLError, match="READ ONLY"):
            target.rows("INSERT INTO app.plain VALUES (2, 'y')")
        target.renew()
        with pytest.raises(pymysql.MySQLError, match="READ ONLY"):
            target.rows("DELETE FROM app.plain")


# --- refused, with what is needed ---
@pytest.mark.parametrize("table, reason", [
    ("app.seen", "is a view: name the table"), ("app.empty", "has no rows"), ("app.plain", "has no BLOB, TEXT or JSON column"),
    ("app.tiny", "v: TINYBLOB or TINYTEXT"), ("app.missing", "doesn't exist"), ("missing.t", "doesn't exist"), ("mysql.db", "is a table of the server itself"),
    ("information_schema.TABLES", "is a table of the server itself")])
def test_what_cannot_be_advised_on_is_refused(server, capsys, table, reason):
    status, found, err = advise(server, capsys, table)
    assert (status, found) == (2, None) and reason in err and err.count("\n") == 1


def test_a_missing_column_names_those_there_are(server, capsys):
    status, _, err = advise(server, capsys, "app.keyless", "--column", "nix")
    assert status == 2 and "no BLOB, TEXT or JSON column 'nix' (it has: v, t)" in err
    assert [c["column"] for c in advise(server, capsys, "app.keyless", "--column", "v")[1]["columns"]] == ["v"]


def test_a_missing_privilege_is_named(server, capsys, monkeypatch):
    monkeypatch.setenv(cli.PASSWORD_VARIABLE, "secret")
    assert advise(server, capsys, "app.files", user="reader")[0] == 0
    status, _, err = advise(server, capsys, "app.keyed", user="reader")
    assert status == 2 and "GRANT SELECT ON `app`.`keyed` TO this account" in err
    monkeypatch.setenv(cli.PASSWORD_VARIABLE, "wrong")
    status, _, err = advise(server, capsys, "app.files", user="reader")
    assert status == 2 and "Needed: an account with SELECT" in err


def test_a_server_that_is_not_there_is_said(tmp_path, capsys):
    assert cli.main(["app.t", "--socket", str(tmp_path / "nothing")]) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert cli.main(["app.t", "--host", "127.0.0.1", "--port", "1"]) == 2
    assert "127.0.0.1:1 cannot be reached" in capsys.readouterr().err
    assert cli.main(["app.t", "--defaults-file", str(tmp_path / "no.cnf")]) == 2


# --- doing it ---
def test_apply_asks_for_a_yes_and_then_alters(server, capsys):
    server.sql("DROP TABLE IF EXISTS app.applied; CREATE TABLE app.applied LIKE app.parted; INSERT INTO app.applied SELECT * FROM app.parted")
    engine = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = 'applied'"
    status, _, err = advise(server, capsys, "app.applied", "--apply")
    assert status == 2 and "was not confirmed" in err and server.value(engine) == "InnoDB"
    status, _, err = advise(server, capsys, "app.applied", "--yes")
    assert status == 2 and "--yes confirms --apply" in err
    status, _, err = advise(server, capsys, "app.applied", "--apply", "--yes")
    assert status == 0 and "done in" in err and server.value(engine) == "QUARRY"


def test_apply_refuses_what_the_server_would(server, capsys):
    status, found, err = advise(server, capsys, "app.versioned", "--apply", "--yes")
    assert status == 2 and "no system-versioned table" in err and any("4120" in note for note in found["notes"])
    with pytest.raises(pymysql.MySQLError, match="4120"):
        connection = pymysql.connect(unix_socket=str(server.socket), user=private.account())
        connection.cursor().execute(found["statements"]["alter"])


def test_foreign_keys_are_named_for_the_server_refuses_the_alter(server, capsys):
    server.sql("USE app; CREATE TABLE parent (id INT PRIMARY KEY, v BLOB); CREATE TABLE child (id INT PRIMARY KEY, p INT, v BLOB, "
               "CONSTRAINT of_parent FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE); "
               "INSERT INTO parent VALUES (1, REPEAT('p', 9000)); INSERT INTO child VALUES (1, 1, REPEAT('c', 9000))")
    for table in ("parent", "child"):
        status, found, err = advise(server, capsys, f"app.{table}", "--apply", "--yes")
        assert status == 2 and "(of_parent of app.child)" in err and "(of_parent of app.child)" in found["notes"][0]
        with pytest.raises(SqlError, match="ERROR (1217|1451)"):
            server.sql(found["statements"]["alter"])
    server.sql("ALTER TABLE app.child DROP FOREIGN KEY of_parent")
    for table in ("parent", "child"):
        assert advise(server, capsys, f"app.{table}", "--apply", "--yes")[0] == 0
    server.sql("ALTER TABLE app.child ADD CONSTRAINT of_parent FOREIGN KEY (p) REFERENCES app.parent (id) ON DELETE CASCADE; DELETE FROM app.parent")
    assert server.value("SELECT COUNT(*) FROM app.child") == "0"


# --- the trial ---
@pytest.mark.nightly
def test_trial_measures_both_engines_and_leaves_nothing(server, capsys):
    status, found, _ = advise(server, capsys, "app.files", "--trial", "--trial-rounds", "1", "--trial-seconds", "1", "--trial-clients", "2")
    assert status == 0
    measured = found["trial"]
    assert {point["contestant"] for point in measured["points"]} == {"innodb", "advised", "defaults"}
    assert measured["rows"] == found["table"]["rows"] and measured["value_bytes"] == found["sample"]["read_bytes"]
    for point in measured["points"]:
        assert all(point[operation]["rows_per_second"] > 0 for operation in trial.OPERATIONS)
    pages = {point["contestant"]: point["buffer_pool_bytes"] for point in measured["points"]}
    assert pages["advised"] < pages["innodb"]
    assert not any(trial.DIRECTORY.iterdir())
    table = io.StringIO()
    trial.print_trial(Console(file=table, width=150), measured)
    assert "Quarry as advised" in table.getvalue() and "inserts, rows/s" in table.getvalue()


def test_too_little_disk_is_said_before_anything_is_asked(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(trial.device, "free_bytes", lambda _: 1 << 20)
    assert cli.main(["app.t", "--trial", "--socket", str(tmp_path / "nothing")]) == 2
    err = capsys.readouterr().err
    assert "of free disk under" in err and "cannot be reached" not in err


def test_the_command_starts_and_explains_itself():
    done = subprocess.run([REPOSITORY / "tools" / "quarry-advisor", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--sample-megabytes" in done.stdout and "--apply" in done.stdout
    done = subprocess.run([REPOSITORY / "tools" / "quarry-advisor", "noname"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "is not DATABASE.TABLE" in done.stderr
