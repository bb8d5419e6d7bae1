"""What another account of this machine sees of a server, and whether it gets in. Runs as that account; standard library only.

Standard input (outside.py): one JSON object, `directories` (of servers), `doors` ([host, port] on which they listen), `users` (to log in as,
without a password), `secrets` (that no command line may show). Standard output: a list of what it could do, empty where it
could do nothing, and how much it tried.
"""

import json
import os
import socket
import ssl
import struct
import sys

TIMEOUT_S = 3
# protocol 4.1, secure connection, plugin authentication
CAPABILITIES = 0x200 | 0x8000 | 0x80000


def files_within_reach(directory):
    """Whatever can be listed, or entered by a name that is known."""
    try:
        return [f"lists {directory}: {sorted(os.listdir(directory))[:5]}"]
    except OSError:
        pass
    for name in ("data", "mysqld.sock", "error.log", "tmp", "files", "cluster.json"):
        try:
            os.stat(os.path.join(directory, name))
            return [f"enters {directory}: it sees {name}"]
        except OSError:
            continue
    return []


def sockets_of(directories):
    """Unix sockets are in nobody's directory for who reads their paths here."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        paths = {line.split(None, 7)[7].strip() for line in table if len(line.split(None, 7)) == 8}
    return sorted(path for path in paths if any(path.startswith(directory + "/") for directory in directories))


def answers(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(path)
        except OSError:
            return False
        return True


def read_packet(connection):
    header = read(connection, 4)
    return read(connection, int.from_bytes(header[:3], "little"))


def read(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("closed")
        data += piece
    return data


def send_packet(connection, number, data):
    connection.sendall(struct.pack("<I", len(data))[:3] + bytes([number]) + data)


def speaks_sql(door):
    """Whether a server greets here, as MariaDB does, or says at once that no account is let in from this address."""
    try:
        with socket.create_connection(door, TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            return read_packet(connection)[:1] in (b"\n", b"\xff")
    except OSError:
        return False


def logs_in(door, user):
    """Without a password."""
    try:
        with socket.create_connection(door, TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            if read_packet(connection)[:1] != b"\n":
                return False
            hello = struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45) + user.encode() + b"\0\0mysql_native_password\0"
            send_packet(connection, 1, hello)
            number, answer = 3, read_packet(connection)
            while answer[:1] == b"\xfe":
                send_packet(connection, number, b"")
                number, answer = number + 2, read_packet(connection)
            return answer[:1] == b"\0"
    except OSError:
        return False


def talks_without_a_certificate(door):
    """Of a door where no server of SQL greets: it must be TLS, and refuse who has no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(door, TIMEOUT_S) as plain:
            with context.wrap_socket(plain) as connection:
                connection.settimeout(TIMEOUT_S)
                connection.sendall(b"hello")
                return bool(connection.recv(1))  # an alert is an error, a closed connection gives nothing
    except ssl.SSLError as error:
        # What is no TLS at all answers, or says nothing: either way it did not ask who is there.
        return "ALERT" not in str(error).upper()
    except OSError as error:
        return isinstance(error, TimeoutError)


def reads_rows(door):
    """Of HandlerSocket's line protocol: opens a table without a word about a secret."""
    try:
        with socket.create_connection(door, TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.sendall(b"P\t1\tmysql\tglobal_priv\tPRIMARY\tUser\n")
            return connection.recv(1) == b"0"
    except OSError:
        return False


def shown_secrets(secrets):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for what in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{what}", "rb") as file:
                    text = file.read().decode(errors="replace")
            except OSError:
                continue
            found += [f"reads a secret in the {what} of {text.split(chr(0))[0]}" for secret in secrets if secret in text]
    return found


def main():
    asked = json.load(sys.stdin)
    directories, users, found = asked["directories"], asked["users"], []
    for directory in directories:
        found += files_within_reach(directory)
    sockets = sockets_of(directories)
    found += [f"reaches the socket {path}" for path in sockets if answers(path)]
    doors = [tuple(door) for door in asked["doors"]]
    for door in doors:
        if speaks_sql(door):
            found += [f"logs in at {door} as '{user}'" for user in users if logs_in(door, user)]
        elif reads_rows(door):
            found.append(f"reads rows at {door}")
        elif talks_without_a_certificate(door) and door[1] not in asked["line_protocol"]:
            found.append(f"is listened to at {door} without a certificate")
    found += shown_secrets(asked["secrets"])
    tried = {"sockets": len(sockets), "doors": len(doors), "users": len(users)}
    print(json.dumps({"found": found, "tried": tried}))


main()
