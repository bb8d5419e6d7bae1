"""
What the client processes do: load, verify, read, update. Each job_* returns a function for workers.run().

Every value that went in is known by its SHA-256; verify compares what an ordinary SELECT gives back with it.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import Callable

from .corpus import Corpus
from .tables import NAME_BYTES_MAX, TABLE
from .workers import Client

SALT_BYTES = 16


def job_load(corpus: Corpus, order: list[int]) -> Callable[[Client], list]:
    """Inserts the items named by `order`, one durable autocommit statement each. Result: [(id, item number)]."""

    def load(client: Client) -> list:
        loaded = []
        with client.connection.cursor(prepared=True) as cursor:
            while (turn := client.next_number()) < len(order):
                item = corpus.items[order[turn]]
                started = time.monotonic()
                cursor.execute(
                    f"INSERT INTO {TABLE} (name, sha256, data) VALUES (?, ?, ?)",
                    (os.fsencode(item.name)[-NAME_BYTES_MAX:], item.sha256, item.data),
                )
                client.done(time.monotonic() - started, item.size)
                loaded.append((cursor.lastrowid, order[turn]))
        return loaded

    return load


def job_verify(expected: list[tuple[int, bytes]]) -> Callable[[Client], list]:
    """Reads every row of [(id, SHA-256)] and compares. Result: one line of text per row that is wrong."""

    def verify(client: Client) -> list:
        wrong = []
        with client.connection.cursor(prepared=True) as cursor:
            while (turn := client.next_number()) < len(expected):
                row_id, sha256 = expected[turn]
                started = time.monotonic()
                cursor.execute(f"SELECT sha256, data FROM {TABLE} WHERE id = ?", (row_id,))
                row = cursor.fetchone()
                client.done(time.monotonic() - started, len(row[1]) if row else 0)
                if row is None:
                    wrong.append(f"row {row_id} is missing")
                elif (found := hashlib.sha256(row[1]).digest()) != sha256:
                    wrong.append(
                        f"row {row_id}: SHA-256 {found.hex()} of {len(row[1])} bytes, {sha256.hex()} was written"
                    )
                elif bytes(row[0]) != sha256:
                    wrong.append(f"row {row_id}: the sha256 column is another version than the data")
        return wrong

    return verify


def job_read(sizes: dict[int, int]) -> Callable[[Client], list]:
    """Reads random rows of {id: bytes} until the deadline. Result: one line of text per row of another length."""

    def read(client: Client) -> list:
        ids, wrong = list(sizes), []
        with client.connection.cursor(prepared=True) as cursor:
            while (started := time.monotonic()) < client.deadline:
                row_id = client.random.choice(ids)
                cursor.execute(f"SELECT data FROM {TABLE} WHERE id = ?", (row_id,))
                row = cursor.fetchone()
                length = len(row[0]) if row else -1
                client.done(time.monotonic() - started, length)
                if length != sizes[row_id]:
                    wrong.append(f"row {row_id}: {length} bytes, {sizes[row_id]} were written")
        return wrong

    return read


def salted(data: bytes, salt: bytes) -> bytes:
    """A value of the same length that was never stored before."""
    return salt + data[len(salt) :]


def job_update(corpus: Corpus, numbers: list[int], ids: list[int]) -> Callable[[Client], dict]:
    """
    Gives random rows the content of other random files, one durable statement each, until the deadline. A row belongs
    to one client, so the last acknowledged version is known. Result: {id: (SHA-256, bytes)} of the rows changed.
    """

    def update(client: Client) -> dict:
        own = ids[client.number :: client.of]
        changed = {}
        with client.connection.cursor(prepared=True) as cursor:
            while time.monotonic() < client.deadline:
                row_id = client.random.choice(own)
                item = corpus.items[client.random.choice(numbers)]
                value = salted(item.data, client.random.randbytes(SALT_BYTES))
                sha256 = hashlib.sha256(value).digest()
                started = time.monotonic()
                cursor.execute(f"UPDATE {TABLE} SET sha256 = ?, data = ? WHERE id = ?", (sha256, value, row_id))
                client.done(time.monotonic() - started, len(value))
                changed[row_id] = (sha256, len(value))
        return changed

    return update
