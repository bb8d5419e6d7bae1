#include "format/part_cipher.h"

#include <cassert>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"

namespace quarry {

Status SealPart(Cipher* cipher, uint32_t part, std::span<uint8_t> plain, std::span<uint8_t> out) {
  assert(plain.size() > kPartCheckSizeBytes && out.size() == plain.size());
  const size_t size = plain.size() - kPartCheckSizeBytes;
  StoreLittleEndian(plain, size, Checksum64(plain.first(size)));
  return cipher->Encrypt(part, plain, out);
}

Status OpenPart(Cipher* cipher, const ExtentIndex& index, uint32_t part, std::span<const uint8_t> stored,
                std::span<uint8_t> plain) {
  assert(stored.size() > kPartCheckSizeBytes && plain.size() == stored.size());
  QUARRY_TRY(cipher->Decrypt(part, stored, plain));
  const size_t size = plain.size() - kPartCheckSizeBytes;
  if (LoadLittleEndian<uint64_t>(plain, size) == Checksum64(plain.first(size))) return Status::Ok();
  const ExtentHeader& header = index.header;
  return Status::KeyUnavailable(
      "store " + std::to_string(header.store.value) + " segment " + std::to_string(header.segment.value) + " offset " +
      std::to_string(header.offset_bytes) + ": part " + std::to_string(part) + " is sound but was encrypted with " +
      "another key than version " + std::to_string(index.cipher.key_version) + " of key " +
      std::to_string(index.cipher.key_id) + " is now (bring back the key, or the algorithm, of that time)");
}

}  // namespace quarry
