"""SELECTs whose values travel through joins, temporary tables, sorts, unions, views, functions and protocols."""

import pytest

from harness.twin import Twin
from harness.values import payload, text


@pytest.fixture
def tables(twin):
    """t: 60 rows of every kind of value; s: fewer, some equal to those of t."""
    for name in ("t", "s"):
        twin.run(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, n INT, b LONGBLOB, v LONGTEXT, small BLOB, KEY (n), "
            "KEY (v(20))) ENGINE={e}"
        )
    sizes = [0, 5, 2000, 4096, 4097, 12000, 66000]
    rows = [
        (
            row,
            row % 6,
            payload(row % 25, sizes[row % 7]),
            text(row % 20, sizes[(row + 3) % 7]),
            None if row % 13 == 12 else payload(row, row),
        )
        for row in range(60)
    ]
    insert = "INSERT INTO {} VALUES " + ", ".join(["(%s, %s, %s, %s, %s)"] * 20)
    for first in (0, 20, 40):
        twin.run(insert.format("t"), [item for row in rows[first : first + 20] for item in row])
    twin.run(insert.format("s"), [item for row in rows[10:30] for item in row])
    return twin


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id, c.id FROM t a JOIN t c ON a.b = c.b",
        "SELECT a.id, c.b FROM t a JOIN t c ON a.id = c.id + 1 WHERE a.v <> c.v",
        "SELECT a.id, a.b, c.b, d.b FROM t a, t c, t d WHERE a.id = c.id - 1 AND c.id = d.id - 1 AND a.n = 2",
        "SELECT t.id, s.id, t.b, s.v FROM t LEFT JOIN s ON t.v = s.v",
        "SELECT t.id, s.id FROM s RIGHT JOIN t ON t.b = s.b AND t.n = s.n",
        "SELECT STRAIGHT_JOIN t.id, s.b FROM t JOIN s ON t.n = s.n WHERE LENGTH(t.b) > 100 AND s.id < 15",
        "SELECT id, b FROM t WHERE b IN (SELECT b FROM s)",
        "SELECT id, b FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = t.b)",
        "SELECT id, (SELECT MAX(b) FROM s WHERE s.n = t.n) FROM t",
        "SELECT id FROM t WHERE b > ALL (SELECT b FROM s WHERE n = 1)",
        "SELECT id FROM t WHERE (b, v) IN (SELECT b, v FROM s)",
        "SELECT * FROM (SELECT n, MAX(v) AS top FROM t GROUP BY n) d JOIN t ON t.v = d.top",
        "SELECT b, COUNT(*), MIN(v), MAX(v) FROM t GROUP BY b",
        "SELECT v, GROUP_CONCAT(id ORDER BY id) FROM t GROUP BY v HAVING COUNT(*) > 1",
        "SELECT n, GROUP_CONCAT(DISTINCT LEFT(v, 100) ORDER BY v) FROM t GROUP BY n WITH ROLLUP",
        "SELECT DISTINCT b FROM t",
        "SELECT DISTINCT b, v FROM t WHERE n < 3",
        "SELECT COUNT(DISTINCT b), COUNT(DISTINCT v), COUNT(b) FROM t",
        "SELECT b FROM t UNION SELECT b FROM s",
        "SELECT id, b FROM t UNION ALL SELECT id, v FROM s ORDER BY 1, 2",
        "SELECT b FROM t INTERSECT SELECT b FROM s",
        "SELECT b FROM t EXCEPT SELECT b FROM s",
        "SELECT id, b, v FROM t ORDER BY b, v, id",
        "SELECT id, b FROM t ORDER BY b DESC, id LIMIT 7",
        "SELECT id, v FROM t ORDER BY LENGTH(v), v, id LIMIT 5, 10",
        "SELECT id, b FROM t ORDER BY n, id",
        "SELECT n, SUM(LENGTH(b)), AVG(LENGTH(v)) FROM t GROUP BY n",
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY n ORDER BY b, id), FIRST_VALUE(v) OVER (PARTITION BY n ORDER BY "
        "id) FROM t",
        "SELECT id, LAG(b) OVER (ORDER BY id) FROM t",
        "WITH RECURSIVE r AS (SELECT id, b, 1 AS depth FROM t WHERE id = 0 UNION ALL "
        "SELECT t.id, t.b, depth + 1 FROM t JOIN r ON t.id = r.id + 7) SELECT * FROM r",
        "SELECT id, SUBSTRING(b, 1, 10), SUBSTRING(b, 5000, 100), SUBSTRING(b, -20), LEFT(v, 4096), RIGHT(v, 70) "
        "FROM t",
        "SELECT id, LENGTH(b), MD5(b), SHA1(v), CRC32(b), HEX(LEFT(b, 20)), BIT_LENGTH(b) FROM t",
        "SELECT id, CONCAT(b, '|', v), REVERSE(b), LOWER(v), REPLACE(v, 'a', 'bb'), TRIM(v), LOCATE('abc', v) FROM t",
        "SELECT id, UNCOMPRESS(COMPRESS(b)) = b, FROM_BASE64(TO_BASE64(b)) = b FROM t",
        "SELECT id FROM t WHERE v LIKE '%a%b%c%' AND b IS NOT NULL",
        "SELECT id FROM t WHERE v REGEXP '[0-9]{3}'",
        "SELECT id, IF(n > 2, b, v), COALESCE(small, b), NULLIF(b, ''), CASE n WHEN 1 THEN b ELSE v END FROM t",
        "SELECT id, CAST(v AS CHAR CHARACTER SET latin1), CONVERT(v USING ucs2), BINARY v FROM t",
        "SELECT id, small, b FROM t WHERE small IS NULL OR LENGTH(small) BETWEEN 3 AND 9",
        "SELECT id, v FROM t FORCE INDEX (v) WHERE v > 'M' AND v < 'q' ORDER BY v",
        "SELECT id, b FROM t FORCE INDEX (n) WHERE n = 3 AND LENGTH(b) > 5 ORDER BY n DESC, id DESC",
        "SELECT id, b FROM t WHERE id IN (3, 5, 7, 51) OR n = 4",
        "SELECT id FROM t WHERE b BETWEEN '5' AND 'z'",
        "SELECT MIN(b), MAX(b), MIN(v), MAX(v) FROM t",
        "SELECT t.id, s.b FROM t JOIN s USING (b) WHERE t.n IN (SELECT n FROM s WHERE LENGTH(v) > 4000)",
        "SELECT SQL_BIG_RESULT n, b FROM t GROUP BY n, b",
        "SELECT SQL_BUFFER_RESULT id, b, v FROM t",
    ],
)
def test_select(tables, sql):
    tables.run("SET group_concat_max_len = 10000000, max_sort_length = 80000, sort_buffer_size = 32000000")
    tables.run(sql)


