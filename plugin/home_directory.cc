#include "home_directory.h"

#include "mariadb_compat.h"

#include <fcntl.h>
#include <unistd.h>

namespace quarry {

namespace {

/// The server's file name of a database called #quarry.
constexpr char kMovedTo[] = "@0023quarry";
/// What every folder of stores holds.
constexpr char kMarker[] = "/DIRECTORY";

bool HoldsStores(const std::string& folder) { return access((folder + kMarker).c_str(), F_OK) == 0; }

}  // namespace

Status BringHomeBack(const std::string& data_home, const std::string& home) {
  const std::string moved = data_home + kMovedTo;
  if (!HoldsStores(moved)) return Status::Ok();
  if (HoldsStores(home)) {
    return Status::InvalidArgument("there are stores in " + home + " and in " + moved +
                                   ", to where mariadb-upgrade moves them when the server runs without Quarry: keep "
                                   "the folder with the stores of the tables, under the first name, and move the other "
                                   "out of the data directory");
  }
  // Over an empty folder at most: a rename replaces no other.
  if (rename(moved.c_str(), home.c_str()) != 0) return Status::FromErrno(errno, "rename to " + home, moved);
  // A database's own file. Gone already is fine.
  const std::string database_options = home + "/db.opt";
  if (unlink(database_options.c_str()) != 0 && errno != ENOENT) {
    return Status::FromErrno(errno, "unlink", database_options);
  }
  const int folder = open(data_home.empty() ? "." : data_home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return Status::FromErrno(errno, "open", data_home);
  const Status status = fsync(folder) == 0 ? Status::Ok() : Status::FromErrno(errno, "fsync", data_home);
  close(folder);
  sql_print_warning("QUARRY: %s was moved to %s while the server ran without Quarry, and is back", home.c_str(),
                    moved.c_str());
  return status;
}

}  // namespace quarry
