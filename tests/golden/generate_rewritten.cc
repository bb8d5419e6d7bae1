// Writes the golden file of segment header version 2 into the directory given: the segment of version 1 (read from the
// first directory), rewritten. Run once, when the version was made. Target: quarry_golden_rewritten (not built by
// default).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "codec/golden_rewritten_samples.h"
#include "format/extent.h"
#include "format/segment_map.h"

namespace quarry {
namespace {

std::vector<uint8_t> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

void Generate(const std::filesystem::path& v1, const std::filesystem::path& v2) {
  const std::vector<uint8_t> old_file = ReadFile(v1 / "segment.qseg");
  std::vector<SegmentMap::Piece> pieces;
  for (const golden_v1::ExtentSample& sample : golden_v1::Extents()) {
    if (!golden_rewritten::Keeps(sample.name)) continue;
    const Locator locator = DecodeField(ReadFile(v1 / ("head-" + std::string(sample.name) + ".bin"))).value().locator;
    const uint64_t size = (locator.extent_size_bytes + 7) / 8 * 8;
    const bool continues =
        !pieces.empty() && pieces.back().original_bytes + pieces.back().size_bytes == locator.offset_bytes;
    if (!continues) pieces.push_back({locator.offset_bytes, 0});
    pieces.back().size_bytes += size;
  }
  const SegmentMap map = SegmentMap::Place(pieces);
  std::vector<uint8_t> file((map.data_end_bytes() + 4095) / 4096 * 4096);
  const std::vector<uint8_t> entries = map.Encode();
  SegmentHeader header = golden_rewritten::Segment();
  header.run_count = static_cast<uint32_t>(pieces.size());
  header.data_end_bytes = map.data_end_bytes();
  header.map_checksum = Checksum64(entries);
  EncodeSegmentHeader(header, std::span<uint8_t>(file).first<kSegmentHeaderSizeBytes>());
  std::copy(entries.begin(), entries.end(), file.begin() + kSegmentHeaderSizeBytes);
  for (const SegmentMap::Piece& piece : pieces) {
    std::copy_n(old_file.begin() + static_cast<std::ptrdiff_t>(piece.original_bytes), piece.size_bytes,
                file.begin() + static_cast<std::ptrdiff_t>(*map.Find(piece.original_bytes, piece.size_bytes)));
  }
  std::ofstream out(v2 / "segment.qseg", std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write the segment");
  std::printf("runs %zu, data end %llu, map checksum %016llx\n", pieces.size(),
              static_cast<unsigned long long>(header.data_end_bytes),
              static_cast<unsigned long long>(header.map_checksum));
}

}  // namespace
}  // namespace quarry

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s <directory of version 1> <directory to write to>\n", argv[0]);
    return 2;
  }
  quarry::Generate(argv[1], argv[2]);
  return 0;
}
