"""Private servers and targets, the networks and limits around them, programs."""
