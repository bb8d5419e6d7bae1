// GuardedHandler: the handler that the server gets: QuarryHandler, and nothing that it throws.
//
// The server knows no exceptions, and Quarry's own code takes memory of the C++ library, which throws std::bad_alloc.
// Every method in which it may do so is guarded here: the statement fails with HA_ERR_OUT_OF_MEM. What must be put back
// before that (the row that a write changed, a view, a claim) is guarded where it is taken.
// Invariant: what is missing here takes no such memory: it frees, or only calls the child.
// Thread-safety: as every handler.
#include "handler/ha_quarry.h"
#include "server/running_engine.h"

namespace quarry {

namespace {

class GuardedHandler final : public QuarryHandler {
 public:
  using QuarryHandler::QuarryHandler;

  handler* clone(const char* name, MEM_ROOT* mem_root) override {
    return Guarded<handler*>(nullptr, [&] { return QuarryHandler::clone(name, mem_root); });
  }
  int open(const char* name, int mode, uint test_if_locked) override {
    return Guarded([&] { return QuarryHandler::open(name, mode, test_if_locked); });
  }
  int external_lock(THD* thd, int lock_type) override {
    return Guarded([&] { return QuarryHandler::external_lock(thd, lock_type); });
  }
  int start_stmt(THD* thd, thr_lock_type lock_type) override {
    return Guarded([&] { return QuarryHandler::start_stmt(thd, lock_type); });
  }
  int extra(enum ha_extra_function operation) override {
    return Guarded([&] { return QuarryHandler::extra(operation); });
  }
  int info(uint flag) override {
    return Guarded([&] { return QuarryHandler::info(flag); });
  }

  // Reading.
  int index_init(uint index, bool sorted) override {
    return Guarded([&] { return QuarryHandler::index_init(index, sorted); });
  }
  int index_read_map(uchar* buf, const uchar* key, key_part_map keypart_map, enum ha_rkey_function flag) override {
    return Guarded([&] { return QuarryHandler::index_read_map(buf, key, keypart_map, flag); });
  }
  int index_read_last_map(uchar* buf, const uchar* key, key_part_map keypart_map) override {
    return Guarded([&] { return QuarryHandler::index_read_last_map(buf, key, keypart_map); });
  }
  int index_read(uchar* buf, const uchar* key, uint key_length, enum ha_rkey_function flag) override {
    return Guarded([&] { return QuarryHandler::index_read(buf, key, key_length, flag); });
  }
  int index_read_last(uchar* buf, const uchar* key, uint key_length) override {
    return Guarded([&] { return QuarryHandler::index_read_last(buf, key, key_length); });
  }
  int index_next(uchar* buf) override {
    return Guarded([&] { return QuarryHandler::index_next(buf); });
  }
  int index_prev(uchar* buf) override {
    return Guarded([&] { return QuarryHandler::index_prev(buf); });
  }
  int index_first(uchar* buf) override {
    return Guarded([&] { return QuarryHandler::index_first(buf); });
  }
  int index_last(uchar* buf) override {
    return Guarded([&] { return QuarryHandler::index_last(buf); });
  }
  int index_next_same(uchar* buf, const uchar* key, uint key_length) override {
    return Guarded([&] { return QuarryHandler::index_next_same(buf, key, key_length); });
  }
  int rnd_init(bool scan) override {
    return Guarded([&] { return QuarryHandler::rnd_init(scan); });
  }
  int rnd_next(uchar* buf) override {
    return Guarded([&] { return QuarryHandler::rnd_next(buf); });
  }
  int rnd_pos(uchar* buf, uchar* position) override {
    return Guarded([&] { return QuarryHandler::rnd_pos(buf, position); });
  }
  int ft_read(uchar* buf) override {
    return Guarded([&] { return QuarryHandler::ft_read(buf); });
  }
  int multi_range_read_next(range_id_t* range_info) override {
    return Guarded([&] { return QuarryHandler::multi_range_read_next(range_info); });
  }

  // Writing.
  int write_row(const uchar* buf) override {
    return Guarded([&] { return QuarryHandler::write_row(buf); });
  }
  int update_row(const uchar* old_data, const uchar* new_data) override {
    return Guarded([&] { return QuarryHandler::update_row(old_data, new_data); });
  }
  int delete_row(const uchar* buf) override {
    return Guarded([&] { return QuarryHandler::delete_row(buf); });
  }

  // Definition, administration.
  int create(const char* name, TABLE* form, HA_CREATE_INFO* create_info) override {
    return Guarded([&] { return QuarryHandler::create(name, form, create_info); });
  }
  bool check_if_incompatible_data(HA_CREATE_INFO* create_info, uint table_changes) override {
    return Guarded<bool>(COMPATIBLE_DATA_NO,
                         [&] { return QuarryHandler::check_if_incompatible_data(create_info, table_changes); });
  }
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE* altered_table, Alter_inplace_info* info) override {
    return Guarded(HA_ALTER_ERROR,
                   [&] { return QuarryHandler::check_if_supported_inplace_alter(altered_table, info); });
  }
  bool prepare_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info) override {
    return Guarded(true, [&] { return QuarryHandler::prepare_inplace_alter_table(altered_table, info); });
  }
  bool commit_inplace_alter_table(TABLE* altered_table, Alter_inplace_info* info, bool commit) override {
    return Guarded(true, [&] { return QuarryHandler::commit_inplace_alter_table(altered_table, info, commit); });
  }
  int check(THD* thd, HA_CHECK_OPT* options) override {
    return Guarded<int>(HA_ADMIN_FAILED, [&] { return QuarryHandler::check(thd, options); });
  }
};

}  // namespace

QuarryHandler* QuarryHandler::Make(TABLE_SHARE* share, MEM_ROOT* mem_root) {
  return new (mem_root) GuardedHandler(QuarryHandlerton(), share);
}

}  // namespace quarry
