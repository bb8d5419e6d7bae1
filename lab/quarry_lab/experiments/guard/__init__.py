"""A guard against builds that are slower than the one before."""
