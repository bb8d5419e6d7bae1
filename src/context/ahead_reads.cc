#include "context/ahead_reads.h"

#include <utility>

#include "base/mutex.h"
#include "quarry/memory_guard.h"

namespace quarry {
namespace {

/// What holder and thread share.
class Reading {
 public:
  Reading(CounterSet* counters, uint64_t size_bytes, std::function<Result<ValueBuffer>()> read)
      : counters_(counters), size_bytes_(size_bytes), read_(std::move(read)) {}

  // By the thread.
  void Run() QUARRY_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (state_ != State::kWaiting) return;
      state_ = State::kReading;
    }
    counters_->Add(Counter::kReadAheadValues);
    counters_->Add(Counter::kReadAheadBytes, size_bytes_);
    ValueBuffer value = Read();
    bool is_wanted = true;
    {
      const MutexLock lock(mutex_);
      is_wanted = std::exchange(state_, State::kRead) == State::kReading;
      if (is_wanted) value_ = std::move(value);
    }
    read_done_.NotifyAll();
    if (!is_wanted) counters_->Add(Counter::kReadAheadUnused);
  }

  // By the holder.
  [[nodiscard]] ValueBuffer Take() QUARRY_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (state_ == State::kWaiting) state_ = State::kGivenUp;
    while (state_ == State::kReading) read_done_.Wait(mutex_);
    if (state_ == State::kRead) state_ = State::kTaken;
    return std::move(value_);
  }
  void GiveUp() QUARRY_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (state_ == State::kRead) counters_->Add(Counter::kReadAheadUnused);
    if (state_ != State::kTaken) state_ = State::kGivenUp;
    value_.Release();
  }

 private:
  // Nothing may be thrown out of a thread. What failed is tried again by whoever wants it, and reported by that.
  [[nodiscard]] ValueBuffer Read() const {
    Result<ValueBuffer> value = OrOutOfMemory(read_);
    return value.ok() ? std::move(value).value() : ValueBuffer();
  }

  enum class State : uint8_t { kWaiting, kReading, kRead, kTaken, kGivenUp };

  CounterSet* const counters_;
  const uint64_t size_bytes_;
  const std::function<Result<ValueBuffer>()> read_;
  Mutex mutex_;  ///< a leaf, but for what a ValueBuffer gives back
  CondVar read_done_;
  State state_ QUARRY_GUARDED_BY(mutex_) = State::kWaiting;
  ValueBuffer value_ QUARRY_GUARDED_BY(mutex_);
};

class Holder final : public AheadRead {
 public:
  explicit Holder(std::shared_ptr<Reading> reading) : reading_(std::move(reading)) {}
  ~Holder() override { reading_->GiveUp(); }
  [[nodiscard]] ValueBuffer Take() override { return reading_->Take(); }

 private:
  const std::shared_ptr<Reading> reading_;
};

}  // namespace

std::unique_ptr<AheadRead> AheadReads::Start(uint64_t size_bytes, std::function<Result<ValueBuffer>()> read) {
  auto reading = std::make_shared<Reading>(counters_, size_bytes, std::move(read));
  if (!threads_.Submit([reading] { reading->Run(); })) return nullptr;
  return std::make_unique<Holder>(std::move(reading));
}

}  // namespace quarry
