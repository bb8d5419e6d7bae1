"""Binary-log replication: whatever the primary commits, the replica holds, value for value.

After each load: MASTER_GTID_WAIT for the primary's position, then the primary's rows against what its clients were
told, then every row of the replica against the primary's by CHECKSUM TABLE and SHA-256.
(quarry_replica_write_batch_bytes is seen in tests/sql/test_knobs.py.)
"""

import os

import pymysql
import pytest

from harness.outside import look
from harness.values import payload
from harness.waiting import wait_for, wait_until_detached
from harness.workload import SCALE, compare, digests

pytestmark = pytest.mark.quarry_only

MIB = 1 << 20


# --- formats, images, engines ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("engines", [("QUARRY", "QUARRY"), ("InnoDB", "QUARRY"), ("QUARRY", "InnoDB")], ids="-to-".join)
@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
def test_row_based(pair, load, image, engines):
    """Every image; the engine may differ on the two sides. Values of up to 8 MiB, NULLs, cascades, savepoints."""
    pair.configure({"binlog_row_image": f"'{image}'"})
    one = load(engines=engines, large_bytes=8 * MIB)
    one.run(12 * SCALE)
    assert one.check() > 0
    for server, engine in zip((pair.primary, pair.replica), engines):
        found = server.query(
            "SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema = %s", (one.schema,)
        )
        assert [name.upper() for (name,) in found] == [engine.upper()], server.name


@pytest.mark.parametrize("binlog_format", ["MIXED", "STATEMENT"])
def test_other_formats(pair, load, binlog_format):
    pair.configure({"binlog_format": f"'{binlog_format}'"})
    one = load()
    one.run(15 * SCALE)
    assert one.check() > 0


def test_row_images_differ_in_what_they_carry(pair):
    """The images really are what the tests above think: an update that leaves the value alone logs it only in FULL."""
    pair.primary.query("CREATE DATABASE images")
    pair.primary.query("CREATE TABLE images.t (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE=QUARRY")
    pair.primary.query("INSERT INTO images.t VALUES (1, 0, %s)", (payload("image", MIB),))
    grown = {}
    for image in ("FULL", "NOBLOB", "MINIMAL"):
        pair.configure({"binlog_row_image": f"'{image}'"})
        before = binlog_position(pair.primary)
        pair.primary.query("UPDATE images.t SET n = n + 1")
        after = binlog_position(pair.primary)
        assert before[0] == after[0]
        grown[image] = after[1] - before[1]
    pair.wait()
    assert grown["FULL"] > 2 * MIB and grown["NOBLOB"] < 1000 and grown["MINIMAL"] < 1000, grown
    compare((pair.primary, pair.replica), "images")
    pair.primary.query("DROP DATABASE images")


def binlog_position(server):
    name, position, *_ = server.query("SHOW MASTER STATUS")[0]
    return name, int(position)


# --- parallel appliers ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["conservative", "optimistic", "aggressive"])
def test_parallel_appliers(pair, load, mode):
    """Four appliers. Clients that fight for the same rows make optimistic ones run into conflicts, which roll back."""
    pair.configure(
        {"binlog_commit_wait_count": 3, "binlog_commit_wait_usec": 20000, "binlog_row_image": "'MINIMAL'"},
        {"slave_parallel_threads": 4, "slave_parallel_mode": f"'{mode}'"},
    )
    one = load(workers=4)
    one.run(15 * SCALE)
    assert one.check() > 0
    if mode != "conservative":
        # A backlog that has gathered is what gives the appliers something to run side by side.
        pair.replica.query("STOP SLAVE")
        one.run(10 * SCALE)
        pair.replica.query("START SLAVE")
        one.check()