@pytest.mark.parametrize(
    "settings",
    [
        "SET join_cache_level = 8, optimizer_switch = 'mrr=on,mrr_sort_keys=on,join_cache_hashed=on,join_cache_bka=on'",
        "SET join_cache_level = 0",
        "SET sort_buffer_size = 1024, max_sort_length = 8, tmp_table_size = 1024",
        "SET optimizer_switch = 'index_condition_pushdown=off,materialization=off,semijoin=off'",
        "SET optimizer_switch = 'index_merge=on,rowid_filter=on,mrr=on'",
        "SET use_stat_tables = 'never', join_buffer_size = 128",
    ],
)
def test_plans(tables, settings):
    """The same answers whichever way the optimizer takes."""
    tables.run(settings)
    for sql in (
        "SELECT a.id, c.id, a.b, c.v FROM t a JOIN t c ON a.n = c.n AND a.v = c.v WHERE a.id > 10",
        "SELECT id, b, v FROM t WHERE n IN (1, 2) OR v LIKE 'a%'",
        "SELECT id, b FROM t FORCE INDEX (v) WHERE v BETWEEN 'c' AND 'x' AND n <> 3",
        "SELECT t.id, s.b FROM s JOIN t ON t.n = s.n WHERE s.v >= 'k' AND t.id < 30",
        "SELECT id, LENGTH(b) FROM t ORDER BY v DESC, id",
        "SELECT id, b, v FROM t ORDER BY LEFT(b, 3), id",
        "SELECT n, MAX(b) FROM t GROUP BY n",
        "SELECT id, b FROM t WHERE b IN (SELECT b FROM s WHERE n > 1)",
        "SELECT id, b FROM t WHERE n = 2 AND v > 'a' AND LENGTH(small) > 3",
        "UPDATE t SET b = CONCAT(b, 'p'), n = n + 1 WHERE n IN (2, 3) OR v < 'f'",
        "UPDATE t JOIN s ON t.v = s.v SET t.b = s.b, s.n = s.n + 10",
        "DELETE t FROM t JOIN s ON t.b = s.b WHERE s.n > 12",
    ):
        tables.run(sql)
    tables.check()


