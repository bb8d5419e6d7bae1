"""
E3's ways to keep a value compressed: in the application, in the server, or not at all. The tables are the published ones: `uncompressed_blobs`
(ROW_FORMAT=DYNAMIC) and `compressed_blobs` (ROW_FORMAT=COMPRESSED), `id INT NOT NULL PRIMARY KEY` and a value that is NOT NULL; each way has a schema of its own.
The author's engine was InnoDB. Of Quarry and NDB there are the same tables with what decides: uncompressed values, and lz4 17.
"""

from __future__ import annotations

from dataclasses import dataclass

UNCOMPRESSED, COMPRESSED = "uncompressed_blobs", "compressed_blobs"


@dataclass(frozen=True)
class Method:
    key: str
    label: str
    codec: str = "none"  # of the application: lab/java, Codec
    table: str = UNCOMPRESSED
    engine: str = "InnoDB"
    column: str = "MEDIUMBLOB"
    options: str = "ROW_FORMAT=DYNAMIC"
    insert: str = "?"
    select: str = "data"

    @property
    def needs_plugin(self) -> bool:
        return self.engine == "QUARRY"

    @property
    def on_ndb(self) -> bool:
        return self.engine == "NDBCLUSTER"

    def create_table(self, schema: str) -> str:
        options = f" {self.options}" if self.options else ""
        return f"CREATE TABLE `{schema}`.{self.table} (id INT NOT NULL PRIMARY KEY, data {self.column} NOT NULL) ENGINE={self.engine}{options}"


def _application(codec: str, label: str) -> Method:
    return Method(f"app-{codec}", label, codec)


METHODS = {
    method.key: method
    for method in (
        _application("none", "none"),
        _application("lz4-fast", "lz4 fast"),
        _application("lz4-9", "lz4 9"),
        _application("lz4-17", "lz4 17"),
        _application("snappy", "snappy"),
        _application("zstd", "zstd 3"),
        _application("gzip", "gzip"),
        _application("deflate", "deflate"),
        _application("mysql", "deflate with length"),  # the format of COMPRESS()
        _application("brotli-0", "brotli 0"),
        _application("brotli-6", "brotli 6"),
        _application("brotli-11", "brotli 11"),
        Method("row-compressed", "InnoDB ROW_FORMAT=COMPRESSED", table=COMPRESSED, options="ROW_FORMAT=COMPRESSED"),
        Method("uncompress", "InnoDB, UNCOMPRESS()", insert="COMPRESS(?)", select="UNCOMPRESS(data)"),
        Method("column-compressed", "InnoDB, column COMPRESSED", column="MEDIUMBLOB COMPRESSED"),
        Method("page-compressed", "InnoDB PAGE_COMPRESSED", options="ROW_FORMAT=DYNAMIC PAGE_COMPRESSED=1"),
        Method("rocksdb", "MyRocks lz4", engine="ROCKSDB", options=""),
        Method("quarry", "QUARRY", engine="QUARRY"),
        Method("quarry-app-lz4-17", "QUARRY, lz4 17", "lz4-17", engine="QUARRY"),
        Method("quarry-lz4", "QUARRY CODEC=lz4", engine="QUARRY", column="MEDIUMBLOB CODEC=lz4"),
        Method("quarry-zstd", "QUARRY CODEC=zstd", engine="QUARRY", column="MEDIUMBLOB CODEC=zstd"),
        Method("ndb-app-none", "NDB", engine="NDBCLUSTER", options=""),
        Method("ndb-app-lz4-17", "NDB, lz4 17", "lz4-17", engine="NDBCLUSTER", options=""),
    )
}
LABELS = {key: method.label for key, method in METHODS.items()}
# Compressed by MyRocks at every level, also where its own default differs.
ROCKSDB_OPTIONS = {"rocksdb_default_cf_options": "compression=kLZ4Compression;bottommost_compression=kLZ4Compression"}
