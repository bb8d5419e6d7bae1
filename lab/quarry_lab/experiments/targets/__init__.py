"""The rates that Quarry is to reach."""
