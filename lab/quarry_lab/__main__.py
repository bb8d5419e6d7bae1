"""`python -m quarry_lab`."""

import sys

from .cli import main

sys.exit(main())
