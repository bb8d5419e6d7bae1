// The handler of a QUARRY table in a server whose InnoDB is switched off or could not start. Without one the server
// calls the .frm file damaged, answers CREATE with success and dies in RENAME.
//
// Invariant: nothing is opened or changed; every call that is asked for something says which engine is missing.
#pragma once

#include "server/mariadb_compat.h"

namespace quarry {

/// Externally synchronised, as every handler.
class AbsentInnodbHandler final : public handler {
 public:
  using handler::handler;

  Table_flags table_flags() const override { return HA_REC_NOT_IN_SEQ | HA_NULL_IN_KEY | HA_CAN_INDEX_BLOBS; }
  ulong index_flags(uint, uint, bool) const override { return 0; }
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_part_length() const override { return MAX_KEY_LENGTH; }

  int open(const char*, int, uint) override { return Refuse(); }
  int close() override { return 0; }
  int create(const char*, TABLE*, HA_CREATE_INFO*) override { return Refuse(); }
  int delete_table(const char*) override { return Refuse(); }
  int rename_table(const char*, const char*) override { return Refuse(); }
  int rnd_init(bool) override { return Refuse(); }
  int rnd_next(uchar*) override { return Refuse(); }
  int rnd_pos(uchar*, uchar*) override { return Refuse(); }
  int info(uint) override { return Refuse(); }
  void position(const uchar*) override {}
  THR_LOCK_DATA** store_lock(THD*, THR_LOCK_DATA** to, thr_lock_type) override { return to; }

 private:
  static int Refuse() {
    my_error(ER_UNKNOWN_STORAGE_ENGINE, MYF(0), "InnoDB");
    return HA_ERR_UNSUPPORTED;
  }
};

}  // namespace quarry
