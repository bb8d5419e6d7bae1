"""
What the servers of a run keep beside their tables, and on what file system: the configuration that people have, and the one without it.

production: a binary log of rows, flushed at each commit, and the data on a file system with a journal. bare: no binary log, and the file
system as it is. `turns` and `builds` are always bare. The servers of a target are configured by others, and those of `make ndb` by scripts/ndb,
without a binary log and on the file system of the tree.
"""

PRODUCTION, BARE = "production", "bare"
LOG_BIN = "log_bin"
# binlog_cache_size: with the default of 32 KiB a transaction of one large value goes through a temporary file on its way to the binary log.
_BINARY_LOG = {LOG_BIN: "binlog", "binlog_format": "ROW", "sync_binlog": "1", "binlog_cache_size": "4M"}
SETTINGS: dict[str, dict[str, str]] = {PRODUCTION: _BINARY_LOG, BARE: {}}
TEXTS = {PRODUCTION: "production: binary log by rows, sync_binlog=1; a file system with a journal", BARE: "bare: no binary log"}
