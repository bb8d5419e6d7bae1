"""
What a run that is gone on with must have as before: how its servers run, and what limits their memory. No parameter of the run has all of it: the
configuration of scripts/ndb, a server's version, whether this user may make a memory cgroup.
"""

from __future__ import annotations

from itertools import pairwise

from ..design.plan import Block
from ..design.request import LabError
from ..design.results import RunDirectory, flatten

# Of a server's description what figures rest on. The plugin is part of a run's identity.
_SETTINGS = ("version", "pinned", "data_nodes", "link_mbits")
_OF_A_START = ("pinned.port", "pinned.bind_address")  # others at each
_OF_A_LIMIT = ("how", "limit_bytes", "cache_bytes")
_ADVICE = "set it back, or begin anew with --fresh"


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


def note_server(run: RunDirectory, block: Block, name: str, found: dict) -> None:
    """In run.json: how the server of this name runs. Raises LabError where it ran otherwise for points of the block's cells that the run has."""
    for session in _sessions_with(run, block):
        if name in session.get("servers", {}) and (changed := changed_settings(session["servers"][name], found)):
            raise LabError(f"{name} ran otherwise in the part of this run that is there: {'; '.join(changed)}; {_ADVICE}")
    run.update_session("servers", {**run.run["sessions"][-1].get("servers", {}), name: found})


def _sessions_with(run: RunDirectory, block: Block) -> list[dict]:
    """Earlier sessions that measured the block's variants in its setting."""
    wanted = {(point.variant, point.setting) for point in block.points}
    times = [record["started"] for record in run.records if (record["variant"], record.get("setting", "")) in wanted]
    return [one for one, after in pairwise(run.run["sessions"]) if any(one["started"] <= time < after["started"] for time in times)]


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
