// Precedence, ranges and agreement of a column's settings.
#include "columns/column_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quarry {
namespace {

using ::testing::HasSubstr;

ColumnSettingsInput Table(OptionTexts texts) {
  ColumnSettingsInput input;
  input.table = texts;
  return input;
}

ColumnSettingsInput Column(OptionTexts texts) {
  ColumnSettingsInput input;
  input.column = texts;
  return input;
}

TEST(ColumnSettings, DefaultsWhenNothingIsGiven) {
  const ColumnSettings settings = ResolveSettings({});
  EXPECT_EQ(settings.inline_size_bytes, kInlineSizeDefaultBytes);
  EXPECT_EQ(settings.prefix_size_bytes, kPrefixSizeDefaultBytes);
  EXPECT_EQ(settings.part_size_bytes, kPartSizeDefaultBytes);
  EXPECT_EQ(settings.codec, Codec::kNone);
  EXPECT_EQ(settings.codec_source, OptionSource::kDefault);
  EXPECT_TRUE(CheckSettings({}).ok());
}

TEST(ColumnSettings, ColumnOptionBeatsCommentBeatsTableOption) {
  ColumnSettingsInput input = Table({"1000", "10", "1024", "zstd"});
  EXPECT_EQ(ResolveSettings(input).inline_size_bytes, 1000U);
  EXPECT_EQ(ResolveSettings(input).inline_size_source, OptionSource::kTableOption);
  EXPECT_EQ(ResolveSettings(input).codec, Codec::kZstd);

  input.comment = "NDB_COLUMN=BLOB_INLINE_SIZE=256,MAX_BLOB_PART_SIZE";
  ColumnSettings settings = ResolveSettings(input);
  EXPECT_EQ(settings.inline_size_bytes, 256U);
  EXPECT_EQ(settings.prefix_size_bytes, 256U);
  EXPECT_EQ(settings.part_size_bytes, kPartSizeNdbMaxBytes);
  EXPECT_EQ(settings.inline_size_source, OptionSource::kColumnComment);
  EXPECT_EQ(settings.part_size_source, OptionSource::kColumnComment);
  EXPECT_EQ(settings.codec_source, OptionSource::kTableOption);

  input.column = {"5000", nullptr, "4096", "lz4"};
  settings = ResolveSettings(input);
  EXPECT_EQ(settings.inline_size_bytes, 5000U);
  EXPECT_EQ(settings.prefix_size_bytes, 256U);
  EXPECT_EQ(settings.part_size_bytes, 4096U);
  EXPECT_EQ(settings.codec, Codec::kLz4);
  EXPECT_EQ(settings.prefix_size_source, OptionSource::kColumnComment);
  EXPECT_EQ(settings.inline_size_source, OptionSource::kColumnOption);
}

TEST(ColumnSettings, NdbDefaultLeavesTheLowerLevelsInForce) {
  ColumnSettingsInput input = Table({"1000", nullptr, nullptr, nullptr});
  input.comment = "NDB_COLUMN=BLOB_INLINE_SIZE=0";
  EXPECT_EQ(ResolveSettings(input).inline_size_bytes, 1000U);
}

TEST(ColumnSettings, DefaultsOfNdbGoByTheColumnsType) {
  struct Expected {
    BlobKind kind;
    uint32_t inline_size_bytes;
    uint32_t part_size_bytes;
  };
  for (const Expected& expected : {Expected{BlobKind::kBlob, 256, 2000}, Expected{BlobKind::kMediumBlob, 256, 4000},
                                   Expected{BlobKind::kLongBlob, 256, 13948}, Expected{BlobKind::kJson, 4000, 8100}}) {
    ColumnSettingsInput input = Table({.defaults = "NDB"});
    input.kind = expected.kind;
    ColumnSettings settings = ResolveSettings(input);
    EXPECT_EQ(settings.inline_size_bytes, expected.inline_size_bytes);
    EXPECT_EQ(settings.prefix_size_bytes, expected.inline_size_bytes);
    EXPECT_EQ(settings.part_size_bytes, expected.part_size_bytes);
    EXPECT_EQ(settings.part_size_source, OptionSource::kNdbDefault);
    EXPECT_TRUE(CheckSettings(input).ok());
    // A JSON column's parts stay as they are.
    input.comment = "NDB_COLUMN=BLOB_INLINE_SIZE=500,MAX_BLOB_PART_SIZE";
    settings = ResolveSettings(input);
    EXPECT_EQ(settings.inline_size_bytes, 500U);
    EXPECT_EQ(settings.part_size_bytes, expected.kind == BlobKind::kJson ? 8100U : kPartSizeNdbMaxBytes);
  }
}

TEST(ColumnSettings, WhatIsSaidBeatsDefaultsOfNdb) {
  ColumnSettingsInput input = Table({.inline_size = "100", .codec = "lz4", .defaults = "ndb"});
  ColumnSettings settings = ResolveSettings(input);
  EXPECT_EQ(settings.inline_size_bytes, 100U);
  EXPECT_EQ(settings.prefix_size_bytes, 100U) << "of the weaker level, and no more than the other";
  EXPECT_EQ(settings.codec, Codec::kLz4);
  input.column.part_size = "4096";
  EXPECT_EQ(ResolveSettings(input).part_size_bytes, 4096U);
  input.table = {.defaults = "quarry"};
  EXPECT_EQ(ResolveSettings(input).inline_size_bytes, kInlineSizeDefaultBytes);
  const Status status = CheckTableSettings({.defaults = "innodb"});
  EXPECT_THAT(status.message(), HasSubstr("'innodb' for option 'DEFAULTS' (allowed: quarry, ndb)"));
}

TEST(ColumnSettings, IndexPrefixRaisesPrefixAndInlineSize) {
  ColumnSettingsInput input = Column({"100", "50", nullptr, nullptr});
  input.index_prefix_bytes = 767;
  const ColumnSettings settings = ResolveSettings(input);
  EXPECT_EQ(settings.prefix_size_bytes, 767U);
  EXPECT_EQ(settings.inline_size_bytes, 767U);
  EXPECT_EQ(settings.asked_prefix_size_bytes, 50U);
  EXPECT_EQ(settings.asked_inline_size_bytes, 100U);
}

TEST(ColumnSettings, ShorterIndexPrefixChangesNothing) {
  ColumnSettingsInput input = Column({"100", "50", nullptr, nullptr});
  input.index_prefix_bytes = 20;
  EXPECT_EQ(ResolveSettings(input).prefix_size_bytes, 50U);
  EXPECT_EQ(ResolveSettings(input).inline_size_bytes, 100U);
}

TEST(ColumnSettings, StrongerLevelWinsWhenPrefixExceedsInlineSize) {
  ColumnSettingsInput input = Column({nullptr, "8000", nullptr, nullptr});
  EXPECT_EQ(ResolveSettings(input).inline_size_bytes, 8000U);
  EXPECT_TRUE(CheckSettings(input).ok());

  input = Table({nullptr, "8000", nullptr, nullptr});
  input.column.inline_size = "100";
  EXPECT_EQ(ResolveSettings(input).prefix_size_bytes, 100U);
  EXPECT_EQ(ResolveSettings(input).inline_size_bytes, 100U);
  EXPECT_TRUE(CheckSettings(input).ok());
}

TEST(ColumnSettings, PrefixAboveInlineSizeOfTheSameLevelIsRefused) {
  const ColumnSettingsInput input = Column({"100", "101", nullptr, nullptr});
  const Status status = CheckSettings(input);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("'101' for option 'PREFIX_SIZE'"));
  EXPECT_THAT(status.message(), HasSubstr("up to INLINE_SIZE, which is 100"));
  EXPECT_FALSE(CheckTableSettings({"100", "101", nullptr, nullptr}).ok());
  EXPECT_EQ(ResolveSettings(input).prefix_size_bytes, 100U);
}

