// What the tests of verification share: an observer that remembers, and a small installation.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "store/installation_verify.h"
#include "store/store_test_util.h"

namespace quarry {

class Remember : public VerifyObserver {
 public:
  void Found(const Finding& finding) override { findings.push_back(finding); }
  [[nodiscard]] bool Progress(const VerifyProgress& progress) override {
    last = progress;
    return reads_left == 0 || --reads_left > 0;
  }
  [[nodiscard]] uint64_t CountOf(FindingKind kind) const {
    return static_cast<uint64_t>(
        std::count_if(findings.begin(), findings.end(), [kind](const Finding& f) { return f.kind == kind; }));
  }
  /// One line each, for messages.
  [[nodiscard]] std::string Text() const {
    std::string text;
    for (const Finding& f : findings) {
      text += std::string(FindingKindName(f.kind)) + " " + f.path + " +" + std::to_string(f.offset_bytes) + " " +
              std::to_string(f.size_bytes) + ": " + f.what + "\n";
    }
    return text;
  }

  std::vector<Finding> findings;
  VerifyProgress last;
  uint64_t reads_left = 0;  ///< stop after so many; 0: never
};

struct Verified {
  Result<VerifyTotals> totals;
  Remember seen;
};

inline Verified VerifyAll(Env* env, const VerifyOptions& options = {"/home", {}}) {
  Remember seen;
  Result<VerifyTotals> totals = VerifyInstallationFiles(env, options, &seen);
  return {std::move(totals), std::move(seen)};
}

/// Values and where they are, in one store over `options`, closed properly.
using Values = std::vector<std::pair<Locator, std::vector<uint8_t>>>;

inline Values MakeInstallation(Env* env, const DirectoryOptions& options, Codec codec, int count,
                               size_t step_bytes = 700, uint32_t encryption_key_id = 0) {
  Values values;
  const std::unique_ptr<StoreDirectoryImpl> directory = ValueOf(OpenDirectory(env, options));
  const auto store = ValueOf(directory->OpenForAppend({1}, "db/t"));
  UnsyncedExtents unsynced;
  AppendOptions append;
  append.codec = codec;
  append.part_size_bytes = 512;
  append.encryption_key_id = encryption_key_id;
  for (int i = 0; i < count; ++i) {
    std::vector<uint8_t> value = TextValue(step_bytes * static_cast<size_t>(i) + 100, static_cast<uint64_t>(i));
    const Locator locator = ValueOf(store->Append(value, append, &unsynced));
    values.emplace_back(locator, std::move(value));
  }
  EXPECT_OK(directory->Sync(unsynced));
  return values;
}

}  // namespace quarry
