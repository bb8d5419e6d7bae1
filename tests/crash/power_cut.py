#!/usr/bin/env python3
"""Power cuts under the real server: whatever was not flushed may be lost, of every file of the data directory.

A server runs transactions of every kind (dml_kinds.py) with all its files behind a layer that writes down each write,
flush and change of a name, with its bytes and its order (harness/io_layer.py: LD_PRELOAD; no rights are needed). Each
acknowledgment is noted in the same order. That log, replayed whole, must equal the directory: nothing was written unseen.
Then, for random moments, the disk is rebuilt as a power cut at that moment may leave it (disk_image.py: any part of what was
not flushed, in sectors, blocks or calls), a server starts on it, and everything is compared with what was acknowledged.

    tests/crash/power_cut.py --cuts 300 [--seed n] [--binlog]
    tests/crash/power_cut.py --planted sync        # flushes of segments taken as not made: must be found (also: names)
    tests/crash/power_cut.py --flush-log 0         # innodb_flush_log_at_trx_commit: commits may be lost, none half

Exit code 0 when every cut was survived (--planted: when one was not); 1, with what was wrong, otherwise.
"""

import argparse
import collections
import copy
import pathlib
import random
import re
import secrets
import shutil
import sys
import threading

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools"), str(TESTS / "crash")]

import pymysql  # noqa: E402
from disk_image import POLICIES, Disk, contents, difference  # noqa: E402
from dml_kinds import KINDS, QUARRY_OPTIONS, TABLES, Maker  # noqa: E402
from quarry_server.run import run_or_raise  # noqa: E402
from quarry_server.server import ServerError  # noqa: E402
from row_model import Client, RowModel  # noqa: E402

from harness import io_layer  # noqa: E402
from harness.gc import Gc  # noqa: E402
from harness.server import ENGINE, SCRATCH, Server  # noqa: E402

CLIENTS = 4
WORK = [kind for kind in KINDS if kind.clients == 1 and not kind.call]
OPTIONS = (
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
    "--innodb-max-dirty-pages-pct=0",
    "--performance-schema=0",
    "--innodb-lock-wait-timeout=20",
    "--transaction-isolation=READ-COMMITTED",
    *io_layer.OPTIONS,
)
QUARRY_SERVER_OPTIONS = ("--quarry-segment-size=1M",)
BINLOG_OPTIONS = ("--log-bin=binlog", "--server-id=1", "--sync-binlog=1", "--binlog-format=ROW")
# InnoDB does not start when power goes while it makes the file of a new table: the redo log knows the table, the file is short.
HALF_MADE_TABLE = re.compile(r"\[ERROR\] InnoDB: The size of tablespace file './dml/fresh_\d+\.ibd' is only \d+, should be at least")
PLANTED = {
    # A segment is never flushed.
    "sync": lambda record: record.kind == "segment",
    # The names in the home are never flushed.
    "names": lambda record: record.kind == "home directory",
    # InnoDB's log is never flushed: what a lost commit looks like.
    "log": lambda record: record.kind == "ib_logfile",
}


class Worker(threading.Thread):
    """One client; notes for each transaction between which numbers of the layer's sequence it was answered."""

    def __init__(self, recording, number, seed):
        super().__init__()
        self.recording, self.number, self.maker = recording, number, Maker(f"{seed}-{number}", number, {})
        self.transactions, self.failure = [], None

    def run(self):
        try:
            client = Client(self.recording.server, [])
            for _ in range(self.recording.rounds):
                kind = self.maker.random.choice(self.recording.work)
                for one in [*self.maker.room("plain", "packed", "parts", "parent", "history"), *kind.make(self.maker)]:
                    one.begun_at = self.recording.layer.sequence
                    self.transactions.append(one)
                    client.transactions = [one]
                    client.run()
                    if client.failure is not None:
                        raise client.failure
                    assert one.outcome == "acknowledged", "the server died, and nobody killed it"
                    one.answered_at = self.recording.layer.sequence
        except Exception as failure:  # noqa: BLE001 - told by whoever joins
            self.failure = failure


class Recording:
    """A server's life with all its calls. `disk`, `first`, `last`: where a cut may be; `workers`."""

    def __init__(self, name, options, seed, rounds, work, with_gc):
        self.rounds, self.work = rounds, work
        directory = SCRATCH / name
        self.log, self.base = directory.with_name(name + ".log"), directory.with_name(name + ".base")
        self.remove_files()
        layer = io_layer.IoLayer(directory)
        self.server = Server(name, options, environment=layer.environment).start()
        self.server.query("CREATE DATABASE dml")
        for table, text in TABLES.items():
            quarry = QUARRY_OPTIONS.get(table, "") if ENGINE.upper() == "QUARRY" else ""
            self.server.query(text.format(e=ENGINE, q=quarry), database="dml")
        self.server.stop()
        layer.remove()
        # From here on everything is written down.
        self.layer = io_layer.IoLayer(directory, log=self.log)
        run_or_raise(["cp", "-a", "--sparse=always", self.server.datadir, self.base])
        inodes = contents(self.server.datadir)
        self.server.private.environment = self.layer.environment
        self.server.start()
        self.first = self.layer.sequence
        self.workers = [Worker(self, number, seed) for number in range(CLIENTS)]
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            worker.join()
            if worker.failure is not None:
                raise worker.failure
        if with_gc and ENGINE.upper() == "QUARRY":
            Gc(self.server).run()  # so that holes and unlinked segments are among what may be cut off
        self.last = self.layer.sequence
        self.layer.hold()  # a call that the kill cuts off might be done and not written down, or the reverse
        self.server.kill()
        self.records = io_layer.read_log(self.log, self.layer.kinds())
        self.disk = Disk(self.base, inodes, self.records)

    def check_complete(self, image):
        """The log, replayed whole, is the directory: nothing was written unseen."""
        self.disk.build(image)
        found = difference(image, self.server.datadir)
        assert found is None, f"something was written that the layer did not see: {found}"

    def remove_files(self):
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.base, ignore_errors=True)

    def remove(self):
        self.server.remove()
        self.layer.remove()
        self.remove_files()


