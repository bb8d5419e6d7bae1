// The golden segments as files of a store whose records are lost: values are read through the store, where the map of a
// rewritten segment stands between a head and its extent.
#include "codec/golden_files.h"
#include "codec/golden_v1_samples.h"
#include "store/store_test_util.h"

namespace quarry {
namespace {

using golden_v1::ExtentSample;

class GoldenStoreTest : public testing::Test {
 protected:
  void Open(const std::string& segment) {
    options_.cipher_provider = golden_v1::Provider();
    { const auto made = ValueOf(OpenDirectory(&env_, options_)); }
    const std::string folder = "/home/stores/" + StoreDirectoryName(golden_v1::kStore);
    ASSERT_OK(env_.CreateDirectory(folder));
    ASSERT_OK(env_.ReplaceFile(folder + "/" + SegmentFileName(golden_v1::kSegment), ReadGolden(segment)));
    directory_ = ValueOf(OpenDirectory(&env_, options_));
  }
  Result<std::vector<uint8_t>> Read(const ExtentSample& sample, const std::string& heads) {
    head_ = ReadGolden(heads + std::string(sample.name) + ".bin");
    return ReadValue(directory_.get(), ValueOf(DecodeField(head_)).head());
  }

  void ReadRewritten() {
    int reencoded = 0;
    int gone = 0;
    for (const ExtentSample& sample : golden_v1::Extents()) {
      const Result<std::vector<uint8_t>> read = Read(sample, "head-");
      if (!golden_v1::IsCopied(sample.name) && !golden_v1::IsReencoded(sample.name)) {
        ++gone;
        EXPECT_EQ(read.status().code(), StatusCode::kCorruption) << sample.name;
        continue;
      }
      reencoded += golden_v1::IsReencoded(sample.name) ? 1 : 0;
      EXPECT_EQ(ValueOf(read), golden_v1::ValueOf(sample)) << sample.name;
    }
    EXPECT_EQ(reencoded, 1);
    EXPECT_GT(gone, 0);
  }

  MemoryEnv env_;
  DirectoryOptions options_ = TestOptions();
  std::unique_ptr<StoreDirectoryImpl> directory_;
  std::vector<uint8_t> head_;
};

TEST_F(GoldenStoreTest, ReadsPlainAndEncryptedSegments) {
  for (const auto& [segment, heads] : {std::pair("segment.qseg", "head-"), {"encrypted.qseg", "encrypted-head-"}}) {
    Open(segment);
    for (const ExtentSample& sample : golden_v1::Extents()) {
      EXPECT_EQ(ValueOf(Read(sample, heads)), golden_v1::ValueOf(sample)) << segment << " " << sample.name;
    }
    directory_.reset();
  }
}

// Heads are those of before the rewriting: of runs that were copied, of an extent that was encrypted meanwhile, and of
// extents that no row needed any more.
TEST_F(GoldenStoreTest, ReadsCopiedAndReencodedExtentsByTheMap) {
  Open("rewritten.qseg");
  ReadRewritten();
}

TEST_F(GoldenStoreTest, ReadsByTheCopyOfTheMap) {
  Open("rewritten-copy.qseg");
  const std::string path =
      "/home/stores/" + StoreDirectoryName(golden_v1::kStore) + "/" + SegmentFileName(golden_v1::kSegment);
  ASSERT_TRUE(env_.FlipBit(path, kSegmentHeaderSizeBytes + 30, 1));
  ReadRewritten();
}

}  // namespace
}  // namespace quarry
