"""E5: NDB's disk data."""
