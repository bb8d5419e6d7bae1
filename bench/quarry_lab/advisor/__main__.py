"""`python -m quarry_lab.advisor`: what tools/quarry-advisor runs."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
