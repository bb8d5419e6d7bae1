#include "codec/codec.h"

#include <lz4.h>
#include <zstd.h>

#include <cassert>
#include <climits>
#include <memory>
#include <new>
#include <vector>

namespace quarry {

namespace {

static_assert(kPartSizeMaxBytes <= LZ4_MAX_INPUT_SIZE && kPartSizeMaxBytes <= INT_MAX);

// Level 1: on a payload path the device's rate is the thing to keep up with; higher levels cost a multiple of the time
// for a few percent. A format detail it is not: any level reads back alike.
constexpr int kZstdLevel = 1;

// Saving less than this share of a part (1/2^n) is not worth a decompression at every read.
constexpr unsigned kWorthShift = 4;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_CCtx* CompressContext() {
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> context;
  if (context == nullptr) context.reset(ZSTD_createCCtx());
  if (context == nullptr) throw std::bad_alloc();
  return context.get();
}

ZSTD_DCtx* DecompressContext() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context;
  if (context == nullptr) context.reset(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  return context.get();
}

// Both return 0 when the result would be longer than `limit`, which ends the attempt early.
size_t CompressLz4(std::span<const uint8_t> in, std::span<uint8_t> out, size_t limit) {
  // The state is 16 KiB: too much for every stack, too hot to allocate per part. Eight-byte elements align it.
  thread_local std::vector<uint64_t> state(static_cast<size_t>(LZ4_sizeofState()) / sizeof(uint64_t) + 1);
  const int size = LZ4_compress_fast_extState(state.data(), reinterpret_cast<const char*>(in.data()),
                                              reinterpret_cast<char*>(out.data()), static_cast<int>(in.size()),
                                              static_cast<int>(limit), 1);
  return size > 0 ? static_cast<size_t>(size) : 0;
}

size_t CompressZstd(std::span<const uint8_t> in, std::span<uint8_t> out, size_t limit) {
  const size_t size = ZSTD_compressCCtx(CompressContext(), out.data(), limit, in.data(), in.size(), kZstdLevel);
  return ZSTD_isError(size) != 0U ? 0 : size;
}

}  // namespace

CompressedPart CompressPart(Codec codec, std::span<const uint8_t> in, std::span<uint8_t> out) {
  assert(in.size() <= kPartSizeMaxBytes && out.size() >= in.size());
  const CompressedPart raw{in.size(), true};
  const size_t limit = in.size() - (in.size() >> kWorthShift) - (in.empty() ? 0 : 1);
  if (codec == Codec::kNone || limit == 0) return raw;
  const size_t size = codec == Codec::kLz4 ? CompressLz4(in, out, limit) : CompressZstd(in, out, limit);
  if (size == 0) return raw;
  return {size, false};
}

bool DecompressPart(Codec codec, std::span<const uint8_t> stored, std::span<uint8_t> out) {
  if (stored.size() > kPartSizeMaxBytes || out.size() > kPartSizeMaxBytes) return false;
  switch (codec) {
    case Codec::kNone:
      return false;  // a part of codec none is raw
    case Codec::kLz4:
      return LZ4_decompress_safe(reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(out.data()),
                                 static_cast<int>(stored.size()),
                                 static_cast<int>(out.size())) == static_cast<int>(out.size());
    case Codec::kZstd:
      return ZSTD_decompressDCtx(DecompressContext(), out.data(), out.size(), stored.data(), stored.size()) ==
             out.size();
  }
  return false;
}

}  // namespace quarry
