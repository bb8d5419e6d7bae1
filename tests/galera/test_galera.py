"""A Galera cluster of three nodes under QUARRY: multi-master writes, conflicts, DDL, streaming, transfers, kill -9.

After each test every row is equal on all nodes (by CHECKSUM TABLE and SHA-256), all are Synced in one component of
three, and no node was voted out for being inconsistent. The tests run in the order of this file.
"""

import math
import os
import re
import shutil
import threading
import time

import pymysql
import pytest

from harness.cluster import GaleraLoad, run_commits
from harness.outside import look
from harness.trace import RING, WRITES, Trace
from harness.values import payload
from harness.waiting import WAIT_S, wait_for
from harness.workload import SCALE, is_between_groups

pytestmark = pytest.mark.quarry_only

DEADLOCK = 1213
NOT_REPLICATED = 4165
TRANSFER_DELAY_S = 13  # longer than two rounds of Quarry's housekeeping


def agree(cluster):
    assert len(cluster.running()) == len(cluster.nodes)
    return cluster.agree("g")


# --- joining --------------------------------------------------------------------------------------------------------
def test_empty_nodes_get_everything_by_rsync(new_cluster):
    """The state transfer brings the home: segments, catalogue, all that was committed until the donor stood still."""
    donor_rows = new_cluster.nodes[0].query("SELECT COUNT(*) FROM g.seed")[0][0]
    for i in (1, 2):
        joiner = new_cluster.start(i)
        assert "rsync SST completed on joiner" in joiner.error_log()
        assert joiner.query("SELECT COUNT(*) FROM g.seed")[0][0] == donor_rows
        assert joiner.segments(), "the joiner has no segments"
    assert any("Tables flushed" in node.error_log() for node in new_cluster.nodes), "no donor stood still"
    assert agree(new_cluster) >= donor_rows


# --- writing everywhere ---------------------------------------------------------------------------------------------
def test_multi_master_writes(cluster):
    """Clients on every node, with rows of their own and rows that all fight for; values of up to 8 MiB."""
    one = GaleraLoad(cluster, [*cluster.nodes, cluster.nodes[0]], "g", large_bytes=8 << 20)
    run_commits(one, 60 * SCALE)
    assert agree(cluster) > 60
    one.check()


def test_applier_writes_in_its_own_batches(cluster):
    """quarry_replica_write_batch_bytes counts for Galera's appliers too: seen in their write calls."""
    writer, applier = cluster.nodes[0], cluster.nodes[1]
    writer.query("INSERT INTO g.seed VALUES (-1, REPEAT('opens the segment', 3000))")
    cluster.settle()
    size = 2 << 20
    for row, batch in ((-2, 32 << 10), (-3, 512 << 10)):
        applier.query(f"SET GLOBAL quarry_replica_write_batch_bytes = {batch}")
        with Trace(applier, (*WRITES, *RING)) as trace:
            writer.query("INSERT INTO g.seed VALUES (%s, %s)", (row, payload(row, size)))
            cluster.settle()
        calls = trace.of(WRITES, ".qseg")
        expected = math.ceil(size / batch)
        assert expected <= len(calls) <= expected + 4, f"{batch}: {len(calls)} writes, expected about {expected}"
    applier.query("SET GLOBAL quarry_replica_write_batch_bytes = DEFAULT")
    agree(cluster)


# --- savepoints
SAVEPOINTS = {
    "row first": "INSERT INTO seed VALUES (7000, 'in the row')",
    "InnoDB first": "INSERT INTO other VALUES (7000, 'InnoDB')",
    "value first": "INSERT INTO seed VALUES (7000, REPEAT('out of line', 2000))",
    "nothing first": "SELECT COUNT(*) FROM seed",
}
AFTER_SAVEPOINT = {
    "value": "INSERT INTO seed VALUES (7001, REPEAT('out of line', 2000))",
    "trigger": "INSERT INTO source VALUES (7001)",
    "update": "UPDATE seed SET b = REPEAT('changed', 3000) WHERE id = 9",
}


