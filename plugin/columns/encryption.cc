// See encryption.h.
#include "columns/encryption.h"

#include <sql_error.h>
#include <sql_plugin.h>

#include <mysql/service_encryption.h>
#include <mysql/service_encryption_scheme.h>
#include <mysql/service_my_crypt.h>

#include <partition_info.h>
#include <set_var.h>

#include "columns/column_options.h"
#include "server/error_log.h"
#include "server/innodb_variables.h"

namespace quarry {
namespace {

/// Values of InnoDB's table option ENCRYPTED, in the order of its declaration: DEFAULT,YES,NO.
constexpr uint kEncryptionDefault = 0;
constexpr uint kEncryptionYes = 1;

constexpr uint32_t kFirstKeyId = 1;  ///< FIL_DEFAULT_ENCRYPTION_KEY

std::atomic<const unsigned long*> innodb_encrypt_tables{nullptr};
std::atomic<const unsigned int*> innodb_rotate_key_age{nullptr};

std::string KeyText(uint32_t key_id, uint32_t key_version) {
  return "version " + std::to_string(key_version) + " of key " + std::to_string(key_id);
}

Status KeyMissing(const std::string& key) {
  return Status::KeyUnavailable(key +
                                " is not available (allowed: keys that the loaded key management plugin has, e.g. "
                                "file_key_management; bring the key back and repeat the statement)");
}

/// Parts of one extent through the encryption scheme service, which takes the key and derives the extent's own from it.
class ServiceCipher final : public Cipher {
 public:
  explicit ServiceCipher(const CipherParameters& parameters) : key_version_(parameters.key_version) {
    memcpy(scheme_.iv, parameters.salt.data(), sizeof(scheme_.iv));
    scheme_.key_id = parameters.key_id;
    scheme_.type = 1;
  }
  /// No key outlives its use.
  ~ServiceCipher() override { explicit_bzero(&scheme_, sizeof(scheme_)); }
  ServiceCipher(const ServiceCipher&) = delete;
  ServiceCipher& operator=(const ServiceCipher&) = delete;

  Status Encrypt(uint32_t part, std::span<const uint8_t> in, std::span<uint8_t> out) override {
    unsigned int size = 0;
    const int error = encryption_scheme_encrypt(in.data(), static_cast<unsigned int>(in.size()), out.data(), &size,
                                                &scheme_, key_version_, part, 0, 0);
    return Outcome(error, size, in.size());
  }
  Status Decrypt(uint32_t part, std::span<const uint8_t> in, std::span<uint8_t> out) override {
    unsigned int size = 0;
    const int error = encryption_scheme_decrypt(in.data(), static_cast<unsigned int>(in.size()), out.data(), &size,
                                                &scheme_, key_version_, part, 0, 0);
    return Outcome(error, size, in.size());
  }

 private:
  [[nodiscard]] Status Outcome(int error, unsigned int size, size_t expected) const {
    const std::string key = KeyText(scheme_.key_id, key_version_);
    if (error == ENCRYPTION_SCHEME_KEY_INVALID) return KeyMissing(key);
    if (error != 0) {
      return Status::KeyUnavailable(key + " cannot be used: the encryption service returned " + std::to_string(error));
    }
    if (size != expected) {
      return Status::KeyUnavailable(key + " cannot be used: the key management plugin made " + std::to_string(size) +
                                    " bytes of " + std::to_string(expected) + ", it must keep the length");
    }
    return Status::Ok();
  }
  /// No key outlives its use.

  const uint32_t key_version_;
  st_encryption_scheme scheme_{};
};

class ServiceProvider final : public CipherProvider {
 public:
  Result<CipherParameters> NewExtent(uint32_t key_id) override {
    CipherParameters parameters;
    parameters.scheme = kCipherSchemeMariadb1;
    parameters.key_id = key_id;
    parameters.key_version = encryption_key_get_latest_version(key_id);
    if (parameters.key_version == ENCRYPTION_KEY_VERSION_INVALID) return KeyMissing("key " + std::to_string(key_id));
    if (parameters.key_version == ENCRYPTION_KEY_NOT_ENCRYPTED) {
      return Status::KeyUnavailable("the key management plugin says of key " + std::to_string(key_id) +
                                    " that nothing is to be encrypted with it (allowed: another ENCRYPTION_KEY_ID)");
    }
    if (my_random_bytes(parameters.salt.data(), static_cast<int>(parameters.salt.size())) != MY_AES_OK) {
      return Status::KeyUnavailable("the server has no random bytes to encrypt with");
    }
    return parameters;
  }

