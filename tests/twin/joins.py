"""Random statements over two and three tables, and what the optimizer is told to do with them.

The server keeps rows while it reads on: what it hands out must not depend on the plan. So the plan is drawn at
random, session by session: DS-MRR, join buffers of every kind, semi-join strategies, derived tables merged or not. No
result depends on the order in which rows are met; values are shown by length and MD5, lest the programs' answers
weigh megabytes.
"""

SWITCHES = (
    "condition_pushdown_for_derived",
    "condition_pushdown_for_subquery",
    "derived_merge",
    "derived_with_keys",
    "exists_to_in",
    "extended_keys",
    "firstmatch",
    "index_condition_pushdown",
    "index_merge",
    "index_merge_sort_intersection",
    "join_cache_bka",
    "join_cache_hashed",
    "join_cache_incremental",
    "loosescan",
    "materialization",
    "mrr_sort_keys",
    "optimize_join_buffer_size",
    "outer_join_with_cache",
    "rowid_filter",
    "semijoin",
    "semijoin_with_cache",
    "split_materialized",
    "subquery_cache",
)
IMAGES = ("FULL", "MINIMAL", "NOBLOB")


def optimizer_settings(chooser):
    """A SET statement that draws the plans of the statements to come."""
    chosen = [f"{name}={chooser.choice(('on', 'off'))}" for name in chooser.sample(SWITCHES, 8)]
    if chooser.random() < 0.7:
        chosen += ["mrr=on", "mrr_cost_based=off"]
    return (
        f"SET optimizer_switch = 'default', optimizer_switch = '{','.join(chosen)}', join_cache_level ="
        f" {chooser.randrange(9)}, join_buffer_size = {chooser.choice((8192, 32768, 262144))}, mrr_buffer_size ="
        f" {chooser.choice((8192, 262144))}, max_length_for_sort_data = {chooser.choice((4, 1024, 100000))}"
    )


def row_image(chooser):
    """Of what is logged, where there is a log."""
    return f"SET binlog_row_image = {chooser.choice(IMAGES)}"