def test_rollback_to_a_savepoint(cluster):
    """A value that is written, for the first time in its transaction, after a savepoint and rolled back to it takes
    nothing else with it: what came before the savepoint and what comes later is on all nodes."""
    node = cluster.nodes[0]
    node.query("CREATE TABLE g.other (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB")
    node.query("CREATE TABLE g.source (id INT PRIMARY KEY) ENGINE=InnoDB")
    node.query(
        "CREATE TRIGGER g.values_too BEFORE INSERT ON g.source FOR EACH ROW "
        "INSERT INTO g.seed VALUES (NEW.id, REPEAT('by a trigger', 2000))"
    )
    for first in SAVEPOINTS:
        for after in AFTER_SAVEPOINT:
            transaction_with_savepoints(cluster, SAVEPOINTS[first], AFTER_SAVEPOINT[after])
            cluster.settle()
            for other in cluster.nodes:
                ids = {row for (row,) in other.query("SELECT id FROM g.seed UNION SELECT id FROM g.other")}
                expected = {7003} if first == "nothing first" else {7000, 7003}
                assert {row for row in ids if row >= 7000} == expected, f"{first}, {after}: {other.name}"
            node.query("DELETE FROM g.seed WHERE id >= 7000")
            node.query("DELETE FROM g.other")
    agree(cluster)
    node.query("DROP TABLE g.other, g.source")


def transaction_with_savepoints(cluster, first, after):
    connection = cluster.connect(cluster.nodes[0], "g", autocommit=False)
    with connection.cursor() as cursor:
        cursor.execute(first)
        cursor.execute("SAVEPOINT one")
        cursor.execute("INSERT INTO other VALUES (7002, 'between')")
        cursor.execute("SAVEPOINT two")
        cursor.execute(after)
        cursor.execute("ROLLBACK TO SAVEPOINT two")
        cursor.execute(after)
        cursor.execute("ROLLBACK TO SAVEPOINT one")
        cursor.execute("INSERT INTO seed VALUES (7003, REPEAT('the end', 3000))")
    connection.commit()
    connection.close()


# --- conflicts ------------------------------------------------------------------------------------------------------
def test_brute_force_abort_of_an_open_transaction(cluster):
    """A transaction on one node has appended values when another node's commit takes its row: it is aborted by force.
    Its values are released, none of its rows stay, and the winner's value is everywhere."""
    loser, winner = cluster.nodes[0], cluster.nodes[1]
    aborts = counter(loser, "wsrep_local_bf_aborts")
    rounds = 8 * SCALE
    for number in range(rounds):
        connection = cluster.connect(loser, "g", autocommit=False)
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO seed VALUES (%s, %s)", (1000 + number, payload("lost", 20000 + number)))
            cursor.execute("UPDATE seed SET b = %s WHERE id = 1", (payload("loser", 9000 + number),))
            released = counter(loser, "quarry_extents_released")
            winner.query("UPDATE g.seed SET b = %s WHERE id = 1", (payload(("winner", number), 9000 + number),))
            if number % 2 == 0:  # aborted while idle; else perhaps only at its commit
                wait_for("the abort", lambda number=number: counter(loser, "wsrep_local_bf_aborts") > aborts + number)
            with pytest.raises(pymysql.err.OperationalError) as failure:
                cursor.execute("UPDATE seed SET b = 'more' WHERE id = 2")
                connection.commit()
            assert failure.value.args[0] == DEADLOCK
            connection.rollback()
            # The applier counts the value that it replaced, at most 1; the rest was appended by the loser.
            assert counter(loser, "quarry_extents_released") >= released + 2, "appended values are not counted as dead"
            # The same connection goes on.
            cursor.execute("SELECT b FROM seed WHERE id = 1")
            cursor.execute("UPDATE seed SET b = CONCAT(b, 'after') WHERE id = 3")
            connection.commit()
        connection.close()
        assert winner.query("SELECT b FROM g.seed WHERE id = 1") == ((payload(("winner", number), 9000 + number),),)
    assert counter(loser, "wsrep_local_bf_aborts") >= aborts + rounds // 2
    agree(cluster)
    for node in cluster.nodes:
        assert node.query("SELECT COUNT(*) FROM g.seed WHERE id >= 1000") == ((0,),), node.name


