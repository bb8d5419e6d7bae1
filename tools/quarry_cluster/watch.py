"""Whether a shard's servers answer: what HAProxy's own check would find out, by the keeper's own account and socket.

A server is gone after CHECK_FAILURES looks in a row that failed, and back after one that did not. HAProxy is told whenever it
thinks otherwise, so one that was started anew hears it too.
Thread-safety: one thread each; HAProxy's calls are made from any.
"""

from __future__ import annotations

import threading

import pymysql

from .haproxy import HAProxy
from .nodes import Member

CHECK_INTERVAL_S = 0.5
CHECK_FAILURES = 2
PATIENCE = {"connect_timeout": 2, "read_timeout": 2, "write_timeout": 2}


class Watch(threading.Thread):
    """Of one server of a shard."""

    def __init__(self, shard: str, member: Member, proxy: HAProxy) -> None:
        super().__init__(name=f"watch-{member.name}", daemon=True)
        self.shard, self.member, self.proxy = shard, member, proxy
        self.stop = threading.Event()
        self._connection: pymysql.Connection | None = None
        self._failures = 0

    def run(self) -> None:
        while not self.stop.wait(CHECK_INTERVAL_S):
            self._failures = 0 if self._answers() else self._failures + 1
            try:
                self._tell()
            except Exception:  # pylint: disable=broad-except
                continue  # HAProxy is gone, or goes while it answers: the keeper starts it again
        self._disconnect()

    def _answers(self) -> bool:
        """Over one connection, as long as it holds: what hangs does not answer in time."""
        try:
            if self._connection is None:
                self._connection = self.member.connect(**PATIENCE)
            self._connection.ping(reconnect=False)
            return True
        except Exception:  # pylint: disable=broad-except
            # Also what a handshake that breaks off makes of the client: nothing may end this thread.
            self._disconnect()
            return False

    def _disconnect(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close()
            except (pymysql.err.Error, OSError):
                pass  # it is closed
            self._connection = None

    def _tell(self) -> None:
        if 0 < self._failures < CHECK_FAILURES:
            return
        is_up = self._failures == 0
        status = self.proxy.states(self.shard)[self.member.name]
        if not status.startswith("MAINT") and status.startswith("DOWN") == is_up:
            self.proxy.mark(self.shard, self.member.name, is_up)
