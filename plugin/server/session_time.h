// Times as a session sees them: in its time_zone, as the server's own tables show them. Inside the plugin a time is
// seconds since 1970, UTC. Thread-safety: belongs to the session's thread.
#pragma once

#include <string>

#include "server/mariadb_compat.h"

namespace quarry {

MYSQL_TIME SessionTime(THD* thd, uint64_t utc_seconds);
/// "2026-01-31 12:00:00".
std::string SessionTimeText(THD* thd, uint64_t utc_seconds);

}  // namespace quarry
