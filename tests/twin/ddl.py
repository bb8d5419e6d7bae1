"""Random definitions: ALTER in every way that the server knows, renames, copies, partitions, engines, triggers.

Each method returns the SQL of one or more statements and changes the model as if they succeeded.
"""

from twin.schema import LONG_DEFAULTS

ALGORITHMS = ("COPY", "INPLACE", "NOCOPY", "INSTANT", "DEFAULT")


class Ddl:
    def __init__(self, schema, dml, joins):
        self.schema = schema
        self.dml = dml
        self.joins = joins
        self.chooser = schema.chooser
        self.chance = schema.chance

    def change(self, table):
        """A list of SQL texts for one random change of `table`."""
        makers = {
            self.add_index: 14,
            self.drop_index: 5,
            self.new_options_then_index: 9,
            self.column_options: 6,
            self.add_column: 7,
            self.drop_column: 4,
            self.modify_column: 6,
            self.rename_column: 3,
            self.generated: 5,
            self.rebuild: 9,
            self.constraint: 3,
            self.primary_key: 3,
            self.convert: 2,
            self.truncate: 3,
            self.rename_table: 3,
            self.change_engine: 4,
            self.copy_table: 4,
            self.versioning: 3,
            self.triggers: 4,
            self.recreate: 2,
            self.maintain: 4,
        }
        if table.partitions:
            makers = {**makers, self.partitions: 22}
        elif not table.temporary_of and not table.parent and not table.referenced and table.primary == "id":
            makers = {**makers, self.partition_by: 3}
        return self.chooser.choices(list(makers), list(makers.values()))[0](table)

    def alter(self, table, *specifications, algorithm=True):
        text = f"ALTER TABLE {table.name} " + ", ".join(specifications)
        if table.auto_increment:
            # InnoDB's own counter stands elsewhere after a copy than after the same change in place.
            return f"{text}, ALGORITHM=COPY"
        if algorithm and self.chance(0.45):
            text += f", ALGORITHM={self.chooser.choice(ALGORITHMS)}"
        return text

    # --- indexes and options ------------------------------------------------------------------------------
    def add_index(self, table):
        if len(table.indexes) > 5:
            return self.drop_index(table)
        return [self.alter(table, f"ADD {self.schema.index(table)}")]

    def drop_index(self, table):
        if not table.indexes:
            return self.add_index(table)
        name = self.chooser.choice(list(table.indexes))
        text = table.indexes.pop(name)
        if "FULLTEXT" in text:
            table.fulltext = ""
        return [self.alter(table, f"DROP INDEX {name}")]

    def new_options_then_index(self, table):
        """A shorter prefix for new heads, rows written with it, then an index that needs a longer one."""
        text, inline, prefix, part = self.schema.quarry_options(changed=True)
        self.schema.note_options(table, inline, prefix, part)
        table.options = f" /*q {text}*/"
        lob = self.chooser.choice(table.lobs)
        copied = f" ALGORITHM=COPY /*q , {text}*/"
        statements = [f"ALTER TABLE {table.name}{copied if table.auto_increment else table.options}"]
        for _ in range(self.chooser.choice((0, 1, 2))):
            statements.append(self.dml.insert(table))
        if len(table.indexes) < 6:
            name = self.schema.name("k")
            table.indexes[name] = f"KEY {name} ({self.schema.prefix_part(table, lob)})"
            statements.append(self.alter(table, f"ADD {table.indexes[name]}"))
            statements.append(f"SELECT id, MD5({lob.name}) FROM {table.name} WHERE {lob.name} >= 'm'")
        return statements

    def column_options(self, table):
        if table.partition:
            return self.rebuild(table)
        column = self.chooser.choice(table.lobs)
        text, inline, prefix, part = self.schema.quarry_options(changed=True)
        self.schema.note_options(table, inline, prefix, part)
        column.options = f" /*q {text}*/" if self.chance(0.8) else ""
        return [self.alter(table, f"MODIFY {column.definition()}", algorithm=self.chance(0.5))]

    # --- columns ----------------------------------------------------------------------------------------------
    def add_column(self, table):
        if len(table.columns) > 8:
            return self.drop_column(table)
        column = self.schema.lob_column(not table.partition) if self.chance(0.6) else self.schema.scalar_column()
        if column.type.startswith("POINT"):
            column.nullable = True
        if column.default in LONG_DEFAULTS:
            column.default = "MD5(n)"  # see below
        table.columns.append(column)
        where = self.chooser.choice(("", "", " FIRST", " AFTER id"))
        # A long default in an instant column crashes InnoDB's own CHECK TABLE EXTENDED in 10.11.18: copy.
        if column.kind == "blob" and self.chance(0.2):
            column.options = column.default = ""
            plain = column.definition().replace(column.type, f"{column.type} DEFAULT REPEAT('d', 200)", 1)
            return [f"ALTER TABLE {table.name} ADD COLUMN {plain}{where}, ALGORITHM=COPY"]
        return [self.alter(table, f"ADD COLUMN {column.definition()}{where}")]

    def in_use(self, table, name):
        texts = [table.primary, *table.indexes.values(), *table.constraints.values()]
        texts += [definition for definition, _ in table.generated.values()]
        return any(name in text.replace("(", " ").replace(")", " ").replace(",", " ").split() for text in texts)

    def drop_column(self, table):
        free = [c for c in table.columns if not self.in_use(table, c.name)]
        if not free or len(table.lobs) < 2 and free[0].is_lob:
            return self.rebuild(table)
        column = self.chooser.choice(free)
        if column.is_lob and len(table.lobs) < 2:
            return self.rebuild(table)
        table.columns.remove(column)
        return self.without_triggers(table) + [self.alter(table, f"DROP COLUMN {column.name}")]

    def modify_column(self, table):
        column = self.chooser.choice(table.lobs)
        wider = {"TINYBLOB": "BLOB", "BLOB": "LONGBLOB", "MEDIUMBLOB": "LONGBLOB", "LONGBLOB": "MEDIUMBLOB"}
        wider |= {key.replace("BLOB", "TEXT"): value.replace("BLOB", "TEXT") for key, value in wider.items()}
        base = column.type.split()[0]
        if base in wider and self.chance(0.6):
            column.type = column.type.replace(base, wider[base], 1)
            column.capacity = (1 << 24) - 1 if base.startswith("LONG") else 65535
        elif not column.nullable or "BLOB" not in base:
            column.nullable = True
        where = self.chooser.choice(("", "", " FIRST", " AFTER n"))
        if column.name in table.primary:
            column.nullable = False
        return [self.alter(table, f"MODIFY {column.definition()}{where}")]

    def rename_column(self, table):
        free = [c for c in table.columns if not self.in_use(table, c.name)]
        if not free:
            return self.rebuild(table)
        column = self.chooser.choice(free)
        old, column.name = column.name, self.schema.name("r")
        if self.chance(0.5):
            return self.without_triggers(table) + [self.alter(table, f"RENAME COLUMN {old} TO {column.name}")]
        return self.without_triggers(table) + [self.alter(table, f"CHANGE {old} {column.definition()}")]

    def generated(self, table):
        if table.generated and self.chance(0.4):
            name = self.chooser.choice(list(table.generated))
            if not self.in_use(table, name) and f"{name}(20)" not in str(table.indexes):
                del table.generated[name]
                return [self.alter(table, f"DROP COLUMN {name}")]
        name = self.schema.generated_column(table)
        definition, part = table.generated[name]
        statements = [self.alter(table, f"ADD COLUMN {name} {definition}")]
        if self.chance(0.6):
            index = self.schema.name("k")
            table.indexes[index] = f"KEY {index} ({part})"
            statements.append(self.alter(table, f"ADD {table.indexes[index]}"))
        return statements

    def constraint(self, table):
        if table.constraints and self.chance(0.5):
            name = self.chooser.choice(list(table.constraints))
            kind = "FOREIGN KEY" if "FOREIGN" in table.constraints.pop(name) else "CONSTRAINT"
            return [self.alter(table, f"DROP {kind} {name}")]
        name = self.schema.name("c")
        table.constraints[name] = f"CHECK (LENGTH({self.chooser.choice(table.lobs).name}) <> 3333)"
        return [self.alter(table, f"ADD CONSTRAINT {name} {table.constraints[name]}")]

    def primary_key(self, table):
        if table.partition or table.auto_increment or table.referenced or table.primary not in ("", "id", "id, n"):
            return self.rebuild(table)
        if not table.primary:
            return [self.alter(table, "ADD COLUMN IF NOT EXISTS dummy INT")]
        wanted = "id, n" if table.primary == "id" else "id"
        statement = self.alter(table, "DROP PRIMARY KEY", f"ADD PRIMARY KEY ({wanted})")
        table.primary = "id, n"  # it may fail on duplicates: what is certain is that this is unique
        return [f"UPDATE IGNORE {table.name} SET n = 0 WHERE n IS NULL ORDER BY {table.order}", statement]

    def convert(self, table):
        charset = self.chooser.choice(("utf8mb4", "latin1", "utf8mb4 COLLATE utf8mb4_bin"))
        if not table.indexes and not table.versioned:
            return [self.alter(table, f"CONVERT TO CHARACTER SET {charset}")]
        return [self.alter(table, f"DEFAULT CHARACTER SET {charset}")]

    # --- whole tables --------------------------------------------------------------------------------------------
    def rebuild(self, table):
        specification = self.chooser.choice(
            ("FORCE", "FORCE", "ENGINE={e}", "ENGINE={e}", "COMMENT 'again'", "ROW_FORMAT=DYNAMIC", "ORDER BY id")
        )
        if specification.startswith("ROW_FORMAT"):
            table.row_format = "DYNAMIC"
        return [self.alter(table, specification, algorithm=specification != "ORDER BY id")]

    def truncate(self, table):
        return [f"TRUNCATE TABLE {table.name}" if self.chance(0.7) else f"DELETE FROM {table.name}"]

    def rename_table(self, table):
        if table.referenced or table.temporary_of:
            return self.rebuild(table)
        old, table.name = table.name, self.schema.name("t")
        self.schema.tables[table.name] = self.schema.tables.pop(old)
        if self.chance(0.5):
            return self.without_triggers(table, old) + [f"RENAME TABLE {old} TO {table.name}"]
        return self.without_triggers(table, old) + [f"ALTER TABLE {old} RENAME TO {table.name}"]

    def change_engine(self, table):
        # The server moves no system-versioned table between InnoDB and another engine (docs/use/options.md).
        tied = table.parent or table.referenced or table.fulltext or table.auto_increment
        if tied or table.partition or table.versioned:
            return self.rebuild(table)
        other = "Aria" if self.chance(0.15) else "InnoDB"
        reads = [self.dml.insert(table), f"SELECT * FROM {table.name}"]
        back = f"ALTER TABLE {table.name} ENGINE={{e}}"
        return [f"ALTER TABLE {table.name} ENGINE={other}", *(reads if other == "InnoDB" else reads[1:]), back]

    def copy_table(self, table):
        """CREATE ... LIKE or ... SELECT, filled, looked at and dropped again (or put in the place of the old one)."""
        name = self.schema.name("copy")
        if self.chance(0.4):
            return self.joins.create_and_drop(name) or self.rebuild(table)
        if self.chance(0.5) and not table.parent:
            statements = [f"CREATE TABLE {name} LIKE {table.name}", self.fill(table, name)]
        else:
            options = self.schema.quarry_options()[0] if self.chance(0.5) else ""
            marked = f" /*q {options}*/" if options else ""
            names = ", ".join(["id", "n", *(c.name for c in table.columns)])
            statements = [f"CREATE OR REPLACE TABLE {name} ENGINE={{e}}{marked} SELECT {names} FROM {table.name}"]
        statements.append(f"SELECT * FROM {name}")
        if self.chance(0.3):
            change = f"{self.dml.assignment(table)}, n = 4"
            statements.append(f"UPDATE {name} SET {change} WHERE id < 9 ORDER BY {table.order}")
        return [*statements, f"DROP TABLE {name}"]

    def fill(self, table, name):
        names = self.dml.names(table)
        return f"INSERT INTO {name} ({names}) SELECT {names} FROM {table.name} ORDER BY {table.order}"

    def versioning(self, table):
        if table.versioned:
            if self.chance(0.5):
                table.versioned = False
                return [f"ALTER TABLE {table.name} DROP SYSTEM VERSIONING"]
            return [f"DELETE HISTORY FROM {table.name}"]
        if table.parent or table.referenced or table.partition or table.temporary_of or "UNIQUE" in str(table.indexes):
            return self.rebuild(table)
        if "STORED" in str(table.generated):
            return self.rebuild(table)
        table.versioned = True
        return [f"ALTER TABLE {table.name} ADD SYSTEM VERSIONING"]

    def recreate(self, table):
        if table.referenced:
            return self.truncate(table)
        return [f"DROP {'TEMPORARY ' if table.temporary_of else ''}TABLE {table.name}", table.create()]

    def maintain(self, table):
        verbs = ["ANALYZE TABLE {t}", "CHECK TABLE {t}", "FLUSH TABLES {t}"]
        if not table.auto_increment:
            verbs.append("OPTIMIZE TABLE {t}")
        verb = self.chooser.choice(verbs)
        return [verb.replace("{t}", table.name)]

    def triggers(self, table):
        if table.temporary_of:
            return self.rebuild(table)
        lob = self.chooser.choice(table.lobs)
        name = f"{table.name}_trigger"
        value = f"CONCAT(LEFT(NEW.{lob.name}, {max(lob.capacity // lob.mbmaxlen // 2, 1)}), 'tr')"
        if lob.kind == "json":
            value = f"JSON_SET(NEW.{lob.name}, '$.k', 7)"
        body = self.chooser.choice(
            (
                f"BEFORE INSERT ON {table.name} FOR EACH ROW SET NEW.{lob.name} = {value}",
                f"BEFORE UPDATE ON {table.name} FOR EACH ROW SET NEW.{lob.name} = {value}",
                f"BEFORE UPDATE ON {table.name} FOR EACH ROW SET NEW.n = LENGTH(OLD.{lob.name}) % 8",
                f"AFTER INSERT ON {table.name} FOR EACH ROW INSERT INTO log (what, b) VALUES ('i', NEW.{lob.name})",
                f"AFTER UPDATE ON {table.name} FOR EACH ROW INSERT INTO log (what, b) VALUES ('u', OLD.{lob.name})",
                f"AFTER DELETE ON {table.name} FOR EACH ROW INSERT INTO log (what, b) VALUES ('d', OLD.{lob.name})",
            )
        )
        return [f"CREATE OR REPLACE TRIGGER {name} {body}"]

    @staticmethod
    def without_triggers(table, name=None):
        """A trigger's body would name what is about to have another name."""
        return [f"DROP TRIGGER IF EXISTS {name or table.name}_trigger"] if not table.temporary_of else []

    # --- partitions ---------------------------------------------------------------------------------------------
    def partition_by(self, table):
        if table.versioned or table.period or table.fulltext or "UNIQUE" in str(table.indexes):
            return self.rebuild(table)
        if any(column.options.startswith(" /*q") for column in table.columns):
            return self.rebuild(table)
        self.schema.choose_partitions(table)
        return [f"ALTER TABLE {table.name} {table.partition}"]

    def partitions(self, table):
        name = self.chooser.choice(table.partitions)
        if self.chance(0.1):
            table.partition, table.partitions = "", []
            return [f"ALTER TABLE {table.name} REMOVE PARTITIONING"]
        luck = self.chooser.random()
        if luck < 0.3:
            return self.exchange(table, name)
        if luck < 0.6:
            return self.reorganize(table)
        if luck < 0.7:
            return [f"SELECT * FROM {table.name} PARTITION ({name})"]
        verb = self.chooser.choice(("TRUNCATE", "REBUILD", "CHECK", "ANALYZE", "OPTIMIZE"))
        return [f"ALTER TABLE {table.name} {verb} PARTITION {name}"]

    def exchange(self, table, partition):
        """A partition against a table of the same shape, twice at times."""
        name = self.schema.name("other")
        statements = [
            f"CREATE TABLE {name} LIKE {table.name}",
            f"ALTER TABLE {name} REMOVE PARTITIONING",
            f"INSERT INTO {name} ({self.dml.names(table)}) SELECT {self.dml.names(table)} FROM {table.name} "
            f"PARTITION ({partition}) ORDER BY {table.order} LIMIT 3",
            f"ALTER TABLE {table.name} EXCHANGE PARTITION {partition} WITH TABLE {name}",
            f"SELECT * FROM {name}",
        ]
        return [*statements, f"DROP TABLE {name}"]

    def reorganize(self, table):
        if "HASH" in table.partition or "KEY" in table.partition:
            if self.chance(0.5) or len(table.partitions) < 3:
                table.partitions.append(f"p{len(table.partitions)}")
                return [f"ALTER TABLE {table.name} ADD PARTITION PARTITIONS 1"]
            table.partitions.pop()
            return [f"ALTER TABLE {table.name} COALESCE PARTITION 1"]
        if "RANGE" in table.partition:
            bound = self.chooser.choice((5, 12, 18))
            return [
                f"ALTER TABLE {table.name} REORGANIZE PARTITION p0, p1 INTO (PARTITION p0 VALUES LESS THAN ({bound}), "
                "PARTITION p1 VALUES LESS THAN (25))"
            ]
        return [f"ALTER TABLE {table.name} REORGANIZE PARTITION p1 INTO (PARTITION p1 VALUES IN (1))"]
