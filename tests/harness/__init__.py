"""What the tests that start processes share: a private server, an InnoDB twin, values, strace."""
