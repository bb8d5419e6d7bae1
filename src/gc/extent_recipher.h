// ExtentRecipher: one extent's parts under another cipher, without a look at what is compressed in them.
//
// Header and index say what the parts' stored bytes are, so the parts go through it twice: Note each, which makes the
// index, then Make each once more, which gives the same bytes.
// Invariants: no plain byte leaves it; what it makes differs from the extent as it was in the cipher alone.
// Thread-safety: externally synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/extent.h"
#include "format/segment_header.h"
#include "quarry/cipher.h"

namespace quarry {

class ExtentRecipher {
 public:
  /// `old` must outlive it. Errors: kKeyUnavailable, kNotSupported.
  [[nodiscard]] static Result<std::unique_ptr<ExtentRecipher>> Begin(CipherProvider* provider, uint32_t key_id,
                                                                     const ExtentIndex* old);

  /// Every part, in order; `stored` is verified. Errors: kKeyUnavailable.
  [[nodiscard]] Status Note(std::span<const uint8_t> stored);
  [[nodiscard]] bool knows_all() const { return entries_.size() == old_->parts.size(); }

  /// When it knows all. Header, cipher block and index.
  [[nodiscard]] std::vector<uint8_t> Front(const SegmentSalt& salt) const;
  [[nodiscard]] uint64_t space_bytes() const { return ExtentSpaceBytes(header_); }
  [[nodiscard]] uint32_t key_version() const { return cipher_parameters_.key_version; }

  /// Part `part` as it is to be stored. Valid until the next call.
  [[nodiscard]] Result<std::span<const uint8_t>> Make(uint32_t part, std::span<const uint8_t> stored);

 private:
  explicit ExtentRecipher(const ExtentIndex* old);

  const ExtentIndex* const old_;
  std::unique_ptr<Cipher> old_cipher_;  ///< nullptr: it was plain
  CipherParameters cipher_parameters_;
  std::unique_ptr<Cipher> cipher_;
  ExtentHeader header_;  ///< with the sizes of the parts that are known
  std::vector<PartEntry> entries_;
  std::vector<uint8_t> plain_;  ///< one part, and room for its check
  std::vector<uint8_t> made_;
};

}  // namespace quarry
