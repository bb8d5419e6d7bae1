// OpenTransactions: tells, from looks at INFORMATION_SCHEMA.INNODB_TRX, when every transaction of one look has ended.
//
// What a row of INNODB_TRX says of its transaction (trx0i_s.cc, trx0trx.cc of 10.11):
//   TRX_ID                0 as long as it wrote nothing; given at its first write, unique for ever, kept until its end,
//                         also while it is prepared, detached from its connection, or recovered by a restart
//   TRX_MYSQL_THREAD_ID   its connection; 0 for a detached or recovered one and for sessions of the server's own. A
//                         connection runs one transaction after the other
//   TRX_STARTED           in whole seconds. Set a moment after the transaction is shown: a look may catch the start of
//                         the one before
//
// Invariants (each errs towards 'still open'):
//  - With an id: it has ended when no row has that id.
//  - Without: it has ended when its connection has no row, or when the connection's starts have changed twice: the one
//    change from a stale start to the true one is not taken for an end. Clocks are never compared, only told apart.
//  - One without an id wrote nothing until the look, so it need not be followed to another connection number: what
//    XA PREPARE and a disconnect leave of it is no reader any more, and its writes are younger than the look.
// Thread-safety: a value; externally synchronised.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace quarry {

struct OpenTransaction {
  uint64_t id = 0;
  uint64_t connection = 0;
  std::string started;
};

class OpenTransactions {
 public:
  OpenTransactions() = default;
  /// Those of one look, which are to end.
  explicit OpenTransactions(const std::vector<OpenTransaction>& look);

  /// A later look.
  void Update(const std::vector<OpenTransaction>& look);
  [[nodiscard]] bool all_ended() const { return waited_for_.empty(); }
  [[nodiscard]] size_t size() const { return waited_for_.size(); }
  /// One that is still open, for people; empty when all have ended.
  [[nodiscard]] std::string Describe() const;

 private:
  struct Waited {
    OpenTransaction transaction;
    bool start_changed = false;
    std::set<std::string> starts;  ///< once it changed: the start may be any of these
  };
  static bool IsOpen(Waited* waited, const std::vector<OpenTransaction>& look);

  std::vector<Waited> waited_for_;
};

}  // namespace quarry
