"""A backup of encrypted tables is as encrypted as they are, and is worth as much as the keys that are kept elsewhere."""

import os

import pytest
from drill import check_all, checksums
from quarry_server.server import ServerError

MARKER = b"<a payload that nobody may find in a backup>"


def test_no_plain_byte_and_nothing_without_the_keys(own_server, drill):
    keys = drill.path("keys.txt")
    keys.write_text("1;" + "a1" * 32 + "\n")
    options = ["--plugin-load-add=file_key_management", f"--file-key-management-filename={keys}"]
    options += ["--innodb-encrypt-log=ON", "--innodb-encrypt-tables=ON"]
    server = own_server("backup-encrypted", *options)
    server.query("CREATE DATABASE d")
    server.query("CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB) ENGINE=QUARRY")
    server.query("INSERT INTO d.t SELECT seq, REPEAT(%s, 200 * seq) FROM d.seq_1_to_20", (MARKER,))
    before = checksums(server)
    drill.backup(server, "full")
    server.query("UPDATE d.t SET b = CONCAT(b, b) WHERE id % 3 = 0")
    after = checksums(server)
    drill.backup(server, "one", base="full")
    found = [
        path
        for parent, _, names in os.walk(drill.root)
        for path in (os.path.join(parent, name) for name in names)
        if MARKER in open(path, "rb").read()
    ]
    assert not found
    drill.verify("one")
    drill.prepare("full")
    drill.prepare("full", increment="one")
    server.stop()
    copy = own_server("backup-encrypted-copy", *options, start=False)
    drill.restore_to(copy, "full")
    copy.start()
    assert checksums(copy) == after != before
    check_all(copy)
    with pytest.raises(ServerError, match="encryption key"):
        copy.restart([])
