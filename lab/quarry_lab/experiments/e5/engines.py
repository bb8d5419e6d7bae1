"""E5's engines with the published table in each, and its settings: what the data and the log lie on, and which network is between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ...design.request import DATA
from ...design.variants import TARGET_PREFIX
from ...load.ycsb import PAYLOAD_BYTES
from ...probes import device
from ...probes.timeline import NDB_PAGE_BYTES
from ...servers.drives import Drive
from ...servers.lab_server import DATABASE
from ...servers.target import SCHEMA_PREFIX

TABLE = "usertable"
_NDB_SPACE, _NDB_LOG = f"{SCHEMA_PREFIX}space", f"{SCHEMA_PREFIX}log"
# Of the undo log. An update of a column on disk writes the old value there. NDB keeps a third of it free, and refuses updates of such columns
# while the rest is full: until a checkpoint has ended. What is left holds the updates of the whole published mix at so many a second.
_NDB_UNDO_MEGABYTES_MIN, _NDB_UPDATES_PER_SECOND = 2048, 1_000
ONE_PATH = "1 path"  # the setting of every engine: the machine's own device, and the loopback interface
LIMITED_NETWORK = "limited network"  # else as ONE_PATH
LOG = "log"  # the drive of the redo log and the binary log
_PLACE = "quarry-lab"


@dataclass(frozen=True)
class Setting:
    """paths: of data; on_drives: each is a drive with a quota, and the log has a drive of its own without one."""

    text: str
    paths: int = 1
    on_drives: bool = False
    is_limited: bool = False  # its network

    @classmethod
    def of(cls, text: str) -> Setting:
        """As cells name it: '2 paths', '4 drives', 'limited network'."""
        if text == LIMITED_NETWORK:
            return cls(text, is_limited=True)
        number, what = text.split()
        return cls(text, int(number), what.startswith("drive"))

    def quotas(self, bytes_per_second: int) -> dict[str, int]:
        """Of each drive, by its name."""
        return {f"data{i}": bytes_per_second for i in range(1, self.paths + 1)} | {LOG: 0} if self.on_drives else {}


def path_setting(paths: int) -> str:
    return ONE_PATH if paths == 1 else f"{paths} paths"


def drive_setting(number: int) -> str:
    return f"{number} drive{'s' * (number != 1)}"


@dataclass(frozen=True)
class Layout:
    """Where a server keeps what: directories of ours below what the user named, on the run's drives, or below the server's own."""

    home: Path  # the server's own directory: on drives the first of them, for InnoDB's doublewrite is there
    redo: Path
    data: tuple[Path, ...]

    @classmethod
    def of(cls, options: dict, paths: int) -> Layout:
        own = DATA / "main"
        redo = Path(options["redo_path"]) / f"{_PLACE}-redo" if options["redo_path"] else own / "redo"
        named = [Path(path) / f"{_PLACE}-{i}" for i, path in enumerate(options["data_paths"])] or [own / f"path{i}" for i in range(paths)]
        return cls(own, redo, tuple(named[:paths]))

    @classmethod
    def on_drives(cls, found: dict[str, Drive]) -> Layout:
        data = [drive.path for name, drive in found.items() if name != LOG]
        return cls(data[0] / "main", found[LOG].path / "redo", tuple(path / "values" for path in data))

    def directories(self) -> tuple[Path, ...]:
        return (self.redo, *self.data)

    def describe(self) -> dict:
        return {str(path): device.device_of(_existing(path)) for path in self.directories()}


def _existing(path: Path) -> Path:
    return path if path.exists() else _existing(path.parent)


@dataclass(frozen=True)
class DiskEngine:
    """The published table: a primary key and one payload, in the column type that keeps it out of the row's page."""

    key: str
    label: str
    engine: str
    payload: str
    on_target: bool = False

    @property
    def is_private_quarry(self) -> bool:
        return self.engine == "QUARRY" and not self.on_target

    @property
    def takes_drives(self) -> bool:
        """Whether its values can be spread over directories: Quarry by its data paths, InnoDB by partitions."""
        return self.engine in ("QUARRY", "InnoDB") and not self.on_target

    @property
    def schema(self) -> str:
        return f"{SCHEMA_PREFIX}e5" if self.on_target else DATABASE

    def surroundings(self, rows: int, mix_seconds: int) -> list[tuple[str, list[str]]]:
        """
        (statement, what takes it back) for all that the table needs. NDB's tables on disk live in a tablespace, which is made in its full size, as is
        the undo log. MySQL 9 takes an ENGINE in all of these but where a tablespace is
        altered or dropped.
        """
        if self.engine != "NDBCLUSTER":
            return []
        megabytes, undo_megabytes = _ndb_megabytes(rows, mix_seconds)
        return [(f"CREATE LOGFILE GROUP {_NDB_LOG} ADD UNDOFILE '{_NDB_LOG}.dat' INITIAL_SIZE {undo_megabytes}M UNDO_BUFFER_SIZE 16M ENGINE NDB",
                 [f"DROP LOGFILE GROUP {_NDB_LOG} ENGINE NDB"]),
                (f"CREATE TABLESPACE {_NDB_SPACE} ADD DATAFILE '{_NDB_SPACE}.dat' USE LOGFILE GROUP {_NDB_LOG} INITIAL_SIZE {megabytes}M ENGINE NDB",
                 [f"ALTER TABLESPACE {_NDB_SPACE} DROP DATAFILE '{_NDB_SPACE}.dat'", f"DROP TABLESPACE {_NDB_SPACE}"])]

    def create_table(self, layout: Layout | None = None) -> str:
        """layout: on drives."""
        storage = f"TABLESPACE {_NDB_SPACE} STORAGE DISK " if self.engine == "NDBCLUSTER" else ""
        spread = self._partitions(layout) if layout and self.engine == "InnoDB" else ""
        return (f"CREATE TABLE {self.schema}.{TABLE} (id VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, payload {self.payload}) "
                f"{storage}ENGINE={self.engine}{spread}")

    def _partitions(self, layout: Layout) -> str:
        """InnoDB's way to several drives without RAID: a partition, which is a file, on each."""
        if len(layout.data) == 1:
            return f" DATA DIRECTORY='{layout.data[0]}'"
        each = ", ".join(f"PARTITION p{i} DATA DIRECTORY='{path}'" for i, path in enumerate(layout.data))
        return f" PARTITION BY KEY (id) ({each})"


