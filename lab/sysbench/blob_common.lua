-- Common part of the BLOB workloads for sysbench 1.0.20: options, payloads, prepared statements, and the report in one JSON line.
-- Tables are sbtest1..sbtestN (id INT PRIMARY KEY AUTO_INCREMENT, data <type>), made by the caller; `prepare` only fills them.
-- With --columns=N the values are in columns data1..dataN. A column `counter` beside them has a default.
--
-- Client cost. The client shares the machine with the server, so it must not copy or escape a value: values are binary
-- parameters of prepared statements, bound anew for each write to an address inside one big buffer (a bind costs about a
-- microsecond; the client library then copies the value once, into its packet). docs/results/settings.md has the measured difference.
--
-- Payloads. The buffer (--payload-path, normally a memfd shared by all threads) holds random or 3:1-compressible bytes. A write
-- takes the slice at a random BYTE offset and stamps 16 fresh random bytes at its start, in place; so no two values are equal, and
-- no page of one equals a page of another. Behind the statement the 16 bytes are put back: left there, a few millions of stamps
-- would make a compressible buffer random. Slices that are on their way at the same time never start at the same byte (a thread has
-- its own residue class of offsets, a value of a statement its own class within that), or two rows would get the later one's stamp.
-- Another thread's stamp may land inside a slice being sent: the value is whatever was sent; nothing here compares it with a local copy.

local ffi = require("ffi")

ffi.cdef[[
int open(const char *path, int flags);
int close(int fd);
void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset);
int madvise(void *address, size_t length, int advice);
long lseek(int fd, long offset, int whence);
long pread(int fd, void *buffer, size_t count, long offset);
struct quarry_timespec { long seconds, nanoseconds; };
int clock_gettime(int clock, struct quarry_timespec *now);
int usleep(unsigned microseconds);
]]

local CLOCK_MONOTONIC = 1

local PROT_READ, PROT_WRITE = 1, 2
local MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 32
local MADV_HUGEPAGE = 14
local O_RDWR, SEEK_END = 2, 2
local O_DIRECT = ffi.arch:find("arm") and 0x10000 or 0x4000
local BLOCK_BYTES, HUGE_PAGE_BYTES = 4096, 2097152
local FILL_ATTEMPTS, FILL_PAUSE_US = 600, 100000 -- a minute: a redo log that is full has room again by then

sysbench.cmdline.options = {
   value_bytes = {"Bytes per value", 65536},
   rows = {"Rows per table: filled by prepare, selected and updated by run", 1000},
   tables = {"Number of tables", 1},
   read_percent = {"blob_mix: percentage of point selects; the rest are updates", 90},
   rows_per_transaction = {"prepare: rows per transaction", 16},
   shuffled = {"prepare: ids in a random order, so that neighbours lie far from each other", false},
   columns = {"Values per row", 1},
   value_expression = {"What is stored of each value, the value being '?', e.g. LEFT(?, 320)", "?"},
   free_values = {"Point selects ask for the length of what a row holds, and get --free-value instead of it", false},
   free_value = {"An SQL expression of --value-bytes; empty: a literal", ""},
   id_expression = {"blob_insert: an SQL expression for the id, e.g. NEXTVAL(ids); empty: AUTO_INCREMENT", ""},
   device_path = {"blob_read: a file of which every event first reads --value-bytes at a random place, past the page cache", ""},
   range_bytes = {"blob_range: bytes read of a value", 65536},
   turn_ms = {"The tables have turns of so many milliseconds, all threads the same one; 0: a table is chosen at random", 0},
   turn_rounds = {"Turns of each table whose events are counted, behind those of --turn-warmup-ms", 0},
   turn_warmup_ms = {"Milliseconds before the first turn that is counted", 0},
   batch_rows = {"blob_insert: rows per INSERT statement", 1},
   session_sql = {"A statement that every connection runs first, e.g. SET quarry_read_batch_bytes=65536", ""},
   payload_path = {"File (or /proc/self/fd/N) that holds the payload bytes; empty: made here, at random", ""},
   payload_bytes = {"Size of the payload buffer", 16 * 1024 * 1024}
}

local blob = {}

