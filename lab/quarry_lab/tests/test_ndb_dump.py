"""A dump that mysqldump takes from a real MySQL Cluster loads here whole: every row with the same bytes."""

import subprocess
from pathlib import Path

import pymysql
import pytest
from quarry_lab.servers import ndb_cluster
from quarry_lab.servers.connected import rows
from quarry_lab.servers.lab_server import LabServer
from quarry_lab.servers.ndb_cluster import NdbCluster
from quarry_server import private
from quarry_server.server import BUILD, MARIADB, PLUGIN, REPOSITORY

MYSQLDUMP = BUILD / "ndb" / "build" / "runtime_output_directory" / "mysqldump"
SMALL = {"innodb_buffer_pool_size": "128M", "innodb_log_file_size": "64M"}
SCHEMA = "quarry_lab_dump"
# Around each default: inline 256, parts of 2,000 and 13,948 bytes; JSON inline 4,000, parts of 8,100.
SIZES = (0, 1, 255, 256, 257, 2000, 2256, 2257, 13948, 14204, 14205, 65535, 300_001)
DISK = ["CREATE LOGFILE GROUP quarry_lab_log ADD UNDOFILE 'quarry_lab_undo.log' INITIAL_SIZE 16M ENGINE NDBCLUSTER",
        "CREATE TABLESPACE quarry_lab_space ADD DATAFILE 'quarry_lab_data.dat' USE LOGFILE GROUP quarry_lab_log INITIAL_SIZE 64M ENGINE NDBCLUSTER"]
UNDISK = ["ALTER TABLESPACE quarry_lab_space DROP DATAFILE 'quarry_lab_data.dat'", "DROP TABLESPACE quarry_lab_space",
          "DROP LOGFILE GROUP quarry_lab_log ENGINE NDBCLUSTER"]
TABLES = {
    "plain": "id INT PRIMARY KEY AUTO_INCREMENT, value LONGBLOB, tiny TINYBLOB) ENGINE=NDBCLUSTER",
    "comments": """id INT PRIMARY KEY, value MEDIUMBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=4096,MAX_BLOB_PART_SIZE') ENGINE=NDBCLUSTER
                COMMENT='NDB_TABLE=READ_BACKUP=1'""",
    "words": """id INT PRIMARY KEY, value LONGTEXT, title VARCHAR(100), KEY (title)) ENGINE=NDBCLUSTER
             DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci""",
    "documents": "id INT PRIMARY KEY, value JSON) ENGINE=NDBCLUSTER",
    "parts": "id INT, kind INT, value LONGBLOB, PRIMARY KEY (id, kind)) ENGINE=NDBCLUSTER PARTITION BY KEY () PARTITIONS 4",
    "on_disk": "id INT PRIMARY KEY, value LONGBLOB, payload VARBINARY(8000)) TABLESPACE quarry_lab_space STORAGE DISK ENGINE=NDBCLUSTER",
}
MORE = {"plain": ("tiny", "x"), "words": ("title", "Grüße aus Uppsala"), "parts": ("kind", 7), "on_disk": ("payload", b"\x00'\\\xff" * 1000)}


def _value(table: str, size: int) -> str | bytes:
    if table == "documents":
        return '{"n": %d, "text": "%s"}' % (size, "é☂" * (size // 2))
    if table == "words":
        return "añ☂𝄞" * (size // 4)
    return bytes((7 * i + i // 251) % 256 for i in range(size))


def _fill(connection: pymysql.Connection) -> None:
    cursor = connection.cursor()
    for table, definition in TABLES.items():
        cursor.execute(f"CREATE TABLE {SCHEMA}.{table} ({definition}")
        column, more = MORE.get(table, ("", None))
        for number, size in enumerate(SIZES, 1):
            names, values = ["id", "value", *([column] if column else [])], [number, _value(table, size), *([more] if column else [])]
            binary = ["_binary %s" if isinstance(value, bytes) else "%s" for value in values]
            cursor.execute(f"INSERT INTO {SCHEMA}.{table} ({', '.join(names)}) VALUES ({', '.join(binary)})", values)
        cursor.execute(f"INSERT INTO {SCHEMA}.{table} (id, {column or 'value'}) VALUES (100, %s)", (more,))


def _all_rows(connection: pymysql.Connection) -> dict[str, list]:
    return {table: sorted(rows(connection, f"SELECT id, SHA2(value, 256), LENGTH(value), SHA2({MORE.get(table, ('id',))[0]}, 256) FROM {SCHEMA}.{table}"))
            for table in TABLES}


def _dumped(to: Path) -> dict[str, list]:
    """What the cluster's tables hold, and their dump in that file. The cluster is left without them."""
    cluster = NdbCluster("ndb").start()
    try:
        for statement in [f"CREATE DATABASE {SCHEMA}", f"USE {SCHEMA}", *DISK]:
            cluster.execute(statement)
        connection = ndb_cluster.connect(ndb_cluster.address())
        try:
            _fill(connection)
            with open(to, "wb") as file:
                subprocess.run([MYSQLDUMP, "--no-defaults", f"--socket={ndb_cluster.address().socket}", "--user=root", "--hex-blob", "--databases", SCHEMA],
                               stdout=file, check=True)
            return _all_rows(connection)
        finally:
            connection.close()
            for statement in [f"DROP TABLE {SCHEMA}.on_disk", *UNDISK, f"DROP DATABASE {SCHEMA}"]:
                cluster.execute(statement)
    finally:
        cluster.close()


@pytest.fixture
def cluster_of_the_tree():
    """The real one."""


@pytest.mark.nightly
@pytest.mark.skipif(not (ndb_cluster.is_built() and MYSQLDUMP.exists()), reason="no MySQL Cluster here (make ndb)")
@pytest.mark.skipif(not PLUGIN.exists(), reason=f"no plugin at {PLUGIN} (make plugin)")
def test_a_dump_of_a_real_cluster_loads_with_every_byte(tmp_path: Path):
    with ndb_cluster.as_found(is_used=True):
        there = _dumped(tmp_path / "there.sql")
    converted = subprocess.run([REPOSITORY / "tools" / "quarry-advisor", "--from-ndb", tmp_path / "there.sql"], capture_output=True, check=True)
    assert b"6 tables for Quarry" in converted.stderr
    lab = LabServer("main", tmp_path / "main", PLUGIN, False, SMALL).start()
    try:
        subprocess.run([MARIADB / "usr" / "bin" / "mariadb", "--no-defaults", f"--socket={lab.socket}", f"--user={private.account()}"],
                       input=converted.stdout, check=True)
        connection = lab.another_connection()
        here = _all_rows(connection)
        assert here == there and all(len(found) == len(SIZES) + 1 for found in here.values())
        engines = dict(rows(connection, f"SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SCHEMA}'"))
        assert engines == dict.fromkeys(TABLES, "QUARRY")
        defaults = rows(connection, f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SCHEMA}' AND CREATE_OPTIONS LIKE '%DEFAULTS%NDB%'")
        assert defaults == [(len(TABLES),)]
        connection.close()
    finally:
        lab.close()
