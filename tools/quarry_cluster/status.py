"""The table of nodes, and how to connect."""

from __future__ import annotations

import os

import pymysql
from quarry_server.server import tool
from rich.console import Console
from rich.table import Table

from .cluster import SQL_USER, Cluster
from .keeper import QUICK
from .nodes import Member


def show(cluster: Cluster, console: Console) -> bool:
    """Prints both; whether every node runs."""
    table = Table(title=f"cluster in {cluster.directory}", title_justify="left", title_style="bold")
    for heading in ("node", "role", "pid", "port", "id", "state", "lag", "version"):
        table.add_column(heading, justify="right" if heading in ("pid", "port", "id") else "left", no_wrap=heading != "state")
    all_run = True
    for member in cluster.members.values():
        runs = member.alive()
        all_run &= runs
        lag, state = describe(cluster, member) if runs else ("", "[red]down[/red]")
        version = ask(member, "SELECT SUBSTRING_INDEX(VERSION(), '-', 1)") if runs else ""
        pid = str(member.server.pid) if runs else ""
        table.add_row(
            member.name, role(cluster, member), pid, str(member.node.port), str(member.node.server_id), state, lag, version
        )
    console.print(table, highlight=False)
    for text in connections(cluster):
        console.print(text, highlight=False, soft_wrap=True)
    return all_run


def role(cluster: Cluster, member: Member) -> str:
    if member.node.role != "data":
        return member.node.role
    is_primary = cluster.primary(member.node.shard) is member
    return f"{member.node.shard} {'primary' if is_primary else 'replica'}"


def describe(cluster: Cluster, member: Member) -> tuple[str, str]:
    """(lag, state)"""
    try:
        if member.node.role == "galera":
            return "", member.status("wsrep_local_state_comment")["wsrep_local_state_comment"]
        if member.node.role == "front":
            return "", "serves"
        if role(cluster, member).endswith("primary"):
            return "", "read-only" if member.value("SELECT @@read_only", **QUICK) else "writable"
        lag = member.slave_status().get("Seconds_Behind_Master")
        in_sync = cluster.fits_promotion(member.node.shard)
        return "" if lag is None else f"{lag} s", "in sync" if in_sync else "not in sync"
    except pymysql.err.Error as failure:
        return "", f"[red]{failure.args[0]}[/red]"


def ask(member: Member, sql: str) -> str:
    try:
        return str(member.value(sql, **QUICK))
    except pymysql.err.Error:
        return ""


def doors(cluster: Cluster) -> list[str]:
    """Who cannot get in, and what is left open."""
    plan = cluster.plan
    found = ["closed     to other accounts: directory of mode 0700; root of SQL is whoever runs this (unix_socket); loopback interface only"]
    if plan.kind == "galera":
        found.append("closed     group and incremental transfers: TLS, for who has the nodes' certificate")
        found.append("open       whole state transfers: rsync with a secret, not encrypted, on the loopback interface alone")
    elif plan.tls:
        found.append("closed     replication, and Spider to its shards: TLS, for who has the nodes' certificate and the password")
    if any(member.alive() and os.stat(f"/proc/{member.server.pid}").st_uid == 0 for member in cluster.members.values()):
        found.append("open       the servers run as root, for no other account can reach the tree: what root of SQL may do, root does")
    return [*found, "open       clients' ports, to who has the password; TLS if they ask for it"]


def connections(cluster: Cluster) -> list[str]:
    plan = cluster.plan
    entries = [member.node for member in cluster.role("galera" if plan.kind == "galera" else "front")]
    ports = ", ".join(str(node.port) for node in entries)
    lines = [
        f"clients    127.0.0.1, ports {ports}, user {SQL_USER}; the password stands in {cluster.directory}/client.cnf",
        f"shell      {tool('mariadb')} --defaults-file={cluster.directory}/client.cnf",
        *doors(cluster),
        "stop       make cluster-stop",
    ]
    if plan.routes:
        routes = ", ".join(f"{shard} at {route.host}:{route.port}" for shard, route in plan.routes.items())
        lines.insert(1, f"HAProxy    {routes}; decisions in {cluster.directory}/keeper.log")
        lines.insert(1, "tables     scripts/cluster create DATABASE 'CREATE TABLE ... ENGINE=QUARRY' --key COLUMN")
    return lines
