"""
Disk that a table takes for values shorter than their column may be: NDB's columns on disk had a fixed size. One fill is one point.

NDB counts by the extents of a tablespace, of one of its two copies; the private servers by the blocks of the table's files, Quarry's segments
included.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pymysql
from quarry_server.server import HOME_NAME

from ...design.request import LabError
from ...design.variants import KIB
from ...probes import device
from ...servers.lab_server import LabServer
from ...servers.target import SCHEMA_PREFIX, TargetServer

OPERATION = "disk"
COLUMN_BYTES = 24 * KIB
SIZES = (COLUMN_BYTES // 4, COLUMN_BYTES)  # of the values
PAYLOAD_BYTES = 48 << 20
FREED_SECONDS_MAX = 60
_SPACE, _LOG = f"{SCHEMA_PREFIX}e4_space", f"{SCHEMA_PREFIX}e4_log"
_SPACE_MEGABYTES, _UNDO_MEGABYTES = 768, 256  # a page of 32 KB for each value, three times
_EXTENTS = ("SELECT MAX((TOTAL_EXTENTS - FREE_EXTENTS) * EXTENT_SIZE) FROM INFORMATION_SCHEMA.FILES "
            f"WHERE TABLESPACE_NAME = '{_SPACE}' AND FILE_TYPE = 'DATAFILE'")


@dataclass(frozen=True)
class DiskTable:
    label: str
    engine: str
    column: str
    storage: str = ""

    def create(self, table: str) -> str:
        return f"CREATE TABLE {table} (id INT PRIMARY KEY, data {self.column}) {self.storage}ENGINE={self.engine}"


TABLES = {
    "quarry-disk": DiskTable("QUARRY, a BLOB on disk", "QUARRY", "BLOB"),
    "innodb-disk": DiskTable("InnoDB, a VARBINARY on disk", "InnoDB", f"VARBINARY({COLUMN_BYTES})"),
    "target-ndb-disk": DiskTable("NDB, a VARBINARY with STORAGE DISK", "NDBCLUSTER", f"VARBINARY({COLUMN_BYTES})",
                                 f"TABLESPACE {_SPACE} STORAGE DISK "),
}
LABELS = {key: table.label for key, table in TABLES.items()}


def rows_of(size_bytes: int, payload_bytes: int) -> int:
    return max(1, payload_bytes // size_bytes)


def disk_bytes_per_byte(point: dict) -> float | None:
    disk = point.get("disk")
    return disk["disk_bytes"] / disk["payload_bytes"] if disk else None


def prepare(server: LabServer | TargetServer, table: DiskTable) -> None:
    """A tablespace, where NDB needs one; what drops it is left to the server's close(). Raises LabError."""
    if table.engine != "NDBCLUSTER" or not isinstance(server, TargetServer) or server.last_statements:
        return
    for statement, back in (
            (f"CREATE LOGFILE GROUP {_LOG} ADD UNDOFILE '{_LOG}.dat' INITIAL_SIZE {_UNDO_MEGABYTES}M UNDO_BUFFER_SIZE 16M ENGINE NDB",
             [f"DROP LOGFILE GROUP {_LOG} ENGINE NDB"]),
            (f"CREATE TABLESPACE {_SPACE} ADD DATAFILE '{_SPACE}.dat' USE LOGFILE GROUP {_LOG} INITIAL_SIZE {_SPACE_MEGABYTES}M ENGINE NDB",
             [f"ALTER TABLESPACE {_SPACE} DROP DATAFILE '{_SPACE}.dat'", f"DROP TABLESPACE {_SPACE}"])):
        try:
            server.execute(statement)
        except pymysql.Error as error:
            raise LabError(f"{server.named.text} refuses '{statement}': {error}") from error
        server.last_statements = [*back, *server.last_statements]


def used_bytes(server: LabServer | TargetServer, schema: str, table: str) -> int:
    """Of a table that nothing is written to any more. Raises LabError where the server does not tell."""
    if isinstance(server, LabServer):
        return device.allocated_bytes(_files(server, schema, table))
    ((found,),) = server.rows(_EXTENTS)
    if found is None:
        raise LabError(f"INFORMATION_SCHEMA.FILES tells nothing of the tablespace {_SPACE}")
    return int(found)


def _files(server: LabServer, schema: str, table: str) -> list[str]:
    data = server.directory / "data"
    found = [path for path in device.files_below(data / schema) if path.endswith(f"/{table}.ibd")]
    if server.plugin:
        stores = server.rows("SELECT STORE_PATH FROM information_schema.QUARRY_TABLES WHERE STATE <> 'DROPPED' "
                             f"AND TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{table}'")
        found += [path for (store,) in stores for path in device.files_below(data / HOME_NAME / store)]
    return found


def wait_until_freed(server: LabServer | TargetServer) -> None:
    """NDB gives a dropped table's extents back a little later. Raises LabError when it does not."""
    deadline = time.monotonic() + FREED_SECONDS_MAX
    while isinstance(server, TargetServer) and used_bytes(server, "", ""):
        if time.monotonic() > deadline:
            raise LabError(f"the extents of a dropped table are not free after {FREED_SECONDS_MAX} s")
        time.sleep(1)
