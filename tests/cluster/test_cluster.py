"""A cluster of Spider fronts: sharded tables on all nodes or on none; kill -9 of a primary and of a front loses nothing.

The long runs are programs: kill_nodes.py, kill_in_commit.py.
"""

import json
import os
import signal

import pymysql
import pytest
from quarry_lab.cluster import pieces
from quarry_cluster.ddl import REHEARSAL, ShardedTables, TableName, definition_on
from quarry_cluster.keeper import run
from quarry_lab.cluster.ledger import TABLE as LEDGER
from quarry_cluster.plan import ClusterError
from quarry_cluster.rebuild import rebuild

from harness.outside import look
from harness.scale_out import DATABASE
from harness.waiting import wait_for

pytestmark = pytest.mark.quarry_only

TABLE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB INLINE_SIZE=100 CODEC=lz4) ENGINE=QUARRY"
PARTITIONED = "CREATE TABLE t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS 2"
CLIENTS = 4
LIMIT_S = 60


def holders(cluster, database, table):
    """Names of the nodes that have a table."""
    query = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
    return [member.name for member in cluster.members.values() if member.query(query, (database, table))]


def refused(cluster, database, statement=TABLE, key="id"):
    """The message of a CREATE that must fail and leave nothing anywhere."""
    with pytest.raises(ClusterError) as failure:
        ShardedTables(cluster).create(database, statement, key)
    assert "nothing was" in str(failure.value), failure.value
    query = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"
    assert not [name for name, member in cluster.members.items() if member.alive() and member.query(query, (database,))]
    return str(failure.value)


def test_a_table_is_on_every_node_and_its_rows_on_one_shard_each(cluster):
    one = cluster.cluster
    ShardedTables(one).create("d", TABLE, "id")
    assert holders(one, "d", "t") == list(one.members)
    for connect in cluster.connects("d"):
        with connect() as connection, connection.cursor() as cursor:
            for size in (50, 70_000, 300_000):
                cursor.execute("INSERT INTO t (b) VALUES (REPEAT('x', %s)), (REPEAT('y', %s))", (size, size))
    counts = {shard: one.primary(shard).value("SELECT COUNT(*) FROM d.t") for shard in one.plan.routes}
    assert sum(counts.values()) == 12 and min(counts.values()) > 0, counts
    front = one.role("front")[0]
    assert front.value("SELECT COUNT(DISTINCT id) FROM d.t") == 12, "the fronts gave the same id twice"
    assert front.value("SELECT SUM(LENGTH(b)) FROM d.t") == 4 * (50 + 70_000 + 300_000)
    ShardedTables(one).drop("d", "t")
    assert holders(one, "d", "t") == []


def test_what_cannot_be_a_sharded_table_is_nowhere(cluster):
    one = cluster.cluster
    assert "BLOB field is not allowed in partition function" in refused(one, "e", key="b")
    assert "partitions of its own" in refused(one, "e", PARTITIONED)
    assert "have e.t already" in refused_with_table_on(one, one.role("front")[1])


def refused_with_table_on(cluster, member):
    """A node that has the table already, made behind the cluster's back."""
    run(member, "CREATE DATABASE e", "CREATE TABLE e.t (id INT)")
    try:
        with pytest.raises(ClusterError) as failure:
            ShardedTables(cluster).create("e", TABLE, "id")
        assert holders(cluster, "e", "t") == [member.name]
    finally:
        run(member, "DROP DATABASE e")
    return str(failure.value).replace(f"{member.name}: has", "have")


def test_half_a_cluster_is_refused(cluster):
    """A front that does not know a shard; a replica that is down; another server's version."""
    one = cluster.cluster
    front = one.role("front")[1]
    run(front, "DROP SERVER s2")
    assert "f2: does not know the way to s2" in refused(one, "h")
    one.start()
    replica = one.replica("s2")
    replica.server.stop()
    assert f"{replica.name}: cannot be reached" in refused(one, "h")
    one.start_node(replica.name)
    one.wait_in_sync()
    front.server.stop()
    front.start("--version=10.6.1-MariaDB")
    assert "server versions differ" in refused(one, "h")
    front.server.stop()
    one.start_node(front.name)
    ShardedTables(one).create("h", TABLE, "id")
    ShardedTables(one).drop("h", "t")


