// DecodePathMarker and DecodeOpenedRecord on arbitrary files, as they are and as the body of a
// right envelope.
#include <algorithm>
#include <vector>

#include "base/fuzz_check.h"
#include "format/magic.h"
#include "format/path_marker.h"
#include "format/small_file.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

void Check(std::span<const uint8_t> file) {
  if (const Result<PathMarker> marker = DecodePathMarker(file); marker.ok()) {
    const std::vector<uint8_t> again = EncodePathMarker(*marker);
    FuzzCheck(std::equal(again.begin(), again.end(), file.begin(), file.end()), "the marker encodes back");
  }
  if (const Result<OpenedRecord> record = DecodeOpenedRecord(file); record.ok()) {
    const std::vector<uint8_t> again = EncodeOpenedRecord(*record);
    FuzzCheck(std::equal(again.begin(), again.end(), file.begin(), file.end()), "the record encodes back");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  Check(input);
  Check(WrapSmallFile(kPathMagic, 1, input));
  Check(WrapSmallFile(kOpenedMagic, 1, input));
  return 0;
}
