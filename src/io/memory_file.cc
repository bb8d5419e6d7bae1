#include "io/memory_file.h"

#include <algorithm>
#include <cstring>

namespace quarry {

size_t SparseBytes::Read(uint64_t offset, std::span<uint8_t> out) const {
  if (offset >= size_) return 0;
  const auto total = static_cast<size_t>(std::min<uint64_t>(out.size(), size_ - offset));
  size_t done = 0;
  while (done < total) {
    const uint64_t position = offset + done;
    const auto in_block = static_cast<size_t>(position % kBlock);
    const size_t count = std::min(total - done, static_cast<size_t>(kBlock) - in_block);
    if (const auto found = blocks_.find(position / kBlock); found != blocks_.end()) {
      std::memcpy(out.data() + done, found->second.data() + in_block, count);
    } else {
      std::memset(out.data() + done, 0, count);
    }
    done += count;
  }
  return total;
}

uint64_t SparseBytes::BlocksMissing(uint64_t offset, uint64_t size) const {
  if (size == 0) return 0;
  uint64_t missing = 0;
  for (uint64_t block = offset / kBlock; block <= (offset + size - 1) / kBlock; ++block) {
    if (!blocks_.contains(block)) ++missing;
  }
  return missing;
}

void SparseBytes::Put(uint64_t offset, std::span<const uint8_t> data) {
  while (!data.empty()) {
    const auto in_block = static_cast<size_t>(offset % kBlock);
    const size_t count = std::min(data.size(), static_cast<size_t>(kBlock) - in_block);
    Block& block = blocks_.try_emplace(offset / kBlock, Block{}).first->second;
    std::memcpy(block.data() + in_block, data.data(), count);
    data = data.subspan(count);
    offset += count;
  }
}

void SparseBytes::SetSize(uint64_t size) {
  blocks_.erase(blocks_.lower_bound((size + kBlock - 1) / kBlock), blocks_.end());
  if (const auto last = blocks_.find(size / kBlock); last != blocks_.end()) {
    std::fill(last->second.begin() + static_cast<ptrdiff_t>(size % kBlock), last->second.end(), uint8_t{0});
  }
  size_ = size;
}

void SparseBytes::Allocate(uint64_t offset, uint64_t size) {
  if (size == 0) return;
  for (uint64_t block = offset / kBlock; block <= (offset + size - 1) / kBlock; ++block) {
    blocks_.try_emplace(block, Block{});
  }
}

void SparseBytes::Punch(uint64_t offset, uint64_t size) {
  blocks_.erase(blocks_.lower_bound(offset / kBlock), blocks_.lower_bound((offset + size) / kBlock));
}

void SparseBytes::CopyBlockFrom(const SparseBytes& other, uint64_t block) {
  if (const auto found = other.blocks_.find(block); found != other.blocks_.end()) {
    blocks_.insert_or_assign(block, found->second);
  } else {
    blocks_.erase(block);
  }
}

std::vector<uint64_t> SparseBytes::BlocksFrom(uint64_t first_block) const {
  std::vector<uint64_t> blocks;
  for (auto it = blocks_.lower_bound(first_block); it != blocks_.end(); ++it) blocks.push_back(it->first);
  return blocks;
}

bool SparseBytes::FlipBit(uint64_t offset, int bit) {
  const auto found = blocks_.find(offset / kBlock);
  if (offset >= size_ || found == blocks_.end()) return false;
  uint8_t& byte = found->second[static_cast<size_t>(offset % kBlock)];
  byte = static_cast<uint8_t>(byte ^ (1U << static_cast<unsigned>(bit)));
  return true;
}

void MemoryFile::MarkDirty(uint64_t offset, uint64_t size) {
  if (size == 0) return;
  for (uint64_t block = offset / SparseBytes::kBlock; block <= (offset + size - 1) / SparseBytes::kBlock; ++block) {
    dirty_blocks_.insert(block);
  }
}

void MemoryFile::Note(Operation operation) {
  operation.file_size_after = current_.size();
  volatile_operations_.push_back(std::move(operation));
}

void MemoryFile::Write(uint64_t offset, std::span<const uint8_t> data) {
  current_.Put(offset, data);
  if (offset + data.size() > current_.size()) current_.SetSize(offset + data.size());
  MarkDirty(offset, data.size());
  Note({Operation::Kind::kWrite, offset, 0, 0, {data.begin(), data.end()}});
}

void MemoryFile::Truncate(uint64_t size) {
  for (const uint64_t block : current_.BlocksFrom(size / SparseBytes::kBlock)) dirty_blocks_.insert(block);
  current_.SetSize(size);
  Note({Operation::Kind::kTruncate, 0, size, 0, {}});
}

void MemoryFile::Allocate(uint64_t offset, uint64_t size) {
  current_.Allocate(offset, size);
  if (offset + size > current_.size()) current_.SetSize(offset + size);
  MarkDirty(offset, size);
  Note({Operation::Kind::kAllocate, offset, size, 0, {}});
}

void MemoryFile::Punch(uint64_t offset, uint64_t size) {
  current_.Punch(offset, size);
  MarkDirty(offset, size);
  Note({Operation::Kind::kPunch, offset, size, 0, {}});
}

void MemoryFile::Sync() {
  for (const uint64_t block : dirty_blocks_) durable_.CopyBlockFrom(current_, block);
  durable_.SetSize(current_.size());
  dirty_blocks_.clear();
  volatile_operations_.clear();
}

void MemoryFile::PowerCut(CutPolicy* policy) {
  // A journal keeps the order of what it records: sizes, truncations, allocations and holes survive up to some point.
  const size_t recorded = policy->KeepPrefix(volatile_operations_.size());
  const unsigned percent = policy->DrawPercent();
  uint64_t size = durable_.size();
  for (size_t i = 0; i < volatile_operations_.size(); ++i) {
    const Operation& operation = volatile_operations_[i];
    if (i < recorded) size = operation.file_size_after;
    if (operation.kind == Operation::Kind::kTruncate && i < recorded) durable_.SetSize(operation.size);
    if (operation.kind == Operation::Kind::kAllocate && i < recorded)
      durable_.Allocate(operation.offset, operation.size);
    if (operation.kind == Operation::Kind::kPunch && i < recorded) durable_.Punch(operation.offset, operation.size);
    const std::span<const uint8_t> data = operation.data;
    for (size_t at = 0; at < data.size(); at += kSector) {
      const size_t count = std::min<size_t>(kSector, data.size() - at);
      if (policy->Keep(percent)) durable_.Put(operation.offset + at, data.subspan(at, count));
    }
  }
  durable_.SetSize(size);
  current_ = durable_;
  dirty_blocks_.clear();
  volatile_operations_.clear();
}

bool MemoryFile::FlipBit(uint64_t offset, int bit) {
  if (!current_.FlipBit(offset, bit)) return false;
  (void)durable_.FlipBit(offset, bit);  // not there yet when the byte was never synced
  return true;
}

}  // namespace quarry
