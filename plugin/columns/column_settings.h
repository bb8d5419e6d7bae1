// From option texts to the settings of one column: precedence, ranges, the NDB comment. The pure half of
// column_options.h, free of MariaDB's headers, so that it is tested with the core.
//
//   column option > NDB column comment > table option > default
//
// Which defaults, says the table option DEFAULTS: Quarry's own, or those of MySQL Cluster's NDB for the column's type.
//
// Invariants of what Resolve returns:
//  - index_prefix_bytes <= prefix_size_bytes <= inline_size_bytes; every value inside its range of options.h.
//  - The defaults are compile-time constants. The system variables never count here: CREATE writes them into the table
//    as table options. Else a variable set later would change what existing heads are taken to hold.
// Thread-safety: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "quarry/options.h"
#include "quarry/status.h"
#include "quarry/store.h"

namespace quarry {

inline constexpr uint32_t kInlineSizeDefaultBytes = 4096;
inline constexpr uint32_t kInlineSizeMaxBytes = 65535;
/// Must never grow: tables without a PREFIX_SIZE of their own hold heads of so many raw bytes.
inline constexpr uint32_t kPrefixSizeDefaultBytes = 0;
inline constexpr uint32_t kPrefixSizeMaxBytes = 65535;
static_assert(kPrefixSizeMaxBytes == kPrefixLimitMaxBytes, "a limit must be able to stand for every PREFIX_SIZE");

enum class OptionSource : uint8_t { kDefault = 0, kNdbDefault, kTableOption, kColumnComment, kColumnOption };
/// "default", "DEFAULTS=NDB", "table option", "column comment", "column option".
const char* OptionSourceName(OptionSource source);

/// Option values as the user wrote them; nullptr: not given.
struct OptionTexts {
  const char* inline_size = nullptr;
  const char* prefix_size = nullptr;
  const char* part_size = nullptr;
  const char* codec = nullptr;
  const char* defaults = nullptr;  ///< of a table
};

/// By the type of a column, as NDB tells them apart.
enum class BlobKind : uint8_t { kBlob = 0, kMediumBlob, kLongBlob, kJson };
/// What NDB does with a plain column of that kind (ha_ndbcluster.cc of MySQL Cluster 9, create_ndb_column).
struct NdbDefaults {
  uint32_t inline_size_bytes = 0;
  uint32_t part_size_bytes = 0;
};
NdbDefaults NdbDefaultsOf(BlobKind kind);
/// Bytes of the batches of NDB's sessions (ndb_blob_read_batch_bytes, ndb_blob_write_batch_bytes).
inline constexpr uint32_t kNdbBatchBytes = 65536;
/// The option DEFAULTS of a table, `text`, says NDB. Anything but 'ndb' and 'quarry' counts as not given.
bool HasNdbDefaults(const char* text);

struct ColumnSettingsInput {
  OptionTexts column;
  std::string_view comment;
  OptionTexts table;
  uint32_t index_prefix_bytes = 0;  ///< longest index prefix on the column
  BlobKind kind = BlobKind::kLongBlob;
};

struct ColumnSettings {
  uint32_t asked_inline_size_bytes = kInlineSizeDefaultBytes;  ///< before an index prefix raised it
  uint32_t asked_prefix_size_bytes = kPrefixSizeDefaultBytes;
  uint32_t inline_size_bytes = kInlineSizeDefaultBytes;
  uint32_t prefix_size_bytes = kPrefixSizeDefaultBytes;
  uint32_t part_size_bytes = kPartSizeDefaultBytes;
  Codec codec = Codec::kNone;
  OptionSource inline_size_source = OptionSource::kDefault;
  OptionSource prefix_size_source = OptionSource::kDefault;
  OptionSource part_size_source = OptionSource::kDefault;
  OptionSource codec_source = OptionSource::kDefault;
};

/// The settings. Never fails: what CheckSettings would refuse counts as the nearest allowed value or, when it is no
/// number, codec or NDB list at all, as not given.
ColumnSettings ResolveSettings(const ColumnSettingsInput& input);

/// kInvalidArgument that names option, value and what is allowed, when something in `input` is not.
Status CheckSettings(const ColumnSettingsInput& input);
/// The same for the table's own options alone.
Status CheckTableSettings(const OptionTexts& table);

/// What one definition says of the prefix of one managed column. index_prefix <= prefix_size.
struct PrefixSizes {
  uint32_t index_prefix_bytes = 0;
  uint32_t asked_prefix_size_bytes = 0;  ///< before an index prefix raised it
  uint32_t prefix_size_bytes = 0;
};

/// How many raw bytes every head holds at least, under a definition and the prefix limit of the table
/// (StoreDirectory::PrefixLimitBytes). The proof stands in docs/internals/handler.md, 'What every head holds'.
uint32_t GuaranteedPrefixBytes(const PrefixSizes& sizes, uint32_t limit_bytes);

/// Whether heads that hold `guaranteed_bytes` may stay as they are when a column's definition becomes another: the
/// prefix limit to be stated for it first (kNoPrefixLimit: none), or nothing when the table must be written anew.
std::optional<uint32_t> PrefixLimitForChange(const PrefixSizes& before, uint32_t guaranteed_bytes,
                                             const PrefixSizes& after);

}  // namespace quarry
