#include "io/memory_tree.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

namespace quarry {

namespace {

/// The first name of `path`, which loses it; empty: there is none.
std::string_view TakeName(std::string_view* path) {
  path->remove_prefix(std::min(path->find_first_not_of('/'), path->size()));
  const std::string_view name = path->substr(0, path->find('/'));
  path->remove_prefix(name.size());
  return name;
}

}  // namespace

MemoryTree::MemoryTree() : root_(std::make_shared<MemoryNode>(true)) {}

MemoryTree::NodePointer MemoryTree::Find(const std::string& path) const {
  const NodePointer* node = &root_;
  std::string_view rest = path;
  for (std::string_view name = TakeName(&rest); !name.empty(); name = TakeName(&rest)) {
    const auto child = (*node)->children.find(name);
    if (child == (*node)->children.end()) return nullptr;
    node = &child->second;
  }
  return *node;
}

int MemoryTree::FindPlace(const std::string& path, Place* place) const {
  std::string_view rest = path;
  std::string_view name = TakeName(&rest);
  if (name.empty()) return EINVAL;
  NodePointer node = root_;
  for (std::string_view next = TakeName(&rest); !next.empty(); name = std::exchange(next, TakeName(&rest))) {
    const auto child = node->children.find(name);
    if (child == node->children.end()) return ENOENT;
    if (!child->second->is_directory) return ENOTDIR;
    node = child->second;
  }
  *place = {node, std::string(name)};
  return 0;
}

void MemoryTree::Do(std::vector<Change> changes) {
  for (const Change& change : changes) {
    if (change.node != nullptr) {
      change.directory->children[change.name] = change.node;
    } else {
      change.directory->children.erase(change.name);
    }
  }
  volatile_operations_.push_back({std::move(changes)});
}

int MemoryTree::CreateNode(const std::string& path, bool is_directory, NodePointer* created) {
  Place place;
  if (const int error = FindPlace(path, &place); error != 0) return error;
  if (place.directory->children.contains(place.name)) return EEXIST;
  auto node = std::make_shared<MemoryNode>(is_directory);
  node->number = ++nodes_made_;
  if (!is_directory) files_.push_back(node);
  if (created != nullptr) *created = node;
  Do({{place.directory, place.name, node, false}});
  return 0;
}

int MemoryTree::Rename(const std::string& from, const std::string& to) {
  Place source;
  Place target;
  if (const int error = FindPlace(from, &source); error != 0) return error;
  if (const int error = FindPlace(to, &target); error != 0) return error;
  const auto found = source.directory->children.find(source.name);
  if (found == source.directory->children.end()) return ENOENT;
  const NodePointer node = found->second;
  if (const auto there = target.directory->children.find(target.name); there != target.directory->children.end()) {
    if (there->second == node) return 0;
    if (there->second->is_directory != node->is_directory) return node->is_directory ? ENOTDIR : EISDIR;
    if (!there->second->children.empty()) return ENOTEMPTY;
  }
  Do({{source.directory, source.name, nullptr, false}, {target.directory, target.name, node, false}});
  return 0;
}

int MemoryTree::Remove(const std::string& path, bool is_directory) {
  Place place;
  if (const int error = FindPlace(path, &place); error != 0) return error;
  const auto found = place.directory->children.find(place.name);
  if (found == place.directory->children.end()) return ENOENT;
  if (found->second->is_directory != is_directory) return is_directory ? ENOTDIR : EISDIR;
  if (!found->second->children.empty()) return ENOTEMPTY;
  Do({{place.directory, place.name, nullptr, false}});
  return 0;
}

// True when a later operation changes the same name: that one can't be durable without this one.
bool MemoryTree::ChangedAgain(size_t operation, const Change& change) const {
  return std::any_of(volatile_operations_.begin() + static_cast<ptrdiff_t>(operation) + 1, volatile_operations_.end(),
                     [&](const Operation& later) {
                       return std::any_of(later.changes.begin(), later.changes.end(), [&](const Change& other) {
                         return other.directory == change.directory && other.name == change.name;
                       });
                     });
}

void MemoryTree::MakeDurable(const Operation& operation) {
  for (const Change& change : operation.changes) {
    if (change.node != nullptr) {
      change.directory->durable_children[change.name] = change.node;
    } else {
      change.directory->durable_children.erase(change.name);
    }
  }
}

int MemoryTree::SyncDirectory(const std::string& path) {
  const NodePointer directory = Find(path);
  if (directory == nullptr) return ENOENT;
  if (!directory->is_directory) return ENOTDIR;
  std::vector<Operation> left;
  for (size_t i = 0; i < volatile_operations_.size(); ++i) {
    Operation& operation = volatile_operations_[i];
    bool all_synced = true;
    bool must = false;
    for (Change& change : operation.changes) {
      if (change.directory == directory) {
        change.synced = true;
        must = must || ChangedAgain(i, change);
      }
      all_synced = all_synced && change.synced;
    }
    if (all_synced || must) {
      MakeDurable(operation);
    } else {
      left.push_back(operation);  // a copy: ChangedAgain still looks at the original
    }
  }
  volatile_operations_ = std::move(left);
  return 0;
}

void MemoryTree::ForgetVolatile(const NodePointer& directory) {
  directory->children = directory->durable_children;
  for (const auto& [name, child] : directory->children) {
    if (child->is_directory) ForgetVolatile(child);
  }
}

void MemoryTree::PowerCut(CutPolicy* policy) {
  std::set<std::pair<const MemoryNode*, std::string>> dropped;
  const unsigned percent = policy->DrawPercent();
  for (const Operation& operation : volatile_operations_) {
    const bool follows_dropped =
        std::any_of(operation.changes.begin(), operation.changes.end(), [&](const Change& change) {
          return dropped.contains({change.directory.get(), change.name});
        });
    if (!follows_dropped && policy->Keep(percent)) {
      MakeDurable(operation);
      continue;
    }
    for (const Change& change : operation.changes) dropped.emplace(change.directory.get(), change.name);
  }
  volatile_operations_.clear();
  ForgetVolatile(root_);
  for (const auto& weak : files_) {
    if (const NodePointer node = weak.lock(); node != nullptr) node->file.PowerCut(policy);
  }
  std::erase_if(files_, [](const auto& weak) { return weak.expired(); });
}

uint64_t MemoryTree::AllocatedBlocks() const {
  uint64_t blocks = 0;
  for (const auto& weak : files_) {
    if (const NodePointer node = weak.lock(); node != nullptr) blocks += node->file.current().allocated_blocks();
  }
  return blocks;
}

}  // namespace quarry
