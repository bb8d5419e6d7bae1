"""Who reads rows, and keeps them: a row that was handed out stays as it was until the server asks for another.

The server keeps pointers into rows while it reads on in other tables, hands one row out more than once (a join that
fetches by sorted keys), copies rows into buffers and fetches them again by row id. Each way is asked of a QUARRY
table and of its InnoDB twin; the plans are looked at, so that each way is really taken.
"""

import itertools

import pytest

from harness.lookers import LoggedPair, insert, value, words

ROWS = 36
LEVELS = range(1, 9)
SORTED_KEYS = "mrr=on,mrr_sort_keys=on,mrr_cost_based=off"
SORTED_ROWIDS = "mrr=on,mrr_sort_keys=off,mrr_cost_based=off"
TABLE = (
    "CREATE TABLE {name} (id INT PRIMARY KEY, k INT, m INT, s VARCHAR(30), b LONGBLOB, v LONGTEXT CHARACTER SET latin1,"
    " KEY k (k), KEY m (m, s), KEY b (b(20))) ENGINE={{e}} {partition}"
)
COLUMNS = "LENGTH({t}.b), MD5({t}.b), LEFT({t}.v, 20), MD5({t}.v)"


def fill(pair, name="t", rows=ROWS, partition=""):
    pair.run(TABLE.format(name=name, partition=partition))
    insert(pair, name, "id, k, m, s, b, v", [(i, i % 7, i % 5, f"s{i % 4}", value(i), words(i)) for i in range(rows)])


@pytest.fixture(scope="module")
def tables(logged_server, restored_server):
    """Read by most tests, changed by none. t; u, with fewer rows; p, in partitions; o, whose rows name each of t's
    once, twice and three times."""
    pair = LoggedPair(logged_server, restored_server, "lookers_read")
    fill(pair)
    fill(pair, "u", 12)
    fill(pair, "p", partition="PARTITION BY HASH (id) PARTITIONS 3")
    pair.run("CREATE TABLE o (n INT PRIMARY KEY, ref INT, k INT, w VARCHAR(30), KEY (ref)) ENGINE={e}")
    refs = [ref for ref in range(ROWS + 3) for _ in range(ref % 3 + 1)]
    insert(pair, "o", "n, ref, k, w", [(n, ref, ref % 7, f"s{n % 4}") for n, ref in enumerate(refs)])
    pair.run("ANALYZE TABLE t, u, p, o", compare=False)
    yield pair
    pair.close()


@pytest.fixture
def reads(tables):
    """The same, with every variable of its sessions as usual afterwards."""
    yield tables
    for connection in tables.connections.values():
        connection.close()
    tables.connections.clear()


class Plans:
    """What EXPLAIN said, over a test: all that it is for must have come."""

    def __init__(self, pair):
        self.pair, self.seen = pair, set()

    def run(self, sql):
        self.seen.add(self.pair.plan(sql))
        return self.pair.run(sql)

    def must_have(self, *words_):
        for word in words_:
            assert any(word in plan for plan in self.seen), f"no plan says '{word}': {sorted(self.seen)}"


# --- joins ----------------------------------------------------------------------------------------------------------
JOINS = [
    "FROM o STRAIGHT_JOIN {t} FORCE INDEX (PRIMARY) ON {t}.id = o.ref",
    "FROM o STRAIGHT_JOIN {t} FORCE INDEX (k) ON {t}.k = o.ref",
    "FROM o LEFT JOIN {t} FORCE INDEX (PRIMARY) ON {t}.id = o.ref AND LENGTH({t}.v) > 60",
    "FROM o STRAIGHT_JOIN {t} FORCE INDEX (m) ON {t}.m = o.k AND {t}.s = o.w WHERE {t}.s > 's0' AND o.n % 3 = 0",
    "FROM o STRAIGHT_JOIN {t} FORCE INDEX (PRIMARY) ON {t}.id = o.ref WHERE {t}.b IS NOT NULL AND {t}.v > 'a'",
    "FROM o STRAIGHT_JOIN {t} ON {t}.k = o.k + 1 WHERE o.n < 20",
    "FROM o STRAIGHT_JOIN {t} IGNORE INDEX (k) ON {t}.k = o.k AND {t}.b <> 'short' WHERE o.n < 20",
]


