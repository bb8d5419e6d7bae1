"""A dump of MySQL Cluster becomes one that Quarry loads: each rule, what must not be touched, and what breaks off."""

import gzip
import io
import subprocess

import pytest
from quarry_advisor.errors import AdvisorError
from quarry_advisor.from_ndb import convert
from quarry_server.server import REPOSITORY

DUMP = b"""-- MySQL dump 10.13  Distrib 9.4.0, for Linux (x86_64)
/*!50503 SET NAMES utf8mb4 */;
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5';
CREATE TABLESPACE `ts_1` ADD DATAFILE 'data_1.dat'
  USE LOGFILE GROUP `lg_1` ENGINE=ndbcluster;
CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a` blob COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=4096',
  `b` longblob /*!50606 STORAGE DISK */ /*!50606 COLUMN_FORMAT DYNAMIC */,
  `c` text CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci COMMENT 'it''s ENGINE=ndbcluster utf8mb4_0900_ai_ci',
  `ENGINE=NDB` json DEFAULT NULL,
  PRIMARY KEY (`id`)
) /*!50606 TABLESPACE `ts_1` STORAGE DISK */ ENGINE=ndbcluster AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='NDB_TABLE=READ_BACKUP=1'
/*!50100 PARTITION BY KEY ()
PARTITIONS 2 */;
INSERT INTO `t` VALUES (1,'ENGINE=ndbcluster','/*!50606 STORAGE DISK */','utf8mb4_0900_ai_ci',NULL),(2,'\xff\xfe\\'','','',NULL);
CREATE TABLE `other` (
  `id` int NOT NULL
) ENGINE=MyISAM;
-- Dump completed on 2026-11-27  1:02:03
"""


def converted(dump):
    out, said = io.BytesIO(), []
    tables = convert(io.BytesIO(dump), out, said.append)
    return out.getvalue(), said, tables


def test_definitions_are_changed_and_nothing_else():
    text, said, tables = converted(DUMP)
    assert tables == 1
    assert b"COMMENT 'it''s ENGINE=ndbcluster utf8mb4_0900_ai_ci'" in text and b"`ENGINE=NDB` json" in text
    assert b"COLLATE utf8mb4_uca1400_nopad_ai_ci COMMENT" in text and b"COLLATE=utf8mb4_uca1400_nopad_ai_ci" in text
    assert b")  ENGINE=QUARRY DEFAULTS=NDB AUTO_INCREMENT=3" in text and b"`b` longblob  ,\n" in text
    values = [line for line in DUMP.splitlines() if line.startswith(b"INSERT")]
    assert [line for line in text.splitlines() if line.startswith(b"INSERT")] == values
    assert b"TABLESPACE" not in text and b"GTID_PURGED" not in text and b"/*!50100 PARTITION BY KEY ()" in text
    for words in ("line 3: left out: SET @@GLOBAL.GTID_PURGED", "line 4: left out: CREATE TABLESPACE", "line 9: /*!50606 STORAGE DISK */ -> nothing",
                  "line 13: ENGINE=ndbcluster -> ENGINE=QUARRY DEFAULTS=NDB", "line 19: ENGINE=MyISAM stays as it is"):
        assert any(line.startswith(words) for line in said), (words, said)


def test_what_is_converted_stays_as_it_is():
    text, _, _ = converted(DUMP)
    again, said, tables = converted(text)
    assert again == text and tables == 0 and not [line for line in said if "stays" not in line]


def test_a_dump_that_breaks_off_is_named():
    with pytest.raises(AdvisorError, match="breaks off.*INSERT INTO"):
        converted(b"\n".join(DUMP.splitlines()[:16]))


def test_a_collation_without_a_counterpart_is_named():
    with pytest.raises(AdvisorError, match="line 6.*'utf8mb4_ja_0900_as_cs_ks'.*as_cs"):
        converted(b"\n" * 5 + b"CREATE TABLE `t` (`c` text COLLATE utf8mb4_ja_0900_as_cs_ks) ENGINE=ndb;\n-- Dump completed")


