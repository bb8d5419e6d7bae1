#include "cache/chunk.h"

#include <algorithm>
#include <cstring>

namespace quarry {

void ChunkIndex::Insert(std::shared_ptr<const Chunk> chunk) {
  MutexLock lock(mutex_);
  const uint64_t offset_bytes = chunk->file_offset_bytes;
  chunks_[offset_bytes] = std::move(chunk);
  count_.store(chunks_.size(), std::memory_order_release);
}

void ChunkIndex::Erase(uint64_t file_offset_bytes) {
  std::shared_ptr<const Chunk> dropped;  // its buffer goes back to the pool after the lock
  MutexLock lock(mutex_);
  const auto found = chunks_.find(file_offset_bytes);
  if (found == chunks_.end()) return;
  dropped = std::move(found->second);
  chunks_.erase(found);
  count_.store(chunks_.size(), std::memory_order_release);
}

bool ChunkIndex::Pin(uint64_t offset_bytes, uint64_t size_bytes, Pinned* pinned) const {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  MutexLock lock(mutex_);
  auto next = chunks_.upper_bound(offset_bytes);
  if (next == chunks_.begin()) return false;
  --next;
  uint64_t covered = offset_bytes;
  const uint64_t end = offset_bytes + size_bytes;
  while (covered < end) {
    if (next == chunks_.end() || pinned->count == kPinnedMax) return false;
    const Chunk& chunk = *next->second;
    const uint64_t chunk_end = chunk.file_offset_bytes + chunk.used_bytes.load(std::memory_order_acquire);
    if (chunk.file_offset_bytes > covered || chunk_end <= covered) return false;
    pinned->chunks[pinned->count++] = next->second;
    covered = chunk_end;
    ++next;
  }
  return true;
}

bool ChunkIndex::Holds(uint64_t offset_bytes, uint64_t size_bytes) const {
  Pinned pinned;
  return Pin(offset_bytes, size_bytes, &pinned);
}

bool ChunkIndex::Copy(uint64_t offset_bytes, std::span<uint8_t> out) const {
  if (out.empty()) return false;
  Pinned pinned;
  if (!Pin(offset_bytes, out.size(), &pinned)) return false;
  size_t done = 0;
  for (size_t i = 0; i < pinned.count && done < out.size(); ++i) {
    const Chunk& chunk = *pinned.chunks[i];
    const uint64_t from = offset_bytes + done - chunk.file_offset_bytes;
    const uint64_t used = chunk.used_bytes.load(std::memory_order_acquire);
    const size_t size = static_cast<size_t>(std::min<uint64_t>(used - from, out.size() - done));
    std::memcpy(out.data() + done, chunk.buffer.data() + from, size);
    done += size;
  }
  return done == out.size();
}

}  // namespace quarry
