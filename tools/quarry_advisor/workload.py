"""
How the table is used: rows read and written since the server counts, from performance_schema, or from user statistics where that is off.

Read before the sample is taken, so that the advisor's own reads are not in it. A row read is not a value read: the counters
do not say which columns a statement wanted.
"""

from __future__ import annotations

import pymysql

from .profile import Workload
from .target import Target, error_of

_INSTRUMENT = "wait/io/table/sql/handler"


def read_workload(target: Target, schema: str, table: str) -> Workload:
    reasons = []
    for source in (_from_performance_schema, _from_user_statistics):
        try:
            found = source(target, schema, table)
        except pymysql.MySQLError as error:
            found = Workload(None, error_of(error)[1])
        if found.source:
            return found
        reasons.append(found.note)
    return Workload(None, "; ".join(reasons))


def _from_performance_schema(target: Target, schema: str, table: str) -> Workload:
    if not int(target.value("SELECT @@performance_schema")):
        return Workload(None, "performance_schema is off")
    if target.value("SELECT ENABLED FROM performance_schema.setup_instruments WHERE NAME = %s", (_INSTRUMENT,)) != "YES":
        return Workload(None, f"performance_schema does not count ({_INSTRUMENT} is off)")
    rows = target.rows("SELECT COUNT_FETCH, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE FROM performance_schema.table_io_waits_summary_by_table "
                       "WHERE OBJECT_SCHEMA = %s AND OBJECT_NAME = %s", (schema, table))
    if not rows or not any(rows[0]):
        return Workload(None, "performance_schema has seen no use of the table since the server started")
    return Workload("performance_schema", "", *(int(count) for count in rows[0]))


def _from_user_statistics(target: Target, schema: str, table: str) -> Workload:
    if not int(target.value("SELECT @@userstat")):
        return Workload(None, "userstat is off")
    rows = target.rows("SELECT ROWS_READ, ROWS_CHANGED FROM information_schema.TABLE_STATISTICS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                       (schema, table))
    if not rows:
        return Workload(None, "user statistics have seen no use of the table")
    return Workload("user statistics", "rows changed in any way count as inserted", int(rows[0][0]), int(rows[0][1]))
