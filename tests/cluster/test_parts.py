"""What a cluster's figures and promises rest on, without a server: the ledger's judgement, gaps, plans, names in doubt."""

import errno
import functools
import json
import os
import stat
import subprocess
import threading
from collections import Counter
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from quarry_cluster import cli, cluster, ddl, galera, haproxy, in_doubt, keeper, rebuild, watch
from quarry_cluster.cluster import Cluster
from quarry_cluster.ddl import COLUMN_OPTION, EXISTS, STATEMENT, ShardedTables, TableName
from quarry_cluster.haproxy import HAProxy
from quarry_cluster.in_doubt import Prepared, split
from quarry_cluster.keeper import ShardState, StateFile
from quarry_cluster.nodes import Member
from quarry_lab.cluster.ledger import ABSENT, Event, Load, Worker, content, fingerprint, longest_gap
from quarry_lab.cluster.outage import Kill, buckets, draw
from quarry_cluster.plan import FRONTS_MAX, ClusterError, make_plan, read_plan, recorded_pid, write_durably, write_plan
from quarry_server.ports import free_ports


def event(at, row=0):
    return Event(at, 0.001, row, False)


def loads(rows):
    """A load of one worker that knows these rows."""
    load = Load([], 0)
    load.workers = [Worker(1, [])]
    load.workers[0].rows = rows
    return load


def found(row, version):
    return {row: (version, fingerprint(content(row, version)))}


@pytest.mark.parametrize(
    "known, there, problem",
    [
        ({5: {3}}, found(5, 3), None),
        ({5: {3}}, found(5, 2), "has version 2, may have [3]"),
        ({5: {3, 4}}, found(5, 4), None),
        ({5: {3}}, {}, "has version -1, may have [3]"),
        ({5: {ABSENT, 0}}, {}, None),
        ({5: {3}}, {5: (3, fingerprint(b"other"))}, "version 3 has other bytes"),
        ({}, found(6, 0), "nobody wrote it"),
    ],
)
def test_a_lost_or_changed_write_is_seen(known, there, problem):
    problems = loads(known).missing(there)
    assert len(problems) == (problem is not None) and all(problem in text for text in problems), problems


def test_the_longest_gap_counts_the_edges():
    assert longest_gap([event(1), event(2), event(9)], 0, 10) == 7
    assert longest_gap([event(1)], 0, 10) == 9
    assert longest_gap([], 0, 4) == 4
    assert longest_gap([event(-1), event(11)], 0, 10) == 10


def test_figures_of_a_kill():
    events = [event(at / 10) for at in range(0, 100)] + [event(15 + at / 10) for at in range(100)]
    kill = Kill("primary", 0, 10, 16, 18, 24, 7, Counter({"2013": 2}))
    figures = kill.figures(events, events)
    assert figures["affected_gap_s"] == pytest.approx(5)
    assert figures["before_per_s"] == pytest.approx(10, rel=0.1) and figures["after_per_s"] == pytest.approx(10, rel=0.1)
    assert figures["rejoin_s"] == 2 and figures["client_errors"] == 2
    # What is drawn ends with the clients' work, 14 s after the kill.
    curve = dict(zip(buckets(), figures["curve"], strict=True))
    assert curve[-4.0] == pytest.approx(10) and curve[3.0] == 0 and curve[13.5] == pytest.approx(10, rel=0.1)
    assert curve[14.0] is None and curve[15.5] is None


def test_charts_of_kills_end_where_clients_ended(tmp_path):
    events = [event(at / 10) for at in range(200)]
    kills = [Kill("front", 0, 6, 8, 9, ended, 7, Counter()).figures(events, events) for ended in (14, 16)]
    paths = draw(kills, tmp_path, "k")
    assert [path.name for path in paths] == ["k-throughput.png", "k-times.png"] and all(path.stat().st_size > 5000 for path in paths)


@pytest.mark.parametrize("kind, names", [("spider", "f1 f2 s1a s1b s2a s2b"), ("galera", "g1 g2 g3")])
def test_a_plan_is_kept_whole(tmp_path, kind, names):
    plan = make_plan(kind)
    write_plan(tmp_path, plan)
    assert read_plan(tmp_path) == plan
    assert [node.name for node in plan.nodes] == names.split()
    ports = [port for node in plan.nodes for port in (node.port, *node.extra_ports)] + [r.port for r in plan.routes.values()]
    assert len(set(ports)) == len(ports) and len({route.host for route in plan.routes.values()}) == len(plan.routes)
    assert (tmp_path / "cluster.json").stat().st_mode & 0o077 == 0, "the password is readable by others"


