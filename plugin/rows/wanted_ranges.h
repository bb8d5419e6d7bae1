// What a SELECT looks at of a column: the pieces that SUBSTRING, MID, LEFT, RIGHT and LENGTH name, or the whole value.
//
// The server has no call by which an engine learns that, so the statement is looked at, and anything that is not
// recognised means the whole value. docs/internals/handler.md, 'Ranges of a value', says what is recognised and why it
// is right. Thread-safety: for the thread that runs the statement, while it reads rows.
#pragma once

#include <vector>

#include "rows/value_range.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// True: of `field` the statement that `table` is open for needs nothing but its length, its NULL bit and what
/// `requests` names. False: all of it.
[[nodiscard]] bool FindWantedRanges(TABLE* table, const Field* field, std::vector<RangeRequest>* requests);

}  // namespace quarry