struct BadSize {
  OptionTexts texts;
  const char* names;
  const char* allows;
};

class ColumnSettingsRefused : public ::testing::TestWithParam<BadSize> {};

TEST_P(ColumnSettingsRefused, NamesOptionValueAndRange) {
  for (const Status& status : {CheckSettings(Column(GetParam().texts)), CheckSettings(Table(GetParam().texts)),
                               CheckTableSettings(GetParam().texts)}) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(GetParam().names));
    EXPECT_THAT(status.message(), HasSubstr(GetParam().allows));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ColumnSettingsRefused,
    ::testing::Values(BadSize{{"65536", nullptr, nullptr, nullptr}, "'65536' for option 'INLINE_SIZE'", "0 to 65535"},
                      BadSize{{"-1", nullptr, nullptr, nullptr}, "'-1' for option 'INLINE_SIZE'", "0 to 65535"},
                      BadSize{{"", nullptr, nullptr, nullptr}, "'' for option 'INLINE_SIZE'", "0 to 65535"},
                      BadSize{{"4k", nullptr, nullptr, nullptr}, "'4k' for option 'INLINE_SIZE'", "0 to 65535"},
                      BadSize{{nullptr, "65536", nullptr, nullptr}, "'65536' for option 'PREFIX_SIZE'", "0 to 65535"},
                      BadSize{{nullptr, nullptr, "511", nullptr}, "'511' for option 'PART_SIZE'", "512 to 16777216"},
                      BadSize{{nullptr, nullptr, "16777217", nullptr}, "'16777217'", "512 to 16777216"},
                      BadSize{{nullptr, nullptr, "18446744073709551616", nullptr}, "'18446744073709551616'", "512 to"},
                      BadSize{{nullptr, nullptr, nullptr, "gzip"}, "'gzip' for option 'CODEC'", "none, lz4, zstd"},
                      BadSize{{nullptr, nullptr, nullptr, ""}, "'' for option 'CODEC'", "none, lz4, zstd"}));