def test_what_a_killed_command_left_is_dropped_by_the_next(cluster):
    one = cluster.cluster
    (one.directory / "ddl.json").write_text(json.dumps({"database": "k", "table": "t", "new_database": True}))
    run(one.primary("s1"), "CREATE DATABASE k", "USE k", TABLE)
    tables = ShardedTables(one)
    tables.create("k", TABLE.replace("CREATE TABLE t", "CREATE TABLE other"), "id")
    assert holders(one, "k", "t") == [] and holders(one, "k", "other") == list(one.members)
    tables.drop("k", "other")


def test_a_shard_that_is_down_or_dies_leaves_no_half_table(cluster):
    """Before the statement: refused. In the middle of it: undone, at the latest by the next command."""
    one = cluster.cluster
    victim = one.primary("s1")
    victim.server.kill()
    assert f"{victim.name}: cannot be reached" in refused(one, "p")
    one.start()

    class Dying(ShardedTables):
        def _create_on_fronts(self, name, definition, key):
            one.primary("s2").server.kill()
            super()._create_on_fronts(name, definition, key)

    with pytest.raises(ClusterError):
        Dying(one).create("m", TABLE, "id")
    one.start()
    tables = ShardedTables(one)
    tables.create("m", TABLE.replace("CREATE TABLE t", "CREATE TABLE other"), "id")
    assert holders(one, "m", "t") == [] and holders(one, "m", "other") == list(one.members)
    tables.drop("m", "other")


ALTERED = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT, b LONGBLOB) ENGINE=QUARRY DEFAULT CHARSET=latin1"


@pytest.fixture
def altered(cluster):
    """A sharded table with rows on both shards: (ShardedTables, statements through a front)."""
    tables = ShardedTables(cluster.cluster)
    tables.create("a", ALTERED, "id")
    fronts = cluster.cluster.role("front")

    def execute(sql, front=0):
        return fronts[front].query(sql, database="a")

    execute("INSERT INTO t (id, n, b) VALUES " + ", ".join(f"({i}, {i}, REPEAT('x', 20000))" for i in range(1, 9)))
    yield tables, execute
    if tables.unfinished_alteration():
        tables.take_back("a", "t", "MODIFY n INT")
    tables.drop("a", "t")


def definitions(cluster):
    """Of the shards and replicas: they must be one but for the next id, which a replica knows when it has applied the rows."""
    found = {definition_on(member, TableName("a", "t", False)) for member in cluster.role("data")}
    assert len(found) == 1, found
    return found.pop()


def test_alter_reaches_every_node(cluster, altered):
    tables, execute = altered
    told = []
    tables.alter("a", "t", "ADD COLUMN note LONGTEXT CHARACTER SET utf8mb4 CODEC=zstd, ADD INDEX (n)", told.append)
    assert told[0] == "rehearsing on empty copies" and sum(text.startswith("altering on s") for text in told) == 2
    assert "CODEC" in definitions(cluster.cluster) and "KEY `n`" in definitions(cluster.cluster)
    for front in (0, 1):
        execute("INSERT INTO t (n, note) VALUES (77, REPEAT('\u00e4', 9000))", front)
        assert execute("SELECT COUNT(*) AS c FROM t WHERE n = 77 AND CHAR_LENGTH(note) = 9000", front) == [{"c": front + 1}]
        assert "DEFAULT CHARSET=latin1" in execute("SHOW CREATE TABLE t", front)[0]["Create Table"]
    assert execute("SELECT SUM(LENGTH(b)) AS s FROM t") == [{"s": 8 * 20000}]
    tables.alter("a", "t", "FORCE", told.append)
    assert holders(cluster.cluster, "a", REHEARSAL) == [] and not tables.alteration.exists()


