"""Reads segment files by the letter of docs/internals/format.md, sharing no code with the core: a second opinion."""

import collections
import struct

BLOCK_SIZE_BYTES = 4096
EXTENT_MAGIC = b"QXExtn\r\n"
# Magic, version, codec, flags, segment, store, offset, identity, content and prefix size, stored total, part size and
# count, index checksum, tag.
HEADER = struct.Struct("<8sHBBIQQQIIQIIQQ")
ENCRYPTED_FLAG = 1
CIPHER = struct.Struct("<IIII16s")
INDEX_ENTRY = struct.Struct("<IQ")
MAP_ENTRY = struct.Struct("<QQII")
TRAILER_MAGIC = bytes([0xFF, 0x00, ord("q"), ord("H"), ord("e"), ord("a"), ord("d"), 0xFD])
TRAILER_SIZE_BYTES = 64
CODECS = {0: "none", 1: "lz4", 2: "zstd"}

Extent = collections.namedtuple(
    "Extent",
    "path offset size value_size part_size part_count codec stored_total first_part_offset raw_parts key_id key_version"
    " prefix_size",
)


def extents(path):
    """Every extent of a segment, in order of offset. Of a rewritten one, `first_part_offset` is the place in the file."""
    data = path.read_bytes()
    runs = _runs(data)
    found, position = [], data.find(EXTENT_MAGIC, BLOCK_SIZE_BYTES)
    while position != -1:
        (_, version, codec, flags, _, _, offset, _, content_size, prefix_size, stored_total, part_size, part_count, _, _) = (
            HEADER.unpack_from(data, position)
        )
        if version == 1 and offset == _original_offset(runs, position):
            index, key_id, key_version = position + HEADER.size, 0, 0
            if flags & ENCRYPTED_FLAG:
                _, key_id, key_version, _, _ = CIPHER.unpack_from(data, index)
                index += CIPHER.size
            first_part = index + part_count * INDEX_ENTRY.size
            raw = sum(
                INDEX_ENTRY.unpack_from(data, index + part * INDEX_ENTRY.size)[0] >> 31
                for part in range(part_count)
            )
            found.append(
                Extent(
                    path,
                    offset,
                    first_part - position + stored_total,
                    content_size + prefix_size,
                    part_size,
                    part_count,
                    CODECS.get(codec, codec),
                    stored_total,
                    first_part,
                    raw,
                    key_id,
                    key_version,
                    prefix_size,
                )
            )
            position = data.find(EXTENT_MAGIC, first_part + stored_total)
        else:
            position = data.find(EXTENT_MAGIC, position + 8)
    return found


def _runs(data):
    """(original offset, place) of each run of a rewritten segment; of any other one run that is the whole file."""
    if len(data) < BLOCK_SIZE_BYTES or struct.unpack_from("<I", data, 80)[0] == 0:
        return [(0, 0)]
    (count,) = struct.unpack_from("<I", data, 84)
    return [MAP_ENTRY.unpack_from(data, BLOCK_SIZE_BYTES + MAP_ENTRY.size * run)[:2] for run in range(count)]


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