@pytest.mark.parametrize("table", ["t", "p"], ids=["plain", "partitions"])
@pytest.mark.parametrize("level", LEVELS)
def test_joins(reads, level, table):
    plans = Plans(reads)
    reads.run(f"SET join_cache_level = {level}")
    columns = COLUMNS.format(t=table)
    for switches, buffer_size in itertools.product((SORTED_KEYS, SORTED_ROWIDS, "join_cache_bka=off"), (2048, 1 << 18)):
        reads.run(
            f"SET optimizer_switch = 'default', optimizer_switch = '{switches}', join_buffer_size = {buffer_size}"
        )
        for join in JOINS:
            plans.run(f"SELECT o.n, {table}.id, {columns} {join.format(t=table)}")
    if level in (5, 6):
        plans.must_have("BKA join", "Key-ordered" if table == "t" else "BKA")
    elif level > 6:
        plans.must_have("BKAH join")
    elif level in (3, 4):
        plans.must_have("BNLH")
    else:
        plans.must_have("BNL" if level > 0 else "ref")


@pytest.mark.parametrize("level", [2, 4, 6, 8])
def test_joins_of_three_tables_and_by_value(reads, level):
    reads.run(f"SET join_cache_level = {level}, optimizer_switch = '{SORTED_KEYS}', join_buffer_size = 4096")
    for sql in (
        (
            "SELECT o.n, t.id, MD5(t.b), u.id, MD5(u.v), LENGTH(u.b) FROM o STRAIGHT_JOIN t ON t.id = o.ref"
            " STRAIGHT_JOIN u ON u.id = t.k"
        ),
        (
            "SELECT o.n, t.id, MD5(t.b), u.id, MD5(u.v) FROM o STRAIGHT_JOIN t FORCE INDEX (k) ON t.k = o.k"
            " STRAIGHT_JOIN u FORCE INDEX (k) ON u.k = t.k WHERE o.n < 9"
        ),
        "SELECT o.n, t.b, u.v FROM o STRAIGHT_JOIN t ON t.id = o.ref LEFT JOIN u ON u.id = t.m WHERE o.n < 12",
        "SELECT u.id, t.id, MD5(t.v) FROM u STRAIGHT_JOIN t FORCE INDEX (b) ON t.b = u.b",
        "SELECT t.id, u.id FROM u STRAIGHT_JOIN t ON t.v = u.v AND t.b <=> u.b",
        "SELECT o.n, t.b FROM o STRAIGHT_JOIN t ON t.id = o.ref WHERE o.n < 30 ORDER BY o.n, t.id",
        "SELECT t.k, COUNT(*), MAX(t.v), MIN(LENGTH(t.b)) FROM o STRAIGHT_JOIN t ON t.id = o.ref GROUP BY t.k",
        "SELECT DISTINCT t.v FROM o STRAIGHT_JOIN t ON t.id = o.ref",
    ):
        reads.run(sql)


@pytest.mark.parametrize("level", [0, 4, 5, 6, 7, 8])
def test_rows_of_a_join_are_stored_as_they_are(make_pair, level):
    """CREATE TABLE ... SELECT and INSERT ... SELECT keep, and log, what a join handed out."""
    pair = make_pair()
    fill(pair)
    pair.run("CREATE TABLE o (n INT PRIMARY KEY, ref INT, KEY (ref)) ENGINE={e}")
    pair.run("INSERT INTO o SELECT seq, seq DIV 3 FROM seq_1_to_100")
    pair.run(f"SET join_cache_level = {level}, optimizer_switch = '{SORTED_KEYS}', join_buffer_size = 8192")
    select = "SELECT o.n, t.id, t.b, t.v FROM o STRAIGHT_JOIN t FORCE INDEX (PRIMARY) ON t.id = o.ref"
    pair.all(
        f"CREATE TABLE made ENGINE={{e}} {select}",
        f"INSERT INTO made {select.replace('PRIMARY', 'k').replace('t.id = ', 't.k = ')} WHERE o.n < 20",
        "CREATE TABLE counted ENGINE={e} SELECT t.k, MAX(t.b) AS b, MIN(t.v) AS v FROM o STRAIGHT_JOIN t ON t.id ="
        " o.ref GROUP BY t.k",
        "UPDATE o STRAIGHT_JOIN t ON t.id = o.ref SET t.m = o.n, t.v = CONCAT(LEFT(t.v, 1000), 'x') WHERE o.n % 3 = 0",
        "DELETE t FROM o STRAIGHT_JOIN t ON t.id = o.ref WHERE o.n % 21 = 1 AND LENGTH(t.v) > 0",
    )
    pair.finish()


