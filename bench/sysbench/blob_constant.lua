-- What the SQL layer and the protocol cost: each event selects a constant of --value-bytes, and no engine is touched.
-- A literal in a prepared statement costs least: it is parsed once and sent from where it stands (a user variable is copied first).
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local ffi = require("ffi")
local statement

function thread_init()
   local con = blob.connect()
   local value = ffi.string(blob.payload, sysbench.opt.value_bytes)
   local digits = value:gsub(".", function(byte) return string.format("%02x", byte:byte()) end)
   statement = con:prepare("SELECT x'" .. digits .. "' AS data")
end

function event()
   local result = statement:execute()
   assert(result.nrows == 1, "the constant was not selected")
   result:free()
end
