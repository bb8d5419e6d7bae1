// PublishedAtomic: an atomic by which one thread tells others something, beside every lock. std::atomic; in the
// simulation of threads another thread may go on before each access (scheduling.h).
// Thread-safety: internally synchronised.
#pragma once

#include <atomic>

#include "base/scheduling.h"

namespace quarry {

#ifdef QUARRY_SIMULATED_THREADS
template <typename T>
class PublishedAtomic {
 public:
  PublishedAtomic(T value) : value_(value) {}  // NOLINT: as std::atomic

  [[nodiscard]] T load(std::memory_order = std::memory_order_seq_cst, QUARRY_PLACE) const {
    SchedulingPoint("load", place);
    return value_;
  }
  void store(T value, std::memory_order = std::memory_order_seq_cst, QUARRY_PLACE) {
    SchedulingPoint("store", place);
    value_ = value;
  }
  operator T() const { return load(); }  // NOLINT: as std::atomic
  T exchange(T value, std::memory_order = std::memory_order_seq_cst, QUARRY_PLACE) {
    SchedulingPoint("exchange", place);
    return std::exchange(value_, value);
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order = std::memory_order_seq_cst, QUARRY_PLACE) {
    SchedulingPoint("compare and exchange", place);
    if (value_ != expected) {
      expected = value_;
      return false;
    }
    value_ = value;
    return true;
  }
  T fetch_add(T value, std::memory_order = std::memory_order_seq_cst, QUARRY_PLACE) {
    SchedulingPoint("add", place);
    return std::exchange(value_, static_cast<T>(value_ + value));
  }
  T fetch_sub(T value, std::memory_order = std::memory_order_seq_cst, QUARRY_PLACE) {
    SchedulingPoint("subtract", place);
    return std::exchange(value_, static_cast<T>(value_ - value));
  }

 private:
  T value_;
};
#else
template <typename T>
using PublishedAtomic = std::atomic<T>;
#endif

}  // namespace quarry