def test_views(tables):
    tables.all(
        "CREATE VIEW w AS SELECT id, b, CONCAT(v, '!') AS shout FROM t WHERE n < 4 WITH CHECK OPTION",
        "CREATE VIEW u AS SELECT id, n, b FROM t WHERE n = 1 WITH CHECK OPTION",
        "SELECT * FROM w ORDER BY id",
        "UPDATE w SET b = CONCAT(b, 'view') WHERE id < 20",
        "INSERT INTO u VALUES (1000, 1, REPEAT('u', 9000))",
        "DELETE FROM w WHERE id = 8",
    )
    tables.run("INSERT INTO u VALUES (1001, 2, REPEAT('u', 9000))", error=1369)
    tables.check("t", "s")


def test_prepared_statements(tables):
    tables.all(
        "PREPARE get FROM 'SELECT id, b, v FROM t WHERE id = ?'",
        "PREPARE put FROM 'INSERT INTO t VALUES (?, ?, ?, ?, NULL)'",
        "PREPARE grow FROM 'UPDATE t SET b = CONCAT(b, ?) WHERE n = ?'",
    )
    for row in range(0, 60, 9):
        tables.run(f"EXECUTE get USING {row}")
    for row in range(100, 110):
        tables.run("SET @b = %s, @v = %s", (payload(row, row * 90), text(row, row * 100)))
        tables.run(f"EXECUTE put USING {row}, {row % 6}, @b, @v")
        tables.run(f"EXECUTE get USING {row}")
    tables.run("SET @tail = %s", (payload(1, 5000),))
    for n in range(6):
        tables.run(f"EXECUTE grow USING @tail, {n}")
    tables.run("EXECUTE IMMEDIATE 'DELETE FROM t WHERE b = ?' USING @b")
    tables.run("ALTER TABLE t ADD COLUMN extra LONGBLOB DEFAULT 'x' AFTER id")
    tables.run("EXECUTE get USING 105")
    tables.check()


def test_cursors_and_procedures(tables):
    tables.run("""CREATE PROCEDURE walk() BEGIN
      DECLARE done INT DEFAULT 0; DECLARE i INT; DECLARE x LONGBLOB; DECLARE y LONGTEXT;
      DECLARE c CURSOR FOR SELECT id, b, v FROM t ORDER BY id;
      DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
      CREATE TEMPORARY TABLE seen (id INT, b LONGBLOB, v LONGTEXT) ENGINE={e};
      OPEN c;
      l: LOOP
        FETCH c INTO i, x, y;
        IF done THEN LEAVE l; END IF;
        UPDATE t SET b = CONCAT(x, y) WHERE id = i AND n = 1;
        INSERT INTO seen VALUES (i, x, y);
      END LOOP;
      CLOSE c;
      SELECT id, MD5(b), MD5(v), LENGTH(b) FROM seen ORDER BY id;
      DROP TEMPORARY TABLE seen;
    END""")
    tables.run("CALL walk()", compare=False)
    tables.run("CREATE FUNCTION pick(k INT) RETURNS LONGBLOB READS SQL DATA RETURN (SELECT b FROM t WHERE id = k)")
    tables.run("SELECT id, pick(id) FROM t WHERE id % 4 = 0")
    tables.run("UPDATE s SET b = pick(id)")
    tables.check("t", "s")


