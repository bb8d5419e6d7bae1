// Options of the core, their ranges and defaults. Names of the SQL side stand in the comments.
// Thread-safety: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "quarry/status.h"

namespace quarry {

class CipherProvider;

enum class Codec : uint8_t { kNone = 0, kLz4 = 1, kZstd = 2 };

/// "none", "lz4", "zstd".
[[nodiscard]] const char* CodecName(Codec codec);
/// Case-insensitive. Error: kInvalidArgument that names the value and the three allowed.
[[nodiscard]] Result<Codec> ParseCodec(const std::string& name);

inline constexpr uint32_t kPartSizeMinBytes = 512;
inline constexpr uint32_t kPartSizeMaxBytes = 16U << 20;
inline constexpr uint32_t kPartSizeDefaultBytes = 64U << 10;
/// MAX_BLOB_PART_SIZE of MySQL Cluster 9.4: the part size that the NDB comment asks for (docs/use/options.md).
inline constexpr uint32_t kPartSizeNdbMaxBytes = 13948;

/// Of one value. The index of an extent is in memory whole, while it is written and for each read of a range.
inline constexpr uint32_t kPartsMax = 1U << 16;
/// The part size of a value of which `size_bytes` are cut into parts: the one that is wanted, or what makes kPartsMax.
[[nodiscard]] constexpr uint32_t PartSizeFor(uint64_t size_bytes, uint32_t wanted_bytes) {
  const uint64_t least = (size_bytes + kPartsMax - 1) / kPartsMax;
  return least > wanted_bytes ? static_cast<uint32_t>(least) : wanted_bytes;
}

inline constexpr uint32_t kBatchMinBytes = 4096;
inline constexpr uint32_t kBatchMaxBytes = 1U << 30;
/// Measured, not copied from NDB (64 KB there): a value of 448 KB in one write instead of two gave 1.18 times the
/// durable inserts of 32 threads, and batches of 128 KB less (docs/results/settings.md).
inline constexpr uint32_t kWriteBatchDefaultBytes = 512U << 10;
inline constexpr uint32_t kReadBatchDefaultBytes = 1U << 20;

/// The value cache of a server that nobody tuned, which may use so much memory (0: nobody knows).
[[nodiscard]] constexpr uint64_t ValueCacheBytesFor(uint64_t usable_bytes) {
  return std::clamp<uint64_t>(usable_bytes / 10, 64ULL << 20, 4ULL << 30);
}
/// What was just written is kept for reads in so much beside it.
[[nodiscard]] constexpr uint64_t RecentCacheBytesFor(uint64_t usable_bytes) {
  return ValueCacheBytesFor(usable_bytes) / 4;
}
/// The memory that this process may use: the machine's, or the least limit of a control group. 0: it is not known.
[[nodiscard]] uint64_t UsableMemoryBytes();

inline constexpr uint64_t kValueCacheMaxBytes = 1ULL << 44;

/// The home's name in a server's data directory. The dot keeps SQL out: behind `#mysql50#` the server takes every name
/// of a folder for a database's, but for those with a dot in them (docs/operate/install.md, 'The home').
inline constexpr char kHomeName[] = "#quarry.d";

/// How one value is written.
struct AppendOptions {
  uint32_t part_size_bytes = kPartSizeDefaultBytes;  ///< PART_SIZE
  Codec codec = Codec::kNone;                        ///< CODEC
  uint32_t write_batch_bytes =
      kWriteBatchDefaultBytes;     ///< quarry_write_batch_bytes: memory and size of one write call
  uint32_t prefix_size_bytes = 0;  ///< the head in the row holds so many bytes of the value; the extent what follows
  uint32_t encryption_key_id = 0;  ///< ENCRYPTION_KEY_ID of a table that is encrypted; 0: plain
};

/// Which reads of the file go through the operating system's page cache, and stay in it.
enum class PageCacheUse : uint8_t {
  kByRule,      ///< PageCacheRule says it
  kSmallReads,  ///< those below 32 KiB: somebody else keeps what is read
  kNone,        ///< all come from the device
  kAll,
};

/// What a read tells of itself.
struct ReadReport {
  /// The file was asked for bytes that were in memory by no account: around the page cache, or of 32 KiB and more that
  /// were not read lately.
  bool waited_for_device = false;
};

/// How one value is read.
struct ReadOptions {
  uint32_t read_batch_bytes =
      kReadBatchDefaultBytes;  ///< quarry_read_batch_bytes: bytes of stored parts asked for in one submission
  bool skip_cache = false;  ///< for those who ask what the segment holds: the value cache is neither asked nor filled
  PageCacheUse page_cache = PageCacheUse::kByRule;
  ReadReport* report = nullptr;  ///< where to; null: nowhere. Only ever set to true
};

/// What threads that work for a caller of the core run first and last: a server may have to know of its threads.
struct ThreadHooks {
  std::function<void()> begin;
  std::function<void()> end;
};

/// How a StoreDirectory is opened. Constant after Open.
struct DirectoryOptions {
  std::string home_path;  ///< holds the catalogue and the trash; <datadir>/kHomeName. Created when missing
  std::vector<std::string> data_paths;  ///< quarry_data_paths; empty: segments live under home_path
  bool adopt_data_paths = false;  ///< quarry_adopt_data_paths: those of another home, too, or whose marker is damaged
  uint64_t segment_size_bytes = 256ULL << 20;  ///< a segment is sealed when it would grow beyond (one larger value may)
  uint64_t zeroed_pool_bytes = 4ULL << 20;     ///< zeroed space ahead of small flushes, where a journal is; 0: never
  uint64_t recent_cache_bytes = 16ULL << 20;   ///< just-written bytes kept for reads, over all stores
  uint64_t value_cache_bytes = 16ULL << 20;    ///< quarry_cache_size at start; 0: none
  uint32_t open_files_max = 1024;              ///< quarry_open_files: descriptors of segments, at least 16
  uint64_t catalogue_renewal_bytes = 1ULL << 20;    ///< a catalogue that is smaller is not written anew
  uint32_t file_mode = 0660;                        ///< of new files, less the process's umask
  uint32_t directory_mode = 0700;                   ///< of new directories, likewise
  ThreadHooks read_thread_hooks;                    ///< of threads that read values ahead, and decrypt them
  std::shared_ptr<CipherProvider> cipher_provider;  ///< nullptr: nothing can be encrypted or decrypted
};

}  // namespace quarry
