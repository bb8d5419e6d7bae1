-- Durable inserts: each event is one autocommitted INSERT of --batch-rows rows into a table chosen at random.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local statements

function thread_init()
   local con = blob.connect()
   statements = {}
   for t = 1, sysbench.opt.tables do
      local rows = sysbench.opt.batch_rows
      local names, values = blob.columns(""), blob.placeholders(sysbench.opt.value_expression)
      if sysbench.opt.id_expression ~= "" then
         names, values = "id, " .. names, sysbench.opt.id_expression .. ", " .. values
      end
      local row = "(" .. values .. ")"
      local text = "INSERT INTO sbtest" .. t .. " (" .. names .. ") VALUES " .. row .. string.rep(", " .. row, rows - 1)
      statements[t] = blob.statement(con, text, string.rep("v", rows * sysbench.opt.columns))
   end
end

function event()
   local statement = statements[blob.any_table()]
   statement:set_values()
   statement:execute()
end