# --- one table --------------------------------------------------------------------------------------------------------
def test_ranges_by_sorted_rowids(reads):
    """DS-MRR of one table: rows by rowid, the index's part kept aside."""
    plans = Plans(reads)
    for switches in (SORTED_KEYS, SORTED_ROWIDS, SORTED_KEYS + ",index_condition_pushdown=off"):
        reads.run(f"SET optimizer_switch = 'default', optimizer_switch = '{switches}', mrr_buffer_size = 8192")
        for table in ("t", "p"):
            for condition in (
                "FORCE INDEX (k) WHERE k BETWEEN 2 AND 4",
                "FORCE INDEX (k) WHERE k IN (1, 3, 6) AND LENGTH(v) > 60",
                "FORCE INDEX (m) WHERE m > 2 AND s LIKE '%2'",
                "FORCE INDEX (b) WHERE b > 'a' AND v IS NOT NULL",
                "FORCE INDEX (k) WHERE (k = 2 OR k > 5) AND b <> 'short'",
            ):
                plans.run(f"SELECT id, k, m, s, b, v FROM {table} {condition}")
                plans.run(f"SELECT id, {COLUMNS.format(t=table)} FROM {table} {condition} ORDER BY id LIMIT 9")
    plans.must_have("Rowid-ordered scan", "Using index condition")


def test_index_merges(reads):
    plans = Plans(reads)
    reads.run("SET optimizer_switch = 'index_merge=on,index_merge_sort_intersection=on'")
    for table in ("t", "p"):
        hint = f"SELECT id, {COLUMNS.format(t=table)} FROM {table} FORCE INDEX (k, m)"
        plans.run(f"{hint} WHERE k = 3 OR m = 2")
        plans.run(f"{hint} WHERE k < 2 OR m > 3")
        plans.run(f"{hint} WHERE k = 3 AND m = 2 AND s = 's1'")
        plans.run(f"{hint} WHERE (k = 3 OR m = 2) AND v > 'b'")
    plans.must_have("index_merge", "union")


def test_rowid_filters(make_pair):
    pair = make_pair()
    pair.run(
        "CREATE TABLE f (id INT PRIMARY KEY, a INT, c INT, n INT, b LONGBLOB INVISIBLE, v LONGTEXT, KEY (a), KEY (c))"
        " ENGINE={e}"
    )
    pair.run(
        "INSERT INTO f (id, a, c, n, v) SELECT seq, seq % 40, seq, seq % 3, REPEAT('v', seq % 100) FROM seq_1_to_4000"
    )
    pair.run("UPDATE f SET b = REPEAT('b', 5000) WHERE c < 250")
    pair.run("ANALYZE TABLE f", compare=False)
    pair.run("SET optimizer_switch = 'rowid_filter=on'")
    pair.run("CREATE TABLE o (n INT PRIMARY KEY, a INT) ENGINE={e}")
    pair.run("INSERT INTO o SELECT seq, seq % 40 FROM seq_1_to_60")
    plans = Plans(pair)
    for level in (0, 2, 6, 8):
        pair.run(f"SET join_cache_level = {level}")
        plans.run("SELECT o.n, f.id, MD5(f.b), f.v FROM o STRAIGHT_JOIN f ON f.a = o.a WHERE f.c BETWEEN 1 AND 200")
        plans.run("SELECT id, MD5(b), v FROM f WHERE a = 7 AND c BETWEEN 1 AND 300")
        plans.run("SELECT id, MD5(b), v FROM f WHERE a IN (7, 9, 11) AND c < 220 AND LENGTH(b) > 10")
    plans.must_have("Using rowid filter")


