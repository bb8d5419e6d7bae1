// AppendGate: tells when every row that was being written at one moment has reached InnoDB, or has failed to.
//
// A value is appended before InnoDB has heard of its row, perhaps even of its transaction: until then INNODB_TRX knows
// nothing of somebody who will need the extent. So a handler enters its session's AppendGate::Member before it appends
// and leaves when InnoDB has taken the row or refused it; from then on InnoDB shows the transaction, with an id.
//
// Invariant: an extent appended before a Ticket() was taken belongs to a member that AllPast(ticket) waits for, for it
// entered before it appended. Who entered later, or is only about to, appends behind whatever was sealed before.
// Thread-safety: internally synchronised; a Member belongs to one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

namespace quarry {

class AppendGate {
 public:
  /// One session.
  class Member {
   public:
    explicit Member(AppendGate* gate);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    /// Nests.
    void Enter();
    void Leave();

   private:
    friend class AppendGate;
    AppendGate* const gate_;
    int depth_ = 0;
    std::atomic<uint64_t> entered_{0};  ///< the ticket in force then; 0: outside
  };

  /// While it lives, the member is inside.
  class Stay {
   public:
    explicit Stay(Member* member) : member_(member) { member_->Enter(); }
    ~Stay() { member_->Leave(); }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    Member* const member_;
  };

  /// A moment.
  [[nodiscard]] uint64_t Ticket() { return ticket_.fetch_add(1) + 1; }
  /// Whoever was inside at that moment has left.
  [[nodiscard]] bool AllPast(uint64_t ticket);

 private:
  std::atomic<uint64_t> ticket_{1};
  std::mutex mutex_;
  std::set<Member*> members_;  ///< guarded by mutex_
};

/// That of this server.
AppendGate& TheAppendGate();

}  // namespace quarry