def test_handler_statements(tables):
    tables.run("HANDLER t OPEN")
    for statement in (
        "READ FIRST",
        "READ NEXT LIMIT 100",
        "READ `PRIMARY` = (7)",
        "READ `PRIMARY` NEXT",
        "READ `PRIMARY` PREV",
        "READ `PRIMARY` >= (30) LIMIT 5",
        "READ n = (3) LIMIT 100",
        "READ n LAST",
        "READ v FIRST",
        "READ v NEXT LIMIT 70",
        "READ `PRIMARY` > (5) WHERE LENGTH(b) > 4000 LIMIT 3",
    ):
        tables.run(f"HANDLER t {statement}")
    tables.run("HANDLER t CLOSE")


def test_temporary_tables(tables):
    tables.all(
        "CREATE TEMPORARY TABLE x (id INT PRIMARY KEY, b LONGBLOB, v LONGTEXT, KEY (b(10))) ENGINE={e}",
        "INSERT INTO x SELECT id, b, v FROM t",
        "UPDATE x SET b = CONCAT(b, v) WHERE id % 3 = 0",
        "DELETE FROM x WHERE id % 7 = 0",
        "SELECT x.id, x.b, t.b FROM x JOIN t USING (id) ORDER BY x.id",
        "CREATE TEMPORARY TABLE y ENGINE={e} SELECT * FROM x",
        "ALTER TABLE y ADD COLUMN z LONGBLOB, ADD PRIMARY KEY (id)",
        "UPDATE y SET z = b",
        "INSERT INTO t SELECT id + 500, 1, z, v, NULL FROM y",
        "SELECT id, MD5(b), MD5(z) FROM y ORDER BY id",
        "CHECKSUM TABLE x",
        "TRUNCATE TABLE x",
        "INSERT INTO x SELECT id, b, v FROM t",
        "SELECT id, MD5(b) FROM x ORDER BY id",
        "DROP TEMPORARY TABLE x",
        "CREATE TEMPORARY TABLE t (id INT, b LONGBLOB) ENGINE={e}",
        "INSERT INTO t VALUES (1, REPEAT('hides', 3000))",
        "SELECT id, MD5(b) FROM t",
        "DROP TEMPORARY TABLE t",
    )
    tables.check("t", "s")


def test_large_offset_functions(twin):
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}")
    twin.run("INSERT INTO t VALUES (1, %s)", (payload("range", 3 << 20),))
    for offset in (1, 4096, 4097, 65536, 65537, 131072, 1 << 20, (3 << 20) - 10, (3 << 20) + 1):
        for length in (1, 100, 65536, 200000):
            twin.run("SELECT id, SUBSTRING(b, %s, %s) FROM t", (offset, length))
    twin.run("SELECT LOCATE(%s, b) FROM t", (payload("range", 3 << 20)[2000000:2000020],))


def test_sql_select_limit_and_examined_rows(tables):
    tables.run("SET sql_select_limit = 5")
    tables.run("SELECT id, b FROM t ORDER BY id")
    tables.run("SELECT id, b FROM t ORDER BY id LIMIT ROWS EXAMINED 20")
    tables.run("SET sql_select_limit = DEFAULT")


def test_table_statistics_and_explain(tables):
    tables.run("ANALYZE TABLE t PERSISTENT FOR ALL")
    tables.run("OPTIMIZE TABLE t", compare=False)
    tables.run("SELECT id, b FROM t WHERE b = (SELECT b FROM s WHERE id = 11)")
    tables.check()


# What InnoDB is not asked for it does not fill in, and its prefetch cache hands out what its memory held in between: with
# this setting of malloc's, bytes that are no length and no address.
PERTURBED = {"MALLOC_PERTURB_": "85"}


@pytest.fixture
def perturbed(own_server):
    pair = Twin(own_server("perturbed", environment=PERTURBED), "perturbed")
    yield pair
    pair.close()


