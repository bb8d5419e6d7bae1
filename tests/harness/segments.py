"""Reads segment files by the letter of docs/format.md, sharing no code with the core: a second opinion."""

import collections
import struct

BLOCK_SIZE_BYTES = 4096
EXTENT_MAGIC = b"QXtent\r\n"
HEADER = struct.Struct("<8sHBBIQQQQQIIQ")
CIPHER = struct.Struct("<IIII16s")
INDEX_ENTRY = struct.Struct("<IQ")
TRAILER_MAGIC = bytes([0xFF, 0x00, ord("q"), ord("H"), ord("e"), ord("a"), ord("d"), 0xFE])
TRAILER_SIZE_BYTES = 64
CODECS = {0: "none", 1: "lz4", 2: "zstd"}

Extent = collections.namedtuple(
    "Extent",
    "path offset size value_size part_size part_count codec stored_total first_part_offset raw_parts key_id key_version",
)


def extents(path):
    """Every extent of a segment, in order of offset. Of a rewritten one, `first_part_offset` is the place in the file."""
    data = path.read_bytes()
    runs = _runs(data)
    found, position = [], data.find(EXTENT_MAGIC, BLOCK_SIZE_BYTES)
    while position != -1:
        _, version, codec, _, _, _, offset, value_size, stored_total, _, part_size, part_count, _ = HEADER.unpack_from(
            data, position
        )
        if version in (1, 2) and offset == _original_offset(runs, position):
            index, key_id, key_version = position + HEADER.size, 0, 0
            if version == 2:
                _, key_id, key_version, _, _ = CIPHER.unpack_from(data, index)
                index += CIPHER.size
            first_part = index + part_count * INDEX_ENTRY.size + 8
            raw = sum(
                INDEX_ENTRY.unpack_from(data, index + part * INDEX_ENTRY.size)[0] >> 31
                for part in range(part_count)
            )
            found.append(
                Extent(
                    path,
                    offset,
                    first_part - position + stored_total,
                    value_size,
                    part_size,
                    part_count,
                    CODECS.get(codec, codec),
                    stored_total,
                    first_part,
                    raw,
                    key_id,
                    key_version,
                )
            )
            position = data.find(EXTENT_MAGIC, first_part + stored_total)
        else:
            position = data.find(EXTENT_MAGIC, position + 8)
    return found


def _runs(data):
    """(original offset, place) of each run of a rewritten segment; of any other one run that is the whole file."""
    if len(data) < BLOCK_SIZE_BYTES or struct.unpack_from("<H", data, 8)[0] != 2:
        return [(0, 0)]
    (count,) = struct.unpack_from("<I", data, 84)
    return [struct.unpack_from("<QQ", data, BLOCK_SIZE_BYTES + 16 * run) for run in range(count)]


def _original_offset(runs, position):
    original, place = max((run for run in runs if run[1] <= position), key=lambda run: run[1], default=(0, 0))
    return original + position - place


def all_extents(paths):
    return [extent for path in paths for extent in extents(path)]


def flip_bit(path, offset, bit=0):
    with path.open("r+b") as stream:
        stream.seek(offset)
        (byte,) = stream.read(1)
        stream.seek(offset)
        stream.write(bytes([byte ^ (1 << bit)]))
        stream.flush()
