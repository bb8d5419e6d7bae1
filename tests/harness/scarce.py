"""What the tests of scarce threads and scarce memory share: a library that is loaded before the server's, and statements of
every kind, each of which must be answered.

Thread-safety: externally synchronised.
"""

import shutil

import pymysql
import pytest

from quarry_server.run import run_or_raise

STATEMENTS = (
    "SELECT COUNT(*) FROM information_schema.quarry_tables",
    "SELECT COUNT(*) FROM information_schema.quarry_columns",
    "SELECT COUNT(*) FROM information_schema.quarry_damage",
    "SHOW GLOBAL STATUS LIKE 'quarry%'",
    "SHOW ENGINE QUARRY STATUS",
    "SET GLOBAL quarry_gc_now = ON",
    "INSERT INTO d.t SELECT id + 1, b FROM d.t WHERE id = 1",
    "UPDATE d.t SET b = CONCAT(b, 'more') WHERE id = 1",
    "SELECT MD5(b) FROM d.t",
    "CHECK TABLE d.t",
    "CREATE TABLE d.made (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY",
    "INSERT INTO d.made SELECT * FROM d.t",
    "ALTER TABLE d.made ADD COLUMN n INT, ALGORITHM=INPLACE",
    "ALTER TABLE d.made FORCE",
    "RENAME TABLE d.made TO d.other",
    "TRUNCATE TABLE d.other",
    "DROP TABLE d.other",
    "SET SESSION quarry_backup_lock = 1",
    "SET SESSION quarry_backup_lock = 0",
    "DELETE FROM d.t WHERE id = 2",
    "XA RECOVER",
)


def make_library(source, directory):
    """For LD_PRELOAD, from C or C++."""
    name = "g++" if source.suffix == ".cc" else "gcc"
    compiler = shutil.which(name) or shutil.which("c++" if name == "g++" else "cc")
    if compiler is None:
        pytest.skip(f"no {name} here, to make {source.name} into a library")
    made = directory / f"{source.stem}.so"
    run_or_raise([compiler, "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"])
    return made


def ask(cursor, statement):
    """False: the answer is an error. That the server is lost is a failure."""
    try:
        cursor.execute(statement)
        cursor.fetchall()
    except pymysql.err.Error as failure:
        assert failure.args[0] not in (2006, 2013), f"the server was lost: {statement}"
        return False
    return True
