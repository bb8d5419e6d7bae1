"""A shard's replica made anew from its primary: for one that cannot follow any more, or has lost its disk.

quarry-backup copies the running primary, values included; the copy starts from the GTID that the backup names, which is
set before the server lets anybody in.
Thread-safety: externally synchronised (cluster.locked).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from quarry_server.run import run_or_raise
from quarry_server.server import REPOSITORY, tool

from .cluster import Cluster, wait_for
from .nodes import Member
from .plan import ClusterError

QUARRY_BACKUP = REPOSITORY / "tools" / "quarry-backup"
KEEPER_TIMEOUT_S = 60  # the keeper's patience and its looks at servers that hang
BACKUP_TIMEOUT_S = 24 * 3600  # a shard may be large
# By the age of mariadb-backup: file name, binlog position, GTID in each.
POSITION_FILES = ("mariadb_backup_binlog_info", "xtrabackup_binlog_info")


def rebuild(cluster: Cluster, name: str) -> None:
    member = cluster.members[cluster.plan.node(name).name]
    if member.node.role != "data":
        raise ClusterError(f"{name} is no data node: only a shard's replica is made anew")
    primary = cluster.primary(member.node.shard)
    if primary is member:
        raise ClusterError(f"{name} is the primary of {member.node.shard}: there is nothing to make it from")
    if not primary.alive():
        raise ClusterError(f"{primary.name}, the primary of {member.node.shard}, is down")
    target = cluster.directory / f"rebuild-{name}"
    shutil.rmtree(target, ignore_errors=True)
    connection = [f"--socket={primary.server.socket}", f"--user={primary.server.account}", "--no-defaults", f"--mariadb={tool('mariadb')}"]
    quarry_backup("backup", target, *connection)
    quarry_backup("prepare", target)
    take_out(cluster, member)
    shutil.rmtree(member.server.datadir, ignore_errors=True)
    quarry_backup("restore", target, f"--datadir={member.server.datadir}", "--no-defaults")
    first = target / "first.sql"
    first.write_text(f"SET GLOBAL gtid_slave_pos = '{position(target)}';\n", encoding="ascii")
    member.start(*cluster.start_options(member), f"--init-file={first}")
    cluster.wait_in_sync()
    shutil.rmtree(target)


def take_out(cluster: Cluster, member: Member) -> None:
    """Stops a replica, once its shard does without it. In the hours of a backup the keeper may have promoted it, and while it
    stands for in sync the keeper may: then what was acknowledged since the backup is in its data alone."""
    shard = member.node.shard
    refuse_primary(cluster, member)
    if member.alive():
        member.server.stop()
    try:
        why = f"the keeper still takes {member.name} for in sync with its primary: does the keeper run, and the primary?"
        wait_for(lambda: not cluster.states()[shard].in_sync, KEEPER_TIMEOUT_S, lambda: why)
        refuse_primary(cluster, member)
    except ClusterError:
        cluster.start_node(member.name)
        raise


def refuse_primary(cluster: Cluster, member: Member) -> None:
    if cluster.primary(member.node.shard) is member:
        raise ClusterError(f"{member.name} is the primary of {member.node.shard} by now, and stays as it is: look at 'scripts/cluster status'")


def quarry_backup(command: str, target: Path, *options: str) -> None:
    program = [QUARRY_BACKUP, command, f"--target-dir={target}", f"--mariadb-backup={tool('mariadb-backup')}", *options]
    run_or_raise(program, ClusterError, timeout_s=BACKUP_TIMEOUT_S)


def position(target: Path) -> str:
    """The GTID up to which a backup has everything: 'file position GTID', as mariadb-backup notes it."""
    for name in POSITION_FILES:
        if (target / "server" / name).exists():
            fields = (target / "server" / name).read_text(encoding="ascii").split()
            return fields[2] if len(fields) > 2 else ""
    raise ClusterError(f"the backup in {target} names no binlog position ({' or '.join(POSITION_FILES)})")
