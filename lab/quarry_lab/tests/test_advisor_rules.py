"""quarry-advisor's decisions and formulas: pure functions on profiles made by hand."""

import json
import random
from dataclasses import replace

import pytest

from quarry_advisor import constants as c
from quarry_advisor import compression, places, rules, sizes
from quarry_advisor.catalog import diving_key, value_columns
from quarry_advisor.definition import Facts, column_definitions, doubt, essence
from quarry_advisor.errors import AdvisorError
from quarry_advisor.estimate import estimate
from quarry_advisor.profile import Column, Partition, Profile, Row, Sample, Server, Table, Workload
from quarry_advisor.report import bar, octaves
from quarry_advisor.statements import alter_statement, batch_statements, varbinary_statement, with_options
from quarry_server.server import REPOSITORY

KIB = 1024


def text(size: int, seed: int = 1) -> bytes:
    """Compresses by about a half with lz4, better with zstd."""
    rng = random.Random(seed)
    return " ".join(rng.choices(["alpha", "beta", "gamma", "delta", "invoice", "order", str(rng.random())], k=size // 4)).encode()[:size]


def make_profile(columns=None, definitions=None, complete=True, workload=Workload(None, "off"), other=20, engine="InnoDB", values=None, **table):
    """`columns`: {name: [sizes]}; `values`: {name: [bytes]} to try the codecs on, in place of `columns`."""
    columns = columns or {name: [len(value) for value in given] for name, given in values.items()}
    made = tuple(Column(name, "longblob", (definitions or {}).get(name, "longblob NOT NULL"), (1 << 32) - 1) for name in columns)
    rows = [Row(row, other) for row in zip(*columns.values())]
    sample = Sample(rows, complete=complete, how="all rows")
    if values:
        sample.values = list(zip(*values.values()))
        sample.value_sizes = [row.sizes for row in rows]
    shape = Table("app", "t", engine, len(rows) * (1 if complete else 1000), 1, made, **table)
    compressed, rates = compression.measure(shape, sample)
    return Profile(shape, Server("10.11.18-MariaDB", True, 1 << 30), workload, sample, compressed, rates)


def advice_for(**arguments):
    return rules.advise(make_profile(**arguments)).columns[0]


# --- INLINE_SIZE ---
def test_values_that_fit_the_page_stay_in_the_row():
    small = advice_for(columns={"v": [200, 900, 3000]})
    assert (small.inline_size, small.share_in_row, small.codec) == (4096, 1.0, "none")
    larger = advice_for(columns={"v": [200, 900, 5000]})
    assert larger.inline_size == 5056 and larger.share_in_row == 1.0


def test_long_values_leave_the_row_at_the_default_size():
    found = advice_for(columns={"v": [64 * KIB] * 50})
    assert (found.inline_size, found.share_in_row, found.bytes_out_of_row) == (c.INLINE_SIZE_DEFAULT, 0.0, 1.0)


def test_of_a_mixture_the_part_that_fits_the_page_stays():
    found = advice_for(columns={"v": [6000] * 60 + [100_000] * 40})
    assert found.inline_size == 6016 and found.share_in_row == 0.6


def test_advised_sizes_never_fill_more_than_half_a_page():
    """Also when the rest of the row and other columns take most of it: no row of the sample may get overflow pages."""
    rng = random.Random(5)
    for other in (10, 3000, 7000):
        profile = make_profile(columns={name: [rng.randrange(1, limit) for _ in range(300)] for name, limit in (("a", 900), ("b", 9000), ("c", 300_000))},
                               other=other)
        advice = {a.column: a for a in rules.advise(profile).columns}
        for row in profile.sample.rows:
            heads = [sizes.head_bytes(size, advice[column.name].inline_size) for column, size in zip(profile.table.columns, row.sizes)]
            assert c.ROW_BYTES + row.other_bytes + sum(head + c.FIELD_LENGTH_BYTES for head in heads) <= sizes.half_page(16384)


def test_small_columns_get_the_room_first():
    found = {a.column: a for a in rules.advise(make_profile(columns={"big": [5000] * 100, "small": [4000] * 100})).columns}
    assert found["small"].share_in_row == 1.0 and found["big"].share_in_row == 0.0


def test_a_column_of_nulls_gets_the_default():
    assert advice_for(columns={"v": [None] * 10}).inline_size == c.INLINE_SIZE_DEFAULT


# --- CODEC and PART_SIZE ---
def test_codec_by_what_it_saves():
    rng = random.Random(1)
    assert advice_for(values={"v": [rng.randbytes(30_000) for _ in range(5)]}).codec == "none"
    found = advice_for(values={"v": [text(30_000, seed) for seed in range(5)]})
    assert found.codec == "zstd" and found.stored_ratio < 0.5


def test_lz4_where_values_are_mostly_written_and_zstd_saves_little_more():
    values = {"v": [text(21_000, seed) + random.Random(seed).randbytes(9_000) for seed in range(5)]}
    reading, writing = Workload("test", reads=900, inserts=100), Workload("test", reads=100, inserts=900)
    figures = make_profile(values=values).compressed["v"]
    ratio = rules.stored_ratio(figures, 4096, "zstd", 65536) / rules.stored_ratio(figures, 4096, "lz4", 65536)
    assert rules.ZSTD_OVER_LZ4_WRITING < ratio < rules.ZSTD_OVER_LZ4, "the data no longer tells the two rules apart"
    assert advice_for(values=values, workload=reading).codec == "zstd"
    assert advice_for(values=values, workload=writing).codec == "lz4"


def test_a_load_without_a_read_is_no_pattern():
    assert Workload("performance_schema", reads=0, inserts=1000).write_share is None
    assert Workload("performance_schema", reads=300, inserts=50, updates=50).write_share == 0.25
    assert Workload(None, "off").write_share is None


def test_larger_parts_where_they_save():
    block = random.Random(3).randbytes(100_000)  # repeats lie farther apart than a part of 64 KB
    found = advice_for(values={"v": [block * 8]})
    assert found.part_size > c.PART_SIZE_DEFAULT
    assert advice_for(values={"v": [text(30_000)]}).part_size == c.PART_SIZE_DEFAULT
    assert advice_for(values={"v": [random.Random(4).randbytes(300_000)]}).part_size == c.PART_SIZE_DEFAULT


def test_measured_sizes_are_those_of_parts():
    value = text(200_000)
    found = make_profile(values={"v": [value, b""]}).compressed["v"]
    assert len(found) == 1  # an empty value has no bytes to try
    import lz4.block
    expected = sum(min(len(part), len(lz4.block.compress(part, store_size=False))) for part in compression.parts(value, 65536))
    assert found[0].stored_bytes["lz4", 65536] == expected
    assert compression.parts(b"abcde", 2) == [b"ab", b"cd", b"e"]


def test_the_beginning_of_a_value_stands_for_the_whole():
    half = text(100_000)
    profile = make_profile(values={"v": [half]})
    profile.sample.value_sizes[0] = (200_000,)
    found, _ = compression.measure(profile.table, profile.sample)
    assert found["v"][0].stored_bytes["zstd", 65536] == 2 * profile.compressed["v"][0].stored_bytes["zstd", 65536]


# --- batches, VARBINARY, verdict ---
def test_batches_grow_with_stored_values_and_not_beyond_their_limit():
    def found(size):
        return rules.advise(make_profile(columns={"v": [size] * 20})).batches
    assert (found(64 * KIB).read_bytes, found(64 * KIB).write_bytes) == (c.READ_BATCH_DEFAULT, c.WRITE_BATCH_DEFAULT)
    assert (found(3 << 20).read_bytes, found(3 << 20).write_bytes) == (4 << 20, 4 << 20)
    assert (found(100 << 20).read_bytes, found(100 << 20).write_bytes) == (8 << 20, 4 << 20)
    assert batch_statements(found(64 * KIB)) == []
    assert batch_statements(found(3 << 20)) == ["SET GLOBAL quarry_read_batch_bytes = 4194304", "SET GLOBAL quarry_write_batch_bytes = 4194304"]


def test_varbinary_only_where_every_value_fits_the_page():
    whole = advice_for(columns={"v": [100, 2000]}).varbinary
    assert whole.would_do and whole.definition == "VARBINARY(2000)"
    part = advice_for(columns={"v": [100, 2000]}, complete=False).varbinary
    assert part.definition == "VARBINARY(2560)" and "MAX(LENGTH(`v`))" in part.reason  # with headroom, and a query to make sure
    assert not advice_for(columns={"v": [100, 9000]}).varbinary.would_do


@pytest.mark.parametrize("values, worth_it", [([64 * KIB] * 10, True), ([2000] * 10, False), ([6000] * 90 + [9000] * 10, True)])
def test_verdict_by_the_bytes_that_leave_innodb(values, worth_it):
    assert rules.advise(make_profile(columns={"v": values})).worth_it is worth_it


# --- estimates ---
def test_formulas_of_rows_and_extents():
    assert sizes.half_page(16384) == 8126
    assert sizes.head_bytes(4096, 4096) == 4096 and sizes.head_bytes(4097, 4096) == 64 and sizes.head_bytes(9000, 4096, 256) == 320
    in_page = sizes.innodb_bytes([1000], 20, 16384)
    assert in_page == (18 + 20 + 1002) / c.PAGE_FILL
    assert sizes.innodb_bytes([64 * KIB], 20, 16384) == (18 + 20 + 20 + 2) / c.PAGE_FILL + 5 * 16384
    assert sizes.innodb_bytes([None], 20, 16384) == 38 / c.PAGE_FILL
    assert sizes.extent_bytes(448 * KIB, 448 * KIB, 65536) == 80 + 12 * 7 + 448 * KIB
    assert sizes.interpolated({4: 1.0, 64: 3.0}, 16 * KIB) == pytest.approx(2.0)
    assert sizes.interpolated({4: 1.0, 64: 3.0}, 1) == 1.0 and sizes.interpolated({4: 1.0, 64: 3.0}, 1 << 30) == 3.0
    assert [sizes.power_of_two(n) for n in (0, 1, 3, 4, 5)] == [1, 1, 4, 4, 8]


def test_estimate_of_a_measured_size_is_the_measurement():
    profile = make_profile(columns={"v": [64 * KIB] * 10}, complete=False)
    found = estimate(profile, rules.advise(profile))
    assert found.rows == 10_000
    assert (found.insert_ratio[32], found.read_ratio, found.mix_ratio) == pytest.approx((11681 / 4223, 1.02, 1.19))
    assert found.written_now[32] == pytest.approx(2.28) and found.written_then[32] == pytest.approx(1.04)
    assert found.pages_now_bytes == pytest.approx(10_000 * sizes.innodb_bytes([64 * KIB], 20, 16384))
    assert found.segments_bytes == pytest.approx(10_000 * (64 * KIB + 92))
    assert found.pages_then_bytes < found.pages_now_bytes / 100


def test_alternatives_hold_the_advice_and_trade_pages_for_segments():
    profile = make_profile(columns={"v": [3000] * 50 + [50_000] * 50})
    advice = rules.advise(profile)
    found = estimate(profile, advice).alternatives["v"]
    assert advice.columns[0].inline_size in [a.inline_size for a in found]
    assert [a.pages_bytes for a in found] == sorted(a.pages_bytes for a in found)
    assert [a.segments_bytes for a in found] == sorted((a.segments_bytes for a in found), reverse=True)


def test_measured_constants_are_those_of_the_documents():
    """docs/performance.md, 'How fast', without a binary log: when these figures are measured again, constants.py follows."""
    data = json.loads((REPOSITORY / "docs" / "results" / "performance.json").read_text(encoding="utf-8"))["bare"]
    rows = {row["work"]: [row["kib"][kb] for kb in ("24", "64", "448")] for row in data["rows"] if row["kib"].keys() >= {"24", "64", "448"}}

    def by_size(name):
        """Value KB -> (median, lowest, highest); of bytes written in earlier figures the median alone."""
        return dict(zip((24, 64, 448), rows[name], strict=True))

    for name, measured in (
        (f"read from memory, {c.READ_CLIENTS} clients", c.HOT_READ),
        (f"90 % reads and 10 % updates, {c.MIX_CLIENTS} clients", c.MIX),
    ):
        assert {kb: round(median, 2) for kb, (median, _, _) in by_size(name).items()} == {kb: ratio for kb, ratio in measured.items() if kb != 4}
    for clients in c.CLIENTS:
        for kb, (_, lowest, highest) in by_size(f"durable insert, {clients} client{'s' if clients > 1 else ''}").items():
            innodb, quarry, *_ = c.INSERT[kb, clients]
            assert lowest <= round(quarry / innodb, 2) <= highest, (kb, clients)
    for name, place in (("bytes written per byte of payload, insert, 8 clients", 3), ("bytes written by InnoDB, insert, 8 clients", 2)):
        assert {kb: round(median, 2) for kb, (median, *_) in by_size(name).items()} == {kb: c.INSERT[kb, 8][place] for kb in (24, 64, 448)}


# --- statements ---
def test_one_column_gets_table_options_and_only_those_that_differ():
    profile = make_profile(columns={"v": [64 * KIB] * 10})
    assert alter_statement(profile, rules.advise(profile)) == "ALTER TABLE `app`.`t`\n  ENGINE=QUARRY"
    profile = make_profile(columns={"v": [7000] * 10})
    assert alter_statement(profile, rules.advise(profile)) == "ALTER TABLE `app`.`t`\n  ENGINE=QUARRY INLINE_SIZE=7040"


def test_columns_that_differ_get_options_of_their_own_but_not_under_partitions():
    columns = {"a": [7000] * 10, "b": [100_000] * 10}
    profile = make_profile(columns=columns)
    found = alter_statement(profile, rules.advise(profile))
    assert "MODIFY `a` longblob NOT NULL INLINE_SIZE=7040" in found and "MODIFY `b`" not in found
    profile = make_profile(columns=columns, partitions=(Partition("p0", 10),))
    assert "MODIFY" not in alter_statement(profile, rules.advise(profile))
    assert any("partitioned" in note for note in rules.advise(profile).notes)


def test_older_options_of_a_quarry_table_do_not_stay():
    profile = make_profile(columns={"v": [64 * KIB] * 10}, definitions={"v": "longblob `INLINE_SIZE`=100 `CODEC`=zstd COMMENT 'CODEC=lz4'"}, engine="QUARRY")
    found = alter_statement(profile, rules.advise(profile))
    assert "MODIFY `v` longblob COMMENT 'CODEC=lz4' INLINE_SIZE=4096 PART_SIZE=65536 CODEC=none" in found and found.endswith("FORCE")


@pytest.mark.parametrize("definition, expected", [
    ("longblob NOT NULL", "longblob NOT NULL X=1"),
    ("longtext DEFAULT NULL CHECK (json_valid(`d`))", "longtext DEFAULT NULL X=1 CHECK (json_valid(`d`))"),
    ("text COMMENT 'a CHECK ( and '' more' CHECK (1)", "text COMMENT 'a CHECK ( and '' more' X=1 CHECK (1)"),
    ("blob `PART_SIZE`='512' NOT NULL", "blob NOT NULL X=1")])
def test_options_stand_before_a_check(definition, expected):
    assert with_options(definition, " X=1") == expected


def test_varbinary_statement_keeps_the_attributes():
    profile = make_profile(columns={"v": [10]}, definitions={"v": "longblob NOT NULL COMMENT 'x'"})
    assert varbinary_statement(profile.table, profile.table.columns[0], "VARBINARY(10)") == "ALTER TABLE `app`.`t` MODIFY `v` VARBINARY(10) NOT NULL COMMENT 'x'"


# --- the catalog ---
def test_columns_that_quarry_leaves_alone_are_known():
    columns = [("id", "int", "int(11)", None, ""), ("a", "text", "text", None, ""), ("f", "text", "text", None, ""), ("u", "blob", "blob", None, ""),
               ("b", "text", "text", None, ""), ("g", "int", "int(11)", "length(`b`)", "VIRTUAL GENERATED"), ("t", "tinyblob", "tinyblob", None, ""),
               ("p", "point", "point", None, ""), ("z", "blob", "blob /*M!100301 COMPRESSED*/", None, "")]
    keys = [("PRIMARY", "id", None, "BTREE", 0, ""), ("k", "a", 20, "BTREE", 1, "YES"), ("ft", "f", None, "FULLTEXT", 1, "YES"),
            ("uq", "u", None, "HASH", 0, "YES"), ("gk", "g", None, "BTREE", 1, "YES")]
    found = {x.name: x for x in value_columns(columns, keys, {name: "x" for name, *_ in columns}, dict.fromkeys((name for name, *_ in columns), facts("x")))}
    assert found["a"].left_alone is None and found["a"].index_prefix_bytes == 20
    for name, reason in (("f", "FULLTEXT"), ("u", "UNIQUE"), ("b", "VIRTUAL column g"), ("t", "TINY"), ("p", "spatial"), ("z", "COMPRESSED")):
        assert reason in found[name].left_alone
    assert diving_key(columns, keys)[0] == "PRIMARY"
    assert diving_key(columns, keys[1:]) == ("", ())  # neither a prefix, nor NULLs, nor a hash can be dived into


def facts(column_type="longtext", **given):
    settings = {"nullable": True, "default": "NULL", "character_set": "utf8mb4", "collation": "utf8mb4_general_ci", "extra": "", "comment": "", "generated": None,
                "check": None}
    return Facts(column_type, **(settings | given))


@pytest.mark.parametrize("definition, known", [
    ("longtext DEFAULT NULL", {}), ("longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL", {"nullable": False, "default": None}),
    ("longtext DEFAULT 'it''s' COMMENT 'a, b -- c' `CODEC`='zstd' `PREFIX_SIZE`=3", {"default": "'it\\'s'", "comment": "a, b -- c"}),
    ("longtext DEFAULT NULL CHECK (json_valid(`v`))", {}), ("longtext DEFAULT NULL CHECK (octet_length(`v`) > 3)", {"check": "octet_length(`v`) > 3"}),
    ("longtext GENERATED ALWAYS AS (concat(`a`,'x')) STORED", {"generated": "concat(`a`,'x')"}), ("longtext DEFAULT concat('a',1)", {"default": "concat('a',1)"})])
def test_a_definition_that_is_what_information_schema_says_is_relied_upon(definition, known):
    assert doubt("v", definition, facts(**known)) is None


@pytest.mark.parametrize("definition, known, reason", [
    ("longtext NOT NULL, RENAME TO b.t", {"nullable": False}, "nothing that quarry-advisor knows"), ("longtext COMMENT 'x'", {"comment": "y"}, "is not its comment"),
    ("longtext", {"comment": "y"}, "COMMENT is missing"), ("longblob", {}, "its type is not 'longtext'"), ("longtext NOT NULL", {}, "though it may be NULL"),
    ("longtext COLLATE latin1_bin", {}, "is not its collation"), ("longtext DEFAULT 'a'", {"default": "'b'"}, "is not its default"),
    ("longtext CHECK (1)", {"check": "`v` > 1"}, "is not its CHECK"), ("longtext CHECK (f(`v`))", {}, "is not its CHECK"), ("longtext `a`=b c", {}, "'c' is nothing"),
    ("longtext -- x", {}, "where no such thing is known"), ("longtext ; DROP", {}, "where no such thing is known"), ("longtext CHECK (", {}, "leaves a parenthesis open")])
def test_any_other_definition_makes_no_statement(definition, known, reason):
    assert reason in doubt("v", definition, facts(**known))
    profile = make_profile(columns={"v": [10]}, definitions={"v": definition})
    with pytest.raises(AdvisorError, match="by hand"):
        varbinary_statement(profile.table, replace(profile.table.columns[0], doubt="Write it by hand"), "VARBINARY(10)")


def test_the_essence_leaves_out_the_engine_and_quarrys_options_alone():
    table = "CREATE TABLE `{0}` (\n  `v` longtext{1} COMMENT 'ENGINE=InnoDB' CHECK (1),\n  KEY `k` (`v`(9))\n) ENGINE={2} DEFAULT CHARSET=utf8mb4{3}\n PARTITION BY HASH (1)\n(PARTITION `p` ENGINE = {2})"
    plain = table.format("a", "", "InnoDB AUTO_INCREMENT=7", "")
    assert essence(plain) == essence(table.format("b", " `CODEC`='zstd'", "QUARRY", " `INLINE_SIZE`=7"))
    for other in (plain.replace("longtext", "text"), plain.replace("'ENGINE", "'"), plain.replace("utf8mb4", "latin1"), plain.replace("`k`", "`l`"), plain.replace("(1)", "(2)"),
                  table.format("a", "", "InnoDB", " `OTHER`=7")):
        assert essence(other) != essence(plain)


def test_definitions_come_from_show_create_table():
    found = column_definitions("CREATE TABLE `t` (\n  `a``b` int(11) NOT NULL,\n  `c` text DEFAULT 'x,',\n  PRIMARY KEY (`a``b`)\n) ENGINE=InnoDB")
    assert found == {"a`b": "int(11) NOT NULL", "c": "text DEFAULT 'x,'"}


# --- places and pictures ---
@pytest.mark.parametrize("kind, least, greatest", [("number", 5, 10**18), ("number", 2.5, 9.5), ("bytes", b"\x00\x11", b"\xff\x00abc"), ("bytes", b"same", b"same"),
                                                   ("text", "alpha", "omega"), ("text", "user-000001", "user-999999"), ("text", "A1", "Z9"), ("text", "x", "x")])
def test_places_lie_between_least_and_greatest_in_order(kind, least, greatest):
    found = places.spread(kind, least, greatest, 50, random.Random(1))
    assert len(found) == 50 and found == sorted(found) and type(found[0]) is type(least)
    assert len(set(found)) == (1 if least == greatest else 50)
    assert greatest == least or least <= found[0] and found[-1][: len(greatest)] <= greatest if kind in ("bytes", "text") else least <= found[0] <= found[-1] <= greatest


def test_places_among_numbers_and_uuids_use_their_characters():
    """A letter sorts behind all digits: with letters in it, most places among numbers would lead to the same few rows."""
    assert all(place[4:].isdigit() for place in places.spread("text", "name00000", "name02996", 50, random.Random(1)))
    uuids = places.spread("text", "00a1b2c3-0000", "ff998877-ffff", 50, random.Random(1))
    assert all(set(place) <= set("0123456789abcdef") for place in uuids) and any(set(place) & set("abcdef") for place in uuids)


def test_places_in_time_and_zero_dates():
    import datetime
    least, greatest = datetime.datetime(2020, 1, 1), datetime.datetime(2024, 1, 1)
    found = places.spread("time", least, greatest, 9, random.Random(1))
    assert least <= found[0] and found[-1] <= greatest and found == sorted(found)
    assert all(isinstance(place, datetime.date) for place in places.spread("date", "0000-00-00", datetime.date(2024, 1, 1), 3, random.Random(1)))


def test_histogram_counts_every_value_once():
    found = octaves([0, 1, 2, 3, 4, 1000, 1024])
    assert sum(count for *_, count in found) == 7
    assert (0, 0, 1) in found and (2, 3, 2) in found and (512, 1023, 1) in found and (64, 127, 0) in found
    assert octaves([]) == [] and len(bar(1.0)) == 40 and bar(0.0) == ""
