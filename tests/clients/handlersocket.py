"""A client of HandlerSocket: lines of tokens between tabs, as its documentation has them.

A token is NULL (one zero byte) or a string in which bytes below 0x10 are sent as 0x01 and the byte plus 0x40.
Thread-safety: externally synchronised.
"""

import re
import socket

NULL_TOKEN = b"\x00"
LOW_BYTE = re.compile(rb"[\x00-\x0f]")
ESCAPED_BYTE = re.compile(rb"\x01(.)", re.DOTALL)


class HandlerSocketError(Exception):
    """The answer's code and message."""


def encode(token):
    if token is None:
        return NULL_TOKEN
    data = token if isinstance(token, bytes) else str(token).encode()
    return LOW_BYTE.sub(lambda match: bytes([1, match.group()[0] + 0x40]), data)


def decode(token):
    return None if token == NULL_TOKEN else ESCAPED_BYTE.sub(lambda match: bytes([match.group(1)[0] - 0x40]), token)


class HandlerSocket:
    def __init__(self, port, secret, timeout_s=120):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self.columns = {}  # by the number of the opened index
        self.request("A", 1, secret)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def request(self, *tokens):
        """The answer's tokens behind its code and its number of columns."""
        self.socket.sendall(b"\t".join(encode(token) for token in tokens) + b"\n")
        pieces = []
        while not pieces or not pieces[-1].endswith(b"\n"):
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise HandlerSocketError("the server closed the connection")
            pieces.append(piece)
        code, columns, *answer = b"".join(pieces)[:-1].split(b"\t")
        answer = [decode(token) for token in answer]
        if code != b"0":
            raise HandlerSocketError(code.decode(), *answer)
        return int(columns), answer

    def open_index(self, number, schema, table, columns, index="PRIMARY", filters=()):
        self.columns[number] = len(columns)
        self.request("P", number, schema, table, index, ",".join(columns), ",".join(filters))

    def insert(self, number, *values):
        return self.request(number, "+", len(values), *values)[1]

    def find(self, number, *key, comparison="=", limit=1, offset=0, tail=()):
        """Rows, as lists of bytes or None."""
        columns, answer = self.request(number, comparison, len(key), *key, limit, offset, *tail)
        assert columns == self.columns[number] and len(answer) % columns == 0
        return [answer[start : start + columns] for start in range(0, len(answer), columns)]

    def modify(self, number, operation, *key, values=(), comparison="=", limit=1):
        """Operation U, D, + or -; how many rows it changed."""
        return int(self.request(number, comparison, len(key), *key, limit, 0, operation, *values)[1][0])

    def modify_and_get(self, number, operation, *key, values=()):
        """The same, giving the rows as they were before."""
        columns, answer = self.request(number, "=", len(key), *key, 1, 0, operation + "?", *values)
        return [answer[start : start + columns] for start in range(0, len(answer), columns)]
