"""Parts of quarry-backup without a server: disks that fill up, what an earlier run left, and what is said of it.

mariadb-backup is a program of ours that copies files.
"""

import os

from quarry_backup import files


def test_a_write_that_takes_only_a_part_is_gone_on_with(tmp_path, monkeypatch):
    """As a disk takes it that is nearly full, and on which another file goes a moment later."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(3 * files.CHUNK_SIZE_BYTES + 77))
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: whole(descriptor, data[: len(data) // 2 + 1], at))
    size_bytes, digest, _ = files.copy(source, target, clone=False)
    assert target.read_bytes() == source.read_bytes()
    assert size_bytes == source.stat().st_size and digest == files.checksum(target)
