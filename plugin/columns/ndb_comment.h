// The part of a column comment that MySQL Cluster's NDB engine reads:
//
//   COMMENT '... NDB_COLUMN=BLOB_INLINE_SIZE=4096,MAX_BLOB_PART_SIZE ...'
//
// Accepted as NDB accepts it: the prefix `NDB_COLUMN=` (this case) anywhere in the comment, only its first occurrence;
// then modifiers (any case) in any order, separated by commas without blanks, ended by a blank or the comment's end; a
// comma may end the list. Repeated, unknown and missing modifiers are errors. MAX_BLOB_PART_SIZE takes nothing, =0 or
// =1; BLOB_INLINE_SIZE under 1 means the default, over 29980 is an error.
// Where NDB warns and goes on with its default (a BLOB_INLINE_SIZE that is no number), this is an error too.
//
// Free of MariaDB's headers, so that it is tested and fuzzed with the core. Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "quarry/status.h"

namespace quarry {

/// NDB's limit of BLOB_INLINE_SIZE (MySQL Cluster 9.4, 'Setting NDB Comment Options').
inline constexpr uint32_t kNdbInlineSizeMaxBytes = 29980;

struct NdbComment {
  /// BLOB_INLINE_SIZE=n with n >= 1; not set: absent or under 1, i.e. the default.
  std::optional<uint32_t> inline_size_bytes;
  /// MAX_BLOB_PART_SIZE or MAX_BLOB_PART_SIZE=1.
  bool max_part_size = false;
};

/// Parses `comment`. A comment without the prefix is fine and gives an empty NdbComment. Error: kInvalidArgument that
/// quotes the wrong text and says what is allowed.
Result<NdbComment> ParseNdbComment(std::string_view comment);

}  // namespace quarry