def test_brute_force_abort_in_a_lock_wait(cluster):
    """The victim is waiting for a row lock inside a statement when it is aborted."""
    first, other = cluster.nodes[0], cluster.nodes[2]
    for number in range(4 * SCALE):
        holder = cluster.connect(first, "g", autocommit=False)
        victim = cluster.connect(first, "g", autocommit=False)
        outcome = []
        with holder.cursor() as hold, victim.cursor() as cursor:
            cursor.execute("SET innodb_lock_wait_timeout = 60")
            hold.execute("UPDATE seed SET b = %s WHERE id = 5", (payload("holder", 9000),))
            cursor.execute("UPDATE seed SET b = %s WHERE id = 4", (payload("victim", 9000),))

            def wait_for_the_row(cursor=cursor, outcome=outcome):
                try:
                    cursor.execute("UPDATE seed SET b = %s WHERE id = 5", (payload("victim", 30000),))
                    outcome.append("done")
                except pymysql.err.Error as failure:
                    outcome.append(failure.args[0])

            thread = threading.Thread(target=wait_for_the_row)
            thread.start()
            wait_for("the lock wait", lambda: lock_waits(first))
            other.query("UPDATE g.seed SET b = %s WHERE id = 4", (payload(("other", number), 12000),))
            thread.join()
            assert outcome == [DEADLOCK]
            victim.rollback()
            holder.commit()
        holder.close()
        victim.close()
        cluster.settle()
        assert first.query("SELECT b FROM g.seed WHERE id IN (4, 5) ORDER BY id") == (
            (payload(("other", number), 12000),),
            (payload("holder", 9000),),
        )
    agree(cluster)


def lock_waits(node):
    return node.query("SELECT COUNT(*) FROM information_schema.innodb_lock_waits")[0][0]


