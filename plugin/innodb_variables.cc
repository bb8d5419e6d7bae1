// See innodb_variables.h.
#include "innodb_variables.h"

#include <sql_plugin.h>

namespace quarry {
namespace {

/// The bits of a plugin variable's flags that say its type (sql_plugin.cc keeps the name to itself).
constexpr int kTypeMask = 0x7f;

constexpr std::string_view kPrefix = "innodb_";

}  // namespace

const unsigned long* FindInnodbVariable(const handlerton* innodb_hton, std::string_view name) {
  // What the plugin API calls an ENUM or a LONG: the value is an unsigned long, behind the common header.
  struct LongVariable {
    MYSQL_PLUGIN_VAR_HEADER;
    unsigned long* value;
  };
  const st_plugin_int* const plugin = hton2plugin[innodb_hton->slot];
  st_mysql_sys_var* const* variable = plugin == nullptr ? nullptr : plugin->plugin->system_vars;
  for (; variable != nullptr && *variable != nullptr; variable++) {
    const auto* const header = reinterpret_cast<const LongVariable*>(*variable);
    const int type = header->flags & kTypeMask;
    if ((type != PLUGIN_VAR_ENUM && type != PLUGIN_VAR_LONG) || (header->flags & PLUGIN_VAR_THDLOCAL) != 0) continue;
    // Once registered, a variable carries the plugin's name, too.
    std::string_view its_name(header->name);
    if (its_name.substr(0, kPrefix.size()) == kPrefix) its_name.remove_prefix(kPrefix.size());
    if (its_name == name) return header->value;
  }
  return nullptr;
}

}  // namespace quarry
