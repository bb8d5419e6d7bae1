// What the golden files of format version 2 (tests/golden/v2) hold: encrypted extents and their heads, and a MANIFEST.
// Version 2 is written of nothing else. Shared by the test that opens them and by the generator that wrote them once.
// Never change a sample: a later version gets files and samples of its own. Values and segment header are those of
// version 1. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "codec/golden_v1_samples.h"
#include "format/test_cipher.h"

namespace quarry::golden_v2 {

inline constexpr uint32_t kKey = 4711;
inline constexpr uint64_t kSeed = 20261121;

/// The extents of version 1, encrypted.
inline std::vector<golden_v1::ExtentSample> Extents() { return golden_v1::Extents(); }

/// The cipher of the golden files is the tests' own: what it does must not change either.
inline std::shared_ptr<TestCipherProvider> Provider() {
  auto provider = std::make_shared<TestCipherProvider>(kSeed);
  provider->Rotate(kKey, 0x0123456789abcdef);
  provider->Rotate(kKey, 0xfedcba9876543210);
  return provider;
}

/// What extent number `number` is encrypted with.
inline CipherParameters ParametersOf(size_t number) {
  CipherParameters parameters{kCipherSchemeMariadb1, kKey, number == 1 ? 1U : 2U, {}};
  for (size_t i = 0; i < parameters.salt.size(); ++i) parameters.salt[i] = static_cast<uint8_t>(number * 16 + i + 1);
  return parameters;
}

/// That of version 1, with a segment whose counters leave something out.
inline Manifest StoreManifest() {
  Manifest manifest = golden_v1::StoreManifest();
  manifest.segments.front().has_uncounted = true;
  return manifest;
}

}  // namespace quarry::golden_v2
