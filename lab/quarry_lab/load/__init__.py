"""Clients: payloads, sysbench, YCSB, the lab's own readers and writers."""
