"""Every kind of DDL that kill_in_ddl cuts off, and what may be there afterwards.

Each kind is prepared in a schema of its own. The statements are the same on an InnoDB twin, whose tables, before and
after, are the only two states (or, where the server promises less, the only few) that a crash may leave.
"""

from typing import NamedTuple

# A table of 16 rows, values on both sides of every limit, NULLs among them: `rows` is an InnoDB table made once.
COLUMNS = "id INT PRIMARY KEY, b LONGBLOB, v TEXT, n INT NOT NULL DEFAULT 0, KEY v (v(10))"
FILL = "INSERT INTO t SELECT * FROM seed.source"
TABLE = (f"CREATE TABLE t ({COLUMNS}) ENGINE={{e}}", FILL)
INNODB_TABLE = (f"CREATE TABLE t ({COLUMNS}) ENGINE=InnoDB", FILL)
OTHER = (
    f"CREATE TABLE u ({COLUMNS}) ENGINE={{e}}",
    "INSERT INTO u SELECT id + 100, CONCAT('other', b), v, n FROM seed.source WHERE id < 10",
)
RANGES = (
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (6), PARTITION p1 VALUES LESS THAN (11), "
    "PARTITION p2 VALUES LESS THAN (1000))"
)
PARTITIONED = (f"CREATE TABLE t ({COLUMNS}) ENGINE={{e}} {RANGES}", FILL)
HASHED = (f"CREATE TABLE t ({COLUMNS}) ENGINE={{e}} PARTITION BY HASH (id) PARTITIONS 3", FILL)
EXCHANGED = (
    *PARTITIONED,
    f"CREATE TABLE u ({COLUMNS}) ENGINE={{e}}",
    "INSERT INTO u SELECT id + 6, CONCAT('other', b), v, n FROM seed.source WHERE id < 4",
)


class Kind(NamedTuple):
    name: str
    setup: tuple
    ddl: str
    # What the twin runs in its place, one state after each: for options that InnoDB does not know, and for what the
    # server documents as not atomic.
    twin: tuple = ()
    # The engines of `t` before and after; the twin's is InnoDB.
    engines: tuple = ("{e}", "{e}")


class Fault(NamedTuple):
    """Something that such crashes do to plain InnoDB tables too (QUARRY_TEST_ENGINE=InnoDB shows it). A file of a table
    is lost to the server then, not to a person: nothing was removed.

    `pattern`: what is found. `kinds`: the only ones in which it may happen. `by_log`: the server's log says it, about a
    file of its own or InnoDB's, and says nothing else; otherwise it counts only if the same cut of the same kind, with InnoDB,
    shows the same in this very run.
    """

    pattern: str
    reason: str
    kinds: tuple
    by_log: bool


PARTITIONING = (
    *("partition-by", "remove-partitioning", "add-partition", "add-hash-partition", "coalesce-partition"),
    *("drop-partition", "reorganize-partition", "exchange-partition", "truncate-partition", "rebuild-partition"),
    *("convert-partition",),
)
BACKUP = r"'#sql-backup-[0-9a-f]+-[0-9a-f]+(#P#[^']*\.ibd|\.par|\.frm)'"
SERVER_FAULTS = (
    Fault(
        r"Failed to read from the \.par file",
        "the partitions' renames and the .par file's are not one step",
        PARTITIONING,
        by_log=True,
    ),
    Fault(
        r"tables \[\] instead of \['t'\].*tables \[\] instead of \['t', 'u'\]",
        "CONVERT PARTITION moves t.frm in two steps",
        ("convert-partition",),
        by_log=False,
    ),
    Fault(
        rf"files of temporary tables are left: \[{BACKUP}(, {BACKUP})*\]",
        "DDL recovery has no .par file by which to find the old partitions",
        PARTITIONING,
        by_log=False,
    ),
    Fault(
        r"InnoDB: Cannot rename '[^']*#TMP#[^']*\.ibd' to '[^']*\.ibd' because the target file exists",
        "DDL recovery comes before the file's unlink",
        PARTITIONING,
        by_log=True,
    ),
    Fault(
        r"InnoDB: Missing FILE_CREATE, FILE_DELETE or FILE_MODIFY before FILE_CHECKPOINT",
        "InnoDB's recovery stops at a file that was renamed or deleted after the checkpoint",
        (),
        by_log=True,
    ),
)
# What the server adds when InnoDB does not start.
CONSEQUENCES = (
    r"Plugin 'InnoDB' (init function returned error|registration as a STORAGE ENGINE failed)",
    r"InnoDB: Plugin initialization aborted",
    r"InnoDB: Database creation was aborted",
    r"Unknown/unsupported storage engine: InnoDB",
    r"\[ERROR\] Aborting",
)

