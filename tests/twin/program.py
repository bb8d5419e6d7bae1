"""One statement of a program, and a program as a file that can be read, run again and shrunk.

A program is a text file of one statement a line, each after a comment that says who runs it and how:

    /*a*/ CREATE TABLE t0 (id INT PRIMARY KEY, b LONGBLOB /*q INLINE_SIZE=100*/) ENGINE={e};
    /*b long ["bytes",7,9000]*/ UPDATE t0 SET b = ? WHERE id = 1;
    /*#*/ check;

`{e}` stands for the engine, `{twin}` for q or i, `/*q ...*/` for what only QUARRY is told. Session `#` is the runner
itself: check, restart, kill. How: text (the default), long (a prepared statement whose parameters are sent in pieces),
load (LOAD DATA from a file, whose contents stand in the comment in base64).
"""

import base64
import json
import re
from dataclasses import dataclass

from twin.values import Value

LINE = re.compile(r"/\*(\S+?)(?: (long|load) (.*?))?\*/ (.*);\n?$", re.DOTALL)
QUARRY_ONLY = re.compile(r" ?/\*q (.*?)\*/")


@dataclass(frozen=True)
class Statement:
    session: str
    sql: str
    how: str = "text"
    values: tuple = ()
    file: bytes = b""

    def line(self):
        extra = ""
        if self.how == "long":
            extra = " long " + json.dumps([list(value) for value in self.values])
        elif self.how == "load":
            extra = " load " + base64.b64encode(self.file).decode()
        return f"/*{self.session}{extra}*/ {self.sql};\n"

    def text(self, engine, side="q"):
        """What this engine gets; `side`: q for the engine under test, i for its twin."""
        sql = QUARRY_ONLY.sub(r" \1" if engine.upper() == "QUARRY" else "", self.sql)
        return sql.replace("{e}", engine).replace("{twin}", side)


def parse_line(line):
    match = LINE.match(line)
    if match is None:
        raise ValueError(f"not a line of a program: {line[:200]!r}")
    session, how, extra, sql = match.groups()
    values, file = (), b""
    if how == "long":
        values = tuple(Value(*item) for item in json.loads(extra))
    elif how == "load":
        file = base64.b64decode(extra)
    return Statement(session, sql, how or "text", values, file)


def write_program(path, statements, comment=""):
    with open(path, "w", encoding="utf-8") as output:
        for line in comment.splitlines():
            output.write(f"-- {line}\n")
        output.writelines(statement.line() for statement in statements)


def read_program(path):
    with open(path, encoding="utf-8") as lines:
        return [parse_line(line) for line in lines if line.strip() and not line.startswith("--")]


def write_plain_sql(path, statements, engine, comment=""):
    """For the mariadb client and a person: one engine's text. More than one session stays visible as comments."""
    with open(path, "w", encoding="utf-8") as output:
        for line in comment.splitlines():
            output.write(f"-- {line}\n")
        last = None
        for statement in statements:
            if statement.session != last:
                output.write(f"-- session {statement.session}\n")
                last = statement.session
            sql = statement.text(engine)
            if statement.session == "#":
                output.write(f"-- {sql}\n")
                continue
            if statement.how == "long":
                using = ", ".join(value.sql() for value in statement.values)
                sql = "EXECUTE IMMEDIATE '" + sql.replace("'", "''") + f"' USING {using}"
            elif statement.how == "load":
                output.write(f"-- the file holds (base64): {base64.b64encode(statement.file).decode()}\n")
            output.write(sql + ";\n")
