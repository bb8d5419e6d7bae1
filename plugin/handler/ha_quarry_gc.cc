// QuarryHandler's part in a mark pass and in a sample: rows are read for their heads alone (gc_scan.h, value_sample.h).
#include "handler/ha_quarry.h"
#include "quarry/memory_guard.h"
#include "rows/gc_scan.h"
#include "rows/value_sample.h"
#include "server/child_table_id.h"

namespace quarry {

int QuarryHandler::BeginGcScan(bool scan) {
  const Result<ChildTable> child_table = ReadChildTable(child());
  if (!scan || !child_table.ok()) {
    gc_scan_->Fail(scan ? child_table.status() : Status::Unavailable("the server did not scan the table in one go"));
    return HA_ERR_ABORTED_BY_USER;
  }
  gc_scan_->Begin(child_table->id);
  rewriter_.FetchAll();
  return ForwardingHandler::rnd_init(scan);
}

int QuarryHandler::MarkNextRow(uchar* buf) {
  if (!gc_scan_->GoesOn(table)) return HA_ERR_ABORTED_BY_USER;
  rewriter_.BeginMark(buf);
  const int error = ForwardingHandler::rnd_next(buf);
  if (error != 0) {
    rewriter_.AbandonRead();
    if (error == HA_ERR_END_OF_FILE) {
      if (const Result<ChildTable> child_table = ReadChildTable(child()); child_table.ok())
        gc_scan_->NoteEnd(child_table->id);
    }
    return error;
  }
  gc_scan_->NoteRow();
  const Status status = OrOutOfMemory([&] { return rewriter_.MarkRow(buf, gc_scan_); });
  if (status.ok()) return 0;
  gc_scan_->Fail(status);
  return HA_ERR_ABORTED_BY_USER;
}

int QuarryHandler::EndSampleRow(uchar* buf, int error) {
  if (error != 0) {
    rewriter_.AbandonRead();
  } else {
    rewriter_.SampleRow(buf, sample_);
  }
  return error;
}

int QuarryHandler::RefuseInGcScan() {
  gc_scan_->Fail(Status::Unavailable("the server did not scan the table from its first row to its last"));
  return HA_ERR_ABORTED_BY_USER;
}

}  // namespace quarry
