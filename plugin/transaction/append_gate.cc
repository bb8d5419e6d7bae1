// See append_gate.h.
#include "transaction/append_gate.h"

#include <algorithm>

namespace quarry {

AppendGate::Member::Member(AppendGate* gate) : gate_(gate) {
  const std::lock_guard<std::mutex> guard(gate_->mutex_);
  gate_->members_.insert(this);
}

AppendGate::Member::~Member() {
  const std::lock_guard<std::mutex> guard(gate_->mutex_);
  gate_->members_.erase(this);
}

// Sequentially consistent, so that it is seen by whoever sees what is appended after it.
void AppendGate::Member::Enter() {
  if (depth_++ == 0) entered_.store(gate_->ticket_.load());
}

void AppendGate::Member::Leave() {
  if (--depth_ == 0) entered_.store(0);
}

bool AppendGate::AllPast(uint64_t ticket) {
  const std::lock_guard<std::mutex> guard(mutex_);
  return std::all_of(members_.begin(), members_.end(), [ticket](const Member* member) {
    const uint64_t entered = member->entered_.load();
    return entered == 0 || entered >= ticket;
  });
}

AppendGate& TheAppendGate() {
  static AppendGate gate;
  return gate;
}

}  // namespace quarry
