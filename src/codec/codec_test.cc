// Codecs: what goes in comes out, in exactly its size, and damage is noticed.
#include "codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace quarry {
namespace {

std::vector<uint8_t> Text(size_t size) {
  static constexpr char kWords[] = "the quick brown fox jumps over the lazy dog while bytes are piling up ";
  std::vector<uint8_t> text(size);
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<uint8_t>(kWords[(i * 7 / 5) % (sizeof(kWords) - 1)]);
  return text;
}

std::vector<uint8_t> Noise(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> noise(size);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  return noise;
}

class CodecTest : public testing::TestWithParam<Codec> {};
INSTANTIATE_TEST_SUITE_P(Codecs, CodecTest, testing::Values(Codec::kLz4, Codec::kZstd),
                         [](const auto& parameter) { return std::string(CodecName(parameter.param)); });

TEST_P(CodecTest, RoundTripsWhatShrinks) {
  for (const size_t size : {size_t{64}, size_t{512}, size_t{4096}, size_t{13948}, size_t{65536}, size_t{16} << 20}) {
    // 64 bytes of zeros shrink under either codec; so small a text does not.
    const std::vector<uint8_t> in = size == 64 ? std::vector<uint8_t>(size) : Text(size);
    std::vector<uint8_t> stored(size);
    const CompressedPart part = CompressPart(GetParam(), in, stored);
    ASSERT_FALSE(part.raw) << size;
    ASSERT_LE(part.stored_size_bytes, size - size / 16);
    stored.resize(part.stored_size_bytes);
    std::vector<uint8_t> out(size);
    ASSERT_TRUE(DecompressPart(GetParam(), stored, out));
    EXPECT_EQ(out, in);
  }
}

TEST_P(CodecTest, WhatDoesNotShrinkComesBackRaw) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{512}, size_t{65536}}) {
    const std::vector<uint8_t> in = Noise(size, size);
    std::vector<uint8_t> stored(size);
    const CompressedPart part = CompressPart(GetParam(), in, stored);
    EXPECT_TRUE(part.raw) << size;
    EXPECT_EQ(part.stored_size_bytes, size);
  }
}

TEST_P(CodecTest, ASavingBelowASixteenthDoesNotPay) {
  // Noise with a compressible tail: a twentieth saves too little, a quarter enough.
  for (const auto& [share, raw] : {std::pair<size_t, bool>{20, true}, {4, false}}) {
    std::vector<uint8_t> in = Noise(65536, 1);
    std::fill(in.end() - static_cast<ptrdiff_t>(in.size() / share), in.end(), uint8_t{0});
    std::vector<uint8_t> stored(in.size());
    EXPECT_EQ(CompressPart(GetParam(), in, stored).raw, raw) << share;
  }
}

TEST_P(CodecTest, OnlyTheExactSizeIsAccepted) {
  const std::vector<uint8_t> in = Text(10000);
  std::vector<uint8_t> stored(in.size());
  const CompressedPart part = CompressPart(GetParam(), in, stored);
  ASSERT_FALSE(part.raw);
  stored.resize(part.stored_size_bytes);
  std::vector<uint8_t> shorter(in.size() - 1);
  EXPECT_FALSE(DecompressPart(GetParam(), stored, shorter));
  std::vector<uint8_t> longer(in.size() + 1);
  EXPECT_FALSE(DecompressPart(GetParam(), stored, longer));
  std::vector<uint8_t> out(in.size());
  EXPECT_FALSE(DecompressPart(GetParam(), std::span<const uint8_t>(stored).first(stored.size() - 1), out));
  EXPECT_FALSE(DecompressPart(GetParam(), {}, out));
}

TEST_P(CodecTest, DamageNeverWritesOutside) {
  const std::vector<uint8_t> in = Text(5000);
  std::vector<uint8_t> stored(in.size());
  const CompressedPart part = CompressPart(GetParam(), in, stored);
  ASSERT_FALSE(part.raw);
  stored.resize(part.stored_size_bytes);
  // Right or wrong, the answer may only ever fill `out`: the sanitizers and the guard bytes watch.
  std::vector<uint8_t> guarded(in.size() + 64, 0xa5);
  for (size_t bit = 0; bit < stored.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = stored;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    (void)DecompressPart(GetParam(), damaged, std::span<uint8_t>(guarded).first(in.size()));
    ASSERT_TRUE(std::all_of(guarded.end() - 64, guarded.end(), [](uint8_t byte) { return byte == 0xa5; }));
  }
}

TEST_P(CodecTest, ThreadsHaveTheirOwnContexts) {
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 1; i <= 50; ++i) {
        const std::vector<uint8_t> in = Text(1000 * i + t);
        std::vector<uint8_t> stored(in.size());
        const CompressedPart part = CompressPart(GetParam(), in, stored);
        std::vector<uint8_t> out(in.size());
        if (!part.raw &&
            DecompressPart(GetParam(), std::span<const uint8_t>(stored).first(part.stored_size_bytes), out) &&
            out == in) {
          ++right[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 50));
}

TEST(CodecNoneTest, IsAlwaysRaw) {
  const std::vector<uint8_t> in(1000);
  std::vector<uint8_t> stored(1000);
  EXPECT_TRUE(CompressPart(Codec::kNone, in, stored).raw);
  EXPECT_EQ(CompressPart(Codec::kNone, in, stored).stored_size_bytes, 1000U);
  EXPECT_FALSE(DecompressPart(Codec::kNone, in, stored));
}

}  // namespace
}  // namespace quarry
