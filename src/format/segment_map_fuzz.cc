// SegmentMap::Decode on arbitrary maps, under a header whose checksum is made right; then every look-up.
#include <algorithm>
#include <vector>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/fuzz_check.h"
#include "format/segment_map.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 8) return 0;
  const std::span<const uint8_t> input(data, size);
  SegmentHeader header;
  header.store = StoreId{1};
  header.segment = SegmentNumber{1};
  header.generation = 1;
  std::vector<uint8_t> bytes(input.begin() + 8, input.end());
  header.run_count = static_cast<uint32_t>(bytes.size() / 24);
  bytes.resize(static_cast<size_t>(MapSizeBytes(header.run_count)));
  header.data_end_bytes = LoadLittleEndian<uint64_t>(input, 0);
  // An input that gets past places and flags.
  if ((size & 1U) != 0) {
    const std::span<uint8_t> entries(bytes);
    header.data_end_bytes = DataBeginBytes(header.run_count);
    for (size_t at = 0; at < entries.size(); at += 24) {
      StoreLittleEndian(entries, at + 8, header.data_end_bytes);
      StoreLittleEndian(entries, at + 20, LoadLittleEndian<uint32_t>(entries, at + 20) & 1U);
      header.data_end_bytes += uint64_t{8} * LoadLittleEndian<uint32_t>(entries, at + 16);
    }
  }
  header.map_checksum = Checksum64(bytes);
  const Result<SegmentMap> map = SegmentMap::Decode(bytes, header);
  if (!map.ok()) return 0;
  FuzzCheck(map->Encode() == bytes, "the map encodes back");
  for (const SegmentRun& run : map->runs()) {
    const auto found = map->Find(run.original_bytes, 8);
    FuzzCheck(found && found->place_bytes == run.place_bytes, "a run is found at its begin");
  }
  const SegmentRun& last = map->runs().back();
  FuzzCheck(last.is_reencoded || !map->Find(last.original_bytes, map->data_end_bytes()), "nothing exceeds its run");
  return 0;
}
