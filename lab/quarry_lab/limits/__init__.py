"""
Upper bounds, to stand next to what Quarry reaches: what the SQL layer, the rows in InnoDB, the device alone and values that cost nothing give.

Asked for by name (`make bench EXP=limits`, `EXP=limits-cold`), and part of no other run. Its C++ is here too.
"""
