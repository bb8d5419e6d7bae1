"""How clients without unix sockets reach a test's server."""

import socket

USER, PASSWORD = "client", "client"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def port_of(server):
    (port,) = (option.split("=")[1] for option in server.options if option.startswith("--port="))
    return int(port)
