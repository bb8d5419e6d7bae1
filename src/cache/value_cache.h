// ValueCache: values that are read again and again, verified and decoded, given to readers without a copy.
//
// What it takes in: a value that is asked for a second time while values of not more than the cache's own size were
// asked for and missed in between (GhostKeys), and is no longer than an eighth of the cache. So a scan over a large
// table puts nothing out. While there is room (HasRoomFor) the first time is enough, for who reads the whole value
// anyway: what a scan leaves there was not used and goes first. And a value that was written in the place of one that
// is in it and was read since (Carry). What it lets go: the oldest first, unless it was used since (up to three
// rounds), a CLOCK. (Together the ghost and main queues of S3-FIFO; it has no small queue: in a full cache the first
// two reads ask the page cache, or the device.)
//
// Invariants:
//  - A value stands under its whole locator: a row whose locator differs in anything is not served by it. Extents never
//    change and locators are never given out twice, so no entry is ever wrong, and none needs to be invalidated. (What
//    is probably dead is forgotten all the same: nobody will ask for it, and its memory goes first.)
//  - used_bytes_ counts the memory of every entry, also of one that left the index while somebody still reads it, and
//    never exceeds the limit but for what was pinned when the limit was lowered.
//  - The bytes of an entry are written before it is in the index and never again (a QUARRY_GUARDED_CACHE build has them
//    read-only, so that a server that writes to a value it was given dies at once).
//  - New pins are made under the shard's mutex only: an entry there that only the index refers to can be freed.
// Thread-safety: internally synchronised. Pins and fillings must not outlive the cache.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <tsl/robin_set.h>

#include "base/mutex.h"
#include "cache/counter_set.h"
#include "cache/ghost_keys.h"
#include "quarry/locator.h"
#include "quarry/value_buffer.h"

namespace quarry {

class ValueCache {
  struct Entry;

 public:
  /// The bytes that one store has in the cache; outlives the store as long as there are any.
  using Tally = std::shared_ptr<std::atomic<uint64_t>>;

  /// Its limit is 0.
  explicit ValueCache(CounterSet* counters) : counters_(counters) {}
  ~ValueCache();
  ValueCache(const ValueCache&) = delete;
  ValueCache& operator=(const ValueCache&) = delete;

  /// Memory for a value that is about to be read. Dropped before Publish it leaves nothing behind.
  class Filling {
   public:
    Filling() = default;
    Filling(Filling&& other) noexcept : cache_(other.cache_), entry_(std::exchange(other.entry_, nullptr)) {}
    Filling& operator=(Filling&&) = delete;
    ~Filling();
    /// There was no room.
    [[nodiscard]] bool empty() const { return entry_ == nullptr; }
    [[nodiscard]] std::span<uint8_t> bytes();

   private:
    friend class ValueCache;
    Filling(ValueCache* cache, Entry* entry) : cache_(cache), entry_(entry) {}
    ValueCache* cache_ = nullptr;
    Entry* entry_ = nullptr;
  };

  /// The value, pinned, or an empty buffer.
  [[nodiscard]] ValueBuffer Find(const Locator& locator);
  /// Whether Find would have something now. No use of it.
  [[nodiscard]] bool Holds(const Locator& locator);
  /// Find had nothing: whether the value was asked for before, and should be taken in by Begin and Publish.
  [[nodiscard]] bool NoteMiss(const Locator& locator);
  /// Such a value could be taken in, and nothing had to go for it.
  [[nodiscard]] bool HasRoomFor(uint64_t value_size_bytes) const;
  /// Copies the bytes from `offset_bytes` on when the value is there. Never a reason to take it in.
  [[nodiscard]] bool Copy(const Locator& locator, uint64_t offset_bytes, std::span<uint8_t> out);
  /// Makes room. Empty when there is none to be made, for too much of it is pinned or in use, or there is no memory.
  [[nodiscard]] Filling Begin(const Locator& locator, const Tally& tally);
  /// The bytes of `filling` are the value's, verified.
  [[nodiscard]] ValueBuffer Publish(Filling filling);
  /// `value` was appended as `by`, in the place of `replaced`: it is taken in when that one is here and was used. It
  /// begins with one use less, so that what is written again and again, and not read, does not stay.
  void Carry(const Locator& replaced, const Locator& by, std::span<const uint8_t> value, const Tally& tally);
  /// Is not found any more. Its memory is the next to be used again.
  void Forget(const Locator& locator);

  /// At any time, 0 included. Returns when what is not pinned is within the new limit. False: there is no memory even
  /// for the keys (a 500th of the limit); the limit is 0 then.
  [[nodiscard]] bool Resize(uint64_t limit_bytes) QUARRY_EXCLUDES(resize_mutex_);
  /// The store is gone for good.
  void ForgetStore(StoreId store);

