"""Rows of the targets under memory pressure."""
