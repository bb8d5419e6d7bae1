// See child_name.h.
#include "server/child_name.h"

#include "server/mariadb_compat.h"

namespace quarry {

namespace {

constexpr std::string_view kPartitionMark = "#P#";
constexpr std::string_view kSubpartitionMark = "#SP#";

std::string Decoded(const std::string& file_name) {
  char buffer[NAME_LEN + 1];
  const uint length = filename_to_tablename(file_name.c_str(), buffer, sizeof(buffer), true);
  return std::string(buffer, length);
}

}  // namespace

TableName SplitChildName(const std::string& path) {
  TableName name;
  const size_t slash = path.rfind('/');
  const std::string table = slash == std::string::npos ? path : path.substr(slash + 1);
  if (slash != std::string::npos) {
    const std::string database = path.substr(0, slash);
    const size_t parent = database.rfind('/');
    name.database = Decoded(parent == std::string::npos ? database : database.substr(parent + 1));
  }
  const size_t partition = table.find(kPartitionMark);
  name.table = Decoded(table.substr(0, partition));
  if (partition == std::string::npos) return name;
  const std::string parts = table.substr(partition + kPartitionMark.size());
  const size_t subpartition = parts.find(kSubpartitionMark);
  name.partition = Decoded(parts.substr(0, subpartition));
  if (subpartition != std::string::npos) {
    name.partition += "," + Decoded(parts.substr(subpartition + kSubpartitionMark.size()));
  }
  return name;
}

std::string WithoutPartition(const std::string& child_name) {
  return child_name.substr(0, child_name.find(kPartitionMark));
}

std::string Backticked(const std::string& name) {
  std::string quoted = "`";
  for (const char c : name) quoted += c == '`' ? std::string("``") : std::string(1, c);
  return quoted + "`";
}

std::string Quoted(const TableName& name) { return Backticked(name.database) + "." + Backticked(name.table); }

}  // namespace quarry
