// Encryption at rest: which table is encrypted, as InnoDB decides it, and MariaDB's encryption service behind the
// core's CipherProvider.
//
// Invariants:
//  - A value is encrypted when, at the moment at which it is written, InnoDB would encrypt a new tablespace of the
//  table:
//    ENCRYPTED=YES, or ENCRYPTED=DEFAULT (not given) while innodb_encrypt_tables is not OFF.
//  - When the key cannot be had the write fails: nothing is ever written plain instead.
// Thread-safety: pure functions and atomics; the provider is internally synchronised (so is the server's service).
#pragma once

#include "server/mariadb_compat.h"

#include "quarry/cipher.h"
#include "quarry/gc.h"

namespace quarry {

/// Goes to MariaDB's encryption service: to whatever key management plugin is loaded when it is asked.
std::shared_ptr<CipherProvider> MakeCipherProvider();

/// Finds innodb_encrypt_tables. Call once when InnoDB's handlerton exists, before any table is opened. False, with the
/// error in the log, when there is none: no table may be opened then, for it could be written plain.
bool AdoptInnodbEncryption(const handlerton* innodb_hton);

/// The key id that values written to the table now are encrypted with; 0: they are stored plain.
uint32_t EncryptionKeyOf(const TABLE_SHARE* share);

/// What GC makes of values that it copies, of a table with that EncryptionKeyOf: encrypted with the key, and with its
/// latest version where theirs is innodb_encryption_rotate_key_age versions behind (0: however old it is).
GcEncryption WantedEncryption(uint32_t key_id);

/// Error: kKeyUnavailable when the table is encrypted and its key is not there.
Status CheckKey(const TABLE_SHARE* share);

/// ENCRYPTED and ENCRYPTION_KEY_ID say the same for both: no value needs to be written anew.
bool SameEncryption(const TABLE_SHARE* left, const TABLE_SHARE* right);

/// What a table with managed columns cannot have. True, with the error reported: a single partition has options of its
/// own (the server shows them to CREATE, but not to what opens the partition). Warns when
/// innodb_default_encryption_key_id would go unnoticed, and notes when values are encrypted and prefixes in the rows
/// may be plain. What InnoDB refuses (an unknown key, ENCRYPTED=NO under innodb_encrypt_tables=FORCE) is left to it.
bool CheckEncryption(THD* thd, const TABLE* form);

}  // namespace quarry
