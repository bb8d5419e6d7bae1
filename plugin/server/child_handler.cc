#include "server/child_handler.h"

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

handler* NewChildHandler(TABLE_SHARE* share, MEM_ROOT* mem_root) {
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

bool TransactionRegistered(THD* thd, const handlerton* hton) {
  return thd->ha_data[hton->slot].ha_info[1].is_started();
}

void JoinSavepoints(THD* thd, const handlerton* hton, const void* mark, size_t mark_size_bytes) {
  THD_TRANS* all = &thd->transaction->all;
  Ha_trx_info* ours = &thd->ha_data[hton->slot].ha_info[1];
  Ha_trx_info* innodb = &thd->ha_data[InnodbHandlerton()->slot].ha_info[1];
  if (thd->transaction->savepoints == nullptr || all->ha_list != ours || !innodb->is_started()) return;
  if (ours->m_next != innodb) {
    Ha_trx_info* before = ours->m_next;
    while (before != nullptr && before->m_next != innodb) before = before->m_next;
    if (before == nullptr) return;  // InnoDB is registered, but not in this list: nothing to keep together
    all->ha_list = ours->m_next;
    before->m_next = ours;
    ours->m_next = innodb;
  }
  for (SAVEPOINT* savepoint = thd->transaction->savepoints; savepoint != nullptr; savepoint = savepoint->prev) {
    if (savepoint->ha_list == innodb) savepoint->ha_list = ours;
    memcpy(reinterpret_cast<uchar*>(savepoint + 1) + hton->savepoint_offset, mark, mark_size_bytes);
  }
}

}  // namespace quarry
