-- Point selects: each event reads one whole value by its primary key, uniformly at random; with --device-path after a read of the device.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
local blob = require("blob_common")
local selects, device

function thread_init()
   selects = blob.select_statements(blob.connect())
   if sysbench.opt.device_path ~= "" then device = blob.device_open() end
end

function event()
   if device then blob.device_read(device) end
   blob.select_one(selects)
end