TEST(ColumnSettings, EndsOfTheRangesAreAllowed) {
  EXPECT_TRUE(CheckSettings(Column({"65535", "65535", "512", "NONE"})).ok());
  EXPECT_TRUE(CheckSettings(Column({"0", "0", "16777216", "ZSTD"})).ok());
}

TEST(ColumnSettings, MalformedCommentIsRefusedAtCreateAndIgnoredAtOpen) {
  ColumnSettingsInput input;
  input.comment = "NDB_COLUMN=BLOB_INLINE_SIZE=30000";
  EXPECT_THAT(CheckSettings(input).message(), HasSubstr("BLOB_INLINE_SIZE=30000"));
  EXPECT_EQ(ResolveSettings(input).inline_size_bytes, kInlineSizeDefaultBytes);
}

TEST(ColumnSettings, OpeningTakesTheNearestAllowedValue) {
  EXPECT_EQ(ResolveSettings(Table({"70000", nullptr, nullptr, nullptr})).inline_size_bytes, kInlineSizeMaxBytes);
  EXPECT_EQ(ResolveSettings(Table({nullptr, nullptr, "1", nullptr})).part_size_bytes, kPartSizeMinBytes);
  EXPECT_EQ(ResolveSettings(Table({nullptr, nullptr, "99999999999999999999", nullptr})).part_size_bytes,
            kPartSizeMaxBytes);
  EXPECT_EQ(ResolveSettings(Table({"many", nullptr, nullptr, nullptr})).inline_size_bytes, kInlineSizeDefaultBytes);
  EXPECT_EQ(ResolveSettings(Table({nullptr, nullptr, nullptr, "gzip"})).codec, Codec::kNone);
}

TEST(ColumnSettings, SourcesHaveNames) {
  EXPECT_STREQ(OptionSourceName(OptionSource::kDefault), "default");
  EXPECT_STREQ(OptionSourceName(OptionSource::kTableOption), "table option");
  EXPECT_STREQ(OptionSourceName(OptionSource::kColumnComment), "column comment");
  EXPECT_STREQ(OptionSourceName(OptionSource::kColumnOption), "column option");
}

}  // namespace
}  // namespace quarry
