// See open_transactions.h.
#include "server/open_transactions.h"

#include <algorithm>
#include <iterator>

namespace quarry {

OpenTransactions::OpenTransactions(const std::vector<OpenTransaction>& look) {
  for (const OpenTransaction& transaction : look) waited_for_.push_back({transaction, false, {transaction.started}});
}

void OpenTransactions::Update(const std::vector<OpenTransaction>& look) {
  std::erase_if(waited_for_, [&look](Waited& waited) { return !IsOpen(&waited, look); });
}

bool OpenTransactions::IsOpen(Waited* waited, const std::vector<OpenTransaction>& look) {
  const OpenTransaction& transaction = waited->transaction;
  std::set<std::string> starts_now;
  for (const OpenTransaction& row : look) {
    if (transaction.id != 0 && row.id == transaction.id) return true;
    if (row.connection == transaction.connection) starts_now.insert(row.started);
  }
  if (transaction.id != 0 || starts_now.empty()) return false;
  std::set<std::string> common;
  std::set_intersection(waited->starts.begin(), waited->starts.end(), starts_now.begin(), starts_now.end(),
                        std::inserter(common, common.begin()));
  if (!common.empty()) {
    // Only after the change: before it, the start in the set may be the stale one.
    if (waited->start_changed) waited->starts = common;
    return true;
  }
  if (waited->start_changed) return false;
  waited->start_changed = true;
  waited->starts = starts_now;
  return true;
}

std::string OpenTransactions::Describe() const {
  if (waited_for_.empty()) return std::string();
  const OpenTransaction& first = waited_for_.front().transaction;
  std::string text = first.id == 0 ? "a transaction" : "transaction " + std::to_string(first.id);
  text += first.connection == 0 ? " without a connection (XA RECOVER may list it)"
                                : " of connection " + std::to_string(first.connection);
  text += ", open since " + first.started;
  if (waited_for_.size() > 1) text += ", and " + std::to_string(waited_for_.size() - 1) + " more";
  return text;
}

}  // namespace quarry
