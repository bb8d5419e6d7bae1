"""The experiments that the lab can run: base.py says what one must give, catalogue.py lists them."""
