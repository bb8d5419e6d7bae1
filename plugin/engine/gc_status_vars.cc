// See gc_status_vars.h. As in status_vars.cc, names and values stand in the buffer that the server hands over.
#include "engine/gc_status_vars.h"

#include <algorithm>

#include "background/gc_thread.h"
#include "server/ha_error.h"
#include "server/privileges.h"

namespace quarry {

namespace {

struct Buffer {
  GcCounts counts;
  char last_damage[320];
  char last_error[640];
  char state[256];
  st_mysql_show_var variables[18];
};
static_assert(sizeof(Buffer) <= SHOW_VAR_FUNC_BUFF_SIZE);
static_assert(std::is_trivially_destructible_v<Buffer>);

/// Every account sees status variables: names of tables are for those that may see other sessions' statements.
void HideNames(GcStatus* status) {
  status->state.resize(std::min(status->state.find(' '), status->state.size()));  // what is done, not to which table
  for (std::string* const text : {&status->last_damage, &status->last_error}) {
    if (!text->empty()) *text = "(its text needs the privilege PROCESS)";
  }
}

void FillIn(THD* thd, st_mysql_show_var* variable, void* raw_buffer) {
  auto* const buffer = new (raw_buffer) Buffer{};
  GcStatus status = GetGcStatus();
  if (!MayProcess(thd)) HideNames(&status);
  buffer->counts = status;
  snprintf(buffer->last_damage, sizeof(buffer->last_damage), "%s", status.last_damage.c_str());
  snprintf(buffer->last_error, sizeof(buffer->last_error), "%s", status.last_error.c_str());
  snprintf(buffer->state, sizeof(buffer->state), "%s", status.state.c_str());
  GcCounts& counts = buffer->counts;
  size_t used = 0;
  const auto add = [&](const char* name, void* value, enum_mysql_show_type type) {
    buffer->variables[used++] = {name, value, type};
  };
  add("last_damage", buffer->last_damage, SHOW_CHAR);
  add("last_error", buffer->last_error, SHOW_CHAR);
  add("looks", &counts.looks, SHOW_LONGLONG);
  add("memory_bytes", &counts.memory_bytes, SHOW_LONGLONG);
  add("passes", &counts.passes, SHOW_LONGLONG);
  add("passes_dropped", &counts.passes_dropped, SHOW_LONGLONG);
  add("passes_skipped", &counts.passes_skipped, SHOW_LONGLONG);
  add("reclaimed_bytes", &counts.reclaimed_bytes, SHOW_LONGLONG);
  add("requests", &counts.requests, SHOW_LONGLONG);
  add("requests_done", &counts.requests_done, SHOW_LONGLONG);
  add("rewrites_refused", &counts.rewrites_refused, SHOW_LONGLONG);
  add("rewritten_bytes", &counts.rewritten_bytes, SHOW_LONGLONG);
  add("rows_scanned", &counts.rows_scanned, SHOW_LONGLONG);
  add("segments_damaged", &counts.segments_damaged, SHOW_LONGLONG);
  add("segments_rewritten", &counts.segments_rewritten, SHOW_LONGLONG);
  add("segments_unlinked", &counts.segments_unlinked, SHOW_LONGLONG);
  add("state", buffer->state, SHOW_CHAR);
  buffer->variables[used] = {nullptr, nullptr, SHOW_UNDEF};
  variable->type = SHOW_ARRAY;
  variable->value = buffer->variables;
}

}  // namespace

int ShowGc(THD* thd, st_mysql_show_var* variable, void* raw_buffer, struct system_status_var*, enum_var_type) {
  FillInGuarded(variable, [&] { FillIn(thd, variable, raw_buffer); });
  return 0;
}

}  // namespace quarry
