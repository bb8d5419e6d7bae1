// The NDB column comment: every form that NDB accepts, and an error that quotes the text for every other.
#include "columns/ndb_comment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace quarry {
namespace {

using ::testing::HasSubstr;

struct Accepted {
  const char* comment;
  uint32_t inline_size_bytes;  ///< 0: the default
  bool max_part_size;
};

class NdbCommentAccepted : public ::testing::TestWithParam<Accepted> {};

TEST_P(NdbCommentAccepted, GivesTheSettings) {
  const Result<NdbComment> parsed = ParseNdbComment(GetParam().comment);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->inline_size_bytes.value_or(0), GetParam().inline_size_bytes);
  EXPECT_EQ(parsed->max_part_size, GetParam().max_part_size);
}

INSTANTIATE_TEST_SUITE_P(
    All, NdbCommentAccepted,
    ::testing::Values(
        Accepted{"", 0, false}, Accepted{"customer's photo", 0, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=4096", 4096, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=29980", 29980, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=1", 1, false}, Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=0", 0, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=-7", 0, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=-99999999999999999999", 0, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=+12", 12, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=0000000000000000000000256", 256, false},
        Accepted{"NDB_COLUMN=MAX_BLOB_PART_SIZE", 0, true}, Accepted{"NDB_COLUMN=MAX_BLOB_PART_SIZE=1", 0, true},
        Accepted{"NDB_COLUMN=MAX_BLOB_PART_SIZE=0", 0, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=256,MAX_BLOB_PART_SIZE", 256, true},
        Accepted{"NDB_COLUMN=MAX_BLOB_PART_SIZE=1,BLOB_INLINE_SIZE=256", 256, true},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=256,", 256, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=256, the rest is prose", 256, false},
        Accepted{"NDB_COLUMN=blob_inline_size=256,Max_Blob_Part_Size", 256, true},
        Accepted{"photo, NDB_COLUMN=BLOB_INLINE_SIZE=256 of the customer", 256, false},
        Accepted{"xNDB_COLUMN=BLOB_INLINE_SIZE=256", 256, false},
        Accepted{"NDB_COLUMN=BLOB_INLINE_SIZE=1 NDB_COLUMN=BLOB_INLINE_SIZE=2", 1, false},
        Accepted{"ndb_column=BLOB_INLINE_SIZE=256", 0, false}, Accepted{"NDB_COLUMN BLOB_INLINE_SIZE=256", 0, false},
        Accepted{"NDB_TABLE=READ_BACKUP=1", 0, false}));

struct Refused {
  const char* comment;
  const char* quoted;
};

class NdbCommentRefused : public ::testing::TestWithParam<Refused> {};

TEST_P(NdbCommentRefused, QuotesTheTextAndSaysWhatIsAllowed) {
  const Result<NdbComment> parsed = ParseNdbComment(GetParam().comment);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(parsed.status().message(), HasSubstr(GetParam().quoted));
  EXPECT_THAT(parsed.status().message(), HasSubstr("allowed: NDB_COLUMN= followed by BLOB_INLINE_SIZE=n"));
}

INSTANTIATE_TEST_SUITE_P(
    All, NdbCommentRefused,
    ::testing::Values(
        Refused{"NDB_COLUMN=", "no modifier"}, Refused{"NDB_COLUMN= BLOB_INLINE_SIZE=256", "no modifier"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=29981", "BLOB_INLINE_SIZE=29981 is too large"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=99999999999999999999", "99999999999999999999 is too large"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE", "invalid value ''"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=", "invalid value ''"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=-", "invalid value '-'"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=4k", "invalid value '4k'"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=0x10", "invalid value '0x10'"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE==1", "invalid value '=1'"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZES=1", "unknown modifier 'BLOB_INLINE_SIZES=1'"},
        Refused{"NDB_COLUMN=INLINE_SIZE=1", "unknown modifier 'INLINE_SIZE=1'"},
        Refused{"NDB_COLUMN=MAX_BLOB_PART_SIZE=2", "invalid value '2'"},
        Refused{"NDB_COLUMN=MAX_BLOB_PART_SIZE=", "invalid value ''"},
        Refused{"NDB_COLUMN=MAX_BLOB_PART_SIZE=yes", "invalid value 'yes'"},
        Refused{"NDB_COLUMN=,BLOB_INLINE_SIZE=1", "unknown modifier ''"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=1,,MAX_BLOB_PART_SIZE", "unknown modifier ''"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=1;MAX_BLOB_PART_SIZE", "invalid value '1;MAX_BLOB_PART_SIZE'"},
        Refused{"NDB_COLUMN=BLOB_INLINE_SIZE=1,BLOB_INLINE_SIZE=1", "BLOB_INLINE_SIZE specified twice"},
        Refused{"NDB_COLUMN=MAX_BLOB_PART_SIZE,max_blob_part_size", "max_blob_part_size specified twice"}));

TEST(NdbComment, EndsAtNul) {
  const std::string comment("NDB_COLUMN=BLOB_INLINE_SIZE=12\0,nonsense", 40);
  const Result<NdbComment> parsed = ParseNdbComment(comment);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->inline_size_bytes, 12U);
}

}  // namespace
}  // namespace quarry
