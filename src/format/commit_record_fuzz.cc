// DecodeCommitRecord on arbitrary bytes, as they are and with magic and checksum made right.
#include <algorithm>
#include <array>
#include <vector>

#include "base/fuzz_check.h"
#include "quarry/commit_record.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

void Check(std::span<const uint8_t> bytes) {
  const Result<CommitRecord> record = DecodeCommitRecord(bytes);
  if (!record.ok()) return;
  FuzzCheck(!record->extents.empty() && record->extents.size() <= kCommitRecordExtentsMax, "what was decoded fits");
  std::array<uint8_t, kCommitRecordSizeBytes> again{};
  EncodeCommitRecord(*record, again);
  FuzzCheck(std::equal(again.begin(), again.end(), bytes.begin()), "the record encodes back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Check({data, size});
  if (size < kCommitRecordSizeBytes) return 0;
  std::vector<uint8_t> record(data, data + kCommitRecordSizeBytes);
  std::array<uint8_t, kCommitRecordSizeBytes> valid{};
  EncodeCommitRecord({StoreId{1}, {{SegmentNumber{1}, 0, 4096}}}, valid);
  // Magic and version: nearly every random one is no record, or a newer one.
  std::copy(valid.begin(), valid.begin() + 10, record.begin());
  Reseal(std::span<uint8_t>(record), kCommitRecordSizeBytes - 8);
  Check(record);
  record[10] = static_cast<uint8_t>(1 + record[10] % kCommitRecordExtentsMax);
  record[11] = 0;
  std::fill(record.begin() + 12, record.begin() + 16, uint8_t{0});
  std::fill(record.begin() + 24 + 16 * record[10], record.end() - 8, uint8_t{0});
  Reseal(std::span<uint8_t>(record), kCommitRecordSizeBytes - 8);
  Check(record);
  return 0;
}
