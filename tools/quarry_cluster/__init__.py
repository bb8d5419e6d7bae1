"""Clusters of private servers on this machine: Spider fronts over replicated shards, or Galera nodes. docs/operate/scale-out.md."""
