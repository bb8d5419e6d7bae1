"""`python -m quarry_advisor`: what tools/quarry-advisor runs."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
