// Quarry's system variables: `quarry_<name>`. docs/operate/variables.md lists them with ranges and effects;
// server/variables.h says what they hold.
// Thread-safety: DirectoryOptionsFromVariables is for the plugin's init.
#pragma once

#include "quarry/options.h"
#include "server/mariadb_compat.h"

namespace quarry {

/// For st_maria_plugin::system_vars.
extern struct st_mysql_sys_var* system_variables[];

/// The core's options from the read-only variables. Errors: kInvalidArgument or kUnavailable name the data path that
/// is relative, repeated, missing, not a directory, not writable or inside another one.
Result<DirectoryOptions> DirectoryOptionsFromVariables(const std::string& home_path);

}  // namespace quarry
