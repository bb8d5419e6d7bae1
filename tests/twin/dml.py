"""Random statements that read or change rows.

What they give must not depend on the order in which rows are met, for the two engines may choose different plans: a
statement that stops at a limit or may meet a duplicate names its order; nothing warns row by row while it filters.
"""

from twin.program import Statement

ID_RANGE = 40
LOAD_COLUMNS_MAX_BYTES = 9000


class Dml:
    def __init__(self, schema):
        self.schema = schema
        self.chooser = schema.chooser
        self.chance = schema.chance
        # Rows that one session prefers, so that sessions meet now and then, not always.
        self.own_ids = range(ID_RANGE)

    # --- pieces ---------------------------------------------------------------------------------------
    def row_id(self):
        return self.chooser.choice(self.own_ids) if self.chance(0.9) else self.chooser.randrange(ID_RANGE)

    def number(self):
        return str(self.chooser.randrange(8)) if self.chance(0.9) else "NULL"

    def row(self, table, columns=None):
        """One row for VALUES; ids are left out now and then where the server gives them."""
        first = "NULL" if table.auto_increment and self.chance(0.4) else str(self.row_id())
        items = [first, str(self.chooser.randrange(8)) if "n" in table.primary else self.number()]
        if table.parent:
            items.append(str(self.row_id()) if self.chance(0.8) else "NULL")
        for column in table.columns if columns is None else columns:
            is_lob = column.is_lob
            items.append(self.schema.value(table, column).sql() if is_lob else self.schema.scalar(column))
        return "(" + ", ".join(items) + ")"

    @staticmethod
    def names(table, columns=None):
        names = ["id", "n"] + (["pid"] if table.parent else [])
        return ", ".join(names + [c.name for c in (table.columns if columns is None else columns)])

    def condition(self, table):
        lob = self.chooser.choice(table.lobs)
        value = self.schema.value(table, lob)
        kinds = [
            lambda: f"id = {self.row_id()}",
            lambda: f"id = {self.row_id()}",
            lambda: f"id IN ({self.row_id()}, {self.row_id()}, {self.row_id()})",
            lambda: f"id BETWEEN {self.row_id()} AND {self.row_id()}",
            lambda: f"n = {self.number()}",
            lambda: f"LENGTH({lob.name}) > {self.chooser.choice(table.edges())}",
            lambda: f"{lob.name} IS {self.chooser.choice(('', 'NOT '))}NULL",
            lambda: f"{lob.name} = {value.sql()}",
            lambda: f"{lob.name} {self.chooser.choice(('>', '<', '>='))} {value.sql()}",
            lambda: f"LENGTH(SUBSTRING({lob.name}, {self.chooser.choice(table.edges()) + 1})) > 0",
        ]
        if lob.kind == "text":
            kinds.append(lambda: f"{lob.name} LIKE '{self.chooser.choice('abcxyzABC 01')}%'")
        return self.chooser.choice(kinds)()

    def assignment(self, table, duplicate=False):
        """One column's new value; `duplicate`: in ON DUPLICATE KEY UPDATE."""
        lob = self.chooser.choice(table.lobs)
        other = self.chooser.choice(table.lobs)
        name = lob.name
        if lob.kind == "json":
            kinds = [f"{name} = {self.schema.value(table, lob).sql()}", f"{name} = JSON_SET({name}, '$.k', 5)"]
        else:
            fresh = self.schema.value(table, lob)
            tail = self.schema.value(table, lob)
            kinds = [
                f"{name} = {fresh.sql()}",
                f"{name} = {fresh.sql()}",
                f"{name} = {name}",
                f"{name} = CONCAT(LEFT({name}, {self.chooser.choice(table.edges())}), {tail.sql()})",
                f"{name} = REVERSE({name})",
                f"{name} = INSERT({name}, {self.chooser.choice(table.edges()) // 2 + 1}, 3, 'xyz')",
                f"{name} = LEFT({name}, {self.chooser.choice(table.edges())})",
            ]
            if other.kind == lob.kind:
                kinds += [f"{name} = {other.name}"]
        kinds += ["n = n + 1", f"n = {self.chooser.randrange(8)}"]
        if table.scalars:
            scalar = self.chooser.choice(table.scalars)
            kinds.append(f"{scalar.name} = {self.schema.scalar(scalar)}")
        if duplicate:
            # VALUES() of a BLOB that an earlier assignment changed, of another type or character set, reads memory that
            # the server (10.11.18) has freed: Write_record::insert_on_duplicate_update keeps a pointer into
            # Field_blob::value, and Field_blob::store_field frees that buffer. So each column asks for its own only.
            kinds += [f"{name} = VALUES({name})"] * 4
            if lob.kind != "json":
                kinds.append(f"{name} = CONCAT(LEFT({name}, 500), VALUES({name}))")
        return self.chooser.choice(kinds)

    def assignments(self, table, duplicate=False):
        first = self.assignment(table, duplicate)
        if self.chance(0.6):
            return first
        second = self.assignment(table, duplicate)
        same = first.split(" = ")[0] == second.split(" = ")[0]
        return first if same else f"{first}, {second}"

    # --- statements that change rows --------------------------------------------------------------------
    def change(self, table):
        """One random statement's (how, sql, values, file)."""
        if table.period and self.chance(0.25):
            return Statement("", self.portion(table))
        makers = {
            self.insert: 26,
            self.update: 30,
            self.delete: 9,
            self.replace: 8,
            self.on_duplicate: 9,
            self.insert_select: 5,
            self.joined_update: 3,
            self.joined_delete: 1,
            self.prepared: 5,
            self.long_data: 4,
            self.load: 2,
        }
        made = self.chooser.choices(list(makers), list(makers.values()))[0](table)
        return made if isinstance(made, Statement) else Statement("", made)

    def insert(self, table):
        columns = None
        if self.chance(0.15):
            columns = [c for c in table.columns if not (c.nullable or c.default) or self.chance(0.6)]
        rows = ", ".join(self.row(table, columns) for _ in range(self.chooser.choice((1, 1, 1, 2, 5))))
        ignore = self.chooser.choice(("", "", "IGNORE "))
        returning = f" RETURNING id, LENGTH({table.lobs[0].name})" if self.chance(0.08) else ""
        return f"INSERT {ignore}INTO {table.name} ({self.names(table, columns)}) VALUES {rows}{returning}"

    def replace(self, table):
        rows = ", ".join(self.row(table) for _ in range(self.chooser.choice((1, 1, 3))))
        return f"REPLACE INTO {table.name} ({self.names(table)}) VALUES {rows}"

    def on_duplicate(self, table):
        rows = ", ".join(self.row(table) for _ in range(self.chooser.choice((1, 1, 3))))
        changes = self.assignments(table, duplicate=True)
        return f"INSERT INTO {table.name} ({self.names(table)}) VALUES {rows} ON DUPLICATE KEY UPDATE {changes}"

    def insert_select(self, table):
        source = self.chooser.choice([t for t in self.schema.tables.values() if t.temporary_of == table.temporary_of])
        kinds = {}
        for column in source.lobs:
            kinds.setdefault(column.kind, column)
        columns = [c for c in table.columns if not c.nullable or c.is_lob]
        picked = []
        for column in columns:
            if not column.is_lob:
                picked.append(self.schema.scalar(column))
            elif column.kind in kinds:
                picked.append(kinds[column.kind].name)
            else:
                picked.append(self.schema.value(table, column).sql())
        shift = self.chooser.choice((0, 1, 7, 20))
        pid = "NULL, " if table.parent else ""
        verb = self.chooser.choice(("INSERT", "INSERT IGNORE", "REPLACE"))
        # From itself the rows go through a temporary table of Aria's, which a scan gives back page by page: those read in
        # the order of an index are no longer in it when LIMIT counts them (with every engine). A sort counts before.
        hint = " USE INDEX ()" if source is table else ""
        return (
            f"{verb} INTO {table.name} ({self.names(table, columns)}) SELECT id + {shift}, COALESCE(n, 0), {pid}"
            f"{', '.join(picked)} FROM {source.name}{hint} WHERE {self.condition(source)} ORDER BY {source.order} LIMIT 6"
        )

    def update(self, table):
        ignore = self.chooser.choice(("", "", "IGNORE "))
        changes = self.assignments(table)
        if self.chance(0.08) and not table.auto_increment:
            changes += f", id = id + {self.chooser.choice((1, 13, -5))}"
        # A temporary order of the server's own, so that the row met first is the same with every plan.
        limit = f" ORDER BY {table.order}" + (f" LIMIT {self.chooser.choice((1, 3, 20))}" if self.chance(0.5) else "")
        return f"UPDATE {ignore}{table.name} SET {changes} WHERE {self.condition(table)}{limit}"

    def portion(self, table):
        """Of a part of the rows' period: the server inserts what is left of each row before and behind it."""
        first = self.chooser.randrange(1999, 2009)
        portion = f"FOR PORTION OF p FROM '{first}-01-01' TO '{first + self.chooser.choice((1, 2, 5))}-01-01'"
        if self.chance(0.4):
            return f"DELETE FROM {table.name} {portion} WHERE {self.condition(table)}"
        where = f"{self.condition(table)} ORDER BY {table.order}"
        return f"UPDATE {table.name} {portion} SET {self.assignments(table)} WHERE {where}"

    def delete(self, table):
        order = f" ORDER BY {table.order} LIMIT {self.chooser.choice((1, 2, 5))}"
        returning = " RETURNING id, n" if self.chance(0.1) else ""
        return f"DELETE FROM {table.name} WHERE {self.condition(table)}{order}{returning}"

    def joined_update(self, table):
        """Each row is joined to at most one other, so that it does not matter which comes first."""
        others = [
            t
            for t in self.schema.tables.values()
            if t.primary == "id" and t.name != table.name and t.temporary_of in ("", table.temporary_of)
        ]
        lobs = [c for c in table.lobs if c.kind != "json"]
        # Which of several offending rows an error names would depend on the plan.
        may_collide = "n" in table.primary or any("UNIQUE" in index for index in table.indexes.values())
        if not others or not lobs or may_collide:
            return self.update(table)
        other, lob = self.chooser.choice(others), self.chooser.choice(lobs)
        sources = [c for c in other.lobs if (c.kind, c.charset) == (lob.kind, lob.charset)]
        value = f"o.{self.chooser.choice(sources).name}" if sources else self.schema.value(table, lob).sql()
        return (
            f"UPDATE {table.name} a JOIN {other.name} o ON o.id = a.id SET a.{lob.name} = LEFT({value}, "
            f"{min(lob.capacity // lob.mbmaxlen, 60000)}), a.n = o.n WHERE a.id < {self.row_id()}"
        )

    def joined_delete(self, table):
        others = [t for t in self.schema.tables.values() if t.name != table.name and not t.temporary_of]
        if not others or table.temporary_of:
            return self.delete(table)
        other = self.chooser.choice(others)
        return (
            f"DELETE a FROM {table.name} a JOIN {other.name} o ON o.id = a.id WHERE o.n = {self.chooser.randrange(8)} "
            f"AND a.id < {self.row_id()}"
        )

    def prepared(self, table):
        lob = self.chooser.choice(table.lobs)
        value = self.schema.value(table, lob).sql()
        text = f"UPDATE {table.name} SET {lob.name} = ? WHERE id = ?"
        return f"EXECUTE IMMEDIATE '{text}' USING {value}, {self.row_id()}"

    def long_data(self, table):
        """Sent in pieces (COM_STMT_SEND_LONG_DATA)."""
        lobs = [c for c in table.lobs if c.kind != "json"]
        if not lobs:
            return self.insert(table)
        chosen = lobs[: self.chooser.choice((1, 2))]
        values = tuple(self.schema.value(table, column) for column in chosen)
        if self.chance(0.5):
            changes = ", ".join(f"{column.name} = ?" for column in chosen)
            return Statement("", f"UPDATE {table.name} SET {changes} WHERE id = {self.row_id()}", "long", values)
        others = [c for c in table.columns if c not in chosen and not c.nullable]
        fixed = [str(self.row_id()), str(self.chooser.randrange(8))]
        if table.parent:
            fixed.append("NULL")
        fixed += [self.schema.value(table, c).sql() if c.is_lob else self.schema.scalar(c) for c in others]
        names = self.names(table, others + chosen)
        marks = ", ".join(fixed + ["?"] * len(chosen))
        return Statement("", f"REPLACE INTO {table.name} ({names}) VALUES ({marks})", "long", values)

    def load(self, table):
        lobs = [c for c in table.lobs if c.kind == "blob"]
        if not lobs or any(not c.nullable for c in table.columns if c is not lobs[0]):
            return self.insert(table)
        lines = []
        for _ in range(self.chooser.choice((1, 3, 6))):
            data = self.schema.value(table, lobs[0]).data()
            field = b"\\N" if data is None else escape(data[: min(LOAD_COLUMNS_MAX_BYTES, lobs[0].capacity)])
            lines.append(b"%d\t%d\t%s\n" % (self.row_id(), self.chooser.randrange(8), field))
        mode = self.chooser.choice(("IGNORE", "REPLACE", "IGNORE"))
        sql = (
            f"LOAD DATA LOCAL INFILE '{{file}}' {mode} INTO TABLE {table.name} CHARACTER SET binary "
            f"(id, n, {lobs[0].name})"
        )
        return Statement("", sql, "load", file=b"".join(lines))

    # --- statements that read -------------------------------------------------------------------------------
    def read(self, table):
        lob = self.chooser.choice(table.lobs)
        name, condition = lob.name, self.condition(table)
        start = self.chooser.choice(table.edges()) + 1
        texts = [
            f"SELECT * FROM {table.name} WHERE {condition}",
            f"SELECT id, {name} FROM {table.name} WHERE {condition}",
            f"SELECT id, MD5({name}), LENGTH({name}) FROM {table.name} WHERE {condition}",
            f"SELECT id, SUBSTRING({name}, {start}, 200) FROM {table.name} WHERE {condition}",
            f"SELECT n, COUNT(*), MAX(LENGTH({name})), COUNT(DISTINCT MD5({name})) FROM {table.name} GROUP BY n",
            f"SELECT id, MD5({name}) FROM {table.name} ORDER BY LEFT({name}, 300), {table.order} LIMIT 7",
            f"SELECT COUNT(*) FROM {table.name} WHERE {condition}",
            f"SELECT a.id, MD5(a.{name}) FROM {table.name} a JOIN {table.name} o ON a.{name} = o.{name} "
            f"WHERE o.id = {self.row_id()}",
            f"SELECT id, n FROM {table.name} WHERE id IN (SELECT id FROM {table.name} WHERE n = 3) ORDER BY id, n",
            f"SELECT MD5({name}) FROM {table.name} WHERE id < 9 UNION SELECT MD5({name}) FROM {table.name} "
            "WHERE id > 5",
            f"SELECT id, {name} FROM {table.name} WHERE id = {self.row_id()} FOR UPDATE",
            f"SELECT id, LENGTH({name}) FROM {table.name} WHERE id = {self.row_id()} LOCK IN SHARE MODE",
            f"SELECT id, n, MD5(LAG({name}) OVER (ORDER BY id, n, LENGTH({name}), MD5({name}))) FROM {table.name}",
            f"SELECT DISTINCT HEX({name}) FROM {table.name} WHERE LENGTH({name}) < 5000",
        ]
        for index, (_, part) in table.generated.items():
            texts.append(f"SELECT id, {index} FROM {table.name} WHERE {index} IS NOT NULL AND {condition}")
        if table.fulltext:
            word = "".join(self.chooser.choices("abcdefgXYZ", k=self.chooser.choice((1, 2))))
            match = f"MATCH ({table.fulltext}) AGAINST ('{word}*' IN BOOLEAN MODE)"
            texts += [f"SELECT id, MD5({table.fulltext}) FROM {table.name} WHERE {match}"] * 4
        if table.versioned:
            texts += [f"SELECT id, MD5({name}) FROM {table.name} FOR SYSTEM_TIME ALL WHERE {condition}"] * 3
        if table.temporary_of:
            texts = [text for text in texts if text.count(table.name) == 1]
        return Statement("", self.chooser.choice(texts))


def escape(data):
    """A field as LOAD DATA reads it."""
    for plain, escaped in ((b"\\", b"\\\\"), (b"\t", b"\\t"), (b"\n", b"\\n"), (b"\0", b"\\0"), (b"\r", b"\\r")):
        data = data.replace(plain, escaped)
    return data
