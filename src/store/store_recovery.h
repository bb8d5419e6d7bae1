// RecoverStore: brings one store back after a shutdown or a crash, from its records in the catalogue and the names of
// its files.
//
// Invariants: no payload is read, and no file is shortened or punched: what was active is sealed as long as its file
// is, and a mark pass counts later what is in it. A file that no record names is kept, whatever it is, unless it is
// shorter than a segment's header. Recovered segments are never appended to again. A store of which a drive cannot list
// a folder is there (StoreContext::unlisted): it is read by its records, and until the next start nothing is appended
// to it or given back.
// Thread-safety: called by Open alone, before anybody else knows the store.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "format/catalogue_state.h"
#include "quarry/status.h"
#include "store/store_impl.h"

namespace quarry {

/// `status` says that the drive or the file system of a folder cannot list it. That there is no descriptor or no right
/// to is none of that: it may hold for all folders, and somebody puts it right.
[[nodiscard]] bool IsDamageOfFolder(const Status& status);

/// What the names of the directories say.
struct FoundStore {
  bool has_home = false;  ///< a folder of its own in the home: in stores/, or
  bool in_trash = false;  ///< in trash/
};

/// `known`: null when no record names the store. What the catalogue is to be told is added to `changes`. Null: there is
/// no such store; what a creation or an unlinking that was cut off left of it is removed.
[[nodiscard]] Result<std::shared_ptr<StoreImpl>> RecoverStore(const std::shared_ptr<StoreContext>& context,
                                                              StoreId store, const CatalogueState::Store* known,
                                                              const FoundStore& found,
                                                              std::vector<CatalogueRecord>* changes);

}  // namespace quarry
