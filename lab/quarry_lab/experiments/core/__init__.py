"""Rates of one server beside InnoDB."""
