"""Random SELECTs over columns of long values, most of which ask only for pieces of them.

The tables are those of tests/sql/test_ranges.py. A statement is (texts, arguments): several texts belong together and
run in this order. What comes back never depends on anything but the rows.
"""

COLUMNS = ("b", "u", "l", "w", "j")
TABLES = ("t", "t", "z", "p", "g", "h")
NUMBERS = (
    *(0, 1, 2, 5, 100, 3999, 4096, 4097, 8192, 40000, 40001, 65536, 99999, 131072, 299999, 300000, 300001),
    *(1 << 31, (1 << 31) - 1, (1 << 32) + 5, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
)


class RangeStatements:
    def __init__(self, chooser):
        self.chooser = chooser

    def pick(self, *choices):
        return self.chooser.choice(choices)

    def one(self):
        shapes = [self.plain] * 6 + [self.aggregate, self.grouped, self.joined, self.nested, self.combined]
        shapes += [self.prepared, self.routine, self.stored_elsewhere, self.session_variable, self.odd]
        return self.chooser.choice(shapes)()

    # --- numbers and pieces -----------------------------------------------------------------------
    def number(self):
        number = self.chooser.choice(NUMBERS)
        if self.chooser.random() < 0.3:
            number = self.chooser.randrange(320_000)
        return -number if self.chooser.random() < 0.25 else number

    def length(self):
        return self.chooser.choice((1, 7, 100, 4096, 10_000)) if self.chooser.random() < 0.7 else self.number()

    def piece(self, column, position=None, length=None):
        """A piece of `column`, or a number made of its length, in the forms that are read in part."""
        position = self.number() if position is None else position
        length = self.length() if length is None else length
        return self.pick(
            f"SUBSTRING({column}, {position}, {length})",
            f"SUBSTRING({column}, {position}, {length})",
            f"MID({column}, {position}, {length})",
            f"SUBSTR({column} FROM {position} FOR {length})",
            f"SUBSTRING({column}, {position})",
            f"LEFT({column}, {length})",
            f"RIGHT({column}, {length})",
            f"LENGTH({column})",
            f"OCTET_LENGTH({column})",
            f"BIT_LENGTH({column})",
            f"CHAR_LENGTH({column})",
            f"{column} IS NULL",
        )

    def whole(self, column):
        """Something that needs more of it, or whose numbers are not the same for every row."""
        return self.pick(
            f"MD5({column})",
            f"MD5(UPPER({column}))",
            f"REVERSE({column})",
            f"SUBSTRING({column}, id + 1, 5)",
            f"SUBSTRING({column}, @position, 9)",
            f"SUBSTRING({column}, '3', 9)",
            f"SUBSTRING({column}, 2.5, 9)",
            f"SUBSTRING({column}, NULL, 9)",
            f"LEFT({column}, RAND() * 0 + 30000)",
            f"SUBSTRING(CONCAT({column}, 'x'), 3, 50000)",
            f"HEX(LEFT(CONVERT({column} USING utf16), 40))",
            f"HEX(LEFT({column} COLLATE utf8mb4_bin, 40))",
            f"INSTR({column}, 'xyzzy')",
            f"SUBSTRING_INDEX({column}, 'a', 3)",
            f"LEFT(TRIM({column}), 9)",
            f"COALESCE({column}, 'none')",
            f"NULLIF({column}, '')",
            f"CRC32({column})",
            f"LEFT({column}, (SELECT 3))",
            f"LEFT((SELECT {column}), 3)",
            f"JSON_VALID({column})",
            f"IF(id > 3, {column}, 'y')",
            f"MD5(CAST({column} AS CHAR(70000)))",
        )

    def wrapped(self, inner):
        return self.pick(
            inner,
            f"MD5({inner})",
            f"HEX(LEFT({inner}, 20))",
            f"UPPER({inner})",
            f"CONCAT({inner}, '-', {inner})",
            f"CASE WHEN {inner} = 'a' THEN 1 WHEN id = 2 THEN {inner} END",
            f"IFNULL({inner}, 'nothing')",
            f"LENGTH({inner})",
            f"HEX(CONVERT({inner} USING utf8mb4))",
            f"({inner}) IN ('a', 'b', 100)",
        )

    def column(self):
        return self.chooser.choice(COLUMNS)

    def expression(self, prefix=""):
        column = prefix + self.column()
        inner = self.piece(column) if self.chooser.random() < 0.85 else self.whole(column).replace("id", prefix + "id")
        return self.wrapped(inner).replace("id =", prefix + "id =")

    def short(self, column=None):
        """What an ORDER BY or a GROUP BY may well look at."""
        return self.pick(f"LEFT({column or self.column()}, 3)", f"LENGTH({column or self.column()})", "k", "k % 2")

    def condition(self, prefix=""):
        column = prefix + self.column()
        return self.pick(
            *("1", f"{prefix}id < 9", f"{prefix}id = {self.chooser.randrange(14)}", f"{prefix}id IN (2, 5, 7, 9)"),
            *(f"{prefix}k = {self.chooser.randrange(4)}", f"{prefix}k BETWEEN 1 AND 2"),
            *(f"LENGTH({column}) > {self.chooser.choice((0, 4000, 40000))}", f"{column} IS NOT NULL"),
            *(f"{self.piece(column)} <> 'a'", f"{self.piece(column)} > {self.piece(column)}"),
            *(f"NOT ({self.piece(column)} <=> NULL)", f"LEFT({column}, 1) BETWEEN 'a' AND 'm'"),
            *(f"{column} LIKE 'a%'", f"{column} > 'k'", f"{column} <> ''", f"{column} = {column}"),
            f"({prefix}id < 5 OR {self.piece(column)} LIKE '%a%')",
            f"({prefix}id < 5 OR {column} LIKE '%a')",
        )

    def where(self, prefix=""):
        conditions = [self.condition(prefix) for _ in range(self.pick(0, 1, 1, 2))]
        return " WHERE " + " AND ".join(conditions) if conditions else ""

    # --- shapes -----------------------------------------------------------------------------------
    def fields(self, prefix=""):
        return ", ".join([prefix + "id"] + [self.expression(prefix) for _ in range(self.pick(1, 1, 2, 3))])

    def table(self):
        return self.chooser.choice(TABLES)

    def order(self):
        return self.pick(
            *("", "", " ORDER BY id", " ORDER BY id DESC LIMIT 3", " ORDER BY k, id LIMIT 2, 5"),
            *(f" ORDER BY {self.short()}, id", f" ORDER BY {self.piece(self.column())}, id LIMIT 4"),
            *(" ORDER BY b, id", " ORDER BY u DESC, id LIMIT 3", " ORDER BY 2, id"),
        )

    def plain(self):
        hint = self.pick("", "", "", "SQL_NO_CACHE ", "SQL_BUFFER_RESULT ", "SQL_BIG_RESULT ", "SQL_CALC_FOUND_ROWS ")
        index = self.pick("", "", "", " FORCE INDEX (k)", " IGNORE INDEX (PRIMARY)")
        lock = self.pick("", "", "", " LOCK IN SHARE MODE", " FOR UPDATE")
        return [f"SELECT {hint}{self.fields()} FROM {self.table()}{index}{self.where()}{self.order()}{lock}"]

    def aggregate(self):
        inner = self.expression()
        aggregates = ("COUNT", "MIN", "MAX", "BIT_XOR", "COUNT(DISTINCT ", "GROUP_CONCAT")
        function = self.chooser.choice(aggregates)
        order = " ORDER BY id" if function == "GROUP_CONCAT" else ""
        call = f"{function}{inner})" if "(" in function else f"{function}({inner}{order})"
        having = self.pick("", "", " HAVING COUNT(*) > 0")
        return [f"SELECT {call}, COUNT(*), SUM(LENGTH({self.column()})) FROM {self.table()}{self.where()}{having}"]

    def grouped(self):
        key = self.short()
        inner = self.pick(f"SUM(LENGTH({self.column()}))", f"MAX({self.piece(self.column())})", "COUNT(*)")
        table = self.table()
        return [
            self.pick(
                f"SELECT {key}, {inner} FROM {table}{self.where()} GROUP BY {key}",
                f"SELECT {key}, {inner} FROM {table}{self.where()} GROUP BY {key} WITH ROLLUP",
                f"SELECT {key} AS x, {inner} FROM {table} GROUP BY x HAVING {inner} IS NOT NULL",
                f"SELECT DISTINCT {key}, {self.expression()} FROM {table}{self.where()}",
                f"SELECT id, {self.expression()} AS x FROM {table}{self.where()} HAVING x IS NOT NULL OR id > 4",
                f"SELECT id, {self.expression()}, ROW_NUMBER() OVER (ORDER BY {self.short()}, id) FROM {table}",
                f"SELECT id, LAG({self.piece(self.column())}) OVER (ORDER BY id) FROM {table}",
                f"SELECT id, {self.expression()} FROM {table} GROUP BY id",
            )
        ]

    def joined(self):
        left, right = self.table(), self.table()
        return [
            f"SELECT {self.fields('x.')}, {self.expression('y.')} FROM {left} x "
            + self.pick("JOIN", "LEFT JOIN", "STRAIGHT_JOIN")
            + f" {right} y ON "
            + self.pick("x.id = y.id", "x.k = y.k AND y.id < 4", "LENGTH(x.b) = LENGTH(y.b)", "LEFT(x.u, 9) = y.u")
            + self.where("x.")
        ]

    def nested(self):
        column, table, other = self.column(), self.table(), self.table()
        piece = self.piece(column)
        return [
            self.pick(
                f"SELECT {self.fields()} FROM (SELECT * FROM {table}) d{self.where()}",
                f"SELECT id, {self.wrapped('x')} FROM (SELECT id, {piece} AS x FROM {table}) d",
                f"SELECT id, LEFT(x, 9) FROM (SELECT id, {column} AS x FROM {table} ORDER BY id LIMIT 3) d WHERE x <> 'q'",
                f"SELECT {self.fields()} FROM {table} WHERE id IN (SELECT id FROM {other}{self.where()})",
                f"SELECT {self.fields()} FROM {table} x WHERE EXISTS (SELECT 1 FROM {other} y WHERE y.b = x.b)",
                f"SELECT id, (SELECT {piece} FROM {other} ORDER BY id LIMIT 1) IS NULL FROM {table}",
                f"SELECT id, (SELECT MAX(y.{column}) FROM {other} y WHERE y.id = x.id), LEFT(x.{column}, 5) FROM {table} x",
                f"WITH c AS (SELECT id, {column} FROM {table}) SELECT id, {piece} FROM c",
                f"WITH c AS (SELECT 1) SELECT {self.fields()} FROM {table}",
                f"SELECT {self.fields()} FROM v{self.where()}",
                f"SELECT id, piece, size FROM pieces{self.pick('', ' WHERE size > 50000', ' WHERE id < 9')}",
                f"SELECT id, {piece}, x.n FROM {table}, JSON_TABLE('[1,2]', '$[*]' COLUMNS (n INT PATH '$')) x",
            )
        ]

    def combined(self):
        column = self.column()
        left = f"SELECT id, {self.piece(column)} FROM {self.table()}{self.where()}"
        right = f"SELECT id, {self.pick(column, self.piece(column))} FROM {self.table()} WHERE id < 8"
        return [left + self.pick(" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + right]

    def prepared(self):
        column, order = self.column(), self.pick("", " ORDER BY id")
        table, where = self.table(), self.where()
        sql = self.pick(
            f"SELECT id, SUBSTRING({column}, ?, ?) FROM {table}{where}{order}",
            f"SELECT id, LEFT({column}, ?), RIGHT({column}, ?), LENGTH({column}) FROM {table}{where}{order}",
            f"SELECT COUNT(*), MAX(MID({column}, ?, ?)) FROM {table}{where}",
            f"SELECT id, SUBSTRING({column}, ?, 9) FROM {table} WHERE LEFT({column}, ?) <> '{self.pick('', 'a')}'{order}",
        )
        texts = ["PREPARE s FROM '" + sql.replace("'", "''") + "'"]
        for _ in range(3):
            first = self.pick(str(self.number()), str(self.number()), "NULL", "'7'", "7.5")
            texts += [f"SET @first = {first}, @second = {self.length()}", "EXECUTE s USING @first, @second"]
        return [*texts, "DEALLOCATE PREPARE s"]

    def routine(self):
        return [
            self.pick(
                f"CALL show_piece({self.number()}, {self.length()})",
                f"CALL walk_pieces({self.number()})",
                f"SELECT piece_of({self.chooser.randrange(14)}, {self.number()}, {self.length()})",
                f"SELECT id, {self.piece('b')}, piece_of(id, 5, 50000) FROM t",
                f"SELECT id, {self.piece('u')}, bump() FROM t",
                f"SELECT id, {self.expression()} FROM {self.table()} WHERE id = bump() OR id < 20",
            )
        ]

    def stored_elsewhere(self):
        column = self.column()
        return [
            "TRUNCATE TABLE scratch",
            self.pick(
                f"INSERT INTO scratch SELECT id, {self.piece(column)} FROM {self.table()}{self.where()}",
                f"INSERT INTO scratch SELECT id, {column} FROM {self.table()} WHERE LENGTH({column}) > 9",
                f"REPLACE INTO scratch SELECT id, LEFT({column}, 50000) FROM {self.table()}",
                f"INSERT INTO scratch SELECT id, b FROM t ON DUPLICATE KEY UPDATE x = LEFT(b, 3)",
            ),
            "UPDATE scratch SET x = CONCAT(LEFT(x, 50000), 'y') WHERE LENGTH(x) > 5",
            "DELETE FROM scratch WHERE SUBSTRING(x, 3, 1) = 'a' OR LENGTH(x) > 299000",
            "SELECT id, x FROM scratch",
        ]

    def session_variable(self):
        column = self.column()
        in_order = f"FROM {self.table()} FORCE INDEX (PRIMARY) ORDER BY id"
        return [
            f"SET @position = {self.number()}",
            self.pick(
                f"SELECT {self.piece(column)}, LENGTH({column}) FROM {self.table()} WHERE id = 9 INTO @a, @b",
                f"SELECT id, @a := {self.piece(column)}, @position := @position + 1 {in_order}",
                f"SELECT id, SUBSTRING({column}, @position, 9), @position := @position + 1000 {in_order}",
                f"SELECT id, @a := {column}, {self.piece(column)} {in_order}",
            ),
            "SELECT MD5(@a), @b",
        ]

    def odd(self):
        column, table = self.column(), self.chooser.choice(("t", "z", "g", "h"))
        return self.pick(
            [f"HANDLER {table} OPEN", f"HANDLER {table} READ FIRST LIMIT 12", f"HANDLER {table} CLOSE"],
            [f"LOCK TABLES {table} READ", f"SELECT {self.fields()} FROM {table}", "UNLOCK TABLES"],
            [f"LOCK TABLES {table} WRITE", f"SELECT {self.fields()} FROM {table}", "UNLOCK TABLES"],
            [f"SELECT {self.expression()} FROM {table} PROCEDURE ANALYSE(3, 100)"],
            ["SET sql_mode = ORACLE", f"SELECT id, {self.piece(column)} FROM {table}", "SET sql_mode = DEFAULT"],
            ["SET sql_mode = PIPES_AS_CONCAT", f"SELECT id, {self.piece(column)} || 'x' FROM t", "SET sql_mode = DEFAULT"],
            [f"SELECT {self.fields()} FROM h FOR SYSTEM_TIME ALL{self.where()}"],
            [f"SELECT {self.fields()} FROM p PARTITION (p1){self.where()}"],
            [f"SELECT {table}.id, LEFT({table}.{column}, 3) FROM {table} NATURAL JOIN scratch"],
            [f"SELECT id, LEFT({column}, 40000), vl, vc FROM g{self.pick('', ' WHERE vl > 9')}"],
            [f"SELECT id FROM {table} WHERE MATCH (l) AGAINST ('abc' IN BOOLEAN MODE)"],
            [f"SELECT SQL_CALC_FOUND_ROWS {self.fields()} FROM {table} ORDER BY id LIMIT 2", "SELECT FOUND_ROWS()"],
            [f"SELECT id, LEFT({column}, 3), ROWNUM() FROM {table} FORCE INDEX (PRIMARY) WHERE ROWNUM() < 40"],
            [f"DO (SELECT LEFT({column}, 9) FROM {table} WHERE id = 9)"],
            [f"SET @a = (SELECT {self.piece(column)} FROM {table} WHERE id = 9)", "SELECT MD5(@a)"],
            [f"CREATE OR REPLACE TABLE made AS SELECT id, {self.piece(column)} AS x FROM {table}", "SELECT * FROM made"],
            [f"ANALYZE TABLE {table} PERSISTENT FOR ALL"],
        )
