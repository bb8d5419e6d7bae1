"""Transactions over several shards that were cut off in the middle of their two-phase commit, and what becomes of them.

With spider_internal_xa a front writes down in mysql.spider_xa what it is about to do: NOT YET before any shard prepares,
COMMIT once all have prepared and before any commits. A shard that prepared keeps the transaction, and its row locks, for
ever, also across its own failover (XA PREPARE is replicated). Nothing in MariaDB asks the front again; this does:

- COMMIT stands: the transaction is committed on every shard that still holds it.
- Otherwise, once its session is gone: rolled back; the client cannot have heard that it was committed.

Invariant: a transaction whose session is alive on its front is left alone; a decision is read after its session has gone.
Thread-safety: externally synchronised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pymysql

from .cluster import Cluster
from .keeper import QUICK, run
from .nodes import Member

UNKNOWN_XID = 1397  # XAER_NOTA: it was finished meanwhile
SPIDER_FORMAT = 1
HEXADECIMAL = re.compile("[0-9a-f]+")


@dataclass(frozen=True)
class Prepared:
    """One shard's part. Spider names a transaction (`key`: gtrid, bqual) by its session on the front and the front's
    server id, both in hexadecimal."""

    shard: str
    key: tuple[str, str]

    @property
    def xid(self) -> str:
        gtrid, bqual = (name.encode().hex() for name in self.key)
        return f"0x{gtrid},0x{bqual},{SPIDER_FORMAT}"


def prepared(cluster: Cluster) -> list[Prepared]:
    """What the shards hold of Spider's. Others' are left to them: its format id is what XA START gives to any."""
    found = []
    for shard in cluster.plan.routes:
        for row in cluster.primary(shard).query("XA RECOVER", **QUICK):
            key = split(row)
            if row["formatID"] == SPIDER_FORMAT and all(HEXADECIMAL.fullmatch(name) for name in key):
                found.append(Prepared(shard, key))
    return found


def resolve(cluster: Cluster) -> list[str]:
    """Finishes what can be finished; what was done, a line each. A front that is down decides nothing."""
    parts = prepared(cluster)
    done = []
    for front in cluster.role("front"):
        if not front.alive():
            continue
        keys = {*_decisions(front), *(part.key for part in parts)}
        gone = {key for key in keys if _is_gone(front, key)}
        decisions = _decisions(front)  # final now: nobody is left to change them
        for part in parts:
            if part.key in gone:
                done.append(_finish(cluster, front, part, decisions.get(part.key, ("", b""))[0]))
        _forget(front, [decisions[key][1] for key in gone if key in decisions])
    return done


def _decisions(front: Member) -> dict[tuple[str, str], tuple[str, bytes]]:
    """What a front wrote down: its transactions' status, and the key in its tables."""
    rows = front.query("SELECT gtrid_length, bqual_length, data, status FROM mysql.spider_xa", **QUICK)
    return {split(row): (row["status"], row["data"]) for row in rows}


def split(row: dict[str, Any]) -> tuple[str, str]:
    """(gtrid, bqual)"""
    data = row["data"].decode("latin-1") if isinstance(row["data"], bytes) else row["data"]
    end = row["gtrid_length"] + row["bqual_length"]
    return data[: row["gtrid_length"]], data[row["gtrid_length"] : end]


def _is_gone(front: Member, key: tuple[str, str]) -> bool:
    """A transaction of this front whose session has ended."""
    gtrid, bqual = key
    if int(bqual, 16) != front.node.server_id:
        return False
    query = "SELECT 1 FROM information_schema.processlist WHERE id = %s"
    return not front.query(query, (int(gtrid, 16),), **QUICK)


def _finish(cluster: Cluster, front: Member, part: Prepared, status: str) -> str:
    verb = "COMMIT" if status == "COMMIT" else "ROLLBACK"
    try:
        run(cluster.primary(part.shard), f"XA {verb} {part.xid}")
    except pymysql.err.OperationalError as failure:
        if failure.args[0] != UNKNOWN_XID:
            raise
    return f"{part.shard}: XA {verb} of a transaction of {front.name}, session {int(part.key[0], 16)}"


def _forget(front: Member, keys: list[bytes]) -> None:
    """Sessions are numbered anew when a front starts, and must not meet old entries."""
    for key in keys:
        for table in ("spider_xa_member", "spider_xa"):
            front.query(f"DELETE FROM mysql.{table} WHERE data = %s", (key,), **QUICK)
