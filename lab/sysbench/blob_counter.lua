-- Updates of a column that is no BLOB: each event is one autocommitted UPDATE of the INT beside the value, which stays as it is.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local updates

function thread_init()
   updates = blob.counter_statements(blob.connect())
end

function event()
   blob.count_one(updates)
end
