// What is looked at in the data directory before the stores are opened: whether their home is there.
//
// The home's name has a dot in it (quarry/options.h), so that no SQL reaches it: with the rights CREATE, DROP and ALTER
// a user could else move it, put an empty one in its place, or tables of his own into it.
#pragma once

#include <string>

#include "quarry/options.h"
#include "quarry/status.h"

namespace quarry {

/// The engine's number, stable over restarts: .frm and .par files name it so.
inline constexpr uint8_t kEngineNumber = 103;

/// An empty file of this name, made by hand in the home: somebody's wish to go on without the values.
inline constexpr char kWithoutValuesName[] = "WITHOUT_VALUES";

/// Refuses (kUnavailable) what is there without a home of its own, and would else be opened with new, empty stores as
/// if nothing was wrong until the first value is read, whereupon nothing could be put right any more:
///  - a home under the name that it had in builds before the first release;
///  - QUARRY tables: their data directory was made by mariadb-backup alone, or by a state transfer of Galera that uses
///    it, or the home was moved away, or lies on a drive that is not mounted. Unless kWithoutValuesName is there.
/// The tables' definitions are looked at only when there is no home.
Status RefuseWithoutHome(const std::string& data_home, const std::string& home);

/// Once the stores are open the wish is fulfilled: another time it must be said anew.
void ForgetWishToGoOnWithoutValues(const std::string& home);

}  // namespace quarry