@pytest.mark.parametrize("arguments, words", [
    (["--from-ndb", "no-such-file.sql"], "there is no file no-such-file.sql"),
    (["d.t", "--from-ndb", "x.sql"], "name one table"),
    ([], "name one table"),
])
def test_the_command_line_refuses(arguments, words):
    done = subprocess.run([REPOSITORY / "tools" / "quarry-advisor", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and words in done.stderr and not done.stdout


def test_the_command_line_converts(tmp_path):
    (tmp_path / "dump.sql").write_bytes(DUMP)
    done = subprocess.run([REPOSITORY / "tools" / "quarry-advisor", "--from-ndb", tmp_path / "dump.sql"], capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout == converted(DUMP)[0] and b"1 table for Quarry" in done.stderr


END = b"-- Dump completed on 2026-11-27\n"


def test_partitions_that_are_named_get_the_engine_and_no_option():
    text, said, tables = converted(b"""CREATE TABLE `t` (
  `id` int NOT NULL PRIMARY KEY,
  CONSTRAINT `c` CHECK (`id` <> _utf8mb4'x' collate utf8mb4_0900_bin)
) ENGINE=ndbcluster
/*!50100 PARTITION BY KEY ()
(PARTITION p0 ENGINE = ndbcluster,
 PARTITION p1 ENGINE = ndbcluster) */;
""" + END)
    assert b") ENGINE=QUARRY DEFAULTS=NDB\n" in text and tables == 1 and len(said) == 4
    assert b"(PARTITION p0 ENGINE=QUARRY,\n PARTITION p1 ENGINE=QUARRY) */;" in text and b"collate utf8mb4_nopad_bin)" in text


def test_what_follows_a_tablespace_is_kept():
    kept = b"CREATE TABLE `t` (\n  `id` int\n) ENGINE=InnoDB;\n" + END
    text, _, _ = converted(b"CREATE TABLESPACE `ts` ADD DATAFILE 'a;b' ENGINE=ndb; -- disk data\n" + kept)
    assert text == kept
    with pytest.raises(AdvisorError, match="line 2.*TABLESPACE.*does not end"):
        converted(b"\nCREATE TABLESPACE `ts` ADD DATAFILE 'a;'\n" + END)


def test_a_comment_in_a_routine_drops_none_of_its_lines():
    body = b"DELIMITER ;;\nCREATE PROCEDURE `p`()\nBEGIN\n/*\n  create tablespace elsewhere\n*/\n  SELECT 1;\nEND ;;\nDELIMITER ;\n" + END
    assert converted(body)[0] == body


def test_a_half_dump_before_a_whole_one_is_named():
    half = b"-- MySQL dump 10.13\nCREATE TABLE `t` (\n"
    assert converted((half + END) * 2)
    with pytest.raises(AdvisorError, match="breaks off before line 3"):
        converted(half + half + END)


@pytest.mark.parametrize("opens", [b"'it", b'"it', b"/* it", b"`it"])
def test_text_over_several_lines_stays_as_it_is(opens):
    closes = b"*/" if opens.startswith(b"/*") else opens[:1]
    inside = b"CREATE TABLESPACE x;\n) ENGINE=ndbcluster\nutf8mb4_0900_bin "
    routine = b"DELIMITER ;;\nCREATE PROCEDURE `p`()\nBEGIN\n  SET @x = 1 -- don't\n  " + opens + b"\n" + inside + closes + b";\nEND ;;\nDELIMITER ;\n" + END
    assert converted(routine)[0] == routine
    with pytest.raises(AdvisorError, match="begins in line 5 and does not end"):
        converted(routine.replace(inside + closes, inside))


def test_what_stands_behind_a_tablespace_on_its_line_is_named():
    with pytest.raises(AdvisorError, match="line 1: behind a statement that is left out stands 'CREATE TABLE"):
        converted(b"CREATE TABLESPACE `ts` ENGINE=ndb; CREATE TABLE t (id INT) ENGINE=ndb;\n" + END)


def test_schemas_of_the_server_are_left_out_and_no_other():
    schema = b"--\n-- Current Database: `%s`\n--\n\nCREATE DATABASE `%s`;\n\nUSE `%s`;\nDROP TABLE IF EXISTS `db`;\n" \
             b"/*!50503 SET character_set_client = utf8mb4 */;\nCREATE TABLE `db` (\n  `id` int\n) ENGINE=ndbcluster;\n" \
             b"INSERT INTO `db` VALUES (1);\n/*!50003 CREATE TRIGGER `t` BEFORE INSERT ON `db` FOR EACH ROW SET @a = 1 */;;\n"
    names = (b"a", b"MySQL", b"my``sql", b"sys")
    dump = b"".join(schema % (name, name, name) for name in names)
    text, said, tables = converted(dump + b"/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;\n-- Dump completed")
    assert tables == 2 and text.count(b"INSERT") == 4 and b"USE `a`" in text and b"USE `my``sql`" in text
    assert b"`MySQL`" not in text.replace(b"-- Current Database: `MySQL`", b"") and text.endswith(b"SET SQL_MODE=@OLD_SQL_MODE */;\n-- Dump completed")
    found = [line.split(". ")[0] for line in said if "schema" in line]
    assert found == ["line 16: left out: the schema mysql", "line 44: left out: the schema sys"]


def test_a_routine_that_names_a_schema_of_the_server_is_kept():
    dump = b"DELIMITER ;;\nCREATE PROCEDURE `p`()\nBEGIN\n-- Current Database: `mysql`\n  SELECT 1;\nEND ;;\nDELIMITER ;\n-- Dump completed"
    assert converted(dump)[0] == dump


@pytest.mark.parametrize("name", [b"t", b'"t"', b"IF NOT EXISTS t"])
def test_names_without_backquotes_are_named(name):
    with pytest.raises(AdvisorError, match="line 1.*--skip-quote-names"):
        converted(b"CREATE TABLE " + name + b" (\n  payload longblob /*!50606 STORAGE DISK */\n) ENGINE=ndbcluster;\n-- Dump completed")


def test_a_compressed_dump_and_a_full_disk_are_named(tmp_path):
    (tmp_path / "dump.gz").write_bytes(gzip.compress(DUMP))
    (tmp_path / "dump.sql").write_bytes(DUMP)
    tool = REPOSITORY / "tools" / "quarry-advisor"
    packed = subprocess.run([tool, "--from-ndb", tmp_path / "dump.gz"], capture_output=True, text=True, check=False)
    assert packed.returncode == 2 and "compressed by gzip" in packed.stderr and not packed.stdout
    with open("/dev/full", "wb") as full:
        done = subprocess.run([tool, "--from-ndb", tmp_path / "dump.sql"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "No space left" in done.stderr and "Traceback" not in done.stderr
