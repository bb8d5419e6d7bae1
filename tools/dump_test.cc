// What quarry-dump says of the golden files, of damage, and of what it does not know.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "dump_file.h"
#include "dump_text.h"
#include "format/catalogue_log.h"

namespace quarry::dump {
namespace {

std::string Golden(const std::string& name) { return std::string(QUARRY_SOURCE_DIR) + "/tests/golden/v1/" + name; }

struct Outcome {
  Status status;
  std::string text;
};

Outcome Dump(const std::string& path, const Options& options = {}) {
  std::ostringstream out;
  const Status status = DumpFile(path, options, out);
  return {status, out.str()};
}

void ExpectLine(const std::string& text, const std::string& line) {
  EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << "no line\n" << line << "\nin\n" << text;
}

/// A damaged copy of a golden file, under its name, removed at the end.
class DamagedCopy {
 public:
  DamagedCopy(const std::string& name, size_t offset) : name_(name) {
    std::string pattern = (std::filesystem::temp_directory_path() / "quarry_dump_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    std::ifstream in(Golden(name), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  ~DamagedCopy() { std::filesystem::remove_all(directory_); }
  DamagedCopy(const DamagedCopy&) = delete;
  DamagedCopy& operator=(const DamagedCopy&) = delete;
  [[nodiscard]] std::string path() const { return directory_ + "/" + name_; }

 private:
  const std::string name_;
  std::string directory_;
};

TEST(DumpTest, Segment) {
  const Outcome outcome = Dump(Golden("segment.qseg"), {.verify = true});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  ExpectLine(outcome.text, "segment 3 of store 81985529216486895 (0123456789abcdef)");
  ExpectLine(outcome.text, "  created          2023-11-14 22:13:20.000000 UTC for InnoDB table 1234 on path 2");
  ExpectLine(
      outcome.text,
      "  offset 4096: extent of 1606, value 1500, codec none, 3 parts of 512 (3 raw), its first 10 bytes in the row");
  EXPECT_NE(outcome.text.find(" bytes of zeros (padding, unused or punched)\n"), std::string::npos);
  EXPECT_NE(outcome.text.find("  6 extents: "), std::string::npos);
}

TEST(DumpTest, EncryptedExtentsNameTheirKeys) {
  const Outcome outcome = Dump(Golden("encrypted.qseg"), {.verify = true});
  EXPECT_TRUE(outcome.status.ok()) << "checksums need no key: " << outcome.status.ToString();
  ExpectLine(outcome.text,
             "  offset 5760: extent of 376, value 5000, codec lz4, 3 parts of 2048 (0 raw), encrypted with key 4711 "
             "version 1");
  ExpectLine(outcome.text, "  key 4711 version 1: 1 extents, stored 376");
  EXPECT_NE(outcome.text.find("\n  key 4711 version 2: 5 extents, stored "), std::string::npos) << outcome.text;
}

TEST(DumpTest, RewrittenSegment) {
  const Outcome outcome = Dump(Golden("rewritten.qseg"), {.parts = true, .verify = true});
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  ExpectLine(
      outcome.text,
      "  rewritten        2027-01-15 08:00:00.000000 UTC, generation 1, 3 runs of extents up to 11192 (10.9 KiB)");
  EXPECT_NE(outcome.text.find("  run 0: 2624 of offset 5704, in the file at 8192\n"), std::string::npos)
      << outcome.text;
  ExpectLine(outcome.text, "  run 1: 296 of offset 12288, in the file at 10816, encoded anew");
  EXPECT_NE(outcome.text.find("  4 extents: "), std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("no extent"), std::string::npos) << outcome.text;
}

TEST(DumpTest, ALostHeaderOrMapOfARewrittenSegmentIsToldByItsCopy) {
  for (const size_t offset : {size_t{0}, size_t{40}, size_t{4096 + 5}}) {
    const DamagedCopy copy("rewritten-copy.qseg", offset);
    const Outcome outcome = Dump(copy.path(), {.verify = true});
    EXPECT_EQ(outcome.status.code(), StatusCode::kCorruption) << "it is told, and is damage";
    const std::string what = offset == 0 ? "magic mismatch: not a segment" : "checksum mismatch";
    EXPECT_NE(outcome.text.find(what + ": what follows is by its copy"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("  4 extents: "), std::string::npos) << outcome.text;
  }
  for (const size_t offset : {size_t{0}, size_t{40}}) {
    const DamagedCopy early("rewritten.qseg", offset);
    const Outcome outcome = Dump(early.path());
    EXPECT_EQ(outcome.status.code(), StatusCode::kCorruption);
    EXPECT_EQ(outcome.text, "") << "it has no copy";
  }
}

TEST(DumpTest, PartsAndLimit) {
  const Outcome all = Dump(Golden("segment.qseg"), {.parts = true});
  EXPECT_NE(all.text.find("    part 0 at 4212: 512 stored raw of 512, checksum "), std::string::npos) << all.text;
  const Outcome two = Dump(Golden("segment.qseg"), {.parts = true, .extents_max = 2});
  EXPECT_NE(two.text.find("codec lz4"), std::string::npos);
  EXPECT_EQ(two.text.find("codec zstd"), std::string::npos);
  EXPECT_NE(two.text.find("  6 extents: "), std::string::npos) << "all are counted";
}

TEST(DumpTest, ADamagedPartIsNamedAndTheRestIsTold) {
  const DamagedCopy copy("segment.qseg", 4212 + 512);
  EXPECT_TRUE(Dump(copy.path()).status.ok()) << "without --verify no part is read";
  const Outcome outcome = Dump(copy.path(), {.verify = true});
  EXPECT_EQ(outcome.status.ToString(),
            "corruption: store 81985529216486895 segment 3 offset 4724: part 1 checksum mismatch");
  EXPECT_NE(outcome.text.find("  6 extents: "), std::string::npos);
}

TEST(DumpTest, ATornExtentIsToldWithItsReason) {
  const DamagedCopy copy("segment.qseg", 4096 + 85);
  const Outcome outcome = Dump(copy.path(), {.verify = true});
  EXPECT_TRUE(outcome.status.ok()) << "a scan can't tell a torn extent from a damaged one";
  EXPECT_NE(
      outcome.text.find("bytes that are no extent\n    corruption: store 81985529216486895 segment 3 offset 4096: "
                        "extent index checksum mismatch\n"),
      std::string::npos)
      << outcome.text;
}

TEST(DumpTest, SmallFiles) {
  const Outcome catalogue = Dump(Golden("CATALOGUE"));
  ExpectLine(catalogue.text, "CATALOGUE with 10 records");
  ExpectLine(catalogue.text, "  data path 3: /data/three");
  ExpectLine(
      catalogue.text,
      "  segment of store 81985529216486895 3: path 2, poisoned, size 16384 (16.0 KiB), 5 extents, live 9000, dead "
      "70, the needed counted, appended plain 8000, "
      "appended encrypted 1000, oldest key version 4");
  ExpectLine(Dump(Golden("PATH")).text, "  path number      3");
  for (const char* name : {"CATALOGUE", "PATH"}) {
    const DamagedCopy copy(name, std::string(name) == "PATH" ? 30 : 60);
    EXPECT_EQ(Dump(copy.path()).status.code(), StatusCode::kCorruption) << name;
  }
}

TEST(DumpTest, NamesAreShownPrintable) {
  CatalogueStore store;
  store.store = {1};
  store.table_name = "d/\x1b[2J\nx";
  CatalogueDamage damage;
  damage.store = {1};
  damage.what = "gone\r\n\xe2\x80\xa8";
  const std::vector<uint8_t> file =
      EncodeCatalogue({CatalogueInstallation{}, store, DataPath{1, "/p\x07"}, damage, CatalogueEnd{}}, 1);
  std::string pattern = (std::filesystem::temp_directory_path() / "quarry_dump_XXXXXX").string();
  const std::string directory = ::mkdtemp(pattern.data());
  std::ofstream(directory + "/c", std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  const std::string text = Dump(directory + "/c").text;
  std::filesystem::remove_all(directory);
  EXPECT_NE(text.find("table 'd/\\x1b[2J\\x0ax', bound to"), std::string::npos) << text;
  ExpectLine(text, "  data path 1: /p\\x07");
  EXPECT_NE(text.find(": gone\\x0d\\x0a\\u2028\n"), std::string::npos) << text;
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<uint8_t>(c) >= 0x20) << text;
}

TEST(DumpTest, Heads) {
  const Outcome head = Dump(Golden("head-none.bin"));
  ExpectLine(head.text, "  prefix           10 bytes: \"Rows stay \"");
  ExpectLine(head.text, "  offset           4096");
  ExpectLine(head.text, "  value size       1500");
  ExpectLine(head.text, "  value checksum   ce8d5a65");
  std::ostringstream out;
  EXPECT_TRUE(DumpHexField("61620a", out).ok());
  EXPECT_EQ(out.str(), "raw value of 3 bytes: \"ab\\x0a\"\n");
  EXPECT_EQ(DumpHexField("6", out).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(DumpHexField("6g", out).message(), "'6g' is no pair of hex digits");
  const DamagedCopy copy("head-lz4.bin", 0);
  EXPECT_EQ(Dump(copy.path()).status.code(), StatusCode::kCorruption);
}

TEST(DumpTest, WhatItDoesNotKnow) {
  EXPECT_EQ(Dump(Golden("none-such")).status.code(), StatusCode::kNotFound);
  EXPECT_EQ(Dump(std::string(QUARRY_SOURCE_DIR) + "/CMakeLists.txt").status.code(), StatusCode::kInvalidArgument);
}

TEST(DumpTextTest, Sizes) {
  EXPECT_EQ(Size(0), "0");
  EXPECT_EQ(Size(10239), "10239");
  EXPECT_EQ(Size(10240), "10240 (10.0 KiB)");
  EXPECT_EQ(Size(256ULL << 20), "268435456 (256.0 MiB)");
  EXPECT_EQ(Time(0), "never");
}

}  // namespace
}  // namespace quarry::dump
