"""Hostile names and comments go through every tool: nothing of them acts, nothing reaches a terminal or a page raw."""

import os
import re
import subprocess
import sys

import pytest
from harness.server import REPOSITORY
from hostile import COMMENTS, NAMES, SMUGGLED, literal, quoted, raw

from quarry_advisor.definition import essence

TOOLS = REPOSITORY / "build" / "release" / "tools"
DATABASE = "a \x1b[31m`b` <i> -- [bold]"
PLAIN_DATABASE = "comments"


def run(*command, environment=None):
    """(exit status, standard output, standard error); bytes that are no UTF-8 are a failure."""
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **(environment or {})},
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return done.returncode, out, err


def advise(server, table, *options, database=DATABASE):
    name = f"{database}.{table}" if re.fullmatch(r"\w+", database + table) else f"{quoted(database)}.{quoted(table)}"
    command = [sys.executable, "-m", "quarry_advisor", name, *options]
    address = [f"--socket={server.socket}", "--user=root"]
    return run(*command, *address, environment={"PYTHONPATH": str(REPOSITORY / "tools")})


def show_create(server, table, database=DATABASE):
    return server.query(f"SHOW CREATE TABLE {quoted(database)}.{quoted(table)}")[0][1]


def make_table(server, table, column, comment, engine="InnoDB", database=DATABASE):
    """Two columns that are advised differently, so that a definition goes into the statement."""
    server.query(
        f"CREATE TABLE {quoted(database)}.{quoted(table)} (id INT PRIMARY KEY, {quoted(column)} LONGTEXT COMMENT {literal(comment)}, "
        f"body LONGTEXT COMMENT {literal(comment)}, j JSON COMMENT {literal(comment)}) ENGINE={engine}"
    )
    server.query(
        f"INSERT INTO {quoted(database)}.{quoted(table)} SELECT seq, REPEAT('a', 7000), REPEAT(RAND(seq), 6000), '[1]' "
        "FROM mysql.seq_1_to_40"
    )


@pytest.fixture(scope="module")
def hostile_server(shared_server):
    for name in (DATABASE, PLAIN_DATABASE):
        shared_server.query(f"CREATE DATABASE {quoted(name)} CHARACTER SET utf8mb4")
    yield shared_server
    for name in (DATABASE, PLAIN_DATABASE):
        shared_server.query(f"DROP DATABASE {quoted(name)}")


@pytest.mark.parametrize("kind", NAMES)
def test_the_advisors_report_and_statement(hostile_server, kind):
    name = NAMES[kind]
    make_table(hostile_server, name, name, name)
    before = show_create(hostile_server, name)
    status, out, err = advise(hostile_server, name, "--apply", "--yes", *(["--json=-"] if kind == "escape" else []))
    assert status == 0 and raw(out + err) == [] and "tried on an empty copy" in err, (out, err)
    # A line feed in a name must not begin a line of the report.
    assert not any(line.lstrip().startswith("verdict: all well") for line in out.splitlines())
    after = show_create(hostile_server, name)
    assert "ENGINE=QUARRY" in after and essence(after) == essence(before)
    tables = [row[0] for row in hostile_server.query("SHOW TABLES", database=DATABASE)]
    assert not any("quarry_advisor" in table for table in tables)


@pytest.mark.parametrize("kind", COMMENTS)
def test_a_comment_stays_a_comment(hostile_server, kind):
    """The statement that is printed, pasted into MariaDB's own client."""
    table = f"comment_{kind}"
    make_table(hostile_server, table, "a", COMMENTS[kind], database=PLAIN_DATABASE)
    before = show_create(hostile_server, table, PLAIN_DATABASE)
    status, out, err = advise(hostile_server, table, database=PLAIN_DATABASE)
    assert status == 0 and raw(out + err) == [], (out, err)
    statement = re.search(r"^(ALTER TABLE|-- there are|EXECUTE IMMEDIATE).*?(?=^or, without|\Z)", out, re.MULTILINE | re.DOTALL)[0]
    stored = hostile_server.query(
        "SELECT COLUMN_COMMENT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND COLUMN_NAME = 'body' AND TABLE_NAME = %s",
        (PLAIN_DATABASE, table),
    )[0][0]
    assert ("EXECUTE IMMEDIATE" in statement) == (not stored.isprintable()) and ("MODIFY" in statement or "MODIFY".encode().hex() in statement)
    hostile_server.client_tool("mariadb", "--default-character-set=utf8mb4", f"--execute={statement}")
    after = show_create(hostile_server, table, PLAIN_DATABASE)
    assert "ENGINE=QUARRY" in after and essence(after) == essence(before)


