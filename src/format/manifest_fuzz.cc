// DecodeManifest on arbitrary files, as they are and as the body of a right envelope.
#include <algorithm>
#include <vector>

#include "base/fuzz_check.h"
#include "format/magic.h"
#include "format/manifest.h"
#include "format/small_file.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

void Check(std::span<const uint8_t> file) {
  const Result<Manifest> manifest = DecodeManifest(file, StoreId{0});
  if (!manifest.ok()) return;
  FuzzCheck(DecodeManifest(file, manifest->store).ok(), "a manifest is of the store it says");
  const std::vector<uint8_t> again = EncodeManifest(*manifest);
  FuzzCheck(std::equal(again.begin(), again.end(), file.begin(), file.end()), "the manifest encodes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  Check(input);
  Check(WrapSmallFile(kManifestMagic, 1, input));
  Check(WrapSmallFile(kManifestMagic, 2, input));
  return 0;
}
