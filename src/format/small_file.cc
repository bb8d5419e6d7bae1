#include "format/small_file.h"

#include "base/checksum.h"
#include "base/coding.h"

namespace quarry {

namespace {

constexpr size_t kEnvelopeHeaderSize = 16;
constexpr size_t kChecksumSize = 8;

}  // namespace

Status CheckSmallFileSize(uint64_t size_bytes, const std::string& kind, uint64_t store) {
  if (size_bytes <= kSmallFileMaxBytes) return Status::Ok();
  return Status::Corruption(store, 0, 0,
                            kind + " would have " + std::to_string(size_bytes) + " bytes, at most " +
                                std::to_string(kSmallFileMaxBytes) + " are possible");
}

std::vector<uint8_t> WrapSmallFile(uint64_t magic, uint16_t version, std::span<const uint8_t> body) {
  ByteWriter writer;
  writer.U64(magic);
  writer.U16(version);
  writer.U16(0);
  writer.U32(static_cast<uint32_t>(body.size()));
  writer.Bytes(body);
  writer.U64(Checksum64(writer.bytes()));
  return std::move(writer).Take();
}

Result<std::span<const uint8_t>> UnwrapSmallFile(std::span<const uint8_t> file, uint64_t magic, uint16_t version,
                                                 const std::string& kind, uint64_t store) {
  const auto corruption = [&](const std::string& what) { return Status::Corruption(store, 0, 0, kind + " " + what); };
  ByteReader reader(file);
  const uint64_t found_magic = reader.U64();
  const uint16_t found_version = reader.U16();
  const uint16_t zero = reader.U16();
  const uint32_t body_size = reader.U32();
  if (!reader.ok()) return corruption("is cut off at " + std::to_string(file.size()) + " bytes");
  if (found_magic != magic) return corruption("magic mismatch: not such a file");
  if (file.size() != kEnvelopeHeaderSize + static_cast<uint64_t>(body_size) + kChecksumSize) {
    return corruption("has " + std::to_string(file.size()) + " bytes, its header says " +
                      std::to_string(kEnvelopeHeaderSize + static_cast<uint64_t>(body_size) + kChecksumSize));
  }
  const std::span<const uint8_t> body = reader.Bytes(body_size);
  if (reader.U64() != Checksum64(file.first(file.size() - kChecksumSize))) return corruption("checksum mismatch");
  if (found_version > version) {
    return Status::NotSupported(kind + " of version " + std::to_string(found_version) +
                                " was written by a newer Quarry; this one reads up to " + std::to_string(version));
  }
  if (found_version == 0 || zero != 0) return corruption("has an impossible version or reserved bytes");
  return body;
}

}  // namespace quarry
