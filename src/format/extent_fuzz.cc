// DecodeExtentHeader and DecodeExtentIndex on arbitrary bytes, as they are and with magic, identity and checksums made
// right, so that every check behind them is reached.
#include <algorithm>
#include <vector>

#include "base/fuzz_check.h"
#include "format/extent.h"

using namespace quarry;  // NOLINT(google-build-using-namespace)

namespace {

constexpr SegmentOrigin kOrigin{StoreId{7}, SegmentNumber{3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
constexpr uint64_t kOffset = 8192;

void CheckGeometry(const ExtentIndex& index) {
  const ExtentHeader& header = index.header;
  uint64_t content_size = 0;
  uint64_t offset = HeaderAndIndexSizeBytes(header);
  for (uint32_t part = 0; part < header.part_count; ++part) {
    FuzzCheck(index.parts[part].offset_in_extent_bytes == offset, "parts are consecutive");
    FuzzCheck(index.parts[part].stored_size_bytes <= PartSizeOf(header, part) + PartOverheadBytes(header.encrypted),
              "no part is stored larger than it is");
    offset += index.parts[part].stored_size_bytes;
    content_size += PartSizeOf(header, part);
  }
  FuzzCheck(offset == ExtentSizeBytes(header), "parts end where the extent ends");
  FuzzCheck(content_size == header.content_size_bytes, "parts make the content");
  FuzzCheck(NextExtentOffsetBytes(header) >= header.offset_bytes + ExtentSizeBytes(header), "extents do not overlap");
  const PartRange all = PartsOfRange(header, 0, header.content_size_bytes);
  FuzzCheck(all.count == header.part_count, "the whole content is all parts");
}

void Check(std::span<const uint8_t> bytes) {
  const Result<ExtentHeader> header = DecodeExtentHeader(bytes, kOrigin, kOffset);
  const Result<ExtentIndex> index = DecodeExtentIndex(bytes, kOrigin, kOffset);
  if (!header.ok()) FuzzCheck(!index.ok(), "no index without a header");
  if (!index.ok()) return;
  CheckGeometry(*index);
  const Locator locator = LocatorOf(index->header);
  FuzzCheck(DecodeExtentIndex(bytes, locator, kOrigin.salt).ok(), "an extent is the one of its own locator");
  FuzzCheck(FirstReadSizeBytes(locator, 0) <= locator.extent_size_bytes, "the first read stays in the extent");
  std::vector<uint8_t> again(HeaderAndIndexSizeBytes(index->header));
  EncodeExtentIndex(index->header, index->parts, index->cipher, kOrigin.salt, again);
  FuzzCheck(std::equal(again.begin(), again.end(), bytes.begin()), "header and index encode back");
}

// A well-formed extent whose numbers are drawn from the input, as a start for what the mutations then break.
std::vector<uint8_t> Plausible(std::span<const uint8_t> input) {
  ByteReader reader(input);
  ExtentHeader header;
  header.store = kOrigin.store;
  header.segment = kOrigin.segment;
  header.offset_bytes = kOffset;
  header.identity = uint64_t{1} + reader.U32();
  header.prefix_size_bytes = reader.U16();
  header.part_size_bytes = kPartSizeMinBytes + reader.U16() % 4096;
  header.content_size_bytes = reader.U32() % (64U * header.part_size_bytes);
  header.part_count = PartCount(header.content_size_bytes, header.part_size_bytes);
  header.codec = static_cast<Codec>(reader.U8() % 3);
  header.encrypted = reader.U8() % 2 == 0;
  const uint32_t overhead = PartOverheadBytes(header.encrypted);
  std::vector<PartEntry> parts(header.part_count);
  for (uint32_t part = 0; part < header.part_count; ++part) {
    const uint32_t size = PartSizeOf(header, part);
    parts[part].raw = header.codec == Codec::kNone || reader.U8() % 2 == 0 || size == 1;
    parts[part].stored_size_bytes = (parts[part].raw ? size : 1 + reader.U16() % (size - 1)) + overhead;
    parts[part].checksum = reader.U64();
  }
  CipherParameters cipher{1 + reader.U32() % 2, 1 + reader.U32() % 100, 1 + reader.U32() % 100, {}};
  for (uint8_t& byte : cipher.salt) byte = reader.U8();
  std::vector<uint8_t> bytes(HeaderAndIndexSizeBytes(static_cast<uint32_t>(parts.size()), header.encrypted));
  EncodeExtentIndex(header, parts, cipher, kOrigin.salt, bytes);
  FuzzCheck(DecodeExtentIndex(bytes, kOrigin, kOffset).ok(), "what was encoded decodes");
  return bytes;
}

// Index checksum and tag made right; the index as long as the header says.
void ResealAll(std::span<uint8_t> bytes) {
  const uint64_t size = HeaderAndIndexSizeBytes(LoadLittleEndian<uint32_t>(bytes, 60), bytes[11] == 1);
  if (size <= bytes.size()) {
    const auto index = bytes.first(static_cast<size_t>(size)).subspan(kExtentHeaderSizeBytes);
    StoreLittleEndian(bytes, 64, Checksum64(index));
  }
  std::vector<uint8_t> salted(kOrigin.salt.begin(), kOrigin.salt.end());
  salted.insert(salted.end(), bytes.begin(), bytes.begin() + 72);
  StoreLittleEndian(bytes, 72, Checksum64(salted));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size);
  Check(input);
  std::vector<uint8_t> plausible = Plausible(input);
  Check(plausible);
  if (size >= HeaderAndIndexSizeBytes(0, false)) {
    // The input as header and index, under a right identity.
    std::vector<uint8_t> bytes(input.begin(), input.end());
    std::copy_n(plausible.begin(), 10, bytes.begin());
    std::copy_n(plausible.begin() + 12, 28, bytes.begin() + 12);
    ResealAll(bytes);
    Check(bytes);
  }
  if (size >= 4) {
    // One byte of a well-formed extent changed.
    const size_t at = (data[0] | static_cast<size_t>(data[1]) << 8U) % plausible.size();
    plausible[at] = data[2];
    if (data[3] % 2 == 0) ResealAll(plausible);
    Check(plausible);
  }
  return 0;
}
