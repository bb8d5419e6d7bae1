"""quarry-advisor --apply when the ALTER TABLE does not come to a clear end; no server is needed."""

import io
from types import SimpleNamespace

import pymysql
import pytest
from rich.console import Console

from quarry_advisor import apply as applying
from quarry_advisor import cli
from quarry_advisor.errors import AdvisorError
from quarry_advisor.target import Address

PROFILE = SimpleNamespace(
    table=SimpleNamespace(schema="shop", name="t", alter_is_refused=None), server=SimpleNamespace(has_quarry=True)
)
ALTER = "ALTER TABLE `shop`.`t` ENGINE=QUARRY"


class Connection:
    """What pymysql's would be; `end`: how the ALTER TABLE ends."""

    def __init__(self, number, end, statements):
        self.number, self.end, self.statements = number, end, statements

    def thread_id(self):
        return self.number

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        pass

    def execute(self, sql):
        self.statements.append((self.number, sql))
        if sql == ALTER and self.end:
            raise self.end

    def close(self):
        pass


@pytest.fixture
def server(monkeypatch):
    """`server.end`: how the ALTER TABLE ends; `server.statements`: (session, statement)."""
    made = SimpleNamespace(end=None, statements=[], sessions=iter(range(7, 99)))
    monkeypatch.setattr(applying, "connect", lambda _: Connection(next(made.sessions), made.end, made.statements))
    monkeypatch.setattr(applying, "alter_statement", lambda *_: ALTER)
    made.prove = applying.prove
    monkeypatch.setattr(applying, "prove", lambda *_: "tried")
    monkeypatch.setattr(applying, "_check_unchanged", lambda *_: None)
    return made


def apply_it():
    said = io.StringIO()
    return lambda: applying.apply(Address(), PROFILE, None, True, Console(file=said, width=200)), said


def test_it_says_done(server):
    run, said = apply_it()
    run()
    assert server.statements == [(7, ALTER)] and "done in" in said.getvalue()


def test_what_the_server_refused_changed_nothing(server):
    server.end = pymysql.err.OperationalError(1114, "The table is full")
    with pytest.raises(AdvisorError, match="refused, and nothing changed: The table is full"):
        apply_it()[0]()


@pytest.mark.parametrize("number", [2006, 2013, 0])
def test_of_a_connection_that_was_lost_nothing_is_promised(server, number):
    """The server goes on with an ALTER TABLE that it has begun."""
    server.end = pymysql.err.OperationalError(number, "Lost connection to MySQL server during query")
    with pytest.raises(AdvisorError) as failure:
        apply_it()[0]()
    assert "nothing changed" not in str(failure.value) and "SHOW CREATE TABLE `shop`.`t`" in str(failure.value)


def test_an_interrupt_ends_the_statement_on_the_server_too(server):
    server.end = KeyboardInterrupt()
    run, said = apply_it()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert server.statements == [(7, ALTER), (8, "KILL 7")]
    assert "interrupted" in said.getvalue() and "SHOW CREATE TABLE `shop`.`t`" in said.getvalue()


def test_an_empty_copy_that_is_left_is_named(server, monkeypatch):
    """An interrupt in the middle of a statement ends pymysql's connection: the copy cannot be dropped over it."""
    connection = Connection(7, KeyboardInterrupt(), server.statements)
    execute = connection.execute

    def lose(sql):
        execute(sql)
        if sql.startswith("DROP"):
            raise pymysql.err.InterfaceError(0, "")

    connection.execute = lose
    monkeypatch.setattr(applying, "show_create", lambda *_: "CREATE TABLE `t` (`b` longblob) ENGINE=InnoDB")
    with pytest.raises(AdvisorError, match="nothing changed.*DROP TABLE IF EXISTS `shop`.`quarry_advisor_") as failure:
        server.prove(connection, PROFILE, None)
    assert server.statements[-1][1] in str(failure.value)


def test_findings_that_cannot_be_written_are_an_error_with_the_files_name(monkeypatch, capsys, tmp_path):
    def write(*_):
        (tmp_path / "none" / "found.json").write_text("{}")

    monkeypatch.setattr(cli, "run", write)
    assert cli.main(["shop.t"]) == 2
    err = capsys.readouterr().err
    assert f"{tmp_path}/none/found.json: No such file or directory" in err.replace("\n", "")


def end_of_input(*_):
    raise EOFError


def test_the_end_of_input_at_the_prompt_is_a_no(server, monkeypatch):
    """Ctrl-D."""
    monkeypatch.setattr(applying, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("builtins.input", end_of_input)
    with pytest.raises(AdvisorError, match="was not confirmed"):
        applying.apply(Address(), PROFILE, None, False, Console(file=io.StringIO()))
    assert server.statements == []


def test_the_end_of_input_at_the_password_is_said(monkeypatch, capsys):
    monkeypatch.setattr(cli.getpass, "getpass", end_of_input)
    assert cli.main(["shop.t", "--password"]) == 2
    assert "no password was given" in capsys.readouterr().err
