"""One run: what an experiment must give, the order of its points, their rounds, their tables."""
