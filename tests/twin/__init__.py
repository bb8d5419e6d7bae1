"""The twin fuzzer: random SQL on QUARRY tables and, statement by statement, on InnoDB tables in the same server.

program.py     one statement of a program, and a program as a file
values.py      values, small enough to name, at every edge of the format
schema.py      random tables
dml.py ddl.py  random statements on them
joins.py       those over two and three tables, and what the optimizer is told
generator.py   a whole program: sessions, transactions, DDL, checks, restarts, all from one seed
engine_pair.py runs a program on both engines and compares
shrink.py      makes a failing program small
run.py         the command
planted.py     builds the engine with bugs planted on purpose and shows that each is caught

A program depends on its seed alone, never on what a statement gave: the same seed gives the same statements.
"""
