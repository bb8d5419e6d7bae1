// Questions to the server's own INFORMATION_SCHEMA, asked as a session of Quarry's own through the SQL service.
// Thread-safety: internally synchronised (each call has its own session).
#pragma once

#include <functional>

#include "quarry/status.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// Rows of nullable texts, as the server sent them.
using QueryRows = std::vector<std::vector<std::optional<std::string>>>;

/// Makes `connection` a session of Quarry's own, whose statements the general log does not show. For a thread without a
/// session (my_thread_init done).
[[nodiscard]] bool ConnectInside(struct st_mysql* connection);

/// What the statement that `connection` ran last brought; nothing: no result.
[[nodiscard]] std::optional<QueryRows> ReadRows(struct st_mysql* connection);

/// Runs `query` in a thread of Quarry's own that has no session yet (my_thread_init done). Errors: kUnavailable with
/// the server's message.
Result<QueryRows> QueryHere(const std::string& query);

/// The same from a thread that runs a user's statement: in a helper thread, for the service would otherwise run the
/// query inside that statement. The caller must hold nothing that the query could wait for.
Result<QueryRows> QueryAside(const std::string& query);

/// Runs `work` in a helper thread that has no session yet, and waits for it. False: the server has no room for the
/// thread, and `work` was not run; or it did not come to its end, because memory ran out.
[[nodiscard]] bool RunAside(const std::function<void()>& work);

}  // namespace quarry