def test_counters_that_all_nodes_raise(cluster):
    """Every acknowledged update of the same few rows counts, whoever lost on the way."""
    acknowledged, failures = [0, 0, 0], []
    (before,) = cluster.nodes[0].query("SELECT SUM(n) FROM g.hot")[0]

    def raise_counters(i):
        connection = cluster.connect(cluster.nodes[i], "g")
        try:
            with connection.cursor() as cursor:
                number, deadline = 0, time.monotonic() + WAIT_S
                while acknowledged[i] < 15 * SCALE:
                    assert time.monotonic() < deadline, f"{number} attempts, {acknowledged[i]} acknowledged"
                    number += 1
                    try:
                        cursor.execute(
                            "UPDATE hot SET n = n + 1, body = %s WHERE id = %s",
                            (payload((i, number), 7000), number % 2),
                        )
                        acknowledged[i] += 1
                    except pymysql.err.OperationalError as failure:
                        if failure.args[0] != DEADLOCK:
                            raise
        except Exception as failure:  # noqa: BLE001 - told by the main thread
            failures.append(repr(failure))
        finally:
            connection.close()

    threads = [threading.Thread(target=raise_counters, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    agree(cluster)
    for node in cluster.nodes:
        assert node.query("SELECT SUM(n) FROM g.hot")[0][0] == before + sum(acknowledged), (node.name, acknowledged)


def counter(node, name):
    return int(node.status(name)[name])


# --- DDL ------------------------------------------------------------------------------------------------------------
DDL = (
    "CREATE TABLE g.made (PRIMARY KEY (id)) ENGINE=QUARRY CODEC=zstd SELECT id, b FROM g.seed",
    "INSERT INTO g.made VALUES (5000, REPEAT('node', 9000))",
    "ALTER TABLE g.made ADD COLUMN x LONGBLOB INLINE_SIZE=200 CODEC=lz4, ADD INDEX (b(20))",
    "UPDATE g.made SET x = REVERSE(b) WHERE id % 2 = 0",
    "ALTER TABLE g.made ENGINE=InnoDB",
    "UPDATE g.made SET b = CONCAT('i', b) WHERE id % 3 = 0",
    "ALTER TABLE g.made ENGINE=QUARRY PART_SIZE=8192",
    "UPDATE g.made SET b = CONCAT('q', b) WHERE id % 3 = 1",
    "ALTER TABLE g.made FORCE",
    "CREATE TABLE g.copied LIKE g.made",
    "INSERT INTO g.copied SELECT * FROM g.made",
    "RENAME TABLE g.made TO g.old, g.copied TO g.made",
    "TRUNCATE TABLE g.old",
    "INSERT INTO g.old SELECT * FROM g.made WHERE id < 20",
    "CREATE TABLE g.parts (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 3",
    "INSERT INTO g.parts SELECT id, b FROM g.made",
    "ALTER TABLE g.parts REMOVE PARTITIONING",
    "CREATE OR REPLACE TABLE g.plain ENGINE=QUARRY SELECT * FROM g.parts",
    "CREATE TABLE g.ctas2 (PRIMARY KEY (id)) ENGINE=QUARRY SELECT id, b, x FROM g.made UNION "
    "SELECT id + 9000, b, x FROM g.old",
    "DROP TABLE g.plain, g.old",
)


def test_ddl_on_all_nodes(cluster):
    """Total-order DDL, each statement on the next node; the rows of CREATE TABLE ... SELECT reach every node."""
    for number, statement in enumerate(DDL):
        cluster.execute_ddl(cluster.nodes[number % 3], statement)
        if "SELECT" in statement and statement.startswith("CREATE"):
            cluster.settle()
            name = re.search(r"g\.\w+", statement).group()
            counts = {n.name: n.query(f"SELECT COUNT(*) FROM {name}")[0][0] for n in cluster.nodes}
            assert len(set(counts.values())) == 1 and min(counts.values()) > 0, f"{statement}: {counts}"
    agree(cluster)
    columns = "table_name, engine, create_options"
    engines = f"SELECT {columns} FROM information_schema.tables WHERE table_schema = 'g' ORDER BY 1"
    seen = {node.query(engines) for node in cluster.nodes}
    assert len(seen) == 1, seen
    assert {engine for _, engine, _ in seen.pop()} == {"QUARRY"}
    for table in ("made", "parts", "ctas2"):
        cluster.nodes[0].query(f"DROP TABLE g.{table}")


def test_ddl_beside_writers(cluster):
    """ALTERs by total order while clients write to the same table: who is in the way is aborted, nobody diverges."""
    one = GaleraLoad(cluster, cluster.nodes, "g").begin()
    try:
        for number, alter in enumerate(
            (
                "ALTER TABLE g.doc ADD COLUMN extra LONGBLOB",
                "ALTER TABLE g.doc PART_SIZE=32768",
                "ALTER TABLE g.doc FORCE, ALGORITHM=COPY",
                "ALTER TABLE g.doc ADD INDEX (n)",
                "ALTER TABLE g.doc DROP COLUMN extra, DROP INDEX n",
            )
        ):
            time.sleep(0.3)
            cluster.execute_ddl(cluster.nodes[number % 3], alter)
    finally:
        one.end()
    agree(cluster)
    one.check()


# --- streaming replication ------------------------------------------------------------------------------------------
def streaming(cluster, node, fragment_bytes=65536):
    connection = cluster.connect(node, "g", autocommit=False)
    with connection.cursor() as cursor:
        cursor.execute("SET wsrep_trx_fragment_unit = 'bytes'")
        cursor.execute(f"SET wsrep_trx_fragment_size = {fragment_bytes}")
    return connection


def fragments(node):
    return node.query("SELECT COUNT(*) FROM mysql.wsrep_streaming_log")[0][0]


def test_streaming_replication(cluster):
    """A large transaction travels in fragments before it commits; rolled back, it leaves nothing anywhere."""
    writer, other = cluster.nodes[1], cluster.nodes[2]
    for number, end in enumerate(("commit", "rollback", "commit")):
        connection = streaming(cluster, writer)
        with connection.cursor() as cursor:
            for row in range(15):
                cursor.execute(
                    "INSERT INTO seed VALUES (%s, %s)", (2000 + 100 * number + row, payload((number, row), 100_000))
                )
            cursor.execute("UPDATE seed SET b = REVERSE(b) WHERE id BETWEEN 2000 AND 2999 AND id % 4 = 1")
            cursor.execute("DELETE FROM seed WHERE id = %s", (2000 + 100 * number + 3,))
            assert wait_for("fragments on another node", lambda: fragments(other)) > 3
            assert other.query("SELECT COUNT(*) FROM g.seed WHERE id >= %s", (2000 + 100 * number,)) == ((0,),)
        getattr(connection, end)()
        connection.close()
    agree(cluster)
    for node in cluster.nodes:
        assert node.query("SELECT id DIV 100, COUNT(*) FROM g.seed WHERE id >= 2000 GROUP BY 1 ORDER BY 1") == (
            (20, 14),
            (22, 14),
        ), node.name
        wait_for(f"the fragments on {node.name} to be gone", lambda node=node: fragments(node) == 0)


@pytest.mark.quarry_only(False)
def test_streaming_transaction_loses_a_conflict(cluster):
    """Fragments are on all nodes already when an older commit takes a row: every node rolls them back."""
    loser, winner = cluster.nodes[2], cluster.nodes[0]
    connection = streaming(cluster, loser)
    with connection.cursor() as cursor:
        for row in range(6):
            cursor.execute("INSERT INTO seed VALUES (%s, %s)", (3000 + row, payload(row, 60000)))
        wait_for("fragments on another node", lambda: fragments(winner))
        # Too small for a fragment of its own: row 6 is still free on the other nodes.
        cursor.execute("UPDATE seed SET b = 'loser' WHERE id = 6")
        winner.query("UPDATE g.seed SET b = %s WHERE id = 6", (payload("winner", 15000),))
        with pytest.raises(pymysql.err.OperationalError) as failure:
            for row in range(6, 12):
                cursor.execute("INSERT INTO seed VALUES (%s, %s)", (3000 + row, payload(row, 60000)))
            connection.commit()
        assert failure.value.args[0] == DEADLOCK
        connection.rollback()
    connection.close()
    agree(cluster)
    for node in cluster.nodes:
        assert node.query("SELECT b FROM g.seed WHERE id = 6") == ((payload("winner", 15000),),), node.name
        assert node.query("SELECT COUNT(*) FROM g.seed WHERE id >= 3000") == ((0,),), node.name
        wait_for(f"the fragments on {node.name} to be gone", lambda node=node: fragments(node) == 0)


# --- kill -9 --------------------------------------------------------------------------------------------------------
@pytest.mark.quarry_only(False)
@pytest.mark.nightly
def test_node_killed_under_load_comes_back_by_ist(cluster):
    """kill -9 of a node whose clients write, with a streaming transaction open on it, while the others go on; it comes
    back with what it had and gets only what it missed."""
    for _ in range(SCALE):
        one = GaleraLoad(cluster, cluster.nodes, "g").begin()
        try:
            stream = streaming(cluster, cluster.nodes[2])
            with stream.cursor() as cursor:
                for row in range(6):
                    cursor.execute("INSERT INTO seed VALUES (%s, %s)", (4000 + row, payload(row, 60000)))
            wait_for("fragments", lambda: fragments(cluster.nodes[0]))
            wait_for("commits", lambda: one.workers[2].counts["commits"] > 5)
            cluster.nodes[2].kill()
            cluster.wait_for_size(cluster.nodes[0], 2)
            done = one.workers[0].counts["commits"]
            wait_for(
                "commits on a survivor",
                lambda done=done: one.workers[0].counts["commits"] > done + 3 or cluster.stands_still(),
            )
            began = len(cluster.nodes[2].error_log())
            position = cluster.restart_killed(2)
        finally:
            one.end()
        log = cluster.nodes[2].error_log()[began:]
        assert re.search(r"Receiving IST|IST received", log), f"no IST from {position}:\n{log[-4000:]}"
        assert "rsync SST completed on joiner" not in log, "it got everything, not only what it had missed"
        agree(cluster)
        one.check()
        for node in cluster.nodes:
            wait_for(f"the fragments on {node.name} to be gone", lambda node=node: fragments(node) == 0)
            assert node.query("SELECT COUNT(*) FROM g.seed WHERE id >= 4000") == ((0,),), node.name


# --- the donor stands still -----------------------------------------------------------------------------------------
class Dropper:
    """Makes and drops tables with values on one node, so that there is always a dropped store to sweep away."""

    def __init__(self, cluster, node):
        self.cluster, self.node = cluster, node
        self.stop = threading.Event()
        self.dropped, self.failure = 0, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            connection = self.cluster.connect(self.node)
            with connection.cursor() as cursor:
                while not self.stop.is_set():
                    self.make_and_drop(cursor)
            connection.close()
        except pymysql.err.Error as failure:
            self.failure = failure

    def make_and_drop(self, cursor):
        try:
            cursor.execute("CREATE OR REPLACE TABLE g.gone (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
            cursor.execute("INSERT INTO g.gone VALUES (1, REPEAT('gone', 10000))")
            cursor.execute("DROP TABLE g.gone")
            self.dropped += 1
        except pymysql.err.OperationalError as failure:
            if not is_between_groups(failure):
                raise
            time.sleep(0.1)

    def end(self):
        self.stop.set()
        self.thread.join()
        assert self.failure is None, self.failure
        self.node.query("DROP TABLE IF EXISTS g.gone")


def test_nothing_of_the_donor_changes_while_it_is_copied(cluster):
    """A node that lost its data joins under load. While rsync copies, FLUSH TABLES WITH READ LOCK keeps clients still,
    and Quarry's housekeeping must keep still too: tables dropped a moment before leave stores that it longs to sweep.
    """
    donor, other, joiner = cluster.nodes
    joiner.kill()
    shutil.rmtree(joiner.datadir)
    cluster.wait_for_size(donor, 2)
    one, dropper = GaleraLoad(cluster, [other], "g").begin(), Dropper(cluster, donor)
    try:
        wait_for("dropped tables", lambda: dropper.dropped > 3)
        cluster.watch_transfer(donor, TRANSFER_DELAY_S)
        began = len(joiner.error_log())
        cluster.start(2, f"--wsrep-sst-donor={donor.name}")
        trees = cluster.watched()
        swept = dropper.dropped
        wait_for("dropped tables", lambda: dropper.dropped > swept + 2)
    finally:
        dropper.end()
        one.end()
    assert "rsync SST completed on joiner" in joiner.error_log()[began:]
    assert len(trees) >= 4 and len(trees[0]) > 20, f"the watch saw little: {[len(tree) for tree in trees]}"
    for tree in trees[1:]:
        assert tree == trees[0], f"changed while it was copied: {sorted(tree ^ trees[0])[:10]}"
    # Afterwards housekeeping goes on.
    wait_for("the dropped stores to be swept away", lambda: not dropped_stores(donor))
    agree(cluster)
    one.check()


def dropped_stores(node):
    return node.query("SELECT COUNT(*) FROM information_schema.quarry_tables WHERE state = 'DROPPED'")[0][0]


def test_a_write_set_that_is_too_large(cluster):
    """wsrep_max_ws_size bounds a transaction's events, values included: over it the commit fails, and nothing stays."""
    node = cluster.nodes[0]
    node.query("SET GLOBAL wsrep_max_ws_size = 1048576")
    try:
        with pytest.raises(pymysql.err.Error) as failure:
            node.query("INSERT INTO g.seed VALUES (6000, %s)", (payload("large", 2 << 20),))
        assert failure.value.args[0] in (1105, 1180, DEADLOCK), failure.value
        # (The text of the statement counts as well.)
        node.query("INSERT INTO g.seed VALUES (6001, %s)", (payload("small", 200_000),))
        # In fragments it fits, for each fragment is a write-set.
        connection = streaming(cluster, node, 200_000)
        with connection.cursor() as cursor:
            for row in range(6):
                cursor.execute("INSERT INTO seed VALUES (%s, %s)", (6002 + row, payload(row, 200_000)))
        connection.commit()
        connection.close()
    finally:
        node.query("SET GLOBAL wsrep_max_ws_size = DEFAULT")
    agree(cluster)
    for node in cluster.nodes:
        assert node.query("SELECT COUNT(*), MIN(id) FROM g.seed WHERE id >= 6000") == ((7, 6001),), node.name


def test_strict_replication_refuses_the_engine(cluster):
    """wsrep_mode=STRICT_REPLICATION knows InnoDB by its number: CREATE is refused, existing tables go on."""
    node = cluster.nodes[0]
    node.query("SET GLOBAL wsrep_mode = 'STRICT_REPLICATION'")
    try:
        with pytest.raises(pymysql.err.Error) as failure:
            node.query("CREATE TABLE g.strict (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
        assert failure.value.args[0] == NOT_REPLICATED, failure.value
        node.query("UPDATE g.seed SET b = CONCAT(b, 'strict') WHERE id = 8")
    finally:
        node.query("SET GLOBAL wsrep_mode = DEFAULT")
    agree(cluster)
    assert not cluster.nodes[1].query("SHOW TABLES FROM g LIKE 'strict'")


def test_disallow_local_gtid_refuses_changes(cluster):
    """wsrep_mode=DISALLOW_LOCAL_GTID takes every engine but InnoDB for one that is not replicated."""
    node = cluster.nodes[0]
    node.query("SET GLOBAL wsrep_mode = 'DISALLOW_LOCAL_GTID'")
    try:
        with pytest.raises(pymysql.err.Error) as failure:
            node.query("UPDATE g.seed SET b = CONCAT(b, 'local') WHERE id = 8")
        assert failure.value.args[0] == NOT_REPLICATED, failure.value
    finally:
        node.query("SET GLOBAL wsrep_mode = DEFAULT")
    agree(cluster)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another account")
def test_nobody_else_of_this_machine_gets_in(cluster):
    """The group and incremental transfers are TLS, which asks for a certificate."""
    secret = (cluster.directory / "bin" / "password").read_text().strip()
    servers = [node.private for node in cluster.nodes]
    tried = look([server.directory for server in servers], servers, [secret])
    assert tried["doors"] >= 2 * len(servers), tried