def test_conflicts_of_optimistic_appliers_roll_back_cleanly(pair):
    """A collision, made to happen: the first of two transactions waits for a row that this test holds; the second one,
    applied ahead of its turn, meanwhile takes a row that the first one needs next. It must give way, roll back a value
    that it had appended, and do it all again."""
    pair.primary.query("CREATE DATABASE clash")
    pair.primary.query("CREATE TABLE clash.t (id INT PRIMARY KEY, n INT, b LONGBLOB) ENGINE=QUARRY")
    pair.primary.query("INSERT INTO clash.t VALUES (1, 0, 'x'), (2, 0, 'x')")
    pair.configure(replica={"slave_parallel_threads": 4, "slave_parallel_mode": "'optimistic'"})
    connection = pair.primary.connect("clash", autocommit=False)
    rounds = 4 * SCALE
    for number in range(rounds):
        pair.wait()
        before = applier_retries(pair.replica)
        pair.replica.query("STOP SLAVE")
        with connection.cursor() as cursor:
            update = "UPDATE t SET n = n + 1, b = %s WHERE id = %s"
            for row in (2, 1):
                cursor.execute(update, (payload((number, row), 9000), row))
            connection.commit()
            cursor.execute(update, (payload((number, "last"), 12000), 1))
            connection.commit()
        holder = pair.replica.connect("clash", autocommit=False)
        with holder.cursor() as cursor:
            cursor.execute("SELECT id FROM t WHERE id = 2 FOR UPDATE")
            pair.replica.query("START SLAVE")
            wait_for("the second transaction ahead of the first", lambda: waits_for_its_turn(pair.replica))
        holder.rollback()
        holder.close()
        pair.wait()
        assert applier_retries(pair.replica) > before, "no applier had to retry: nothing was tested"
        assert compare((pair.primary, pair.replica), "clash") == 2
    connection.close()
    assert pair.replica.query("SELECT n, b FROM clash.t WHERE id = 1") == (
        (2 * rounds, payload((rounds - 1, "last"), 12000)),
    )
    pair.primary.query("DROP DATABASE clash")


def waits_for_its_turn(server):
    states = "state LIKE 'Waiting for prior transaction to commit%%'"
    return server.query(f"SELECT COUNT(*) FROM information_schema.processlist WHERE {states}", ())[0][0]


def applier_retries(server):
    return int(server.status("slave_retried_transactions")["slave_retried_transactions"])


# --- a replica that is not like its primary
def quietly(server, *statements):
    """On this server alone."""
    connection = server.connect()
    with connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        for statement in statements:
            cursor.execute(statement)
    connection.close()


