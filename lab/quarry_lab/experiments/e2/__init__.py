"""E2: ids in ranges, BLOB against VARBINARY, readers beside an updater."""
