// The model that the simulation compares the store with: values, transactions, and what stores are bound to.
// Thread-safety: values; for one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "quarry/store.h"

namespace quarry::simulation {

/// Draws from one seed. The standard distributions differ between libraries; these do not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  /// 0..below-1.
  [[nodiscard]] uint64_t Below(uint64_t below) { return random_() % below; }
  [[nodiscard]] bool Percent(unsigned percent) { return Below(100) < percent; }
  [[nodiscard]] uint64_t Word() { return random_(); }
  template <typename T>
  [[nodiscard]] T OneOf(std::initializer_list<T> choices) {
    return choices.begin()[Below(choices.size())];
  }

 private:
  std::mt19937_64 random_;
};

/// What a value holds. Zeros look like space that nobody wrote; text compresses.
enum class Content : uint8_t { kRandom, kText, kZeros, kSparse };

[[nodiscard]] std::vector<uint8_t> MakeContent(Content content, size_t size_bytes, uint64_t seed);

struct Value {
  enum class State : uint8_t {
    kOpen,     ///< its transaction has neither committed nor ended
    kLive,     ///< committed
    kDeleted,  ///< was live; a committed transaction deleted its row, and nobody can see it any more
    kLost,     ///< rolled back, or cut off by a crash or a failed commit: nothing is promised
  };
  Locator locator;
  std::vector<uint8_t> bytes;
  uint64_t appended_at = 0;  ///< operation number
  State state = State::kOpen;
  bool may_be_gone = false;    ///< GC or EmptyTrash was allowed to take it
  bool is_damaged = false;     ///< a bit of its extent was flipped
  bool loss_reported = false;  ///< a SyncAll failed after it was appended: only its own commit can vouch for it
  [[nodiscard]] Head head() const { return {locator, std::span(bytes).first(locator.prefix_size_bytes)}; }
};

struct Transaction {
  UnsyncedExtents unsynced;
  std::vector<size_t> values;  ///< appended
  uint64_t began_at = 0;       ///< operation number of the first append
};

/// A transaction that a crash may find prepared: its record is durable, and nothing behind that is.
struct PreparedTransaction {
  std::vector<size_t> values;
  bool is_acknowledged = false;  ///< it was said to be committed
  CommitRecord record;
};

/// So many of a value's first bytes stand in its head.
[[nodiscard]] inline uint32_t DrawPrefixSize(Dice* dice, size_t value_size_bytes) {
  const uint64_t size = dice->OneOf<uint64_t>({0, 0, 1, 100, 100, 1000, 20000, kPrefixMaxBytes});
  return static_cast<uint32_t>(std::min<uint64_t>(size, value_size_bytes));
}

/// What a store is bound to, as ListStores shows it (but for the LSN).
struct Shape {
  TableId table;
  bool is_rebinding = false;
  bool is_discarded = false;
  uint64_t discarded_at_lsn = 0;
  TableId rebound_to;  ///< while it is rebinding
  [[nodiscard]] bool LooksLike(const StoreStats& stats) const {
    return table == stats.table && rebound_to == stats.rebound_to && is_rebinding == stats.rebinding &&
           is_discarded == stats.discarded;
  }
};

struct StoreModel {
  StoreId id;
  Shape now;                  ///< in memory
  std::vector<Shape> others;  ///< what failed changes may have left on disk
  bool may_vanish = false;    ///< EmptyTrash was allowed to unlink it and failed, or power went meanwhile
};

/// One of the tables that appends go to.
struct Slot {
  TableId table;
  TableId rebuilt;  ///< a rebuild into this table is under way; 0: none
};

}  // namespace quarry::simulation
