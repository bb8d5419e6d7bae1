"""Cold reads."""
