#include "format/path_marker.h"

#include <algorithm>

#include "base/coding.h"
#include "format/magic.h"
#include "format/small_file.h"

namespace quarry {

namespace {

constexpr uint16_t kPathVersion = 1;
constexpr uint16_t kOpenedVersion = 1;

InstallationId ReadInstallation(ByteReader* reader) {
  InstallationId installation{};
  const std::span<const uint8_t> bytes = reader->Bytes(installation.size());
  std::copy(bytes.begin(), bytes.end(), installation.begin());
  return installation;
}

}  // namespace

std::vector<uint8_t> EncodePathMarker(const PathMarker& marker) {
  ByteWriter body;
  body.Bytes(marker.installation);
  body.U32(marker.path_number);
  body.U64(marker.created_micros);
  return WrapSmallFile(kPathMagic, kPathVersion, body.bytes());
}

Result<PathMarker> DecodePathMarker(std::span<const uint8_t> file) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> body, UnwrapSmallFile(file, kPathMagic, kPathVersion, "PATH", 0));
  ByteReader reader(body);
  PathMarker marker;
  marker.installation = ReadInstallation(&reader);
  marker.path_number = reader.U32();
  marker.created_micros = reader.U64();
  if (!reader.ok() || reader.remaining() != 0) return Status::Corruption(0, 0, 0, "PATH body has the wrong length");
  return marker;
}

std::vector<uint8_t> EncodeOpenedRecord(const OpenedRecord& record) {
  ByteWriter body;
  body.U64(record.inode);
  body.U64(record.birth_nanos);
  body.U64(record.number);
  body.U64(record.number_before);
  return WrapSmallFile(kOpenedMagic, kOpenedVersion, body.bytes());
}

Result<OpenedRecord> DecodeOpenedRecord(std::span<const uint8_t> file) {
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> body,
                    UnwrapSmallFile(file, kOpenedMagic, kOpenedVersion, "OPENED", 0));
  ByteReader reader(body);
  OpenedRecord record;
  record.inode = reader.U64();
  record.birth_nanos = reader.U64();
  record.number = reader.U64();
  record.number_before = reader.U64();
  if (!reader.ok() || reader.remaining() != 0) return Status::Corruption(0, 0, 0, "OPENED body has the wrong length");
  return record;
}

}  // namespace quarry