-- The payload buffer as uint8_t*. A standalone run (no --payload-path) makes incompressible bytes of its own, one buffer a thread.
function blob.payload_open()
   local size = sysbench.opt.payload_bytes
   assert(size >= 2 * sysbench.opt.value_bytes, "--payload-bytes must be at least twice --value-bytes")
   if sysbench.opt.payload_path ~= "" then
      local fd = ffi.C.open(sysbench.opt.payload_path, O_RDWR)
      assert(fd >= 0, "cannot open --payload-path " .. sysbench.opt.payload_path)
      local address = ffi.C.mmap(nil, size, PROT_READ + PROT_WRITE, MAP_SHARED, fd, 0)
      ffi.C.close(fd)
      assert(ffi.cast("intptr_t", address) ~= -1, "cannot map --payload-path " .. sysbench.opt.payload_path)
      return ffi.cast("uint8_t *", address)
   end
   blob.own_buffer = ffi.new("uint64_t[?]", size / 8)
   for i = 0, size / 8 - 1 do
      blob.own_buffer[i] = sysbench.rand.uniform_uint64()
   end
   return ffi.cast("uint8_t *", blob.own_buffer)
end

local function new_bind(sql_type, buffer, bytes_max)
   local bind = ffi.new("sql_bind[1]")
   local length = ffi.new("unsigned long[1]", bytes_max)
   local is_null = ffi.new("char[1]", 0)
   bind[0].type, bind[0].buffer, bind[0].data_len, bind[0].max_len, bind[0].is_null = sql_type, buffer, length, bytes_max, is_null
   return bind, {length, is_null, buffer}
end

-- A prepared statement whose parameters are binds: 'v' (a value, bound anew by set_values) and 'i' (an id).
local Statement = {}
Statement.__index = Statement