def test_four_shards_have_eight_servers():
    assert len(make_plan("4").role("data")) == 8
    with pytest.raises(ClusterError, match="KIND=five"):
        make_plan("five")


def test_sixteen_fronts_over_two_shards_give_ids_of_their_own(tmp_path):
    """As many SQL servers as the published cluster had: no two nodes have one server id, no two fronts one offset."""
    plan = make_plan("spider", fronts=16)
    fronts = [Member(plan, node, tmp_path, plugin=None) for node in plan.role("front")]
    assert len(fronts) == 16 and len(plan.role("data")) == 4
    assert len({node.server_id for node in plan.nodes}) == len(plan.nodes)
    offsets = [option for front in fronts for option in front.options if option.startswith("--auto-increment-offset=")]
    assert len(set(offsets)) == 16
    assert all(f"--auto-increment-increment={FRONTS_MAX}" in front.options for front in fronts)


def test_more_fronts_than_ids_can_tell_apart_are_refused():
    assert len(make_plan("spider", fronts=FRONTS_MAX).role("front")) == FRONTS_MAX
    with pytest.raises(ClusterError, match=f"{FRONTS_MAX + 1} fronts: ids tell at most {FRONTS_MAX}"):
        make_plan("spider", fronts=FRONTS_MAX + 1)


def test_what_the_keeper_knows_survives_it(tmp_path):
    plan = make_plan("spider")
    states = StateFile(plan, tmp_path)
    assert states["s1"] == ShardState("s1a", False)
    states.save("s1", ShardState("s1b", True))
    again = StateFile(plan, tmp_path)
    assert again["s1"] == ShardState("s1b", True) and again["s2"] == ShardState("s2a", False)
    assert json.loads((tmp_path / "shards.json").read_text())["s1"]["primary"] == "s1b"


