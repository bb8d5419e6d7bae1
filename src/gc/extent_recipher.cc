#include "gc/extent_recipher.h"

#include <algorithm>

#include "base/checksum.h"
#include "format/part_cipher.h"

namespace quarry {

ExtentRecipher::ExtentRecipher(const ExtentIndex* old) : old_(old), header_(old->header) {
  header_.encrypted = true;
  header_.stored_total_bytes = 0;
}

Result<std::unique_ptr<ExtentRecipher>> ExtentRecipher::Begin(CipherProvider* provider, uint32_t key_id,
                                                              const ExtentIndex* old) {
  std::unique_ptr<ExtentRecipher> made(new ExtentRecipher(old));
  if (provider == nullptr) return Status::KeyUnavailable("nothing here can encrypt (no key management is at hand)");
  if (old->header.encrypted) {
    QUARRY_TRY_ASSIGN(made->old_cipher_, provider->Open(old->cipher));
  }
  QUARRY_TRY_ASSIGN(made->cipher_parameters_, provider->NewExtent(key_id));
  QUARRY_TRY_ASSIGN(made->cipher_, provider->Open(made->cipher_parameters_));
  return made;
}

Status ExtentRecipher::Note(std::span<const uint8_t> stored) {
  const auto part = static_cast<uint32_t>(entries_.size());
  QUARRY_TRY_ASSIGN(const std::span<const uint8_t> made, Make(part, stored));
  PartEntry entry;
  entry.checksum = Checksum64(made);
  entry.stored_size_bytes = static_cast<uint32_t>(made.size());
  entry.raw = old_->parts[part].raw;
  entries_.push_back(entry);
  header_.stored_total_bytes += made.size();
  return Status::Ok();
}

std::vector<uint8_t> ExtentRecipher::Front(const SegmentSalt& salt) const {
  std::vector<uint8_t> front(static_cast<size_t>(HeaderAndIndexSizeBytes(header_)));
  EncodeExtentIndex(header_, entries_, cipher_parameters_, salt, front);
  return front;
}

Result<std::span<const uint8_t>> ExtentRecipher::Make(uint32_t part, std::span<const uint8_t> stored) {
  const size_t check = PartOverheadBytes(true);
  plain_.resize(stored.size() + (old_cipher_ == nullptr ? check : 0));
  if (old_cipher_ == nullptr) {
    std::copy(stored.begin(), stored.end(), plain_.begin());
  } else {
    QUARRY_TRY(
        OpenPart(old_cipher_.get(), *old_, part, stored, plain_));  // its check stands behind it, and is made anew
  }
  made_.resize(plain_.size());
  QUARRY_TRY(SealPart(cipher_.get(), part, plain_, made_));
  return std::span<const uint8_t>(made_);
}

}  // namespace quarry
