// Status and Result<T>: how every fallible call of the core reports.
//
// Invariants:
//  - A Status is never dropped silently: both types are [[nodiscard]].
//  - kCorruption always says where: store, segment and byte offset are part of the message.
//  - Messages are one line, name the offending value and what is allowed, and never end in a full stop.
// Thread-safety: values; externally synchronised.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace quarry {

enum class StatusCode : uint8_t {
  kOk = 0,
  kInvalidArgument,  ///< the caller passed something out of range (an option, a range beyond the value)
  kNotFound,         ///< no such store, segment or file
  kAlreadyExists,    ///< create met an existing file or store
  kCorruption,       ///< bytes on disk do not say what their checksum says; never retried
  kIoError,          ///< the operating system refused a read or write; system_errno() says why
  kNoSpace,          ///< ENOSPC or EDQUOT: the statement fails, nothing committed is lost
  kPoisoned,         ///< an earlier fsync of this segment failed: its unsynced bytes must not be trusted
  kUnavailable,      ///< a data path is missing or not mounted; comes back when it is
  kKeyUnavailable,   ///< encrypted, and the key is missing or another one: comes back with the key
  kNotSupported,     ///< written by a newer version, or a codec that this build lacks
  kForeign,          ///< a head names what its table does not own, or cannot be shown to
  kCancelled,        ///< the caller's Canceller said so while it waited
  kOutOfMemory,      ///< the process has none to give; nothing is lost, and another time there may be some
};

/// The stable, lower-case name of a code ("ok", "corruption", ...).
const char* StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status Ok() { return Status(); }
  static Status InvalidArgument(std::string message) {
    return Status(StatusCode::kInvalidArgument, std::move(message));
  }
  static Status NotFound(std::string message) { return Status(StatusCode::kNotFound, std::move(message)); }
  static Status AlreadyExists(std::string message) { return Status(StatusCode::kAlreadyExists, std::move(message)); }
  static Status Poisoned(std::string message) { return Status(StatusCode::kPoisoned, std::move(message)); }
  static Status Unavailable(std::string message) { return Status(StatusCode::kUnavailable, std::move(message)); }
  static Status KeyUnavailable(std::string message) { return Status(StatusCode::kKeyUnavailable, std::move(message)); }
  static Status NotSupported(std::string message) { return Status(StatusCode::kNotSupported, std::move(message)); }
  static Status Foreign(std::string message) { return Status(StatusCode::kForeign, std::move(message)); }
  /// `wait`: what for.
  static Status Cancelled(const std::string& wait) {
    return Status(StatusCode::kCancelled, "given up while it waited for " + wait);
  }
  /// `what` it was for. The default takes no memory itself.
  static Status OutOfMemory(std::string what = "try again later") {
    return Status(StatusCode::kOutOfMemory, std::move(what));
  }
  /// `what` says which check failed, e.g. "part 3 checksum mismatch".
  static Status Corruption(uint64_t store, uint32_t segment, uint64_t offset_bytes, const std::string& what);
  /// Maps ENOSPC and EDQUOT to kNoSpace, ENOENT to kNotFound, EEXIST to kAlreadyExists, everything else to kIoError.
  static Status FromErrno(int system_errno, const std::string& operation, const std::string& path);

  [[nodiscard]] bool ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] StatusCode code() const { return code_; }
  [[nodiscard]] int system_errno() const { return system_errno_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  /// The same with `where` put before the message: "store 7 segment 2 offset 4096: open ...: No such file".
  [[nodiscard]] Status WithContext(const std::string& where) const {
    return Status(code_, where + ": " + message_, system_errno_);
  }
  /// "corruption: store 7 segment 2 offset 4096: part 3 checksum mismatch"
  [[nodiscard]] std::string ToString() const;

 private:
  Status(StatusCode code, std::string message, int system_errno = 0)
      : code_(code), system_errno_(system_errno), message_(std::move(message)) {}

  StatusCode code_ = StatusCode::kOk;
  int system_errno_ = 0;
  std::string message_;
};

/// Either a T or a Status that is not ok.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<1>, std::move(value)) {}        // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::in_place_index<0>, std::move(status)) {  // NOLINT(google-explicit-constructor)
    assert(!std::get<0>(state_).ok());
  }

  [[nodiscard]] bool ok() const { return state_.index() == 1; }
  [[nodiscard]] Status status() const { return ok() ? Status::Ok() : std::get<0>(state_); }
  [[nodiscard]] T& value() & { return std::get<1>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<1>(state_); }
  [[nodiscard]] T&& value() && { return std::get<1>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  std::variant<Status, T> state_;
};

#define QUARRY_CONCAT_INNER(a, b) a##b
#define QUARRY_CONCAT(a, b) QUARRY_CONCAT_INNER(a, b)

/// Returns from the enclosing function when `expression` (a Status) is not ok.
#define QUARRY_TRY(expression)                                                                       \
  do {                                                                                               \
    if (::quarry::Status quarry_status_ = (expression); !quarry_status_.ok()) return quarry_status_; \
  } while (false)

/// `QUARRY_TRY_ASSIGN(auto locator, store.Append(...))`: assigns the value or returns the Status.
#define QUARRY_TRY_ASSIGN(target, expression)                                                                 \
  auto QUARRY_CONCAT(quarry_result_, __LINE__) = (expression);                                                \
  if (!QUARRY_CONCAT(quarry_result_, __LINE__).ok()) return QUARRY_CONCAT(quarry_result_, __LINE__).status(); \
  target = std::move(QUARRY_CONCAT(quarry_result_, __LINE__)).value()

}  // namespace quarry
