"""Free ports of the loopback interface."""

from __future__ import annotations

import random
import socket


def free_ports(count: int) -> list[int]:
    """`count` different ports of 127.0.0.1 on which nothing listens."""
    found: list[int] = []
    held = []
    try:
        while len(found) < count:
            probe = socket.socket()
            held.append(probe)
            port = random.randrange(18000, 32000)
            try:
                probe.bind(("127.0.0.1", port))
                found.append(port)
            except OSError:
                continue
    finally:
        for probe in held:
            probe.close()
    return found
