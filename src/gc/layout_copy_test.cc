// Header and map of a rewritten segment stand in its file twice. Those in front may be lost: no value is, readers and
// verification say so, and the next pass writes the segment anew. A copy that is not this file's own never counts.
#include <algorithm>
#include <cerrno>
#include <functional>

#include "format/extent.h"
#include "format/segment_map.h"
#include "gc/gc_test_util.h"
#include "store/verify_test_util.h"

namespace quarry {
namespace {

constexpr GcOptions kRewrite{.rewrite_above = 1.25};
constexpr uint64_t kSectorBytes = 512;

using File = std::vector<uint8_t>;

/// One sector, of which the device gives other bytes.
void Damage(File* file, uint64_t offset_bytes) {
  for (uint64_t at = offset_bytes; at < offset_bytes + kSectorBytes; ++at)
    (*file)[static_cast<size_t>(at)] ^= uint8_t{0x5a};
}

class LayoutCopyTest : public GcFixture {
 protected:
  void SetUp() override {
    UnsyncedExtents unsynced;
    for (size_t i = 0; i < 400; ++i) {
      const std::vector<uint8_t> value = RandomValue(100 + (i * 37) % 600, i);
      const Locator locator = ValueOf(store_->Append(value, {}, &unsynced));
      if (i % 5 == 0) kept_.push_back({locator, value});
    }
    ASSERT_OK(directory_->Sync(unsynced));
    path_ = SegmentPathOf(kept_[0].locator);
    ASSERT_EQ(Collect().segments_rewritten, 1U);
    TakeFile();
  }
  /// What the file is now is what Change changes.
  void TakeFile() {
    whole_ = Read();
    header_ = HeaderOf(&memory_, path_);
    ASSERT_TRUE(HasCopy(header_, whole_.size()));
    ASSERT_EQ(DataBeginBytes(header_.run_count), 2 * kBlockSizeBytes) << "the map takes one block";
  }
  [[nodiscard]] File Read() { return ValueOf(memory_.ReadSmallFile(path_, UINT64_MAX)); }
  void Close() {
    store_.reset();
    directory_.reset();
  }
  /// The file as `change` makes it, and a start.
  void Change(const std::function<void(File*)>& change) {
    Close();
    File file = whole_;
    change(&file);
    ASSERT_OK(memory_.ReplaceFile(path_, file));
    Open();
  }
  void DamageBoth(uint64_t front_bytes, uint64_t copy_bytes) {
    Change([front_bytes, copy_bytes](File* file) {
      Damage(file, front_bytes);
      Damage(file, copy_bytes);
    });
  }
  GcReport Collect(const GcOptions& options = kRewrite) {
    const std::unique_ptr<GcPass> pass = Begin(options);
    for (const Known& known : kept_) pass->Mark(known.locator);
    EXPECT_OK(Finish(pass.get()));
    return pass->report();
  }
  void ExpectAll() {
    for (const Known& known : kept_) ExpectReads(known);
  }
  /// No value is read, and nothing is given back.
  void ExpectNothing() {
    const File before = Read();
    for (const Known& known : kept_) EXPECT_FALSE(IsReadable(known));
    const GcReport report = Collect();
    EXPECT_EQ(report.segments_rewritten + report.segments_unlinked + report.holes, 0U);
    EXPECT_TRUE(Read() == before);
  }
  [[nodiscard]] uint64_t MapCopyBytes() const { return CopyBeginBytes(header_); }
  [[nodiscard]] uint64_t HeaderCopyBytes() const { return whole_.size() - kBlockSizeBytes; }
  /// Refuses reads of the block at `offset_bytes`.
  void Refuse(uint64_t offset_bytes) {
    env_.SetHook([this, offset_bytes](const Call& call) {
      const bool is_refused = call.kind == CallKind::kRead && call.path == path_ && call.offset_bytes <= offset_bytes &&
                              offset_bytes < call.offset_bytes + call.size_bytes;
      return is_refused ? Status::FromErrno(EIO, "read", call.path) : Status::Ok();
    });
  }