SORTS = [
    "SELECT * FROM t ORDER BY s DESC, id",
    "SELECT id, b, v FROM t ORDER BY v, b, id",
    "SELECT id, MD5(b) FROM t ORDER BY LEFT(v, 3), id LIMIT 7",
    "SELECT id, LENGTH(b) FROM t WHERE v > 'a' ORDER BY s, k, id",
    "SELECT id, b FROM t WHERE LENGTH(b) > 10 ORDER BY m, id LIMIT 5 OFFSET 3",
    "SELECT id, k, m, s FROM t WHERE LENGTH(v) > 10 ORDER BY s, m, id",
    "SELECT MD5(b), MD5(v) FROM t WHERE k > 1 ORDER BY s, id",
    "SELECT id, v FROM p ORDER BY s, id",
    "SELECT id, v FROM p FORCE INDEX (k) ORDER BY k, id",
    "SELECT id, b FROM p FORCE INDEX (k) WHERE k > 2 ORDER BY k DESC, id LIMIT 6",
    "SELECT t.id, u.id, MD5(t.b), MD5(u.v) FROM t JOIN u ON u.k = t.k ORDER BY t.s, t.id, u.id",
]


@pytest.mark.parametrize("length", [4, 1024, 1 << 20])
def test_sorts_by_rowid_and_with_added_fields(reads, length):
    plans = Plans(reads)
    for buffer_size in (4096, 1 << 20):
        reads.run(f"SET max_length_for_sort_data = {length}, sort_buffer_size = {buffer_size}, max_sort_length = 64")
        for sql in SORTS:
            plans.run(sql)
    plans.must_have("Using filesort")


def test_window_functions(reads):
    over = "OVER (PARTITION BY k ORDER BY id)"
    for sql in (
        f"SELECT id, MD5(LAG(b) {over}), MD5(LEAD(v, 2) {over}) FROM t",
        f"SELECT id, LAG(b) {over} FROM t WHERE id < 20",
        f"SELECT id, MD5(FIRST_VALUE(b) {over}), MD5(NTH_VALUE(v, 2) {over}) FROM t",
        "SELECT id, SUM(LENGTH(b)) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM t",
        (
            "SELECT id, MD5(LAST_VALUE(v) OVER (PARTITION BY m ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING))"
            " FROM t"
        ),
        "SELECT id, ROW_NUMBER() OVER (ORDER BY v, id), RANK() OVER (ORDER BY LEFT(b, 30)) FROM t",
        "SELECT o.n, MD5(LAG(t.b) OVER (ORDER BY o.n, t.id)) FROM o JOIN t ON t.id = o.ref",
        "SELECT k, MAX(LENGTH(b)), MD5(FIRST_VALUE(MAX(v)) OVER (ORDER BY k)) FROM t GROUP BY k",
    ):
        reads.run(sql)