@pytest.mark.parametrize("image", ["FULL", "MINIMAL", "NOBLOB"])
def test_replica_tables_that_differ(pair, image):
    """More columns, wider types, another index and triggers that run for row events: the applier reads and converts by
    itself. What it makes of a QUARRY table must be what it makes of an InnoDB table."""
    pair.configure(
        {"binlog_row_image": f"'{image}'"},
        {"slave_run_triggers_for_rbr": "'YES'", "slave_type_conversions": "'ALL_NON_LOSSY'"},
    )
    wide = "id INT PRIMARY KEY, n BIGINT, b LONGBLOB, x LONGBLOB, kept VARCHAR(20) DEFAULT 'kept', KEY (b(30))"
    quietly(pair.primary, "CREATE DATABASE differ")
    quietly(pair.replica, "CREATE DATABASE differ")
    for table, engine in (("q", "QUARRY"), ("i", "InnoDB")):
        quietly(
            pair.primary, f"CREATE TABLE differ.{table} (id INT PRIMARY KEY, n INT, b MEDIUMBLOB) ENGINE={engine}"
        )
        log = f"differ.log_{table}"
        quietly(
            pair.replica,
            f"CREATE TABLE differ.{table} ({wide}) ENGINE={engine}",
            f"CREATE TABLE {log} (at INT PRIMARY KEY AUTO_INCREMENT, id INT, b LONGBLOB, x LONGBLOB) ENGINE={engine}",
            f"CREATE TRIGGER differ.u_{table} AFTER UPDATE ON differ.{table} FOR EACH ROW "
            f"INSERT INTO {log} (id, b, x) VALUES (OLD.id, OLD.b, NEW.x)",
            f"CREATE TRIGGER differ.d_{table} BEFORE DELETE ON differ.{table} FOR EACH ROW "
            f"INSERT INTO {log} (id, b, x) VALUES (OLD.id, OLD.b, OLD.x)",
        )
    rows = 24
    for table in ("q", "i"):
        for row in range(rows):
            pair.primary.query(f"INSERT INTO differ.{table} VALUES (%s, 0, %s)", (row, payload(row, row * 1000)))
        pair.wait()
        quietly(pair.replica, f"UPDATE differ.{table} SET x = REPEAT(id, 9000) WHERE id % 2 = 0")
        for change in (
            "UPDATE differ.{t} SET n = n + 1 WHERE id % 3 = 0",
            "UPDATE differ.{t} SET b = REVERSE(b) WHERE id % 4 = 1",
            "UPDATE differ.{t} SET id = id + 100, b = CONCAT(b, 'moved') WHERE id > 18",
            "UPDATE differ.{t} SET b = NULL WHERE id = 8",
            "UPDATE differ.{t} SET b = 'back' WHERE id = 8",
            "DELETE FROM differ.{t} WHERE id % 5 = 2",
        ):
            pair.primary.query(change.format(t=table))
    pair.wait()
    replica = pair.replica
    for quarry, twin in (("q", "i"), ("log_q", "log_i")):
        found, expected = (digests(replica, "differ", table) for table in (quarry, twin))
        assert found == expected and found, f"{quarry}: {found[:3]}, {twin}: {expected[:3]}"
    ours = "SELECT id, n, SHA2(b, 256) FROM differ.q ORDER BY id"
    assert pair.primary.query(ours) == replica.query(ours)
    assert replica.query("SELECT COUNT(*) FROM differ.log_q")[0][0] > rows // 3
    pair.primary.query("DROP DATABASE differ")


def test_a_replica_copies_where_its_primary_alters_in_place(pair):
    """ALGORITHM and LOCK told the primary how. A replica whose heads are older, or shorter, or whose rows were InnoDB's
    on the primary, does it as it can."""
    columns = "(id INT PRIMARY KEY, b LONGBLOB, n INT)"
    for server, engines in (
        (pair.primary, {"t": "QUARRY PREFIX_SIZE=300", "i": "InnoDB"}),
        (pair.replica, {"t": "QUARRY", "i": "QUARRY"}),
    ):
        quietly(server, "CREATE DATABASE alters")
        quietly(server, *(f"CREATE TABLE alters.{table} {columns} ENGINE={engine}" for table, engine in engines.items()))
    for table in ("t", "i"):
        for row in range(6):
            pair.primary.query(f"INSERT INTO alters.{table} VALUES (%s, %s, 1)", (row, payload(row, row * 3000)))
    pair.wait()
    statements = (
        "ALTER TABLE alters.t FORCE, ALGORITHM=INPLACE",
        "ALTER TABLE alters.t ROW_FORMAT=COMPACT, ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE alters.t ADD KEY k (b(250)), ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE alters.i ADD COLUMN x LONGBLOB DEFAULT (CONCAT('a', 'b')), ALGORITHM=INSTANT",
        "ALTER TABLE alters.i ADD KEY k (b(50)), ALGORITHM=NOCOPY, LOCK=NONE",
    )
    for number, statement in enumerate(statements, 1):
        # Heads older than a change of PREFIX_SIZE must be written anew. A client's session is told so.
        quietly(pair.replica, f"ALTER TABLE alters.t PREFIX_SIZE={40 * number}, ALGORITHM=INSTANT")
        if "alters.t" in statement:
            with pytest.raises(pymysql.err.OperationalError, match="is not supported. Reason: "):
                quietly(pair.replica, statement)
        pair.primary.query(statement)
        pair.wait()
        assert compare((pair.primary, pair.replica), "alters") == 12, statement
    pair.primary.query("DROP DATABASE alters")


