#include "home_directory.h"

#include "mariadb_compat.h"
#include "quarry/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace quarry {

namespace {

/// The server's file name of a database called #quarry.
constexpr char kMovedTo[] = "@0023quarry";

/// Names in a folder; none when it cannot be read (it is no database then, or is not ours to judge).
std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(folder.c_str()), closedir);
  if (stream == nullptr) return names;
  while (const dirent* const entry = readdir(stream.get())) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

/// Whether a .frm file is of a table whose engine, or that of its partitions, is QUARRY.
bool IsQuarryTable(const std::string& path) {
  constexpr size_t kEngineAt = 3;
  constexpr size_t kPartitionEngineAt = 61;
  uint8_t header[64] = {};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  const bool whole = read(file, header, sizeof(header)) == static_cast<ssize_t>(sizeof(header));
  close(file);
  const bool is_definition = whole && header[0] == 0xfe && header[1] == 1;
  return is_definition && (header[kEngineAt] == kEngineNumber || header[kPartitionEngineAt] == kEngineNumber);
}

}  // namespace

Status BringHomeBack(const std::string& data_home, const std::string& home) {
  const std::string moved = data_home + kMovedTo;
  QUARRY_TRY_ASSIGN(const bool is_back, StoreDirectory::MoveHomeBack(moved, home));
  if (is_back) {
    sql_print_warning("QUARRY: %s was moved to %s while the server ran without Quarry, and is back", home.c_str(),
                      moved.c_str());
  }
  return Status::Ok();
}

Status RefuseTablesWithoutHome(const std::string& data_home, const std::string& home) {
  if (access(home.c_str(), F_OK) == 0) return Status::Ok();
  size_t tables = 0;
  std::string first;
  for (const std::string& database : Names(data_home.empty() ? "." : data_home)) {
    if (database[0] == '.') continue;
    for (const std::string& file : Names(data_home + database)) {
      if (!file.ends_with(".frm") || !IsQuarryTable(data_home + database + "/" + file)) continue;
      if (tables++ == 0) first = database + "/" + file.substr(0, file.size() - 4);
    }
  }
  if (tables == 0) return Status::Ok();
  return Status::Unavailable(
      std::to_string(tables) + " QUARRY tables are here (the first: " + first +
      "), but the folder with their values is not. mariadb-backup alone leaves it out, and so does a Galera state "
      "transfer with wsrep_sst_method=mariabackup: restore a backup made by quarry-backup, or let the node join with "
      "wsrep_sst_method=rsync. (To start without those values for good, make an empty folder of that name)");
}

}  // namespace quarry
