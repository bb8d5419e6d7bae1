// Writes the golden files of format version 2 into the directory given. Run once, when the version was made; the tests
// only read what it wrote. Target: quarry_golden_v2 (not built by default).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "codec/codec.h"
#include "codec/golden_v2_samples.h"
#include "format/extent.h"
#include "format/part_cipher.h"

namespace quarry {
namespace {

void WriteFile(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void PadTo(std::vector<uint8_t>* bytes, size_t unit) { bytes->resize((bytes->size() + unit - 1) / unit * unit, 0); }

// The part as it is stored: compressed where that pays, with its check, encrypted.
std::vector<uint8_t> MakePart(Cipher* cipher, Codec codec, uint32_t part, std::span<const uint8_t> in, bool* raw) {
  std::vector<uint8_t> plain(in.size() + kPartCheckSizeBytes);
  const CompressedPart compressed = CompressPart(codec, in, std::span<uint8_t>(plain).first(in.size()));
  if (compressed.raw) std::copy(in.begin(), in.end(), plain.begin());
  *raw = compressed.raw;
  plain.resize(compressed.stored_size_bytes + kPartCheckSizeBytes);
  std::vector<uint8_t> sealed(plain.size());
  if (!SealPart(cipher, part, plain, sealed).ok()) throw std::runtime_error("cannot encrypt");
  return sealed;
}

// Appends extent number `number` and returns its locator.
Locator AppendExtent(const golden_v1::ExtentSample& sample, size_t number, std::vector<uint8_t>* segment) {
  PadTo(segment, sample.at_block_start ? kSegmentBlockSizeBytes : kExtentAlignmentBytes);
  const std::vector<uint8_t> value = golden_v1::ValueOf(sample);
  const CipherParameters parameters = golden_v2::ParametersOf(number);
  const std::unique_ptr<Cipher> cipher = golden_v2::Provider()->Open(parameters).value();
  ExtentHeader header;
  header.store = golden_v1::kStore;
  header.segment = golden_v1::kSegment;
  header.offset_bytes = segment->size();
  header.value_size_bytes = value.size();
  header.part_size_bytes = sample.part_size_bytes;
  header.part_count = PartCount(value.size(), sample.part_size_bytes);
  header.reserved_size_bytes = sample.reserved_size_bytes;
  header.codec = sample.codec;
  header.encrypted = true;
  std::vector<PartEntry> parts;
  std::vector<uint8_t> stored;
  for (uint32_t part = 0; part < header.part_count; ++part) {
    const auto in = std::span<const uint8_t>(value).subspan(static_cast<size_t>(part) * sample.part_size_bytes,
                                                            PartSizeOf(header, part));
    PartEntry entry;
    const std::vector<uint8_t> bytes = MakePart(cipher.get(), sample.codec, part, in, &entry.raw);
    entry.checksum = Checksum64(bytes);
    entry.stored_size_bytes = static_cast<uint32_t>(bytes.size());
    parts.push_back(entry);
    header.stored_total_bytes += bytes.size();
    stored.insert(stored.end(), bytes.begin(), bytes.end());
  }
  std::vector<uint8_t> index(HeaderAndIndexSizeBytes(header));
  const uint32_t checksum = EncodeExtentIndex(header, parts, parameters, index);
  const size_t start = segment->size();
  segment->insert(segment->end(), index.begin(), index.end());
  segment->insert(segment->end(), stored.begin(), stored.end());
  if (sample.reserved_size_bytes != 0) segment->resize(start + sample.reserved_size_bytes, 0);
  Locator locator = LocatorOf(header, checksum);
  locator.value_sample = SampleValue(value);
  return locator;
}

void Generate(const std::filesystem::path& directory) {
  std::vector<uint8_t> segment(kSegmentHeaderSizeBytes);
  EncodeSegmentHeader(golden_v1::Segment(), std::span<uint8_t, kSegmentHeaderSizeBytes>(segment));
  size_t number = 0;
  for (const golden_v1::ExtentSample& sample : golden_v2::Extents()) {
    const Locator locator = AppendExtent(sample, number++, &segment);
    const std::string prefix = sample.prefix;
    std::vector<uint8_t> head(prefix.begin(), prefix.end());
    head.resize(prefix.size() + kTrailerSizeBytes);
    EncodeTrailer(locator, std::span<uint8_t>(head).last<kTrailerSizeBytes>());
    WriteFile(directory / ("head-" + std::string(sample.name) + ".bin"), head);
  }
  PadTo(&segment, kSegmentBlockSizeBytes);
  WriteFile(directory / "segment.qseg", segment);
  WriteFile(directory / "MANIFEST", EncodeManifest(golden_v2::StoreManifest()));
}

}  // namespace
}  // namespace quarry

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s <directory>\n", argv[0]);
    return 2;
  }
  quarry::Generate(argv[1]);
  return 0;
}