def test_the_keeper_knows_only_what_it_could_write_down(tmp_path, monkeypatch):
    """Else a disk that is full lets it act: after its next start it would promote a replica that lacks acknowledged writes."""
    plan = make_plan("spider")
    states = StateFile(plan, tmp_path)
    states.save("s1", ShardState("s1a", True))

    def no_room(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(keeper, "write_durably", no_room)
    with pytest.raises(OSError):
        states.save("s1", ShardState("s1a", False))
    assert states["s1"] == StateFile(plan, tmp_path)["s1"] == ShardState("s1a", True)


class Answering:
    """A server of a shard as the keeper sees it: `position` is what it has, `slave` what SHOW SLAVE STATUS says otherwise."""

    def __init__(self, plan, name, position, **slave):
        self.plan, self.node, self.name, self.position = plan, plan.node(name), name, position
        self.slave = {"Slave_IO_Running": "Yes", "Slave_SQL_Running": "Yes", "Gtid_IO_Pos": position, "Last_SQL_Errno": 0, **slave}

    def value(self, sql, *_, **__):
        return self.position if "gtid" in sql else 1

    def slave_status(self, **_):
        return self.slave

    def status(self, _):
        return {"rpl_semi_sync_master_clients": "1", "rpl_semi_sync_master_status": "ON"}


RESTARTED = {"Slave_IO_Running": "No", "Slave_SQL_Running": "No", "Gtid_IO_Pos": ""}


@pytest.fixture
def shard(tmp_path, monkeypatch):
    """`shard.keep(primary's position, replica's, ...)`: a keeper of s1, in sync; `done`: (server, statements, in sync by then)."""
    plan = make_plan("spider")
    states = StateFile(plan, tmp_path)
    states.save("s1", ShardState("s1a", True))
    made = SimpleNamespace(states=states, done=[], said=[])

    def keep(position, replica_position, **slave):
        made.primary = Answering(plan, "s1a", position)
        made.replica = Answering(plan, "s1b", replica_position, Master_Port=made.primary.node.port, **slave)
        proxy = SimpleNamespace(fence=lambda *_: None, route=lambda *_: None)
        return keeper.ShardKeeper("s1", [made.primary, made.replica], proxy, states, made.said.append)

    def note(member, *statements, **_):
        made.done.append((member.name, statements, states["s1"].in_sync))

    monkeypatch.setattr(keeper, "run", note)
    made.keep = keep
    return made


@pytest.mark.parametrize(
    "position, of_replica, expected",
    [
        ("0-21-100", "0-21-100", ShardState("s1a", True)),
        ("0-21-100", "0-21-101", ShardState("s1b", False)),
        ("0-21-100", "0-21-95", ShardState("s1a", False)),
        ("0-22-1000", "0-21-999", ShardState("s1a", False)),
        ("0-21-5,1-21-7", "0-21-5", ShardState("s1a", False)),
        ("0-21-5", "0-21-5,1-21-7", ShardState("s1b", False)),
        ("0-21-1", "", ShardState("s1a", False)),
    ],
)
def test_who_is_primary_when_both_servers_were_restarted(shard, position, of_replica, expected):
    """A replica throws away at its restart what it received and had not applied: the primary has it, and acknowledged it."""
    shard.keep(position, of_replica, **RESTARTED).primary_came_back(shard.primary, shard.replica)
    assert shard.states["s1"] == expected
    writable = [name for name, statements, _ in shard.done if "SET GLOBAL read_only = OFF" in statements]
    assert writable == [expected.primary]


def test_a_replica_that_was_restarted_is_in_sync_when_it_has_all_again(shard):
    shard.keep("0-21-100", "0-21-95", **RESTARTED).look_after(shard.primary, shard.replica)
    assert shard.done == [("s1b", ("START SLAVE",), False)], "it may be promoted while it lacks what it had received"


def test_a_replica_that_only_lost_its_connection_keeps_what_it_received(shard):
    shard.keep("0-21-100", "0-21-95", Slave_IO_Running="Connecting").look_after(shard.primary, shard.replica)
    assert shard.done == [("s1b", ("START SLAVE",), True)]


def test_a_restarted_replica_does_not_take_the_place_of_a_lost_primary(shard):
    shard.keep("0-21-100", "0-21-95", **RESTARTED).primary_lost(shard.primary, shard.replica)
    assert shard.states["s1"] == ShardState("s1a", True) and not shard.done
    assert "waiting for s1a" in shard.said[0] and "restarted" in shard.said[0]


def test_a_replica_that_ran_on_takes_the_place_of_a_lost_primary(shard):
    shard.keep("0-21-100", "0-21-100", Slave_IO_Running="Connecting").primary_lost(shard.primary, shard.replica)
    assert shard.states["s1"] == ShardState("s1b", False)


@pytest.mark.parametrize("failure", [ValueError("no number"), KeyError("s1a"), IndexError("a packet that breaks off"), OSError("gone")])
def test_nothing_ends_the_thread_that_keeps_a_shard(shard, monkeypatch, failure):
    """Whatever a server that dies makes of an answer: without the thread nobody would promote, and nobody would be told."""
    one, steps = shard.keep("0-21-1", "0-21-1"), []

    def step():
        steps.append("step")
        if len(steps) == 1:
            raise failure
        one.stop.set()

    monkeypatch.setattr(keeper, "STEP_S", 0)
    one.step = step
    one.run()
    assert len(steps) == 2 and repr(failure) in shard.said[0]


def test_nothing_ends_the_thread_that_watches_a_server(shard, monkeypatch):
    one, looks = watch.Watch("s1", shard.keep("0-21-1", "0-21-1") and shard.primary, None), []

    def connect(**_):
        looks.append("look")
        if len(looks) == 2:
            one.stop.set()
        raise IndexError("a packet that breaks off")

    def tell():
        raise KeyError("status")

    shard.primary.connect = connect
    one._tell = tell
    monkeypatch.setattr(watch, "CHECK_INTERVAL_S", 0)
    one.run()
    assert len(looks) == 2 and one._failures == 2


class Stopped:
    """A shard's replica that runs, and what is done with it."""

    def __init__(self, plan, name, directory):
        self.node, self.name, self.server = plan.node(name), name, self
        self.datadir = directory / name / "data"
        self.datadir.mkdir(parents=True)
        self.socket, self.account, self.running = "socket", "root", True

    def alive(self):
        return self.running

    def stop(self):
        self.running = False


@pytest.mark.parametrize(
    "then, why",
    [(ShardState("s1a", True), "still takes s1b for in sync"), (ShardState("s1b", False), "s1b is the primary of s1 by now")],
)
def test_a_replica_that_may_be_or_was_promoted_meanwhile_is_not_thrown_away(tmp_path, monkeypatch, then, why):
    """A backup takes hours, in which the keeper goes on."""
    plan = make_plan("spider")
    states = StateFile(plan, tmp_path)
    members = {name: Stopped(plan, name, tmp_path) for name in ("s1a", "s1b")}
    started = []
    one = SimpleNamespace(
        plan=plan, directory=tmp_path, members=members, states=lambda: StateFile(plan, tmp_path), start_node=started.append,
        primary=lambda shard: members[StateFile(plan, tmp_path)[shard].primary],
    )
    monkeypatch.setattr(rebuild, "quarry_backup", lambda *_: states.save("s1", then))
    monkeypatch.setattr(rebuild, "KEEPER_TIMEOUT_S", 0, raising=False)
    with pytest.raises(ClusterError, match=why):
        rebuild.rebuild(one, "s1b")
    assert members["s1b"].datadir.is_dir(), "its data are gone"
    assert members["s1b"].running or started == ["s1b"]


def without_start(plan, directory, *with_data):
    """A Cluster that starts nothing: `started` has what it would start. Those named have a data directory."""
    made = Cluster.__new__(Cluster)
    made.plan, made.directory, made.started = plan, directory, []
    made.members = {}
    for node in plan.nodes:
        datadir = directory / node.name / "data"
        if node.name in with_data:
            (datadir / "mysql").mkdir(parents=True)
        server = SimpleNamespace(datadir=datadir, directory=datadir.parent)
        start = functools.partial(lambda name, *extra: made.started.append((name, extra)), node.name)
        alive = functools.partial(lambda name: any(name == started for started, _ in made.started), node.name)
        made.members[node.name] = SimpleNamespace(name=node.name, node=node, server=server, plan=plan, start=start, alive=alive)
    made._start_galera_node = lambda member, *extra: member.start(*extra)
    return made


@pytest.mark.parametrize(
    "with_data, first", [((), "g1"), (("g1", "g2", "g3"), "g3"), (("g2", "g3"), "g3"), (("g2",), "g2")]
)
def test_galera_begins_with_the_node_that_has_all(tmp_path, monkeypatch, with_data, first):
    """A first node that lost its disk would begin as a new, empty cluster, and the others would copy that over their data."""
    accounts_of = []
    monkeypatch.setattr(cluster, "recovered_position", lambda server: f"{'0' * 36}:{server.directory.name[1:]}")
    monkeypatch.setattr(cluster, "accounts", lambda member: accounts_of.append(member.name))
    made = without_start(make_plan("galera"), tmp_path, *with_data)
    made._start_galera()
    assert made.started[0] == (first, ("--wsrep-new-cluster",)) and len(made.started) == 3 and accounts_of == ["g1"]


def test_a_start_that_was_broken_off_is_made_good_by_the_next(tmp_path, monkeypatch):
    """Each node has its data, and runs or does not; whether it had got its accounts is noted nowhere."""
    accounts_of = []
    monkeypatch.setattr(cluster, "accounts", lambda member: accounts_of.append(member.name))
    monkeypatch.setattr(cluster, "run", lambda *_: None)
    plan = make_plan("spider")
    made = without_start(plan, tmp_path, *(node.name for node in plan.nodes))
    made.started.append(("s1a", ()))
    made._start_nodes()
    assert sorted(name for name, _ in made.started) == sorted(accounts_of) == sorted(node.name for node in plan.nodes)


@pytest.mark.parametrize("role", ["front", "data"])
def test_accounts_are_made_where_one_of_them_is_missing(monkeypatch, role):
    statements, there = [], []
    monkeypatch.setattr(cluster, "run", lambda _, *said: statements.extend(said))
    plan = make_plan("spider")
    member = SimpleNamespace(plan=plan, node=plan.role(role)[0], value=lambda *_: 1 if there else None)
    cluster.accounts(member)
    made = [statement for statement in statements if statement.startswith("CREATE USER")]
    assert len(made) == (2 if role == "data" else 1) and all(" IF NOT EXISTS " in statement for statement in made)
    statements.clear()
    there.append("all")
    cluster.accounts(member)
    assert statements == []


def test_a_primary_that_lost_its_data_does_not_begin_empty_beside_a_replica_with_data(tmp_path, monkeypatch):
    """In sync, the replica takes its place; else an empty shard would be served."""
    monkeypatch.setattr(cluster, "accounts", lambda _: None)
    plan = make_plan("spider")
    made = without_start(plan, tmp_path, "s1b")
    made.start_node("s1a")
    assert made.started, "a new cluster's servers are made in any order"
    made.states().save("s1", ShardState("s1a", False))
    with pytest.raises(ClusterError, match="s1a, the primary of s1, has lost its data"):
        made.start_node("s1a")
    made.states().save("s1", ShardState("s1a", True))
    made.start_node("s1a")
    made.states().save("s1", ShardState("s1b", False))
    made.start_node("s1a")
    assert [name for name, _ in made.started] == ["s1a"] * 3


def test_an_haproxy_that_does_not_end_is_not_waited_for_without_end(tmp_path, monkeypatch):
    proxy, signals = HAProxy(make_plan("spider"), tmp_path), []
    monkeypatch.setattr(proxy, "pid", lambda: 4711 if len(signals) < 9 else None)
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append(number))
    monkeypatch.setattr(haproxy, "STOP_TIMEOUT_S", 0, raising=False)
    monkeypatch.setattr(haproxy.time, "sleep", lambda _: signals.append(0))
    with pytest.raises(ClusterError, match="HAProxy .pid 4711. does not end"):
        proxy.stop()


