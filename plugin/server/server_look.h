// ServerLook: who has a transaction open, which tables there are, how far InnoDB's redo log is written and flushed,
// asked of the server itself, with every doubt told as an error.
//
// INFORMATION_SCHEMA.INNODB_TRX has traps (trx0i_s.cc of 10.11), and each is shut out:
//  - All sessions share a snapshot, which is renewed only when nobody read it for 0.1 s: a look must show itself, by a
//    text in its own query that no other look has.
//  - The snapshot ends, without a word, where 16 MiB of texts and locks are full. It lists sessions by their age in
//    InnoDB, the newest first; so the looking session is one that was opened before the server let anybody in, and
//    what stands in front of it in the list was not cut off. Behind it are only what the restart recovered, whose rows
//    need no texts and no locks; and the first 1,024 rows need no memory that the first snapshot did not take. A
//    session that was opened later (by INSTALL, or in the place of one that broke) sees no transactions: an error.
//  - Sessions without a connection (ours, recovered and detached transactions) all have the connection number 0:
//    our own row is known by that text, never by its connection.
// Thread-safety: belongs to the thread that opened it.
#pragma once

#include <map>
#include <set>
#include <string>

#include "quarry/memory_guard.h"
#include "server/open_transactions.h"
#include "server/server_session.h"

namespace quarry {

class ServerLook {
 public:
  struct Lsn {
    uint64_t current = 0;
    uint64_t flushed = 0;
  };

  /// Early: see above.
  Status Open();
  void Close() { session_.Close(); }
  [[nodiscard]] bool is_open() const { return session_.is_open(); }
  [[nodiscard]] ServerSession* session() { return &session_; }

  /// `action`, which returns a Status or a Result, inside a REPEATABLE READ view of this moment, in which
  /// Transactions() may be called and tables be read. The view ends also when memory runs out.
  template <typename Action>
  auto InView(const Action& action) -> decltype(action()) {
    QUARRY_TRY(OrOutOfMemory([this] { return BeginView(); }));
    decltype(action()) done = OrOutOfMemory(action);
    EndView();
    return done;
  }

  /// Inside a view. Every transaction that is open now, but for this one; each that was open when the call began and
  /// still is when it returns is among them. Error: kUnavailable: not known now; another call a second later may know.
  Result<std::vector<OpenTransaction>> Transactions();
  Result<Lsn> ReadLsn();
  /// InnoDB's tables, by id, under its own names. Read dirty: one whose DROP may roll back can be missing. Complete, or
  /// an error.
  Result<std::map<uint64_t, std::string>> Tables();
  /// The ids of those that hold the rows of the table that InnoDB calls `child_name`: one, or one for each partition.
  Result<std::set<uint64_t>> TablesOf(const std::string& child_name);
  /// Quoted names of the tables with ENGINE=QUARRY.
  Result<std::set<std::string>> QuarryTables();
  /// Error: the server runs in a way in which it shows less than there is (innodb_force_recovery), or writes nothing.
  Status CheckServerIsWhole();

 private:
  Status BeginView();
  void EndView();
  Result<std::vector<OpenTransaction>> LookAtTransactions();
  /// `condition`: of the names of the tables wanted.
  Result<std::map<uint64_t, std::string>> TablesWhere(const std::string& condition);

  ServerSession session_;
  bool is_late_ = false;  ///< clients may have been there first
  std::string own_text_;
  uint64_t looks_ = 0;
};

}  // namespace quarry