class Joins:
    def __init__(self, schema, dml):
        self.schema, self.dml, self.chooser = schema, dml, schema.chooser

    def partners(self):
        """Three tables, perhaps the same ones; none that is temporary, for that cannot be opened twice."""
        tables = [table for table in self.schema.tables.values() if not table.temporary_of]
        return [self.chooser.choice(tables) for _ in range(3)] if tables else None

    def lob(self, table):
        return self.chooser.choice(table.lobs).name

    @staticmethod
    def hint(table):
        return " FORCE INDEX (PRIMARY)" if table.primary.startswith("id") else ""

    def read(self):
        """One random SELECT, or None where there is nothing to join."""
        tables = self.partners()
        if tables is None:
            return None
        kind = self.chooser.choice(
            (self.two, self.two, self.two, self.three, self.semi_join, self.derived, self.window)
        )
        return kind(*tables)

    def condition(self, alias, column):
        return self.chooser.choice(
            (
                f"{alias}.id < {self.dml.row_id()}",
                f"LENGTH({alias}.{column}) > {self.chooser.choice((0, 60, 5000))}",
                f"{alias}.{column} IS NOT NULL",
                f"{alias}.n IN (1, 2, {self.chooser.randrange(8)})",
            )
        )

    def two(self, first, second, _):
        """Rows of the second, each asked for once or several times."""
        x, y = self.lob(first), self.lob(second)
        join = self.chooser.choice(("STRAIGHT_JOIN", "STRAIGHT_JOIN", "JOIN", "LEFT JOIN"))
        on = self.chooser.choice(
            ("b.id = a.n", "b.id = a.n", "b.id = a.id", "b.n = a.id", "b.n = a.n", "b.id = a.n + 1")
        )
        hint = self.hint(second) if "b.id" in on and self.chooser.random() < 0.7 else ""
        shown = self.chooser.choice(
            (
                f"MD5(b.{y}), LENGTH(b.{y})",
                f"LENGTH(b.{y}), MD5(a.{x})",
                f"MD5(CONCAT(LENGTH(b.{y}), LEFT(HEX(b.{y}), 200)))",
            )
        )
        more = f" AND {self.condition('b', y)}" if self.chooser.random() < 0.4 else ""
        where = f" WHERE {self.condition('a', x)}" if self.chooser.random() < 0.4 else ""
        return (
            f"SELECT a.id, a.n, b.id, b.n, {shown} FROM {first.name} a {join} {second.name} b{hint} ON"
            f" {on}{more}{where}"
        )

    def three(self, first, second, third):
        x, y, z = self.lob(first), self.lob(second), self.lob(third)
        join = self.chooser.choice(("STRAIGHT_JOIN", "LEFT JOIN"))
        return (
            f"SELECT a.id, b.id, c.id, LENGTH(a.{x}), MD5(b.{y}), MD5(c.{z}) FROM {first.name} a STRAIGHT_JOIN"
            f" {second.name} b{self.hint(second)} ON b.id = a.n {join} {third.name} c{self.hint(third)} ON c.id = b.n"
            f" AND {self.condition('c', z)} WHERE a.id < {self.dml.row_id()}"
        )

    def semi_join(self, first, second, third):
        x, y = self.lob(first), self.lob(second)
        inner = f"SELECT b.n FROM {second.name} b WHERE {self.condition('b', y)}"
        return self.chooser.choice(
            (
                f"SELECT a.id, MD5(a.{x}) FROM {first.name} a WHERE a.id IN ({inner})",
                f"SELECT a.id, LENGTH(a.{x}) FROM {first.name} a WHERE a.n IN ({inner}) AND {self.condition('a', x)}",
                (
                    f"SELECT a.id, MD5(a.{x}) FROM {first.name} a WHERE EXISTS (SELECT 1 FROM {second.name} b WHERE"
                    f" b.id = a.n AND {self.condition('b', y)})"
                ),
                (
                    f"SELECT a.id, MD5(a.{x}) FROM {first.name} a WHERE NOT EXISTS (SELECT 1 FROM {second.name} b WHERE"
                    f" b.n = a.n AND LENGTH(b.{y}) < LENGTH(a.{x}))"
                ),
                f"SELECT a.id, (SELECT MAX(LENGTH(b.{y})) FROM {second.name} b WHERE b.n = a.n) FROM {first.name} a",
                (
                    f"SELECT a.id, MD5(a.{x}), c.id FROM {first.name} a JOIN {third.name} c ON c.n = a.id WHERE a.n IN"
                    f" ({inner})"
                ),
            )
        )

    def derived(self, first, second, _):
        x, y = self.lob(first), self.lob(second)
        return self.chooser.choice(
            (
                (
                    f"SELECT a.id, d.id, MD5(d.{y}) FROM {first.name} a JOIN (SELECT b.id, b.{y} FROM {second.name} b"
                    f" WHERE {self.condition('b', y)}) d ON d.id = a.n"
                ),
                (
                    f"SELECT a.id, d.m, MD5(a.{x}) FROM {first.name} a JOIN (SELECT n, MAX(LENGTH({y})) AS m FROM"
                    f" {second.name} GROUP BY n) d ON d.n = a.n"
                ),
                (
                    f"SELECT a.id, MD5(d.{y}) FROM {first.name} a LEFT JOIN (SELECT id, n, {y} FROM {second.name}) d ON"
                    f" d.n = a.id AND LENGTH(d.{y}) > 60"
                ),
                (
                    f"WITH c AS (SELECT id, n, {y} FROM {second.name} WHERE n < 6) SELECT u.id, w.id, MD5(u.{y}),"
                    f" MD5(w.{y}) FROM c u JOIN c w ON w.id = u.n"
                ),
            )
        )

    def window(self, first, second, _):
        x, y = self.lob(first), self.lob(second)
        return self.chooser.choice(
            (
                (
                    f"SELECT a.id, b.id, SUM(LENGTH(b.{y})) OVER (PARTITION BY a.n) FROM {first.name} a JOIN"
                    f" {second.name} b ON b.id = a.n"
                ),
                (
                    f"SELECT a.id, MAX(MD5(b.{y})) OVER (PARTITION BY b.n), MD5(a.{x}) FROM {first.name} a JOIN"
                    f" {second.name} b ON b.n = a.id"
                ),
                (
                    f"SELECT b.id, b.n, RANK() OVER (ORDER BY LENGTH(b.{y}), MD5(b.{y})), COUNT(b.{y}) OVER (PARTITION"
                    f" BY b.n) FROM {second.name} b"
                ),
            )
        )

    # --- what keeps the rows of a join ------------------------------------------------------------------------------
    def insert_into_log(self):
        tables = self.partners()
        if tables is None:
            return None
        first, second, _ = tables
        lob = self.lob(second)
        return (
            f"INSERT INTO log (what, b) SELECT 'j', LEFT(b.{lob}, 20000) FROM {first.name} a STRAIGHT_JOIN"
            f" {second.name} b{self.hint(second)} ON b.id = a.n WHERE a.id < {self.dml.row_id()}"
        )

    def create_and_drop(self, name):
        """A table made of a join, looked at, and dropped: SQL texts."""
        tables = self.partners()
        if tables is None:
            return []
        first, second, _ = tables
        lob = self.lob(second)
        return [
            (
                f"CREATE OR REPLACE TABLE {name} ENGINE={{e}} SELECT a.id AS aid, b.id, b.n, b.{lob} FROM {first.name}"
                f" a STRAIGHT_JOIN {second.name} b{self.hint(second)} ON b.id = a.n"
            ),
            f"SELECT aid, id, n, MD5({lob}) FROM {name}",
            f"DROP TABLE {name}",
        ]
