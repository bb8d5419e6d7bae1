"""`python -m quarry_cluster`."""

import sys

from .cli import main

sys.exit(main())
