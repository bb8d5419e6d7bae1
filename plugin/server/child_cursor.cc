#include "server/child_cursor.h"

namespace quarry {
namespace {

/// What is raised while it lives is nobody's.
class Quiet {
 public:
  explicit Quiet(THD* thd) : thd_(thd) { thd_->push_internal_handler(&handler_); }
  ~Quiet() { thd_->pop_internal_handler(); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  THD* const thd_;
  Dummy_error_handler handler_;
};

}  // namespace

ChildCursor::ChildCursor() { init_alloc_root(PSI_NOT_INSTRUMENTED, &memory_, 1024, 0, MYF(MY_THREAD_SPECIFIC)); }

// As DS-MRR opens its second handler, but without the audit event of another lock.
std::unique_ptr<ChildCursor> ChildCursor::Open(handler* child) {
  THD* const thd = child->ha_thd();
  const Quiet quiet(thd);
  std::unique_ptr<ChildCursor> cursor(new (std::nothrow) ChildCursor());
  if (cursor == nullptr) return nullptr;
  handler* const file = child->clone(child->table_share->normalized_path.str, &cursor->memory_);
  if (file == nullptr) return nullptr;
  cursor->file_ = file;
  if (file->external_lock(thd, F_RDLCK) != 0) return nullptr;
  cursor->is_locked_ = true;
  file->m_lock_type = F_RDLCK;
  file->cached_table_flags = file->table_flags();
  return cursor;
}

ChildCursor::~ChildCursor() {
  if (file_ != nullptr) {
    THD* const thd = file_->ha_thd();
    const Quiet quiet(thd);
    file_->ha_index_or_rnd_end();
    if (is_locked_) {
      file_->external_lock(thd, F_UNLCK);
      file_->m_lock_type = F_UNLCK;
    }
    file_->ha_close();
    delete file_;
  }
  free_root(&memory_, MYF(0));
}

bool ChildCursor::Begin(const ScanStart& start, uchar* row) {
  const Quiet quiet(file_->ha_thd());
  file_->ha_index_or_rnd_end();
  if (start.from == ScanStart::From::kTable) return file_->ha_rnd_init(true) == 0 && file_->rnd_next(row) == 0;
  if (file_->ha_index_init(start.index, start.sorted) != 0) return false;
  switch (start.from) {
    case ScanStart::From::kFirst:
      return file_->index_first(row) == 0;
    case ScanStart::From::kLast:
      return file_->index_last(row) == 0;
    case ScanStart::From::kKey:
      return file_->index_read_map(row, start.key.data(), start.keypart_map, start.flag) == 0;
    case ScanStart::From::kKeyLast:
      return file_->index_read_last_map(row, start.key.data(), start.keypart_map) == 0;
    default:
      return false;
  }
}

bool ChildCursor::Next(const ScanStart& start, ScanStep step, uchar* row) {
  const Quiet quiet(file_->ha_thd());
  if (start.from == ScanStart::From::kTable) return file_->rnd_next(row) == 0;
  switch (step) {
    case ScanStep::kNext:
      return file_->index_next(row) == 0;
    case ScanStep::kPrev:
      return file_->index_prev(row) == 0;
    case ScanStep::kNextSame:
      return file_->index_next_same(row, start.key.data(), static_cast<uint>(start.key.size())) == 0;
    default:
      return false;
  }
}

void ChildCursor::End() {
  const Quiet quiet(file_->ha_thd());
  file_->ha_index_or_rnd_end();
}

}  // namespace quarry