def _ndb_megabytes(rows: int, mix_seconds: int) -> tuple[int, int]:
    """Of the tablespace, two in three of whose pages are for the load, one payload each, and the rest for what workloads insert; of the undo log."""
    undo_bytes = mix_seconds * _NDB_UPDATES_PER_SECOND * PAYLOAD_BYTES * 3 // 2
    return (rows * NDB_PAGE_BYTES * 3 // 2 >> 20) + 64, max(_NDB_UNDO_MEGABYTES_MIN, (undo_bytes >> 20) + 1)


def ndb_disk_bytes(rows: int, mix_seconds: int) -> int:
    """Of a data node, for the table."""
    return sum(_ndb_megabytes(rows, mix_seconds)) << 20


def _on_target(engine: DiskEngine) -> DiskEngine:
    return replace(engine, key=TARGET_PREFIX + engine.key, label=f"{engine.label}, target", on_target=True)


PRIVATE_ENGINES = {
    engine.key: engine
    for engine in (
        DiskEngine("innodb", "InnoDB VARBINARY", "InnoDB", f"VARBINARY({PAYLOAD_BYTES})"),
        DiskEngine("rocksdb", "MyRocks VARBINARY", "ROCKSDB", f"VARBINARY({PAYLOAD_BYTES})"),
        DiskEngine("quarry", "QUARRY BLOB", "QUARRY", "BLOB"),
    )
}
_NDB = DiskEngine("ndb", "NDB VARBINARY on disk", "NDBCLUSTER", f"VARBINARY({PAYLOAD_BYTES})")
ENGINES = PRIVATE_ENGINES | {engine.key: engine for engine in map(_on_target, (*PRIVATE_ENGINES.values(), _NDB))}
