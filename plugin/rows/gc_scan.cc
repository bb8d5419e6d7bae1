// See gc_scan.h.
#include "rows/gc_scan.h"

#include <table_cache.h>

namespace quarry {

namespace {

thread_local GcScan* current_scan = nullptr;

std::string Names(const std::set<uint64_t>& tables) {
  std::string text;
  for (const uint64_t table : tables) text += (text.empty() ? "" : ", ") + std::to_string(table);
  return text.empty() ? "none" : text;
}

}  // namespace

GcScan::GcScan(GcPass* pass, const Limits* limits) : pass_(pass), limits_(limits) { current_scan = this; }

GcScan::~GcScan() { current_scan = nullptr; }

GcScan* GcScan::Current() { return current_scan; }

void GcScan::Begin(TableId table) {
  begun_.insert(table.value);
  table_ = table;
  last_store_ = {};
}

void GcScan::NoteStore(StoreId store) {
  last_store_ = store;
  stores_met_.emplace(store, table_);
}

bool GcScan::GoesOn(TABLE* table) {
  if (!status_.ok()) return false;
  if (!limits_->goes_on()) {
    Fail(Status::Unavailable("the scan was stopped"));
    return false;
  }
  if (calls_++ % kRowsBetweenLooks != 0) return true;
  if (std::chrono::steady_clock::now() >= limits_->deadline) {
    overran_ = status_.ok();
    Fail(Status::Unavailable("the scan took longer than quarry_gc_timeout"));
  } else if (table->mdl_ticket != nullptr && table->mdl_ticket->has_pending_conflicting_lock()) {
    Fail(Status::Unavailable("the scan gave way to a statement that waits for the table's metadata lock"));
  } else if (table->s->tdc != nullptr && table->s->tdc->flushed) {
    Fail(Status::Unavailable("the scan gave way to FLUSH TABLES"));
  }
  return status_.ok();
}

void GcScan::NoteEnd(TableId table) { ++ended_[table.value]; }

void GcScan::Fail(const Status& status) {
  if (status_.ok()) status_ = status;
}

Status GcScan::Finish(const std::set<uint64_t>& tables) const {
  QUARRY_TRY(status_);
  if (begun_ != tables) {
    return Status::Unavailable("the table has changed: InnoDB's tables " + Names(tables) + " were to be scanned, " +
                               Names(begun_) + " were");
  }
  for (const uint64_t table : tables) {
    const auto ended = ended_.find(table);
    if (ended == ended_.end() || ended->second != 1) {
      return Status::Unavailable("the scan of InnoDB's table " + std::to_string(table) + " was cut short");
    }
  }
  return Status::Ok();
}

}  // namespace quarry
