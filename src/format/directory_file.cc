#include "format/directory_file.h"

#include <algorithm>

#include "base/coding.h"
#include "format/magic.h"
#include "format/small_file.h"

namespace quarry {

namespace {

constexpr uint16_t kDirectoryVersion = 1;
constexpr uint16_t kPathVersion = 1;
constexpr uint16_t kOpenedVersion = 1;

InstallationId ReadInstallation(ByteReader* reader) {
  InstallationId installation{};
  const std::span<const uint8_t> bytes = reader->Bytes(installation.size());
  std::copy(bytes.begin(), bytes.end(), installation.begin());
  return installation;
}

// Empty when the directory is possible, else what is wrong with it.
std::string FindFault(const DirectoryFile& directory) {
  if (directory.next_store.value == 0) return "hands out store id 0";
  uint32_t previous = 0;
  for (const DataPath& path : directory.paths) {
    if (path.number <= previous) return "lists data paths out of order";
    previous = path.number;
    if (path.path.empty() || path.path.size() > kNameMaxBytes) return "has a data path of impossible length";
    if (path.path.find('\0') != std::string::npos) return "has a data path with a NUL in it";
  }
  if (previous >= directory.next_path_number) {
    return "lists data path " + std::to_string(previous) + ", the next would be " +
           std::to_string(directory.next_path_number);
  }
  return {};
}

}  // namespace

std::vector<uint8_t> EncodeDirectoryFile(const DirectoryFile& directory) {
  ByteWriter body;
  body.Bytes(directory.installation);
  body.U64(directory.created_micros);
  body.U64(directory.next_store.value);
  body.U32(directory.next_path_number);
  body.U32(static_cast<uint32_t>(directory.paths.size()));
  for (const DataPath& path : directory.paths) {
    body.U32(path.number);
    body.String(path.path);
  }
  return WrapSmallFile(kDirectoryMagic, kDirectoryVersion, body.bytes());
}

Result<std::vector<uint8_t>> EncodeDirectoryFileVerified(const DirectoryFile& directory) {
  std::vector<uint8_t> file = EncodeDirectoryFile(directory);
  QUARRY_TRY(CheckSmallFileSize(file.size(), "DIRECTORY", 0));
  const Result<DirectoryFile> read_back = DecodeDirectoryFile(file);
  if (!read_back.ok()) return read_back.status().WithContext("not written, the old one stays");
  if (*read_back != directory) {
    return Status::Corruption(0, 0, 0, "DIRECTORY not written: it reads back as another");
  }
  return file;
}

Result<DirectoryFile> DecodeDirectoryFile(std::span<const uint8_t> file) {
  const auto corruption = [](const std::string& what) { return Status::Corruption(0, 0, 0, "DIRECTORY " + what); };
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> body,
                    UnwrapSmallFile(file, kDirectoryMagic, kDirectoryVersion, "DIRECTORY", 0));
  ByteReader reader(body);
  DirectoryFile directory;
  directory.installation = ReadInstallation(&reader);
  directory.created_micros = reader.U64();
  directory.next_store = StoreId{reader.U64()};
  directory.next_path_number = reader.U32();
  const uint32_t path_count = reader.Count(2 * sizeof(uint32_t));
  directory.paths.reserve(path_count);
  for (uint32_t i = 0; i < path_count && reader.ok(); ++i) {
    DataPath path;
    path.number = reader.U32();
    path.path = reader.String(kNameMaxBytes);
    directory.paths.push_back(std::move(path));
  }
  if (!reader.ok() || reader.remaining() != 0) return corruption("body has the wrong length");
  if (const std::string fault = FindFault(directory); !fault.empty()) return corruption(fault);
  return directory;
}

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