  std::vector<Known> kept_;
  std::string path_;
  File whole_;
  SegmentHeader header_;
};

TEST_F(LayoutCopyTest, DamageInFrontCostsNoValueIsNotedAndMended) {
  const std::vector<std::vector<uint64_t>> cases = {
      {0}, {kBlockSizeBytes - kSectorBytes}, {kBlockSizeBytes}, {kBlockSizeBytes + kSectorBytes}, {0, kBlockSizeBytes}};
  for (const std::vector<uint64_t>& damaged : cases) {
    SCOPED_TRACE(damaged.back());
    Change([&](File* file) {
      for (const uint64_t offset : damaged) Damage(file, offset);
    });
    ExpectAll();
    const std::vector<std::string> notices = directory_->TakeNotices();
    ASSERT_EQ(notices.size(), damaged.size());
    EXPECT_NE(notices[0].find("segment 1 of store 1 is read by the copy at its end"), std::string::npos) << notices[0];
    ExpectAll();
    EXPECT_TRUE(directory_->TakeNotices().empty());
    // There is no space to gain.
    const GcReport report = Collect();
    EXPECT_EQ(report.segments_rewritten, 1U);
    EXPECT_EQ(report.holes + report.segments_damaged, 0U);
    EXPECT_EQ(HeaderOf(&memory_, path_).generation, header_.generation + 1);
    Close();
    EXPECT_EQ(VerifyAll(&memory_).seen.Text(), "");
    Open();
    ExpectAll();
    EXPECT_TRUE(directory_->TakeNotices().empty());
    EXPECT_EQ(Collect().segments_rewritten, 0U);
  }
}

TEST_F(LayoutCopyTest, WhatCannotBeReadInFrontCostsNoValueAndIsMended) {
  for (const uint64_t bad : {uint64_t{0}, kBlockSizeBytes}) {
    Change([](File*) {});
    Refuse(bad);
    ExpectAll();
    EXPECT_EQ(directory_->TakeNotices().size(), 1U);
    EXPECT_EQ(Collect().segments_rewritten, 1U);
    env_.SetHook(nullptr);
    EXPECT_EQ(HeaderOf(&memory_, path_).generation, header_.generation + 1);
    ExpectAll();
  }
}

TEST_F(LayoutCopyTest, HeaderAndMapMayBeReadAtDifferentEnds) {
  for (const auto& [front, copy] : {std::pair(uint64_t{0}, MapCopyBytes()), {kBlockSizeBytes, HeaderCopyBytes()}}) {
    DamageBoth(front, copy);
    Close();
    const Verified verified = VerifyAll(&memory_);
    ASSERT_EQ(verified.seen.findings.size(), 2U) << verified.seen.Text();
    EXPECT_NE(verified.seen.findings[0].what.find(": its copy has"), std::string::npos) << verified.seen.Text();
    EXPECT_NE(verified.seen.findings[1].what.find(": the extents are found without it"), std::string::npos)
        << verified.seen.Text();
    EXPECT_EQ(verified.totals->extents, kept_.size());
    Open();
    ExpectAll();
    EXPECT_EQ(Collect().segments_rewritten, 1U);
    ExpectAll();
  }
}

TEST_F(LayoutCopyTest, ACopyThatCouldNotBeReadIsReadLater) {
  Change([](File* file) { Damage(file, 0); });
  Refuse(HeaderCopyBytes());
  for (const Known& known : kept_) EXPECT_FALSE(IsReadable(known));
  env_.SetHook(nullptr);
  ExpectAll();
  EXPECT_EQ(Collect().segments_rewritten, 1U);
  ExpectAll();
}

TEST_F(LayoutCopyTest, WhereBothAreLostNothingIsReadOrGivenBack) {
  for (const auto& [front, copy] : {std::pair(uint64_t{0}, HeaderCopyBytes()), {kBlockSizeBytes, MapCopyBytes()}}) {
    DamageBoth(front, copy);
    ExpectNothing();
    Change([](File*) {});
    ExpectAll();
  }
}

// Each with a right checksum.
TEST_F(LayoutCopyTest, ACopyThatSaysAnythingElseNeverCounts) {
  const std::vector<std::function<void(SegmentHeader*)>> changes = {
      [](SegmentHeader* header) { header->salt[3] ^= uint8_t{1}; },
      [](SegmentHeader* header) { ++header->segment.value; },
      [](SegmentHeader* header) { ++header->store.value; },
      [](SegmentHeader* header) { header->data_end_bytes += kBlockSizeBytes; },
      [](SegmentHeader* header) { header->data_end_bytes += kExtentAlignmentBytes; },
      [](SegmentHeader* header) { header->data_end_bytes = UINT64_MAX; },
      [](SegmentHeader* header) { --header->run_count; },
      [](SegmentHeader* header) { header->run_count = UINT32_MAX; },
      [](SegmentHeader* header) { header->map_checksum ^= 1U; },
      [](SegmentHeader* header) {
        header->generation = header->run_count = 0;
        header->data_end_bytes = header->map_checksum = header->rewritten_micros = 0;
      }};
  const auto put = [this](const SegmentHeader& copy) {
    Change([&](File* file) {
      Damage(file, 0);
      uint8_t* const last = file->data() + HeaderCopyBytes();
      EncodeSegmentHeader(copy, std::span<uint8_t, kSegmentHeaderSizeBytes>(last, kSegmentHeaderSizeBytes));
    });
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    SegmentHeader copy = header_;
    changes[i](&copy);
    put(copy);
    ExpectNothing();
  }
  put(header_);
  ExpectAll();
}

TEST_F(LayoutCopyTest, TheCopyOfAnEarlierRewritingNeverCounts) {
  const File earlier = whole_;
  const uint64_t earlier_map = MapCopyBytes();
  std::vector<Known> fewer;
  for (size_t i = 0; i < kept_.size(); i += 4) fewer.push_back(kept_[i]);
  kept_ = fewer;
  ASSERT_EQ(Collect().segments_rewritten, 1U);
  TakeFile();
  ASSERT_LT(whole_.size(), earlier.size());
  Change([&](File* file) {
    Damage(file, 0);
    const auto block = static_cast<ptrdiff_t>(kBlockSizeBytes);
    std::copy(earlier.end() - block, earlier.end(), file->end() - block);
  });
  ExpectNothing();
  Change([&](File* file) {
    Damage(file, kBlockSizeBytes);
    std::copy_n(earlier.begin() + static_cast<ptrdiff_t>(earlier_map), kBlockSizeBytes,
                file->begin() + static_cast<ptrdiff_t>(MapCopyBytes()));
  });
  ExpectNothing();
}

// The last of these sizes is that of a file from before there were copies.
TEST_F(LayoutCopyTest, AFileWithoutTheWholeOfItsCopyIsReadByItsFrontAlone) {
  for (const uint64_t size : {whole_.size() - 1, HeaderCopyBytes(), MapCopyBytes() + 1, MapCopyBytes()}) {
    SCOPED_TRACE(size);
    Change([size](File* file) { file->resize(size); });
    ExpectAll();
    EXPECT_TRUE(directory_->TakeNotices().empty());
    const GcReport report = Collect();
    EXPECT_EQ(report.holes + report.segments_rewritten + report.segments_damaged, 0U);
    ExpectAll();
    Close();
    const Verified verified = VerifyAll(&memory_);
    EXPECT_EQ(verified.seen.findings.size(), size == MapCopyBytes() ? 0U : 1U) << verified.seen.Text();
    Change([size](File* file) {
      Damage(file, 0);
      file->resize(size);
    });
    ExpectNothing();
  }
}

TEST_F(LayoutCopyTest, HolesLeaveTheCopy) {
  kept_.erase(kept_.begin(), kept_.begin() + 60);
  EXPECT_GT(Collect({.rewrite_above = 0}).holes, 0U);
  EXPECT_EQ(Collect({.rewrite_above = 0}).holes, 0U) << "nothing is left to be given back";
  TakeFile();
  Change([](File* file) {
    Damage(file, 0);
    Damage(file, kBlockSizeBytes);
  });
  ExpectAll();
  const GcReport report = Collect();
  EXPECT_EQ(report.holes, 0U) << "by the word of the copy alone";
  EXPECT_EQ(report.segments_rewritten, 1U);
  ExpectAll();
}

TEST_F(LayoutCopyTest, VerificationNamesEachEndAndVerifiesTheExtents) {
  struct Case {
    uint64_t damaged;
    uint64_t found_at;
    const char* what;
  };
  for (const auto& [damaged, found_at, what] :
       {Case{0, 0, "segment header magic mismatch: not a segment: its copy has"},
        Case{kBlockSizeBytes, kBlockSizeBytes,
             "the map of the rewritten segment has a checksum mismatch: its copy has"},
        Case{MapCopyBytes(), MapCopyBytes(), "checksum mismatch, in the copy at the end of the file"},
        Case{HeaderCopyBytes(), MapCopyBytes(), "magic mismatch: not a segment, in the copy at the end of the file"}}) {
    Change([at = damaged](File* file) { Damage(file, at); });
    Remember scrub;
    ScrubPlace place;
    EXPECT_EQ(ScrubStores(directory_.get(), &place, &scrub).extents, kept_.size());
    Close();
    const Verified offline = VerifyAll(&memory_);
    EXPECT_EQ(offline.totals->extents, kept_.size());
    for (const Remember& seen : {scrub, offline.seen}) {
      ASSERT_EQ(seen.findings.size(), 1U) << damaged << ":\n" << seen.Text();
      EXPECT_EQ(seen.findings[0].kind, FindingKind::kDamaged);
      EXPECT_EQ(seen.findings[0].offset_bytes, found_at);
      EXPECT_NE(seen.findings[0].what.find(what), std::string::npos) << seen.Text();
    }
    Open();
  }
}

// Readers and GC do not look at a copy that they do not need.
TEST_F(LayoutCopyTest, ACopyThatTheScrubFoundDamagedIsMended) {
  for (const uint64_t damaged : {MapCopyBytes(), HeaderCopyBytes()}) {
    Change([damaged](File* file) { Damage(file, damaged); });
    EXPECT_EQ(Collect().segments_rewritten, 0U);
    for (const size_t findings : {size_t{1}, size_t{0}}) {
      Remember scrub;
      ScrubPlace place;
      (void)ScrubStores(directory_.get(), &place, &scrub);
      EXPECT_EQ(scrub.findings.size(), findings) << scrub.Text();
      EXPECT_EQ(Collect().segments_rewritten, findings);
    }
    EXPECT_TRUE(directory_->TakeNotices().empty()) << "nobody read it";
    ExpectAll();
  }
}

TEST_F(LayoutCopyTest, ACopyThatCannotBeReadIsMended) {
  for (const uint64_t bad : {MapCopyBytes(), HeaderCopyBytes()}) {
    SCOPED_TRACE(bad);
    Change([](File*) {});
    Refuse(bad);
    Remember scrub;
    ScrubPlace place;
    (void)ScrubStores(directory_.get(), &place, &scrub);
    EXPECT_EQ(scrub.CountOf(FindingKind::kUnreadable), 1U) << scrub.Text();
    const GcReport report = Collect();
    env_.SetHook(nullptr);
    EXPECT_EQ(report.segments_rewritten, 1U) << report.damage;
    EXPECT_EQ(HeaderOf(&memory_, path_).generation, header_.generation + 1);
    ExpectAll();
  }
}

// Nothing is punched by the word of a copy, so what no row needs is in the file until it is rewritten.
TEST_F(LayoutCopyTest, WhatNoRowNeedsMayBeUnreadableWhereTheFrontIsMended) {
  kept_.erase(kept_.begin() + 20, kept_.end());
  Change([](File* file) { Damage(file, 0); });
  Refuse(MapCopyBytes() - kBlockSizeBytes);  // the last block of the extents
  const GcReport report = Collect();
  env_.SetHook(nullptr);
  EXPECT_EQ(report.segments_rewritten, 1U) << report.damage;
  ExpectAll();
}

// Header and map in front are whole, and tell what may go.
TEST_F(LayoutCopyTest, ADamagedCopyHoldsNoSpaceBackWhereThereIsNoRoomToMendIt) {
  Change([this](File* file) { Damage(file, MapCopyBytes()); });
  Remember scrub;
  ScrubPlace place;
  (void)ScrubStores(directory_.get(), &place, &scrub);
  ASSERT_EQ(scrub.findings.size(), 1U) << scrub.Text();
  kept_.erase(kept_.begin(), kept_.begin() + 60);
  env_.FailCall(CallKind::kAllocate, 1, ENOSPC, true);
  const GcReport report = Collect();
  env_.ClearFailures();
  EXPECT_GT(report.holes, 0U);
  EXPECT_EQ(report.rewrites_refused, 1U);
  ExpectAll();
  EXPECT_EQ(Collect().segments_rewritten, 1U);
  ExpectAll();
}

TEST_F(LayoutCopyTest, VerificationNamesWhatCannotBeRead) {
  for (const uint64_t bad : {uint64_t{0}, kBlockSizeBytes, MapCopyBytes(), HeaderCopyBytes()}) {
    Change([](File*) {});
    Close();
    Refuse(bad);
    const Verified verified = VerifyAll(&env_);
    env_.SetHook(nullptr);
    ASSERT_EQ(verified.seen.findings.size(), 1U) << bad << ":\n" << verified.seen.Text();
    EXPECT_EQ(verified.seen.findings[0].kind, FindingKind::kUnreadable) << verified.seen.Text();
    EXPECT_EQ(verified.totals->extents, kept_.size());
    Open();
  }
}

}  // namespace
}  // namespace quarry