@pytest.mark.parametrize(
    "clauses, why",
    [
        ("DROP COLUMN id", "check that it exists|can't drop|Unknown column|doesn't exist|partition"),
        ("ADD UNIQUE (n)", "UNIQUE"),
        ("RENAME TO u", "keeps its name"),
        ("ADD COLUMN b INT", "Duplicate column"),
        ("PARTITION BY HASH (id) PARTITIONS 2", "partitions of its own"),
    ],
)
def test_an_alter_that_cannot_be_is_refused_before_anything_is_changed(cluster, altered, clauses, why):
    tables, _execute = altered
    before = definitions(cluster.cluster)
    with pytest.raises(ClusterError, match=f"(?i){why}") as failure:
        tables.alter("a", "t", clauses)
    assert "nothing was changed" in str(failure.value)
    assert definitions(cluster.cluster) == before and holders(cluster.cluster, "a", REHEARSAL) == []
    assert not tables.alteration.exists() and not tables.intent.exists()


@pytest.mark.parametrize("way", ["mend and repeat", "take back"])
def test_an_alter_that_rows_of_one_shard_forbid_is_finished_or_taken_back(cluster, altered, way):
    """Ids 1, 3, 5, 7 live on the second shard: 300 does not fit there when the first is done."""
    one, (tables, execute) = cluster.cluster, altered
    before = definitions(one)
    assert one.primary("s2").value("SELECT COUNT(*) FROM a.t WHERE id = 3") == 1
    execute("UPDATE t SET n = 300 WHERE id = 3")
    with pytest.raises(ClusterError, match="Out of range.*it is done on s1") as failure:
        tables.alter("a", "t", "MODIFY n TINYINT")
    assert "--take-back" in str(failure.value)
    with pytest.raises(ClusterError, match="is not done everywhere"):
        tables.create("a", TABLE.replace("CREATE TABLE t", "CREATE TABLE other"), "id")
    with pytest.raises(ClusterError, match="is not done everywhere"):
        tables.alter("a", "t", "ADD COLUMN x INT")
    if way == "take back":
        tables.take_back("a", "t", "MODIFY n INT")
        assert definitions(one) == before
        assert execute("SELECT n FROM t WHERE id = 3") == [{"n": 300}]
    else:
        execute("UPDATE t SET n = 30 WHERE id = 3")
        tables.alter("a", "t", "MODIFY n TINYINT")
        assert "tinyint" in definitions(one)
        assert "tinyint" in execute("SHOW CREATE TABLE t", 1)[0]["Create Table"]
    with pytest.raises(ClusterError, match="left unfinished"):
        tables.take_back("a", "t", "MODIFY n INT")


def test_pieces_of_one_value_are_carried_by_all_shards(cluster, monkeypatch):
    """A value in a table of pieces, sharded by the piece: written and read back whole, an equal share by each shard."""
    shards = len(cluster.cluster.plan.routes)
    for name, value in {"SHARDS": shards, "VALUES": 2, "VALUE_BYTES": 1 << 20, "PIECE_BYTES": 64 << 10, "PIECES": 16}.items():
        monkeypatch.setattr(pieces, name, value)
    shares = {(cell["way"], cell["load"]): cell["share_of_bytes"] for cell in pieces.measure(cluster.cluster)}
    for (way, _load), found in shares.items():
        expected = [1, *[0] * (shards - 1)] if way.startswith("whole") else [1 / shards] * shards
        assert found == pytest.approx(expected, abs=0.05), shares
    for table in ("whole", "pieces"):
        ShardedTables(cluster.cluster).drop(pieces.DATABASE, table)


@pytest.mark.parametrize("victim", ["primary", "front"])
def test_kill_under_load_loses_nothing(cluster, victim):
    """Clients go on by themselves; the node comes back; all copies are equal and hold what was acknowledged."""
    one = cluster.cluster
    load = cluster.load(CLIENTS)
    load.begin()
    try:
        wait_for_writes(load, 10)
        member = one.primary("s1") if victim == "primary" else one.role("front")[0]
        member.server.kill()
        wait_for_writes(load, 10)
        one.start_node(member.name)
        wait_for_writes(load, 10)
    finally:
        load.end()
    if victim == "primary":
        assert one.primary("s1") is not member
    assert len(set(cluster.check().values())) == len(one.plan.routes)


