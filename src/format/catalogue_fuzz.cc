// ReadCatalogueLog on arbitrary files, as they are and with each frame and body resealed.
#include <algorithm>
#include <vector>

#include "base/fuzz_check.h"
#include "format/catalogue_log.h"
#include "format/catalogue_state.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

constexpr uint64_t kGeneration = 1;
constexpr size_t kFrameChecksumOffset = 40;

void Check(std::span<const uint8_t> file) {
  const Result<CatalogueLog> log = ReadCatalogueLog(file, kGeneration);
  if (!log.ok()) return FuzzCheck(log.status().code() == StatusCode::kNotSupported, "only what is newer is refused");
  CatalogueState state;
  for (const CatalogueRecord& record : log->records) state.Apply(record);
  std::vector<CatalogueRecord> records = state.Records();
  records.emplace_back(CatalogueEnd{state.installation});
  const Result<CatalogueLog> again = ReadCatalogueLog(EncodeCatalogue(records, kGeneration), kGeneration);
  FuzzCheck(again.ok() && again->losses.empty() && again->has_snapshot, "what was read can be written");
  FuzzCheck(again->records == records, "the snapshot reads back");
}

// From the first byte on, as if each record were right.
std::vector<uint8_t> Resealed(std::span<const uint8_t> input) {
  std::vector<uint8_t> file(input.begin(), input.end());
  for (size_t at = 0; at + kCatalogueFrameSizeBytes <= file.size();) {
    const std::span<uint8_t> rest = std::span(file).subspan(at);
    const uint64_t body_size = LoadLittleEndian<uint32_t>(rest, 4) % 512;
    StoreLittleEndian(rest, 4, static_cast<uint32_t>(body_size));
    Reseal(rest, kFrameChecksumOffset);
    const size_t end = kCatalogueFrameSizeBytes + static_cast<size_t>(body_size + 7) / 8 * 8;
    if (end + sizeof(uint64_t) > rest.size()) break;
    StoreLittleEndian(rest, end, Checksum64(rest.subspan(kFrameChecksumOffset, end - kFrameChecksumOffset)));
    at += end + sizeof(uint64_t);
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  Check(input);
  Check(Resealed(input));
  return 0;
}
