"""What is to be measured, and what was: requests, variants, plans, cells, results."""
