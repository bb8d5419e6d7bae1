// INFORMATION_SCHEMA.QUARRY_COLUMNS and QUARRY_TABLES: init functions for their plugin descriptors.
// Thread-safety: called by the server at plugin start.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// For st_maria_plugin::init of the two MYSQL_INFORMATION_SCHEMA_PLUGIN entries; `st_mysql_information_schema` of each
/// is information_schema_descriptor.
int InitQuarryColumns(void* schema_table);
int InitQuarryTables(void* schema_table);
extern struct st_mysql_information_schema information_schema_descriptor;

}  // namespace quarry
