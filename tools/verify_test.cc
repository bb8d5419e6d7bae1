// What quarry-verify prints, and its exit status, for installations on real files.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "quarry/store.h"
#include "verify_rebuild.h"
#include "verify_report.h"

namespace quarry::verify {
namespace {

struct Outcome {
  int exit_status = -1;
  std::string out;
  std::string error;
};

/// A data directory with one store of three values, removed at the end.
class VerifyToolTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "quarry_verify_XXXXXX").string();
    data_directory_ = ::mkdtemp(pattern.data());
    const auto directory = Open();
    ASSERT_TRUE(directory.ok()) << directory.status().ToString();
    const auto store = (*directory)->OpenForAppend({7}, "shop/photos");
    ASSERT_TRUE(store.ok());
    UnsyncedExtents unsynced;
    for (uint8_t i = 0; i < 3; ++i) {
      const std::vector<uint8_t> value(5000, static_cast<uint8_t>('a' + i));
      ASSERT_TRUE((*store)->Append(value, {}, &unsynced).ok());
    }
    ASSERT_TRUE((*directory)->Sync(unsynced).ok());
  }
  void TearDown() override { std::filesystem::remove_all(data_directory_); }

  [[nodiscard]] std::string Home() const { return data_directory_ + "/" + kHomeName; }
  [[nodiscard]] std::string Segment() const { return Home() + "/stores/0000000000000001/00000001.qseg"; }

  [[nodiscard]] Result<std::unique_ptr<StoreDirectory>> Open() const {
    DirectoryOptions options;
    options.home_path = Home();
    options.zeroed_pool_bytes = 0;
    return StoreDirectory::Open(options);
  }

  [[nodiscard]] Outcome Verify(ReportOptions options = {}) const {
    std::ostringstream out;
    std::ostringstream error;
    VerifyOptions verify;
    verify.home_path = HomeOf(data_directory_);
    Report report(
        options, [] { return false; }, &out, &error);
    const int exit_status = report.Finish(verify.home_path, VerifyInstallation(verify, &report));
    return {exit_status, out.str(), error.str()};
  }

  static void Flip(const std::string& path, std::streamoff offset) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(offset);
    const auto byte = static_cast<char>(file.get() ^ 4);
    file.seekp(offset);
    file.put(byte);
  }

  std::string data_directory_;
};

TEST_F(VerifyToolTest, AllWell) {
  const Outcome outcome = Verify();
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.out, "1 stores, 1 segments, 3 extents, 3 parts, 40.0 KiB read\nall well\n");
  EXPECT_EQ(outcome.error, "");
}

TEST_F(VerifyToolTest, DamageIsNamedWithTableAndPlace) {
  Flip(Segment(), 4096 + 2000);
  const Outcome outcome = Verify();
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_NE(outcome.out.find("damaged: store 1 (table shop/photos) segment 1 offset 4188 length 5000: part 0 checksum "
                             "mismatch\n  in " +
                             Segment() + "\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find(", 1 damaged\nDAMAGE FOUND"), std::string::npos) << outcome.out;
}

TEST_F(VerifyToolTest, Json) {
  Flip(Segment(), 4096 + 2000);
  const Outcome outcome = Verify({.json = true});
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_EQ(outcome.out.find("{\"findings\": [\n  {\"kind\": \"damaged\", \"path\": \"" + Segment() +
                             "\", \"store\": 1, \"table_id\": 7, \"table\": \"shop/photos\", \"segment\": 1, "
                             "\"offset\": 4188, \"length\": 5000, \"what\": \"part 0 checksum mismatch\"}\n],\n"
                             "\"exit_status\": 1,\n\"stores\": 1, "),
            0U)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\"counts\": {\"damaged\": 1, \"missing\": 0, "), std::string::npos) << outcome.out;
}

TEST_F(VerifyToolTest, ARunningServerIsLeftAlone) {
  const auto server = Open();
  ASSERT_TRUE(server.ok());
  const Outcome outcome = Verify();
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_NE(outcome.error.find("is in use by a running server: stop it first"), std::string::npos) << outcome.error;
  EXPECT_EQ(outcome.out, "");
  // Nor does a second server start on the same files.
  const auto second = Open();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
}

TEST_F(VerifyToolTest, WhatIsNoInstallation) {
  std::filesystem::remove_all(Home());
  const Outcome outcome = Verify();
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_NE(outcome.error.find("there is no Quarry in '"), std::string::npos) << outcome.error;
  EXPECT_EQ(Verify({.json = true}).out.find("{\"findings\": [],\n\"exit_status\": 2,\n\"error\": "), 0U);
}

TEST_F(VerifyToolTest, ForeignAndMissingFilesAndLinks) {
  std::ofstream(Home() + "/stores/0000000000000001/notes.txt") << "mine";
  const Outcome foreign = Verify();
  EXPECT_EQ(foreign.exit_status, 3);
  EXPECT_NE(foreign.out.find("foreign: no file of Quarry's"), std::string::npos) << foreign.out;
  // A symbolic link in place of a segment is not followed, wherever it points.
  std::filesystem::rename(Segment(), data_directory_ + "/elsewhere");
  std::filesystem::create_symlink(data_directory_ + "/elsewhere", Segment());
  const Outcome link = Verify();
  EXPECT_EQ(link.exit_status, 3);
  EXPECT_NE(link.out.find("unreadable: store 1"), std::string::npos) << link.out;
  std::filesystem::remove(Segment());
  const Outcome missing = Verify();
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_NE(missing.out.find("missing: store 1 (table shop/photos) segment 1: the catalogue lists this segment"),
            std::string::npos)
      << missing.out;
}

TEST(VerifyTextTest, JsonStrings) {
  EXPECT_EQ(JsonString("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
  EXPECT_EQ(JsonString("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
  EXPECT_EQ(JsonString("\xff\xc3"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST_F(VerifyToolTest, RebuildsACatalogueAndSaysSo) {
  std::ostringstream out;
  std::ostringstream error;
  EXPECT_EQ(Rebuild({"/nowhere", {}}, &out, &error), 2);
  EXPECT_NE(error.str().find("is no folder of stores"), std::string::npos) << error.str();
  EXPECT_EQ(Rebuild({Home(), {}}, &out, &error), 0);
  EXPECT_NE(out.str().find("nothing is to be done"), std::string::npos) << out.str();
  for (const auto& entry : std::filesystem::directory_iterator(Home())) {
    if (entry.path().filename().string().starts_with("CATALOGUE-")) std::filesystem::remove(entry.path());
  }
  EXPECT_EQ(Verify().exit_status, 1);
  EXPECT_FALSE(Open().ok());
  out.str("");
  EXPECT_EQ(Rebuild({Home(), {}, true}, &out, &error), 0);
  EXPECT_NE(out.str().find("nothing was changed"), std::string::npos) << out.str();
  EXPECT_FALSE(Open().ok());
  EXPECT_EQ(Rebuild({Home(), {}}, &out, &error), 0);
  EXPECT_NE(out.str().find("1 of the stores lose their table"), std::string::npos) << out.str();
  EXPECT_EQ(Verify().exit_status, 0) << Verify().out;
  EXPECT_TRUE(Open().ok());
}

}  // namespace
}  // namespace quarry::verify
