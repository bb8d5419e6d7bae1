-- What the SQL layer and the protocol cost: each event selects a constant of --value-bytes, and no engine is touched.
-- A literal in a prepared statement costs least (a user variable is copied first).
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local statement

function thread_init()
   local con = blob.connect()
   statement = con:prepare("SELECT " .. blob.literal() .. " AS data")
end

function event()
   local result = statement:execute()
   assert(result.nrows == 1, "the constant was not selected")
   result:free()
end
