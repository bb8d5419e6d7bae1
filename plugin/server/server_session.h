// One session of Quarry's own, through the server's SQL service: several statements that see the same transaction.
//
// Invariants:
//  - Nothing that an administrator sets globally (limits of rows or time, modes, isolation) reaches it.
//  - It waits for a metadata lock for one second at most.
// Thread-safety: belongs to the thread that opened it, which has no session besides (my_thread_init done).
#pragma once

#include "quarry/status.h"
#include "server/mariadb_compat.h"
#include "server/server_query.h"

typedef struct st_mysql MYSQL;

namespace quarry {

class ServerSession {
 public:
  ServerSession() = default;
  ~ServerSession() { Close(); }
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  /// Errors of all: kUnavailable with the server's message. After an error it is closed; nor does it throw.
  Status Open();
  void Close();
  [[nodiscard]] bool is_open() const { return connection_ != nullptr; }

  Status Run(const std::string& statement);
  Result<QueryRows> Query(const std::string& query);
  /// Of the last statement; 0: it succeeded.
  [[nodiscard]] unsigned error_number() const;

 private:
  Status Connect();

  MYSQL* connection_ = nullptr;
};

}  // namespace quarry