def test_idempotent_applier(pair):
    """slave_exec_mode=IDEMPOTENT: a row that is there already is overwritten, one that is missing is passed over."""
    pair.configure(replica={"slave_exec_mode": "'IDEMPOTENT'"})
    pair.primary.query("CREATE DATABASE again")
    pair.primary.query("CREATE TABLE again.t (id INT PRIMARY KEY, n INT UNIQUE, b LONGBLOB) ENGINE=QUARRY")
    pair.primary.query("INSERT INTO again.t VALUES (1, 1, REPEAT('one', 9000)), (2, 2, REPEAT('two', 9000))")
    pair.wait()
    quietly(
        pair.replica,
        "INSERT INTO again.t VALUES (3, 3, REPEAT('in the way', 9000)), (40, 4, REPEAT('in the way', 9000))",
        "DELETE FROM again.t WHERE id = 2",
    )
    pair.primary.query("INSERT INTO again.t VALUES (3, 3, %s), (4, 4, %s)", (payload(3, 30000), payload(4, 40000)))
    pair.primary.query("UPDATE again.t SET b = REVERSE(b) WHERE id = 2")
    pair.primary.query("DELETE FROM again.t WHERE id = 2")
    pair.wait()
    assert compare((pair.primary, pair.replica), "again") == 3
    pair.primary.query("DROP DATABASE again")


# --- DDL, transactions ----------------------------------------------------------------------------------------------
DDL = (
    "CREATE TABLE {s}.made ENGINE=QUARRY PART_SIZE=8192 CODEC=zstd SELECT id, owner, n, body, note FROM {s}.doc",
    "ALTER TABLE {s}.made ADD PRIMARY KEY (id)",
    "ALTER TABLE {s}.doc ENGINE=InnoDB",
    "UPDATE {s}.doc SET body = CONCAT(body, 'innodb') WHERE n % 5 = 0",
    "ALTER TABLE {s}.doc ENGINE=QUARRY INLINE_SIZE=1024 PREFIX_SIZE=200",
    "UPDATE {s}.doc SET body = CONCAT(body, 'quarry') WHERE n % 5 = 1",
    "ALTER TABLE {s}.doc ADD COLUMN x LONGBLOB INLINE_SIZE=100 CODEC=lz4",
    "UPDATE {s}.doc SET x = REVERSE(body) WHERE n % 2 = 0",
    "ALTER TABLE {s}.doc ADD INDEX (note(150)), MODIFY x LONGBLOB PART_SIZE=512",
    "ALTER TABLE {s}.doc FORCE",
    "CREATE TABLE {s}.twin LIKE {s}.doc",
    "INSERT INTO {s}.twin SELECT * FROM {s}.doc",
    "TRUNCATE TABLE {s}.nokey",
    "INSERT INTO {s}.nokey SELECT n, body FROM {s}.twin ORDER BY id LIMIT 5",
    "RENAME TABLE {s}.twin TO {s}.other, {s}.made TO {s}.twin",
    "ALTER TABLE {s}.other DROP COLUMN x",
    "OPTIMIZE TABLE {s}.other",
    "CREATE TABLE {s}.parts (id INT, b LONGBLOB COMMENT 'NDB_COLUMN=BLOB_INLINE_SIZE=300') ENGINE=QUARRY "
    "PARTITION BY HASH (id) PARTITIONS 3",
    "INSERT INTO {s}.parts SELECT id, body FROM {s}.twin",
    "ALTER TABLE {s}.parts ADD PARTITION PARTITIONS 2",
    "UPDATE {s}.parts SET id = id + 1, b = CONCAT(b, 'moved')",
    "CREATE TABLE {s}.history (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY WITH SYSTEM VERSIONING",
    "INSERT INTO {s}.history SELECT id, body FROM {s}.twin",
    "UPDATE {s}.history SET b = REPEAT('v2', 5000) WHERE id % 2 = 0",
    "CREATE OR REPLACE TABLE {s}.nokey ENGINE=QUARRY SELECT n, body AS b FROM {s}.twin",
    "DROP TABLE {s}.other",
)


