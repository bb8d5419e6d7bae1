#include "engine/home_directory.h"

#include "quarry/store.h"
#include "server/mariadb_compat.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace quarry {

namespace {

/// The home's names in builds before the first release, and where mariadb-upgrade put it in a server without the
/// plugin.
constexpr const char* kFormerNames[] = {"#quarry", "@0023quarry"};

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

Status RefuseFormerHome(const std::string& data_home, const std::string& home) {
  for (const char* const name : kFormerNames) {
    QUARRY_TRY_ASSIGN(const bool is_former, StoreDirectory::IsHome(data_home + name));
    if (!is_former) continue;
    return Status::Unavailable(
        "'" + data_home + name +
        "' is the home of a build from before the first release, under its name of then. Stop the server and rename it "
        "to '" +
        home + "' to go on with it, or move it out of the data directory, with the QUARRY tables, to start anew");
  }
  return Status::Ok();
}

struct QuarryTables {
  size_t count = 0;
  std::string first;  ///< "db/t"
};

QuarryTables FindQuarryTables(const std::string& data_home) {
  QuarryTables tables;
  for (const std::string& database : Names(data_home.empty() ? "." : data_home)) {
    if (database[0] == '.') continue;
    for (const std::string& file : Names(data_home + database)) {
      if (!file.ends_with(".frm") || !IsQuarryTable(data_home + database + "/" + file)) continue;
      if (tables.count++ == 0) tables.first = database + "/" + file.substr(0, file.size() - 4);
    }
  }
  return tables;
}

std::string WishFile(const std::string& home) { return home + "/" + kWithoutValuesName; }

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

Status RefuseWithoutHome(const std::string& data_home, const std::string& home) {
  QUARRY_TRY_ASSIGN(const bool is_home, StoreDirectory::IsHome(home));
  if (is_home) return Status::Ok();
  QUARRY_TRY(RefuseFormerHome(data_home, home));
  if (IsThere(WishFile(home))) return Status::Ok();
  const QuarryTables tables = FindQuarryTables(data_home);
  if (tables.count == 0) return Status::Ok();
  return Status::Unavailable(
      std::to_string(tables.count) + " QUARRY tables are here (the first: " + tables.first +
      "), but their values are not: " +
      (IsThere(home) ? "there is no catalogue in '" + home + "'" : "there is no '" + home + "'") +
      ". If it was moved, move it back; if it has a file system of its own, mount that. mariadb-backup alone leaves it "
      "out, and so does a Galera state transfer with wsrep_sst_method=mariabackup: restore a backup made by "
      "quarry-backup, or let the node join with wsrep_sst_method=rsync. (To start without those values for good, make "
      "that folder and an empty file " +
      kWithoutValuesName + " in it)");
}

void ForgetWishToGoOnWithoutValues(const std::string& home) { (void)unlink(WishFile(home).c_str()); }

}  // namespace quarry
