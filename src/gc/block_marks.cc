#include "gc/block_marks.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace quarry {

void BlockMarks::Mark(uint64_t begin_block, uint64_t end_block) {
  assert(begin_block <= end_block && end_block <= blocks_);
  if (begin_block == end_block) return;
  if (words_.empty()) words_.resize((blocks_ + kBits - 1) / kBits);
  for (uint64_t block = begin_block; block < end_block;) {
    const uint64_t bit = block % kBits;
    const uint64_t count = std::min(kBits - bit, end_block - block);
    const uint64_t ones = count == kBits ? UINT64_MAX : (1ULL << count) - 1;
    words_[block / kBits] |= ones << bit;
    block += count;
  }
}

uint64_t BlockMarks::CountMarked() const {
  uint64_t count = 0;
  for (const uint64_t word : words_) count += static_cast<uint64_t>(std::popcount(word));
  return count;
}

uint64_t BlockMarks::Find(uint64_t from, bool marked) const {
  while (from < blocks_) {
    const uint64_t word = words_[from / kBits] ^ (marked ? 0 : UINT64_MAX);
    const uint64_t left = word >> (from % kBits);
    if (left != 0) return std::min(blocks_, from + static_cast<uint64_t>(std::countr_zero(left)));
    from = (from / kBits + 1) * kBits;
  }
  return blocks_;
}

BlockMarks::Range BlockMarks::NextUnmarked(uint64_t from_block) const {
  if (from_block >= blocks_) return {blocks_, blocks_};
  if (words_.empty()) return {from_block, blocks_};
  const uint64_t begin = Find(from_block, false);
  return {begin, begin < blocks_ ? Find(begin, true) : blocks_};
}

}  // namespace quarry