@pytest.mark.parametrize(
    "binlog_format, threads", [("ROW", 4), ("STATEMENT", 0)], ids=["row-parallel", "statement"]
)
def test_ddl_in_the_stream(pair, load, binlog_format, threads):
    pair.configure(
        {"binlog_format": f"'{binlog_format}'"},
        {"slave_parallel_threads": threads, "slave_parallel_mode": "'optimistic'"},
    )
    one = load()
    one.run(12 * SCALE)
    for statement in DDL:
        try:
            pair.primary.query(statement.format(s=one.schema))
        except pymysql.err.Error as failure:
            raise AssertionError(f"{statement}: {failure}") from failure
    pair.wait()
    compare((pair.primary, pair.replica), one.schema)
    history = f"SELECT id, SHA2(b, 256) FROM {one.schema}.history FOR SYSTEM_TIME ALL ORDER BY 1, 2"
    assert pair.primary.query(history) == pair.replica.query(history)
    for query in (
        "SELECT table_name, engine, create_options FROM information_schema.tables WHERE table_schema = %s ORDER BY 1",
        "SELECT * FROM information_schema.quarry_columns WHERE table_schema = %s ORDER BY table_name, column_name",
    ):
        assert pair.primary.query(query, (one.schema,)) == pair.replica.query(query, (one.schema,)), query


def test_load_data_triggers_and_xa(pair, tmp_path):
    """What is not an ordinary transaction of row events."""
    pair.configure(replica={"slave_parallel_threads": 4, "slave_parallel_mode": "'optimistic'"})
    connection = pair.primary.connect()
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE odd")
        cursor.execute("USE odd")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, b LONGTEXT) ENGINE=QUARRY")
        cursor.execute("CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT) ENGINE=QUARRY")
        cursor.execute("CREATE TRIGGER copy AFTER UPDATE ON t FOR EACH ROW INSERT INTO log (b) VALUES (OLD.b)")
        source = tmp_path / "rows.txt"
        source.write_text("".join(f"{row}\t{'loaded ' * (row * 40)}\n" for row in range(40)))
        cursor.execute(f"LOAD DATA LOCAL INFILE '{source}' INTO TABLE t")
        cursor.execute("UPDATE t SET b = CONCAT(b, 'changed') WHERE id > 20")
        for number, end in ((1, "COMMIT"), (2, "ROLLBACK"), (3, "COMMIT")):
            cursor.execute(f"XA START 'x{number}'")
            cursor.execute("INSERT INTO t VALUES (%s, REPEAT('xa', 20000))", (100 + number,))
            cursor.execute("UPDATE t SET b = REPEAT('y', 9000) WHERE id = %s", (number,))
            cursor.execute(f"XA END 'x{number}'")
            cursor.execute(f"XA PREPARE 'x{number}'")
            cursor.execute(f"XA {end} 'x{number}'")
        # Prepared by one session, committed by another.
        cursor.execute("XA START 'orphan'")
        cursor.execute("INSERT INTO t VALUES (200, REPEAT('orphan', 9000))")
        cursor.execute("XA END 'orphan'")
        cursor.execute("XA PREPARE 'orphan'")
    connection.close()
    wait_until_detached(pair.primary)
    pair.primary.query("XA COMMIT 'orphan'")
    pair.wait()
    assert compare((pair.primary, pair.replica), "odd") > 60
    assert pair.replica.query("SELECT id FROM odd.t WHERE id >= 100 ORDER BY 1") == ((101,), (103,), (200,))
    pair.primary.query("DROP DATABASE odd")


