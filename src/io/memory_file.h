// The content of one file of MemoryEnv: what callers see, what is durable, and what happened between the two.
// Invariants: content beyond the size reads as nothing; blocks never written, or punched, are not allocated.
// Thread-safety: externally synchronised (by MemoryEnv's mutex).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <vector>

namespace quarry {

/// Bytes in blocks of 4096, with holes.
class SparseBytes {
 public:
  static constexpr uint64_t kBlock = 4096;

  [[nodiscard]] uint64_t size() const { return size_; }
  [[nodiscard]] uint64_t allocated_blocks() const { return blocks_.size(); }
  [[nodiscard]] size_t Read(uint64_t offset, std::span<uint8_t> out) const;
  /// Blocks that a write of [offset, offset + size) would newly allocate.
  [[nodiscard]] uint64_t BlocksMissing(uint64_t offset, uint64_t size) const;
  /// Does not change the size.
  void Put(uint64_t offset, std::span<const uint8_t> data);
  /// Cuts off or grows by a hole.
  void SetSize(uint64_t size);
  /// Blocks of zeros where there were none. Does not change the size.
  void Allocate(uint64_t offset, uint64_t size);
  /// Whole blocks only.
  void Punch(uint64_t offset, uint64_t size);
  void CopyBlockFrom(const SparseBytes& other, uint64_t block);
  [[nodiscard]] std::vector<uint64_t> BlocksFrom(uint64_t first_block) const;
  [[nodiscard]] bool FlipBit(uint64_t offset, int bit);

 private:
  using Block = std::array<uint8_t, kBlock>;
  std::map<uint64_t, Block> blocks_;
  uint64_t size_ = 0;
};

/// How a power cut treats what is volatile.
class CutPolicy {
 public:
  static constexpr uint64_t kDropAll = 0;
  static constexpr uint64_t kKeepAll = UINT64_MAX;

  explicit CutPolicy(uint64_t seed) : seed_(seed), random_(seed) {}
  /// True with a probability of `percent`, but for the two extreme seeds.
  [[nodiscard]] bool Keep(unsigned percent) {
    if (seed_ == kDropAll || seed_ == kKeepAll) return seed_ == kKeepAll;
    return random_() % 100 < percent;
  }
  /// 0..count: how many of an ordered series survive.
  [[nodiscard]] size_t KeepPrefix(size_t count) {
    if (seed_ == kDropAll || seed_ == kKeepAll) return seed_ == kKeepAll ? count : 0;
    return random_() % (count + 1);
  }
  /// Some files keep nearly nothing, some nearly all: uniform coins would never show either.
  [[nodiscard]] unsigned DrawPercent() {
    static constexpr std::array<unsigned, 5> kPercents = {0, 10, 50, 90, 100};
    return kPercents[random_() % kPercents.size()];
  }

 private:
  const uint64_t seed_;
  std::mt19937_64 random_;
};

class MemoryFile {
 public:
  static constexpr uint64_t kSector = 512;

  [[nodiscard]] const SparseBytes& current() const { return current_; }
  void Write(uint64_t offset, std::span<const uint8_t> data);
  void Truncate(uint64_t size);
  void Allocate(uint64_t offset, uint64_t size);
  void Punch(uint64_t offset, uint64_t size);
  void Sync();
  /// Settles what a power cut left; afterwards nothing is volatile.
  void PowerCut(CutPolicy* policy);
  [[nodiscard]] bool FlipBit(uint64_t offset, int bit);

 private:
  struct Operation {
    enum class Kind : uint8_t { kWrite, kTruncate, kAllocate, kPunch } kind = Kind::kWrite;
    uint64_t offset = 0;
    uint64_t size = 0;  ///< of the hole or allocation; the new size of a truncation
    uint64_t file_size_after = 0;
    std::vector<uint8_t> data;  ///< of a write
  };
  void Note(Operation operation);
  void MarkDirty(uint64_t offset, uint64_t size);

  SparseBytes current_;
  SparseBytes durable_;
  std::vector<Operation> volatile_operations_;
  std::set<uint64_t> dirty_blocks_;
};

}  // namespace quarry
