-- Range reads: each event reads --range-bytes of one value from a random place on, by its primary key.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local selects

function thread_init()
   selects = blob.range_statements(blob.connect())
end

function event()
   blob.select_range(selects)
end
