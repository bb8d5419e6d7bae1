"""What a cluster consists of, and where: made once, kept in cluster.json of its directory.

A plan is immutable. Ports are free ones below the range that the kernel hands out to clients; they stay the cluster's for
good, so that fronts, replicas and clients find a node again after it was restarted.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quarry_server.ports import free_ports
from quarry_server.private import new_secret

KINDS = {"spider": 2, "4": 4, "galera": 0}  # what KIND= may be, and how many shards that is
FRONTS = 2
FRONTS_MAX = 17  # the step of AUTO_INCREMENT; prime, so that the ids of one front fall on all shards
DATA_SERVER_ID = 21  # of the first data node; those of fronts are their offsets, 1 to FRONTS_MAX
GALERA_NODES = 3


class ClusterError(Exception):
    """Something that the user can act on; the message says what."""


@dataclass(frozen=True)
class Node:
    """One server. `shard` is empty for fronts and Galera nodes; `extra_ports` are Galera's group, IST and SST ports."""

    name: str
    role: str  # front, data or galera
    port: int
    server_id: int
    shard: str = ""
    extra_ports: tuple[int, ...] = ()


@dataclass(frozen=True)
class Route:
    """An address that stays while servers behind it change."""

    host: str
    port: int


@dataclass(frozen=True)
class Plan:
    """All nodes; `routes` maps a shard to where HAProxy forwards to its primary.

    Each shard has a loopback address of its own: Spider tells the parts of a two-phase commit apart by host alone.
    """

    kind: str
    nodes: tuple[Node, ...]
    routes: dict[str, Route]
    password: str  # of clients, and of fronts on the shards
    replication_password: str = ""
    tls: bool = False  # between the nodes
    closed: bool = False  # made by a build whose clusters let nobody else in

    def node(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise ClusterError(f"no node '{name}' (there are: {', '.join(node.name for node in self.nodes)})")

    def role(self, role: str) -> list[Node]:
        return [node for node in self.nodes if node.role == role]

    def shard(self, shard: str) -> list[Node]:
        return [node for node in self.nodes if node.shard == shard]


def make_plan(kind: str, shards: int | None = None, fronts: int = FRONTS, tls: bool = True) -> Plan:
    if kind not in KINDS:
        raise ClusterError(f"KIND={kind} is none of {', '.join(KINDS)}")
    secret: dict[str, Any] = {"password": new_secret(), "replication_password": new_secret(), "tls": tls, "closed": True}
    if kind == "galera":
        ports = free_ports(4 * GALERA_NODES)
        nodes = [
            Node(f"g{i + 1}", "galera", ports[4 * i], i + 1, extra_ports=tuple(ports[4 * i + 1 : 4 * i + 4]))
            for i in range(GALERA_NODES)
        ]
        return Plan(kind, tuple(nodes), {}, **secret)
    if fronts > FRONTS_MAX:
        raise ClusterError(f"{fronts} fronts: ids tell at most {FRONTS_MAX} apart")
    names = [f"s{i + 1}" for i in range(shards or KINDS[kind])]
    ports = iter(free_ports(fronts + 3 * len(names)))
    nodes = [Node(f"f{i + 1}", "front", next(ports), i + 1) for i in range(fronts)]
    for i, shard in enumerate(names):
        nodes += [Node(shard + copy, "data", next(ports), DATA_SERVER_ID + 10 * i + n, shard) for n, copy in enumerate("ab")]
    routes = {shard: Route(f"127.0.0.{10 + i}", next(ports)) for i, shard in enumerate(names)}
    return Plan(kind, tuple(nodes), routes, **secret)


def read_plan(directory: Path) -> Plan | None:
    try:
        raw = json.loads((directory / "cluster.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    nodes = tuple(Node(**{**node, "extra_ports": tuple(node["extra_ports"])}) for node in raw.pop("nodes"))
    routes = {shard: Route(**route) for shard, route in raw.pop("routes").items()}
    return Plan(nodes=nodes, routes=routes, **raw)


def write_plan(directory: Path, plan: Plan) -> None:
    write_durably(directory / "cluster.json", dataclasses.asdict(plan))


def recorded_pid(pid_file: Path, argument: Path) -> int | None:
    """Of the process that a file names, if it runs and has this path among its arguments: pids are reused."""
    try:
        pid = int(pid_file.read_text(encoding="ascii"))
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return pid if os.fsencode(argument) in arguments else None


def write_durably(path: Path, content: object) -> None:
    """The whole file or the old one, after any crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    with open(fresh, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
