// INFORMATION_SCHEMA.QUARRY_MEMORY: the memory that Quarry uses, in all and by table, each with its limit.
#pragma once

namespace quarry {

/// For st_maria_plugin::init. Memory of the server as a whole is shown to all, as status variables are; that of a table
/// to who may see the table.
int InitQuarryMemory(void* raw_schema_table);

}  // namespace quarry
