// The home found again where something else moved it: done before Open, with nothing open.
#include "store/home_directory.h"
#include "io/path.h"
#include "store/layout.h"

namespace quarry {
namespace {

/// A server's own note about a database, which it takes the moved folder for.
constexpr const char* kDatabaseOptionsName = "db.opt";

Result<bool> HoldsStores(Env* env, const std::string& path) {
  return env->FileExists(JoinPath(path, kDirectoryFileName));
}

}  // namespace

Result<bool> MoveHomeBack(Env* env, const std::string& moved_path, const std::string& home_path) {
  QUARRY_TRY_ASSIGN(const bool is_moved, HoldsStores(env, moved_path));
  if (!is_moved) return false;
  QUARRY_TRY_ASSIGN(const bool is_there, HoldsStores(env, home_path));
  if (is_there) {
    return Status::InvalidArgument("there are stores in " + home_path + " and in " + moved_path +
                                   ", to where mariadb-upgrade moves them when the server runs without Quarry: keep "
                                   "the folder with the stores of the tables, under the first name, and move the other "
                                   "out of the data directory");
  }
  // Over an empty folder at most: a rename replaces no other.
  QUARRY_TRY(env->Rename(moved_path, home_path));
  // Gone already is fine.
  const Status removed = env->RemoveFile(JoinPath(home_path, kDatabaseOptionsName));
  if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  QUARRY_TRY(env->SyncDirectory(ParentPath(home_path)));
  return true;
}

Result<bool> StoreDirectory::MoveHomeBack(const std::string& moved_path, const std::string& home_path) {
  return quarry::MoveHomeBack(Env::Posix(), moved_path, home_path);
}

}  // namespace quarry
