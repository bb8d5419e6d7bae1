// TestCipherProvider: keys that tests make, lose and change, and a cipher to match. It hides nothing from anybody; it
// makes bytes that depend on key, salt and part in every place, as a real cipher's do.
// Thread-safety: internally synchronised, but for StarvingProvider::is_starving.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/mutex.h"
#include "quarry/cipher.h"

namespace quarry {

class TestCipher final : public Cipher {
 public:
  TestCipher(uint64_t secret, const CipherParameters& parameters) : secret_(secret), parameters_(parameters) {}

  Status Encrypt(uint32_t part, std::span<const uint8_t> in, std::span<uint8_t> out) override {
    return Crypt(part, in, out);
  }
  Status Decrypt(uint32_t part, std::span<const uint8_t> in, std::span<uint8_t> out) override {
    return Crypt(part, in, out);
  }

 private:
  static constexpr uint64_t kEveryByte = 0x0101010101010101ULL;

  /// The golden files of version 2 were encrypted by it: it gives the same bytes for ever.
  Status Crypt(uint32_t part, std::span<const uint8_t> in, std::span<uint8_t> out) {
    std::array<uint8_t, 32> seed{};
    std::copy(parameters_.salt.begin(), parameters_.salt.end(), seed.begin());
    StoreLittleEndian(std::span<uint8_t>(seed), 16, secret_);
    StoreLittleEndian(std::span<uint8_t>(seed), 24, part);
    uint64_t state = Checksum64(seed);
    for (size_t at = 0; at < in.size(); at += sizeof(uint64_t)) {
      const size_t size = std::min(sizeof(uint64_t), in.size() - at);
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      uint64_t word = 0;
      std::memcpy(&word, in.data() + at, size);
      word ^= state ^ ((state >> 33U & 0xFFU) * kEveryByte);
      std::memcpy(out.data() + at, &word, size);
    }
    return Status::Ok();
  }

  const uint64_t secret_;
  const CipherParameters parameters_;
};

class TestCipherProvider final : public CipherProvider {
 public:
  explicit TestCipherProvider(uint64_t seed = 1) : salt_state_(seed) {}

  /// The next version of a key, or the first one.
  void Rotate(uint32_t key_id, uint64_t secret) {
    MutexLock lock(mutex_);
    const uint32_t version = keys_[key_id].empty() ? 1 : keys_[key_id].rbegin()->first + 1;
    keys_[key_id][version] = secret;
  }
  /// Another key under the same version: 0 makes it be missing.
  void Replace(uint32_t key_id, uint32_t version, uint64_t secret) {
    MutexLock lock(mutex_);
    if (secret != 0) {
      keys_[key_id][version] = secret;
    } else {
      keys_[key_id].erase(version);
    }
  }

  Result<CipherParameters> NewExtent(uint32_t key_id) override {
    MutexLock lock(mutex_);
    const auto key = keys_.find(key_id);
    if (key == keys_.end() || key->second.empty()) return Missing(key_id);
    CipherParameters parameters{kCipherSchemeMariadb1, key_id, key->second.rbegin()->first, {}};
    for (uint8_t& byte : parameters.salt) {
      salt_state_ = salt_state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      byte = static_cast<uint8_t>(salt_state_ >> 56U);
    }
    return parameters;
  }

  Result<std::unique_ptr<Cipher>> Open(const CipherParameters& parameters) override {
    if (parameters.scheme != kCipherSchemeMariadb1) {
      return Status::NotSupported("scheme " + std::to_string(parameters.scheme) + " is not known here");
    }
    MutexLock lock(mutex_);
    const auto key = keys_.find(parameters.key_id);
    if (key == keys_.end() || !key->second.contains(parameters.key_version)) return Missing(parameters.key_id);
    return std::unique_ptr<Cipher>(std::make_unique<TestCipher>(key->second.at(parameters.key_version), parameters));
  }

 private:
  static Status Missing(uint32_t key_id) {
    return Status::KeyUnavailable("key " + std::to_string(key_id) + " is missing");
  }

  Mutex mutex_;
  uint64_t salt_state_ QUARRY_GUARDED_BY(mutex_);
  std::map<uint32_t, std::map<uint32_t, uint64_t>> keys_ QUARRY_GUARDED_BY(mutex_);
};

/// Has the keys of another one, and no memory when it is told so.
class StarvingProvider final : public CipherProvider {
 public:
  explicit StarvingProvider(std::shared_ptr<CipherProvider> keys) : keys_(std::move(keys)) {}
  Result<CipherParameters> NewExtent(uint32_t key_id) override { return keys_->NewExtent(key_id); }
  Result<std::unique_ptr<Cipher>> Open(const CipherParameters& parameters) override {
    if (is_starving) throw std::bad_alloc();
    return keys_->Open(parameters);
  }

  bool is_starving = false;

 private:
  const std::shared_ptr<CipherProvider> keys_;
};

}  // namespace quarry
