#include "cache/value_cache.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

#include "cache/locator_hash.h"

namespace quarry {
namespace {

/// One byte behind the value belongs to it and is 0: the server may look there for the end of a string.
constexpr uint64_t kBehindBytes = 1;
/// An allocation's own header, twice, and the slots of the index: of 16 bytes, two to four for each entry.
constexpr uint64_t kBookkeepingBytes = 96;

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

constexpr uint64_t kPageBytes = 4096;
/// Shorter values come from malloc.
constexpr uint64_t kMappedMinBytes = 32ULL << 10;
/// The kernel allows a process some 65,000 mappings: a large cache maps only what is large.
constexpr uint64_t kMappingsMax = 16384;

// Eight sizes for each power of two: at most an eighth is lost, and what one value leaves suits the next.
uint64_t CapacityFor(uint64_t value_size_bytes) {
  const uint64_t wanted = value_size_bytes + kBehindBytes;
  uint64_t step = 64;
  while (step * 16 < wanted) step *= 2;
  return RoundUp(wanted, step);
}

#ifdef QUARRY_GUARDED_CACHE
// All of it in pages of its own, so that they can be made read-only; and so they cannot be written to again.
constexpr bool kReusable = false;
bool ShouldMap(uint64_t, uint64_t) { return true; }
void Guard(uint8_t* memory, uint64_t capacity_bytes) {
  (void)::mprotect(memory, RoundUp(capacity_bytes, kPageBytes), PROT_READ);
}
#else
constexpr bool kReusable = true;
bool ShouldMap(uint64_t capacity_bytes, uint64_t limit_bytes) {
  return capacity_bytes >= std::max(kMappedMinBytes, limit_bytes / kMappingsMax);
}
void Guard(uint8_t*, uint64_t) {}
#endif

}  // namespace

/// What a look-up touches comes first. An entry stands before its value, so that both are found in the same page of
/// memory; but large values are mapped: among the short-lived buffers of many threads they would keep malloc from ever
/// giving back, or using again, what lies between them (measured: 0.6 bytes more for each byte cached).
struct ValueCache::Entry {
  struct Memory {
    uint8_t* bytes = nullptr;
    uint64_t capacity_bytes = 0;
    bool mapped = false;
  };

  /// Null: there is no memory.
  static Entry* Make(const Locator& locator, uint64_t charged_bytes, uint64_t capacity_bytes, bool map,
                     const Tally& tally) {
    void* const block = ::operator new(sizeof(Entry) + (map ? 0 : capacity_bytes), std::nothrow);
    if (block == nullptr) return nullptr;
    if (!map) {
      const Memory behind{static_cast<uint8_t*>(block) + sizeof(Entry), capacity_bytes, false};
      return new (block) Entry(locator, behind, charged_bytes, tally);
    }
    void* const bytes = ::mmap(nullptr, RoundUp(capacity_bytes, kPageBytes), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED) {
      // Other people's data, and much of it: not for core files, as InnoDB's pool.
      (void)::madvise(bytes, RoundUp(capacity_bytes, kPageBytes), MADV_DONTDUMP);
      return new (block) Entry(locator, {static_cast<uint8_t*>(bytes), capacity_bytes, true}, charged_bytes, tally);
    }
    ::operator delete(block);
    return nullptr;
  }
  /// Another value's entry in the memory of this one, which nobody else refers to.
  static Entry* Remake(Entry* entry, const Locator& locator, const Tally& tally) {
    const Memory memory = entry->memory;
    const uint64_t charged_bytes = entry->charged_bytes;
    entry->~Entry();
    return new (entry) Entry(locator, memory, charged_bytes, tally);
  }
  static void Free(Entry* entry) {
    const Memory memory = entry->memory;
    entry->~Entry();
    if (memory.mapped) (void)::munmap(memory.bytes, RoundUp(memory.capacity_bytes, kPageBytes));
    ::operator delete(entry);
  }

  [[nodiscard]] std::span<const uint8_t> value() const {
    return {memory.bytes, static_cast<size_t>(locator.value_size_bytes)};
  }

  const Locator locator;
  std::atomic<uint32_t> references{1};  ///< pins, and the index
  // Guarded by the shard's mutex.
  uint8_t uses = 0;
  bool forgotten = false;

  const Memory memory;
  const uint64_t charged_bytes;
  const Tally tally;
  // Guarded by the shard's mutex.
  Entry* older = nullptr;
  Entry* newer = nullptr;

