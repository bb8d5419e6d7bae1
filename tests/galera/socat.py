"""As much of socat as Galera's mariabackup transfer uses: one TCP connection to or from standard input and output."""

import os
import socket
import sys
import time


def connect(address):
    host, port = address.rsplit(":", 1)
    for _ in range(300):
        try:
            return socket.create_connection((host.strip("[]"), int(port)))
        except ConnectionRefusedError:
            time.sleep(0.1)
    sys.exit(f"socat: nobody listens at {address}")


def main():
    if "-V" in sys.argv:
        print("socat version 1.7.4.4 (a stand-in)")
        return
    source, target = [word for word in sys.argv[1:] if word != "-u"]
    if source.startswith("TCP-LISTEN:"):
        port = int(source.split(":")[1].split(",")[0])
        listener = socket.create_server(("", port))
        connection = listener.accept()[0]
        while chunk := connection.recv(1 << 16):
            os.write(1, chunk)
    else:
        connection = connect(target.partition(":")[2].split(",")[0])
        while chunk := os.read(0, 1 << 16):
            connection.sendall(chunk)
        connection.close()


main()
