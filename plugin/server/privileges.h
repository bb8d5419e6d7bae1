// What the account of a session may see. Thread-safety: for the session's own thread.
#pragma once

#include "server/mariadb_compat.h"

#include <sql_acl.h>

namespace quarry {

/// The privilege PROCESS, for which other people's statements are visible, too.
inline bool MayProcess(const THD* thd) { return (thd->security_ctx->master_access & PROCESS_ACL) != NO_ACL; }

}  // namespace quarry
