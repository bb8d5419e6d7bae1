#include "inner_table.h"

namespace quarry {

namespace {
std::atomic<handlerton*> innodb_handlerton{nullptr};
std::mutex innodb_handlerton_mutex;
}  // namespace

handlerton* InnodbHandlerton() {
  handlerton* known = innodb_handlerton.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  const std::lock_guard<std::mutex> guard(innodb_handlerton_mutex);
  known = innodb_handlerton.load(std::memory_order_relaxed);
  if (known != nullptr) return known;
  known = ha_resolve_by_legacy_type(nullptr, DB_TYPE_INNODB);
  if (known != nullptr && known->create != nullptr) innodb_handlerton.store(known, std::memory_order_release);
  return known;
}

handler* NewInnerHandler(TABLE_SHARE* share, MEM_ROOT* mem_root) {
  handlerton* hton = InnodbHandlerton();
  return hton == nullptr ? nullptr : get_new_handler(share, mem_root, hton);
}

// Not mark_trx_read_write(), which does nothing more until the handler's next reset: HandlerSocket commits again and
// again without one, and a transaction that does not look read-write is committed without our hook.
void MarkReadWrite(handler* child) { child->mark_trx_read_write_internal(); }

void ClearReadWrite(THD* thd, const handlerton* hton) {
  Ha_trx_info& statement = thd->ha_data[hton->slot].ha_info[0];
  statement.m_flags &= ~static_cast<uchar>(Ha_trx_info::TRX_READ_WRITE);
}

bool StatementRegistered(THD* thd, const handlerton* hton) { return thd->ha_data[hton->slot].ha_info[0].is_started(); }

}  // namespace quarry
