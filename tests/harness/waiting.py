"""Waiting until something is so. Tests wait for conditions, never for a time: the limit only ends a test that would hang."""

import time

import pymysql

WAIT_S = 180


def wait_for(what, condition, limit_s=WAIT_S, every_s=0.1):
    """The first true value of `condition()`, which may also raise what a server raises that is away. AssertionError after
    `limit_s`, with `what` (or what it returns) and what was seen last.
    """
    deadline = time.monotonic() + limit_s
    while True:
        try:
            found = condition()
        except pymysql.err.Error as failure:
            found = None
            seen = repr(failure)
        else:
            seen = repr(found)
        if found:
            return found
        if time.monotonic() > deadline:
            name = what() if callable(what) else what
            raise AssertionError(f"waited {limit_s} s in vain for {name}; last seen: {seen[:1000]}")
        time.sleep(every_s)


def wait_until_detached(server):
    """Of an XA transaction that was prepared and whose session was closed; there is no other. The server lets go of it
    before InnoDB does: in between XA COMMIT says ok and commits nothing, of InnoDB's own tables too.
    """
    detached = "SELECT trx_id FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = 0 AND trx_rows_modified > 0"
    wait_for("InnoDB to have the transaction without a session", lambda: server.query(detached))
