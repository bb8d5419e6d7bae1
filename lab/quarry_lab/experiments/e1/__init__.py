"""E1: inline size, parts and batches."""