  Result<std::unique_ptr<Cipher>> Open(const CipherParameters& parameters) override {
    if (parameters.scheme != kCipherSchemeMariadb1) {
      return Status::NotSupported("encryption scheme " + std::to_string(parameters.scheme) +
                                  " was written by a newer Quarry; this one knows " +
                                  std::to_string(kCipherSchemeMariadb1));
    }
    return std::unique_ptr<Cipher>(std::make_unique<ServiceCipher>(parameters));
  }
};

uint EncryptionOption(const TABLE_SHARE* share) {
  const auto* const options = reinterpret_cast<const TableOptions*>(share->option_struct);
  return options == nullptr ? kEncryptionDefault : options->innodb.encryption;
}

uint32_t KeyIdOption(const TABLE_SHARE* share) {
  const auto* const options = reinterpret_cast<const TableOptions*>(share->option_struct);
  return options == nullptr ? kFirstKeyId : static_cast<uint32_t>(options->innodb.encryption_key_id);
}

bool EncryptTablesByDefault() {
  const unsigned long* const variable = innodb_encrypt_tables.load(std::memory_order_acquire);
  return variable != nullptr && ReadInnodbVariable(variable) != 0;
}

const engine_option_value* FindOption(const engine_option_value* list, std::string_view name) {
  const engine_option_value* found = nullptr;
  for (; list != nullptr; list = list->next) {
    const bool same = list->name.length == name.size() && strncasecmp(list->name.str, name.data(), name.size()) == 0;
    if (same && list->value.str != nullptr) found = list;
  }
  return found;
}

uint64_t ReadServerVariable(THD* thd, const char* name, enum_var_type type, uint64_t if_unknown) {
  sys_var* const variable = find_sys_var(thd, name, 0, false);
  bool is_null = false;
  return variable == nullptr ? if_unknown
                             : static_cast<uint64_t>(variable->val_int(&is_null, thd, type, &null_clex_str));
}

/// The session's innodb_default_encryption_key_id.
uint64_t DefaultKeyId(THD* thd) {
  return ReadServerVariable(thd, "innodb_default_encryption_key_id", OPT_SESSION, kFirstKeyId);
}

/// The rows, with short values and the prefixes of long ones, are InnoDB's to encrypt, and it goes by more than the
/// table's options. (What is temporary is InnoDB's wholly.)
void NoteOneSide(THD* thd, const TABLE* form) {
  const auto note = [thd, form](const char* what, const char* setting) {
    push_warning_printf(
        thd, Sql_condition::WARN_LEVEL_NOTE, ER_ILLEGAL_HA_CREATE_OPTION,
        "table '%s': its long values are encrypted; %s, with its short values and prefixes, may be plain (%s)",
        form->s->table_name.str, what, setting);
  };
  if (ReadServerVariable(thd, "innodb_file_per_table", OPT_GLOBAL, 1) == 0) {
    note("InnoDB's system tablespace", "innodb_file_per_table=OFF");
  }
  if (ReadServerVariable(thd, "innodb_encrypt_log", OPT_GLOBAL, 1) == 0) {
    note("InnoDB's redo log", "innodb_encrypt_log=OFF");
  }
}

}  // namespace

std::shared_ptr<CipherProvider> MakeCipherProvider() { return std::make_shared<ServiceProvider>(); }

bool AdoptInnodbEncryption(const handlerton* innodb_hton) {
  const unsigned long* const variable = FindInnodbVariable(innodb_hton, "encrypt_tables");
  innodb_encrypt_tables.store(variable, std::memory_order_release);
  innodb_rotate_key_age.store(FindInnodbInt(innodb_hton, "encryption_rotate_key_age"), std::memory_order_release);
  if (variable != nullptr) return true;
  LogError("InnoDB of this server has no variable innodb_encrypt_tables: no QUARRY table is opened");
  return false;
}

uint32_t EncryptionKeyOf(const TABLE_SHARE* share) {
  const uint option = EncryptionOption(share);
  const bool encrypted = option == kEncryptionYes || (option == kEncryptionDefault && EncryptTablesByDefault());
  return encrypted ? KeyIdOption(share) : 0;
}

GcEncryption WantedEncryption(uint32_t key_id) {
  if (key_id == 0) return {};
  const uint32_t latest = encryption_key_get_latest_version(key_id);
  if (latest == ENCRYPTION_KEY_VERSION_INVALID || latest == ENCRYPTION_KEY_NOT_ENCRYPTED) return {};
  const unsigned int* const variable = innodb_rotate_key_age.load(std::memory_order_acquire);
  const uint32_t age = variable == nullptr ? 0 : ReadInnodbVariable(variable);
  return {key_id, age == 0 || age > latest ? 0 : latest - age + 1};
}

Status CheckKey(const TABLE_SHARE* share) {
  const uint32_t key_id = EncryptionKeyOf(share);
  if (key_id == 0 || encryption_key_get_latest_version(key_id) != ENCRYPTION_KEY_VERSION_INVALID) return Status::Ok();
  return KeyMissing("the table is encrypted, nothing of it is lost: key " + std::to_string(key_id));
}

bool SameEncryption(const TABLE_SHARE* left, const TABLE_SHARE* right) {
  return EncryptionOption(left) == EncryptionOption(right) && KeyIdOption(left) == KeyIdOption(right);
}

bool CheckEncryption(THD* thd, const TABLE* form) {
  if (EncryptionKeyOf(form->s) != 0) NoteOneSide(thd, form);
  if (form->part_info != nullptr) {
    List_iterator_fast<partition_element> partitions(form->part_info->partitions);
    while (const partition_element* partition = partitions++) {
      for (const char* name : {"ENCRYPTED", "ENCRYPTION_KEY_ID"}) {
        if (FindOption(partition->option_list, name) == nullptr) continue;
        my_printf_error(ER_BAD_OPTION_VALUE,
                        "Partition '%s': option '%s' is allowed for a whole QUARRY table, not for a single partition",
                        MYF(0), partition->partition_name, name);
        return true;
      }
    }
  }
  if (EncryptionKeyOf(form->s) == 0 || FindOption(form->s->option_list, "ENCRYPTION_KEY_ID") != nullptr) return false;
  if (const uint64_t wanted = DefaultKeyId(thd); wanted != KeyIdOption(form->s)) {
    push_warning_printf(thd, Sql_condition::WARN_LEVEL_WARN, ER_ILLEGAL_HA_CREATE_OPTION,
                        "innodb_default_encryption_key_id=%llu does not count for QUARRY tables: table '%s' uses key "
                        "%u (say ENCRYPTION_KEY_ID=%llu)",
                        static_cast<unsigned long long>(wanted), form->s->table_name.str, KeyIdOption(form->s),
                        static_cast<unsigned long long>(wanted));
  }
  return false;
}

}  // namespace quarry
