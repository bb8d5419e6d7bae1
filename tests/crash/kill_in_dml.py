#!/usr/bin/env python3
"""kill -9 in the middle of transactions, at every call by which the server changes a file, in any of its threads.

Each kind of transaction (dml_kinds.py) is run once to learn its calls, then again and again, cut off at each of them in
turn (harness/io_layer.py: the call is not carried out; of a write, every other time, the first half is). After each
restart: no error in the log, no file of a rewriting that was cut off; every transaction that was acknowledged is there,
each value with its SHA-256; what was not acknowledged is there wholly or not at all; no other row has changed; CHECK
TABLE, which reads every value, is clean. One more write is acknowledged, and survives the next kill.

    tests/crash/kill_in_dml.py --kills 2000                        # with the binary log off, then on
    tests/crash/kill_in_dml.py --kind xa --kind group-commit       # every point of these, once
    QUARRY_TEST_SCRATCH=/dev/shm/crash tests/crash/kill_in_dml.py  # server directories in memory: no disk to wait for

Exit code 0 when every kill was survived; 1, with what was wrong, otherwise.
"""

import argparse
import collections
import pathlib
import random
import re
import secrets
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools"), str(TESTS / "crash")]

import pymysql  # noqa: E402
from dml_kinds import IDS_PER_CLIENT, KINDS, QUARRY_OPTIONS, TABLES, Maker, Transaction  # noqa: E402
from kill_at import is_lost  # noqa: E402
from kill_points import name_of, report  # noqa: E402
from row_model import Client, RowModel  # noqa: E402

from harness import io_layer  # noqa: E402
from harness.gc import Gc  # noqa: E402
from quarry_lab.probes.device import allocated_bytes  # noqa: E402
from quarry_server.server import HOME_NAME, ServerError  # noqa: E402

from harness.server import ENGINE, Server  # noqa: E402
from harness.waiting import wait_for  # noqa: E402

CANNOT_CONNECT = 2003
HEADER_BYTES = 4096
RECOVERY_KILLS_RATIO = 0.25
OPTIONS = (
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--innodb-max-dirty-pages-pct=0",
    "--performance-schema=0",
    "--innodb-lock-wait-timeout=5",
    *io_layer.OPTIONS,
)
QUARRY_SERVER_OPTIONS = ("--quarry-segment-size=2M",)
# What the server may say of its DDL log when it was killed in a call that makes it, and of its binary log, whose last event
# may be cut off whenever it dies, for one event is several writes.
DDL_LOG_COMPLAINT = re.compile(r"ddl_recovery\.log|DDL_LOG: Failed to read ddl log")
BINLOG_COMPLAINT = re.compile(r"Log_event::read_log_event\(\): 'Event truncated'")
# Old files go at restarts: thousands of kills leave as many.
BINLOG_OPTIONS = ("--log-bin=binlog", "--server-id=1", "--sync-binlog=1", "--binlog-expire-logs-seconds=60")


