// See child_table_id.h.
//
//   ha_innobase::m_prebuilt --> | magic_n | table | ...        row_prebuilt_t, storage/innobase/include/row0mysql.h
//                                            |
//                                            v
//                               | id | id_hash | name | name_hash | heap | data_dir_path | space | space_id | ...
//                               dict_table_t, storage/innobase/include/dict0mem.h
//
//   Alter_inplace_info::handler_ctx --> | vtable | thr | prebuilt | ... | old_table | new_table | ...
//                                       ha_innobase_inplace_ctx, storage/innobase/handler/handler0alter.cc
#include "server/child_table_id.h"

#include "server/background_thread.h"
#include "server/error_log.h"
#include "server/server_query.h"

namespace quarry {
namespace {

/// The start of dict_table_t. `name` is a table_name_t, which is one pointer.
struct DictTablePrefix {
  uint64_t id;
  const void* id_hash;
  const char* name;
  const void* name_hash;
  const void* heap;
  const char* data_dir_path;
  const void* space;
  uint32_t space_id;
};

/// The start of row_prebuilt_t.
struct PrebuiltPrefix {
  ulint magic_n;
  const DictTablePrefix* table;
};

/// The start of ha_innobase_inplace_ctx. `prebuilt` is a reference there: the address of the handler's own pointer.
struct InplaceContextPrefix {
  const void* vtable;
  const void* thr;
  row_prebuilt_t* const* prebuilt;
  const void* add_index;
  const void* add_key_numbers;
  ulint num_to_add_index;
  const void* drop_index;
  ulint num_to_drop_index;
  const void* drop_fk;
  ulint num_to_drop_fk;
  const void* add_fk;
  ulint num_to_add_fk;
  bool online;
  const void* heap;
  const void* trx;
  const DictTablePrefix* old_table;
  const DictTablePrefix* new_table;  // old_table itself, when nothing is rebuilt
};

/// The name of the table that a rebuild makes begins so, behind its database.
constexpr std::string_view kUnfinishedMark = "/#sql";

constexpr ulint kPrebuiltAllocated = 78540783;       // ROW_PREBUILT_ALLOCATED
constexpr uint32_t kTemporarySpaceId = 0xFFFFFFFEU;  // SRV_TMP_SPACE_ID

// ha_innobase::m_prebuilt is protected. The rules of C++ let an explicit instantiation name it all the same.
template <row_prebuilt_t* ha_innobase::*kMember>
struct PrebuiltMember {
  friend row_prebuilt_t* const& PrebuiltOf(const ha_innobase& child) { return child.*kMember; }
};
row_prebuilt_t* const& PrebuiltOf(const ha_innobase& child);
template struct PrebuiltMember<&ha_innobase::m_prebuilt>;

const DictTablePrefix* DictTableOf(const handler* child) {
  const auto* const prebuilt =
      reinterpret_cast<const PrebuiltPrefix*>(PrebuiltOf(*static_cast<const ha_innobase*>(child)));
  if (prebuilt == nullptr || prebuilt->magic_n != kPrebuiltAllocated) return nullptr;
  return prebuilt->table;
}

/// One thread that waits until a table was opened, compares, and ends.
class SelfCheck {
 public:
  void Start() {
    if (state() != SelfCheckState::kPending) return;
    thread_.Start([] {}, [this] { Run(); });
  }

  void Stop() { thread_.Stop(); }

  void Offer(const ChildTable& table) {
    if (state_.load(std::memory_order_relaxed) != SelfCheckState::kPending || table.temporary || IsReplaced()) return;
    {
      const std::lock_guard lock(mutex_);
      offered_ = table;
    }
    thread_.Wake();
  }

  [[nodiscard]] SelfCheckState state() const { return state_.load(std::memory_order_relaxed); }

 private:
  enum class Answer : uint8_t { kSame, kDifferent, kUnknown };

  /// The statement that opens the table gives it another id or name, and the question would come too late.
  static bool IsReplaced() {
    const THD* const thd = current_thd;
    if (thd == nullptr) return false;
    switch (thd->lex->sql_command) {
      case SQLCOM_TRUNCATE:
      case SQLCOM_ALTER_TABLE:
      case SQLCOM_OPTIMIZE:
      case SQLCOM_CREATE_INDEX:
      case SQLCOM_DROP_INDEX:
        return true;
      default:
        return false;
    }
  }

  // A table may be renamed or dropped between the offer and the question, so one difference proves nothing.
  static constexpr int kDifferencesToFail = 3;
  static constexpr std::chrono::hours kLongest{1};  // an offer wakes it

