"""The lab: private MariaDB servers, workloads, experiments and the demo. `python -m quarry_lab --help` says what it offers."""

import sys
from pathlib import Path

# What users run is a tool (quarry_advisor, quarry_backup, quarry_server): the lab uses them.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