def test_reads_of_an_index_alone(perturbed):
    """The read set names the base of an indexed STORED column, of which an index alone has nothing."""
    perturbed.all(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, g INT AS (LENGTH(b)) STORED, KEY (g)) ENGINE={e}",
        "INSERT INTO t (id, b) SELECT seq, REPEAT('x', 10 * seq) FROM seq_1_to_900",
        "CREATE TABLE p (id INT PRIMARY KEY, b LONGBLOB, g INT AS (LENGTH(b)) STORED, KEY (g)) ENGINE={e} "
        "PARTITION BY HASH (id) PARTITIONS 3",
        "INSERT INTO p (id, b) SELECT id, b FROM t",
    )
    for table in ("t", "p"):
        for condition in ("g IS NOT NULL", "g > 0 AND id IN (16, 22, 25)", "g BETWEEN 100 AND 8000"):
            perturbed.run(f"SELECT id, g FROM {table} FORCE INDEX (g) WHERE {condition}")
        perturbed.run(f"SELECT COUNT(*), SUM(g) FROM {table} FORCE INDEX (g)")
        perturbed.run(f"SELECT g, LENGTH(b), MD5(b) FROM {table} FORCE INDEX (g) WHERE g < 300")
    perturbed.check()


@pytest.mark.parametrize("partitions", ["", "PARTITION BY HASH (id) PARTITIONS 3"])
def test_plain_select_under_lock_tables(perturbed, partitions):
    """Locked for writing, yet a consistent read to InnoDB, which fills in no more than what is asked for."""
    perturbed.all(
        f"CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB, n INT) ENGINE={{e}} {partitions}",
        "INSERT INTO t SELECT seq, REPEAT('a', 9000), REPEAT('b', 100 * seq), seq % 5 FROM seq_1_to_60",
        "LOCK TABLES t WRITE",
    )
    for _ in range(2):
        perturbed.run("SELECT n, COUNT(*), MAX(LENGTH(b)), COUNT(DISTINCT MD5(b)) FROM t GROUP BY n")
        perturbed.run("SELECT id, n FROM t ORDER BY n, id LIMIT 40")
        perturbed.run("SELECT id, LENGTH(a) FROM t WHERE n = 3 FOR UPDATE")
        perturbed.run("SELECT n, COUNT(*) FROM t GROUP BY n")
        perturbed.run("UPDATE t SET b = CONCAT(b, 'x'), id = id + 100 WHERE n = 2 ORDER BY id DESC")
        perturbed.run("DELETE FROM t WHERE n = 4 ORDER BY id LIMIT 3")
    perturbed.all("UNLOCK TABLES")
    perturbed.check()


@pytest.mark.quarry_only
@pytest.mark.parametrize("key", ["id", "n"])
def test_a_range_reads_the_values_of_its_rows_and_no_other(tables, key):
    """The row behind the end of the range is looked at by its key alone."""
    server, schema = tables.server, tables.under_test
    server.query(f"CREATE TABLE {schema}.r (id INT PRIMARY KEY, n INT, b LONGBLOB, KEY (n)) ENGINE=QUARRY")
    for row in range(9):
        server.query(f"INSERT INTO {schema}.r VALUES (%s, %s, %s)", (row, row, payload(row, 9000)))
    connection = server.connect(schema)
    with connection.cursor() as cursor:
        for first, last in ((2, 4), (7, 99), (5, 5)):
            before = int(server.status("quarry_extents_read")["quarry_extents_read"])
            cursor.execute(f"SELECT id, b FROM r FORCE INDEX FOR ORDER BY ({'PRIMARY' if key == 'id' else 'n'}) "
                           f"WHERE {key} BETWEEN {first} AND {last} ORDER BY {key}")
            rows = cursor.fetchall()
            assert rows == tuple((row, payload(row, 9000)) for row in range(first, min(last, 8) + 1))
            assert int(server.status("quarry_extents_read")["quarry_extents_read"]) - before == len(rows)
    connection.close()
