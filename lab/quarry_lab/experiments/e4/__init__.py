"""E4: protocols and ways to read."""
