-- Point selects: each event reads one whole value by its primary key, uniformly at random.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local selects

function thread_init()
   selects = blob.select_statements(blob.connect())
end

function event()
   blob.select_one(selects)
end
