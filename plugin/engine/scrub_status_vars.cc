// See scrub_status_vars.h. As in status_vars.cc, names and values stand in the buffer that the server hands over.
#include "engine/scrub_status_vars.h"

#include "background/scrub.h"
#include "server/ha_error.h"
#include "server/session_time.h"

namespace quarry {

namespace {

struct Buffer {
  ScrubState state;
  char last[24];
  st_mysql_show_var variables[8];
};
static_assert(sizeof(Buffer) <= SHOW_VAR_FUNC_BUFF_SIZE);
static_assert(std::is_trivially_destructible_v<Buffer>);

void FillIn(THD* thd, st_mysql_show_var* variable, void* raw_buffer) {
  auto* const buffer = new (raw_buffer) Buffer{};
  ScrubState& state = buffer->state = GetScrubState();
  snprintf(buffer->last, sizeof(buffer->last), "%s",
           state.last_seconds == 0 ? "never" : SessionTimeText(thd, state.last_seconds).c_str());
  size_t used = 0;
  const auto add = [&](const char* name, void* value, enum_mysql_show_type type) {
    buffer->variables[used++] = {name, value, type};
  };
  add("bytes", &state.bytes, SHOW_LONGLONG);
  add("doubtful", &state.doubtful, SHOW_LONGLONG);
  add("errors", &state.errors, SHOW_LONGLONG);
  add("last", buffer->last, SHOW_CHAR);
  add("round_seconds", &state.round_seconds, SHOW_LONGLONG);
  add("rounds", &state.rounds, SHOW_LONGLONG);
  add("segments", &state.segments, SHOW_LONGLONG);
  buffer->variables[used] = {nullptr, nullptr, SHOW_UNDEF};
  variable->type = SHOW_ARRAY;
  variable->value = buffer->variables;
}

}  // namespace

int ShowScrub(THD* thd, st_mysql_show_var* variable, void* raw_buffer, struct system_status_var*, enum_var_type) {
  FillInGuarded(variable, [&] { FillIn(thd, variable, raw_buffer); });
  return 0;
}

}  // namespace quarry
