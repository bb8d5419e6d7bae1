-- The E1 mix: each event is one autocommitted transaction, --read-percent of them a point select, the rest an update of the value.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local selects, updates

function thread_init()
   local con = blob.connect()
   selects = blob.select_statements(con)
   updates = blob.update_statements(con)
end

function event()
   if sysbench.rand.uniform(1, 100) <= sysbench.opt.read_percent then
      blob.select_one(selects)
   else
      blob.update_one(updates)
   end
end
