// Writes the golden files of format version 1 into the directory given. Run once, when the version was made; the tests
// only read what it wrote. Target: quarry_golden_v1 (not built by default).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "codec/codec.h"
#include "codec/golden_v1_samples.h"
#include "format/extent.h"

namespace quarry {
namespace {

void WriteFile(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void PadTo(std::vector<uint8_t>* bytes, size_t unit) { bytes->resize((bytes->size() + unit - 1) / unit * unit, 0); }

// Appends the extent of `sample` and returns its locator.
Locator AppendExtent(const golden_v1::ExtentSample& sample, std::vector<uint8_t>* segment) {
  PadTo(segment, sample.at_block_start ? kSegmentBlockSizeBytes : kExtentAlignmentBytes);
  const std::vector<uint8_t> value = golden_v1::ValueOf(sample);
  ExtentHeader header;
  header.store = golden_v1::kStore;
  header.segment = golden_v1::kSegment;
  header.offset_bytes = segment->size();
  header.value_size_bytes = value.size();
  header.part_size_bytes = sample.part_size_bytes;
  header.part_count = PartCount(value.size(), sample.part_size_bytes);
  header.reserved_size_bytes = sample.reserved_size_bytes;
  header.codec = sample.codec;
  std::vector<PartEntry> parts;
  std::vector<uint8_t> stored;
  for (uint32_t part = 0; part < header.part_count; ++part) {
    const auto in = std::span<const uint8_t>(value).subspan(static_cast<size_t>(part) * sample.part_size_bytes,
                                                            PartSizeOf(header, part));
    std::vector<uint8_t> out(in.size());
    const CompressedPart compressed = CompressPart(sample.codec, in, out);
    const auto bytes = compressed.raw ? in : std::span<const uint8_t>(out).first(compressed.stored_size_bytes);
    PartEntry entry;
    entry.checksum = Checksum64(bytes);
    entry.stored_size_bytes = static_cast<uint32_t>(bytes.size());
    entry.raw = compressed.raw;
    parts.push_back(entry);
    header.stored_total_bytes += bytes.size();
    stored.insert(stored.end(), bytes.begin(), bytes.end());
  }
  std::vector<uint8_t> index(HeaderAndIndexSizeBytes(header));
  const uint32_t checksum = EncodeExtentIndex(header, parts, {}, index);
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
  for (const golden_v1::ExtentSample& sample : golden_v1::Extents()) {
    const Locator locator = AppendExtent(sample, &segment);
    const std::string prefix = sample.prefix;
    std::vector<uint8_t> head(prefix.begin(), prefix.end());
    head.resize(prefix.size() + kTrailerSizeBytes);
    EncodeTrailer(locator, std::span<uint8_t>(head).last<kTrailerSizeBytes>());
    WriteFile(directory / ("head-" + std::string(sample.name) + ".bin"), head);
  }
  PadTo(&segment, kSegmentBlockSizeBytes);
  WriteFile(directory / "segment.qseg", segment);
  WriteFile(directory / "MANIFEST", EncodeManifest(golden_v1::StoreManifest()));
  WriteFile(directory / "DIRECTORY", EncodeDirectoryFile(golden_v1::Directory()));
  WriteFile(directory / "PATH", EncodePathMarker(golden_v1::Path()));
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