@pytest.mark.parametrize("mode", ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE", "NO_FIELD_OPTIONS,NO_TABLE_OPTIONS"])
def test_a_servers_sql_mode_changes_nothing(hostile_server, mode):
    table = f"mode {mode}"
    make_table(hostile_server, table, 'a"b', "it's \\' \" `")
    before = show_create(hostile_server, table)
    (was,) = hostile_server.query("SELECT @@GLOBAL.sql_mode")[0]
    hostile_server.query("SET GLOBAL sql_mode = %s", (mode,))
    try:
        status, out, err = advise(hostile_server, table, "--apply", "--yes")
    finally:
        hostile_server.query("SET GLOBAL sql_mode = %s", (was,))
    assert status == 0, (out, err)
    assert essence(show_create(hostile_server, table)) == essence(before)


def test_a_comment_that_was_the_definition_of_another_column(hostile_server):
    """S6 of the audit: U+2028 stood raw in a comment, and the lines of SHOW CREATE TABLE were cut at it."""
    hostile_server.query("CREATE DATABASE secretdb")
    try:
        hostile_server.query(f"CREATE TABLE comments.mallory (id INT PRIMARY KEY, body LONGTEXT, v LONGTEXT COMMENT {literal(SMUGGLED)})")
        hostile_server.query("INSERT INTO comments.mallory SELECT seq, REPEAT('a', 7000), REPEAT(RAND(seq), 6000) FROM mysql.seq_1_to_40")
        status, out, err = advise(hostile_server, "mallory", "--apply", "--yes", database=PLAIN_DATABASE)
        assert hostile_server.query("SHOW TABLES", database="secretdb") == ()
        assert status == 0, (out, err)
        assert show_create(hostile_server, "mallory", PLAIN_DATABASE).count("COMMENT") == 1
    finally:
        hostile_server.query("DROP DATABASE secretdb")


@pytest.mark.parametrize("value", ["x, RENAME TO secretdb.planted -- ", "x*/, RENAME TO secretdb.planted -- ", "x */ CHECK (1) /* "])
def test_an_option_that_no_engine_knows(hostile_server, value):
    """The server writes the value of such an option without quotes, in a comment, or behind the end of one."""
    connection = hostile_server.connect(PLAIN_DATABASE)
    with connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'IGNORE_BAD_TABLE_OPTIONS'")
        cursor.execute(f"CREATE OR REPLACE TABLE opt (id INT PRIMARY KEY, a LONGTEXT, body LONGTEXT `foo`={quoted(value)})")
        cursor.execute("INSERT INTO opt SELECT seq, REPEAT('a', 7000), REPEAT(RAND(seq), 6000) FROM mysql.seq_1_to_40")
    connection.close()
    before = hostile_server.query("SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_NAME = 'opt'")
    status, out, err = advise(hostile_server, "opt", "--apply", "--yes", database=PLAIN_DATABASE)
    after = hostile_server.query("SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_NAME = 'opt'")
    assert before == after and len(after) == 3
    assert status == 0 or "no statement" in err or "by hand" in err, err
    assert hostile_server.query("SELECT COUNT(*) FROM information_schema.CHECK_CONSTRAINTS WHERE TABLE_NAME = 'opt'") == ((0,),)


def test_backup_verify_and_dump(own_server, drill):
    """Every table's name is in the catalogue, in a backup and in what the tools say of damage."""
    server = own_server("hostile")
    server.query(f"CREATE DATABASE {quoted(DATABASE)} CHARACTER SET utf8mb4")
    for name in NAMES.values():
        make_table(server, name, name, name, engine="QUARRY")
    said = drill.backup(server, "full") + drill.verify("full") + drill.prepare("full")
    assert raw(said) == [], said
    server.stop()
    for segment in server.segments():
        with open(segment, "r+b") as stream:
            stream.seek(10_000)
            stream.write(b"\x1b]0;damage\x07")
    status, out, err = run(TOOLS / "quarry-verify", "--all", server.datadir)
    assert status == 1 and out.count("(table ") >= len(NAMES) and raw(out + err) == [], (out, err)
    assert not any(line.startswith("verdict") for line in out.splitlines())
    status, out, err = run(TOOLS / "quarry-verify", "--json", "--all", server.datadir)
    assert status == 1 and raw(out + err) == [], (out, err)
    (catalogue,) = (path for path in (server.datadir / "#quarry.d").iterdir() if path.name.startswith("CATALOGUE"))
    status, out, err = run(TOOLS / "quarry-dump", catalogue)
    assert status == 0 and out.count("table '") >= len(NAMES) and raw(out + err) == [], (out, err)
    for segment in server.segments():
        _, out, err = run(TOOLS / "quarry-dump", "--parts", "--verify", segment)
        assert raw(out + err) == [], (out, err)


def test_reports_on_pages_and_terminals(capsys):
    from rich.table import Table
    from rich.text import Text

    from quarry_lab.report.html_table import html_table
    from quarry_advisor.shown import SafeConsole

    table = Table(title=Text(NAMES["html"]))
    table.add_column(Text("name"))
    for name in COMMENTS.values():
        table.add_row(Text(name))
    page = html_table(table)
    assert raw(page) == [] and "<script" not in page and "<b>" not in page and "[bold]loud[/bold]" in page
    console = SafeConsole(width=200)
    console.print(table)
    for name in COMMENTS.values():
        console.print(name)
    out, err = capsys.readouterr()
    assert raw(out + err) == [] and "[bold]loud[/bold] [/red] [link=x]" in out
