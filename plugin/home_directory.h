// The folder of the stores, found again where a server without Quarry put it.
//
// A server that runs without the plugin takes `#quarry` for a database with a name of before MySQL 5.1, and
// mariadb-upgrade renames such: to `@0023quarry`. With the plugin back, no value would be found.
#pragma once

#include <string>

#include "quarry/status.h"

namespace quarry {

/// Moves `<data_home>@0023quarry` back to `home` (`<data_home>#quarry`) when the stores are there and not in `home`;
/// says so in the error log. Not found in either place: Ok, the installation is new. Errors: kInvalidArgument when
/// there are stores in both places, kIoError.
Status BringHomeBack(const std::string& data_home, const std::string& home);

}  // namespace quarry
