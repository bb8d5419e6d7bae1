// DecodeField on arbitrary fields, as they are and with magic and checksum made right.
#include <algorithm>
#include <array>
#include <vector>

#include "base/fuzz_check.h"
#include "quarry/locator.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

void Check(std::span<const uint8_t> field) {
  const Result<DecodedField> decoded = DecodeField(field);
  if (!decoded.ok()) return;
  FuzzCheck(decoded->is_head == EndsLikeHead(field), "a field is a head exactly when it ends like one");
  if (!decoded->is_head) {
    FuzzCheck(decoded->prefix.data() == field.data() && decoded->prefix.size() == field.size(), "a raw field is whole");
    return;
  }
  FuzzCheck(decoded->prefix.size() + kTrailerSizeBytes == field.size(), "prefix and trailer make the head");
  (void)CheckPrefix(decoded->head());
  std::array<uint8_t, kTrailerSizeBytes> again{};
  EncodeTrailer(decoded->locator, again);
  FuzzCheck(std::equal(again.begin(), again.end(), field.end() - kTrailerSizeBytes), "the trailer encodes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Check({data, size});
  std::vector<uint8_t> field(data, data + size);
  if (field.size() < kTrailerSizeBytes) return 0;
  std::array<uint8_t, kTrailerSizeBytes> valid{};
  EncodeTrailer(Locator{}, valid);
  const std::span<uint8_t> trailer = std::span<uint8_t>(field).last(kTrailerSizeBytes);
  std::copy(valid.end() - 8, valid.end(), trailer.end() - 8);
  Reseal(trailer, kTrailerSizeBytes - 16);
  Check(field);
  // Nearly every random version is a newer one, and hardly a prefix size the one that is there.
  Locator locator;
  locator.prefix_size_bytes = static_cast<uint16_t>(size - kTrailerSizeBytes);
  EncodeTrailer(locator, valid);
  std::copy(valid.begin() + 40, valid.begin() + 44, trailer.begin() + 40);
  Reseal(trailer, kTrailerSizeBytes - 16);
  Check(field);
  return 0;
}
