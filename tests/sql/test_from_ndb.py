"""Tables of MySQL Cluster arrive here: a dump through `quarry-advisor --from-ndb`, and ENGINE=NDB by engine substitution."""

import io
import tempfile

import pymysql
import pytest
from quarry_advisor.from_ndb import convert

pytestmark = pytest.mark.quarry_only

DUMP = """-- MySQL dump 10.13  Distrib 9.4.0, for Linux (x86_64)
/*!50503 SET NAMES utf8mb4 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
DROP TABLE IF EXISTS `t`;
/*!50503 SET character_set_client = utf8mb4 */;
CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a` blob COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=4096',
  `b` longblob /*!50606 STORAGE DISK */ /*!50606 COLUMN_FORMAT DYNAMIC */,
  `c` text CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci,
  `d` json DEFAULT NULL,
  PRIMARY KEY (`id`)
) /*!50606 TABLESPACE `ts_1` STORAGE DISK */ ENGINE=ndbcluster AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='NDB_TABLE=READ_BACKUP=1'
/*!50100 PARTITION BY KEY ()
PARTITIONS 2 */;
INSERT INTO `t` VALUES (1,REPEAT('a',9000),REPEAT('b',70000),'ENGINE=ndbcluster',JSON_OBJECT('k', REPEAT('d',6000))),(2,'','','',NULL);
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
-- Dump completed on 2026-11-27  1:02:03
"""


@pytest.fixture
def schema(server):
    server.query("CREATE OR REPLACE DATABASE n")
    yield server
    server.query("DROP DATABASE n")


def test_a_dump_of_mysql_cluster_is_loaded(schema):
    out = io.BytesIO()
    assert convert(io.BytesIO(DUMP.encode()), out, lambda change: None) == 1
    with tempfile.TemporaryFile() as file:
        file.write(out.getvalue())
        file.seek(0)
        schema.client_tool("mariadb", "n", stdin=file)
    assert schema.query("SELECT id, a, LENGTH(b), c, LENGTH(d) FROM n.t ORDER BY id") == (
        (1, b"a" * 9000, 70000, "ENGINE=ndbcluster", 6009),
        (2, b"", 0, "", None),
    )
    sizes = schema.query(
        "SELECT column_name, inline_size, part_size FROM information_schema.quarry_columns WHERE table_schema = 'n' ORDER BY 1"
    )
    assert sizes == (("a", 4096, 2000), ("b", 256, 13948), ("c", 256, 2000), ("d", 4000, 8100))
    ((definition,),) = [row[1:] for row in schema.query("SHOW CREATE TABLE n.t")]
    assert "PARTITION BY KEY ()" in definition and "PARTITIONS 2" in definition and "NDB_TABLE=READ_BACKUP=1" in definition


@pytest.mark.parametrize("name", ["NDB", "ndbcluster"])
def test_an_engine_of_that_name_is_substituted_where_sql_mode_says_so(schema, name):
    create = f"CREATE TABLE t1_blob (id INT PRIMARY KEY, data MEDIUMBLOB) ENGINE={name}"
    connection = schema.connect("n")
    with connection.cursor() as cursor:
        with pytest.raises(pymysql.err.Error) as refused:
            cursor.execute(create)
        assert refused.value.args[0] == 1286
        cursor.execute("SET sql_mode = '', default_storage_engine = QUARRY, quarry_defaults = ndb")
        cursor.execute(create)
        cursor.execute("SHOW WARNINGS")
        assert [code for _, code, _ in cursor.fetchall()] == [1286, 1266]
        cursor.execute("INSERT INTO t1_blob VALUES (1, REPEAT('x', 50000))")
        connection.commit()
    connection.close()
    assert schema.query("SELECT engine FROM information_schema.tables WHERE table_schema = 'n'") == (("QUARRY",),)
    sizes = "SELECT inline_size, part_size FROM information_schema.quarry_columns WHERE table_schema = 'n'"
    assert schema.query(sizes) == ((256, 4000),)
    assert schema.query("SELECT LENGTH(data) FROM n.t1_blob") == ((50000,),)


def test_what_may_leave_the_page_is_said_at_create_and_later(schema):
    """NDB refuses rows above 30,000 bytes; here a row above half a page takes InnoDB's overflow pages."""
    connection = schema.connect("n")
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE r (id INT PRIMARY KEY, a LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=29736', b LONGBLOB) ENGINE=QUARRY"
        )
        cursor.execute("SHOW WARNINGS")
        notes = [text for level, _, text in cursor.fetchall() if level == "Note"]
    connection.close()
    assert len(notes) == 1 and "'a'" in notes[0] and "29800" in notes[0], notes
    may = dict(
        schema.query("SELECT column_name, inline_may_overflow FROM information_schema.quarry_columns WHERE table_schema = 'n'")
    )
    assert may == {"a": "YES", "b": "NO"}
