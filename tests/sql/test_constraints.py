"""Foreign keys, triggers, CHECK and JSON, system versioning: rows that change inside InnoDB or inside the server."""

from harness.values import payload, text


def test_foreign_keys_with_cascades(twin):
    twin.all(
        "CREATE TABLE p (id INT PRIMARY KEY, b LONGBLOB) ENGINE={e}",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, b LONGBLOB, v LONGTEXT, KEY (p), "
        "FOREIGN KEY (p) REFERENCES p (id) ON UPDATE CASCADE ON DELETE CASCADE) ENGINE={e}",
        "CREATE TABLE g (id INT PRIMARY KEY, c INT, b LONGBLOB, "
        "FOREIGN KEY (c) REFERENCES c (id) ON UPDATE CASCADE ON DELETE SET NULL) ENGINE={e}",
    )
    for row in range(12):
        twin.run("INSERT INTO p VALUES (%s, %s)", (row, payload(row, 2000 + row * 900)))
    for row in range(36):
        twin.run(
            "INSERT INTO c VALUES (%s, %s, %s, %s)", (row, row % 12, payload(row, row * 300), text(row, row * 400))
        )
        twin.run("INSERT INTO g VALUES (%s, %s, %s)", (row, row, payload(row, 5000)))
    twin.run("INSERT INTO c VALUES (100, 99, 'orphan', '')", error=1452)
    twin.run("UPDATE p SET id = id + 100 WHERE id < 4")
    twin.run("DELETE FROM p WHERE id IN (5, 6)")
    twin.run("UPDATE c SET id = id + 1000, b = CONCAT(b, v) WHERE p = 8")
    twin.run("DELETE c FROM c JOIN p ON p.id = c.p WHERE p.id = 101")
    twin.run("UPDATE g SET c = 4711", error=1452)
    twin.check()
    twin.all("BEGIN", "DELETE FROM p", "SELECT COUNT(*) FROM c", "ROLLBACK")
    twin.check()
    twin.run("ALTER TABLE c FORCE")
    twin.run("TRUNCATE TABLE p", error=1701)
    twin.run("REPLACE INTO p VALUES (9, %s)", (payload(99, 9000),))
    twin.check()
    twin.run("DROP TABLE p", error=1451)
    twin.run("DROP TABLE g, c, p")


def test_foreign_key_that_refers_to_itself(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, up INT, b LONGBLOB, "
        "FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE) ENGINE={e}"
    )
    for row in range(15):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, None if row == 0 else (row - 1) // 2, payload(row, 6000)))
    twin.run("DELETE FROM t WHERE id = 1")
    twin.check()
    twin.run("DELETE FROM t WHERE id = 0")
    twin.check()


def test_triggers(twin):
    twin.all(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, v LONGTEXT) ENGINE={e}",
        "CREATE TABLE log (seq INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(10), id INT, old_b LONGBLOB, new_b "
        "LONGBLOB) ENGINE={e}",
        "CREATE TRIGGER bi BEFORE INSERT ON t FOR EACH ROW SET NEW.v = CONCAT('in:', NEW.v)",
        "CREATE TRIGGER bu BEFORE UPDATE ON t FOR EACH ROW SET NEW.v = CONCAT(OLD.v, LENGTH(NEW.b))",
        "CREATE TRIGGER ai AFTER INSERT ON t FOR EACH ROW INSERT INTO log (what, id, new_b) VALUES ('insert', "
        "NEW.id, NEW.b)",
        "CREATE TRIGGER au AFTER UPDATE ON t FOR EACH ROW INSERT INTO log (what, id, old_b, new_b) VALUES "
        "('update', NEW.id, OLD.b, NEW.b)",
        "CREATE TRIGGER bd BEFORE DELETE ON t FOR EACH ROW INSERT INTO log (what, id, old_b) VALUES ('delete', "
        "OLD.id, OLD.b)",
    )
    for row in range(20):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, payload(row, row * 700), text(row, row * 500)))
    twin.run("UPDATE t SET b = CONCAT(b, 'x') WHERE id % 2 = 0")
    twin.run("UPDATE t SET id = id + 100 WHERE id % 3 = 0")
    twin.run("REPLACE INTO t VALUES (1, %s, 'replaced')", (payload(50, 9000),))
    twin.run("INSERT INTO t VALUES (2, 'x', 'y') ON DUPLICATE KEY UPDATE v = CONCAT(v, 'odku')", error=None)
    twin.run("DELETE FROM t WHERE id > 110")
    twin.check()
    twin.run(
        "CREATE TRIGGER stop BEFORE INSERT ON log FOR EACH ROW IF NEW.id = 7 THEN SIGNAL SQLSTATE '45000' SET "
        "MESSAGE_TEXT = 'no'; END IF"
    )
    twin.run("UPDATE t SET b = REPEAT('n', 9000)", error=1644)
    twin.check()


