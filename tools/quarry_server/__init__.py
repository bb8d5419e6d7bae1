"""Private MariaDB servers: in a directory of their own, closed to other accounts. `make server` and the clusters are some."""
