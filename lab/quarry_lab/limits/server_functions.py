"""Functions of the server, of the C++ programs here, that the lab loads into servers of its own for as long as it needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from ..load import clients
from ..load.value_reader import server_headers
from ..servers.lab_server import LabServer
from .ordered_commits import HERE

_LINKED = {"durable_write": ["-llz4"]}


@contextmanager
def loaded(server: LabServer, library: str, functions: Mapping[str, str]) -> Iterator[None]:
    """library: the source's stem. functions: the type that each returns, by name. ProgramError where it does not compile."""
    sources = [HERE / f"{library}.cc", HERE / "direct_file.h", HERE / "server_function.h"]
    program = clients.compiled(f"{library}.so", sources, lambda: [*server_headers(), "-shared", "-fPIC", *_LINKED.get(library, [])])
    assert server.server
    link = server.server.plugin_dir / program.name
    link.symlink_to(program)
    for name, returns in functions.items():
        server.execute(f"CREATE FUNCTION {name} RETURNS {returns} SONAME '{program.name}'")
    yield
    for name in functions:
        server.execute(f"DROP FUNCTION {name}")
    link.unlink()


def loaded_with_end(server: LabServer, name: str) -> AbstractContextManager[None]:
    """A function of values whose first call opens something, and `name`_end, which closes it and says how many bytes that were."""
    return loaded(server, name, {name: "STRING", f"{name}_end": "INTEGER"})
