"""
What a run that is gone on with must have as before: how its servers run, and what limits their memory. No parameter of the run has all of it: the
configuration of scripts/ndb, a server's version, whether this user may make a memory cgroup.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from ..design.plan import Block
from ..design.request import LabError
from ..design.results import RunDirectory, flatten

# Of a server's description what figures rest on. The plugin is part of a run's identity.
_SETTINGS = ("version", "pinned", "environment", "data_nodes", "link_mbits")
_OF_A_START = tuple(f"pinned.{name}" for name in ("port", "bind_address", "handlersocket_port", "handlersocket_port_wr"))  # others at each
_OF_A_LIMIT = ("how", "limit_bytes", "cache_bytes")
_ADVICE = "set it back, or begin anew with --fresh"


class ChangedServer(LabError):
    """A server ran otherwise for points that the run has: no other is measured next to them."""


def changed_settings(before: dict, now: dict) -> list[str]:
    """'data_nodes.DataMemory 3G, now 4G' for each that a server's description (describe()) had otherwise."""
    then, since = (flatten({part: found[part] for part in _SETTINGS if part in found}) for found in (before, now))
    names = sorted({*then, *since} - set(_OF_A_START))
    return [f"{name} {then.get(name, 'not set')}, now {since.get(name, 'not set')}" for name in names if then.get(name) != since.get(name)]


def changed_servers(before: dict[str, dict], now: dict[str, dict]) -> str:
    """Of the servers of two sessions, by their names, what is otherwise; empty where nothing is."""
    changed = {name: changed_settings(before[name], found) for name, found in now.items() if name in before}
    return "; ".join(f"server {name}: {', '.join(what)}" for name, what in changed.items() if what)


def changed_links(before: list[dict], now: list[dict]) -> str:
    """Of the links of two sessions, by their keys, which are made by another means: the kernel, or a proxy that has a rate for each connection."""
    then, since = ({link["key"]: link["by"].split()[0] for link in links} for links in (before, now))
    return "; ".join(f"link {key}: by {then[key]}, now by {by}" for key, by in since.items() if then.get(key, by) != by)


def of_block(block: Block) -> Callable[[dict], bool]:
    """Whether a record is of one of the block's variants, in its setting."""
    wanted = {(point.variant, point.setting) for point in block.points}
    return lambda record: (record["variant"], record.get("setting", "")) in wanted


def refuse_changes(run: RunDirectory, name: str, found: dict, is_of: Callable[[dict], bool], is_in_session: bool = True) -> None:
    """
    Raises ChangedServer where a server, as run.json names it, ran otherwise for points that this run has. found: its description now; is_of: whether a
    record is the server's; is_in_session: whether the last session of run.json is the present one.
    """
    sessions = [*run.run["sessions"], *([] if is_in_session else [{"started": float("inf")}])]
    for one, after in pairwise(sessions):
        was_measured = any(is_of(record) and one["started"] <= record["started"] < after["started"] for record in run.records)
        if was_measured and name in one.get("servers", {}) and (changed := changed_settings(one["servers"][name], found)):
            raise ChangedServer(f"{name} ran otherwise in the part of this run that is there: {'; '.join(changed)}; {_ADVICE}")


def note_server(run: RunDirectory, name: str, found: dict, is_of: Callable[[dict], bool]) -> None:
    """In run.json: how a server runs. Raises ChangedServer as refuse_changes() does."""
    refuse_changes(run, name, found, is_of)
    run.update_session("servers", {**run.run["sessions"][-1].get("servers", {}), name: found})


def same_memory_limit(run: RunDirectory, found: dict) -> dict:
    """`found`, before its session is added. Raises LabError where the servers of the part that is there had another."""
    now = {name: found[name] for name in _OF_A_LIMIT if name in found}
    for session in run.run["sessions"] if run.records else ():
        before = {name: session["memory_limit"][name] for name in _OF_A_LIMIT if name in session.get("memory_limit", {})}
        if before and before != now:
            raise LabError("the servers of the part of this run that is there had another limit of memory: "
                           f"{_words(before)}, now {_words(now)}; {_ADVICE}")
    return found


def _words(limit: dict) -> str:
    return ", ".join(map(str, limit.values()))