  void Run() {
    int differences = 0;
    while (state_ == SelfCheckState::kPending && thread_.Wait(kLongest)) {
      (void)thread_.TryPass([&] { Compare(&differences); });
    }
  }

  void Compare(int* differences) {
    const std::optional<ChildTable> table = TakeOffer();
    if (!table) return;
    const Answer answer = Ask(*table);
    if (answer == Answer::kSame) state_ = SelfCheckState::kPassed;
    if (answer == Answer::kDifferent && ++*differences == kDifferencesToFail) Fail(*table);
  }

  std::optional<ChildTable> TakeOffer() {
    const std::lock_guard lock(mutex_);
    std::optional<ChildTable> table;
    table.swap(offered_);
    return table;
  }

  void Fail(const ChildTable& table) {
    state_ = SelfCheckState::kFailed;
    LogError(
        "InnoDB's table ids cannot be read in this server: '%s' seems to have id %llu, which "
        "INFORMATION_SCHEMA.INNODB_SYS_TABLES denies. Writes to Quarry's segments are refused; use the "
        "plugin that was built for this very server version",
        table.name.c_str(), static_cast<unsigned long long>(table.id.value));
  }

  /// Runs without any lock of ours, as a session of its own: a DDL that it waits for never waits for it.
  static Answer Ask(const ChildTable& table) {
    const Result<QueryRows> rows =
        QueryHere("SELECT NAME, SPACE FROM INFORMATION_SCHEMA.INNODB_SYS_TABLES WHERE TABLE_ID = " +
                  std::to_string(table.id.value));
    if (!rows.ok()) return Answer::kUnknown;
    for (const auto& row : *rows) {
      if (row[0] == table.name && row[1] == std::to_string(table.space_id)) return Answer::kSame;
    }
    return Answer::kDifferent;
  }

  std::mutex mutex_;
  std::optional<ChildTable> offered_;  // guarded by mutex_
  std::atomic<SelfCheckState> state_{SelfCheckState::kPending};
  BackgroundThread thread_{"quarry_check"};
};

SelfCheck& TheSelfCheck() {
  static SelfCheck self_check;
  return self_check;
}

}  // namespace

Result<ChildTable> ReadChildTable(const handler* child) {
  const DictTablePrefix* const dict_table = DictTableOf(child);
  if (dict_table == nullptr) {
    return Status::NotSupported(
        "InnoDB's table id cannot be read: its handler is not open, or is not laid out as in "
        "the server version that this plugin was built for");
  }
  if (TheSelfCheck().state() == SelfCheckState::kFailed) {
    return Status::NotSupported(
        "InnoDB's table ids cannot be read in this server (see the error log); use the plugin "
        "that was built for this very server version");
  }
  ChildTable table;
  table.id = TableId{dict_table->id};
  table.space_id = dict_table->space_id;
  table.name = dict_table->name;
  table.temporary = dict_table->space_id == kTemporarySpaceId;
  return table;
}

Result<std::optional<TableId>> ReadRebuiltTable(const handler* child, const inplace_alter_handler_ctx* context) {
  QUARRY_TRY_ASSIGN(const ChildTable before, ReadChildTable(child));
  if (context == nullptr) return std::optional<TableId>();
  const auto* const prefix = reinterpret_cast<const InplaceContextPrefix*>(context);
  const bool is_ours = prefix->prebuilt == &PrebuiltOf(*static_cast<const ha_innobase*>(child)) &&
                       prefix->old_table == DictTableOf(child) && prefix->new_table != nullptr;
  if (is_ours && prefix->new_table == prefix->old_table) return std::optional<TableId>();
  if (!is_ours || std::string_view(prefix->new_table->name).find(kUnfinishedMark) == std::string_view::npos ||
      prefix->new_table->id <= before.id.value) {
    return Status::NotSupported(
        "the id of the table that InnoDB has rebuilt it into cannot be read: InnoDB's state of the ALTER is not laid "
        "out "
        "as in the server version that this plugin was built for");
  }
  return std::optional<TableId>(TableId{prefix->new_table->id});
}

bool ChildTableIsTemporary(const handler* child) {
  const DictTablePrefix* const dict_table = DictTableOf(child);
  return dict_table != nullptr && dict_table->space_id == kTemporarySpaceId;
}

void OfferForSelfCheck(const ChildTable& table) { TheSelfCheck().Offer(table); }

void StartSelfCheck() { TheSelfCheck().Start(); }

void StopSelfCheck() { TheSelfCheck().Stop(); }

SelfCheckState GetSelfCheckState() { return TheSelfCheck().state(); }

}  // namespace quarry