# --- subqueries -------------------------------------------------------------------------------------------------------
SEMIJOINS = {
    "Materialize": "semijoin=on,materialization=on,firstmatch=off,loosescan=off",
    "FirstMatch": "semijoin=on,materialization=off,firstmatch=on,loosescan=off",
    "LooseScan": "semijoin=on,materialization=off,firstmatch=off,loosescan=on",
    "Start temporary": "semijoin=on,materialization=off,firstmatch=off,loosescan=off",
    "": "semijoin=off,exists_to_in=off",
}
SUBQUERIES = [
    "SELECT id, MD5(b), MD5(v) FROM t WHERE id IN (SELECT ref FROM o WHERE n > 7)",
    "SELECT id, MD5(b) FROM t WHERE k IN (SELECT k FROM u WHERE LENGTH(v) > 60)",
    "SELECT n, ref FROM o WHERE ref IN (SELECT id FROM t WHERE LENGTH(b) > 60 AND v IS NOT NULL)",
    "SELECT id, v FROM t WHERE (k, m) IN (SELECT k, m FROM u WHERE b <> 'short')",
    "SELECT id FROM t WHERE b IN (SELECT b FROM u WHERE m < 3)",
    "SELECT id, MD5(b) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v = t.v)",
    "SELECT id, MD5(b) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.b = t.b)",
    "SELECT id, MD5((SELECT MAX(u.v) FROM u WHERE u.k = t.k AND u.b <> t.b)) FROM t",
    "SELECT id, MD5(v) FROM t WHERE LENGTH(b) = (SELECT MAX(LENGTH(b)) FROM u)",
    "SELECT id, MD5(b), MD5(v) FROM t WHERE id IN (SELECT k FROM p)",
    "SELECT t.id, MD5(t.b) FROM t, o WHERE o.ref = t.id AND t.m IN (SELECT m FROM u WHERE v > 'a')",
]


@pytest.mark.parametrize("strategy", SEMIJOINS, ids=[name or "none" for name in SEMIJOINS])
def test_subqueries(reads, strategy):
    plans = Plans(reads)
    for level in (2, 6, 8):
        reads.run(f"SET optimizer_switch = 'default', optimizer_switch = '{SEMIJOINS[strategy]},{SORTED_KEYS}'")
        reads.run(f"SET join_cache_level = {level}")
        for sql in SUBQUERIES:
            plans.run(sql)
    if strategy not in ("", "Materialize"):
        plans.must_have(strategy)


@pytest.mark.parametrize("merge", ["on", "off"])
def test_derived_tables_and_views(reads, merge):
    plans = Plans(reads)
    for level in (2, 6, 8):
        reads.run(
            f"SET join_cache_level = {level}, optimizer_switch = "
            f"'derived_merge={merge},derived_with_keys={merge},{SORTED_KEYS}'"
        )
        for sql in (
            "SELECT d.id, MD5(d.b), o.n FROM (SELECT id, b, k FROM t WHERE v > 'a') d JOIN o ON o.ref = d.id",
            "SELECT o.n, MD5(d.v) FROM o LEFT JOIN (SELECT id, v FROM t WHERE LENGTH(b) > 60) d ON d.id = o.ref",
            "SELECT d.k, MD5(d.top), t.id FROM (SELECT k, MAX(v) AS top FROM t GROUP BY k) d JOIN t ON t.v = d.top",
            (
                "WITH c AS (SELECT id, b, v FROM t WHERE k < 5) SELECT a.id, MD5(a.b), MD5(e.v) FROM c a JOIN c e ON "
                "e.id = a.id + 1"
            ),
            (
                "WITH RECURSIVE c AS (SELECT id, b FROM t WHERE id = 1 UNION ALL SELECT t.id, t.b FROM c JOIN t ON t.id"
                " = c.id + 3) SELECT id, MD5(b) FROM c"
            ),
            "SELECT u.id, MD5(d.m) FROM u JOIN (SELECT k, MAX(v) AS m FROM t GROUP BY k) d ON d.k = u.k WHERE u.id < 5",
        ):
            plans.run(sql)
    if merge == "off":
        plans.must_have("DERIVED")


