"""
From a profile to advice: pure functions, each choice with its reason.

What is decided, and by what, stands in docs/use/advisor.md ('The rules'); the thresholds are below.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from . import constants as c
from .numbers import human_bytes, percentile
from .profile import Column, Compressed, Profile
from .sizes import half_page, power_of_two, round_up

INLINE_STEP = 64
SMALL_SHARE_MIN = 0.02  # fewer values that fit the page than this do not bear on INLINE_SIZE
NEARLY_ALL = 0.98
HEADROOM = 1.25  # over the longest value of a sample that is not the whole table
CODEC_SAVING_MIN = 0.10  # of the stored bytes; less is not worth the processor's time
ZSTD_OVER_LZ4 = 0.85  # zstd must come to this much of lz4's bytes
ZSTD_OVER_LZ4_WRITING = 0.65  # or to this, where values are mostly written: it compresses at less than half of lz4's rate
WRITING_SHARE = 0.5
PART_GAIN_MIN = 0.05  # of the stored bytes, to take parts four times as large
BATCH_MAX = {"read": 8 << 20, "write": 4 << 20}
WORTH_IT, NOT_WORTH_IT = 0.5, 0.1  # share of the bytes that would leave InnoDB


@dataclass(frozen=True)
class Varbinary:
    would_do: bool
    definition: str | None  # the type to declare
    reason: str


@dataclass(frozen=True)
class ColumnAdvice:
    column: str
    varbinary: Varbinary
    inline_size: int
    prefix_size: int
    part_size: int
    codec: str
    reasons: dict[str, str]
    share_in_row: float  # of the values
    bytes_out_of_row: float  # share of the bytes
    stored_ratio: float  # stored bytes per byte of the values out of the row


@dataclass(frozen=True)
class Batches:
    read_bytes: int
    write_bytes: int
    reason: str


@dataclass(frozen=True)
class Advice:
    columns: tuple[ColumnAdvice, ...]
    batches: Batches
    verdict: str
    worth_it: bool
    notes: list[str] = field(default_factory=list)


def advise(profile: Profile) -> Advice:
    inline = inline_sizes(profile)
    columns = tuple(_column_advice(profile, column, inline[column.name]) for column in profile.table.managed)
    worth_it, verdict = _verdict(profile, columns)
    return Advice(columns, batches(profile, columns), verdict, worth_it, notes(profile, columns))


# --- INLINE_SIZE ---
def page_room(profile: Profile) -> int:
    """Bytes of half a page that are left for values when every managed column has at least its trailer there."""
    other = percentile([row.other_bytes for row in profile.sample.rows], 99)
    heads = sum(c.TRAILER_BYTES + c.FIELD_LENGTH_BYTES + column.index_prefix_bytes for column in profile.table.managed)
    return max(0, half_page(profile.server.page_bytes) - c.ROW_BYTES - int(other) - heads)


def inline_sizes(profile: Profile) -> dict[str, tuple[int, str]]:
    """For each managed column its INLINE_SIZE and why. Columns with small values choose first; each leaves less room to the next."""
    room, found = page_room(profile), {}
    sizes = {column.name: profile.sizes(column.name) for column in profile.table.managed}
    for name in sorted(sizes, key=lambda name: (percentile(sizes[name], 90) if sizes[name] else 0, name)):
        chosen, reason = inline_size(sizes[name], room + c.TRAILER_BYTES)
        found[name] = chosen, reason
        taken = max((size for size in sizes[name] if size <= chosen), default=0)
        room = max(0, room - max(0, taken - c.TRAILER_BYTES))
    return found


def inline_size(sizes: list[int], room: int) -> tuple[int, str]:
    """`room`: the longest value that fits the page beside the rest of the row."""
    small = [size for size in sizes if size <= room]
    fallback = min(c.INLINE_SIZE_DEFAULT, room // INLINE_STEP * INLINE_STEP)
    if not sizes:
        return fallback, "every sampled value is NULL: the default, as far as the page has room"
    share = len(small) / len(sizes)
    if share < SMALL_SHARE_MIN:
        return fallback, f"{1 - share:.0%} of the values are too long for the page ({room:,} bytes are free for one): they leave the row at any INLINE_SIZE"
    room = min(room // INLINE_STEP * INLINE_STEP, c.INLINE_SIZE_MAX)
    needed = round_up(max(small) if share >= NEARLY_ALL else percentile(small, 99), INLINE_STEP)
    fits = f"{share:.0%} of the values fit InnoDB's page ({room:,} bytes are free for one): in the row they cost no second flush and no second read"
    if needed <= c.INLINE_SIZE_DEFAULT <= room:
        return c.INLINE_SIZE_DEFAULT, f"{fits}. The default is enough"
    return min(needed, room), fits


# --- CODEC and PART_SIZE ---
def stored_ratio(values: list[Compressed], inline_bytes: int, codec: str, part_bytes: int) -> float | None:
    """Stored bytes per byte of the values that leave the row; None when none of the sample does."""
    long = [value for value in values if value.size_bytes > inline_bytes]
    total = sum(value.size_bytes for value in long)
    if not total:
        return None
    return 1.0 if codec == "none" else sum(value.stored_bytes[codec, part_bytes] for value in long) / total


def best_part_size(values: list[Compressed], inline_bytes: int, codec: str) -> int:
    """Four times as large for as long as that spares PART_GAIN_MIN more."""
    chosen = c.PART_SIZES[0]
    for larger in c.PART_SIZES[1:]:
        now, then = (stored_ratio(values, inline_bytes, codec, part) or 1.0 for part in (chosen, larger))
        if then > now * (1 - PART_GAIN_MIN):
            break
        chosen = larger
    return chosen


def choose_codec(values: list[Compressed], inline_bytes: int, write_share: float | None) -> tuple[str, str]:
    lz4, zstd = (stored_ratio(values, inline_bytes, codec, best_part_size(values, inline_bytes, codec)) for codec in ("lz4", "zstd"))
    if lz4 is None or zstd is None:
        return "none", "no sampled value leaves the row"
    figures = f"lz4 leaves {lz4:.0%} of the bytes, zstd {zstd:.0%}"
    if min(lz4, zstd) > 1 - CODEC_SAVING_MIN:
        return "none", f"{figures}: not worth the processor's time"
    writing = write_share is not None and write_share >= WRITING_SHARE
    needed = ZSTD_OVER_LZ4_WRITING if writing else ZSTD_OVER_LZ4
    if zstd <= needed * lz4:
        return "zstd", f"{figures}: enough less for the time it takes"
    much = "values are mostly written, and lz4 compresses faster" if writing else "zstd saves too little more for its time"
    return "lz4", f"{figures}: {much}"


def choose_part_size(values: list[Compressed], inline_bytes: int, codec: str) -> tuple[int, str]:
    if not any(value.size_bytes > max(inline_bytes, c.PART_SIZE_DEFAULT) for value in values):
        return c.PART_SIZE_DEFAULT, "the default: no sampled value out of the row is longer, so each is one part"
    if codec == "none":
        return c.PART_SIZE_DEFAULT, "the default: without a codec larger parts spare 12 bytes each, and a range read touches whole parts"
    chosen = best_part_size(values, inline_bytes, codec)
    if chosen == c.PART_SIZE_DEFAULT:
        return chosen, f"the default: parts of {human_bytes(c.PART_SIZES[1])} would spare less than {PART_GAIN_MIN:.0%} more"
    return chosen, f"{codec} does better on larger parts; a range read of a value decompresses whole parts"


# --- VARBINARY ---
def varbinary(profile: Profile, column: Column) -> Varbinary:
    sizes = profile.sizes(column.name)
    longest = max(sizes, default=0)
    wanted = longest if profile.sample.complete else round_up(longest * HEADROOM, INLINE_STEP)
    room = page_room(profile) + c.TRAILER_BYTES
    type_name = "VARBINARY" if column.is_binary else "VARCHAR"
    limit = c.SERVER_ROW_BYTES_MAX if column.is_binary else c.SERVER_ROW_BYTES_MAX // 4
    seen = f"the longest of {'all' if profile.sample.complete else 'the sampled'} values has {longest:,} bytes"
    if column.is_json:
        return Varbinary(False, None, "a JSON column stays JSON: its values in the row are kept as a VARCHAR's would be")
    if wanted > room or wanted > limit:
        return Varbinary(False, None, f"{seen}: more than the page has room for ({room:,}), so InnoDB would move it out all the same")
    why = f"{seen}, and fits the page. Longer ones would be refused"
    check = "" if profile.sample.complete else f"; make sure first: SELECT MAX(LENGTH(`{column.name}`))"
    return Varbinary(True, f"{type_name}({max(wanted, 1)})", why + check)


# --- all of it ---
def _column_advice(profile: Profile, column: Column, inline: tuple[int, str]) -> ColumnAdvice:
    inline_bytes, inline_reason = max(inline[0], column.index_prefix_bytes), inline[1]
    values, sizes = profile.compressed.get(column.name, []), profile.sizes(column.name)
    codec, codec_reason = choose_codec(values, inline_bytes, profile.workload.write_share)
    part, part_reason = choose_part_size(values, inline_bytes, codec)
    long = sum(size for size in sizes if size > inline_bytes)
    reasons = {"INLINE_SIZE": inline_reason, "CODEC": codec_reason, "PART_SIZE": part_reason}
    if column.index_prefix_bytes:
        reasons["PREFIX_SIZE"] = "an index needs so many bytes of each value in the row; Quarry raises it by itself"
    return ColumnAdvice(column.name, varbinary(profile, column), inline_bytes, column.index_prefix_bytes, part, codec, reasons,
                        sum(size <= inline_bytes for size in sizes) / max(len(sizes), 1), long / max(sum(sizes), 1),
                        stored_ratio(values, inline_bytes, codec, part) or 1.0)


def batches(profile: Profile, columns: tuple[ColumnAdvice, ...]) -> Batches:
    """By what nine of ten values out of the row come to."""
    stored = [size * advice.stored_ratio for advice in columns for size in profile.sizes(advice.column) if size > advice.inline_size]
    usual = percentile(stored, 90) if stored else 0
    read = min(max(power_of_two(usual), c.READ_BATCH_DEFAULT), BATCH_MAX["read"])
    write = min(max(power_of_two(usual), c.WRITE_BATCH_DEFAULT), BATCH_MAX["write"])
    if (read, write) == (c.READ_BATCH_DEFAULT, c.WRITE_BATCH_DEFAULT):
        return Batches(read, write, f"the defaults: nine of ten values out of the row are stored in at most {human_bytes(usual)}, one batch"
                       if stored else "the defaults: no sampled value leaves the row")
    return Batches(read, write, f"nine of ten values out of the row are stored in at most {human_bytes(usual)}; a batch is memory of each connection "
                                "that is at work, so it grows no further. Nothing above 512 KiB was measured: --trial does")


def _verdict(profile: Profile, columns: tuple[ColumnAdvice, ...]) -> tuple[bool, str]:
    total = sum(sum(profile.sizes(advice.column)) for advice in columns)
    leaving = sum(sum(size for size in profile.sizes(advice.column) if size > advice.inline_size) for advice in columns)
    share = leaving / total if total else 0.0
    if share >= WORTH_IT:
        return True, f"{share:.0%} of the bytes would leave InnoDB's pages for segments: what Quarry is for"
    if share >= NOT_WORTH_IT:
        return True, f"{share:.0%} of the bytes would leave InnoDB's pages: the estimates below say whether that pays"
    return False, f"{1 - share:.0%} of the bytes would stay in InnoDB's pages, where they are as fast: Quarry would gain next to nothing here"


def notes(profile: Profile, columns: tuple[ColumnAdvice, ...]) -> list[str]:
    table, found = profile.table, []
    found += [f"{column.name} would stay whole in InnoDB: {column.left_alone}" for column in table.columns if column.left_alone]
    if table.alter_is_refused:
        found.append(table.alter_is_refused)
    if table.partitions and len({(a.inline_size, a.part_size, a.codec) for a in columns}) > 1:
        found.append("the columns of a partitioned table share the table's options: those of the column with the most bytes are used")
    if table.engine.upper() == "INNODB" and table.row_format.upper() == "COMPRESSED":
        found.append("ROW_FORMAT=COMPRESSED goes on to compress the rows; with the values gone, DYNAMIC costs less processor time")
    if not profile.server.has_quarry:
        found.append("this server has no engine QUARRY yet: load the plugin first (docs/start.md, 'Install')")
    return found
