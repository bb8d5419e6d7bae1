"""How clients without unix sockets reach a test's server."""

from quarry_server.private import new_secret

USER, PASSWORD = "client", new_secret()
PASSWORD_VARIABLE = "QUARRY_TEST_PASSWORD"  # Values.java


def port_of(server):
    (port,) = (option.split("=")[1] for option in server.options if option.startswith("--port="))
    return int(port)
