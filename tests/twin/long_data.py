"""A prepared statement whose parameters are sent in pieces, over a pymysql connection (which knows no such thing).

Commands as in the client/server protocol: COM_STMT_PREPARE, COM_STMT_SEND_LONG_DATA, COM_STMT_EXECUTE, COM_STMT_CLOSE.
"""

import struct

PREPARE, EXECUTE, SEND_LONG_DATA, CLOSE = 0x16, 0x17, 0x18, 0x19
TYPE_BLOB, TYPE_VAR_STRING = 0xFC, 0xFD
PIECE_BYTES = 50_000
TEXT_KINDS = ("text", "wide", "pattern")


def execute_long(connection, sql, values):
    """Runs a statement without a result set; returns (affected rows, insert id, warnings). Raises as pymysql does."""
    statement_id, parameters = _prepare(connection, sql)
    assert parameters == len(values), f"{parameters} parameters in {sql[:100]!r}, {len(values)} values"
    try:
        nulls, types = bytearray((parameters + 7) // 8), b""
        for index, value in enumerate(values):
            data = value.data()
            types += bytes([TYPE_VAR_STRING if value.kind in TEXT_KINDS else TYPE_BLOB, 0])
            if data is None:
                nulls[index // 8] |= 1 << index % 8
                continue
            for start in range(0, len(data) or 1, PIECE_BYTES):
                header = struct.pack("<IH", statement_id, index)
                connection._execute_command(SEND_LONG_DATA, header + data[start : start + PIECE_BYTES])
        body = struct.pack("<IBI", statement_id, 0, 1) + bytes(nulls) + b"\1" + types
        connection._execute_command(EXECUTE, body)
        affected = connection._read_query_result()
        result = connection._result
        return affected, result.insert_id, result.warning_count
    finally:
        if connection.open:
            connection._execute_command(CLOSE, struct.pack("<I", statement_id))


def _prepare(connection, sql):
    connection._execute_command(PREPARE, sql)
    packet = connection._read_packet()
    statement_id, columns, parameters = struct.unpack_from("<IHH", packet.get_all_data(), 1)
    for count in (parameters, columns):
        for _ in range(count + 1 if count else 0):  # the definitions and an end-of-file packet
            connection._read_packet()
    return statement_id, parameters
