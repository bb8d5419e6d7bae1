"""E3: fetching compressed values over links."""