def test_check_constraints_and_json(twin):
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON, v LONGTEXT CHECK (CHAR_LENGTH(v) < 50000), "
        "CONSTRAINT both_there CHECK (j IS NOT NULL OR v IS NOT NULL)) ENGINE={e}"
    )
    for row in range(20):
        body = '{"name": "%s", "list": [%s], "n": %d}' % (
            text(row, row * 400),
            ", ".join(map(str, range(row * 40))),
            row,
        )
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, body, text(row, 1000)))
    twin.run("INSERT INTO t VALUES (100, '{broken', 'v')", error=4025)
    twin.run("INSERT INTO t VALUES (100, NULL, NULL)", error=4025)
    twin.run("UPDATE t SET v = REPEAT(v, 60) WHERE id = 5", error=4025)
    twin.run(
        "SELECT id, JSON_VALUE(j, '$.n'), JSON_EXTRACT(j, '$.list[3]'), JSON_LENGTH(j, '$.list') FROM t ORDER BY id"
    )
    twin.run("UPDATE t SET j = JSON_SET(j, '$.n', 1000, '$.more', v) WHERE id > 10")
    twin.run("UPDATE t SET j = JSON_REMOVE(j, '$.list') WHERE JSON_VALUE(j, '$.n') = 1000")
    twin.run("SELECT id, jt.x FROM t, JSON_TABLE(t.j, '$.list[*]' COLUMNS (x INT PATH '$')) jt WHERE id < 5")
    twin.check()


def test_system_versioning(twin):
    twin.run("SET timestamp = 1700000000")
    twin.run("CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, v LONGTEXT) ENGINE={e} WITH SYSTEM VERSIONING")
    for row in range(15):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, payload(row, row * 900), text(row, 5000)))
    for turn in range(1, 5):
        twin.run(f"SET timestamp = {1700000000 + turn * 100}")
        twin.run("UPDATE t SET b = CONCAT(b, %s) WHERE id %% 4 = %s", (payload(turn, 4000), turn % 4))
        twin.run("DELETE FROM t WHERE id = %s", (turn,))
        twin.run("REPLACE INTO t VALUES (%s, %s, 'back')", (turn + 20, payload(turn + 90, 9000)))
    twin.run("SELECT *, ROW_START, ROW_END FROM t FOR SYSTEM_TIME ALL")
    for turn in range(0, 5):
        twin.run(f"SELECT id, b, v FROM t FOR SYSTEM_TIME AS OF FROM_UNIXTIME({1700000000 + turn * 100 + 50})")
    twin.check()
    twin.run("DELETE HISTORY FROM t BEFORE SYSTEM_TIME FROM_UNIXTIME(1700000250)")
    twin.run("SELECT *, ROW_START, ROW_END FROM t FOR SYSTEM_TIME ALL")
    twin.run("SET system_versioning_alter_history = KEEP")
    twin.run("ALTER TABLE t ADD COLUMN x LONGBLOB DEFAULT 'x'")
    twin.run("SELECT *, ROW_END FROM t FOR SYSTEM_TIME ALL")
    twin.run("ALTER TABLE t DROP SYSTEM VERSIONING")
    twin.check()
    twin.run("SET timestamp = 1700001000")
    twin.run("ALTER TABLE t ADD SYSTEM VERSIONING")
    twin.run("SET timestamp = 1700002000")
    twin.run("UPDATE t SET v = 'now'")
    twin.run("SELECT id, b, v, x FROM t FOR SYSTEM_TIME ALL")
    twin.check()


def test_versioned_columns_and_partitions(twin):
    twin.run("SET timestamp = 1700000000")
    twin.run(
        "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB, c LONGBLOB WITHOUT SYSTEM VERSIONING) ENGINE={e} WITH "
        "SYSTEM VERSIONING "
        "PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION pn CURRENT)"
    )
    for row in range(8):
        twin.run("INSERT INTO t VALUES (%s, %s, %s)", (row, payload(row, 7000), payload(row, 8000)))
    twin.run("SET timestamp = 1700000100")
    twin.all(
        "UPDATE t SET c = CONCAT(c, 'unversioned')",
        "UPDATE t SET b = CONCAT(b, 'versioned') WHERE id < 5",
        "DELETE FROM t WHERE id = 6",
    )
    twin.run("SELECT *, ROW_END FROM t FOR SYSTEM_TIME ALL")
    twin.run("ALTER TABLE t ADD PARTITION (PARTITION p1 HISTORY)")
    twin.run("SELECT *, ROW_END FROM t FOR SYSTEM_TIME ALL")
    twin.run("SET timestamp = DEFAULT")
