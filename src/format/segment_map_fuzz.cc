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
  header.data_end_bytes = LoadLittleEndian<uint64_t>(input, 0);
  std::vector<uint8_t> bytes(input.begin() + 8, input.end());
  header.run_count = static_cast<uint32_t>(bytes.size() / 16);
  bytes.resize(static_cast<size_t>(MapSizeBytes(header.run_count)));
  // An input that can get past the first entry.
  if (bytes.size() >= 16 && (size & 1U) != 0) {
    StoreLittleEndian(std::span<uint8_t>(bytes), 8, DataBeginBytes(header.run_count));
  }
  header.map_checksum = Checksum64(bytes);
  const Result<SegmentMap> map = SegmentMap::Decode(bytes, header);
  if (!map.ok()) return 0;
  FuzzCheck(map->Encode() == bytes, "the map encodes back");
  for (const SegmentRun& run : map->runs()) {
    FuzzCheck(map->Find(run.original_bytes, 8) == run.place_bytes, "a run is found at its begin");
    FuzzCheck(map->OriginalOf(run.place_bytes) == run.original_bytes, "and back");
  }
  FuzzCheck(!map->Find(map->runs().back().original_bytes, map->data_end_bytes()), "nothing is longer than its run");
  return 0;
}
