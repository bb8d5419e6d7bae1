// Encryption at rest, as the core sees it: somebody else has the keys and the algorithm (the plugin: MariaDB's
// encryption service). The core knows which bytes are to be encrypted, and writes down what decrypting them takes.
//
// Invariants:
//  - What encrypts an extent is drawn anew for each extent (CipherParameters::salt), and no part number stands twice
//    in one extent: no pair of key and IV is ever used twice.
//  - Everything that decrypting takes, but the key itself, is written in the extent, and nothing of it depends on where
//    the extent lies: a copy of it decrypts alike.
//  - Encrypting does not change the length.
// Thread-safety: a CipherProvider is internally synchronised; a Cipher is externally synchronised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "quarry/status.h"

namespace quarry {

inline constexpr size_t kCipherSaltSizeBytes = 16;

/// The only scheme so far: MariaDB's encryption scheme 1 (docs/internals/format.md, 'Encrypted parts').
inline constexpr uint32_t kCipherSchemeMariadb1 = 1;

/// What stands in an encrypted extent. No field is ever 0.
struct CipherParameters {
  uint32_t scheme = 0;
  uint32_t key_id = 0;
  uint32_t key_version = 0;
  std::array<uint8_t, kCipherSaltSizeBytes> salt{};
  bool operator==(const CipherParameters&) const = default;
};

/// Encrypts and decrypts the parts of one extent.
class Cipher {
 public:
  virtual ~Cipher() = default;
  /// `out` is as long as `in` and does not overlap it. Error: kKeyUnavailable.
  [[nodiscard]] virtual Status Encrypt(uint32_t part, std::span<const uint8_t> in, std::span<uint8_t> out) = 0;
  /// A wrong key is no error here: it makes other bytes, which the check behind each part tells (format/part_cipher.h).
  [[nodiscard]] virtual Status Decrypt(uint32_t part, std::span<const uint8_t> in, std::span<uint8_t> out) = 0;
};

class CipherProvider {
 public:
  virtual ~CipherProvider() = default;
  /// For a new extent: the latest version of the key and a fresh salt. Error: kKeyUnavailable.
  [[nodiscard]] virtual Result<CipherParameters> NewExtent(uint32_t key_id) = 0;
  /// Errors: kKeyUnavailable (no such key, or not this version), kNotSupported (a scheme that it does not know).
  [[nodiscard]] virtual Result<std::unique_ptr<Cipher>> Open(const CipherParameters& parameters) = 0;
};

}  // namespace quarry
