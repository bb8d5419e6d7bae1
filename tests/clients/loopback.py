"""How clients without unix sockets reach a test's server."""

USER, PASSWORD = "client", "client"


def port_of(server):
    (port,) = (option.split("=")[1] for option in server.options if option.startswith("--port="))
    return int(port)