class Hunt:
    """One server, its layer and the model of its rows. Externally synchronised."""

    def __init__(self, name, with_binlog=False, seed="1"):
        self.random = random.Random(f"{seed}-{with_binlog}")
        self.with_binlog = with_binlog
        self.points = collections.Counter()  # kills by their name
        self.counts = collections.Counter()
        self.killed_at = set()  # the kinds of the files in whose calls the server died since it was up
        quarry = ENGINE.upper() == "QUARRY"
        options = [*OPTIONS, *(QUARRY_SERVER_OPTIONS if quarry else ()), *(BINLOG_OPTIONS if with_binlog else ())]
        self.server = Server(name, options)
        self.layer = io_layer.IoLayer(self.server.directory)
        self.server = Server(name, options, environment=self.layer.environment).start()
        self.model = RowModel(self.server, self.random, self.counts)
        self.server.query("CREATE DATABASE dml")
        for table, text in TABLES.items():
            self.server.query(
                text.format(e=ENGINE, q=QUARRY_OPTIONS.get(table, "") if quarry else ""), database="dml"
            )
        self.server.query("CREATE TABLE dml.after (id INT PRIMARY KEY, b LONGBLOB) ENGINE=" + ENGINE)

    def remove(self):
        self.server.remove()
        self.layer.remove()

    # --- one run of a kind ------------------------------------------------------------------------
    def clients(self, kind, before=()):
        """The clients of a kind, connected, and what they will do. There is room for their rows: it is made beforehand,
        undisturbed, unless there were transactions `before` in this very cut, after which they go on."""
        made = []
        for number in range(kind.clients):
            maker = self.maker(number, before)
            if not before:
                self.run_undisturbed(maker.room("plain", "packed", "parts", "parent", "history"))
            made.append(Client(self.server, kind.make(maker)))
        return made

    def maker(self, client=0, before=()):
        """Of a client's transactions, as its rows are now, or will be after those `before`."""
        rows = {key: value for key, value in self.model.rows.items() if key[1] // IDS_PER_CLIENT == client}
        for one in before:
            rows.update(one.effects)
        return Maker(self.random.random(), client, rows)

    def run_undisturbed(self, transactions):
        if not transactions:
            return
        client = Client(self.server, transactions)
        client.run()
        client.connection.close()
        if client.failure is not None:
            raise client.failure
        assert all(one.outcome == "acknowledged" for one in transactions), "the server died, and nobody killed it"
        for one in transactions:
            self.model.apply(one)

    def record(self, kind):
        """How many calls that change a file the clients' threads make in one undisturbed run, and all threads."""
        clients = self.clients(kind)
        self.layer.disarm()
        self.layer.reset_events()
        self.run_clients(clients)
        events = self.layer.events()
        for client in clients:
            for one in client.transactions:
                assert one.outcome == "acknowledged", f"{kind.name}: the server died, and nobody killed it"
                self.model.apply(one)
        threads = {client.thread for client in clients}
        return sum(event.thread in threads for event in events), len(events)

    def run_clients(self, clients):
        for client in clients:
            client.start()
        for client in clients:
            client.join()
            if client.failure is not None:
                raise client.failure

    def cut(self, kind, number, by_client=False):
        """Runs a kind until its `number`-th call (with `by_client`: of its first client's thread), restarts and checks; the
        name of the point."""
        torn = bool(self.random.randrange(2))
        mode = io_layer.LATE_KILL if kind.is_late else io_layer.TORN_KILL if torn else io_layer.KILL
        clients = self.clients(kind)
        flushing = self.server.threads("quarry_flush")
        self.layer.reset_events()
        thread = clients[0].thread if by_client else 0
        self.layer.arm(mode, kind.call or None, kind.file or None, after=number, thread=thread)
        self.run_clients(clients)
        done = [one for client in clients for one in client.transactions]
        for _ in range(kind.rounds_max - 1):
            if self.layer.fired:
                break
            time.sleep(kind.pause_s)
            try:
                self.run_clients(clients := self.clients(kind, done))
            except pymysql.err.Error as failure:
                if not is_lost(failure) and failure.args[0] != CANNOT_CONNECT:
                    raise
                break
            done += [one for client in clients for one in client.transactions]
        events = self.layer.events()
        fired = self.layer.fired
        self.layer.disarm()
        if fired:
            self.server.private.process.wait(60)
        else:
            self.server.kill()
        self.killed_at = {events[-1].kind} if fired else set()
        threads = {client.thread for client in clients} | flushing
        name = name_of(events, threads, kind, torn, self.with_binlog) if fired else "after the last answer"
        try:
            self.restart()
            self.model.settle(done)
            self.model.check()
            self.write_once_more()
        except Exception as failure:
            raise AssertionError(f"{kind.name} at {name}: {failure}") from failure
        self.count(name)
        return name

    def count(self, name):
        self.points[name] += 1
        self.counts["kills"] += 1

    # --- afterwards -------------------------------------------------------------------------------
    def restart(self):
        """Starts the server again; sometimes it is killed in the middle of its recovery, too."""
        log_size = len(self.server.error_log())
        if self.random.random() < RECOVERY_KILLS_RATIO:
            self.kill_in_recovery()
        began = time.monotonic()
        if not self.server.alive():
            self.server.start()
            self.counts["restart_ms"] += round((time.monotonic() - began) * 1000)
            self.counts["restarts"] += 1
        lines = self.server.error_log()[log_size:].splitlines()
        for found, committed in re.findall(r"QUARRY: of (\d+) transactions .* (\d+) are committed", "\n".join(lines)):
            self.counts["found prepared: committed"] += int(committed)
            self.counts["found prepared: rolled back"] += int(found) - int(committed)
        errors = [line for line in lines if "[ERROR]" in line and not self.is_excused(line)]
        assert not errors, "errors in the log of the restart:\n" + "\n".join(errors[:10])
        unfinished = sorted((self.server.datadir / HOME_NAME).rglob("*.qseg.new"))
        assert not unfinished, f"left by a rewriting that was cut off: {unfinished}"

    def is_excused(self, line):
        """What the server says of its own files when it was killed while it wrote just those."""
        if self.with_binlog and BINLOG_COMPLAINT.search(line):
            return True
        return "ddl log" in self.killed_at and DDL_LOG_COMPLAINT.search(line) is not None

    def kill_in_recovery(self):
        """At a call of Quarry's files or at any; where a rewriting may have left its file, at the removal of that. If
        recovery makes fewer calls, the server is up then."""
        file = self.random.choice((None, None, None, "segment", "CATALOGUE", "home directory"))
        after = self.random.randrange(4 if file else 40)
        if "rewritten segment" in self.killed_at:
            file, after = "rewritten segment", 0
        self.layer.reset_events()
        self.layer.arm(io_layer.KILL, kind=file, after=after)
        try:
            self.server.start()
        except ServerError:
            if not self.layer.fired:
                raise
        fired, events = self.layer.fired, self.layer.events()
        self.layer.disarm()
        if fired:
            if self.server.alive():
                self.server.private.process.wait(60)
            self.killed_at.add(events[-1].kind)
            self.count(f"recovery: {events[-1]}")

    def write_once_more(self):
        """Acknowledged now, looked at after the next kill."""
        value = self.random.randbytes(9000)
        self.run_undisturbed([Transaction([("REPLACE INTO after VALUES (1, %s)", (value,))], {("after", 1): value})])

    def finish(self):
        """A last kill, so that the last write is looked at too. Then everything is deleted: what all those crashes left is
        found by one mark pass over each table."""
        self.server.kill()
        self.restart()
        self.model.check()
        if ENGINE.upper() != "QUARRY":
            return
        for table in reversed(self.model.tables()):
            self.server.query(f"DELETE FROM dml.{table}")
        self.server.query("DELETE HISTORY FROM dml.history")
        self.model.rows.clear()
        self.counts["MiB in segments"] += allocated_bytes(self.server.segments()) >> 20
        wait_for(lambda: f"bytes that no pass gives back: {self.left()}, {Gc(self.server).status()}", self.nothing_is_left)

    def nothing_is_left(self):
        Gc(self.server).run()
        return not self.left()

    def left(self):
        """Segments with more in them than a header."""
        return [(str(path), allocated_bytes([path])) for path in self.server.segments() if allocated_bytes([path]) > HEADER_BYTES]


def places(hunt, kind, per_kind):
    """Where a kind is cut off in one round: arguments of cut()."""
    if kind.call:
        return [(kind, hunt.random.randrange(kind.calls_max)) for _ in range(min(kind.per_round, per_kind))]
    of_clients, of_all = hunt.record(kind)
    assert of_clients or kind.name == "rollback", f"{kind.name} changed no file: nothing was observed"
    found = [(kind, number, True) for number in range(of_clients)] if kind.clients == 1 else []
    found += [(kind, number) for number in range(of_all if kind.clients > 1 else of_all - of_clients)]
    return hunt.random.sample(found, min(len(found), per_kind))


def hunt_all(hunts, kinds, kills, per_kind):
    """Round after round until there were so many kills (None: one round); the failures, in words."""
    failures, rounds = [], 0
    while kills is None and rounds == 0 or kills is not None and total(hunts) < kills:
        rounds += 1
        for hunt in hunts:
            for kind in kinds:
                try:
                    names = [hunt.cut(*place) for place in places(hunt, kind, per_kind)]
                    where = "; ".join(f"{count} {name}" for name, count in collections.Counter(names).items())
                    print(f"{'binlog ' if hunt.with_binlog else ''}{kind.name}: {len(names)} kills: {where}", flush=True)
                except (AssertionError, pymysql.err.Error) as failure:
                    failures.append(f"{kind.name}: {failure}")
                    print(f"FAILED {failures[-1]}\n{hunt.server.error_log()[-4000:]}", flush=True)
                    return failures  # the model is not what the server has any more: its files are kept
                if kills is not None and total(hunts) >= kills:
                    return failures
    return failures


def total(hunts):
    return sum(hunt.counts["kills"] for hunt in hunts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [kind.name for kind in KINDS]
    parser.add_argument(
        "--kind", action="append", choices=names, metavar="KIND", help=f"one of {', '.join(names)} (default: all)"
    )
    parser.add_argument("--kills", type=int, help="go on, round after round, up to so many (default: one round)")
    parser.add_argument("--per-kind", type=int, default=1000, help="kills of a kind in a round (default: every point)")
    parser.add_argument("--binlog", choices=("off", "on", "both"), default="both", help="(default: both, in turn)")
    parser.add_argument("--seed", help="of points, values and rows (default: random, printed)")
    arguments = parser.parse_args()
    seed = arguments.seed or str(secrets.randbelow(10**9))
    kinds = [kind for kind in KINDS if arguments.kind is None or kind.name in arguments.kind]
    print(f"kill_in_dml: engine {ENGINE}, {len(kinds)} kinds, binary log {arguments.binlog}, --seed {seed}", flush=True)
    modes = {"off": (False,), "on": (True,), "both": (False, True)}[arguments.binlog]
    try:
        hunts = [Hunt(f"kill-in-dml-{seed}{'-binlog' if mode else ''}", mode, seed) for mode in modes]
    except io_layer.CannotBuild as reason:
        print(f"skipped: {reason}")
        return 77
    began = time.monotonic()
    failures = hunt_all(hunts, kinds, arguments.kills, arguments.per_kind)
    if not failures:
        for hunt in hunts:
            hunt.finish()
    report(sum((hunt.points for hunt in hunts), collections.Counter()))
    counts = sum((hunt.counts for hunt in hunts), collections.Counter())
    print("; ".join(f"{value} {name}" for name, value in sorted(counts.items()) if name not in ("restart_ms", "kills")))
    print(
        f"kill_in_dml: {counts['kills']} kills, {len(failures)} failures, {time.monotonic() - began:.0f} s, a restart "
        f"takes {counts['restart_ms'] / max(1, counts['restarts']):.0f} ms; seed {seed}"
    )
    for hunt in hunts:
        if not failures:
            hunt.remove()
        elif hunt.server.alive():
            hunt.server.kill()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
