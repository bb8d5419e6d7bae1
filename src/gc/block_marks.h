// BlockMarks: which blocks of a segment are needed. One bit per block, allocated at the first mark.
// Invariant: a block that holds any byte of a marked range is marked; nothing is ever unmarked.
// Thread-safety: a value; externally synchronised.
#pragma once

#include <cstdint>
#include <vector>

namespace quarry {

class BlockMarks {
 public:
  explicit BlockMarks(uint64_t blocks) : blocks_(blocks) {}

  /// Marks [begin, end), which lies within the segment.
  void Mark(uint64_t begin_block, uint64_t end_block);
  /// Nothing was marked.
  [[nodiscard]] bool empty() const { return words_.empty(); }
  [[nodiscard]] uint64_t CountMarked() const;

  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;  ///< begin: there is none
  };
  /// The first range of unmarked blocks at or behind `from_block`, as long as it gets.
  [[nodiscard]] Range NextUnmarked(uint64_t from_block) const;

 private:
  static constexpr uint64_t kBits = 64;
  /// The first block at or behind `from` whose mark is `marked`; the number of blocks when there is none.
  [[nodiscard]] uint64_t Find(uint64_t from, bool marked) const;

  uint64_t blocks_;
  std::vector<uint64_t> words_;
};

}  // namespace quarry
