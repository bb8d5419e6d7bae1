// The guaranteed prefix against a model: tables whose options and indexes change in every order, with crashes, power
// cuts, rebuilds and copies in between. No head may ever hold fewer raw bytes than an index counts on.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "columns/column_settings.h"

namespace quarry {
namespace {

constexpr size_t kColumns = 2;
constexpr uint32_t kNoHeads = 0xffffffff;

using Definition = std::array<PrefixSizes, kColumns>;

/// A table as InnoDB and the store have it, and the shortest head that is really there.
class ModelTable {
 public:
  explicit ModelTable(uint64_t seed) : random_(seed) {
    definition_ = SomeDefinition(definition_);
    shortest_.fill(kNoHeads);
  }

  void Step() {
    switch (Below(4)) {
      case 0:
        WriteHeads();
        break;
      case 1:
        Rebuild();
        break;
      default:
        Alter();
    }
  }

  void ExpectTruth(const std::string& when) const {
    for (size_t i = 0; i < kColumns; ++i) {
      ASSERT_GE(shortest_[i], definition_[i].index_prefix_bytes) << when << ": an index would see a trailer";
      ASSERT_GE(shortest_[i], GuaranteedPrefixBytes(definition_[i], limit_)) << when;
    }
  }

  [[nodiscard]] uint64_t in_place() const { return in_place_; }
  [[nodiscard]] uint64_t copies() const { return copies_; }

 private:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  /// Each column changes its option, its index, both or nothing.
  Definition SomeDefinition(const Definition& from) {
    constexpr std::array<uint32_t, 7> kSizes = {0, 1, 50, 100, 101, 700, 65535};
    Definition definition = from;
    for (PrefixSizes& sizes : definition) {
      if (Below(2) == 0) sizes.asked_prefix_size_bytes = kSizes[Below(kSizes.size())];
      if (Below(3) == 0) sizes.index_prefix_bytes = Below(2) == 0 ? 0 : kSizes[Below(kSizes.size())];
      sizes.prefix_size_bytes = std::max(sizes.asked_prefix_size_bytes, sizes.index_prefix_bytes);
    }
    return definition;
  }

  void WriteHeads() {
    for (size_t i = 0; i < kColumns; ++i) {
      // Heads hold PREFIX_SIZE bytes. The rules bear even heads of as few as are guaranteed.
      const uint32_t least = GuaranteedPrefixBytes(definition_[i], limit_);
      const uint32_t most = definition_[i].prefix_size_bytes;
      shortest_[i] = std::min(shortest_[i], Below(4) == 0 ? least + Below(most - least + 1) : most);
    }
  }

  void Copy(const Definition& after) {
    ++copies_;
    definition_ = after;
    limit_ = kNoPrefixLimit;
    for (size_t i = 0; i < kColumns; ++i) {
      if (shortest_[i] != kNoHeads) shortest_[i] = after[i].prefix_size_bytes;
    }
  }

  void Alter() {
    const Definition after = SomeDefinition(definition_);
    uint32_t stated = kNoPrefixLimit;
    for (size_t i = 0; i < kColumns; ++i) {
      const auto limit = PrefixLimitForChange(definition_[i], GuaranteedPrefixBytes(definition_[i], limit_), after[i]);
      if (!limit) return Copy(after);
      stated = std::min(stated, *limit);
    }
    ++in_place_;
    limit_ = std::min(limit_, stated);
    ExpectTruth("the limit is stated, the old definition in force");
    if (Below(5) == 0) return;  // a crash, or the ALTER failed
    const Definition before = definition_;
    definition_ = after;
    ExpectTruth("the new definition in force");
    // Power goes: the directory entry of the new definition is lost, the heads written under it are not. InnoDB would
    // notice other indexes.
    const bool same_indexes = std::equal(before.begin(), before.end(), after.begin(), [](const auto& a, const auto& b) {
      return a.index_prefix_bytes == b.index_prefix_bytes;
    });
    if (!same_indexes || Below(3) != 0) return;
    WriteHeads();
    definition_ = before;
    ExpectTruth("the old definition is back");
  }

  /// In place, its store torn from it by a crash; but a copy while the limit matters.
  void Rebuild() {
    for (const PrefixSizes& sizes : definition_) {
      if (GuaranteedPrefixBytes(sizes, limit_) < sizes.prefix_size_bytes) return Copy(definition_);
    }
    limit_ = kNoPrefixLimit;
  }

  std::mt19937_64 random_;
  Definition definition_;
  uint32_t limit_ = kNoPrefixLimit;
  std::array<uint32_t, kColumns> shortest_{};
  uint64_t in_place_ = 0;
  uint64_t copies_ = 0;
};

TEST(GuaranteedPrefixTest, NoHeadIsEverShorterThanAnIndexCountsOn) {
  uint64_t in_place = 0;
  uint64_t copies = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    ModelTable table(seed);
    for (int step = 0; step < 60; ++step) {
      table.Step();
      table.ExpectTruth("step " + std::to_string(step) + " of seed " + std::to_string(seed));
      if (testing::Test::HasFatalFailure()) return;
    }
    in_place += table.in_place();
    copies += table.copies();
  }
  EXPECT_GT(in_place, 10000U);
  EXPECT_GT(copies, 10000U);
}

TEST(GuaranteedPrefixTest, TheRules) {
  const PrefixSizes plain{0, 100, 100};
  EXPECT_EQ(GuaranteedPrefixBytes(plain, kNoPrefixLimit), 100U);
  EXPECT_EQ(GuaranteedPrefixBytes(plain, 60), 60U);
  EXPECT_EQ(GuaranteedPrefixBytes({80, 0, 80}, 60), 80U) << "an index that is there was checked when it was made";
  EXPECT_EQ(PrefixLimitForChange(plain, 100, plain), kNoPrefixLimit);
  EXPECT_EQ(PrefixLimitForChange(plain, 100, {100, 100, 100}), kNoPrefixLimit);
  EXPECT_EQ(PrefixLimitForChange(plain, 100, {101, 100, 101}), std::nullopt);
  EXPECT_EQ(PrefixLimitForChange(plain, 100, {0, 700, 700}), 100U);
  EXPECT_EQ(PrefixLimitForChange(plain, 100, {0, 30, 30}), 30U);
  EXPECT_EQ(PrefixLimitForChange(plain, 60, {0, 30, 30}), 30U);
  EXPECT_EQ(PrefixLimitForChange({80, 0, 80}, 80, {0, 0, 0}), kNoPrefixLimit) << "a dropped index states nothing";
}

}  // namespace
}  // namespace quarry