# --- kill -9 --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("threads", [0, 4], ids=["one-applier", "parallel-appliers"])
def test_replica_killed_in_mid_apply(pair, load, threads):
    """It resumes where its last durable transaction ended: nothing twice, nothing left out."""
    pair.configure(
        {"binlog_row_image": "'MINIMAL'"},
        {"slave_parallel_threads": threads, "slave_parallel_mode": "'optimistic'"},
    )
    one = load(workers=3)
    one.begin()
    try:
        for _ in range(2 * SCALE):
            applied = last_applied(pair.replica)
            wait_for("transactions to be applied", lambda applied=applied: last_applied(pair.replica) > applied + 10)
            pair.replica.kill()
            pair.start_again(
                pair.replica, f"--slave-parallel-threads={threads}", "--slave-parallel-mode=optimistic"
            )
    finally:
        one.end()
    assert one.check() > 0


def last_applied(server):
    return int(server.query("SELECT @@gtid_slave_pos")[0][0].rsplit("-", 1)[1])


def test_primary_killed_under_semi_sync(pair, load):
    """With AFTER_SYNC an acknowledged commit is on the replica already, and stays in the primary over kill -9."""
    one = load(workers=3)
    switch_semi_sync(pair, "ON")
    for _ in range(2 * SCALE):
        wait_for("the semi-sync replica", lambda: semi_sync(pair.primary, "clients") == 1)
        before = one.commits()
        one.begin()
        # (A transaction that changed nothing does not wait.)
        wait_for("commits", lambda before=before: one.commits() > before + 15 and semi_sync(pair.primary, "yes_tx") > 8)
        assert semi_sync(pair.primary, "no_tx") == 0, "a commit went on without the replica"
        pair.primary.kill()
        one.end()
        acknowledged_rows_are_on_the_replica(pair, one)
        pair.start_again(
            pair.primary,
            "--rpl-semi-sync-master-enabled=ON",
            "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
            "--rpl-semi-sync-master-timeout=60000",
        )
        wait_for("the replica to come back", lambda: pair.slave_status()["Slave_IO_Running"] == "Yes")
        one.check()
    switch_semi_sync(pair, "OFF")


def switch_semi_sync(pair, value):
    pair.configure(
        {
            "rpl_semi_sync_master_wait_point": "'AFTER_SYNC'",
            "rpl_semi_sync_master_timeout": 60000,
            "rpl_semi_sync_master_enabled": value,
        },
        {"rpl_semi_sync_slave_enabled": value},
    )


def semi_sync(primary, counter):
    return int(primary.status(f"rpl_semi_sync_master_{counter}")[f"rpl_semi_sync_master_{counter}"])


def acknowledged_rows_are_on_the_replica(pair, one):
    """The primary is dead: what the replica received, applied to the end, has every acknowledged row."""
    pair.replica.query("STOP SLAVE IO_THREAD")
    wait_for(
        "the relay log to be applied",
        lambda: pair.slave_status()["Slave_SQL_Running_State"].startswith("Slave has read all"),
    )
    for worker in one.workers:
        rows = {
            row: (n, body)
            for row, n, body in pair.replica.query(
                f"SELECT id, n, body FROM {one.schema}.doc WHERE owner = %s", (worker.number,)
            )
        }
        expected = (worker.model, worker.in_doubt) if worker.in_doubt is not None else (worker.model,)
        assert rows in expected, (
            f"worker {worker.number}: the replica lacks acknowledged rows, or has others: "
            f"{sorted(set(rows) ^ set(worker.model))[:10]}"
        )
    pair.replica.query("START SLAVE IO_THREAD")


def test_primary_killed(pair, load):
    """Its binlog, cut off by the crash, still feeds the replica: both have what the binlog has."""
    one = load(workers=2)
    one.begin()
    wait_for("commits", lambda: one.commits() > 15)
    pair.primary.kill()
    one.end()
    pair.primary.start()
    wait_for("the replica to come back", lambda: pair.slave_status()["Slave_IO_Running"] == "Yes")
    one.check()
    one.run(8 * SCALE)
    one.check()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another account")
def test_nobody_else_of_this_machine_gets_in(pair):
    servers = [pair.primary, pair.replica]
    look([server.directory for server in servers], [server.private for server in servers])
