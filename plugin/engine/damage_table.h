// INFORMATION_SCHEMA.QUARRY_DAMAGE: what the scrub found, and what the catalogue lost. Thread-safety: called by the
// server.
#pragma once

namespace quarry {

/// For st_maria_plugin::init of its MYSQL_INFORMATION_SCHEMA_PLUGIN entry.
int InitQuarryDamage(void* schema_table);

}  // namespace quarry
