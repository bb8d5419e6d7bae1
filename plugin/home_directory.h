// The folder of the stores, found again where a server without Quarry put it.
//
// A server that runs without the plugin takes `#quarry` for a database with a name of before MySQL 5.1, and
// mariadb-upgrade renames such: to `@0023quarry`. With the plugin back, no value would be found.
#pragma once

#include <string>

#include "quarry/status.h"

namespace quarry {

/// Of the stores' folder in the data directory.
inline constexpr char kHomeName[] = "#quarry";

/// Moves `<data_home>@0023quarry` back to `home` (`<data_home>#quarry`) when the stores are there and not in `home`;
/// says so in the error log. Not found in either place: Ok, the installation is new. Errors: kInvalidArgument when
/// there are stores in both places, kIoError.
Status BringHomeBack(const std::string& data_home, const std::string& home);

/// The engine's number, stable over restarts: .frm and .par files name it so.
inline constexpr uint8_t kEngineNumber = 103;

/// A data directory in which there are QUARRY tables, but no `home`, was made without their values: by mariadb-backup
/// alone, or by a state transfer of Galera that uses it. kUnavailable then: to start with new stores would look as if
/// nothing was wrong until the first value is read, and make of the loss a lasting one. An empty `home`, made by hand,
/// is somebody's wish to go on without. Looks at the tables' definitions only when there is no `home`.
Status RefuseTablesWithoutHome(const std::string& data_home, const std::string& home);

}  // namespace quarry
