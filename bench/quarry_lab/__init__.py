"""The lab: private MariaDB servers, workloads, experiments and the demo. `python -m quarry_lab --help` says what it offers."""