class PowerCuts:
    """Cuts of one recording, each judged by a server that starts on what is left."""

    def __init__(self, name, options=(), seed="1", rounds=25, may_lose_commits=False, with_gc=False):
        self.random, self.counts = random.Random(f"{seed}-cuts"), collections.Counter()
        quarry = QUARRY_SERVER_OPTIONS if ENGINE.upper() == "QUARRY" else ()
        options = [*OPTIONS, *quarry, *options]
        self.may_lose_commits = may_lose_commits
        # (What a lost log leaves of XA transactions depends on what was lost of it.)
        work = [kind for kind in WORK if kind.name != "xa" or not may_lose_commits]
        self.recording = Recording(name, options, seed, rounds, work, with_gc)
        self.probe = Server(name + "-probe", options)
        self.recording.check_complete(self.probe.datadir)

    def plant(self, planted):
        self.recording.disk.planted = PLANTED[planted]

    def cut(self):
        """One cut, at a random moment; in words, what was lost. AssertionError when that was too much."""
        recording = self.recording
        moment = self.random.randrange(recording.first, recording.last + 1)
        policy = self.random.choice(POLICIES)
        recording.disk.build(self.probe.datadir, moment, policy, self.random)
        dropped = recording.disk.dropped
        where = f"cut at {moment} ({recording.first} to {recording.last}), {policy.name} kept, lost: " + (
            ", ".join(f"{count} {what}" for what, count in sorted(dropped.items())) or "nothing"
        )
        try:
            self.judge(moment)
        except (AssertionError, ServerError, pymysql.err.Error) as failure:
            raise AssertionError(f"{where}: {failure}") from failure
        finally:
            if self.probe.alive():
                self.probe.kill()
        self.counts["cuts"] += 1
        self.counts[f"{policy.name} kept"] += 1
        for what, count in dropped.items():
            self.counts[f"{what} lost"] += count
        return where

    def judge(self, moment):
        log_size = self.probe.private.error_log.stat().st_size if self.probe.private.error_log.exists() else 0
        try:
            self.probe.start()
        except ServerError:
            if HALF_MADE_TABLE.search(self.probe.error_log()[log_size:]) is None:
                raise
            self.counts["refused by InnoDB for a table that was being made"] += 1
            return
        errors = [
            line for line in self.probe.error_log()[log_size:].splitlines() if "[ERROR]" in line and "QUARRY" in line
        ]
        assert not errors, "errors of Quarry's at the start:\n" + "\n".join(errors[:5])
        model = RowModel(self.probe, self.random, self.counts)
        seen = {worker.number: list(self.as_of(worker, moment)) for worker in self.recording.workers}
        if self.may_lose_commits:
            for number, transactions in seen.items():
                self.counts["acknowledged, lost"] += model.settle_in_order(number, transactions)
        else:
            model.settle([one for transactions in seen.values() for one in transactions])
        model.check()

    def as_of(self, worker, moment):
        """The transactions that a client had begun, with the outcomes that it knew at that moment."""
        for one in worker.transactions:
            if one.begun_at <= moment:
                seen = copy.copy(one)
                seen.outcome = "acknowledged" if one.answered_at <= moment else "in doubt"
                yield seen

    def remove(self):
        self.recording.remove()
        self.probe.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=100, help="(default %(default)s)")
    parser.add_argument("--cuts-per-run", type=int, default=50, help="then a new history begins (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=25, help="transactions of each client (default %(default)s)")
    parser.add_argument("--seed", help="of transactions, moments and losses (default: random, printed)")
    parser.add_argument("--binlog", action="store_true", help="with the binary log on")
    parser.add_argument("--flush-log", choices=("0", "1", "2"), default="1", help="innodb_flush_log_at_trx_commit")
    parser.add_argument("--planted", choices=PLANTED, help="pretend that these flushes are not made")
    arguments = parser.parse_args()
    seed = arguments.seed or str(secrets.randbelow(10**9))
    print(f"power_cut: engine {ENGINE}, {arguments.cuts} cuts, --seed {seed}", flush=True)
    options = [f"--innodb-flush-log-at-trx-commit={arguments.flush_log}", *(BINLOG_OPTIONS if arguments.binlog else ())]
    counts, failures, run = collections.Counter(), [], 0
    try:
        while counts["cuts"] < arguments.cuts and not failures:
            run += 1
            name = f"power-cut-{seed}-{run}"
            cuts = PowerCuts(name, options, f"{seed}-{run}", arguments.rounds, arguments.flush_log != "1", True)
            if arguments.planted:
                cuts.plant(arguments.planted)
            for _ in range(min(arguments.cuts_per_run, arguments.cuts - counts["cuts"])):
                try:
                    print(cuts.cut(), flush=True)
                except AssertionError as failure:
                    failures.append(str(failure))
                    print(f"FAILED {failure}", flush=True)
                    break
            counts += cuts.counts
            if not failures or arguments.planted:
                cuts.remove()
    except io_layer.CannotBuild as reason:
        print(f"skipped: {reason}")
        return 77
    print("; ".join(f"{value} {name}" for name, value in sorted(counts.items())))
    print(f"power_cut: {counts['cuts']} cuts survived, {len(failures)} not; seed {seed}")
    return 0 if bool(failures) == bool(arguments.planted) else 1


if __name__ == "__main__":
    sys.exit(main())
