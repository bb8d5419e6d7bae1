"""A TCP proxy for MariaDB's protocol that stops at a chosen step of a two-phase commit and does something there.

Thread-safety: internally synchronised; a Breakpoint fires once.
"""

import socket
import threading

COM_QUERY = 3
HEADER_BYTES = 4


class Breakpoint:
    """At the first statement that begins with `verb`: `action` runs before it is passed on, or after its answer came."""

    def __init__(self, verb, when, action):
        assert when in ("before", "after")
        self.verb, self.when, self.action = verb.encode(), when, action
        self.fired, self.done = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def matches(self, statement):
        return not self.fired.is_set() and statement.lower().startswith(self.verb)

    def fire(self):
        with self._lock:
            if not self.fired.is_set():
                self.fired.set()
                self.action()
                self.done.set()


class StepProxy:
    """Listens at (host, port) and passes on to `target`; packets towards the server are read one by one."""

    def __init__(self, host, port, target):
        self.target, self.breakpoint = target, None
        self.listener = socket.create_server((host, port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            server = socket.create_connection(self.target)
        except OSError:
            client.close()
            return
        held = _Held()
        threading.Thread(target=self._answers, args=(server, client, held), daemon=True).start()
        try:
            while packet := read_packet(client):
                self._pass_on(packet, server, held)
        except OSError:
            pass
        finally:
            close(client, server)

    def _pass_on(self, packet, server, held):
        statement = packet[HEADER_BYTES + 1 :] if packet[HEADER_BYTES] == COM_QUERY else b""
        point = self.breakpoint
        if point and point.matches(statement):
            if point.when == "before":
                point.fire()
                raise ConnectionAbortedError("the statement was not passed on")
            held.point = point
        server.sendall(packet)

    @staticmethod
    def _answers(server, client, held):
        try:
            while chunk := server.recv(1 << 16):
                if held.point:
                    held.point.fire()
                    held.point = None
                    return
                client.sendall(chunk)
        except OSError:
            pass
        finally:
            close(client, server)


class _Held:
    """The breakpoint that waits for this connection's next answer."""

    point = None


def read_packet(connection):
    """Header and payload, or nothing when the connection has ended."""
    header = read_exactly(connection, HEADER_BYTES)
    return header + read_exactly(connection, int.from_bytes(header[:3], "little")) if header else b""


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def close(*connections):
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()
