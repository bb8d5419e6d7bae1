#!/usr/bin/env python3
"""Shows that a FULLTEXT search of InnoDB's misses committed rows, with InnoDB alone and no Quarry in the server.

InnoDB keeps the words of new rows in a cache; when that has grown, a background thread writes them to tables. At the end
fts_sync_commit (storage/innobase/fts/fts0fts.cc:4159) empties the cache and lets go of its lock before it commits what it
wrote: a search in between finds the words in neither. Each round commits two rows that are searched for and one that is
large enough to have the thread begin, then searches for a second.

    tests/twin/fulltext_sync.py --minutes 2

Exit code 0 when searches missed rows, 1 when none did.
"""

import argparse
import pathlib
import random
import shutil
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "lab"), str(TESTS.parent / "tools")]

import pymysql  # noqa: E402
from harness.server import SCRATCH  # noqa: E402
from quarry_server.server import PrivateServer  # noqa: E402

CACHE_SIZE_BYTES = 1_600_000  # the least that innodb_ft_cache_size may be; a tenth of it wakes the thread
WORDS = 40_000
SEARCH = "SELECT id FROM t WHERE MATCH (b) AGAINST ('dca* dce*' IN BOOLEAN MODE)"


def one_round(cursor, words):
    """(searches, [(seconds after the commit, ids found instead of 1 and 2), ...])"""
    cursor.execute("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, b LONGTEXT, FULLTEXT KEY (b)) ENGINE=InnoDB")
    cursor.execute("INSERT INTO t VALUES (1, 'dcab'), (2, 'dcef')")
    cursor.execute("INSERT INTO t VALUES (3, %s)", (" ".join(f"{words.getrandbits(40):012d}" for _ in range(WORDS)),))
    searches, missed, began = 0, [], time.monotonic()
    while (seconds := time.monotonic() - began) < 1:
        cursor.execute(SEARCH)
        found = sorted(row[0] for row in cursor.fetchall())
        searches += 1
        if found != [1, 2]:
            missed.append((round(seconds, 4), found))
    return searches, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2, help="how long (default %(default)s)")
    arguments = parser.parse_args()
    directory = SCRATCH / "fulltext-sync"
    shutil.rmtree(directory, ignore_errors=True)
    server = PrivateServer(directory, [f"--innodb-ft-cache-size={CACHE_SIZE_BYTES}"], plugin=None)
    server.start()
    rounds = searches = misses = 0
    end = time.monotonic() + arguments.minutes * 60
    try:
        cursor = pymysql.connect(unix_socket=str(server.socket), user=server.account, autocommit=True).cursor()
        cursor.execute("CREATE DATABASE f")
        cursor.execute("USE f")
        words = random.Random(1)
        while time.monotonic() < end:
            asked, missed = one_round(cursor, words)
            rounds, searches, misses = rounds + 1, searches + asked, misses + len(missed)
            if missed:
                print(f"round {rounds}: {len(missed)} of {asked} searches missed rows, the first: {missed[0]}", flush=True)
    finally:
        server.kill()
        shutil.rmtree(directory)
    print(f"{rounds} rounds, {searches} searches, {misses} missed committed rows")
    return 0 if misses else 1


if __name__ == "__main__":
    sys.exit(main())