function blob.statement(con, text, signature)
   local self = setmetatable({}, Statement)
   self.handle = con:prepare(text)
   self.count = #signature
   self.binds = ffi.new("sql_bind[?]", self.count)
   self.values, self.ids, self.kept, self.stamped = {}, {}, {}, 0
   for i = 1, #signature do
      local bind, kept
      if signature:sub(i, i) == "v" then
         bind, kept = new_bind(sysbench.sql.type.VARCHAR, blob.payload, sysbench.opt.value_bytes)
         self.values[#self.values + 1] = i - 1
      else
         local id = ffi.new("int64_t[1]")
         bind, kept = new_bind(sysbench.sql.type.BIGINT, id, 8)
         self.ids[#self.ids + 1] = id
      end
      self.binds[i - 1] = bind[0]
      self.kept[i] = kept -- the C struct holds bare addresses: keep what they point at alive
   end
   self.stamps, self.unstamped = ffi.new("uint64_t *[?]", #self.values), ffi.new("uint64_t[?]", 2 * #self.values)
   self:bind()
   return self
end

function Statement:bind()
   assert(ffi.C.db_bind_param(self.handle, self.binds, self.count) == 0, "db_bind_param failed")
end

-- Points every value parameter at a fresh slice and stamps it, until it was sent.
function Statement:set_values()
   self:unstamp() -- of a statement that failed
   local last = sysbench.opt.payload_bytes - sysbench.opt.value_bytes
   local classes = sysbench.opt.threads * #self.values
   for i = 1, #self.values do
      local class = sysbench.tid * #self.values + i - 1
      local address = blob.payload + class + classes * sysbench.rand.uniform(0, math.floor((last - class) / classes))
      local stamp = ffi.cast("uint64_t *", address)
      self.stamps[i - 1], self.unstamped[2 * i - 2], self.unstamped[2 * i - 1] = stamp, stamp[0], stamp[1]
      self.stamped = i
      stamp[0] = sysbench.rand.uniform_uint64()
      stamp[1] = sysbench.rand.uniform_uint64()
      self.binds[self.values[i]].buffer = address
   end
   self:bind()
end

-- The last first: slices of one statement may overlap.
function Statement:unstamp()
   for i = self.stamped - 1, 0, -1 do
      self.stamps[i][0], self.stamps[i][1] = self.unstamped[2 * i], self.unstamped[2 * i + 1]
   end
   self.stamped = 0
end

function Statement:execute()
   local result = self.handle:execute()
   self:unstamp()
   return result
end

-- The names of the value columns, with something after each.
function blob.columns(after)
   if sysbench.opt.columns == 1 then return "data" .. after end
   local names = {}
   for i = 1, sysbench.opt.columns do names[i] = "data" .. i .. after end
   return table.concat(names, ", ")
end

-- The values of a row, each as `expression` with its '?'.
function blob.placeholders(expression)
   return expression .. string.rep(", " .. expression, sysbench.opt.columns - 1)
end

function blob.connect()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   con:query("SET NAMES binary")
   if sysbench.opt.session_sql ~= "" then con:query(sysbench.opt.session_sql) end
   blob.drv, blob.con = drv, con
   blob.payload = blob.payload_open()
   return con
end

-- Bytes of a value's size as an SQL literal: parsed once by a prepared statement, and sent from where it stands.
function blob.literal()
   local digits = ffi.string(blob.payload, sysbench.opt.value_bytes):gsub(".", function(byte) return string.format("%02x", byte:byte()) end)
   return "x'" .. digits .. "'"
end

-- The ids that this thread fills: its own residue class of 1..rows.
local function own_ids()
   local ids = {}
   for id = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.rows, sysbench.opt.threads do table.insert(ids, id) end
   for i = sysbench.opt.shuffled and #ids or 1, 2, -1 do
      local j = sysbench.rand.uniform(1, i)
      ids[i], ids[j] = ids[j], ids[i]
   end
   return ids
end

local function fill_rows(con, insert, ids)
   con:query("BEGIN")
   for _, id in ipairs(ids) do
      insert.ids[1][0] = id
      insert:set_values()
      insert:execute()
   end
   con:query("COMMIT")
end

-- One transaction, repeated upon the errors of --mysql-ignore-errors: what MySQL Cluster calls temporary, and says a client has to repeat.
local function fill_transaction(con, insert, ids)
   for attempt = 1, FILL_ATTEMPTS do
      local done, failure = pcall(fill_rows, con, insert, ids)
      if done then return end
      local is_temporary = type(failure) == "table" and failure.errcode == sysbench.error.RESTART_EVENT
      if not is_temporary or attempt == FILL_ATTEMPTS then error(failure, 0) end
      con:query("ROLLBACK")
      ffi.C.usleep(FILL_PAUSE_US)
   end
end

-- Fills the tables with ids 1..rows, all threads at once. sysbench succeeds when a thread's script does not, so each says at its end that it got there.
function blob.fill()
   local con = blob.connect()
   for t = 1, sysbench.opt.tables do
      local insert = blob.statement(con, "INSERT INTO sbtest" .. t .. " (id, " .. blob.columns("") .. ") VALUES (?, " .. blob.placeholders(sysbench.opt.value_expression) .. ")",
                                    "i" .. string.rep("v", sysbench.opt.columns))
      local ids = own_ids()
      for first = 1, #ids, sysbench.opt.rows_per_transaction do
         fill_transaction(con, insert, {unpack(ids, first, math.min(first + sysbench.opt.rows_per_transaction - 1, #ids))})
      end
   end
   print('{"quarry_filled": true}')
end

sysbench.cmdline.commands = {prepare = {blob.fill, sysbench.cmdline.PARALLEL_COMMAND}}

-- Turns. Engines whose tables stand in one server are compared within one load: whose turn it is, is told by the clock alone, so all threads agree.
-- An event belongs to the turn in which it begins. Whole rounds of turns are counted, so that no table has had more time than another.
local turns

local function turn_of_now()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, turns.clock)
   local now = tonumber(turns.clock[0].seconds) * 1000 + tonumber(turns.clock[0].nanoseconds) / 1000000
   return math.floor(now / sysbench.opt.turn_ms)
end

local function begin_turns()
   turns = {clock = ffi.new("struct quarry_timespec[1]"), counts = {}}
   for t = 1, sysbench.opt.tables do turns.counts[t] = 0 end
   turns.first = math.ceil((turn_of_now() + sysbench.opt.turn_warmup_ms / sysbench.opt.turn_ms) / sysbench.opt.tables + 1) * sysbench.opt.tables
   turns.behind = turns.first + sysbench.opt.turn_rounds * sysbench.opt.tables
end

local function table_of_turn()
   if turns == nil then begin_turns() end
   local turn = turn_of_now()
   local t = turn % sysbench.opt.tables + 1
   if turn >= turns.first and turn < turns.behind then turns.counts[t] = turns.counts[t] + 1 end
   return t
end

function thread_done()
   if turns == nil then return end
   -- One write with its line's end: all threads end at the same time.
   io.write(string.format('{"quarry_turns": [%s], "complete": %s}\n', table.concat(turns.counts, ", "), tostring(turn_of_now() >= turns.behind)))
end

function blob.any_table()
   if sysbench.opt.turn_ms > 0 then return table_of_turn() end
   return sysbench.opt.tables == 1 and 1 or sysbench.rand.uniform(1, sysbench.opt.tables)
end

-- A statement for each table: `before`, the table's name, `behind`.
local function for_each_table(con, before, behind, binds)
   local statements = {}
   for t = 1, sysbench.opt.tables do statements[t] = blob.statement(con, before .. " sbtest" .. t .. " " .. behind, binds) end
   return statements
end

-- Point selects and updates over all tables.
function blob.select_statements(con)
   local what = blob.columns("")
   if sysbench.opt.free_values then
      what = "LENGTH(data), " .. (sysbench.opt.free_value ~= "" and sysbench.opt.free_value or blob.literal()) .. " AS value"
   end
   return for_each_table(con, "SELECT " .. what .. " FROM", "WHERE id = ?", "i")
end

function blob.update_statements(con)
   local values = blob.columns(" = " .. sysbench.opt.value_expression)
   return for_each_table(con, "UPDATE", "SET " .. values .. " WHERE id = ?", string.rep("v", sysbench.opt.columns) .. "i")
end

function blob.counter_statements(con)
   return for_each_table(con, "UPDATE", "SET counter = counter + 1 WHERE id = ?", "i")
end

function blob.select_one(statements)
   local statement = statements[blob.any_table()]
   statement.ids[1][0] = sysbench.rand.uniform(1, sysbench.opt.rows)
   local result = statement:execute() -- the whole value is received and stored by the client library
   assert(result.nrows == 1, "a point select found no row")
   result:free()
end

-- Reads of the device by the client: the file --device-path, in requests of whole blocks into memory of huge pages, which nobody looks at.
function blob.device_open()
   local device = {bytes = math.ceil(sysbench.opt.value_bytes / BLOCK_BYTES) * BLOCK_BYTES}
   assert(device.bytes <= HUGE_PAGE_BYTES, "--device-path takes --value-bytes of at most 2 MiB")
   device.fd = ffi.C.open(sysbench.opt.device_path, O_DIRECT)
   assert(device.fd >= 0, "cannot open --device-path " .. sysbench.opt.device_path)
   device.places = math.floor(tonumber(ffi.C.lseek(device.fd, 0, SEEK_END)) / device.bytes)
   assert(device.places > 0, "--device-path is shorter than a value")
   local mapping = ffi.C.mmap(nil, 2 * HUGE_PAGE_BYTES, PROT_READ + PROT_WRITE, MAP_PRIVATE + MAP_ANONYMOUS, -1, 0)
   local address = tonumber(ffi.cast("uintptr_t", mapping))
   device.buffer = ffi.cast("uint8_t *", mapping) + (HUGE_PAGE_BYTES - address % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES
   ffi.C.madvise(device.buffer, HUGE_PAGE_BYTES, MADV_HUGEPAGE)
   return device
end

function blob.device_read(device)
   local place = sysbench.rand.uniform(0, device.places - 1)
   assert(ffi.C.pread(device.fd, device.buffer, device.bytes, place * device.bytes) == device.bytes, "a read of --device-path failed")
end

-- A part of a value, at a place chosen at random.
function blob.range_statements(con)
   return for_each_table(con, "SELECT SUBSTRING(data, ?, " .. sysbench.opt.range_bytes .. ") FROM", "WHERE id = ?", "ii")
end

function blob.select_range(statements)
   local statement = statements[blob.any_table()]
   statement.ids[1][0] = sysbench.rand.uniform(1, sysbench.opt.value_bytes - sysbench.opt.range_bytes + 1)
   statement.ids[2][0] = sysbench.rand.uniform(1, sysbench.opt.rows)
   local result = statement:execute()
   assert(result.nrows == 1, "a range select found no row")
   result:free()
end

function blob.update_one(statements)
   local statement = statements[blob.any_table()]
   statement.ids[1][0] = sysbench.rand.uniform(1, sysbench.opt.rows)
   statement:set_values()
   statement:execute()
end

function blob.count_one(statements)
   local statement = statements[blob.any_table()]
   statement.ids[1][0] = sysbench.rand.uniform(1, sysbench.opt.rows)
   statement:execute()
end

-- One JSON line per report. With --report-checkpoints=W sysbench reports once at W seconds (the warm-up) and once at the end,
-- each covering only its own interval.
function sysbench.hooks.report_cumulative(stat)
   print(string.format('{"quarry_report": 1, "time_total": %.6f, "interval_seconds": %.6f, "threads": %d, "events": %d, "reads": %d, ' ..
                       '"writes": %d, "errors": %d, "latency_avg_ms": %.4f, "latency_max_ms": %.4f, "latency_p95_ms": %.4f}',
                       stat.time_total, stat.time_interval, stat.threads_running, stat.events, stat.reads, stat.writes, stat.errors,
                       stat.latency_avg * 1000, stat.latency_max * 1000, stat.latency_pct * 1000))
end

return blob
