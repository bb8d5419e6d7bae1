"""A look at servers from outside, by an account that nobody gave anything (outsider.py, as user id 65534)."""

import ipaddress
import json
import os
import pathlib

from quarry_server.run import run_or_raise

NOBODY = 65534
OUTSIDER = pathlib.Path(__file__).resolve().parent / "outsider.py"
LISTENING = "0A"  # /proc/net/tcp
# Names that accounts of ours had, have, or that a guesser would try.
GUESSES = ("", "root", "mysql", "haproxy", "quarry", "replication", "lab", "client", "r", "spider", "mariadb.sys")


def look(directories, servers, secrets=(), line_protocol=(), sockets_min=1):
    """AssertionError unless an outsider can do nothing at all. `servers` (PrivateServer) are asked for their accounts, as root;
    `line_protocol`: ports of HandlerSocket. Returns how much the outsider tried."""
    users = set(GUESSES)
    for server in servers:
        found = server.rows("SELECT user, host, priv FROM mysql.global_priv")
        users |= {user for user, _, _ in found}
        let_in = [f"'{user}'@'{host}'" for user, host, priv in found if is_open(json.loads(priv))]
        assert not let_in, f"{server.directory}: accounts without a password or unix_socket: {let_in}"
        own = server.value("SELECT @@secure_file_priv")
        assert own and pathlib.Path(own).is_relative_to(server.directory), f"secure_file_priv is '{own}'"
    directories = [str(directory) for directory in directories]
    for directory in directories:
        mode = os.stat(directory).st_mode & 0o777
        assert mode == 0o700, f"{directory} has mode {mode:o}"
    doors = doors_of(processes_in(directories))
    public = [door for door in doors if not is_of_this_machine(door[0])]
    assert not public, f"other machines may come in at {public}"
    asked = {"directories": directories, "doors": doors, "users": sorted(users), "secrets": list(secrets)}
    said = run_or_raise(
        ["/usr/bin/python3", "-I", "-c", OUTSIDER.read_text()],
        data=json.dumps({**asked, "line_protocol": list(line_protocol)}),
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        env={},
    )
    answer = json.loads(said)
    assert answer["found"] == [], "an outsider " + "; ".join(answer["found"])
    assert answer["tried"]["sockets"] >= sockets_min, f"it knew of no socket to try: {answer['tried']}"
    return answer["tried"]


def as_nobody(function):
    """What `function` returns, a small number, in a process of that account."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = function()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def is_open(privileges):
    """Whether an account of mysql.global_priv lets anybody in who knows its name."""
    if privileges.get("is_role") or privileges.get("account_locked"):
        return False
    ways = [privileges, *(way for way in privileges.get("auth_or", []) if way)]
    return any(
        way.get("plugin", "mysql_native_password") != "unix_socket" and not way.get("authentication_string") for way in ways
    )


def user_ids(pid):
    """Real, effective, saved and of the file system: one, if it keeps none for later."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = (line for line in text.splitlines() if line.startswith("Uid:"))
    return {int(number) for number in line.split()[1:]}


def is_of_this_machine(address):
    return ipaddress.ip_address(address).is_loopback


def processes_in(directories):
    """Those that have a path below one of the directories in their command line, or work there."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes().decode(errors="replace") + "\0" + os.readlink(entry / "cwd")
        except OSError:
            continue
        if any(directory in text for directory in directories):
            found.append(int(entry.name))
    return found


def doors_of(pids):
    """[(address, port)] on which these processes listen."""
    inodes = set()
    for pid in pids:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(descriptor)
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in inodes:
                address, port = fields[1].split(":")
                words = [bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8)]
                found.add((str(ipaddress.ip_address(b"".join(words))), int(port, 16)))
    return sorted(found)
