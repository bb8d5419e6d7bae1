// StoreAccess: whose values a table may read. A head is followed only into a store that is bound to the very InnoDB
// table that the head was found in. So a head that a user made up, or carried over from elsewhere, reads nothing,
// counts nothing and marks nothing.
//
// A store whose binding is lost, and a table whose id cannot be told, prove nothing either way. Their values are read.
// Thread-safety: as the handler it belongs to: externally synchronised.
#pragma once

#include "quarry/status.h"
#include "quarry/types.h"
#include "server/mariadb_compat.h"

namespace quarry {

class StoreAccess {
 public:
  /// `child`: the open InnoDB handler whose rows hold the heads.
  void Attach(const handler* child) { child_ = child; }
  /// A statement begins, or the table may have become another one: what was found out is asked again.
  void Forget() { own_ = StoreId{}; }

  /// Cheap once the answer is known. Counts nothing.
  [[nodiscard]] bool IsOwn(StoreId store) {
    return (store == own_ && store != StoreId{}) || Check(store) == Answer::kOwn;
  }
  /// Ok, or kForeign. Its message names `column`, and nothing of the other store. Counts what it refuses.
  [[nodiscard]] Status Require(StoreId store, const LEX_CSTRING& column);

 private:
  enum class Answer : uint8_t { kOwn, kForeign };
  Answer Check(StoreId store);

  const handler* child_ = nullptr;
  StoreId own_;  ///< known to be this table's; {}: none yet
};

}  // namespace quarry
