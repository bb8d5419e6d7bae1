"""Galera nodes: their options, what a killed one does before it joins again, and the rsync that state transfers call.

Group and incremental transfers are TLS, and each side shows its certificate. A whole state transfer is an rsync daemon of the
node that joins: it asks for a secret, which stands in files that only the owner reads. It is not encrypted, for the server's
script would need stunnel; it stays on the loopback interface.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

from quarry_server.private import new_secret, write_secret
from quarry_server.server import MARIADB, PrivateServer

from .plan import ClusterError, Node, Plan
from .tls import Certificates

PROVIDER = MARIADB / "usr" / "lib" / "galera" / "libgalera_smm.so"
RECOVER_TIMEOUT_S = 180
RSYNC_USER = "transfer"
# The state transfer scripts call rsync by its name and find this first. A daemon lets in who knows the secret. One that root
# starts would give up root's rights and could not write the joining node's files. {call}: what a client does.
RSYNC = """#!/bin/bash
for argument; do
  if [ "$argument" = --daemon ]; then
    [ "$(id -u)" = 0 ] && set -- --dparam=uid=0 --dparam=gid=0 "$@"
    exec {rsync} --dparam='auth users={user}' --dparam='secrets file'={users} "$@"
  fi
done
export USER={user} LOGNAME={user}
case "$*" in *rsync://*) set -- --password-file={password} "$@" ;; esac
{call}
"""


def why_no_galera() -> str | None:
    """What is missing to run a cluster here, or None."""
    if not PROVIDER.exists():
        return f"{PROVIDER.name} is not in the unpacked MariaDB (scripts/fetch-mariadb)"
    for program in ("rsync", "ps", "bash"):
        if shutil.which(program) is None:
            return f"{program} is not installed (scripts/packages.txt lists it): rsync state transfers need it"
    if shutil.which("ss") is None and shutil.which("lsof") is None:
        return "neither ss nor lsof is installed (scripts/packages.txt lists iproute2): rsync state transfers need one"
    return None


def provider_options(group: int, incremental: int, gcache: str, certificates: Certificates) -> str:
    """`group`, `incremental`: ports."""
    return (
        f"base_host=127.0.0.1;base_port={group};gmcast.listen_addr=tcp://127.0.0.1:{group};"
        f"ist.recv_addr=127.0.0.1:{incremental};gcache.size={gcache};repl.causal_read_timeout=PT60S"
        f"{certificates.provider_options()}"
    )


def wsrep_options(
    name: str, cluster: str, address: str, ports: tuple[int, ...], gcache: str, certificates: Certificates
) -> list[str]:
    """`ports`: those for SQL, for the group, for incremental and for whole state transfers."""
    sql, group, incremental, transfer = ports
    provider = provider_options(group, incremental, gcache, certificates)
    return [
        "--binlog-format=ROW",
        "--innodb-autoinc-lock-mode=2",
        "--wsrep-on=ON",
        f"--wsrep-provider={PROVIDER}",
        f"--wsrep-provider-options={provider}",
        f"--wsrep-cluster-name={cluster}",
        f"--wsrep-cluster-address={address}",
        f"--wsrep-node-name={name}",
        f"--wsrep-node-address=127.0.0.1:{group}",
        f"--wsrep-node-incoming-address=127.0.0.1:{sql}",
        "--wsrep-sst-method=rsync",
        f"--wsrep-sst-receive-address=127.0.0.1:{transfer}",
        "--wsrep-slave-threads=4",
    ]


def galera_options(plan: Plan, node: Node, directory: Path) -> list[str]:
    address = "gcomm://" + ",".join(f"127.0.0.1:{peer.extra_ports[0]}" for peer in plan.role("galera"))
    cluster = f"quarry-{plan.role('galera')[0].extra_ports[0]}"
    ports = (node.port, *node.extra_ports)
    return wsrep_options(node.name, cluster, address, ports, "256M", Certificates(directory))


def transfer_path(directory: Path, call: str = 'exec {rsync} "$@"') -> str:
    """A PATH on which state transfers find what they call; writes the rsync above, and its secret."""
    script, users, password = directory / "bin" / "rsync", directory / "bin" / "users", directory / "bin" / "password"
    script.parent.mkdir(parents=True, exist_ok=True)
    if not password.exists():
        secret = new_secret()
        write_secret(users, f"{RSYNC_USER}:{secret}\n")
        write_secret(password, f"{secret}\n")
    rsync = shlex.quote(str(shutil.which("rsync")))
    names = {"user": RSYNC_USER, "users": shlex.quote(str(users)), "password": shlex.quote(str(password))}
    script.write_text(RSYNC.format(rsync=rsync, call=call.format(rsync=rsync), **names), encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return f"{script.parent}:{MARIADB / 'usr' / 'bin'}:{os.environ['PATH']}"


def recovered_position(server: PrivateServer) -> str:
    """What mysqld_safe does after a crash: asks InnoDB how far it came; the position to join from."""
    log = server.directory / "recover.log"
    log.unlink(missing_ok=True)
    try:
        subprocess.run(
            [*server.command(), "--wsrep-recover", f"--log-error={log}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=server.directory,
            timeout=RECOVER_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{server.directory.name} did not recover within {RECOVER_TIMEOUT_S} s: see {log}") from error
    text = log.read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"WSREP: Recovered position:? ([0-9a-f-]{36}:-?\d+)", text)
    if not found:
        raise ClusterError(f"--wsrep-recover of {server.directory.name} told no position:\n{text[-3000:]}")
    return found[-1]
