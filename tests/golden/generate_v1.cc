// Writes the golden files of format version 1 into the directory given. Run once, when the version was made; the tests
// only read what it wrote. Target: quarry_golden_v1 (not built by default).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "codec/codec.h"
#include "codec/golden_v1_samples.h"
#include "format/extent.h"
#include "format/part_cipher.h"
#include "format/segment_map.h"
#include "format/value_checksum.h"

namespace quarry {
namespace {

using golden_v1::ExtentSample;

void WriteFile(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void PadTo(std::vector<uint8_t>* bytes, size_t unit) { bytes->resize((bytes->size() + unit - 1) / unit * unit, 0); }

struct MadeExtent {
  std::vector<uint8_t> bytes;
  Locator locator;
};

// The part as it is stored: compressed where that pays, with its check and encrypted when there is a cipher.
std::vector<uint8_t> MakePart(Cipher* cipher, Codec codec, uint32_t part, std::span<const uint8_t> in, bool* raw) {
  std::vector<uint8_t> plain(in.size());
  const CompressedPart compressed = CompressPart(codec, in, plain);
  if (compressed.raw) std::copy(in.begin(), in.end(), plain.begin());
  *raw = compressed.raw;
  plain.resize(compressed.stored_size_bytes);
  if (cipher == nullptr) return plain;
  plain.resize(plain.size() + kPartCheckSizeBytes);
  std::vector<uint8_t> sealed(plain.size());
  if (!SealPart(cipher, part, plain, sealed).ok()) throw std::runtime_error("cannot encrypt");
  return sealed;
}

// Extent number `number`, for the place `offset_bytes`.
MadeExtent MakeExtent(const ExtentSample& sample, size_t number, uint64_t offset_bytes, bool encrypted) {
  const std::vector<uint8_t> value = golden_v1::ValueOf(sample);
  const auto prefix = std::span<const uint8_t>(value).first(sample.prefix_size_bytes);
  const auto content = std::span<const uint8_t>(value).subspan(prefix.size());
  const CipherParameters parameters = golden_v1::ParametersOf(number);
  const std::unique_ptr<Cipher> cipher = golden_v1::Provider()->Open(parameters).value();
  ExtentHeader header;
  header.store = golden_v1::kStore;
  header.segment = golden_v1::kSegment;
  header.offset_bytes = offset_bytes;
  header.identity = golden_v1::IdentityOf(number);
  header.content_size_bytes = content.size();
  header.prefix_size_bytes = sample.prefix_size_bytes;
  header.part_size_bytes = sample.part_size_bytes;
  header.part_count = PartCount(content.size(), sample.part_size_bytes);
  header.codec = sample.codec;
  header.encrypted = encrypted;
  std::vector<PartEntry> parts;
  std::vector<uint8_t> stored;
  for (uint32_t part = 0; part < header.part_count; ++part) {
    const auto in = content.subspan(static_cast<size_t>(part) * sample.part_size_bytes, PartSizeOf(header, part));
    PartEntry entry;
    const std::vector<uint8_t> bytes = MakePart(encrypted ? cipher.get() : nullptr, sample.codec, part, in, &entry.raw);
    entry.checksum = Checksum64(bytes);
    entry.stored_size_bytes = static_cast<uint32_t>(bytes.size());
    parts.push_back(entry);
    header.stored_total_bytes += bytes.size();
    stored.insert(stored.end(), bytes.begin(), bytes.end());
  }
  MadeExtent made;
  made.bytes.resize(HeaderAndIndexSizeBytes(header));
  EncodeExtentIndex(header, parts, parameters, golden_v1::kSalt, made.bytes);
  made.bytes.insert(made.bytes.end(), stored.begin(), stored.end());
  made.locator = LocatorOf(header);
  made.locator.prefix_tag = Checksum32(prefix);
  made.locator.value_checksum = ValueChecksumOf(value, sample.prefix_size_bytes, sample.part_size_bytes);
  return made;
}

std::vector<uint8_t> HeadOf(const ExtentSample& sample, const Locator& locator) {
  std::vector<uint8_t> head = golden_v1::ValueOf(sample);
  head.resize(sample.prefix_size_bytes + kTrailerSizeBytes);
  EncodeTrailer(locator, std::span<uint8_t>(head).last<kTrailerSizeBytes>());
  return head;
}

std::vector<uint8_t> Generate(const std::filesystem::path& directory, const std::string& name, bool encrypted) {
  std::vector<uint8_t> segment(kSegmentHeaderSizeBytes);
  EncodeSegmentHeader(golden_v1::Segment(), std::span<uint8_t, kSegmentHeaderSizeBytes>(segment));
  size_t number = 0;
  for (const ExtentSample& sample : golden_v1::Extents()) {
    PadTo(&segment, sample.at_block_start ? kSegmentBlockSizeBytes : kExtentAlignmentBytes);
    const MadeExtent made = MakeExtent(sample, number++, segment.size(), encrypted);
    segment.insert(segment.end(), made.bytes.begin(), made.bytes.end());
    WriteFile(directory / ((encrypted ? "encrypted-head-" : "head-") + std::string(sample.name) + ".bin"),
              HeadOf(sample, made.locator));
  }
  PadTo(&segment, kSegmentBlockSizeBytes);
  WriteFile(directory / name, segment);
  return segment;
}

// The plain segment without some of its extents, one of them encrypted.
void GenerateRewritten(const std::filesystem::path& directory, const std::vector<uint8_t>& plain) {
  std::vector<SegmentRun> runs;
  std::vector<std::vector<uint8_t>> contents;
  size_t number = 0;
  uint64_t offset = kSegmentHeaderSizeBytes;
  for (const ExtentSample& sample : golden_v1::Extents()) {
    if (sample.at_block_start)
      offset = (offset + kSegmentBlockSizeBytes - 1) / kSegmentBlockSizeBytes * kSegmentBlockSizeBytes;
    const Locator locator = MakeExtent(sample, number, offset, false).locator;
    if (golden_v1::IsCopied(sample.name) || golden_v1::IsReencoded(sample.name)) {
      std::vector<uint8_t> bytes(plain.begin() + static_cast<std::ptrdiff_t>(offset),
                                 plain.begin() + static_cast<std::ptrdiff_t>(offset + locator.extent_size_bytes));
      const bool is_reencoded = golden_v1::IsReencoded(sample.name);
      if (is_reencoded) bytes = MakeExtent(sample, number, offset, true).bytes;
      PadTo(&bytes, kExtentAlignmentBytes);
      const bool continues = !is_reencoded && !runs.empty() && !runs.back().is_reencoded &&
                             runs.back().original_bytes + runs.back().size_bytes == offset;
      if (!continues) {
        runs.push_back({offset, 0, 0, is_reencoded});
        contents.emplace_back();
      }
      runs.back().size_bytes += bytes.size();
      contents.back().insert(contents.back().end(), bytes.begin(), bytes.end());
    }
    offset += locator.extent_size_bytes;
    ++number;
  }
  const SegmentMap map = SegmentMap::Place(runs);
  const std::vector<uint8_t> entries = map.Encode();
  SegmentHeader header = golden_v1::Segment();
  header.generation = 1;
  header.run_count = static_cast<uint32_t>(runs.size());
  header.data_end_bytes = map.data_end_bytes();
  header.map_checksum = Checksum64(entries);
  header.rewritten_micros = golden_v1::kRewrittenMicros;
  std::vector<uint8_t> file(kSegmentHeaderSizeBytes);
  EncodeSegmentHeader(header, std::span<uint8_t, kSegmentHeaderSizeBytes>(file));
  file.insert(file.end(), entries.begin(), entries.end());
  PadTo(&file, kSegmentBlockSizeBytes);
  for (const std::vector<uint8_t>& bytes : contents) file.insert(file.end(), bytes.begin(), bytes.end());
  PadTo(&file, kSegmentBlockSizeBytes);
  WriteFile(directory / "rewritten.qseg", file);
  // The same with the copy, which early files lack.
  const std::vector<uint8_t> early = file;
  const auto map_begin = early.begin() + static_cast<std::ptrdiff_t>(kSegmentHeaderSizeBytes);
  const auto map_end = early.begin() + static_cast<std::ptrdiff_t>(DataBeginBytes(header.run_count));
  file.insert(file.end(), map_begin, map_end);
  file.insert(file.end(), early.begin(), map_begin);
  WriteFile(directory / "rewritten-copy.qseg", file);
}

void GenerateAll(const std::filesystem::path& directory) {
  const std::vector<uint8_t> plain = Generate(directory, "segment.qseg", false);
  Generate(directory, "encrypted.qseg", true);
  GenerateRewritten(directory, plain);
  WriteFile(directory / "CATALOGUE", EncodeCatalogue(golden_v1::Catalogue(), golden_v1::kCatalogueGeneration));
  WriteFile(directory / "PATH", EncodePathMarker(golden_v1::Path()));
}

}  // namespace
}  // namespace quarry

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <directory>\n", argv[0]);
    return 2;
  }
  quarry::GenerateAll(argv[1]);
  return 0;
}
