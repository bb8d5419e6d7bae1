#!/usr/bin/env python3
"""What unusual sizes cost: many stores, segments, tables, partitions, small values, and one huge transaction.

The core's part runs quarry_scale (scale.cc), which needs no server; the server's part a private one. Each measurement has a
directory of its own under build/scale, which goes when it ends. Results: build/scale/results.json, and a table.

    make scale                             all of it, within an hour
    make scale ARGS="--only gc kill"       some of it
    make scale ARGS="--share 0.01"         a hundredth of each size: does it work?
"""

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY / "lab"), str(REPOSITORY / "tools")]

from harness.server import Server  # noqa: E402
from quarry_server.run import run_or_raise  # noqa: E402

PROGRAM = REPOSITORY / "build" / "release" / "quarry_scale"
SCALE = REPOSITORY / "build" / "scale"
GIB = 1 << 30
RESERVE_BYTES = 4 * GIB
IDLE_S = 60
TIMEOUT_S = 3600

# Name -> what quarry_scale measures, how many, and the bytes that one takes on disk at most.
CORE = {
    "stores-100k": ("stores", 100_000, 16 << 10),
    "stores-1m": ("stores", 1_000_000, 16 << 10),
    "segments-100k": ("segments", 100_000, 48 << 10),
    "gc": ("gc", 50_000_000, 400),
    "kill": ("kill", 20 * GIB, 1),
}
TABLES, PARTITIONS, PATHS = 10_000, 8_192, 4


def free_bytes():
    return shutil.disk_usage(SCALE).free - RESERVE_BYTES


def core(name, share, idle_s):
    what, count, bytes_each = CORE[name]
    count = min(int(count * share), free_bytes() // bytes_each)
    directory = SCALE / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        command = [PROGRAM, what, "--count", str(count), "--directory", directory, "--idle", str(idle_s)]
        return {"count": count} | json.loads(run_or_raise(command, timeout_s=TIMEOUT_S))
    finally:
        shutil.rmtree(directory, ignore_errors=True)


# --- a server -----------------------------------------------------------------------------------------------------------


def process_figures(server):
    process = server.private.process.pid
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    (resident,) = (line.split()[1] for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return {"memory_bytes": int(resident) << 10, "descriptors": len(os.listdir(f"/proc/{process}/fd")), "cpu_s": cpu_s}


def flushes(server):
    return sum(int(value) for name, value in server.status("quarry%flushes").items() if name in ("quarry_flushes", "quarry_catalogue_flushes"))


def timed(figures, name, function):
    begin = time.monotonic()
    value = function()
    figures[name] = time.monotonic() - begin
    return value


def life_of(server, figures, idle_s):
    """Restart, kill, an idle minute: what each takes."""
    figures["descriptors_while_writing"] = process_figures(server)["descriptors"]
    timed(figures, "shutdown_seconds", server.stop)
    timed(figures, "start_seconds", server.start)
    before, flushed = process_figures(server), flushes(server)
    time.sleep(idle_s)
    after = process_figures(server)
    figures["idle_seconds"] = idle_s
    figures["idle_cpu_seconds"] = after["cpu_s"] - before["cpu_s"]
    figures["idle_flushes"] = flushes(server) - flushed
    figures["memory_bytes"], figures["descriptors"] = after["memory_bytes"], after["descriptors"]
    for name, value in server.status("quarry_open_files%").items():
        figures[name] = int(value)
    server.kill()
    timed(figures, "start_after_kill_seconds", server.start)
    figures["gc_seconds"] = collect(server)


def collect(server):
    """A pass over every table."""
    begin = time.monotonic()
    server.query("SET GLOBAL quarry_gc_now = ON")
    while True:
        figures = server.status("quarry_gc_requests%")
        if figures["quarry_gc_requests"] == figures["quarry_gc_requests_done"]:
            return time.monotonic() - begin
        time.sleep(0.5)


@contextlib.contextmanager
def private_server(name, *options):
    server = Server(name, [*options, "--innodb-flush-log-at-trx-commit=2", "--quarry-gc=OFF"])
    server.start()
    try:
        server.query("CREATE DATABASE d")
        yield server
    finally:
        server.remove()


def tables(share, idle_s):
    count = int(TABLES * share)
    figures = {"count": count}
    with private_server("scale-tables") as server:

        def make():
            with server.connect("d") as connection, connection.cursor() as cursor:
                for table in range(count):
                    cursor.execute(f"CREATE TABLE t{table} (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
                    cursor.execute(f"INSERT INTO t{table} VALUES (1, REPEAT('x', 9000))")

        timed(figures, "make_seconds", make)
        life_of(server, figures, idle_s)
    return figures


def partitions(share, idle_s):
    count = max(int(PARTITIONS * share), 2)
    paths = [SCALE / f"path{number}" for number in range(PATHS)]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    figures = {"count": count}
    try:
        with private_server("scale-partitions", "--quarry-data-paths=" + ";".join(map(str, paths))) as server:
            server.query(f"CREATE TABLE d.p (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY PARTITION BY HASH (id) PARTITIONS {count}")
            insert = f"INSERT INTO p SELECT seq, REPEAT('x', 9000) FROM seq_0_to_{2 * count - 1}"
            timed(figures, "one_insert_into_all_seconds", lambda: server.query(insert, database="d"))
            ((rows,),) = server.query("SELECT COUNT(*) FROM d.p WHERE b = REPEAT('x', 9000)")
            assert rows == 2 * count, rows
            life_of(server, figures, idle_s)
    finally:
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)
    return figures


SERVER = {"tables": tables, "partitions": partitions}


def run(name, share, idle_s):
    return core(name, share, idle_s) if name in CORE else SERVER[name](share, idle_s)


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() or "unknown"


def text_of(name, value):
    if not isinstance(value, (int, float)):
        return str(value)
    if name.endswith("bytes"):
        return f"{value / 2**20:,.1f} MiB"
    return f"{value:,.3f}" if name.endswith("seconds") else f"{value:,.0f}"


def main():
    names = [*CORE, *SERVER]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--share", type=float, default=1, help="of each size (default: %(default)s)")
    parser.add_argument("--idle", type=int, default=IDLE_S, metavar="S", help="seconds to stand still (default: %(default)s)")
    arguments = parser.parse_args()
    SCALE.mkdir(parents=True, exist_ok=True)
    results = {"commit": commit(), "date": time.strftime("%Y-%m-%d"), "processors": os.cpu_count(), "kernel": platform.release(), "measured": {}}
    for number, name in enumerate(arguments.only, 1):
        print(f"== {name} ({number} of {len(arguments.only)})", flush=True)
        begin = time.monotonic()
        results["measured"][name] = figures = run(name, arguments.share, arguments.idle)
        figures["all_of_it_seconds"] = time.monotonic() - begin
        for key, value in figures.items():
            print(f"  {key:30} {text_of(key, value):>20}", flush=True)
        (SCALE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"results: {SCALE / 'results.json'}")


if __name__ == "__main__":
    main()
