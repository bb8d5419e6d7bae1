// See rebind_judge.h.
#include "background/rebind_judge.h"

namespace quarry {

RebindVerdict JudgeRebind(const std::map<uint64_t, std::string>& tables, const RebindPair& pair) {
  const auto has_own_name = [&tables](TableId table) {
    const auto found = tables.find(table.value);
    return found != tables.end() && found->second.find("/#sql") == std::string::npos;
  };
  const bool old_is_there = has_own_name(pair.old_table);
  const bool new_is_there = has_own_name(pair.new_table);
  if (old_is_there != new_is_there) return old_is_there ? RebindVerdict::kKeepOld : RebindVerdict::kKeepNew;
  const bool knows_both = pair.old_table.value != 0 && pair.new_table.value != 0;
  if (knows_both && tables.count(pair.old_table.value) == 0 && tables.count(pair.new_table.value) == 0) {
    return RebindVerdict::kDropped;
  }
  return RebindVerdict::kDoubt;
}

}  // namespace quarry
