// SHOW ENGINE QUARRY STATUS. Thread-safety: a pure function of the engine's counters.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// For handlerton::show_status.
bool ShowEngineStatus(handlerton* hton, THD* thd, stat_print_fn* print, enum ha_stat_type type);

}  // namespace quarry
