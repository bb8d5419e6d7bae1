// One generation of the catalogue as a file: its records one behind the other, each flush from a new block on.
//
// Invariants of what is written: sequences rise by 1; a flush begins in a new block, so a block that was synced is
// never written again; what is left of a flush's last block is zeros; a record names the first of its own flush, so it
// vouches that everything before that was durable.
//
// Reading: a record that is damaged costs what it says. The reader goes on at the next multiple of 8 where a frame
// verifies; a gap in the sequence is a loss that is known. Of the last flush a power cut may have left any sectors: a
// sector that was never written reads as zeros. So what does not verify there and has such a sector is the torn tail,
// which nobody was told about, and it ends the log. Anything else that does not verify is damage.
// Thread-safety: pure functions and values; the encoder is externally synchronised.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/catalogue_record.h"
#include "quarry/status.h"

namespace quarry {

/// Gives records their places and lays them out in blocks.
class CatalogueEncoder {
 public:
  explicit CatalogueEncoder(uint64_t generation) : generation_(generation) {}

  void Add(const CatalogueRecord& record, bool in_snapshot);
  /// The flush ends: fills its last block. Records that follow belong to the next one.
  void EndFlush();
  /// Whole blocks, in order, that were not taken yet. What does not fill a block stays.
  [[nodiscard]] std::vector<uint8_t> TakeBlocks();
  [[nodiscard]] uint64_t buffered_bytes() const { return bytes_.size(); }

 private:
  const uint64_t generation_;
  uint64_t sequence_ = 0;
  uint64_t flush_begin_ = 1;
  std::vector<uint8_t> bytes_;
};

/// A whole generation: a snapshot of `records`, which must end with a CatalogueEnd.
[[nodiscard]] std::vector<uint8_t> EncodeCatalogue(const std::vector<CatalogueRecord>& records, uint64_t generation);

/// What was lost, and of which store; {0}: of any.
struct CatalogueLoss {
  StoreId store;
  uint64_t offset_bytes = 0;
  std::string what;
};

/// "any store", or "store 7".
[[nodiscard]] std::string WhatLossConcerns(StoreId store);

struct CatalogueLog {
  std::vector<CatalogueRecord> records;  ///< those that count, in order
  std::vector<CatalogueLoss> losses;
  bool has_snapshot = false;  ///< it is whole: its end is there, or something behind it
  bool has_torn_tail = false;
};

/// Errors: kNotSupported alone; whatever else is wrong with `file` is a loss.
[[nodiscard]] Result<CatalogueLog> ReadCatalogueLog(std::span<const uint8_t> file, uint64_t generation);

}  // namespace quarry
