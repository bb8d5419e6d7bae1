-- The E1 mix without an engine: a constant of --value-bytes in the place of a row's value, and updates of a table that keeps nothing
-- (BLACKHOLE). What is left is the client, the protocol, the SQL layer, and how the threads of both share the processors.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local constant, updates

function thread_init()
   local con = blob.connect()
   constant = con:prepare("SELECT " .. blob.literal() .. " AS data")
   updates = blob.update_statements(con)
end

function event()
   if sysbench.rand.uniform(1, 100) <= sysbench.opt.read_percent then
      local result = constant:execute()
      assert(result.nrows == 1, "the constant was not selected")
      result:free()
   else
      blob.update_one(updates)
   end
end
