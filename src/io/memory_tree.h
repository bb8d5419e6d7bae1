// The directories of MemoryEnv: what callers see, what is durable, and the operations between the two.
// Invariants: every node but the root stands under one name of one directory, in the current view; a node that was
// removed lives on as long as a handle, the durable view or a volatile operation holds it.
// Thread-safety: externally synchronised (by MemoryEnv's mutex).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/memory_file.h"

namespace quarry {

struct MemoryNode {
  explicit MemoryNode(bool is_directory_in) : is_directory(is_directory_in) {}
  const bool is_directory;
  uint64_t number = 0;  ///< given once
  MemoryFile file;      ///< unless a directory
  using Children = std::map<std::string, std::shared_ptr<MemoryNode>, std::less<>>;
  Children children;          ///< as callers see them
  Children durable_children;  ///< as a power cut leaves them at least
};

class MemoryTree {
 public:
  using NodePointer = std::shared_ptr<MemoryNode>;
  MemoryTree();

  /// Nothing when there is no such node.
  [[nodiscard]] NodePointer Find(const std::string& path) const;

  // Each returns 0 or an errno, as the system call of that name would.
  [[nodiscard]] int CreateNode(const std::string& path, bool is_directory, NodePointer* created);
  [[nodiscard]] int Rename(const std::string& from, const std::string& to);
  [[nodiscard]] int Remove(const std::string& path, bool is_directory);
  [[nodiscard]] int SyncDirectory(const std::string& path);

  /// Settles directories and files alike.
  void PowerCut(CutPolicy* policy);

  /// Blocks allocated by all files that callers can still name or have open.
  [[nodiscard]] uint64_t AllocatedBlocks() const;

 private:
  /// One name of one directory that an operation gives to `node`, or takes from it.
  struct Change {
    NodePointer directory;
    std::string name;
    NodePointer node;  ///< null: the name goes away
    bool synced = false;
  };
  /// What becomes durable at once: one change, or the two of a rename.
  struct Operation {
    std::vector<Change> changes;
  };
  struct Place {
    NodePointer directory;
    std::string name;
  };
  [[nodiscard]] int FindPlace(const std::string& path, Place* place) const;
  void Do(std::vector<Change> changes);
  [[nodiscard]] bool ChangedAgain(size_t operation, const Change& change) const;
  static void MakeDurable(const Operation& operation);
  static void ForgetVolatile(const NodePointer& directory);

  const NodePointer root_;
  uint64_t nodes_made_ = 0;
  std::vector<Operation> volatile_operations_;
  std::vector<std::weak_ptr<MemoryNode>> files_;
};

}  // namespace quarry