def test_a_recovery_that_takes_too_long_is_said(tmp_path, monkeypatch):
    def too_long(command, **_):
        raise subprocess.TimeoutExpired(command, galera.RECOVER_TIMEOUT_S)

    monkeypatch.setattr(galera.subprocess, "run", too_long)
    server = SimpleNamespace(directory=tmp_path / "g1", command=lambda: ["mariadbd"])
    with pytest.raises(ClusterError, match=f"g1 .*{galera.RECOVER_TIMEOUT_S} s"):
        galera.recovered_position(server)


def test_what_the_system_refuses_is_said_with_its_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setattr("sys.argv", ["cluster", "--directory", str(tmp_path / "file" / "cluster"), "stop"])
    assert cli.main() == 1
    assert f"cluster: {tmp_path}/file/cluster: Not a directory" in capsys.readouterr().err


def test_a_directory_of_others_is_not_closed_to_them(tmp_path, monkeypatch, capsys):
    """As of a wrong --directory: whatever the command, the cluster's directory gets mode 0700."""
    (tmp_path / "letters").write_text("mine")
    tmp_path.chmod(0o755)
    monkeypatch.setattr("sys.argv", ["cluster", "--directory", str(tmp_path), "stop"])
    assert cli.main() == 1
    assert f"{tmp_path} holds files, and none of a cluster's" in capsys.readouterr().err
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755 and [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_an_interrupt_is_said_without_a_traceback(tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "Cluster", interrupted)
    monkeypatch.setattr("sys.argv", ["cluster", "--directory", str(tmp_path / "cluster"), "stop"])
    assert cli.main() == 1
    assert "cluster: interrupted: repeat the command" in capsys.readouterr().err


class KilledTables(ShardedTables):
    """On one primary and no front; its CREATE is killed when the nodes have the table."""

    def __init__(self, directory):
        self.answers = {EXISTS: 1, "SELECT 1 FROM `d`.`t` LIMIT 1": 1}
        primary = SimpleNamespace(name="s1a", value=lambda sql, *_: self.answers[sql])
        down = SimpleNamespace(alive=lambda: False)
        fake = {"primaries": lambda: [primary], "role": lambda _: [], "replica": lambda _: down, "members": {}}
        super().__init__(SimpleNamespace(plan=SimpleNamespace(routes=["s1"]), directory=directory, **fake))

    def _refuse_unless_ready(self, of_table):
        pass

    def _create_on_shards(self, name, statement):
        raise KeyboardInterrupt


def test_a_table_of_a_killed_create_is_not_dropped_once_clients_have_filled_it(tmp_path, monkeypatch):
    dropped = []
    monkeypatch.setattr(ddl, "drop_table", lambda member, name: dropped.append(str(name)))
    tables = KilledTables(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        tables.create("d", "CREATE TABLE t (id INT) ENGINE=QUARRY", "id")
    with pytest.raises(ClusterError, match="has rows by now .on s1a.*remove .*ddl.json"):
        tables.drop("d", "other")
    assert dropped == [] and tables.intent.exists()
    tables.answers["SELECT 1 FROM `d`.`t` LIMIT 1"] = None
    tables.finish_undoing()
    assert dropped == ["`d`.`t`"] and not tables.intent.exists()


def test_a_drop_that_was_killed_is_carried_out_whatever_the_table_holds(tmp_path, monkeypatch):
    dropped = []
    monkeypatch.setattr(ddl, "drop_table", lambda member, name: dropped.append(str(name)))
    tables = KilledTables(tmp_path)
    write_durably(tables.intent, asdict(TableName("d", "t", False)))
    tables.finish_undoing()
    assert dropped == ["`d`.`t`"] and not tables.intent.exists()


def test_a_pid_counts_only_with_its_argument(tmp_path):
    (tmp_path / "pid").write_text(str(os.getpid()))
    assert recorded_pid(tmp_path / "pid", tmp_path) is None
    assert recorded_pid(tmp_path / "none", tmp_path) is None


def test_names_of_transactions_in_doubt():
    row = {"gtrid_length": 2, "bqual_length": 1, "data": b"4a2" + bytes(125)}
    assert split(row) == ("4a", "2") == split({**row, "data": "4a2"})
    assert Prepared("s1", ("4a", "2")).xid == "0x3461,0x32,1"


@pytest.mark.parametrize("data, gtrid_length", [("order-17", 8), (b"\xff\xfe\x01", 2), ("", 0), ("4a", 2)])
def test_transactions_of_others_are_left_alone(data, gtrid_length):
    """XA START 'order-17' has Spider's format id, too: it is the default."""
    lengths = {"gtrid_length": gtrid_length, "bqual_length": len(data) - gtrid_length}
    spiders = {"formatID": 1, "gtrid_length": 2, "bqual_length": 1, "data": "4a2"}
    rows = [{"formatID": 1, **lengths, "data": data}, spiders, {**spiders, "formatID": 2}]
    shard = SimpleNamespace(query=lambda *_, **__: rows)
    one = SimpleNamespace(plan=SimpleNamespace(routes=["s1"]), primary=lambda _: shard)
    assert in_doubt.prepared(one) == [Prepared("s1", ("4a", "2"))]


@pytest.mark.parametrize("answer", ["", "\n", "# pxname,svname,status\ns1,s1a,UP\n"])
def test_an_answer_of_haproxy_that_breaks_off_is_an_error_of_its_own(tmp_path, monkeypatch, answer):
    """Its threads expect an OSError. Any other ends them, and nobody keeps the shard any more."""
    proxy = HAProxy(make_plan("spider"), tmp_path)
    monkeypatch.setattr(proxy, "_ask", lambda _: answer)
    with pytest.raises(OSError, match="HAProxy"):
        proxy.states("s1")


def test_the_keeper_goes_on_when_haproxy_does_not_start_at_once(tmp_path, monkeypatch):
    starts, stop = [], threading.Event()

    class Proxy:
        def __init__(self, *_):
            pass

        def start(self):
            starts.append("start")
            if len(starts) == 2:
                raise ClusterError("HAProxy did not start")

        def pid(self):
            return 4711 if len(starts) > 2 else None

    def resolve():
        if len(starts) > 2:
            stop.set()
        return []

    idle = SimpleNamespace(start=lambda: None, stop=threading.Event(), join=lambda: None)
    monkeypatch.setattr(keeper, "HAProxy", Proxy)
    monkeypatch.setattr(keeper, "ShardKeeper", lambda *_: idle)
    monkeypatch.setattr(keeper, "Watch", lambda *_: idle)
    monkeypatch.setattr(keeper, "RESOLVE_EVERY_S", 0)
    keeper.keep(make_plan("spider"), tmp_path, stop, resolve)
    assert len(starts) == 3


def test_statements_of_sharded_tables():
    assert STATEMENT.match("create table `my t` (id INT)")[1] == "`my t`"
    for text in ("CREATE TABLE IF NOT EXISTS t (id INT)", "CREATE TABLE d.t (id INT)", "CREATE TABLE t LIKE u"):
        assert not STATEMENT.match(text), text
    columns = "`b` longblob DEFAULT NULL `INLINE_SIZE`=100 `CODEC`=lz4,\n  `c` blob `CODEC`='zstd'"
    assert COLUMN_OPTION.sub("", columns) == "`b` longblob DEFAULT NULL,\n  `c` blob"


def test_ports_are_different():
    assert len(set(free_ports(50))) == 50
