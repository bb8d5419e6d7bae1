// DecodeSegmentHeader on arbitrary blocks, as they are and with magic and checksum made right.
#include <algorithm>
#include <vector>

#include "base/fuzz_check.h"
#include "format/segment_header.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

void Check(std::span<const uint8_t> block) {
  const Result<SegmentHeader> header = DecodeSegmentHeader(block);
  if (!header.ok()) return;
  FuzzCheck(DecodeSegmentHeader(block, header->store, header->segment).ok(), "a segment is the one it says");
  std::vector<uint8_t> again(kSegmentHeaderSizeBytes);
  EncodeSegmentHeader(*header, std::span<uint8_t, kSegmentHeaderSizeBytes>(again));
  FuzzCheck(std::equal(again.begin(), again.end(), block.begin()), "the header encodes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Check({data, size});
  SegmentHeader some;
  some.store = StoreId{1};
  some.segment = SegmentNumber{1};
  std::vector<uint8_t> block(kSegmentHeaderSizeBytes);
  EncodeSegmentHeader(some, std::span<uint8_t, kSegmentHeaderSizeBytes>(block));
  // Behind the magic: first with the input's version, then with a right one.
  std::copy_n(data, std::min(size, block.size() - 16), block.begin() + 8);
  Reseal(block, block.size() - 8);
  Check(block);
  block[8] = 1;
  block[9] = 0;
  Reseal(block, block.size() - 8);
  Check(block);
  return 0;
}
