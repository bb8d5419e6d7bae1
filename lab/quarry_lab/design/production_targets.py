"""
What the production profile is to reach: the median ratio of one cell to InnoDB's rate or BLACKHOLE's, by client threads.

Plain numbers without imports: `targets` judges a run by them, and scripts/performance, which has the standard library alone, makes the
table of docs/performance.md.
"""

INSERT_FLOORS = {24: {1: 1.0, 8: 1.0, 32: 1.2}, 64: {1: 1.0, 8: 1.0, 32: 1.25}, 448: {1: 1.1, 8: 1.2, 32: 1.3}}  # by size in KB
SHARE_KIB, SHARE_FLOORS = 64, {8: 0.85, 32: 0.9}  # of BLACKHOLE's inserts
MIX_KIB, MIX_FLOORS = 64, {1: 1.0, 8: 1.1, 32: 1.2}
COUNTER_KIB, COUNTER_FLOORS = 64, {1: 1.0, 8: 1.0, 32: 1.1}