# --- temporary tables, limits, HANDLER, cursors -----------------------------------------------------------------------
@pytest.mark.parametrize("memory", [0, 16384, 1 << 24])
def test_temporary_tables(reads, memory):
    plans = Plans(reads)
    reads.run(f"SET tmp_memory_table_size = {memory}, group_concat_max_len = 1000000")
    for sql in (
        "SELECT v, COUNT(*), MAX(LENGTH(b)) FROM t GROUP BY v",
        "SELECT b, GROUP_CONCAT(id ORDER BY id) FROM t GROUP BY b",
        "SELECT SQL_BIG_RESULT k, MAX(v), MIN(b) FROM t GROUP BY k",
        "SELECT SQL_SMALL_RESULT m, GROUP_CONCAT(MD5(v) ORDER BY id) FROM t GROUP BY m",
        "SELECT SQL_BUFFER_RESULT id, b, v FROM t",
        "SELECT DISTINCT b FROM t",
        "SELECT DISTINCT v, k FROM p",
        "SELECT id, b FROM t UNION SELECT id, v FROM u",
        "SELECT b FROM t INTERSECT SELECT b FROM u",
        "SELECT v FROM t EXCEPT ALL SELECT v FROM u",
        "SELECT COUNT(DISTINCT b), COUNT(DISTINCT v, k) FROM t",
        "SELECT k, MAX(v) FROM t GROUP BY k WITH ROLLUP",
    ):
        plans.run(sql)
    plans.must_have("Using temporary")


def test_limit_rows_examined(reads):
    """Whatever comes is a row as it is; how many, the plan decides."""
    for level in (2, 6, 8):
        reads.run(f"SET join_cache_level = {level}, optimizer_switch = '{SORTED_KEYS}'")
        for sql in (
            "SELECT id, b, v FROM t WHERE LENGTH(v) > 1",
            "SELECT o.n, t.id, t.b FROM o STRAIGHT_JOIN t ON t.id = o.ref",
            "SELECT id, v FROM t FORCE INDEX (m) WHERE m > 1 AND LENGTH(b) > 1",
        ):
            whole = set(reads.run(sql).rows)
            for limit in (5, 20, 60):
                some = reads.run(f"{sql} LIMIT ROWS EXAMINED {limit}", compare=False).rows
                assert set(some) <= whole, f"{sql} LIMIT ROWS EXAMINED {limit}"


def test_handler_statements(reads):
    for table in ("t", "u"):
        reads.all(
            f"HANDLER {table} OPEN AS h",
            "HANDLER h READ FIRST",
            "HANDLER h READ NEXT LIMIT 40",
            "HANDLER h READ FIRST WHERE LENGTH(b) > 60",
            "HANDLER h READ `PRIMARY` >= (3) LIMIT 9",
            "HANDLER h READ `PRIMARY` NEXT LIMIT 3",
            "HANDLER h READ `PRIMARY` PREV LIMIT 2",
            "HANDLER h READ k = (3) LIMIT 9",
            "HANDLER h READ k NEXT WHERE v > 'a' LIMIT 2",
            "HANDLER h READ b LAST LIMIT 2",
            "HANDLER h READ b PREV LIMIT 4",
            "HANDLER h CLOSE",
        )


def test_cursors(make_pair):
    """A cursor that stays open while its table, and others, change."""
    pair = make_pair()
    fill(pair)
    pair.run(
        "CREATE TABLE log (seq INT PRIMARY KEY AUTO_INCREMENT, id INT, b LONGBLOB, v LONGTEXT CHARACTER SET latin1)"
        " ENGINE={e}"
    )
    pair.run("""CREATE PROCEDURE walk(low INT) BEGIN
        DECLARE done INT DEFAULT 0; DECLARE i INT; DECLARE x LONGBLOB; DECLARE y LONGTEXT CHARACTER SET latin1;
        DECLARE c CURSOR FOR SELECT id, b, v FROM t WHERE k >= low ORDER BY id;
        DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;
        OPEN c;
        l: LOOP
          FETCH c INTO i, x, y;
          IF done THEN LEAVE l; END IF;
          UPDATE t SET m = m + 1, b = 'changed' WHERE id = i + 1;
          INSERT INTO log (id, b, v) VALUES (i, x, y);
        END LOOP;
        CLOSE c; END""")
    pair.run("CALL walk(2)")
    pair.run(
        "BEGIN NOT ATOMIC FOR r IN (SELECT id, b, v FROM t WHERE k < 4 ORDER BY id) DO INSERT INTO log (id, b, v) "
        "VALUES (r.id, r.b, r.v); END FOR; END"
    )
    assert pair.value("SELECT COUNT(*) FROM log") > 30
    pair.finish()
