// INFORMATION_SCHEMA.QUARRY_VALUES: where the values of each managed column are, by a sample of the table's rows.
// Thread-safety: as the table's.
#pragma once

namespace quarry {

int InitQuarryValues(void* raw_schema_table);

}  // namespace quarry
