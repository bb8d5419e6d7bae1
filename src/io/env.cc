// What every Env does alike, on top of its own files.
#include "io/env.h"

namespace quarry {

Result<FileSpace> Env::GetFileSpace(const std::string& path) {
  QUARRY_TRY_ASSIGN(const auto file, OpenForRead(path));
  FileSpace space;
  QUARRY_TRY_ASSIGN(space.size_bytes, file->SizeBytes());
  QUARRY_TRY_ASSIGN(space.allocated_bytes, file->AllocatedBytes());
  return space;
}

Result<std::vector<uint8_t>> Env::ReadSmallFile(const std::string& path, uint64_t limit_bytes) {
  QUARRY_TRY_ASSIGN(auto file, OpenForRead(path));
  QUARRY_TRY_ASSIGN(const uint64_t size, file->SizeBytes());
  if (size > limit_bytes) {
    return Status::Corruption(
        0, 0, 0,
        path + " has " + std::to_string(size) + " bytes, at most " + std::to_string(limit_bytes) + " are possible");
  }
  std::vector<uint8_t> contents(size);
  QUARRY_TRY_ASSIGN(const size_t read, file->ReadAt(0, contents));
  contents.resize(read);
  return contents;
}

}  // namespace quarry