KINDS = (
    Kind("create", (), f"CREATE TABLE t ({COLUMNS}) ENGINE={{e}}"),
    Kind("create-select", (), "CREATE TABLE t (PRIMARY KEY (id)) ENGINE={e} SELECT * FROM seed.source"),
    Kind("create-like", TABLE, "CREATE TABLE u LIKE t"),
    Kind(
        "create-or-replace-select",
        (*TABLE, *OTHER),
        "CREATE OR REPLACE TABLE t (PRIMARY KEY (id)) ENGINE={e} SELECT id, CONCAT('new', b) b, v, n FROM u",
        twin=("DROP TABLE t", "CREATE TABLE t (PRIMARY KEY (id)) SELECT id, CONCAT('new', b) b, v, n FROM u"),
    ),
    Kind("alter-copy", TABLE, "ALTER TABLE t ADD COLUMN x LONGBLOB DEFAULT REPEAT('x', 5000), ALGORITHM=COPY"),
    Kind("alter-force-copy", TABLE, "ALTER TABLE t FORCE, ALGORITHM=COPY"),
    Kind("alter-rebuild", TABLE, "ALTER TABLE t FORCE"),
    Kind("alter-primary-key", TABLE, "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)"),
    Kind("alter-instant", TABLE, "ALTER TABLE t ADD COLUMN x INT NOT NULL DEFAULT 7, ADD COLUMN y LONGBLOB"),
    Kind("alter-drop-column", TABLE, "ALTER TABLE t DROP COLUMN b"),
    Kind("alter-rename-column", TABLE, "ALTER TABLE t CHANGE v w TEXT"),
    Kind("alter-rename-and-add", TABLE, "ALTER TABLE t RENAME TO t2, ADD COLUMN x INT"),
    Kind("alter-type", TABLE, "ALTER TABLE t MODIFY v LONGTEXT CHARACTER SET utf8mb4 NOT NULL DEFAULT ''"),
    Kind("alter-options", TABLE, "ALTER TABLE t INLINE_SIZE=100", twin=("ALTER TABLE t FORCE",)),
    Kind("alter-options-instant", TABLE, "ALTER TABLE t CODEC=zstd", twin=("ALTER TABLE t COMMENT=''",)),
    Kind("add-index", TABLE, "ALTER TABLE t ADD KEY n (n)"),
    Kind("add-prefix-index", TABLE, "ALTER TABLE t ADD KEY b (b(50))"),
    Kind("add-fulltext", TABLE, "ALTER TABLE t ADD FULLTEXT f (v)"),
    Kind("drop-index", TABLE, "DROP INDEX v ON t"),
    Kind("add-versioning", TABLE, "ALTER TABLE t ADD SYSTEM VERSIONING"),
    Kind("to-quarry", INNODB_TABLE, "ALTER TABLE t ENGINE={e}", engines=("InnoDB", "{e}")),
    Kind("to-innodb", TABLE, "ALTER TABLE t ENGINE=InnoDB", engines=("{e}", "InnoDB")),
    Kind("rename", TABLE, "RENAME TABLE t TO t2"),
    Kind("rename-swap", (*TABLE, *OTHER), "RENAME TABLE t TO x, u TO t, x TO u"),
    Kind("truncate", TABLE, "TRUNCATE TABLE t"),
    Kind("drop", TABLE, "DROP TABLE t"),
    # Documented: each table by itself.
    Kind("drop-two", (*TABLE, *OTHER), "DROP TABLE t, u", twin=("DROP TABLE t", "DROP TABLE u")),
    Kind("optimize", TABLE, "OPTIMIZE TABLE t"),
    Kind("partition-by", TABLE, f"ALTER TABLE t {RANGES}"),
    Kind("remove-partitioning", PARTITIONED, "ALTER TABLE t REMOVE PARTITIONING"),
    Kind("add-partition", PARTITIONED, "ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (2000))"),
    Kind("add-hash-partition", HASHED, "ALTER TABLE t ADD PARTITION PARTITIONS 1"),
    Kind("coalesce-partition", HASHED, "ALTER TABLE t COALESCE PARTITION 1"),
    Kind("drop-partition", PARTITIONED, "ALTER TABLE t DROP PARTITION p1"),
    Kind(
        "reorganize-partition",
        PARTITIONED,
        "ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO "
        "(PARTITION a VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN (11))",
    ),
    Kind("exchange-partition", EXCHANGED, "ALTER TABLE t EXCHANGE PARTITION p1 WITH TABLE u"),
    Kind("truncate-partition", PARTITIONED, "ALTER TABLE t TRUNCATE PARTITION p1"),
    Kind("rebuild-partition", PARTITIONED, "ALTER TABLE t REBUILD PARTITION p0, p1"),
    Kind("convert-partition", PARTITIONED, "ALTER TABLE t CONVERT PARTITION p1 TO TABLE u"),
    # Statements that change rows and commit, for their crash is a crash in the same places.
    Kind("insert", TABLE, "INSERT INTO t SELECT id + 50, CONCAT('more', b), v, n FROM seed.source"),
    Kind("update", TABLE, "UPDATE t SET b = CONCAT(b, REPEAT('longer', 5000)), v = 'changed' WHERE id < 9"),
    Kind("delete", TABLE, "DELETE FROM t WHERE id % 2 = 0"),
)