  [[nodiscard]] uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t limit_bytes() const { return limit_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 16;
  static constexpr uint64_t kShareOfLargest = 8;  ///< a value takes at most the cache's size over this
  static constexpr uint8_t kUsesMax = 3;
  static constexpr size_t kStepsMax = 128;  ///< of the hand at one visit to a shard

  class Pin;

  /// Without the bits that all entries of a shard have in common: the index looks at the last ones.
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Locator& locator) const;
    size_t operator()(const Entry* entry) const;
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const Entry* a, const Entry* b) const { return a == b; }
    bool operator()(const Locator& locator, const Entry* entry) const;
    bool operator()(const Entry* entry, const Locator& locator) const { return (*this)(locator, entry); }
  };

  /// Hashes stand beside the pointers in one array: a look-up in a large cache is two cache lines from memory, the
  /// slot's and the entry's, where a table of chained nodes took four or five.
  using Index = tsl::robin_set<Entry*, Hash, Same, std::allocator<Entry*>, /*StoreHash=*/true>;

  struct alignas(64) Shard {
    Mutex mutex;
    Index index QUARRY_GUARDED_BY(mutex);
    // A chain of all that is in the index, and of what was forgotten.
    Entry* oldest QUARRY_GUARDED_BY(mutex) = nullptr;
    Entry* newest QUARRY_GUARDED_BY(mutex) = nullptr;
    size_t entries QUARRY_GUARDED_BY(mutex) = 0;
    uint64_t bytes QUARRY_GUARDED_BY(mutex) = 0;
    std::atomic<uint32_t> forgotten{0};  ///< of the chain; changed under the mutex, read without it as a hint
  };

  [[nodiscard]] Shard& ShardOf(uint64_t hash) { return shards_[hash % kShards]; }
  /// What an entry with so much memory for its value counts for in used_bytes_.
  [[nodiscard]] static uint64_t ChargeFor(uint64_t capacity_bytes);
  /// For the cache as it is: a longer one is never taken in.
  [[nodiscard]] bool IsSmallEnough(uint64_t value_size_bytes) const;
  [[nodiscard]] Entry* FindPinned(Shard& shard, const Locator& locator) QUARRY_REQUIRES(shard.mutex);
  [[nodiscard]] bool ReserveBytes(uint64_t bytes);
  /// An entry with the memory of one that was forgotten or made room; null: there is none, or its memory has another
  /// size.
  [[nodiscard]] Entry* ReuseEntry(const Locator& locator, uint64_t charged_bytes, const Tally& tally);
  [[nodiscard]] Entry* MakeEntry(const Locator& locator, uint64_t capacity_bytes, uint64_t charged_bytes,
                                 const Tally& tally);
  /// Takes one entry out of chain and index, whose reference, the only one, is the caller's now; or null.
  [[nodiscard]] Entry* EvictOne();
  /// The same, of those that were forgotten and have just this size.
  [[nodiscard]] Entry* TakeForgotten(uint64_t charged_bytes);
  /// Moves the hand over a shard, once round at most. The first entry that neither was used nor is pinned, or null.
  [[nodiscard]] Entry* TakeVictim(Shard& shard);
  static void Append(Shard& shard, Entry* entry) QUARRY_REQUIRES(shard.mutex);
  static void Prepend(Shard& shard, Entry* entry) QUARRY_REQUIRES(shard.mutex);
  static void Count(Shard& shard, const Entry& entry) QUARRY_REQUIRES(shard.mutex);
  static void Unchain(Shard& shard, Entry* entry) QUARRY_REQUIRES(shard.mutex);
  /// Out of chain and index, whose reference is the caller's now.
  static void Remove(Shard& shard, Entry* entry) QUARRY_REQUIRES(shard.mutex);
  void ShrinkShard(Shard& shard, uint64_t target_bytes);
  void Unreference(Entry* entry);
  void SetLimit(uint64_t limit_bytes, uint64_t ghost_window_bytes) QUARRY_REQUIRES(resize_mutex_);

  CounterSet* const counters_;
  std::atomic<uint64_t> limit_bytes_{0};  ///< of entries; what is remembered of absent keys is taken off
  std::atomic<uint64_t> used_bytes_{0};
  std::atomic<uint32_t> hand_{0};  ///< the shard to look for a victim in next
  std::array<Shard, kShards> shards_;
  Mutex ghosts_mutex_;  ///< a leaf; taken by misses only
  GhostKeys ghosts_ QUARRY_GUARDED_BY(ghosts_mutex_);
  Mutex resize_mutex_;
};

}  // namespace quarry
