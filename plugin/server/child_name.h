// InnoDB's names of tables ("db/t#P#p0#SP#sub0", in the file system's character set) as people and SQL know them.
// Thread-safety: pure functions and values.
#pragma once

#include <string>

namespace quarry {

struct TableName {
  std::string database;
  std::string table;
  std::string partition;  ///< "p0" or "p0,sub0"; empty: not partitioned
};

/// Of `path`, whose database may be preceded by a folder.
TableName SplitChildName(const std::string& path);

/// "db/t" of "db/t#P#p0": the same for all partitions of a table.
std::string WithoutPartition(const std::string& child_name);

/// An identifier, to stand in a statement.
std::string Backticked(const std::string& name);

/// `db`.`t`, to stand in a statement.
std::string Quoted(const TableName& name);

}  // namespace quarry