def test_a_replica_that_lacks_something_is_not_promoted(cluster):
    """The primary went on alone, then died: the shard waits for it, though its replica is there."""
    one = cluster.cluster
    primary, replica = one.pair("s2")
    replica.server.kill()
    load = cluster.load(CLIENTS)
    load.begin()
    wait_for_writes(load, 10)
    wait_for_keeper(one, f"{primary.name} goes on without {replica.name}")
    wait_for_writes(load, 10)
    load.end()
    primary.server.kill()
    one.start_node(replica.name)
    wait_for_keeper(one, f"waiting for {primary.name}", lines=3)
    assert replica.value("SELECT @@read_only") == 1
    one.start_node(primary.name)
    cluster.check()
    assert one.primary("s2") is primary


@pytest.mark.nightly
def test_a_replica_with_a_transaction_of_its_own_is_made_anew(cluster):
    """It cannot follow any more; the shard goes on without it, and copies its primary while that is written to."""
    one = cluster.cluster
    primary, replica = one.pair("s1")
    run(replica, "SET GLOBAL read_only = OFF", "CREATE DATABASE nowhere_else", "SET GLOBAL read_only = ON")
    load = cluster.load(CLIENTS)
    load.begin()
    try:
        wait_for_keeper(one, f"{primary.name} goes on without {replica.name}")
        rebuild(one, replica.name)
        wait_for_writes(load, 10)
    finally:
        load.end()
    cluster.check()
    assert not replica.query("SHOW DATABASES LIKE 'nowhere_else'")
    with pytest.raises(ClusterError, match="is the primary of s1"):
        rebuild(one, primary.name)


def test_haproxy_and_the_keeper_are_started_again(cluster):
    one = cluster.cluster
    front, first = one.role("front")[0], one.proxy.pid()
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: f"another HAProxy\n{one.log_tail()}", lambda: one.proxy.pid() not in (None, first), LIMIT_S)
    wait_for(lambda: f"{front.name} to answer\n{one.log_tail()}", lambda: answers(front), LIMIT_S)
    keeper = one.keeper_pid()
    os.kill(keeper, signal.SIGKILL)
    wait_for("the keeper's end", lambda: one.keeper_pid() is None, LIMIT_S)
    assert answers(front), "the cluster does not go on without its keeper"
    one.start()
    assert one.keeper_pid() not in (None, keeper)


def answers(front):
    try:
        return front.value(f"SELECT COUNT(*) FROM {DATABASE}.{LEDGER}") is not None
    except pymysql.err.Error:
        return False


def wait_for_keeper(cluster, text, lines=12):
    """Until the last lines of its log say this."""
    wait_for(lambda: f"'{text}' in\n{cluster.log_tail()}", lambda: text in cluster.log_tail(lines), LIMIT_S)


def wait_for_writes(load, more):
    """Until so many more writes were acknowledged."""
    target = load.acknowledged() + more
    wait_for(lambda: f"writes: {load.errors()}", lambda: load.wrong() or load.acknowledged() >= target, LIMIT_S)
    assert not load.wrong(), load.wrong()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can look as another account")
def test_nobody_else_of_this_machine_gets_in(cluster):
    one = cluster.cluster
    secrets = [one.plan.password, one.plan.replication_password]
    servers = [member.server for member in one.members.values()]
    tried = look([one.directory, *(server.directory for server in servers)], servers, secrets, sockets_min=len(servers))
    assert tried["doors"] == len(servers) + len(one.plan.routes), tried  # HAProxy and the keeper have no other


def test_nodes_talk_tls_to_each_other(cluster):
    """Replication and Spider: the shards let in nobody who has the password and not the nodes' certificate."""
    one = cluster.cluster
    front = one.role("front")[0]
    for shard in one.plan.routes:
        primary, replica = one.pair(shard)
        status = replica.slave_status()
        assert status["Master_SSL_Allowed"] == "Yes" and status["Master_SSL_Verify_Server_Cert"] == "Yes", status
        before = int(primary.status("ssl_accepts")["ssl_accepts"])
        front.query(f"SELECT COUNT(*) FROM {LEDGER}", database=DATABASE)
        assert int(primary.status("ssl_accepts")["ssl_accepts"]) > before
        login = {**one.login(primary.node), "connect_timeout": 2}
        pymysql.connect(**login).close()
        for without in ({"ssl_disabled": True}, {"ssl_ca": login["ssl_ca"]}):
            kept = {name: value for name, value in login.items() if not name.startswith("ssl")}
            with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
                pymysql.connect(**kept, **without)
