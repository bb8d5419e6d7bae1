"""Medians, verdicts, charts and tables: of figures, not of servers."""