 private:
  Entry(const Locator& locator_in, const Memory& memory_in, uint64_t charged, Tally tally_in)
      : locator(locator_in), memory(memory_in), charged_bytes(charged), tally(std::move(tally_in)) {
    tally->fetch_add(charged_bytes, std::memory_order_relaxed);
  }
  ~Entry() { tally->fetch_sub(charged_bytes, std::memory_order_relaxed); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
};

class ValueCache::Pin final : public ValueBuffer::Owner {
 public:
  Pin(ValueCache* cache, Entry* entry) : cache_(cache), entry_(entry) {}
  ~Pin() override { cache_->Unreference(entry_); }

 private:
  ValueCache* const cache_;
  Entry* const entry_;
};

size_t ValueCache::Hash::operator()(const Locator& locator) const { return HashOf(locator) / kShards; }
size_t ValueCache::Hash::operator()(const Entry* entry) const { return HashOf(entry->locator) / kShards; }
bool ValueCache::Same::operator()(const Locator& locator, const Entry* entry) const {
  return locator == entry->locator;
}

ValueCache::Filling::~Filling() {
  if (entry_ != nullptr) cache_->Unreference(entry_);
}

std::span<uint8_t> ValueCache::Filling::bytes() {
  return {entry_->memory.bytes, static_cast<size_t>(entry_->locator.value_size_bytes)};
}

ValueCache::~ValueCache() {
  (void)Resize(0);
  assert(used_bytes() == 0);
}

// ---- look-ups ----

ValueCache::Entry* ValueCache::FindPinned(Shard& shard, const Locator& locator) {
  const auto found = shard.index.find(locator);
  if (found == shard.index.end()) return nullptr;
  Entry* const entry = *found;
  if (entry->uses < kUsesMax) ++entry->uses;
  entry->references.fetch_add(1, std::memory_order_relaxed);
  return entry;
}

ValueBuffer ValueCache::Find(const Locator& locator) {
  if (limit_bytes() == 0) return {};
  Shard& shard = ShardOf(HashOf(locator));
  Entry* entry = nullptr;
  {
    MutexLock lock(shard.mutex);
    entry = FindPinned(shard, locator);
  }
  if (entry == nullptr) return {};
  counters_->Add(Counter::kCacheHits);
  Filling held(this, entry);  // until the pin holds it
  auto pin = std::make_unique<Pin>(this, entry);
  held.entry_ = nullptr;
  return {std::move(pin), entry->value()};
}

bool ValueCache::Holds(const Locator& locator) {
  if (limit_bytes() == 0) return false;
  Shard& shard = ShardOf(HashOf(locator));
  const MutexLock lock(shard.mutex);
  return shard.index.contains(locator);
}

bool ValueCache::NoteMiss(const Locator& locator) {
  if (limit_bytes() == 0) return false;
  counters_->Add(Counter::kCacheMisses);
  if (!IsSmallEnough(locator.value_size_bytes)) return false;
  MutexLock lock(ghosts_mutex_);
  return ghosts_.SeenBefore(HashOf(locator), locator.value_size_bytes);
}

bool ValueCache::Copy(const Locator& locator, uint64_t offset_bytes, std::span<uint8_t> out) {
  if (limit_bytes() == 0 || out.empty()) return false;
  Shard& shard = ShardOf(HashOf(locator));
  Entry* entry = nullptr;
  {
    MutexLock lock(shard.mutex);
    entry = FindPinned(shard, locator);
  }
  if (entry == nullptr) return false;
  std::memcpy(out.data(), entry->memory.bytes + offset_bytes, out.size());
  Unreference(entry);
  counters_->Add(Counter::kCacheHits);
  return true;
}

// ---- taking in ----

uint64_t ValueCache::ChargeFor(uint64_t capacity_bytes) { return capacity_bytes + sizeof(Entry) + kBookkeepingBytes; }

bool ValueCache::IsSmallEnough(uint64_t value_size_bytes) const {
  return value_size_bytes <= limit_bytes() / kShareOfLargest;
}

bool ValueCache::HasRoomFor(uint64_t value_size_bytes) const {
  return IsSmallEnough(value_size_bytes) && used_bytes() + ChargeFor(CapacityFor(value_size_bytes)) <= limit_bytes();
}

bool ValueCache::ReserveBytes(uint64_t bytes) {
  while (true) {
    uint64_t used = used_bytes_.load(std::memory_order_relaxed);
    const uint64_t limit = limit_bytes();
    if (bytes > limit) return false;
    if (used + bytes > limit) {
      Entry* const victim = EvictOne();
      if (victim == nullptr) return false;
      Unreference(victim);
      continue;
    }
    if (used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) return true;
  }
}

// The memory of what makes room is used again where it suits: the kernel would have to fill every page of it with
// zeros first. What was forgotten need not wait for that: nobody will find it.
ValueCache::Entry* ValueCache::ReuseEntry(const Locator& locator, uint64_t charged_bytes, const Tally& tally) {
  if (!kReusable) return nullptr;
  const bool has_room = used_bytes() + charged_bytes <= limit_bytes();
  Entry* const victim = has_room ? TakeForgotten(charged_bytes) : EvictOne();
  if (victim == nullptr) return nullptr;
  if (victim->charged_bytes != charged_bytes || used_bytes() > limit_bytes()) {
    Unreference(victim);
    return nullptr;
  }
  return Entry::Remake(victim, locator, tally);  // nobody else refers to it, and nobody can any more
}

ValueCache::Entry* ValueCache::MakeEntry(const Locator& locator, uint64_t capacity_bytes, uint64_t charged_bytes,
                                         const Tally& tally) {
  if (!ReserveBytes(charged_bytes)) return nullptr;
  const bool map = ShouldMap(capacity_bytes, limit_bytes());
  Entry* const entry = Entry::Make(locator, charged_bytes, capacity_bytes, map, tally);
  if (entry == nullptr) used_bytes_.fetch_sub(charged_bytes, std::memory_order_relaxed);
  return entry;
}

ValueCache::Filling ValueCache::Begin(const Locator& locator, const Tally& tally) {
  const uint64_t capacity = CapacityFor(locator.value_size_bytes);
  const uint64_t charged = ChargeFor(capacity);
  if (charged > limit_bytes()) return {};
  Entry* entry = ReuseEntry(locator, charged, tally);
  if (entry == nullptr) entry = MakeEntry(locator, capacity, charged, tally);
  if (entry == nullptr) return {};
  entry->memory.bytes[locator.value_size_bytes] = 0;
  return {this, entry};
}

ValueBuffer ValueCache::Publish(Filling filling) {
  Entry* const entry = filling.entry_;
  Guard(entry->memory.bytes, entry->memory.capacity_bytes);
  auto pin = std::make_unique<Pin>(this, entry);
  filling.entry_ = nullptr;  // its reference is the pin's
  Shard& shard = ShardOf(HashOf(entry->locator));
  MutexLock lock(shard.mutex);
  // Another reader may have been faster; and the limit may have been lowered meanwhile (Resize sets it before it looks
  // at the shards, so that nothing slips through).
  const bool wanted = used_bytes() <= limit_bytes() && !shard.index.contains(entry->locator);
  if (wanted) {
    shard.index.insert(entry);
    entry->references.fetch_add(1, std::memory_order_relaxed);
    Append(shard, entry);
    counters_->Add(Counter::kCacheAdmissions);
  }
  return {std::move(pin), entry->value()};
}

void ValueCache::Carry(const Locator& replaced, const Locator& by, std::span<const uint8_t> value, const Tally& tally) {
  if (limit_bytes() == 0 || value.size() != by.value_size_bytes || !IsSmallEnough(value.size())) return;
  uint8_t uses = 0;
  {
    Shard& shard = ShardOf(HashOf(replaced));
    MutexLock lock(shard.mutex);
    const auto found = shard.index.find(replaced);
    if (found != shard.index.end()) uses = (*found)->uses;
  }
  if (uses == 0) return;
  Filling filling = Begin(by, tally);
  if (filling.empty()) return;
  std::memcpy(filling.bytes().data(), value.data(), value.size());
  filling.entry_->uses = static_cast<uint8_t>(uses - 1);  // nobody else knows it yet
  (void)Publish(std::move(filling));
  counters_->Add(Counter::kCacheCarried);
}

// ---- letting go ----

void ValueCache::Append(Shard& shard, Entry* entry) {
  entry->older = shard.newest;
  entry->newer = nullptr;
  (shard.newest != nullptr ? shard.newest->newer : shard.oldest) = entry;
  shard.newest = entry;
  Count(shard, *entry);
}

void ValueCache::Prepend(Shard& shard, Entry* entry) {
  entry->older = nullptr;
  entry->newer = shard.oldest;
  (shard.oldest != nullptr ? shard.oldest->older : shard.newest) = entry;
  shard.oldest = entry;
  Count(shard, *entry);
}

void ValueCache::Count(Shard& shard, const Entry& entry) {
  ++shard.entries;
  shard.bytes += entry.charged_bytes;
  if (entry.forgotten) shard.forgotten.fetch_add(1, std::memory_order_relaxed);
}

void ValueCache::Unchain(Shard& shard, Entry* entry) {
  (entry->older != nullptr ? entry->older->newer : shard.oldest) = entry->newer;
  (entry->newer != nullptr ? entry->newer->older : shard.newest) = entry->older;
  --shard.entries;
  shard.bytes -= entry->charged_bytes;
  if (entry->forgotten) shard.forgotten.fetch_sub(1, std::memory_order_relaxed);
}

void ValueCache::Remove(Shard& shard, Entry* entry) {
  Unchain(shard, entry);
  shard.index.erase(entry);  // this very one: another may stand under the locator of one that was forgotten
}

void ValueCache::Forget(const Locator& locator) {
  if (used_bytes() == 0) return;
  Shard& shard = ShardOf(HashOf(locator));
  MutexLock lock(shard.mutex);
  const auto found = shard.index.find(locator);
  if (found == shard.index.end()) return;
  Entry* const entry = *found;
  shard.index.erase(found);
  entry->uses = 0;
  Unchain(shard, entry);
  entry->forgotten = true;
  Prepend(shard, entry);
}

void ValueCache::Unreference(Entry* entry) {
  if (entry->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const uint64_t charged = entry->charged_bytes;
  Entry::Free(entry);
  // Last, so that memory is never in use and not counted.
  used_bytes_.fetch_sub(charged, std::memory_order_relaxed);
}

ValueCache::Entry* ValueCache::TakeVictim(Shard& shard) {
  MutexLock lock(shard.mutex);
  const size_t steps = std::min(shard.entries, kStepsMax);
  for (size_t step = 0; step < steps; ++step) {
    Entry* const entry = shard.oldest;
    const bool pinned = entry->references.load(std::memory_order_acquire) > 1;
    if (!pinned && entry->uses == 0) {
      Remove(shard, entry);
      return entry;
    }
    if (!pinned) --entry->uses;
    Unchain(shard, entry);
    Append(shard, entry);
  }
  return nullptr;
}

ValueCache::Entry* ValueCache::EvictOne() {
  // An entry that nobody uses is found within so many rounds, unless the shards are large and all of it is in use: then
  // the cache has nothing to gain.
  constexpr uint32_t kVisitsMax = kShards * (kUsesMax + 1);
  const uint32_t first = hand_.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t visit = 0; visit < kVisitsMax; ++visit) {
    Entry* const victim = TakeVictim(shards_[(first + visit) % kShards]);
    if (victim == nullptr) continue;
    counters_->Add(Counter::kCacheEvictions);
    return victim;
  }
  return nullptr;
}

ValueCache::Entry* ValueCache::TakeForgotten(uint64_t charged_bytes) {
  constexpr int kLooksMax = 4;  // at the next to go; one that is pinned or of another size may stand before it
  for (Shard& shard : shards_) {
    if (shard.forgotten.load(std::memory_order_relaxed) == 0) continue;
    MutexLock lock(shard.mutex);
    Entry* entry = shard.oldest;
    for (int look = 0; look < kLooksMax && entry != nullptr; ++look, entry = entry->newer) {
      if (!entry->forgotten || entry->charged_bytes != charged_bytes) continue;
      if (entry->references.load(std::memory_order_acquire) > 1) continue;
      Remove(shard, entry);
      return entry;
    }
  }
  return nullptr;
}

// ---- sizes ----

void ValueCache::ShrinkShard(Shard& shard, uint64_t target_bytes) {
  MutexLock lock(shard.mutex);
  for (const bool pinned_too : {false, true}) {
    Entry* entry = shard.oldest;
    while (entry != nullptr && shard.bytes > target_bytes) {
      Entry* const newer = entry->newer;
      if (pinned_too || entry->references.load(std::memory_order_acquire) == 1) {
        Remove(shard, entry);
        Unreference(entry);
        counters_->Add(Counter::kCacheEvictions);
      }
      entry = newer;
    }
  }
}

void ValueCache::SetLimit(uint64_t limit_bytes, uint64_t ghost_window_bytes) {
  limit_bytes_.store(limit_bytes, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    ShrinkShard(shard, limit_bytes / kShards);
  }
  GhostKeys ghosts;
  ghosts.Resize(ghost_window_bytes);
  MutexLock lock(ghosts_mutex_);
  std::swap(ghosts_, ghosts);
}

bool ValueCache::Resize(uint64_t limit_bytes) {
  MutexLock lock(resize_mutex_);
  // What the ghosts take is part of the cache's size.
  const uint64_t ghosts = GhostKeys().MemoryFor(limit_bytes);
  try {
    SetLimit(limit_bytes <= ghosts ? 0 : limit_bytes - ghosts, limit_bytes);
    return true;
  } catch (const std::exception&) {
    SetLimit(0, 0);  // allocates nothing
    return false;
  }
}

void ValueCache::ForgetStore(StoreId store) {
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (Entry* entry = shard.oldest; entry != nullptr;) {
      Entry* const newer = entry->newer;
      if (entry->locator.store == store) {
        Remove(shard, entry);
        Unreference(entry);
      }
      entry = newer;
    }
  }
}

}  // namespace quarry
