#include "quarry/status.h"

#include <cerrno>
#include <system_error>

namespace quarry {

const char* StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kAlreadyExists:
      return "already exists";
    case StatusCode::kCorruption:
      return "corruption";
    case StatusCode::kIoError:
      return "i/o error";
    case StatusCode::kNoSpace:
      return "no space";
    case StatusCode::kPoisoned:
      return "poisoned";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kKeyUnavailable:
      return "key unavailable";
    case StatusCode::kNotSupported:
      return "not supported";
    case StatusCode::kForeign:
      return "not this table's";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kOutOfMemory:
      return "out of memory";
  }
  return "unknown";
}

Status Status::Corruption(uint64_t store, uint32_t segment, uint64_t offset_bytes, const std::string& what) {
  return Status(StatusCode::kCorruption, "store " + std::to_string(store) + " segment " + std::to_string(segment) +
                                             " offset " + std::to_string(offset_bytes) + ": " + what);
}

Status Status::FromErrno(int system_errno, const std::string& operation, const std::string& path) {
  StatusCode code = StatusCode::kIoError;
  if (system_errno == ENOSPC || system_errno == EDQUOT) code = StatusCode::kNoSpace;
  if (system_errno == ENOENT) code = StatusCode::kNotFound;
  if (system_errno == EEXIST) code = StatusCode::kAlreadyExists;
  // std::generic_category is thread-safe, strerror is not.
  return Status(code,
                operation + " " + path + ": " + std::generic_category().message(system_errno) + " (errno " +
                    std::to_string(system_errno) + ")",
                system_errno);
}

std::string Status::ToString() const {
  if (ok()) return StatusCodeName(code_);
  return std::string(StatusCodeName(code_)) + ": " + message_;
}

}  // namespace quarry
