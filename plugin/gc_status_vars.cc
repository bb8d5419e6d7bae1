// See gc_status_vars.h. As in status_vars.cc, names and values stand in the buffer that the server hands over.
#include "gc_status_vars.h"

#include "gc_thread.h"

namespace quarry {

namespace {

struct Buffer {
  uint64_t passes;
  uint64_t passes_dropped;
  uint64_t looks;
  uint64_t reclaimed_bytes;
  uint64_t requests;
  uint64_t requests_done;
  uint64_t rows_scanned;
  uint64_t rewrites_refused;
  uint64_t rewritten_bytes;
  uint64_t segments_damaged;
  uint64_t segments_rewritten;
  uint64_t segments_unlinked;
  char last_damage[320];
  char last_error[640];
  char state[256];
  st_mysql_show_var variables[16];
};
static_assert(sizeof(Buffer) <= SHOW_VAR_FUNC_BUFF_SIZE);
static_assert(std::is_trivially_destructible_v<Buffer>);

}  // namespace

int ShowGc(THD*, st_mysql_show_var* variable, void* raw_buffer, struct system_status_var*, enum_var_type) {
  auto* const buffer = new (raw_buffer) Buffer{};
  const GcStatus status = GetGcStatus();
  buffer->passes = status.passes;
  buffer->passes_dropped = status.passes_dropped;
  buffer->reclaimed_bytes = status.reclaimed_bytes;
  buffer->looks = status.looks;
  buffer->requests = status.requests;
  buffer->requests_done = status.requests_done;
  buffer->rows_scanned = status.rows_scanned;
  buffer->rewrites_refused = status.rewrites_refused;
  buffer->rewritten_bytes = status.rewritten_bytes;
  buffer->segments_damaged = status.segments_damaged;
  buffer->segments_rewritten = status.segments_rewritten;
  buffer->segments_unlinked = status.segments_unlinked;
  snprintf(buffer->last_damage, sizeof(buffer->last_damage), "%s", status.last_damage.c_str());
  snprintf(buffer->last_error, sizeof(buffer->last_error), "%s", status.last_error.c_str());
  snprintf(buffer->state, sizeof(buffer->state), "%s", status.state.c_str());
  size_t used = 0;
  const auto add = [&](const char* name, void* value, enum_mysql_show_type type) {
    buffer->variables[used++] = {name, value, type};
  };
  add("last_damage", buffer->last_damage, SHOW_CHAR);
  add("last_error", buffer->last_error, SHOW_CHAR);
  add("looks", &buffer->looks, SHOW_LONGLONG);
  add("passes", &buffer->passes, SHOW_LONGLONG);
  add("passes_dropped", &buffer->passes_dropped, SHOW_LONGLONG);
  add("reclaimed_bytes", &buffer->reclaimed_bytes, SHOW_LONGLONG);
  add("requests", &buffer->requests, SHOW_LONGLONG);
  add("requests_done", &buffer->requests_done, SHOW_LONGLONG);
  add("rewrites_refused", &buffer->rewrites_refused, SHOW_LONGLONG);
  add("rewritten_bytes", &buffer->rewritten_bytes, SHOW_LONGLONG);
  add("rows_scanned", &buffer->rows_scanned, SHOW_LONGLONG);
  add("segments_damaged", &buffer->segments_damaged, SHOW_LONGLONG);
  add("segments_rewritten", &buffer->segments_rewritten, SHOW_LONGLONG);
  add("segments_unlinked", &buffer->segments_unlinked, SHOW_LONGLONG);
  add("state", buffer->state, SHOW_CHAR);
  buffer->variables[used] = {nullptr, nullptr, SHOW_UNDEF};
  variable->type = SHOW_ARRAY;
  variable->value = buffer->variables;
  return 0;
}

}  // namespace quarry
