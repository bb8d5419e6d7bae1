"""
What a link gives: bytes per second of one plain connection, and the time of a one-byte question and answer.

`python -m quarry_lab.probes.link_probe HOST PORT SECONDS` is the client's end, a program because it may have to run in another network namespace.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

from ..report import stats

_BLOCK_BYTES = 1 << 16
_PINGS = 20


class ProbeServer:
    """Listens on one port of several addresses. Answers 'p' with a byte; to 's' it sends until the other side closes."""

    def __init__(self, addresses: list[str], port: int):
        self._listeners = [socket.create_server((address, port)) for address in addresses]
        self._threads = [threading.Thread(target=self._accept, args=(listener,), daemon=True) for listener in self._listeners]

    def __enter__(self) -> ProbeServer:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)  # wakes accept
            listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        block = bytes(_BLOCK_BYTES)
        try:
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while question := connection.recv(1):
                    if question == b"p":
                        connection.sendall(b"p")
                    else:
                        while True:
                            connection.sendall(block)
        except OSError:
            return  # the other side has what it wanted


def measure(host: str, port: int, seconds: float) -> dict:
    with socket.create_connection((host, port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        trips = []
        for _ in range(_PINGS):
            started = time.monotonic()
            connection.sendall(b"p")
            connection.recv(1)
            trips.append(time.monotonic() - started)
        connection.sendall(b"s")
        connection.recv(_BLOCK_BYTES)  # the first bytes are on their way
        received, started = 0, time.monotonic()
        while time.monotonic() - started < seconds:
            received += len(connection.recv(1 << 20))
        elapsed = time.monotonic() - started
    return {"measured_bytes_per_second": received / elapsed, "measured_round_trip_ms": stats.summarize(trips).median * 1000}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
