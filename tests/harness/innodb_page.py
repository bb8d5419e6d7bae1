"""Changes bytes inside InnoDB's pages, past every handler: what a forger would have to bring about by some trick.

For tablespaces whose pages have the checksum full_crc32, the default; the server must not run. Thread-safety:
externally synchronised.
"""

import struct

PAGE_SIZE_BYTES = 16384
CRC32C_POLYNOMIAL = 0x82F63B78  # Castagnoli, reflected


def _crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (CRC32C_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


CRC32C_TABLE = _crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC32C_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def replace_bytes(path, old, new):
    """Puts `new` in the place of the one `old`, of the same length, in the tablespace, and mends its page's checksum."""
    assert len(old) == len(new)
    data = bytearray(path.read_bytes())
    assert data.count(old) == 1, f"{path.name} holds the bytes {data.count(old)} times"
    position = data.find(old)
    start = position - position % PAGE_SIZE_BYTES
    page = data[start : start + PAGE_SIZE_BYTES]
    (stated,) = struct.unpack(">I", page[-4:])
    assert stated == crc32c(page[:-4]), "the page's checksum is not full_crc32"
    assert position + len(old) <= start + PAGE_SIZE_BYTES - 4, "the bytes are not on one page"
    page[position - start : position - start + len(new)] = new
    page[-4:] = struct.pack(">I", crc32c(page[:-4]))
    data[start : start + PAGE_SIZE_BYTES] = page
    path.write_bytes(data)
