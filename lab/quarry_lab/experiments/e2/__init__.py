"""E2: AUTO_INCREMENT over Spider fronts."""
