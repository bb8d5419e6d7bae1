// See innodb_variables.h.
#include "server/innodb_variables.h"

#include <algorithm>
#include <initializer_list>

#include <sql_plugin.h>

namespace quarry {
namespace {

/// The bits of a plugin variable's flags that say its type (sql_plugin.cc keeps the name to itself).
constexpr int kTypeMask = 0x7f;

constexpr std::string_view kPrefix = "innodb_";

/// Of a global variable of one of `types`: the value is a T, behind the common header.
template <typename T>
const T* Find(const handlerton* innodb_hton, std::string_view name, std::initializer_list<int> types) {
  struct Variable {
    MYSQL_PLUGIN_VAR_HEADER;
    T* value;
  };
  const st_plugin_int* const plugin = hton2plugin[innodb_hton->slot];
  st_mysql_sys_var* const* variable = plugin == nullptr ? nullptr : plugin->plugin->system_vars;
  for (; variable != nullptr && *variable != nullptr; variable++) {
    const auto* const header = reinterpret_cast<const Variable*>(*variable);
    const int type = header->flags & kTypeMask;
    const bool is_of_type = std::find(types.begin(), types.end(), type) != types.end();
    if (!is_of_type || (header->flags & PLUGIN_VAR_THDLOCAL) != 0) continue;
    // Once registered, a variable carries the plugin's name, too.
    std::string_view its_name(header->name);
    if (its_name.substr(0, kPrefix.size()) == kPrefix) its_name.remove_prefix(kPrefix.size());
    if (its_name == name) return header->value;
  }
  return nullptr;
}

}  // namespace

const unsigned long* FindInnodbVariable(const handlerton* innodb_hton, std::string_view name) {
  return Find<unsigned long>(innodb_hton, name, {PLUGIN_VAR_ENUM, PLUGIN_VAR_LONG});
}

const unsigned int* FindInnodbInt(const handlerton* innodb_hton, std::string_view name) {
  return Find<unsigned int>(innodb_hton, name, {PLUGIN_VAR_INT});
}

}  // namespace quarry
